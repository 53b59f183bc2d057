package fastapi

import (
	"strings"
	"testing"
)

// TestRootPage: people get a page that works without anything from elsewhere and never takes a text of a document
// for its own; programs in production get a line.
func TestRootPage(t *testing.T) {
	c := newClient(t, Options{Keys: openKeys(t, masterKey)})
	r := c.get("/")
	if r.status != 200 || r.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(r.body, "</script>") {
		t.Errorf("%d %v %.100s", r.status, r.header, r.body)
	}
	for _, outside := range []string{"://", "src=", "import(", "innerHTML", "insertAdjacentHTML", "document.write"} {
		if strings.Contains(r.body, outside) {
			t.Errorf("the page has %s", outside)
		}
	}
	c = newClient(t, Options{Keys: openKeys(t, masterKey), Production: true})
	if r := c.get("/"); r.status != 200 || r.header.Get("Content-Type") != contentJSON || strings.Contains(r.body, "<") {
		t.Errorf("in production: %d %v %.100s", r.status, r.header, r.body)
	}
}

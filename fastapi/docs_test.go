package fastapi

import (
	"encoding/base64"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/manual"
)

// TestEveryCodeIsExplained checks that the page of errors explains each code.
func TestEveryCodeIsExplained(t *testing.T) {
	uses := usesOfCodes(routes())
	for _, code := range apierr.Codes() {
		if manual.Explain(code) == "" && len(uses[code]) == 0 {
			t.Errorf("%s is not explained", code)
		}
	}
}

// TestTheLinkOfAnErrorIsServed checks that the link in an error opens a page without a key.
func TestTheLinkOfAnErrorIsServed(t *testing.T) {
	c := newClient(t, Options{Keys: openKeys(t, "a-master-key-of-16+bytes"), NoDashboard: true})
	link := string(apierr.Code(c.get("/version").code()).Link())
	at, anchor, _ := strings.Cut(link, "#")
	r := c.get(at)
	if r.status != 200 || anchor != "missing_authorization_header" || !strings.Contains(r.body, `id="`+anchor+`"`) {
		t.Errorf("%s: %d %.200s", link, r.status, r.body)
	}
	policy := r.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("policy %q", policy)
	}
	if r := c.get("/docs"); r.status != 200 || !strings.Contains(r.body, "A first search") {
		t.Errorf("/docs: %d %.200s", r.status, r.body)
	}
	icon, err := dashboardFiles.ReadFile("dashboard/icon.svg")
	if err != nil || !strings.Contains(c.get("/docs").body, base64.StdEncoding.EncodeToString(icon)) {
		t.Errorf("/docs has another icon than the dashboard: %v", err)
	}
	for _, page := range []string{"operations", "Rules"} {
		if r := c.get("/docs/" + page); r.status != 200 || r.body != c.get("/docs/"+strings.ToUpper(page)).body {
			t.Errorf("%s: %d %.200s", page, r.status, r.body)
		}
	}
	for _, path := range []string{"/docs/none", "/docs/..%2fgo.mod", "/docs/OPERATIONS.md"} {
		if r := c.get(path); r.status != 404 || r.code() != "route_not_found" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

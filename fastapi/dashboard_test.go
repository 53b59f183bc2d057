package fastapi

import (
	"bytes"
	"compress/gzip"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestDashboard checks that browsers get a page that needs no other server, whose files exist, are cached forever, and cannot be framed by
// other pages. Programs in production get a line of text, and so does everybody if the page was left out of the build.
func TestDashboard(t *testing.T) {
	c := newClient(t, Options{Keys: openKeys(t, masterKey)})
	r := c.get("/")
	if r.status != 200 || r.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%d %v %.100s", r.status, r.header, r.body)
	}
	policy := r.header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	if r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%v", r.header)
	}
	if regexp.MustCompile(`<script[^>]*>[^<]|<style|style=|onclick`).MatchString(r.body) {
		t.Error("the page has code or style inside, which its own policy forbids")
	}

	// All files that the page and its modules name exist.
	names := regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`).FindAllStringSubmatch(r.body, -1)
	if len(names) < 3 {
		t.Fatalf("the page names %v", names)
	}
	var todo []string
	for _, m := range names {
		todo = append(todo, m[1])
	}
	seen, compressed := map[string]bool{}, 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		f := c.get(name)
		if f.status != 200 || !strings.Contains(f.header.Get("Cache-Control"), "immutable") || f.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", name, f.status, f.header)
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(f.body))
		_ = w.Close()
		compressed += b.Len()
		if ct := f.header.Get("Content-Type"); ct != assetTypes[path.Ext(name)] || ct == "" {
			t.Errorf("%s is %q", name, ct)
		}
		if !strings.HasSuffix(name, ".js") {
			continue
		}
		for _, outside := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "localStorage", "sessionStorage", "document.cookie"} {
			if strings.Contains(f.body, outside) {
				t.Errorf("%s has %s", name, outside)
			}
		}
		for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(f.body, -1) {
			todo = append(todo, name[:strings.LastIndexByte(name, '/')+1]+m[1])
		}
	}
	if len(seen) != len(dashboardPage().assets) {
		t.Errorf("%d files are named, and %d are there", len(seen), len(dashboardPage().assets))
	}
	if compressed > 150<<10 {
		t.Errorf("a first load takes %d bytes", compressed)
	}
	for _, name := range []string{"/assets/0123456789abcdef/app.js", "/assets/" + dashboardPage().hash + "/none.js", "/assets/" + dashboardPage().hash + "/index.html"} {
		if f := c.get(name); f.status != 404 {
			t.Errorf("%s: %d", name, f.status)
		}
	}

	c = newClient(t, Options{Keys: openKeys(t, masterKey), Production: true})
	if r := c.get("/"); r.status != 200 || r.header.Get("Content-Type") != contentJSON || strings.Contains(r.body, "<") {
		t.Errorf("a program in production: %d %v %.100s", r.status, r.header, r.body)
	}
	if r := c.send("GET", "/", nil, "Accept", "text/html,application/xhtml+xml"); !strings.Contains(r.body, "<html") {
		t.Errorf("a browser in production: %d %v %.100s", r.status, r.header, r.body)
	}
	c = newClient(t, Options{Keys: openKeys(t, masterKey), NoDashboard: true})
	if r := c.send("GET", "/", nil, "Accept", "text/html"); strings.Contains(r.body, "<") {
		t.Errorf("without the page: %d %.100s", r.status, r.body)
	}
	if f := c.get("/assets/" + dashboardPage().hash + "/app.js"); f.status != 404 {
		t.Errorf("without the page its files are there: %d", f.status)
	}
}

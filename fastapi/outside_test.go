package fastapi

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"svc/internal/manual"
)

// fetched matches the attributes, elements and headers that make a browser fetch something without a click.
var fetched = regexp.MustCompile(`(?i)<(?:link|script|img|iframe|frame|object|embed|source|video|audio|track|input|form|base|body|use|image)\b[^>]*` +
	`\b(?:href|src|srcset|data|action|background|poster|formaction)\s*=\s*["']?\s*((?:[a-z][a-z0-9+.-]*:)?//[^"' >]*)|http-equiv=["']?refresh|url\(\s*["']?((?:https?:)?//[^)]*)|@import`)

// TestPagesLoadNothingFromOtherServers checks that the policy of every page allows only its own server, and that it names nothing
// else to fetch.
func TestPagesLoadNothingFromOtherServers(t *testing.T) {
	for _, bad := range []string{`<script src="https://cdn.test/a.js">`, `<link rel=preconnect href=//cdn.test>`, `<IMG SRC='http://a.test/x.png'>`, `<meta http-equiv="refresh">`,
		`a{background:url(https://a.test/x)}`, `@import "x"`, `<form method=post action="https://a.test">`} {
		if !fetched.MatchString(bad) {
			t.Fatalf("%s is not detected", bad)
		}
	}
	c := newClient(t, Options{Demo: true})
	paths := []string{"/", "/demo", "/docs", "/docs/search", "/docs/search?q=typo"}
	pages, err := manual.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, pages.Paths()...)
	for _, files := range []*website{dashboardPage(), demoPage()} {
		for name := range files.assets {
			paths = append(paths, "/assets/"+files.hash+"/"+name)
		}
	}
	own := []string{"'none'", "'self'", "data:", "'unsafe-inline'"}
	html := 0
	for _, path := range paths {
		r := c.get(path)
		if r.status != 200 {
			t.Errorf("%s: %d", path, r.status)
			continue
		}
		kind := r.header.Get("Content-Type")
		if strings.HasPrefix(kind, "text/html") || strings.HasPrefix(kind, "text/css") || strings.HasPrefix(kind, "image/svg") {
			if m := fetched.FindString(r.body); m != "" {
				t.Errorf("%s loads %.200s", path, m)
			}
		}
		if !strings.HasPrefix(kind, "text/html") {
			continue
		}
		html++
		if r.header.Get("Link") != "" || r.header.Get("Refresh") != "" {
			t.Errorf("%s: %v", path, r.header)
		}
		directives := map[string][]string{}
		for directive := range strings.SplitSeq(r.header.Get("Content-Security-Policy"), ";") {
			words := strings.Fields(directive)
			if len(words) < 2 {
				t.Errorf("%s: the directive %q", path, directive)
				continue
			}
			directives[words[0]] = words[1:]
			for _, source := range words[1:] {
				// The dashboard shows pictures of documents beside hits.
				picture := path == "/" && words[0] == "img-src" && (source == "https:" || source == "http:")
				if !slices.Contains(own, source) && !strings.HasPrefix(source, "'sha256-") && !picture {
					t.Errorf("%s allows %s for %s", path, source, words[0])
				}
			}
		}
		for _, name := range []string{"default-src", "base-uri", "form-action"} { // the last two do not fall back to the first
			want := "'none'"
			if name == "form-action" && strings.HasPrefix(path, manual.Root) {
				want = "'self'" // the search of the documents
			}
			if !slices.Equal(directives[name], []string{want}) {
				t.Errorf("%s: %s is %q", path, name, directives[name])
			}
		}
	}
	if html < 10 {
		t.Errorf("only %d pages were checked", html)
	}
}

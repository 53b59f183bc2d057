package manual

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/apierr"
)

var (
	references = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	ids        = regexp.MustCompile(`id="([^"]*)"`)
)

// TestLinksOfPages follows every link and picture of every page. Loaded resources must come from the same server; links may
// lead elsewhere.
func TestLinksOfPages(t *testing.T) {
	m, err := New(Uses{"invalid_search_limit": {"`limit`"}})
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]Page{}
	for _, at := range m.Paths() {
		page, ok, err := m.Page(at)
		if err != nil || !ok {
			t.Fatal(at, err)
		}
		pages[at] = page
	}
	for file, title := range m.titles {
		if d, err := m.document(file); err != nil || d.headings[0].title != title {
			t.Errorf("the title of %s is %q: %v", file, title, err)
		}
	}
	if pages[SearchPath], err = m.Search("typo"); err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for at, page := range pages {
		anchors[at] = true
		for _, m := range ids.FindAllSubmatch(page.Body, -1) {
			anchors[at+"#"+string(m[1])] = true
		}
	}
	followed, reached := 0, map[string]bool{}
	for at, page := range pages {
		if !strings.HasPrefix(page.Type, "text/html") {
			continue
		}
		body := strings.Replace(string(page.Body), `<link rel="icon" href="data:`, "", 1) // which loads nothing
		for _, tag := range []string{"<script", "<link", "<iframe", "<object", "javascript:", "style=\""} {
			if strings.Contains(body, tag) {
				t.Errorf("%s has %s", at, tag)
			}
		}
		if n := strings.Count(body, "<form"); n != 1 || !strings.Contains(body, `<form action="`+SearchPath+`"`) {
			t.Errorf("%s has %d forms, want one with the search", at, n)
		}
		for _, m := range references.FindAllStringSubmatch(body, -1) {
			to, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %v", at, err)
				continue
			}
			if to.IsAbs() && strings.HasPrefix(m[0], "href") || to.Path == "/openapi.json" || to.Path == "/" {
				continue
			}
			base, _ := url.Parse(at)
			target := base.ResolveReference(to).String()
			if !anchors[target] {
				t.Errorf("%s links to %s, which does not exist", at, target)
			}
			if !strings.HasPrefix(target, at+"#") {
				reached[strings.SplitN(target, "#", 2)[0]] = true
			}
			followed++
		}
	}
	if len(pages) < 15 || followed < 80 {
		t.Errorf("%d pages, %d links", len(pages), followed)
	}
	for file := range m.titles {
		if !reached[pathOf(file)] {
			t.Errorf("no page leads to %s", file)
		}
		if !strings.Contains(string(pages[pathOf(file)].Body), ` aria-current="`) {
			t.Errorf("%s is missing in the navigation", file)
		}
	}
	for _, code := range apierr.Codes() {
		if !anchors[code.Link()] {
			t.Errorf("the link of %s is broken", code)
		}
	}
	if !strings.Contains(string(pages[Root].Body), `<img src="/docs/search.png"`) {
		t.Error("the README has lost its picture")
	}
	if !strings.Contains(string(pages[Root].Body), "<title>svc documentation</title>") || !strings.Contains(string(pages["/docs/TUTORIAL"].Body), "<title>A shop in 15 minutes · svc</title>") {
		t.Error("pages have other titles")
	}
}

// TestHTMLInDocumentsIsLeftOut checks that HTML in a document is removed.
func TestHTMLInDocumentsIsLeftOut(t *testing.T) {
	d, err := parse("docs/x.md", []byte("# A <b>\n\n<script>x()</script>\n\n[a](javascript:x()) [b](other.md#c) ![p](p.png)\n"), map[string]string{"docs/other.md": "/docs/other", "docs/p.png": "/docs/p.png"})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := d.html(); err != nil || strings.Contains(s, "<script") || strings.Contains(s, "javascript:") || !strings.Contains(s, `href="/docs/other#c"`) || !strings.Contains(s, `src="/docs/p.png"`) {
		t.Errorf("%s", s)
	}
	if _, err := parse("docs/x.md", []byte("![p](https://example.com/p.png)"), nil); err == nil {
		t.Error("a picture from another server is included")
	}
}

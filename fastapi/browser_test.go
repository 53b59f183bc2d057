package fastapi

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// pictures is the directory into which TestPictures writes.
const pictures = "SVC_PICTURES"

// TestPictures makes the picture at the top of the README if a directory is given: a search over the films of the first start, and the
// reasons for the rank of the first hit.
func TestPictures(t *testing.T) {
	dir := os.Getenv(pictures)
	if dir == "" {
		t.Skip(pictures + " names no directory for pictures")
	}
	c, address := openPage(t, Options{Version: Version{Program: "0.2.0", Package: "1.42.1"}})
	sample, err := dashboardFiles.ReadFile("dashboard/sample.js")
	if err != nil {
		t.Fatal(err)
	}
	films := sample[bytes.IndexByte(sample, '['):bytes.LastIndexByte(sample, ';')]
	films = regexp.MustCompile(`,\s*\]\s*$`).ReplaceAll(films, []byte("]"))
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes": ["year", "genres", "country"], "sortableAttributes": ["year"], "searchableAttributes": ["title", "director", "genres", "text"]}`))
	if end := c.wait(c.json("POST", "/indexes/films/documents", string(films))); !strings.Contains(end, "succeeded") {
		t.Fatal(end)
	}
	out := filepath.Join(dir, "search.png")
	tab := startChromium(t).open()
	tab.look(1100, 640, false)
	for range 2 { // the first time, the browser still takes the processors while svc searches
		tab.goTo(address + "/#/search?index=films&q=love%20citty")
		tab.until(`document.querySelectorAll(".hit").length > 1 && document.querySelector(".facet li")`)
	}
	tab.eval(`document.querySelector(".hit summary").click(), document.activeElement.blur(), 0`, nil)
	tab.until(`document.querySelector(".why li meter")`)
	tab.picture(out)
	if info, err := os.Stat(out); err != nil || info.Size() > 150<<10 {
		t.Errorf("%v %v", info, err)
	}
}

// hostile is markup that would run if it were not escaped.
const hostile = `<img src=x onerror="window.ran=1"><script>window.ran=1</script>`

// hostileDocuments have names and values that are markup, change the writing direction, are members of every JavaScript object, or
// are very long.
func hostileDocuments(t *testing.T) string {
	t.Helper()
	long := strings.Repeat("w", 1<<20)
	b, err := json.Marshal([]values{
		{"id": 1, "title": "metropolis " + hostile, "tag": hostile, "year": 1927, "__proto__": "x", "constructor": "y", hostile: 1, "\u202eltr": "\u202egnirts",
			"toString": values{"__proto__": values{"valueOf": 1}}, "_formatted": "mine", "_rankingScore": hostile, "name": values{"a": hostile}, "mark": "\ue000open"},
		{"id": 2, "title": "metropolis again", "tag": []string{"1", "2", "\u202egat", strings.Repeat("t", 400)}, "year": 1930, "poster": "http://127.0.0.1:1/a.png", "long": long, long[:400]: 1, "__proto__": "z"},
		{"id": "javascript-alert-1", "title": nil, "tag": []any{nil, true, values{}}, "_geo": values{"lat": 48.1, "lng": 11.6}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// openPage starts a server on a port, and returns its URL.
func openPage(t *testing.T, o Options) (c *client, url string) {
	t.Helper()
	openInstance(t, &o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, o, l, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }), "http://" + l.Addr().String()
}

// TestDashboardInABrowser opens each part of the page on an empty server and on one with hostile documents, fields, facets and index
// uid. The page must show them without running them or exceeding its width, on small and large screens, light and dark, and axe-core
// must find nothing.
func TestDashboardInABrowser(t *testing.T) {
	axe := axe(t)
	tab := startChromium(t).open()
	c, url := openPage(t, Options{PayloadLimit: 10 << 20})
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard}, nil)
	c.server.recent.began = time.Now().Add(-time.Minute)
	checks := 0
	check := func(part string, wants ...string) {
		t.Helper()
		checks++
		for _, look := range []struct {
			width, height int
			dark          bool
		}{{390, 844, true}, {1440, 900, false}, {3840, 2160, true}} {
			if look.width == 3840 && checks%4 != 1 && !*everyLook { // 8 million pixels are slow without a graphics card: every fourth part
				continue
			}
			tab.look(look.width, look.height, look.dark)
			tab.goTo(url + "/#/" + part)
			for _, want := range wants {
				quoted, _ := json.Marshal(want)
				tab.until("document.documentElement?.outerHTML.includes(" + string(quoted) + ")")
			}
			for _, line := range tab.faults() {
				t.Errorf("%s, %d pixels: %s", part, look.width, line)
			}
			// axe-core is slow: alternate between small dark pages and larger light ones.
			if *everyLook || look.dark == (checks%2 == 0) && look.width < 3840 {
				for _, line := range tab.complaints(axe) {
					t.Errorf("%s, %d pixels, dark: %v: %s", part, look.width, look.dark, line)
				}
			}
		}
	}
	check("search", "There is nothing to search yet", "Load sample films")
	check("documents", "Upload a file")
	check("system", "available")

	tab.goTo(url + "/#/search")
	tab.until(`document.querySelector("h1")?.textContent.includes("nothing to search yet")`)
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes":["tag","__proto__","year","long"]}`))
	if end := c.wait(c.json("POST", "/indexes/films/documents", hostileDocuments(t))); !strings.Contains(end, "succeeded") {
		t.Fatal(end)
	}
	tab.until(`document.querySelectorAll(".hit").length === 3`) // the page has reacted
	rule, _ := json.Marshal(values{"description": hostile, "conditions": []values{{"scope": "query", "isEmpty": true}, {"scope": "time", "start": "2100-01-01T00:00:00Z"}},
		"actions": []values{{"selector": values{"indexUid": "films", "id": "1"}, "action": values{"type": "pin", "position": 0}}}})
	c.json("PATCH", "/experimental-features", `{"dynamicSearchRules": true}`)
	if made := c.json("PATCH", "/dynamic-search-rules/hostile", string(rule)); made.status != 201 {
		t.Fatal(made.body)
	}
	check("search?index=films&q=metropolis", "2 found in", "<mark>metropolis</mark>", "&lt;img src=x onerror=", "Why here", "Pin or hide", `aria-label="year: min"`, "__proto__")
	check("search?index=films&q=metropolis&facets=%5B%5B%22year%22%2C%5B%221927%22%5D%2C%22%22%2C%22%22%5D%5D", "1 found in")
	check("search?index=films&q=metropolis&compare=%7B%22settings%22%3A%7B%22rankingRules%22%3A%5B%22year%3Adesc%22%5D%2C%22stopWords%22%3A%5B%22x%22%5D%7D%7D",
		"Other settings", "▲ 1", "▼ 1", "2 found", "is not compared", "The words of every document.")
	check("search?index=none", "none")
	check("search?index="+neturl.QueryEscape(hostile), "onerror")
	check("documents?index=films", "3 documents", "New document", "&lt;img src=x onerror=")
	check("rules", "pins ", "&lt;img src=x onerror=", "Scheduled", "nothing is typed")
	check("settings?index=films&group=facets", "sortableAttributes", "&lt;img src=x onerror=", "number")
	check("settings?index=films&view=json", "rankingRules", "After a change")
	check("tasks", "documentAdditionOrUpdate", "succeeded", "indexedDocuments: 3")
	check("keys", "master key")
	check("system", "available", "films", "Time of a search", `<path d="M`, "Memory of requests", `class="segment"`, "3 documents")
}

// TestDashboardShowsParkedTasks has an embedder that fails: the page must show which embedder a task waits for, since when, and the last
// error. Canceling the task on the page must end it at once.
func TestDashboardShowsParkedTasks(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "out of order", http.StatusBadGateway) }))
	defer provider.Close()
	c.wait(c.json("PATCH", "/indexes/a/settings", `{"embedders": {"e": {"source": "rest", "url": "`+provider.URL+`", "dimensions": 2, "request": {"x": "{{text}}"}, "response": {"y": "{{embedding}}"}}}}`))
	task := c.json("POST", "/indexes/a/documents", `[{"id": 1, "t": "x"}]`)
	tab.goTo(url + "/#/tasks")
	tab.until(`/Waiting for the embedder since .*, tried \d+ times, next at .*status 502/.test(document.querySelector("tbody")?.textContent)`)
	tab.until(`/Embedder requests: \d+, \d+ failed. Last error: .*status 502/.test(document.querySelector(".running")?.textContent)`)
	if end := c.wait(c.json("POST", "/indexes/b/documents", `[{"id": 1}]`)); !strings.Contains(end, "succeeded") {
		t.Error(end)
	}
	tab.until(`[...document.querySelectorAll("button.link")].find(b => b.textContent === "Cancel")`)
	c.json("POST", "/swap-indexes", `[{"indexes": ["a", "b"]}]`)
	tab.until(`/Waits for earlier tasks. The first is \d+: documentAdditionOrUpdate of a/.test(document.querySelector("tbody").textContent)`)
	tab.eval(`[...document.querySelectorAll("button.link")].filter(b => b.textContent === "Cancel").at(-1).click()`, nil)
	if end := c.wait(task); !strings.Contains(end, `"status":"canceled"`) {
		t.Error(end)
	}
	tab.until(`!document.querySelector("tbody").textContent.includes("Waiting for")`)
}

package fastapi

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestDemo checks that the page exists only if it was requested, with its files and nothing from other servers, that it does not load
// files of the dashboard, and that its authors are named.
func TestDemo(t *testing.T) {
	c := newClient(t, Options{Keys: openKeys(t, masterKey)})
	if r := c.get("/demo"); r.status != 404 {
		t.Errorf("without the option: %d %.100s", r.status, r.body)
	}
	if r := c.get("/assets/" + demoPage().hash + "/demo.js"); r.status != 404 {
		t.Errorf("its files exist without the option: %d", r.status)
	}
	if r := c.get("/licenses"); !strings.Contains(r.body, "Algolia") || !strings.Contains(r.body, "Meili SAS") {
		t.Error("the licences lack those of the libraries")
	}
	c = newClient(t, Options{Keys: openKeys(t, masterKey), Demo: true, NoDashboard: true})
	r := c.get("/demo")
	if r.status != 200 || !strings.Contains(r.header.Get("Content-Security-Policy"), "script-src 'self'; style-src 'self'; connect-src 'self'") || r.header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%d %v", r.status, r.header)
	}
	if regexp.MustCompile(`<script[^>]*>[^<]|<style|style=|onclick|(?:src|href)="https?:`).MatchString(r.body) {
		t.Error("the page has code or style inside, or something from elsewhere")
	}
	names := regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`).FindAllStringSubmatch(r.body, -1)
	if len(names) != len(demoPage().assets) {
		t.Errorf("%d files are named, and %d are there", len(names), len(demoPage().assets))
	}
	for _, m := range names {
		if f := c.get(m[1]); f.status != 200 || !strings.Contains(f.header.Get("Cache-Control"), "immutable") || f.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", m[1], f.status, f.header)
		} else if ct := f.header.Get("Content-Type"); ct == "" || ct != assetTypes[path.Ext(m[1])] {
			t.Errorf("%s is %q", m[1], ct)
		}
	}
}

// TestDemoInABrowser searches with the widgets: by words, facet, range and page, with a search key. The policy of the page must not block
// any of it, and a hostile document must not run.
func TestDemoInABrowser(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{Keys: openKeys(t, masterKey), Demo: true})
	c.key = masterKey
	c.wait(c.json("PATCH", "/indexes/many/settings", `{"filterableAttributes":["tags","size","year"],"pagination":{"maxTotalHits":5000}}`))
	c.wait(c.send("POST", "/indexes/many/documents", strings.NewReader(string(manyDocuments(500))), "Content-Type", "application/x-ndjson"))
	if end := c.wait(c.json("POST", "/indexes/many/documents", `[{"id": 9999, "title": "metropolis <img src=x onerror='window.ran=1'>", "tags": ["<img src=x onerror='window.ran=1'>"], "year": 1927, "size": 1}]`)); !strings.Contains(end, "succeeded") {
		t.Fatal(end)
	}
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": `window.stopped = []; addEventListener("securitypolicyviolation", e => stopped.push(e.blockedURI + " " + e.violatedDirective));`}, nil)
	tab.look(1440, 900, false)
	tab.goTo(url + "/demo?index=many")
	tab.until(`document.getElementById("said").textContent !== ""`)
	key, _ := keyFor(t, c, "search")
	tab.eval(`document.getElementById("key").value = `+quoted(key)+`, document.getElementById("open").requestSubmit()`, nil)
	tab.until(`document.querySelectorAll(".ais-Hits-item").length === 10 && document.querySelector(".ais-Stats-text")?.textContent.startsWith("501 ")`)
	tab.until(`document.querySelector(".ais-RefinementList-item") && document.querySelector(".ais-RangeInput-input--min") && document.querySelectorAll(".ais-Pagination-item--page").length > 3`)
	tab.eval(`[...document.querySelectorAll(".ais-Pagination-link")].find(a => a.textContent === "2").click()`, nil)
	tab.until(`document.querySelector(".ais-Pagination-item--selected")?.textContent === "2" && document.querySelectorAll(".ais-Hits-item").length === 10`)
	tab.eval(`document.querySelector(".ais-RefinementList-checkbox").click()`, nil)
	tab.until(`parseInt(document.querySelector(".ais-Stats-text").textContent) < 501 && document.querySelector(".ais-RefinementList-item--selected")`)
	tab.eval(`document.querySelector(".ais-RefinementList-item--selected .ais-RefinementList-checkbox").click()`, nil)
	tab.until(`document.querySelector(".ais-Stats-text").textContent.startsWith("501 ")`)
	tab.eval(`(() => { const box = document.querySelector(".ais-SearchBox-input"); box.value = "metropolis"; box.dispatchEvent(new Event("input", {bubbles: true})); })()`, nil)
	tab.until(`document.querySelector(".ais-Hits-item mark")?.textContent.toLowerCase() === "metropolis" && document.querySelectorAll(".ais-Hits-item").length === 1`)
	var state struct {
		Ran     bool
		Images  int
		Stopped []string
	}
	tab.eval(`({ran: "ran" in window, images: document.images.length, stopped})`, &state)
	if state.Ran || state.Images > 0 || len(state.Stopped) > 0 {
		t.Errorf("%+v", state)
	}
	for _, line := range tab.complaints(axe(t)) {
		t.Error(line)
	}
	tab.look(390, 844, true)
	var overflow int
	if tab.eval("document.documentElement.scrollWidth - innerWidth", &overflow); overflow > 0 {
		t.Errorf("the page is %d pixels too wide for 390", overflow)
	}
}

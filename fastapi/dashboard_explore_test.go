package fastapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestDashboardExplores groups hits, chooses a range by a bar, follows a suggestion, and runs a set of queries through a comparison.
func TestDashboardExplores(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"filterableAttributes":["brand","price"],"sortableAttributes":["price"],"pagination":{"maxTotalHits":500}}`))
	var docs []string
	for i := range 40 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"title":"boots %d","brand":"%s","price":%d}`, i, i, []string{"acme", "bolt", "core"}[i%3], i*i))
	}
	c.wait(c.json("POST", "/indexes/goods/documents", "["+strings.Join(docs, ",")+"]"))
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills + heardSearches + `
		window.pressBar = i => [...document.querySelectorAll(".bars g")].at(i).dispatchEvent(new MouseEvent("click", {bubbles: true}));
		window.spreads = () => heard.filter(body => body.aggregations).length;`}, nil)
	check := func(width, height int, dark bool) {
		t.Helper()
		tab.look(width, height, dark)
		for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
			t.Error(line)
		}
	}
	tab.look(1440, 900, false)
	tab.goTo(url + "/#/search?index=goods&q=boots&group=brand")
	tab.until(`texts(".group-of").join() === "acme 14 hits,bolt 13 hits,core 13 hits" && document.querySelectorAll("#main .hit").length === 9 && document.querySelector(".summary").textContent.startsWith("3 groups found")`)
	tab.until(`document.querySelectorAll(".bars g").length > 5 && spreads() > 0 && [...document.querySelectorAll(".more label")].some(label => label.textContent === "Sort")`)
	var spreads int
	if tab.eval(`spreads()`, &spreads); spreads != 1 {
		t.Errorf("the bars of a facet are requested %d times", spreads)
	}
	check(390, 844, true)
	tab.look(1440, 900, false)
	tab.eval(`(() => {
		const choice = [...document.querySelectorAll(".more select")].find(node => node.value === "brand");
		choice.value = "";
		choice.dispatchEvent(new Event("change"));
	})()`, nil)
	tab.until(`document.querySelectorAll("#main .hit").length === 20 && !document.querySelector(".group-of") && spreads() === 2`)
	// A bar counts numbers below its end; the last one includes the greatest number.
	tab.eval(`pressBar(-1)`, nil)
	tab.until(`texts(".chip").join() === "price ≥ 1000 ×,price ≤ 1521 ×" && document.querySelectorAll("#main .hit").length === 8 && spreads() === 3 && texts(".bars g:not(.left)").join() === "1000 to 2000: 8"`)
	tab.eval(`pressBar(0)`, nil)
	tab.until(`texts(".chip").join() === "price ≥ 0 ×,price < 1 ×" && document.querySelectorAll("#main .hit").length === 1 && spreads() === 4 && texts(".bars g:not(.left)").join() === "0 to 1: 1"`)
	tab.until(`new URLSearchParams(location.hash.split("?")[1]).get("facets") === '[["price",[],"0","1",true]]'`)
	tab.eval(`type(document.querySelector(".bar input[type=search]"), "botos"), 0`, nil)
	tab.until(`heard.filter(body => body.q === "botos" && body.facets).length === 2 && document.querySelectorAll("#main .hit").length === 1`) // the hits, and the facet without its range
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"typoTolerance":{"enabled":false}}`))
	tab.goTo(url + "/#/search?index=goods&q=botos")
	tab.until(`texts("#main section p").at(-1) === "Did you mean boots?"`)
	check(390, 844, true)
	tab.look(1440, 900, false)
	tab.eval(`press("boots"), 0`, nil)
	tab.until(`document.querySelectorAll("#main .hit").length === 20 && location.hash.includes("q=boots")`)

	tab.goTo(url + "/#/search?index=goods&q=boots&compare=" + `%7B%22search%22%3A%7B%22sort%22%3A%5B%22price%3Adesc%22%5D%7D%7D`)
	tab.until(`document.querySelector("dialog .compared li")`)
	tab.eval(`(() => {
		const queries = [...document.querySelectorAll("dialog details")].find(node => node.querySelector("summary").textContent === "Query set");
		queries.open = true;
		type(queries.querySelector("textarea"), "boots\nnothing like it\nboots\n");
		press("Compare all", queries);
	})()`, nil)
	tab.until(`texts("dialog details td").join() === "boots,40,40,10,nothing like it,0,0,0" && texts("dialog details .soft").at(-1) === "The hits change for 1 of 2 queries."`)
	check(1440, 900, false)
	// The tried settings are saved to the index.
	tab.eval(`(() => {
		window.confirm = () => true;
		const rules = [...document.querySelectorAll("dialog textarea")].find(node => node.value.startsWith("words\n"));
		rules.value = "words\nsort";
		rules.dispatchEvent(new Event("input", {bubbles: true}));
	})()`, nil)
	tab.until(`[...document.querySelectorAll("dialog button")].some(node => node.textContent === "Apply these settings" && node.checkVisibility())`)
	tab.eval(`press("Apply these settings"), 0`, nil)
	tab.until(`!document.querySelector("dialog") && document.getElementById("said").textContent === "Saved: rankingRules."`)
	if r := c.get("/indexes/goods/settings/ranking-rules"); r.body != `["words","sort"]` {
		t.Error(r.body)
	}
}

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
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"filterableAttributes":["brand","price"],"sortableAttributes":["price"]}`))
	var docs []string
	for i := range 40 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"title":"boots %d","brand":"%s","price":%d}`, i, i, []string{"acme", "bolt", "core"}[i%3], i*i))
	}
	c.wait(c.json("POST", "/indexes/goods/documents", "["+strings.Join(docs, ",")+"]"))
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills}, nil)
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
	tab.until(`document.querySelectorAll(".bars g").length > 5`)
	check(390, 844, true)
	tab.look(1440, 900, false)
	tab.eval(`(() => {
		const choice = [...document.querySelectorAll(".more select")].find(node => node.value === "brand");
		choice.value = "";
		choice.dispatchEvent(new Event("change"));
	})()`, nil)
	tab.until(`document.querySelectorAll("#main .hit").length === 20 && !document.querySelector(".group-of") && document.querySelector(".bars g")`)
	tab.eval(`document.querySelector(".bars g").dispatchEvent(new MouseEvent("click", {bubbles: true}))`, nil)
	tab.until(`texts(".chip").join() === "price ≥ 0 ×,price ≤ 1 ×" && document.querySelectorAll("#main .hit").length === 2 && document.querySelectorAll(".bars .left").length > 5`)
	tab.eval(`type(document.querySelector(".bar input[type=search]"), "botso"), 0`, nil)
	tab.until(`document.querySelector("#main .hit")`)
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"typoTolerance":{"enabled":false}}`))
	tab.goTo(url + "/#/search?index=goods&q=botos")
	tab.until(`texts("#main section p").at(-1) === "Did you mean boots?"`)
	check(390, 844, true)
	tab.look(1440, 900, false)
	tab.eval(`press("boots"), 0`, nil)
	tab.until(`document.querySelectorAll("#main .hit").length === 20 && location.hash.includes("q=boots")`)

	tab.goTo(url + "/#/search?index=goods&q=boots&compare=" + `%7B%22search%22%3A%7B%22sort%22%3A%5B%22price%3Adesc%22%5D%7D%7D`)
	tab.until(`document.querySelector("dialog .compared li")`)
	tab.eval(`document.querySelector("dialog details").open = true, type(document.querySelector("dialog details textarea"), "boots\nnothing like it\nboots\n"), press("Compare all"), 0`, nil)
	tab.until(`texts("dialog details td").join() === "boots,40,40,10,nothing like it,0,0,0" && texts("dialog details .soft").at(-1) === "The hits change for 1 of 2 queries."`)
	check(1440, 900, false)
}

package fastapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestDashboardShowsFourHits searches documents with many fields, long texts and long lists. At least four hits must fit on 1440 × 900,
// each must open to show the whole document, and a table must show the same hits. The address must keep the view and the colors.
func TestDashboardShowsFourHits(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	var docs []values
	for i := range 30 {
		doc := values{"id": i, "name": fmt.Sprintf("text-editor-%d", i), "source": "gnome-text-editor", "version": "0.11-1+b1", "summary": "a text editor that opens files of any size and shows them",
			"description": strings.Repeat("This editor of text is a small part of a large program. ", 20), "section": "editors", "priority": i % 7}
		for n, list := range []string{"depends", "recommends", "suggests", "tags"} {
			var all []string
			for v := range 12 + n {
				all = append(all, fmt.Sprintf("libghc-zipper-%s-%d", list, v))
			}
			doc[list] = all
		}
		docs = append(docs, doc)
	}
	b, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	c.wait(c.json("PATCH", "/indexes/packages/settings", `{"filterableAttributes":["section"],"sortableAttributes":["priority"]}`))
	c.wait(c.json("POST", "/indexes/packages/documents", string(b)))
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills + `
		window.seen = () => [...document.querySelectorAll("#main .hit")].filter(hit => hit.getBoundingClientRect().bottom <= innerHeight).length;`}, nil)
	check := func() {
		t.Helper()
		for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
			t.Error(line)
		}
	}
	tab.look(1440, 900, false)
	tab.goTo(url + "/#/search?index=packages&q=text%20editor")
	tab.until(`document.querySelectorAll("#main .hit").length === 20 && document.querySelector(".facet li") && seen() >= 4`)
	check()
	tab.eval(`press("3 more fields"), 0`, nil)
	tab.until(`document.querySelectorAll("#main .hit")[0].querySelectorAll("dt").length === 11 && [...document.querySelectorAll("#main .hit:first-child .values")].at(-1).children.length === 15`)
	check()
	tab.look(390, 844, true)
	check()
	tab.look(1440, 900, false)
	tab.eval(`(() => {
		const view = document.querySelector("select[aria-label='Show hits as']");
		view.value = "table";
		view.dispatchEvent(new Event("change"));
	})()`, nil)
	tab.until(`document.querySelectorAll("#main tbody tr").length === 20 && !document.querySelector("#main .hit") && document.querySelector("tbody mark") && location.hash.includes("view=table")`)
	check()
	tab.look(390, 844, true)
	check()

	tab.look(1440, 900, false)
	tab.eval(`document.getElementById("theme").click(), document.getElementById("theme").click(), 0`, nil)
	tab.until(`location.search === "?theme=dark" && document.documentElement.dataset.theme === "dark"`)
	tab.eval(`window.old = true, setTimeout(() => location.reload()), 0`, nil)
	tab.until(`!window.old && document.querySelectorAll("#main tbody tr").length === 20 && document.documentElement.dataset.theme === "dark" && document.getElementById("theme").ariaLabel === "Colors: dark"`)
	tab.eval(`document.querySelector("nav a[href^='#/tasks']").click(), 0`, nil)
	tab.until(`location.hash.startsWith("#/tasks") && location.search === "?theme=dark"`)
	tab.eval(`document.getElementById("theme").click(), 0`, nil)
	tab.until(`location.search === "" && !document.documentElement.dataset.theme`)

	// A text that fits on a wide screen is clamped on a narrow one, and can be opened. The head shows the start of a title, the
	// list all of it.
	c.wait(c.json("POST", "/indexes/notes/documents", fmt.Sprintf(`[{"id":1,"text":%q},{"id":2,"title":%q}]`, strings.Repeat("a text ", 24), strings.Repeat("a title ", 40))))
	tab.goTo(url + "/#/search?index=notes")
	tab.until(`document.querySelectorAll("#main .hit").length === 2 && texts("#main .hit:nth-of-type(2) dt").join() === "id,title"`)
	var early bool
	if tab.eval(`[...document.querySelector("#main .hit").querySelectorAll("button")].some(b => b.textContent === "Show all")`, &early); early {
		t.Error("a completely visible text has a button")
	}
	tab.look(320, 844, true)
	tab.until(`[...document.querySelector("#main .hit").querySelectorAll("button")].some(b => b.textContent === "Show all")`)
	check()
	tab.eval(`press("Show all"), 0`, nil)
	tab.until(`(node => !node.closest(".brief") && node.textContent.trim().length > 160)(document.querySelector("#main .hit .value:last-child"))`)
}

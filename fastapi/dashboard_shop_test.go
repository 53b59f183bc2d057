package fastapi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDashboardMakesAShop builds a shop on an empty server with the page alone: facets, a pinned product, a synonym, and a comparison that
// can be reopened. SVC_PICTURES names a directory for screenshots of each step.
func TestDashboardMakesAShop(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{PayloadLimit: 10 << 20})
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills + chooses + `
		window.confirm = () => true;
		window.go = part => [...document.querySelectorAll("#nav a")].find(link => link.hash.startsWith("#/" + part)).click();
		window.hits = () => texts("#main .hit h2").join();`}, nil)
	steps := 0
	seen := func(name string) {
		t.Helper()
		steps++
		if dir := os.Getenv(pictures); dir != "" {
			tab.picture(filepath.Join(dir, fmt.Sprintf("shop-%d-%s.png", steps, name)))
		}
	}
	var goods []values
	for i := range 24 {
		kind := []string{"Boots", "Jackets", "Gloves"}[i%3]
		goods = append(goods, values{"sku": fmt.Sprintf("P-%d", 100+i), "title": fmt.Sprintf("Winter %s %d", strings.ToLower(kind), i), "brand": []string{"Acme", "Bolt"}[i%2], "category": kind, "price": 20 + i})
	}
	file, err := json.Marshal(goods)
	if err != nil {
		t.Fatal(err)
	}
	tab.look(1440, 900, false)
	tab.goTo(url + "/")
	tab.until(`document.querySelector(".steps input[type=file]")`)
	seen("empty")
	tab.eval(`choose(new File([`+quoted(string(file))+`], "shop.json")), 0`, nil)
	tab.until(`document.querySelector(".plan select")?.value === "sku"`) // no name ends with id
	tab.eval(`(() => {
		for (const name of ["filter by brand", "filter by category", "filter by price", "sort by price"]) document.querySelector(".plan input[aria-label='" + name + "']").click();
	})()`, nil)
	seen("upload")
	tab.eval(`press("Upload", document.querySelector(".plan")), 0`, nil)
	tab.until(`document.querySelectorAll("#main .hit").length === 20 && texts(".facet summary").join() === "brand 2,category 3,price 24"`)
	seen("facets")
	tab.eval(`type(document.querySelector(".bar input[type=search]"), "boots"), 0`, nil)
	tab.until(`texts(".summary")[0].startsWith("8 found") && hits().startsWith("1. Winter boots 0,")`)
	tab.eval(`press("Pin or hide", document.querySelectorAll("#main .hit")[3]), press("Pin to the top", document.querySelector(".menu"))`, nil)
	tab.until(`document.querySelector("dialog form:not(.head) button.main")`)
	tab.eval(`press("Pin", document.querySelector("dialog form:not(.head)")), 0`, nil)
	tab.until(`hits().startsWith("1. Winter boots 9,") && texts(".pinned").join() === "Pinned"`)
	seen("pinned")
	tab.eval(`go("settings"), 0`, nil)
	tab.until(`document.querySelector(".setting")`)
	tab.eval(`press("Words"), 0`, nil)
	tab.until(`document.querySelector("#synonyms")`)
	tab.eval(`(() => {
		press("Add word");
		const [word, found] = [...document.querySelectorAll("#synonyms td input")].slice(-2);
		type(word, "anorak");
		type(found, "jackets");
		press("Review and save");
	})()`, nil)
	tab.until(`document.querySelector("dialog .diff ins")`)
	seen("synonym")
	tab.eval(`press("Save", document.querySelector("dialog")), 0`, nil)
	tab.until(`document.getElementById("said").textContent === "Saved: Synonyms."`)
	tab.eval(`go("search"), 0`, nil)
	tab.until(`document.querySelector(".bar input[type=search]")`)
	tab.eval(`type(document.querySelector(".bar input[type=search]"), "anorak"), 0`, nil)
	tab.until(`texts(".summary")[0].startsWith("8 found") && hits().startsWith("1. Winter jackets")`)
	tab.eval(`press("Compare"), 0`, nil)
	tab.until(`document.querySelector("dialog .compared li")`)
	tab.eval(`(() => {
		const order = [...document.querySelectorAll("dialog select")].find(node => [...node.options].some(option => option.value === "price:desc"));
		order.value = "price:desc";
		order.dispatchEvent(new Event("change"));
	})()`, nil)
	tab.until(`texts("dialog .compared")[1].startsWith("Winter jackets 22") && location.hash.includes("price%3Adesc")`)
	seen("compared")
	tab.eval(`window.old = true, setTimeout(() => location.reload()), 0`, nil)
	tab.until(`!window.old && texts("dialog .compared")[1].startsWith("Winter jackets 22")`)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	if r := c.get("/indexes/shop/settings/synonyms"); r.body != `{"anorak":["jackets"]}` {
		t.Error(r.body)
	}
}

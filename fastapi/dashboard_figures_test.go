package fastapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestDashboardDrawsFigures draws aggregations of each kind with figures for each bucket, chooses a value in them, and finds them
// in the address.
func TestDashboardDrawsFigures(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"filterableAttributes":["brand","price","sold"]}`))
	var docs []string
	for i := range 60 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"title":"boots","brand":"%s","price":%d,"sold":"2026-%02d-11"}`, i, []string{"acme", "bolt", "core"}[i%3], i, 1+i%6))
	}
	c.wait(c.json("POST", "/indexes/goods/documents", "["+strings.Join(docs, ",")+"]"))
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills + `
		window.choose = (label, value) => {
			const control = [...document.querySelectorAll(".more .bar label")].find(node => node.textContent === label && node.checkVisibility()).nextSibling;
			control.value = value;
			control.dispatchEvent(new Event("change", {bubbles: true}));
		};
		window.figure = (kind, name, more) => {
			choose("Aggregation", kind);
			choose("Field", name);
			for (const [label, value] of Object.entries(more ?? {})) choose(label, value);
			press("Add aggregation");
		};`}, nil)
	tab.look(1440, 900, false)
	tab.goTo(url + "/#/search?index=goods&q=boots")
	tab.until(`document.querySelectorAll(".facet li").length > 0 && document.querySelectorAll(".more form select").length > 0`)
	for i, figure := range []struct{ made, shown string }{
		{`figure("terms", "brand", {"For each, also": "stats", "of": "price"})`, `texts(".figures tbody tr").join() === "acme2028.5,bolt2029.5,core2030.5"`},
		{`figure("range", "price", {"Ends of the bands": "10, 50", "For each, also": "cardinality", "of": "brand"})`, `texts(".figures .setting:nth-child(2) tbody tr").join() === "below 10103,10 to 50403,from 50103"`},
		{`figure("histogram", "price", {"Width of a bar": "20"})`, `texts(".figures .bars title").join() === "0 to 20: 20,20 to 40: 20,40 to 60: 20"`},
		{`figure("dateHistogram", "sold", {"One point per": "month", "For each, also": "percentiles", "of": "price"})`, `texts(".figures .ticks").join() === "2026-01-01T00:00:00Z2026-06-01T00:00:00Z,2026-01-01T00:00:00Z2026-06-01T00:00:00Z"`},
		{`figure("percentiles", "price")`, `texts(".figures .setting:nth-child(5) dt").join() === "1%,5%,25%,50%,75%,95%,99%"`},
		{`figure("stats", "price")`, `texts(".figures .setting:nth-child(6) dd").slice(0, 5).join() === "60,0,59,1,770,29.5"`},
		{`figure("cardinality", "brand")`, `texts(".figures .setting:nth-child(7) dd").join() === "3"`},
	} {
		tab.eval(`document.querySelectorAll("details.more").forEach(node => node.open = true), `+figure.made+`, 0`, nil)
		tab.until(fmt.Sprintf(`document.querySelectorAll(".figures .setting").length === %d && %s`, i+1, figure.shown))
	}
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	tab.look(390, 844, true)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	tab.look(1440, 900, false)
	tab.eval(`press("bolt", document.querySelector(".figures")), 0`, nil)
	tab.until(`texts(".chip").join() === "brand: bolt ×" && texts(".figures tbody tr")[0] === "bolt2029.5" && texts(".figures .setting:nth-child(7) dd").join() === "1"`)
	tab.eval(`window.old = true, setTimeout(() => location.reload()), 0`, nil)
	tab.until(`!window.old && document.querySelectorAll(".figures .setting").length === 7`)
	tab.eval(`press("Remove", document.querySelector(".figures")), 0`, nil)
	tab.until(`document.querySelectorAll(".figures .setting").length === 6`)

	// Numbers in cents, milliseconds, and months without documents.
	c.wait(c.json("PATCH", "/indexes/coins/settings", `{"filterableAttributes":["cents","at"]}`))
	c.wait(c.json("POST", "/indexes/coins/documents", `[{"id":1,"cents":0,"at":1767225600000},{"id":2,"cents":1900000,"at":1767312000000},{"id":3,"cents":1950000,"at":1775001600000}]`))
	tab.goTo(url + "/#/search?index=coins")
	tab.until(`document.querySelectorAll(".more form select").length > 0 && document.querySelector(".facet")`)
	tab.eval(`document.querySelectorAll("details.more").forEach(node => node.open = true), figure("dateHistogram", "at", {"For each, also": "stats", "of": "cents"}), 0`, nil)
	tab.until(`texts(".figures .ticks")[0] === "2026-01-01T00:00:00Z2026-04-01T00:00:00Z" && texts(".figures tbody tr").join() === "2026-01-01T00:00:00Z2950,000,2026-02-01T00:00:00Z0–,2026-03-01T00:00:00Z0–,2026-04-01T00:00:00Z11,950,000"`)
	tab.eval(`figure("histogram", "cents"), 0`, nil)
	tab.until(`texts(".figures .setting:nth-child(2) tbody tr")[0].startsWith("0 to 100,0001")`)
	tab.eval(`figure("histogram", "cents", {"Width of a bar": "10"}), 0`, nil)
	tab.until(`document.querySelectorAll(".figures .setting").length === 3 && document.querySelector(".figures > p").textContent.includes("bucket")`)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	tab.eval(`press("Remove", [...document.querySelectorAll(".figures .setting")].at(-1)), 0`, nil)
	tab.until(`document.querySelectorAll(".figures .setting").length === 2 && document.querySelectorAll(".figures .bars").length === 1`)
	tab.eval(`document.querySelector(".figures .setting:nth-child(2) details").open = true, press("0 to", document.querySelector(".figures .setting:nth-child(2)")), 0`, nil)
	tab.until(`texts(".chip").join() === "cents ≥ 0 ×,cents < 100000 ×"`)
}

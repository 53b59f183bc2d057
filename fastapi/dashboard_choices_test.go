package fastapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestDashboardKeepsTheIndex chooses an index in one part of the page: the others must show the same one.
func TestDashboardKeepsTheIndex(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("POST", "/indexes/a/documents", `[{"id":1,"title":"of a"}]`))
	c.wait(c.json("POST", "/indexes/b/documents", `[{"id":"x-y","title":"of b"},{"id":2,"title":"another"}]`))
	tab.goTo(url + "/#/search")
	tab.until(`document.querySelector(".hit")?.textContent.includes("of a")`)
	tab.eval(`(() => {
		const choice = document.querySelector("select[aria-label=Index]");
		choice.value = "b";
		choice.dispatchEvent(new Event("change"));
	})()`, nil)
	tab.until(`document.querySelector(".hit")?.textContent.includes("of b")`)
	for _, part := range []string{"Documents", "Settings", "Tasks", "Search"} {
		tab.eval(`[...document.querySelectorAll("#nav a")].find(a => a.textContent === "`+part+`").click()`, nil)
		tab.until(`document.querySelector("#nav a[aria-current]")?.textContent === "` + part + `"`)
		if part != "Tasks" {
			tab.until(`document.querySelector("select[aria-label=Index]")?.value === "b"`)
		}
	}
	// A hit links to its document.
	tab.until(`document.querySelector(".hit a.link")`)
	tab.eval(`[...document.querySelectorAll(".hit")].find(hit => hit.textContent.includes("of b")).querySelector("a.link").click()`, nil)
	tab.until(`document.querySelector("#nav a[aria-current]").textContent === "Documents" && document.querySelectorAll(".hit").length === 1 && document.querySelector(".hit").textContent.includes("of b")`)
}

// heardSearches makes a page record the bodies of searches after it has used their answers.
const heardSearches = `
	const asking = fetch;
	window.heard = [];
	window.fetch = async (path, options) => {
		const answer = await asking(path, options);
		if (!String(path).endsWith("/search")) return answer;
		const read = answer.text.bind(answer);
		answer.text = async () => {
			const text = await read();
			setTimeout(() => heard.push(JSON.parse(options.body)));
			return text;
		};
		return answer;
	};`

// TestDashboardDidYouMean searches for a misspelled word, and follows the suggestion. The page must request and show suggestions once,
// even if it draws the hits again when the settings of the index arrive.
func TestDashboardDidYouMean(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"typoTolerance":{"enabled":false},"sortableAttributes":["title"],"pagination":{"maxTotalHits":500}}`))
	c.wait(c.json("POST", "/indexes/goods/documents", `[{"id":1,"title":"leather boots"},{"id":2,"title":"<b>books</b>"}]`))
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": heardSearches}, nil)
	tab.goTo(url + "/#/search?index=goods&q=bootss")
	tab.until(`document.querySelector("section[aria-label=Hits]").textContent.includes("Nothing matches.Did you mean boots")`)
	tab.until(`heard.some(body => body.suggest) && [...document.querySelectorAll(".more label")].some(label => label.textContent === "Sort")`) // the settings have arrived
	var asked, shown int
	tab.eval(`heard.filter(body => body.suggest).length`, &asked)
	tab.eval(`document.querySelector("section[aria-label=Hits]").textContent.split("Did you mean").length - 1`, &shown)
	if asked != 1 || shown != 1 {
		t.Errorf("the page requests suggestions %d times, shows them %d times", asked, shown)
	}
	tab.eval(`document.querySelector("section[aria-label=Hits] button").click()`, nil)
	tab.until(`document.querySelectorAll(".hit").length === 1 && document.querySelector("input[type=search]").value === "boots" && location.hash.includes("q=boots")`)
	tab.goTo(url + "/#/search?index=goods&q=zzzzzzzzzz")
	tab.until(`heard.some(body => body.suggest && body.q === "zzzzzzzzzz")`)
	var text string
	if tab.eval(`document.querySelector("section[aria-label=Hits]").textContent`, &text); text != "Nothing matches." {
		t.Errorf("the page shows %q", text)
	}
}

// TestDashboardShowsFrequentValues has more values of a facet than an answer lists: the page must show the most frequent ones.
func TestDashboardShowsFrequentValues(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"filterableAttributes":["brand"],"faceting":{"maxValuesPerFacet":12}}`))
	var docs []string
	for id := range 40 {
		brand := fmt.Sprintf("brand-%02d", id)
		if id >= 20 {
			brand = []string{"yarn", "zebra"}[min(1, id%3)]
		}
		docs = append(docs, fmt.Sprintf(`{"id":%d,"brand":%q}`, id, brand))
	}
	c.wait(c.json("POST", "/indexes/goods/documents", "["+strings.Join(docs, ",")+"]"))
	tab.goTo(url + "/#/search?index=goods")
	first := func(want string) {
		t.Helper()
		tab.until(`[...document.querySelectorAll("aside .facet li")].map(l => l.textContent.trim().replace(/\s+/g, " ")).join().startsWith("` + want + `")`)
	}
	first("zebra13,yarn7,brand-001,")
	tab.eval(`[...document.querySelectorAll("aside input")].find(input => input.dataset.at === "brand\nyarn").click()`, nil)
	first("yarn7,zebra13,brand-001,")
	tab.eval(`document.querySelector("aside .facet button").click()`, nil)
	tab.until(`document.querySelectorAll("aside .facet li").length === 14`)
}

// TestDashboardFacets chooses values of facets: the counts of the others must stay, chips must show the choice, and a half-typed filter
// must not change the hits. Without facets, the page must link to their setting.
func TestDashboardFacets(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"filterableAttributes":["brand","color"]}`))
	c.wait(c.json("POST", "/indexes/goods/documents", `[{"id":1,"brand":"acme","color":"red"},{"id":2,"brand":"bolt","color":"red"},{"id":3,"brand":"bolt","color":"blue"},{"id":4,"brand":"bolt","color":"red"},{"id":5,"brand":"core","color":"green"}]`))
	tab.goTo(url + "/#/search?index=goods")
	const facets = `[...document.querySelectorAll("aside .facet")].map(f => f.querySelector("summary").dataset.at + ": " + [...f.querySelectorAll("li")].map(l => l.textContent.trim().replace(/\s+/g, " ")).join(", ")).join("; ")`
	seen := func(want string) {
		t.Helper()
		tab.until(facets + ` === "` + want + `"`)
	}
	seen("brand: bolt3, acme1, core1; color: red3, blue1, green1")
	check := func(at string) {
		tab.eval(`[...document.querySelectorAll("aside input")].find(input => input.dataset.at === "`+at+`").click()`, nil)
	}
	check(`brand\nacme`)
	seen("brand: acme1, bolt3, core1; color: red1")
	check(`brand\ncore`)
	seen("brand: acme1, core1, bolt3; color: green1, red1")
	check(`color\nred`)
	seen("brand: acme1, core, bolt2; color: red1, green1")
	const chips = `[...document.querySelectorAll(".chips button")].map(b => b.textContent).join(", ")`
	tab.until(chips + ` === "brand: acme ×, brand: core ×, color: red ×, Clear all"`)
	tab.eval(`document.querySelector(".chips button").click()`, nil)
	tab.until(chips + ` === "brand: core ×, color: red ×, Clear all"`)
	tab.until(`document.querySelectorAll(".hit").length === 0`)
	tab.eval(`[...document.querySelectorAll(".chips button")].at(-1).click()`, nil)
	tab.until(chips + ` === ""`)
	seen("brand: bolt3, acme1, core1; color: red3, blue1, green1")
	enter := func(text string) {
		tab.eval(`(() => {
			const filter = [...document.querySelectorAll(".more input")].find(input => input.placeholder.includes("year"));
			filter.value = "`+text+`";
			filter.dispatchEvent(new Event("input"));
		})()`, nil)
	}
	enter("brand = ")
	tab.until(`document.body.textContent.includes("This filter is not applied: ")`)
	tab.until(`document.querySelectorAll(".hit").length === 5 && document.getElementById("said").textContent === ""`)
	enter("brand = bolt")
	tab.until(`document.querySelectorAll(".hit").length === 3 && !document.body.textContent.includes("This filter is not applied")`)
	c.wait(c.json("PATCH", "/indexes/prices/settings", `{"filterableAttributes":["price"]}`))
	c.wait(c.json("POST", "/indexes/prices/documents", `[{"id":1,"price":10.5},{"id":2,"price":14},{"id":3,"price":-3},{"id":4,"price":7},{"id":5,"price":20},{"id":6,"price":20}]`))
	tab.goTo(url + "/#/search?index=prices")
	seen("price: 202, -31, 71, 10.51, 141") // each value with its count
	c.wait(c.json("POST", "/indexes/plain/documents", `[{"id":1,"brand":"acme"}]`))
	tab.goTo(url + "/#/search?index=plain")
	tab.until(`document.querySelector("aside").textContent === "No field has facets yet. Choose fields to filter by."`)
	tab.eval(`document.querySelector("aside a").click()`, nil)
	tab.until(`document.querySelector("#main h2")?.textContent.startsWith("Filters and facets")`)
}

// TestDashboardWithManyIndexes shows the page more indexes than it lists: the name of another one can be typed, and the table of all of
// them ends with their number.
func TestDashboardWithManyIndexes(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("POST", "/indexes/zoo/documents", `[{"id":1,"name":"lion"}]`))
	tab.goTo(url + "/#/tasks")
	tab.until(`document.querySelector("#main table")`)
	tab.eval(`(() => {
		const real = window.fetch, names = [...Array(2000).keys()].map(n => "index-" + n);
		window.fetch = async (to, options) => {
			const path = new URL(to, location).pathname, answer = content => new Response(JSON.stringify(content), {headers: {"Content-Type": "application/json"}});
			if (path === "/indexes") return answer({results: names.slice(0, 1000).map(uid => ({uid})), total: names.length});
			if (path === "/stats") return answer({databaseSize: 1, usedDatabaseSize: 1, indexes: Object.fromEntries(names.map(uid => [uid, {numberOfDocuments: 0, fieldDistribution: {}}]))});
			return real(to, options);
		};
		location.hash = "#/search";
	})()`, nil)
	tab.until(`document.querySelectorAll("#indexes option").length === 1000`)
	tab.eval(`(() => {
		const input = document.querySelector("input[list]");
		input.value = "zoo";
		input.dispatchEvent(new Event("change"));
	})()`, nil)
	tab.until(`document.querySelector(".hit")?.textContent.includes("lion")`)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	tab.eval(`location.hash = "#/system", 0`, nil)
	tab.until(`[...document.querySelectorAll("#main tr")].at(-1)?.textContent === "and 1,500 more: open one by its name under Search" && document.querySelectorAll("#main tr").length === 502`)
}

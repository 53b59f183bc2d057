package fastapi

import (
	"encoding/json"
	"strings"
	"testing"
)

// fills makes a page type into controls like a user.
const fills = `
	window.type = (node, text, ...keys) => {
		node.focus();
		node.value = text;
		node.dispatchEvent(new Event("input", {bubbles: true}));
		for (const key of keys) node.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
		if (keys.length === 0) node.dispatchEvent(new Event("change", {bubbles: true}));
	};
	window.texts = selector => [...document.querySelectorAll(selector)].map(node => node.textContent);`

// TestDashboardSettings changes settings through their forms: chips, a table with CSV, an order by keyboard and by dragging, fields with
// their types. Nothing may be saved before the diff was shown, the history must undo a change, and axe-core must find nothing.
func TestDashboardSettings(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("POST", "/indexes/goods/documents", `[{"id":1,"title":"winter boots","price":12.5,"size":{"height":3},"tags":["new","warm"]},{"id":2,"title":"sandals","price":7}]`))
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"stopWords":["of"],"synonyms":{"shoe":["boots"]}}`))
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": presses + fills + `
		const link = URL.createObjectURL;
		URL.createObjectURL = blob => (blob.text().then(text => window.exported = text), link.call(URL, blob));`}, nil)
	setting := func(name string) string {
		t.Helper()
		return c.get("/indexes/goods/settings/" + name).body
	}
	saved := func(want string) {
		t.Helper()
		tab.eval(`press("Review and save"), 0`, nil)
		tab.until(`document.querySelector("dialog[open] .diff ins, dialog[open] .diff del")`)
		tab.eval(`press("Save", document.querySelector("dialog[open]")), 0`, nil)
		tab.until(`document.getElementById("said").textContent === "Saved: ` + want + `." && document.querySelector(".savebar").hidden`)
	}

	tab.look(1440, 900, false)
	tab.goTo(url + "/#/settings?index=goods&group=words")
	tab.until(`document.querySelector("#stop-words .chip")`)
	tab.eval(`type(document.querySelector("#stop-words input"), "the, a", "Enter"), 0`, nil)
	tab.until(`texts("#stop-words .chip bdi").join() === "of,the,a"`)
	if got := setting("stop-words"); got != `["of"]` {
		t.Errorf("a form saves before it is confirmed: %s", got)
	}
	tab.eval(`press("Export CSV"), 0`, nil)
	tab.until(`exported === "shoe,boots\n"`)
	tab.eval(`(() => {
		const files = new DataTransfer(), file = document.querySelector("#synonyms input[type=file]");
		files.items.add(new File(['"cap, flat",hat\r\nshoe,sandals\n\n'], "words.csv"));
		file.files = files.files;
		file.dispatchEvent(new Event("change"));
	})()`, nil)
	tab.until(`[...document.querySelectorAll("#synonyms td input")].map(i => i.value).join("|") === "shoe|boots, sandals|cap, flat|hat"`)
	tab.eval(`(() => {
		type([...document.querySelectorAll("#synonyms input")].at(-1), "sofa, couch", "Enter");
		press("Review and save");
	})()`, nil)
	tab.until(`texts("dialog .diff ins").join("").includes('+   "the"') && document.querySelector("dialog").textContent.includes("svc goes through 2 documents")`)
	for _, line := range tab.complaints(axe(t)) {
		t.Error(line)
	}
	tab.eval(`document.querySelector("dialog").close()`, nil)
	saved("Stop words, Synonyms")
	if got := setting("synonyms"); got != `{"cap, flat":["hat"],"couch":["sofa"],"shoe":["boots","sandals"],"sofa":["couch"]}` {
		t.Error(got)
	}

	// A drag moves an entry, and so do arrow keys.
	tab.eval(`press("Ranking"), 0`, nil)
	const rules = `texts("#ranking-rules li strong").join()`
	tab.until(rules + ` === "words,typo,proximity,attributeRank,sort,wordPosition,exactness"`)
	tab.eval(`document.querySelectorAll("#ranking-rules .grip")[1].dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowUp", bubbles: true, cancelable: true})), 0`, nil)
	tab.until(rules + `.startsWith("typo,words,proximity") && document.activeElement.getAttribute("aria-label") !== ""`)
	var at struct{ X, Y, To float64 }
	tab.eval(`(() => {
		const [first, , third] = [...document.querySelectorAll("#ranking-rules .grip")].map(grip => grip.getBoundingClientRect());
		return {x: first.x + first.width / 2, y: first.y + first.height / 2, to: third.y + third.height};
	})()`, &at)
	mouse := func(kind string, y float64) {
		tab.do("Input.dispatchMouseEvent", values{"type": kind, "x": at.X, "y": y, "button": "left", "buttons": 1, "clickCount": 1}, nil)
	}
	mouse("mousePressed", at.Y)
	mouse("mouseMoved", at.Y+10)
	mouse("mouseMoved", at.To)
	mouse("mouseReleased", at.To)
	tab.until(rules + `.startsWith("words,proximity,typo")`)
	saved("Ranking rules")
	if got := setting("ranking-rules"); !strings.HasPrefix(got, `["words","proximity","typo","attributeRank"`) {
		t.Error(got)
	}

	// Neighbours can share a rank.
	tab.eval(`press("Searching"), 0`, nil)
	tab.until(`document.querySelector("#searchable-attributes input[type=checkbox]").checked`)
	tab.eval(`document.querySelector("#searchable-attributes input[type=checkbox]").click()`, nil)
	tab.until(`texts("#searchable-attributes li strong").join() === "id,price,size,size.height,tags,title"`)
	tab.eval(`document.querySelectorAll('#searchable-attributes button[title^="Same rank"]')[1].click()`, nil)
	saved("Searchable fields")
	if got := setting("searchable-attributes"); got != `[["id","price"],"size","size.height","tags","title"]` {
		t.Error(got)
	}

	// Fields have types and examples, including fields within objects.
	tab.look(390, 844, true)
	tab.eval(`press("Filters and sorting"), 0`, nil)
	tab.until(`texts("#filterable-attributes tbody tr").join("; ") === " idnumber1;  pricenumber12.5;  sizeobject;  size.heightnumber3;  tagslist of textnew, warm;  titletextwinter boots"`)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	tab.eval(`document.querySelectorAll("#filterable-attributes tbody input")[1].click()`, nil)
	tab.look(1440, 900, false)

	// The typos of a query are counted with unsaved values.
	tab.eval(`press("Typos"), 0`, nil)
	tab.until(`document.querySelector("#typo-tolerance input[type=checkbox]")`)
	tab.eval(`(() => {
		document.querySelector("#typo-tolerance input[type=checkbox]").click();
		type(document.querySelector("#typo-tolerance input[type=search]"), "botos");
	})()`, nil)
	tab.until(`texts("#typo-tolerance .sides > div").join("|") === "Now 1 foundwinter boots|With these values 0 found"`)
	saved("Filters and facets, Typo tolerance")
	if got := setting("filterable-attributes"); got != `["price"]` {
		t.Error(got)
	}

	// The history shows each change, and undoes the change of the words.
	tab.eval(`press("History"), 0`, nil)
	tab.until(`document.querySelectorAll("dialog .change").length === 5`)
	tab.eval(`press("Undo", document.querySelectorAll("dialog .change")[3]), 0`, nil)
	tab.until(`document.querySelector(".savebar").textContent.startsWith("2 unsaved changes: Stop words, Synonyms")`)
	tab.until(`document.querySelector("dialog h2")?.textContent === "Changes of goods"`) // not the history, which closes
	tab.eval(`press("Save", document.querySelector("dialog")), 0`, nil)
	tab.until(`document.getElementById("said").textContent === "Saved: Stop words, Synonyms."`)
	if got := setting("stop-words") + setting("synonyms"); got != `["of"]{"shoe":["boots"]}` {
		t.Error(got)
	}

	// The page knows the defaults of the server.
	var defaults, settings map[string]any
	tab.eval(`import(document.querySelector("script[type=module]").src.replace("app.js", "settings.js")).then(m => m.defaults)`, &defaults)
	c.wait(c.json("POST", "/indexes", `{"uid":"new"}`))
	if err := json.Unmarshal([]byte(c.get("/indexes/new/settings").body), &settings); err != nil {
		t.Fatal(err)
	}
	for name, want := range settings {
		a, _ := json.Marshal(want)
		if b, _ := json.Marshal(defaults[name]); string(a) != string(b) {
			t.Errorf("the default of %s is %s, but the page has %s", name, a, b)
		}
	}
}

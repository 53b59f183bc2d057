package fastapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// keyFor creates a key for one action.
func keyFor(t *testing.T, c *client, action string) (key, uid string) {
	t.Helper()
	made := c.json("POST", "/keys", fmt.Sprintf(`{"name": "for %s", "actions": [%q], "indexes": ["*"], "expiresAt": null}`, action, action))
	var answer struct{ Key, UID string }
	if err := json.Unmarshal([]byte(made.body), &answer); err != nil || answer.Key == "" {
		t.Fatal(made.body)
	}
	return answer.Key, answer.UID
}

// quoted formats a text as a JavaScript string.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// enter gives the page a key as soon as it asks for one. It first makes the page forget its previous key.
func (p *tab) enter(key string) {
	p.t.Helper()
	p.until(`document.getElementById("key") && (document.getElementById("forget").hidden || document.getElementById("forget").click(), !document.getElementById("key").hidden)`)
	p.eval(`document.getElementById("key-value").value = `+quoted(key)+`, document.getElementById("key").requestSubmit()`, nil)
}

// TestDashboardShowsWhatAKeyAllows gives the page a search key, with which only the search is shown, and the master key, with which
// everything is.
func TestDashboardShowsWhatAKeyAllows(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{Keys: openKeys(t, masterKey)})
	c.key = masterKey
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes":["year"]}`))
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "title": "metropolis", "year": 1927}, {"id": 2, "title": "sunrise", "year": 1927}]`))
	key, _ := keyFor(t, c, "search")
	offered := func(want ...string) {
		t.Helper()
		b, _ := json.Marshal(append([]string{}, want...))
		tab.until(fmt.Sprintf(`JSON.stringify([...document.querySelectorAll("#nav:not([hidden]) a:not([hidden])")].map(a => a.textContent)) === '%s'`, b))
	}
	tab.goTo(url + "/#/search?index=films&q=metropolis")
	tab.until(`document.getElementById("said").textContent.includes("master key") && document.activeElement.id === "key-value"`)
	offered()
	tab.enter("nobody's")
	tab.until(`document.getElementById("said").className === "bad" && document.getElementById("said").textContent.includes("it is wrong, or it was revoked") && document.getElementById("key-value").ariaInvalid === "true"`)
	tab.until(`document.getElementById(document.getElementById("key-value").getAttribute("aria-describedby")).textContent.includes("in the memory of this tab")`)
	offered()
	tab.enter(key)
	tab.until(`document.querySelector(".hit mark")?.textContent === "metropolis" && document.querySelector(".facet")`)
	tab.eval(`document.querySelector(".hit summary").click()`, nil)
	tab.until(`document.querySelector(".why li meter")`)
	offered("Search")
	tab.eval(`(() => { const index = document.querySelector("main .bar input:not([type=search])"); index.value = ""; index.dispatchEvent(new Event("change")); })()`, nil)
	tab.until(`main.textContent.includes("Enter the name of an index") && !document.querySelector(".hit") && document.querySelector(".summary").textContent === ""`)
	tab.eval(`location.hash = "#/keys"`, nil)
	tab.until(`document.getElementById("said").textContent.includes("The server refuses this key")`)
	tab.eval(`document.getElementById("forget").click()`, nil)
	offered()
	tab.enter(masterKey)
	offered("Search", "Documents", "Settings", "Rules", "Analytics", "Tasks", "Keys", "System")
	for part, want := range map[string]string{"search": "metropolis", "documents?index=films": "2 documents", "settings": "searchableAttributes", "tasks": "settingsUpdate", "keys": "Create tenant token", "system": "available"} {
		tab.eval(`location.hash = "#/`+part+`"`, nil)
		tab.until(fmt.Sprintf("document.getElementById('main').textContent.includes(%q)", want))
	}
	colors := func(label, want string) {
		t.Helper()
		tab.eval(`document.getElementById("theme").click()`, nil)
		tab.until(`document.getElementById("theme").ariaLabel === "Colors: ` + label + `" && getComputedStyle(document.body).backgroundColor === "` + want + `"`)
	}
	tab.look(1440, 900, true)
	const light, dark = "rgb(246, 247, 249)", "rgb(15, 17, 21)"
	colors("light", light)
	colors("dark", dark)
	tab.look(1440, 900, false)
	colors("as the system", light)
	var kept string
	tab.eval(`JSON.stringify([location.href, {...localStorage}, {...sessionStorage}, document.cookie])`, &kept)
	if strings.Contains(kept, masterKey) || strings.Contains(kept, key) {
		t.Errorf("the page stores a key: %s", kept)
	}
}

// TestDashboardOffersThePartsOfAnIndexThatAKeyReads gives the page keys that read documents or settings. Some may not list the indexes.
// The page offers the parts of an index to these keys once the name of an index is entered.
func TestDashboardOffersThePartsOfAnIndexThatAKeyReads(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{Keys: openKeys(t, masterKey)})
	c.key = masterKey
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "title": "metropolis"}]`))
	c.wait(c.json("POST", "/indexes/books/documents", `[{"id": 1, "title": "emma"}]`))
	tab.goTo(url)
	for _, test := range []struct {
		actions, before, after string // the parts that are offered before an index is chosen, and after
	}{
		{`["indexes.get","search","documents.get"]`, "Search Documents", "Search Documents"},
		{`["indexes.get","search","settings.get"]`, "Search Settings", "Search Settings"},
		{`["indexes.get","search"]`, "Search", "Search"},
		{`["search","documents.get"]`, "Search", "Search Documents"},
		{`["search","settings.get","documents.get"]`, "Search", "Search Documents Settings"},
		{`["search","tasks.get"]`, "Search Tasks", "Search Tasks"},
	} {
		var made struct{ Key string }
		if r := c.json("POST", "/keys", `{"actions":`+test.actions+`,"indexes":["films"],"expiresAt":null}`); json.Unmarshal([]byte(r.body), &made) != nil || made.Key == "" {
			t.Fatal(r.body)
		}
		offered := func(want string) {
			t.Helper()
			tab.until(`[...document.querySelectorAll("#nav:not([hidden]) a:not([hidden])")].map(a => a.textContent).join(" ") === ` + quoted(want))
		}
		tab.goTo("about:blank")
		tab.goTo(url)
		tab.enter(made.Key)
		offered(test.before)
		if !strings.Contains(test.actions, "indexes.get") {
			tab.until(`document.querySelector("main .bar input:not([type=search])")`)
			choose := func(uid string) {
				tab.eval(`(() => { const index = document.querySelector("main .bar input:not([type=search])"); index.value = `+quoted(uid)+`; index.dispatchEvent(new Event("change")); })()`, nil)
			}
			choose("books") // the key has no access to it
			offered(test.before)
			choose("films")
		}
		tab.until(`document.querySelector(".hit")`)
		offered(test.after)
	}
}

// presses makes a page press the first visible button that starts with a text.
const presses = `
	window.press = (text, within = document) => [...within.querySelectorAll("button")].find(b => b.textContent.startsWith(text) && b.checkVisibility()).click();`

// TestDashboardReportsARevokedKey revokes the key of the page and then uses each control that sends a request. Each must report the
// failure, and the page must ask for another key and continue with it. Without -dashboard.every it uses some of the controls.
func TestDashboardReportsARevokedKey(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{Keys: openKeys(t, masterKey)})
	c.key = masterKey
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes":["tag","year"],"sortableAttributes":["year"],"embedders":{"mine":{"source":"userProvided","dimensions":2}}}`))
	var films []values
	for i := range 30 {
		films = append(films, values{"id": i, "title": "metropolis", "year": 1900 + i, "tag": fmt.Sprint("t", i), "_vectors": values{"mine": []int{1, i}}})
	}
	b, err := json.Marshal(films)
	if err != nil {
		t.Fatal(err)
	}
	if end := c.wait(c.json("POST", "/indexes/films/documents", string(b))); !strings.Contains(end, "succeeded") {
		t.Fatal(end)
	}
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": presses + `
		window.confirm = () => true;
		window.prompt = () => "films";
		window.set = (selector, value, event) => { const node = document.querySelector(selector); node.value = value; node.dispatchEvent(new Event(event)); };`}, nil)
	const search, documents, settings, tasks, keys, system, features, copies = "search?index=films", "documents?index=films", "settings?index=films&view=json", "tasks", "keys", "system", "system?view=features", "system?view=copies"
	ready := map[string]string{
		search:    `document.querySelector(".hit") && document.querySelector(".facet li") && main.textContent.includes("by relevance")`,
		documents: `document.querySelector(".hit")`, settings: `document.querySelector(".setting")`, tasks: `document.querySelector("td .link")`,
		keys: `main.textContent.includes("for *")`, system: `document.querySelector("td a")`, features: `main.textContent.includes("containsFilter")`, copies: `main.textContent.includes("Make a dump")`,
	}
	told := `[...document.querySelectorAll("#said.bad, dialog[open] > .said.bad")].some(node => node.textContent.includes("The server refuses this key"))`
	for _, test := range []struct {
		gate      bool // also without -dashboard.every
		part, use string
	}{
		{true, search, `set("main input[type=search]", "m", "input")`},
		{false, search, `set("input[placeholder^=year]", "year > 1910", "input")`},
		{false, search, `set(".bar select[id]", "year:asc", "change")`},
		{false, search, `document.querySelector(".facet input[type=checkbox]").click()`},
		{false, search, `set(".facet input[type=number]", "1901", "change")`},
		{false, search, `set(".facet input[type=search]", "t1", "input")`},
		{false, search, `document.querySelector(".choices input").click()`},
		{false, search, `press("Next")`},
		{true, search, `press("Raw JSON")`},
		{false, search, `press("Compare")`},
		{false, search, `press("Similar")`},
		{false, documents, `set("input[placeholder^=year]", "year > 1910", "input")`},
		{false, documents, `press("Next")`},
		{false, documents, `press("Delete all")`},
		{false, documents, `press("Delete", document.querySelector(".hit"))`},
		{true, documents, `press("Edit"); press("Save", document.querySelector("dialog"))`},
		{false, documents, `press("New document"); press("Save", document.querySelector("dialog"))`},
		{true, documents, `(() => {
			const files = new DataTransfer();
			const input = document.querySelector("input[type=file]"), wait = setInterval(() => {
				const form = document.querySelector("form.plan");
				if (!form) return;
				clearInterval(wait);
				form.requestSubmit();
			}, 10);
			files.items.add(new File(['[{"id":1}]'], "films.json"));
			input.files = files.files;
			input.dispatchEvent(new Event("change"));
		})()`},
		{true, settings, `(() => {
			const text = document.querySelector("#stop-words textarea");
			text.value = '["x"]';
			text.dispatchEvent(new Event("input"));
			press("Review and save");
			const wait = setInterval(() => {
				const dialog = document.querySelector("dialog");
				if (!dialog) return;
				clearInterval(wait);
				press("Save", dialog);
			}, 10);
		})()`},
		{false, settings, `press("History")`},
		{false, settings, `press("Delete index")`},
		{false, tasks, `set("main select", "failed", "change")`},
		{false, tasks, `set("main input", "films", "change")`},
		{true, tasks, `press("Cancel unfinished")`},
		{false, keys, `(() => { document.querySelector("main form input").value = "new"; document.querySelector("main form").requestSubmit(); })()`},
		{true, keys, `press("Revoke")`},
		{false, features, `document.querySelector(".choices input").click()`},
		{true, copies, `press("Make a dump")`},
		{false, copies, `press("Make a snapshot")`},
	} {
		if !test.gate && !*everyLook {
			continue
		}
		key, uid := keyFor(t, c, "*")
		tab.goTo(url + "/#/" + test.part)
		tab.enter(key)
		tab.until(ready[test.part])
		if made := c.send("DELETE", "/keys/"+uid, nil); made.status != 204 {
			t.Fatal(made.body)
		}
		if test.part == tasks || test.part == system {
			tab.until(told) // polling requests were refused, and stop
			tab.eval(`document.getElementById("said").textContent = ""`, nil)
		}
		tab.eval(test.use+", 0", nil)
		tab.until(told + ` && !document.getElementById("key").hidden`)
	}
	tab.enter(masterKey)
	tab.until(ready[copies] + ` && document.getElementById("said").textContent === ""`)
	if r := c.get("/indexes/films/stats"); !strings.Contains(r.body, `"numberOfDocuments":30`) {
		t.Errorf("a revoked key changed something: %s", r.body)
	}
}

// TestDashboardFollowsTheLastClick starts a search right after a click on a link, before the page has handled the click: it must open the
// link, and keep its address. Going back must restore what was typed before the click, however short.
func TestDashboardFollowsTheLastClick(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "title": "metropolis"}]`))
	for _, address := range []string{"search?index=films", `search?index=films&compare=%7B%7D`} {
		tab.goTo(url + "/#/" + address)
		tab.until(`document.querySelector(".hit") && (!location.href.includes("compare") || document.querySelector(".compared li"))`)
		tab.eval(`(() => {
			const box = document.querySelector("main input[type=search]");
			box.value = "met";
			box.dispatchEvent(new Event("input")); // starts a search that is written to the address soon
			document.querySelector("#nav a[href='#/tasks']").click();
			box.value = "sunrise";
			box.dispatchEvent(new Event("input"));
		})()`, nil)
		tab.until(`document.querySelector("h1").textContent === "Tasks" && document.querySelector("td") && !document.querySelector("dialog")`)
		var hash string
		if tab.eval(`new Promise(done => setTimeout(() => done(location.hash), 500))`, &hash); hash != "#/tasks" {
			t.Errorf("%s: at %s", address, hash)
		}
		tab.eval("history.back()", nil)
		tab.until(`document.querySelector("main input[type=search]")?.value === "met" && document.querySelector(".hit mark")`)
	}
}

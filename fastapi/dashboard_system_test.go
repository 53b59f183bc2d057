package fastapi

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/logs"
)

// TestDashboardOperates creates a key with checkboxes, a webhook and an alias, enables a feature, retries a task, downloads a dump, and
// reads a report and the figures of a day. axe-core must find nothing in these parts, also on small dark screens.
func TestDashboardOperates(t *testing.T) {
	tab := startChromium(t).open()
	heard := logs.New(io.Discard, logs.AtLeast(logs.LevelOff), logs.Human)
	dumps := t.TempDir()
	if err := os.WriteFile(filepath.Join(dumps, "20261127-1.dump"), []byte("a dump"), 0o666); err != nil {
		t.Fatal(err)
	}
	c, url := openPage(t, Options{Keys: openKeys(t, masterKey), Analytics: openAnalytics(t), Log: heard, Logger: heard.Logger(), DumpDir: dumps})
	c.key = masterKey
	c.wait(c.json("POST", "/indexes/goods/documents", `[{"id":1,"title":"boots"}]`))
	c.wait(c.json("POST", "/indexes", `{"uid":"goods"}`)) // fails
	c.json("POST", "/indexes/goods/search", `{"q":"nothing like it"}`)
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills + `window.confirm = () => true;`}, nil)
	tab.look(390, 844, true)
	tab.goTo(url + "/#/tasks?type=indexCreation")
	tab.enter(masterKey)
	to := func(part, ready string) {
		t.Helper()
		tab.eval(`location.hash = "#/`+part+`"`, nil)
		tab.until(ready)
		for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
			t.Errorf("%s: %s", part, line)
		}
	}
	tab.until(`texts("tbody .status").join() === "failed"`)
	tab.eval(`press("Retry"), 0`, nil)
	tab.until(`texts("tbody .status").join() === "failed,failed"`)

	to("keys", `document.querySelector(".rights") && document.querySelectorAll("#main article").length > 1`)
	tab.eval(`(() => {
		document.querySelector("#main details").open = true;
		type(document.querySelector("#main form input"), "shop");
		const box = value => document.querySelector(".rights input[value='" + value + "']");
		box("documents.*").click();
		window.covered = box("documents.add").checked && box("documents.add").disabled;
		box("tasks.get").click();
		type(document.querySelector(".chipbox input"), "goods", "Enter");
		document.querySelector(".chipbox .chip button").click();
	})()`, nil)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	tab.eval(`press("Create key"), 0`, nil)
	tab.until(`covered && /^[0-9a-f]{64}$/.test(document.querySelector("dialog pre").textContent)`)
	var value string
	tab.eval(`document.querySelector("dialog pre").textContent`, &value)
	if keys := c.get("/keys").body; !strings.Contains(keys, `"key":"`+value+`"`) || !strings.Contains(keys, `"actions":["search","documents.*","tasks.get"],"indexes":["goods"]`) {
		t.Error(keys)
	}
	tab.eval(`document.querySelector("dialog").close()`, nil)
	tab.until(`!main.textContent.includes("` + value + `")`)
	tab.eval(`press("Edit", [...document.querySelectorAll("#main article")].find(node => node.textContent.includes("shop"))), 0`, nil)
	tab.until(`document.querySelector("dialog input")`)
	tab.eval(`(() => {
		type(document.querySelector("dialog input"), "store");
		press("Save key");
	})()`, nil)
	tab.until(`texts("#main article h2").includes("store")`)

	to("system?view=webhooks", `document.querySelector("#main .empty")`)
	tab.eval(`press("New webhook"), type(document.querySelector("dialog input"), "http://127.0.0.1:1/hook"), type(document.querySelector("dialog textarea"), "Authorization: Bearer secret\nX-Shop: 1"), press("Save webhook"), 0`, nil)
	tab.until(`texts("#main article h2").join() === "http://127.0.0.1:1/hook" && texts("#main dd")[0].includes("X-Shop: 1")`)
	to("system?view=aliases", `document.querySelector("#main .empty")`)
	tab.eval(`type(document.querySelector("#main form input"), "shop"), press("Create alias"), 0`, nil)
	tab.until(`texts("#main td.name").join() === "shop"`)
	if r := c.get("/aliases/shop"); r.body != `{"alias":"shop","indexUid":"goods"}` {
		t.Error(r.body)
	}
	to("system?view=features", `document.querySelector(".feature")`)
	tab.eval(`[...document.querySelectorAll(".feature")].find(node => node.textContent.includes("containsFilter")).querySelector("input").click()`, nil)
	tab.until(`document.getElementById("said").textContent === "containsFilter is switched on."`)
	to("system?view=copies", `main.textContent.includes("Make a dump")`)
	tab.until(`texts("#main td.name").join() === "20261127-1.dump"`)
	tab.eval(`(() => {
		window.showSaveFilePicker = undefined; // it would open a system dialog
		window.saved = [];
		const make = URL.createObjectURL;
		URL.createObjectURL = blob => {
			blob.text().then(text => saved.push(text));
			return make(blob);
		};
		press("Download");
	})()`, nil)
	tab.until(`saved.join() === "a dump" && document.getElementById("said").textContent === "20261127-1.dump is downloaded."`)
	tab.eval(`press("Show restore command"), 0`, nil)
	tab.until(`document.querySelector("dialog pre").textContent === "svc --import-dump dumps/20261127-1.dump"`)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	tab.eval(`document.querySelector("dialog").close()`, nil)
	tab.eval(`press("Make a dump"), 0`, nil)
	tab.until(`document.getElementById("said").textContent.includes("dumpCreation") && !document.querySelector("#main button:disabled")`) // the server of this test creates none

	to("system?view=mcp", `texts("#main .empty").join().includes("experimental feature mcp")`)
	tab.eval(`press("Switch it on"), 0`, nil)
	tab.until(`texts("#main dt").includes("delete_documents")`)
	c.json("PATCH", "/experimental-features", `{"network":true,"logsRoute":true}`)
	to("system?view=network", `document.querySelector("#main .empty")`)
	tab.eval(`press("Add an instance"), type(document.querySelector("dialog input"), "here"), type(document.querySelectorAll("dialog input")[1], "http://127.0.0.1:7701"), type(document.querySelectorAll("dialog input")[2], "search-key-of-it"), press("Save", document.querySelector("dialog")), 0`, nil)
	tab.until(`texts("#main td.name").join() === "here" && !document.querySelector("dialog")`)
	tab.eval(`press("Add a shard"), type(document.querySelector("dialog input"), "x"), 0`, nil)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	tab.eval(`press("Save", document.querySelector("dialog")), 0`, nil)
	tab.until(`document.querySelector("dialog .said.bad")?.textContent === "A shard needs at least one owner."`)
	tab.eval(`document.querySelector("dialog input[type=checkbox]").click(), press("Save", document.querySelector("dialog")), 0`, nil)
	tab.until(`document.querySelector("dialog .said.bad")?.textContent.includes("connecting to 127.0.0.1 is not allowed")`)
	if r := c.get("/network"); !strings.Contains(r.body, `"self":"here"`) || !strings.Contains(r.body, `"searchApiKey":"search-key-of-it"`) {
		t.Error(r.body)
	}
	tab.eval(`document.querySelector("dialog").close(), press("Remove"), 0`, nil)
	tab.until(`document.querySelector("#main .empty")`)
	to("system?view=logs", `main.textContent.includes("Show the log")`)
	tab.eval(`press("Show the log"), 0`, nil)
	tab.until(`texts("#main button").includes("Stop")`)
	tab.eval(`press("Stop"), 0`, nil)
	tab.until(`texts("#main button").includes("Show the log") && document.getElementById("said").textContent === ""`)

	// The figures of a day: half of it with searches, half of it idle.
	if left := dayStepTime - time.Duration(time.Now().UnixNano()%int64(dayStepTime)); left < 30*time.Second {
		time.Sleep(left) // a step that starts meanwhile would change the figures
	}
	recent, now := &c.server.recent, time.Now()
	recent.making.Lock()
	recent.began = now.Add(-48 * time.Hour)
	for i := range int64(daySteps) {
		number := now.UnixNano()/int64(dayStepTime) - 1 - i
		day := dayStep{number: number, requests: 300, searches: 150, first: &reading{memory: 50 << 20}, memory: 60 << 20, tasks: 2}
		day.times[10] = 150
		if i%2 == 0 {
			recent.day[number%int64(len(recent.day))] = day
		}
	}
	recent.making.Unlock()
	to("system", `document.querySelector("#main .graph")`)
	tab.eval(`(() => {
		const spans = document.querySelector("select[aria-label='Time span']");
		spans.value = "day";
		spans.dispatchEvent(new Event("change"));
	})()`, nil)
	tab.until(`texts(".graph .ticks")[0] === "24 h agonow" && texts(".graph figcaption").some(text => /^Searches\s+0.5 a second/.test(text)) && texts(".graph figcaption").some(text => text.startsWith("Memory 60 MiB")) &&
		document.querySelectorAll(".graph path")[6].getAttribute("d").split("M").length === 2`) // every second step has no memory figure, but the line is unbroken
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}

	tab.look(1440, 900, false)
	to("analytics?report=no-results", `document.querySelector("#main td a")?.textContent === "nothing like it"`)
	tab.eval(`document.querySelector("#main td a").click()`, nil)
	tab.until(`location.hash.startsWith("#/search?index=goods&q=nothing") && main.textContent.includes("Nothing matches.")`)
}

// TestDashboardConverses talks to a model. The page must show its searches, their hits and errors, and send earlier messages again.
func TestDashboardConverses(t *testing.T) {
	tab := startChromium(t).open()
	c, m := newTalking(t, Options{})
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills}, nil)
	tab.look(390, 844, true)
	tab.goTo("http://" + c.address + "/#/system?view=chats")
	tab.until(`texts("#main article h2").join() === "kitchen"`)
	tab.eval(`press("Try it"), type(document.querySelector("dialog input"), "m"), 0`, nil)
	ask := func(question, told string) {
		t.Helper()
		tab.eval(`type(document.querySelector("dialog textarea"), `+quoted(question)+`), press("Send"), 0`, nil)
		tab.until(`texts("dialog .said-by").at(-1).startsWith(` + quoted(told) + `) && !document.querySelector("dialog button.main").disabled`)
	}
	ask("search recipes for onion where kind = tart", "I read: id: 2")
	tab.until(`texts("dialog .said-by.search").join().startsWith("Searching recipes for “onion” with kind = tart,1 documents found")`)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	ask("hello", "hello")
	if sent := m.sent(); !strings.Contains(sent[len(sent)-1], "search recipes for onion") || !strings.Contains(sent[len(sent)-1], "I read: id: 2") {
		t.Errorf("the model gets %s", sent[len(sent)-1])
	}
	ask("search nowhere for x", "I read: The search failed")
	tab.until(`document.querySelector("dialog .said-by.bad")`)
	tab.eval(`document.querySelector("dialog").close(), press("Edit"), 0`, nil)
	tab.until(`document.querySelector("dialog textarea")?.value === "S"`)
	tab.eval(`(() => {
		document.querySelector("dialog textarea").value = "Be kind.";
		press("Save workspace");
	})()`, nil)
	tab.until(`document.getElementById("said").textContent === "Workspace saved."`)
	if r := c.get("/chats/kitchen/settings"); !strings.Contains(r.body, `"system":"Be kind."`) || !strings.Contains(r.body, `"baseUrl":"`+m.URL+`"`) || strings.Contains(r.body, `"apiKey":null`) {
		t.Error(r.body)
	}
}

package fastapi

import (
	"strings"
	"testing"
)

// TestDashboardChangesOnlyWhatIsEdited saves a document and a setting after a small edit. Numbers that JavaScript would round, names of
// its object members, and the masked key of an embedder must stay the same; removed parts must be gone.
func TestDashboardChangesOnlyWhatIsEdited(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	const id = "9007199254740993" // 2^53+1
	if end := c.wait(c.json("POST", "/indexes/films/documents", `[{"id":`+id+`,"n":12345678901234567890,"title":"\u202eold","__proto__":{"a":1}}]`)); !strings.Contains(end, `"status":"succeeded"`) {
		t.Fatal(end)
	}
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": presses + `
		const send = fetch;
		window.sent = [];
		window.fetch = (path, options) => {
			if (options?.method === "PATCH") sent.push(options.body);
			return send(path, options);
		};`}, nil)
	tab.goTo(url + "/#/documents?index=films")
	tab.until(`document.querySelector(".hit")`)
	tab.eval(`press("Edit"), 0`, nil)
	tab.until(`document.querySelector("dialog textarea").value.includes('"n": 12345678901234567890') && document.querySelector("dialog textarea").value.includes('"\\u202eold"')`)
	tab.eval(`(() => {
		const text = document.querySelector("dialog textarea");
		text.value = text.value.replace("old", "new");
		press("Save", document.querySelector("dialog"));
	})()`, nil)
	tab.until(`document.getElementById("said").textContent === "Done: 1 written."`)
	if r := c.get("/indexes/films/documents/" + id); r.body != `{"id":`+id+`,"n":12345678901234567890,"title":"\u202enew","__proto__":{"a":1}}` {
		t.Errorf("the document is %s", r.body)
	}

	c.wait(c.json("DELETE", "/indexes/films/documents", ""))
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"embedders":{"paid":{"source":"openAi","apiKey":"sk-abcdefghijkl"},"mine":{"source":"userProvided","dimensions":2}}}`))
	tab.goTo(url + "/#/settings?index=films&view=json")
	tab.until(`document.querySelector("#embedders textarea").value.includes("XXXX")`)
	tab.eval(`(() => {
		const text = document.querySelector("#embedders textarea"), embedders = JSON.parse(text.value);
		delete embedders.mine;
		embedders.paid.documentTemplate = "{{doc.title}}";
		text.value = JSON.stringify(embedders);
		text.dispatchEvent(new Event("input"));
		press("Review and save");
	})()`, nil)
	tab.until(`document.querySelector("dialog .diff del")?.textContent.includes("mine")`)
	tab.eval(`press("Save", document.querySelector("dialog")), 0`, nil)
	tab.until(`document.getElementById("said").textContent === "Saved: Embedders."`)
	var sent []string
	tab.eval("sent", &sent)
	if body := strings.Join(sent, " "); !strings.Contains(body, `"mine":null`) || strings.Contains(body, "apiKey") {
		t.Errorf("the page sends %s", body)
	}
	if r := c.get("/indexes/films/settings/embedders"); !strings.Contains(r.body, "skXXXX") || !strings.Contains(r.body, "{{doc.title}}") || strings.Contains(r.body, "mine") {
		t.Errorf("the embedders are %s", r.body)
	}
}

// TestDashboardRemembersInTime deletes an index just after it was chosen, and leaves a search by keyboard before its address is written:
// the page must open an existing index, and the address must have the typed text.
func TestDashboardRemembersInTime(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id":1,"title":"sunrise"}]`))
	c.wait(c.json("POST", "/indexes/toys/documents", `[{"id":1,"title":"bear"}]`))
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": presses + `window.prompt = () => "toys";`}, nil)
	tab.goTo(url + "/#/settings?index=toys")
	tab.until(`document.querySelector("#searchable-attributes")`)
	tab.eval(`press("Delete index"), 0`, nil)
	tab.until(`document.querySelector("main select").value === "films" && document.querySelector("#searchable-attributes")`)
	var hash, said string
	if tab.eval(`document.getElementById("said").textContent`, &said); said != "" {
		t.Errorf("the page shows %q", said)
	}

	tab.goTo(url + "/#/search?index=films")
	tab.until(`document.querySelector(".hit")`)
	tab.eval(`(() => {
		const box = document.querySelector("main input[type=search]");
		box.value = "sun";
		box.dispatchEvent(new Event("input"));
		box.dispatchEvent(new KeyboardEvent("keydown", {key: "F5", bubbles: true}));
		return location.hash;
	})()`, &hash)
	if hash != "#/search?index=films&q=sun" {
		t.Errorf("the address is %s", hash)
	}
}

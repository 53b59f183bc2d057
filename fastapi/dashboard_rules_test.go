package fastapi

import (
	"strings"
	"testing"
	"time"
)

// TestDashboardRules pins, boosts and hides hits through their menu: one rule per query must collect all of it, hits must name the rule,
// and the list of rules must show and edit it. It also counts hits beyond maxTotalHits and shows pictures.
func TestDashboardRules(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{})
	const dot = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"pagination":{"maxTotalHits":2},"filterableAttributes":["color"]}`))
	c.wait(c.json("POST", "/indexes/goods/documents", `[{"id":1,"title":"red boots","cover":"`+dot+`"},{"id":2,"title":"green boots","photos":["`+dot+`"]},{"id":3,"title":"blue boots","color":"blue","soldAt":1700000000},{"id":4,"title":"old boots","text":"no picture"}]`))
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses + fills + `
		window.confirm = () => true;
		window.hits = () => texts("#main .hit h2").join();
		window.deed = (hit, choice) => {
			press("Pin or hide", [...document.querySelectorAll("#main .hit")].find(node => node.textContent.includes(hit)));
			press(choice, document.querySelector(".menu"));
		};`}, nil)
	apply := func(said string) {
		t.Helper()
		tab.until(`document.querySelector("dialog form:not(.head) button.main")`)
		tab.eval(`document.querySelector("dialog form:not(.head) button.main").click()`, nil)
		tab.until(`document.getElementById("said").textContent === "` + said + `. The rule is in effect."`)
	}
	tab.look(1440, 900, false)
	tab.goTo(url + "/#/rules")
	tab.until(`main.textContent.includes("This needs the experimental feature dynamicSearchRules.")`)
	tab.eval(`press("Switch it on"), 0`, nil)
	tab.until(`main.textContent.includes("There is no rule yet.")`)
	c.json("PATCH", "/experimental-features", `{"dynamicSearchRules":false}`) // pinning offers to enable it
	tab.goTo(url + "/#/search?index=goods&q=boots")
	tab.until(`hits() === "1. red boots,2. green boots" && document.querySelectorAll("#main .thumb").length === 2 && document.querySelector(".summary").textContent.startsWith("at least 2")`)
	tab.eval(`press("Count all"), 0`, nil)
	tab.until(`document.querySelector(".summary").textContent === "4 found"`)
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"pagination":null}`))
	tab.goTo(url + "/#/search?index=goods&q=boots")
	tab.until(`hits() === "1. red boots,2. green boots,3. blue boots,4. old boots" && document.querySelectorAll("#main .thumb").length === 2`)
	tab.until(`document.body.textContent.includes("1700000000 (2023-11-14)")`)

	// The menu works with the keyboard.
	tab.eval(`press("Pin or hide", document.querySelectorAll("#main .hit")[2]), 0`, nil)
	tab.until(`document.activeElement.textContent === "Pin here"`)
	for _, line := range tab.complaints(axe(t)) {
		t.Error(line)
	}
	tab.eval(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true, cancelable: true})), 0`, nil)
	tab.until(`document.activeElement.textContent === "Pin to the top"`)
	tab.eval(`document.activeElement.click()`, nil)
	tab.until(`document.querySelector("dialog form:not(.head) select")`)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	apply("Pin: blue boots")
	tab.until(`hits() === "1. blue boots,2. red boots,3. green boots,4. old boots" && texts("#main .pinned").join() === "Pinned"`)
	tab.eval(`deed("green", "Pin to the top")`, nil)
	apply("Pin: green boots")
	tab.until(`hits() === "1. green boots,2. blue boots,3. red boots,4. old boots"`)
	tab.eval(`deed("red", "Hide")`, nil)
	apply("Hide: red boots")
	tab.until(`hits() === "1. green boots,2. blue boots,3. old boots"`)
	tab.eval(`deed("3. old boots", "Boost")`, nil)
	apply("Boost: old boots")
	tab.until(`texts("#main .pinned").join() === "Pinned,Pinned,× 2"`)
	tab.eval(`document.querySelectorAll("#main .reasons").forEach(node => node.open = true)`, nil)
	tab.until(`texts("#main .reasons p").join("|") === "Pinned by the rule Search for “boots”.|Pinned by the rule Search for “boots”.|" + texts("#main .reasons p")[2] && /^Its score is multiplied by 2, by the rule boots-/.test(texts("#main .reasons p")[2])`)
	tab.eval(`deed("blue", "Unpin")`, nil)
	tab.until(`texts("#main .pinned").join() === "Pinned,× 2"`)

	tab.eval(`document.querySelector("#main .reasons").open = true`, nil)
	tab.until(`document.querySelector("#main .reasons a")`)
	tab.eval(`document.querySelector("#main .reasons a").click()`, nil)
	tab.until(`texts(".deeds li").join("|") === "pins green boots at place 1|hides red boots|boosts (× 2) old boots" && texts("#main dd")[0] === "the query contains “boots”"`)
	tab.eval(`press("Edit"), 0`, nil)
	tab.until(`document.querySelector("dialog tbody input")`)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	tab.eval(`(() => {
		const controls = document.querySelectorAll("dialog input");
		controls[0].value = "Summer";
		const end = [...controls].filter(node => node.type === "datetime-local")[1];
		end.value = "2020-06-01T10:00";
		press("Save rule");
	})()`, nil)
	tab.until(`document.querySelector("#main article h2").textContent === "Summer" && texts("#main .status").join() === "Over"`)
	tab.until(`texts(".calendar th[scope=row]").join() === "Summer" && texts(".calendar td.time")[0].startsWith("until ")`)
	c.wait(c.json("PATCH", "/dynamic-search-rules/coming", `{"description": "Coming", "conditions": {"time": {"start": "`+time.Now().AddDate(0, 0, 7).UTC().Format(time.RFC3339)+`"}}, "actions": {"pin": [{"indexUid": "goods", "id": "2", "position": 0}]}}`))
	tab.eval(`location.hash = "#/rules?q="`, nil)
	tab.until(`texts(".calendar th[scope=row]").join() === "Summer,Coming" && document.querySelectorAll(".days rect.later").length === 1`)
	for _, line := range append(tab.faults(), tab.complaints(axe(t))...) {
		t.Error(line)
	}
	// A preview of a scheduled rule shows the hits of its first minute.
	tab.eval(`[...document.querySelectorAll("#main article")].find(node => node.textContent.includes("Coming")).querySelector("a").click()`, nil)
	tab.until(`hits().startsWith("1. green boots") && texts("#main .pinned").join() === "Pinned" && texts(".chip")[0].startsWith("as on ") && location.hash.includes("at=20")`)
	tab.eval(`document.querySelector("#main .reasons").open = true`, nil)
	tab.until(`texts("#main .reasons p")[0] === "Pinned by the rule Coming."`)
	tab.eval(`document.querySelector(".chip").click()`, nil)
	tab.until(`hits().startsWith("1. red boots") && !document.querySelector("#main .pinned") && !location.hash.includes("at=20")`)
	tab.eval(`location.hash = "#/rules?q=summer"`, nil)
	tab.until(`document.querySelector("#main input[type=search]").value === "summer" && texts(".calendar th[scope=row]").join() === "Summer" && texts("#main article h2").join() === "Summer"`)
	c.wait(c.send("DELETE", "/dynamic-search-rules/coming", nil))
	rules := c.json("POST", "/dynamic-search-rules", `{}`).body
	for _, want := range []string{`"description":"Summer"`, `"query":{"contains":"boots"}`, `"end":"2020-06-01T`, `{"id":"2","position":0,"indexUid":"goods"}`, `"weight":0`} {
		if !strings.Contains(rules, want) {
			t.Errorf("%s lacks %s", rules, want)
		}
	}
	tab.eval(`press("Delete"), 0`, nil)
	tab.until(`document.querySelector("#main .empty") && document.getElementById("said").textContent === "Rule deleted."`)
}

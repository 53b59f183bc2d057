package fastapi

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"svc/internal/suggest"
)

// suggesting opens an instance with analytics. look has its suggestions made as if an hour had passed, and waits for their tasks.
func suggesting(t *testing.T, o Options) (c *client, look func()) {
	t.Helper()
	o.Analytics = openAnalytics(t)
	openInstance(t, &o)
	c = newClient(t, o)
	if o.Keys != nil {
		c = c.as(masterKey)
	}
	b := suggest.New(suggest.Options{Catalog: o.Catalog, Queue: o.Queue, Analytics: o.Analytics, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { b.Close() })
	now := time.Duration(0)
	return c, func() {
		t.Helper()
		now += time.Hour
		b.Look(now)
		for strings.Contains(c.get("/tasks?statuses=enqueued,processing&limit=1").body, `"uid"`) {
			time.Sleep(time.Millisecond)
		}
	}
}

func TestTheExamplesOfSuggestions(t *testing.T) {
	c, look := suggesting(t, Options{})
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"filterableAttributes": ["shop", "brand"]}`))
	runExamples(t, c, "../docs/SUGGESTIONS.md", look)
}

// suggestions returns the documents of an index of suggestions, in the order of their texts.
func (c *client) suggestions(uid string) string {
	r := c.json("POST", "/indexes/"+uid+"/search", `{"limit": 100}`)
	var got struct {
		Hits []struct {
			Query, Source string
			Count, Hits   int
		}
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 {
		return r.body
	}
	all := map[string]string{}
	for _, h := range got.Hits {
		all[h.Query] = fmt.Sprintf("%s %d %d", h.Source, h.Count, h.Hits)
	}
	return strings.TrimPrefix(fmt.Sprint(all), "map")
}

// tasks returns how many tasks there are.
func (c *client) tasks() string {
	var list struct{ Total int }
	r := c.get("/tasks?limit=1")
	if err := json.Unmarshal([]byte(r.body), &list); err != nil {
		return r.body
	}
	return fmt.Sprint(list.Total)
}

// TestTheIndexOfSuggestions follows an index of suggestions through its life.
func TestTheIndexOfSuggestions(t *testing.T) {
	c, look := suggesting(t, Options{Keys: openKeys(t, masterKey)})
	c.wait(c.json("POST", "/indexes/goods/documents", `[{"id": 1, "t": "red boots", "shop": 1}, {"id": 2, "t": "red boots", "shop": 1}, {"id": 3, "t": "green hat", "shop": 2}, {"id": 4, "t": "green boats", "shop": 2}]`))
	look()
	if got := c.suggestions("goods_suggestions"); !strings.Contains(got, "index_not_found") {
		t.Errorf("without the setting: %s", got)
	}
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"suggestions": {"minCount": 2}, "filterableAttributes": ["shop"], "typoTolerance": {"enabled": false}}`))
	look()
	if got, want := c.suggestions("goods_suggestions"), "[boots:words 2 2 green:words 2 2 red:words 2 2]"; got != want {
		t.Errorf("without history: %s, want %s", got, want)
	}
	// Documents of others stay.
	c.wait(c.json("POST", "/indexes/goods_suggestions/documents", `[{"id": "own", "query": "Sale", "source": "queries", "count": 1, "hits": 1}]`))
	before := c.tasks()
	if look(); c.tasks() != before {
		t.Errorf("%s tasks, and %s without a change", before, c.tasks())
	}
	for _, q := range []string{"Red  Boots", "red boots", "hat", "hat", "green", "nothing", "nothing", "nothing"} {
		c.json("POST", "/indexes/goods/search", fmt.Sprintf(`{"q": %q}`, q))
	}
	look()
	if got, want := c.suggestions("goods_suggestions"), "[Sale:queries 1 1 hat:queries 2 1 red boots:queries 2 2]"; got != want {
		t.Errorf("of queries: %s, want %s", got, want)
	}
	c.wait(c.json("POST", "/indexes/goods/documents/delete", `{"filter": "t EXISTS AND id = 3"}`))
	c.wait(c.json("DELETE", "/indexes/goods/documents/3", ``))
	look()
	if got, want := c.suggestions("goods_suggestions"), "[Sale:queries 1 1 red boots:queries 2 2]"; got != want {
		t.Errorf("after a deletion: %s, want %s", got, want)
	}

	// "Did you mean" has queries of others for those without a filter only.
	did := func(as *client, q string) string {
		t.Helper()
		r := as.json("POST", "/indexes/goods/search", fmt.Sprintf(`{"q": %q, "matchingStrategy": "all", "suggest": true}`, q))
		var got struct {
			Suggestions []struct {
				Query              string
				EstimatedTotalHits int
			}
		}
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 {
			t.Fatalf("%s: %v", r.body, err)
		}
		return fmt.Sprint(got.Suggestions)
	}
	token := func(rules string) *client { return c.as(c.tenantToken(`{"searchRules": ` + rules + `}`)) }
	free, first, second := token(`{"goods": {}}`), token(`{"goods": {"filter": "shop = 1"}}`), token(`{"goods": {"filter": "shop = 2"}}`)
	for _, tt := range []struct {
		who  string
		as   *client
		q    string
		want string
	}{
		{"master", c, "boxts", "[{boots 2} {boats 1}]"}, {"free", free, "boxts", "[{boots 2} {boats 1}]"},
		{"first", first, "boxts", "[{boots 2}]"}, {"second", second, "boxts", "[{boats 1}]"},
		{"master", c, "redd boots", "[{red boots 2}]"}, {"second", second, "redd boots", "[]"}, {"second", second, "red boots", "[]"},
		{"master", c, "rad bootss", "[{red boots 2} {red boats 1}]"},
	} {
		want := tt.want
		if tt.q == "rad bootss" {
			want = "[{red boots 2}]"
		}
		for range 3 { // also if answers are kept
			if got := did(tt.as, tt.q); got != want {
				t.Errorf("%s, %q: %s, want %s", tt.who, tt.q, got, want)
			}
		}
	}
	if r := free.json("POST", "/indexes/goods_suggestions/search", `{}`); r.status != 403 {
		t.Errorf("the index of suggestions: %d %s", r.status, r.body)
	}
	for what, body := range map[string]string{
		"unknown": `{"most": 3}`, "zero": `{"limit": 0}`, "too many": `{"limit": 10001}`, "text": `{"block": "a"}`, "list": `[]`,
	} {
		if r := c.json("PUT", "/indexes/goods/settings/suggestions", body); r.code() != "invalid_settings_suggestions" {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}

	// An alias or an index of that name with another key is left alone.
	c.wait(c.json("POST", "/indexes/other/documents", `[{"id": 1, "t": "red red"}, {"id": 2, "t": "red"}]`))
	c.wait(c.json("PUT", "/indexes/other/settings/suggestions", `{}`))
	if r := c.json("PUT", "/aliases/other_suggestions", `{"indexUid": "goods"}`); r.status >= 300 {
		t.Fatal(r.body)
	}
	before = c.tasks()
	if look(); c.tasks() != before {
		t.Errorf("behind an alias something is written")
	}
	c.json("DELETE", "/aliases/other_suggestions", "")
	c.wait(c.json("POST", "/indexes/other_suggestions/documents?primaryKey=key", `[{"key": 1}]`))
	before = c.tasks()
	if look(); c.tasks() != before {
		t.Errorf("with another primary key something is written")
	}
	c.wait(c.json("DELETE", "/indexes/goods/settings/suggestions", ""))
	before = c.tasks()
	if look(); c.tasks() != before {
		t.Errorf("when it is off something is written")
	}
}

// TestSuggestionsEndWithTheirIndex deletes and renames indexes that have suggestions.
func TestSuggestionsEndWithTheirIndex(t *testing.T) {
	c, look := suggesting(t, Options{})
	const documents = `[{"id": 1, "t": "red boots"}, {"id": 2, "t": "red boots"}]`
	for _, uid := range []string{"a", "b", "c", "e"} {
		c.wait(c.json("POST", "/indexes/"+uid+"/documents", documents))
		c.wait(c.json("PUT", "/indexes/"+uid+"/settings/suggestions", `{}`))
	}
	for _, uid := range []string{"lone_suggestions", "keyed_suggestions"} { // those of somebody else
		c.wait(c.json("POST", "/indexes/"+uid+"/documents?primaryKey="+map[bool]string{true: "id", false: "t"}[uid[0] == 'l'], `[{"id": 1, "t": "x"}]`))
	}
	look()
	var copied struct{ Results []json.RawMessage }
	if err := json.Unmarshal([]byte(c.get("/indexes/a_suggestions/documents").body), &copied); err != nil || len(copied.Results) != 2 {
		t.Fatal(copied, err)
	}
	restored, err := json.Marshal(copied.Results)
	if err != nil {
		t.Fatal(err)
	}
	c.wait(c.json("POST", "/indexes/restored_suggestions/documents?primaryKey=id", string(restored))) // by a backup, without its index
	const own = `[{"id": "own", "query": "Sale", "source": "queries", "count": 1, "hits": 1}]`
	c.wait(c.json("POST", "/indexes/b_suggestions/documents", own))
	c.wait(c.json("DELETE", "/indexes/a", ""))
	c.wait(c.json("DELETE", "/indexes/b", ""))
	c.wait(c.json("PATCH", "/indexes/c", `{"uid": "d"}`))
	c.wait(c.json("DELETE", "/indexes/e", ""))
	c.json("POST", "/indexes/e_suggestions/documents", own) // not finished when svc looks
	look()
	look()
	const made = "[boots:words 2 2 red:words 2 2]"
	for uid, want := range map[string]string{"a_suggestions": "index_not_found", "b_suggestions": "[Sale:queries 1 1]", "c_suggestions": "index_not_found", "d_suggestions": made,
		"e_suggestions": "[Sale:queries 1 1]", "restored_suggestions": made} {
		if got := c.suggestions(uid); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", uid, got, want)
		}
	}
	before := c.tasks()
	if look(); c.tasks() != before {
		t.Error("there are tasks without a change")
	}
	for _, uid := range []string{"lone_suggestions", "keyed_suggestions"} {
		if r := c.get("/indexes/" + uid + "/stats"); !strings.Contains(r.body, `"numberOfDocuments":1`) {
			t.Errorf("%s: %s", uid, r.body)
		}
	}
	// An index that comes back gets suggestions again.
	for _, uid := range []string{"a", "b"} {
		c.wait(c.json("POST", "/indexes/"+uid+"/documents", documents))
		c.wait(c.json("PUT", "/indexes/"+uid+"/settings/suggestions", `{}`))
	}
	look()
	look()
	for uid, want := range map[string]string{"a_suggestions": made, "b_suggestions": "[Sale:queries 1 1 boots:words 2 2 red:words 2 2]"} {
		if got := c.suggestions(uid); got != want {
			t.Errorf("%s: %s, want %s", uid, got, want)
		}
	}
}

package fastapi

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/network"
	"svc/internal/search"
	"svc/internal/suggest"
)

// suggesting opens an instance with analytics. look updates the suggestions as if an hour had passed, and waits for the tasks.
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

// suggestions returns the documents of an index of suggestions, ordered by text.
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

// tasks returns the number of tasks.
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
	// Documents of other sources stay.
	c.wait(c.json("POST", "/indexes/goods_suggestions/documents", `[{"id": "own", "query": "Sale", "source": "queries", "count": 1, "hits": 1}]`))
	before := c.tasks()
	if look(); c.tasks() != before {
		t.Errorf("%s tasks, %s after an update without changes", before, c.tasks())
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

	// "Did you mean" shows queries of other users only to callers without a filter.
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
		for range 3 { // also with cached answers
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

	// An alias, or an index of that name with another primary key, is left alone.
	c.wait(c.json("POST", "/indexes/other/documents", `[{"id": 1, "t": "red red"}, {"id": 2, "t": "red"}]`))
	c.wait(c.json("PUT", "/indexes/other/settings/suggestions", `{}`))
	if r := c.json("PUT", "/aliases/other_suggestions", `{"indexUid": "goods"}`); r.status >= 300 {
		t.Fatal(r.body)
	}
	before = c.tasks()
	if look(); c.tasks() != before {
		t.Errorf("something is written through an alias")
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
	for _, uid := range []string{"lone_suggestions", "keyed_suggestions"} { // indexes of users
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
	c.wait(c.json("POST", "/indexes/restored_suggestions/documents?primaryKey=id", string(restored))) // restored by a backup without its index
	const own = `[{"id": "own", "query": "Sale", "source": "queries", "count": 1, "hits": 1}]`
	c.wait(c.json("POST", "/indexes/b_suggestions/documents", own))
	c.wait(c.json("DELETE", "/indexes/a", ""))
	c.wait(c.json("DELETE", "/indexes/b", ""))
	c.wait(c.json("PATCH", "/indexes/c", `{"uid": "d"}`))
	c.wait(c.json("DELETE", "/indexes/e", ""))
	c.json("POST", "/indexes/e_suggestions/documents", own) // not finished when svc checks
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
		t.Error("an update without changes has tasks")
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

// TestSuggestionsAreTriedAgain makes suggestions that cannot be written, because an alias has their name. They are written once the alias
// is deleted, even if the index has not changed.
func TestSuggestionsAreTriedAgain(t *testing.T) {
	c, look := suggesting(t, Options{})
	const want = "[boots:words 2 2 red:words 2 2]"
	c.wait(c.json("PATCH", "/indexes/goods/settings", `{"suggestions": {"minCount": 2}}`))
	c.wait(c.json("POST", "/indexes/goods/documents", `[{"id": 1, "t": "red boots"}, {"id": 2, "t": "red boots"}]`))
	c.wait(c.json("POST", "/indexes/other/documents", `[{"id": 1}]`))
	c.json("PUT", "/aliases/goods_suggestions", `{"indexUid": "other"}`)
	if look(); c.suggestions("goods_suggestions") == want {
		t.Fatal("there is no alias with their name")
	}
	c.json("DELETE", "/aliases/goods_suggestions", ``)
	look()
	if got := c.suggestions("goods_suggestions"); got != want {
		t.Errorf("without the alias: %s, want %s", got, want)
	}
}

// TestSuggestWithOtherInstances uses a remote that knows the message for words, and one of an earlier version.
func TestSuggestWithOtherInstances(t *testing.T) {
	for what, tt := range map[string]struct {
		words func(w http.ResponseWriter)
		want  string
	}{
		"a remote that knows the message": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", search.ReadType)
			_, _ = io.WriteString(w, "\x01\x00\x06\x00\x01\x05boats\x01\x09\x00") // bytes 0 to 6 are no word, but "boats" has 9 documents
		}, "[{boats 9} {boots 1}]"},
		"an earlier one": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, "[{boots 1}]"},
		"one that is broken": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", search.ReadType)
			_, _ = io.WriteString(w, "\x01")
		}, "[{boots 1}]"},
		"one that has it": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", search.ReadType)
			_, _ = io.WriteString(w, "\x01\x00\x06\x01\x00\x00")
		}, "[]"},
	} {
		var asked atomic.Int64
		remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.URL.Path == "/network/words" {
				if asked.Add(1); !strings.Contains(string(body), `"filter":"shop = 1"`) || strings.Contains(string(body), "suggest") {
					t.Errorf("%s: the request for words is %s", what, body)
				}
				tt.words(w)
				return
			}
			n := 0
			if strings.Contains(string(body), `"q":"boats"`) {
				n = 9
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"hits":[],"processingTimeMs":0,"limit":20,"offset":0,"estimatedTotalHits":%d}`, n)
		}))
		defer remote.Close()
		o := Options{Features: allFeatures(t)}
		openInstanceIn(t, &o, network.Options{Allowed: onlyLoopback(t)})
		c := newClient(t, o)
		c.wait(c.json("PATCH", "/indexes/goods/settings", `{"filterableAttributes": ["shop"], "typoTolerance": {"enabled": false}}`))
		c.wait(c.json("POST", "/indexes/goods/documents", `[{"id": 1, "t": "red boots", "shop": 1}, {"id": 2, "t": "bohts", "shop": 2}]`))
		if r := c.json("PATCH", "/network", `{"self":"b","remotes":{"a":{"url":"`+remote.URL+`"},"b":{"url":"http://127.0.0.1:2"}}}`); r.status >= 300 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		for _, path := range []string{"/indexes/goods/search", "/multi-search"} {
			asked.Store(0)
			body := `"q": "boahts", "suggest": true, "useNetwork": true, "filter": "shop = 1"}`
			if path == "/multi-search" {
				body = `{"queries": [{"indexUid": "goods", ` + body + `]}`
			} else {
				body = "{" + body
			}
			type answer struct {
				Suggestions []struct {
					Query              string
					EstimatedTotalHits int
				}
				RemoteErrors map[string]any
				Results      []json.RawMessage
			}
			var got answer
			r := c.json("POST", path, body)
			err := json.Unmarshal([]byte(r.body), &got)
			if err == nil && path == "/multi-search" && len(got.Results) == 1 {
				err = json.Unmarshal(got.Results[0], &got)
			}
			if err != nil || got.Suggestions == nil || fmt.Sprint(got.Suggestions) != tt.want || len(got.RemoteErrors) > 0 || asked.Load() != 1 {
				t.Errorf("%s, %s: %s, asked %d times, %v, want %s", what, path, r.body, asked.Load(), err, tt.want)
			}
		}
		asked.Store(0)
		for body, want := range map[string]string{
			`{"q": "boahts", "suggest": true, "useNetwork": false, "filter": "shop = 1"}`: `"suggestions":[{"query":"boots"`,
			`{"q": "boots", "suggest": true, "useNetwork": true, "filter": "shop = 1"}`:   `"suggestions":[]`,
			`{"q": "boahts", "useNetwork": true, "filter": "shop = 1"}`:                   `"estimatedTotalHits":0,"requestUid"`,
		} {
			if r := c.json("POST", "/indexes/goods/search", body); !strings.Contains(r.body, want) || asked.Load() > 0 {
				t.Errorf("%s, %s: %s, asked %d times, want %s", what, body, r.body, asked.Load(), want)
			}
		}
	}
}

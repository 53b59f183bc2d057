package fastapi

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// compared is the answer to a comparison.
type compared struct {
	Current, Other struct {
		Hits []struct {
			ID int
		}
	}
	Moved      []struct{ Current, Other *int }
	Reindexing []struct {
		Setting, What string
		Tried         bool
	}
}

func ids(hits []struct{ ID int }) (all []int) {
	for _, h := range hits {
		all = append(all, h.ID)
	}
	return all
}

func (c *client) compare(body string) (got compared) {
	c.t.Helper()
	r := c.json("POST", "/indexes/i/compare", body)
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 {
		c.t.Fatalf("%s: %v %d %s", body, err, r.status, r.body)
	}
	return got
}

func TestCompare(t *testing.T) {
	c, _ := newInstance(t, Options{})
	const first = `{"searchableAttributes": ["title", "text"], "sortableAttributes": ["year"], "filterableAttributes": ["year"]}`
	const documents = `[{"id": 1, "title": "green hound", "text": "x", "year": 2}, {"id": 2, "title": "x", "text": "green hound", "year": 3},
		{"id": 3, "title": "greem hound", "text": "y", "year": 1, "rank": 5}]`
	for _, uid := range []string{"i", "j"} {
		c.wait(c.json("PATCH", "/indexes/"+uid+"/settings", first))
		c.wait(c.json("POST", "/indexes/"+uid+"/documents", documents))
	}
	before, settings := c.get("/indexes/i/segments").body, c.get("/indexes/i/settings").body
	const search = `"search": {"q": "green hound"}`
	for _, tt := range []struct {
		body           string
		current, other []int
		reindexing     []string
	}{
		{`{` + search + `}`, []int{1, 2, 3}, []int{1, 2, 3}, nil},
		{`{` + search + `, "other": {"settings": {"searchableAttributes": ["text", "title"]}}}`, []int{1, 2, 3}, []int{2, 1, 3}, nil},
		{`{` + search + `, "other": {"settings": {"searchableAttributes": [["text", "title"]], "rankingRules": ["attribute", "year:desc"]}}}`, []int{1, 2, 3}, []int{2, 1, 3}, nil},
		{`{` + search + `, "other": {"settings": {"searchableAttributes": ["title"]}}}`, []int{1, 2, 3}, []int{1, 3}, nil},
		{`{` + search + `, "other": {"settings": {"rankingRules": ["year:asc"]}}}`, []int{1, 2, 3}, []int{3, 1, 2}, nil},
		{`{` + search + `, "other": {"settings": {"typoTolerance": {"enabled": false}}}}`, []int{1, 2, 3}, []int{1, 2}, nil},
		{`{"search": {"q": "green hound", "matchingStrategy": "all"}, "other": {"settings": {"typoTolerance": {"minWordSizeForTypos": {"oneTypo": 6}}}}}`, []int{1, 2, 3}, []int{1, 2}, nil},
		{`{"search": {"q": "canine"}, "other": {"settings": {"synonyms": {"canine": ["green"]}}}}`, nil, []int{1, 2}, nil},
		{`{` + search + `, "other": {"search": {"sort": ["year:desc"]}, "settings": {"rankingRules": ["sort"]}}}`, []int{1, 2, 3}, []int{2, 1, 3}, nil},
		{`{"search": {"q": "green hound", "limit": 1}, "other": {"search": {"q": "x", "limit": 20, "filter": "year = 3"}}}`, []int{1}, []int{2}, nil},
		{`{` + search + `, "other": {"settings": {"stopWords": ["hound"], "rankingRules": ["year:desc"]}}}`, []int{1, 2, 3}, []int{2, 1, 3}, []string{"stopWords"}},
		{`{` + search + `, "other": {"settings": {"rankingRules": ["rank:desc"]}}}`, []int{1, 2, 3}, []int{1, 2, 3}, []string{"rankingRules"}},
		{`{` + search + `, "other": {"settings": {"searchableAttributes": ["title", "id"], "distinctAttribute": "text", "dictionary": ["x"], "localizedAttributes": [{"attributePatterns": ["title"], "locales": ["deu"]}]}}}`,
			[]int{1, 2, 3}, []int{1, 2, 3}, []string{"searchableAttributes", "dictionary", "distinctAttribute", "localizedAttributes"}},
		{`{` + search + `, "other": {"settings": {"prefixSearch": "disabled", "proximityPrecision": "byAttribute", "distinctAttribute": "year"}}}`, []int{1, 2, 3}, []int{1, 2, 3}, nil},
	} {
		got := c.compare(tt.body)
		var named []string
		for _, r := range got.Reindexing {
			named = append(named, r.Setting)
		}
		slices.Sort(named)
		slices.Sort(tt.reindexing)
		if !slices.Equal(ids(got.Current.Hits), tt.current) || !slices.Equal(ids(got.Other.Hits), tt.other) || !slices.Equal(named, tt.reindexing) {
			t.Errorf("%s: %v, other %v, reindexing %v; want %v, %v, %v", tt.body, ids(got.Current.Hits), ids(got.Other.Hits), got.Reindexing, tt.current, tt.other, tt.reindexing)
		}
		if len(tt.reindexing) == 0 { // compare with really changed settings
			var other struct {
				Other struct{ Settings json.RawMessage }
			}
			var search struct {
				Search map[string]any
				Other  struct{ Search map[string]any }
			}
			if err := errors.Join(json.Unmarshal([]byte(tt.body), &other), json.Unmarshal([]byte(tt.body), &search)); err != nil {
				t.Fatal(err)
			}
			c.wait(c.send("DELETE", "/indexes/j/settings", nil))
			c.wait(c.json("PATCH", "/indexes/j/settings", first))
			if other.Other.Settings != nil {
				c.wait(c.json("PATCH", "/indexes/j/settings", string(other.Other.Settings)))
			}
			maps.Copy(search.Search, search.Other.Search)
			body, err := json.Marshal(search.Search)
			if err != nil {
				t.Fatal(err)
			}
			var found struct{ Hits []struct{ ID int } }
			if r := c.json("POST", "/indexes/j/search", string(body)); json.Unmarshal([]byte(r.body), &found) != nil || !slices.Equal(ids(found.Hits), ids(got.Other.Hits)) {
				t.Errorf("%s: %v, and after a change of the settings %s", tt.body, ids(got.Other.Hits), r.body)
			}
		}
		for _, m := range got.Moved {
			if m.Current != nil && m.Other != nil && tt.current[*m.Current] != tt.other[*m.Other] ||
				m.Current == nil && slices.Contains(tt.current, tt.other[*m.Other]) || m.Other == nil && slices.Contains(tt.other, tt.current[*m.Current]) {
				t.Errorf("%s: moved %+v", tt.body, m)
			}
		}
		all := append(slices.Clone(tt.current), tt.other...)
		slices.Sort(all)
		if len(got.Moved) != len(slices.Compact(all)) {
			t.Errorf("%s: %d documents in %d moves", tt.body, len(slices.Compact(all)), len(got.Moved))
		}
	}
	if after := c.get("/indexes/i/segments").body; after != before {
		t.Errorf("comparing changed the segments: %s, before %s", after, before)
	}
	if after := c.get("/indexes/i/settings").body; after != settings {
		t.Errorf("comparing changed the settings: %s", after)
	}
	for body, code := range map[string]string{
		`[]`: "bad_request", `{"x": 1}`: "bad_request", `{"search": 3}`: "bad_request", `{"search": {"q": 3}}`: "invalid_search_q", `{"search": {"x": 3}}`: "bad_request",
		`{"other": {"x": 1}}`: "bad_request", `{"other": []}`: "bad_request", `{"other": {"search": {"limit": -1}}}`: "invalid_search_limit",
		`{"other": {"settings": []}}`: "bad_request", `{"other": {"settings": {"displayedAttributes": ["*"]}}}`: "bad_request",
		`{"other": {"settings": {"filterableAttributes": ["secret"]}}}`: "bad_request", `{"other": {"settings": {"embedders": {}}}}`: "bad_request",
		`{"other": {"settings": {"rankingRules": ["x"]}}}`:                                      "invalid_settings_ranking_rules",
		`{"other": {"settings": {"typoTolerance": {"minWordSizeForTypos": {"oneTypo": 200}}}}}`: "invalid_settings_typo_tolerance",
		`{"search": {"useNetwork": false}}`:                                                     "feature_not_enabled", `{"search": {"filter": "none = 1"}}`: "invalid_search_filter",
	} {
		if r := c.json("POST", "/indexes/i/compare", body); r.code() != code && !(code == "feature_not_enabled" && r.code() == "bad_request") {
			t.Errorf("%s: %d %s, want %s", body, r.status, r.body, code)
		}
	}
	if r := c.json("POST", "/indexes/none/compare", `{}`); r.code() != "index_not_found" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestCompareRights checks that a comparison needs the rights to search and to read settings, and finds the same as a search.
func TestCompareRights(t *testing.T) {
	c := newProtected(t)
	c.wait(c.json("PATCH", "/indexes/i/settings", `{"displayedAttributes": ["id"], "filterableAttributes": ["owner"]}`))
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1, "secret": "canary", "owner": "a"}, {"id": 2, "owner": "b"}]`))
	for actions, want := range map[string]int{`["search"]`: 403, `["settings.get"]`: 403, `["search", "settings.get"]`: 200, `["*"]`: 200} {
		r := c.as(c.makeKey(actions, `["i"]`)).json("POST", "/indexes/i/compare", `{"other": {"settings": {"rankingRules": []}}}`)
		if r.status != want || strings.Contains(r.body, "canary") {
			t.Errorf("%s: %d %s", actions, r.status, r.body)
		}
		if r := c.as(c.makeKey(actions, `["other"]`)).json("POST", "/indexes/i/compare", `{}`); r.status != 403 {
			t.Errorf("%s for another index: %d %s", actions, r.status, r.body)
		}
	}
	for _, key := range []string{"Default Search API Key", "Default Admin API Key"} {
		token := c.tokenOf(key, `{"searchRules": {"i": {"filter": "owner = b"}}}`)
		if r := c.as(token).json("POST", "/indexes/i/compare", `{}`); r.status != 403 {
			t.Errorf("a tenant token of the %s: %d %s", key, r.status, r.body)
		}
	}
}

// TestCompareAtAnotherTime compares a search with the same on another day: rules must apply by that date.
func TestCompareAtAnotherTime(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1, "title": "hound"}, {"id": 2, "title": "hound"}, {"id": 3, "title": "hound"}]`))
	c.json("PATCH", "/experimental-features", `{"dynamicSearchRules": true}`)
	c.wait(c.json("PATCH", "/dynamic-search-rules/eve", `{"conditions": {"time": {"start": "2100-12-24T00:00:00Z", "end": "2100-12-25T00:00:00Z"}}, "actions": {"pin": [{"indexUid": "i", "id": "3", "position": 0}]}}`))
	for at, want := range map[string][]int{"2100-12-24T18:00:00Z": {3, 1, 2}, "2100-12-25T00:30:00+01:00": {3, 1, 2}, "2100-12-26T00:00:00Z": {1, 2, 3}} {
		got := c.compare(`{"search": {"q": "hound"}, "other": {"at": "` + at + `"}}`)
		if !slices.Equal(ids(got.Current.Hits), []int{1, 2, 3}) || !slices.Equal(ids(got.Other.Hits), want) {
			t.Errorf("%s: %v, other %v, want %v", at, ids(got.Current.Hits), ids(got.Other.Hits), want)
		}
	}
	if got := c.compare(`{"search": {"q": "hound"}, "other": {"at": null}}`); !slices.Equal(ids(got.Other.Hits), []int{1, 2, 3}) {
		t.Errorf("null: %v", ids(got.Other.Hits))
	}
	for _, body := range []string{`{"other": {"at": "tomorrow"}}`, `{"other": {"at": 1}}`, `{"other": {"at": ""}}`} {
		if r := c.json("POST", "/indexes/i/compare", body); r.code() != "bad_request" || !strings.Contains(r.body, "other.at") {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
}

// TestCompareCounts checks that totals exceed maxTotalHits if facets are requested.
func TestCompareCounts(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("PATCH", "/indexes/i/settings", `{"pagination": {"maxTotalHits": 2}, "filterableAttributes": ["id", "kind"]}`))
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1, "title": "hound", "kind": "a"}, {"id": 2, "title": "hound", "kind": "b"}, {"id": 3, "title": "hound", "kind": "a"}, {"id": 4, "title": "houmd", "kind": "c"}, {"id": 5, "title": "cat", "kind": "c"}]`))
	for body, want := range map[string]string{
		`{"search": {"q": "hound", "facets": []}, "other": {"settings": {"typoTolerance": {"enabled": false}}}}`: `"totals":{"current":4,"other":3}`,
		`{"search": {"q": "hound", "facets": [], "limit": 1}, "other": {"search": {"filter": "id > 1"}}}`:        `"totals":{"current":4,"other":3}`,
		`{"search": {"facets": ["kind"], "page": 1}, "other": {"search": {"q": "nothing like it"}}}`:             `"totals":{"current":5,"other":0}`,
		`{"search": {"q": "hound", "facets": [], "distinct": "kind"}}`:                                           `"totals":{"current":null,"other":null}`,
		`{"search": {"q": "hound"}}`: `"totals":{"current":null,"other":null}`,
	} {
		if r := c.json("POST", "/indexes/i/compare", body); !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s, want %s", body, r.status, r.body, want)
		}
	}
}

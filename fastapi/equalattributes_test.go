package fastapi

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestEqualAttributes checks attributes of equal rank in each kind of search, and that a change of groups writes no segment.
func TestEqualAttributes(t *testing.T) {
	c, _ := newInstance(t, Options{})
	const rules = `"rankingRules": ["words", "attributeRank", "id:desc"], "embedders": {"e": {"source": "userProvided", "dimensions": 2}}`
	c.wait(c.json("PATCH", "/indexes/i/settings", `{"searchableAttributes": ["title", "brand", "category", "text"], `+rules+`}`))
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1, "title": "acme", "_vectors": {"e": [1, 0]}},
		{"id": 2, "brand": "acme", "_vectors": {"e": [1, 0]}}, {"id": 3, "category": {"name": "acme"}, "_vectors": {"e": [1, 0]}},
		{"id": 4, "text": "acme", "_vectors": {"e": [1, 0]}}, {"id": 5, "title": "none", "_vectors": {"e": [0, 1]}}]`))
	segments := c.get("/indexes/i/segments").body

	const grouped = `["title",["brand","category"],"text"]`
	for _, method := range []string{"PUT", "PATCH"} {
		path, body := "/indexes/i/settings/searchable-attributes", grouped
		if method == "PATCH" {
			path, body = "/indexes/i/settings", `{"searchableAttributes": `+grouped+`}`
		}
		c.wait(c.json(method, path, body))
		if got := c.get("/indexes/i/settings/searchable-attributes").body; got != grouped {
			t.Fatalf("%s: got %s, want %s", method, got, grouped)
		}
	}
	if got := c.get("/indexes/i/segments").body; got != segments {
		t.Errorf("segments %s, before the change of groups %s", got, segments)
	}

	type hits struct {
		Hits []struct {
			ID      int `json:"id"`
			Details struct {
				Rank struct {
					Score float64 `json:"score"`
				} `json:"attributeRank"`
				Whole struct {
					Order float64 `json:"attributeRankingOrderScore"`
				} `json:"attribute"`
			} `json:"_rankingScoreDetails"`
		} `json:"hits"`
	}
	show := func(found hits, order bool) (text string) {
		for _, h := range found.Hits {
			score := h.Details.Rank.Score
			if order {
				score = h.Details.Whole.Order
			}
			text += fmt.Sprintf("%d %.2f ", h.ID, score)
		}
		return text
	}
	const want = "1 1.00 3 0.67 2 0.67 4 0.33 "
	const all = `"q": "acme", "showRankingScoreDetails": true`
	check := func(what, path, body, want string, order bool) {
		t.Helper()
		r := c.json("POST", path, body)
		var found struct {
			hits
			Results []hits `json:"results"`
		}
		if err := json.Unmarshal([]byte(r.body), &found); err != nil || r.status != 200 {
			t.Fatalf("%s: %v, %d %s", what, err, r.status, r.body)
		}
		for _, one := range append(found.Results, found.hits) {
			if got := show(one, order); got != want && (one.Hits != nil || found.Results == nil) {
				t.Errorf("%s: got %s, want %s", what, got, want)
			}
		}
	}
	check("search", "/indexes/i/search", `{`+all+`}`, want, false)
	check("placeholder", "/indexes/i/search", `{"limit": 1}`, "5 0.00 ", false)
	check("searched on one of a group", "/indexes/i/search", `{`+all+`, "attributesToSearchOn": ["category.name"]}`, "3 0.67 ", false)
	check("searched on a pattern", "/indexes/i/search", `{`+all+`, "attributesToSearchOn": ["b*", "cat*", "text"]}`, "3 0.67 2 0.67 4 0.33 ", false)
	check("multi-search", "/multi-search", `{"queries": [{"indexUid": "i", `+all+`}, {"indexUid": "i", `+all+`}]}`, want, false)
	check("federated", "/multi-search", `{"federation": {}, "queries": [{"indexUid": "i", `+all+`, "attributesToSearchOn": ["title", "category.name"]},
		{"indexUid": "i", `+all+`, "attributesToSearchOn": ["text", "brand"]}]}`, want, false)
	check("hybrid", "/indexes/i/search", `{`+all+`, "limit": 4, "vector": [1, 0], "hybrid": {"embedder": "e", "semanticRatio": 0.01}}`, want, false)

	c.wait(c.json("PUT", "/indexes/i/settings/ranking-rules", `["words", "attribute", "id:desc"]`))
	check("attribute", "/indexes/i/search", `{`+all+`}`, want, true)
	if got := c.get("/indexes/i/segments").body; got != segments {
		t.Errorf("segments %s, before the change of groups %s", got, segments)
	}

	for _, wrong := range []string{`[["title"], ["title"]]`, `[[]]`, `[[["title"]]]`, `[["*"]]`} {
		if r := c.json("PUT", "/indexes/i/settings/searchable-attributes", wrong); r.status != 400 || r.code() != "invalid_settings_searchable_attributes" {
			t.Errorf("%s: %d %s", wrong, r.status, r.body)
		}
	}
	c.wait(c.send("DELETE", "/indexes/i/settings/searchable-attributes", nil))
	if got := c.get("/indexes/i/settings/searchable-attributes").body; got != `["*"]` {
		t.Errorf("after DELETE: %s", got)
	}
}

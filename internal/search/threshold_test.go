package search

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestThresholdTotals asks for pages of all sizes: totals and facets count no documents under the threshold.
func TestThresholdTotals(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"filterableAttributes": ["kind", "group"]}`, `{"id": 1, "t": "red hat", "kind": "a", "group": 1}`,
		`{"id": 2, "t": "red hat shop", "kind": "b", "group": 1}`, `{"id": 3, "t": "a hat which is not red", "kind": "c", "group": 2}`)
	l.put("i", ``, `{"id": 4, "t": "red", "kind": "b", "group": 3}`, `{"id": 5, "t": "hat", "kind": "d", "group": 4}`,
		`{"id": 6, "t": "red hats", "kind": "a", "group": 5}`)
	group := "group"
	for _, tt := range []struct {
		what   string
		r      Request
		total  int
		facets map[string]int
	}{
		{"all", Request{Query: "red hat"}, 5, map[string]int{"a": 2, "b": 2, "c": 1}},
		{"some", Request{Query: "red hat", RankingScoreThreshold: threshold(0.9)}, 3, map[string]int{"a": 2, "b": 1}},
		{"best", Request{Query: "red hat", RankingScoreThreshold: threshold(1)}, 1, map[string]int{"a": 1}},
		{"none", Request{Query: "hat rad", RankingScoreThreshold: threshold(1)}, 0, map[string]int{}},
		{"distinct", Request{Query: "red hat", RankingScoreThreshold: threshold(0.9), Distinct: &group}, 2, map[string]int{"a": 2}},
		{"filter", Request{Query: "red hat", RankingScoreThreshold: threshold(0.9), Filter: parseFilter(t, "kind = a")}, 2, map[string]int{"a": 2}},
	} {
		for offset := range 4 {
			for limit := range 7 {
				r := tt.r
				r.Offset, r.Limit, r.Facets = offset, limit, []string{"kind"}
				got := l.answer("i", r)
				if got.Estimated != tt.total || len(got.Hits) != max(0, min(limit, tt.total-offset)) || !reflect.DeepEqual(got.Facets["kind"], tt.facets) {
					t.Errorf("%s, %d from %d: %d of %d, facets %v, want %d, %v", tt.what, limit, offset, len(got.Hits), got.Estimated, got.Facets, tt.total, tt.facets)
				}

				f := &FederatedRequest{Offset: offset, Limit: limit}
				merged, body, err := l.federate(f, map[string][]string{"i": {"kind"}}, asked{uid: "i", weight: 1, Request: tt.r})
				if err != nil {
					t.Fatal(err)
				}
				var facets struct{ Distribution map[string]map[string]int }
				if err := json.Unmarshal(merged.FacetsByIndex["i"], &facets); err != nil {
					t.Fatal(err)
				}
				if *merged.EstimatedTotalHits != tt.total || !reflect.DeepEqual(facets.Distribution["kind"], tt.facets) {
					t.Errorf("%s, %d from %d, merged: %s, want a total of %d, facets %v", tt.what, limit, offset, body, tt.total, tt.facets)
				}
			}
		}
	}
}

// TestFacetSearchCountsReachedDocuments finds more documents than a page has hits, some under the threshold.
func TestFacetSearchCountsReachedDocuments(t *testing.T) {
	l := newLibrary(t)
	for id := range 100 {
		text := []string{"red hat", "red", "red"}[id%3]
		l.put("i", `{"filterableAttributes": ["kind", "group"]}`, fmt.Sprintf(`{"id": %d, "t": %q, "kind": "k%d", "group": %d}`, id, text, id%2, id/4))
	}
	for _, tt := range []struct{ change, want string }{
		{``, `[{"value":"k0","count":17},{"value":"k1","count":17}]`},
		{`{"distinctAttribute": "group"}`, `[{"value":"k0","count":17},{"value":"k1","count":8}]`},
	} {
		if tt.change != "" {
			l.put("i", tt.change)
		}
		for _, exhaustive := range []bool{false, true} {
			v := held(l.c.Get("i").View())
			r := &FacetRequest{FacetName: "kind", Exhaustive: exhaustive}
			r.Search.Query, r.Search.RankingScoreThreshold = "red hat", threshold(0.9)
			body, err := FacetSearch(context.Background(), nil, v, r)
			v.Release()
			if err != nil || !strings.Contains(string(body), tt.want) {
				t.Errorf("%s, exhaustive %v: %s, %v, want %s", tt.change, exhaustive, body, err, tt.want)
			}
		}
	}
}

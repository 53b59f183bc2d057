package search

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestDistinctTotals compares pages of all sizes with the whole list, from which distinct leaves out duplicates: the page is a part of
// it, and totals and facets count it. Hits come from several indexes or from one.
func TestDistinctTotals(t *testing.T) {
	l := newLibrary(t)
	rng := rand.New(rand.NewPCG(7, 3))
	words := []string{"red", "hat", "shop", "hats", "rad", "shoe"}
	for _, uid := range []string{"i", "j"} {
		var docs []string
		for id := range 40 {
			text := words[rng.IntN(len(words))]
			for range rng.IntN(3) {
				text += " " + words[rng.IntN(len(words))]
			}
			docs = append(docs, fmt.Sprintf(`{"id": %d, "t": %q, "n": %d, "group": %d, "tags": [%d, %d], "kind": "k%d"}`,
				id, text, rng.IntN(30), rng.IntN(12), rng.IntN(20), rng.IntN(20), rng.IntN(3)))
		}
		l.put(uid, `{"filterableAttributes": ["kind", "group", "tags", "n"], "sortableAttributes": ["n"]}`, docs[:15]...)
		l.put(uid, ``, docs[15:]...)
	}
	for range 60 {
		field := []string{"group", "tags", "kind", "n"}[rng.IntN(4)]
		r := Request{Query: []string{"", "red", "red hat", "hat shop red"}[rng.IntN(4)], Limit: 1000, Facets: []string{"kind"}, Distinct: &field}
		if rng.IntN(2) == 0 {
			r.Sort = []string{"n:desc"}
		}
		if rng.IntN(3) == 0 {
			r.RankingScoreThreshold = threshold(rng.Float64())
		}
		all := l.answer("i", r)
		queries := []asked{{uid: "i", weight: 1, Request: r}, {uid: "j", weight: 1, Request: r}}
		federation := FederatedRequest{Limit: 1000}
		if rng.IntN(2) == 0 {
			federation.Distinct = &field
		}
		for n := range queries {
			queries[n].Facets = nil
			if federation.Distinct != nil {
				queries[n].Distinct = nil
			}
		}
		federate := func(offset, limit int) federatedAnswer {
			f := federation
			f.Offset, f.Limit = offset, limit
			answer, body, err := l.federate(&f, map[string][]string{"i": {"kind"}, "j": {"kind"}}, slices.Clone(queries)...)
			if err != nil {
				t.Fatal(err, body)
			}
			return answer
		}
		merged := federate(0, 1000)
		for range 8 {
			offset, limit := rng.IntN(10), 1+rng.IntN(10)
			what := fmt.Sprintf("q %q, sort %v, distinct %s, threshold %v, %d from %d", r.Query, r.Sort, field, r.RankingScoreThreshold, limit, offset)
			page := r
			page.Offset, page.Limit = offset, limit
			got := l.answer("i", page)
			first := min(offset, len(all.Hits))
			want := all
			want.Hits = all.Hits[first:min(first+limit, len(all.Hits))]
			if ids(got) != ids(want) || got.Estimated != len(all.Hits) || !maps.Equal(got.Facets["kind"], all.Facets["kind"]) {
				t.Fatalf("%s: %s of %d, facets %v, want %s of %d, facets %v", what, ids(got), got.Estimated, got.Facets, ids(want), len(all.Hits), all.Facets)
			}
			page.HitsPerPage, page.Page = number(limit), number(1)
			if got := l.answer("i", page); totalOf(got) != len(all.Hits) {
				t.Fatalf("%s: a total of %d on pages, want %d", what, totalOf(got), len(all.Hits))
			}

			part := federate(offset, limit)
			first = min(offset, len(merged.Hits))
			hits := merged.Hits[first:min(first+limit, len(merged.Hits))]
			if fmt.Sprint(part.Hits) != fmt.Sprint(hits) || *part.EstimatedTotalHits != len(merged.Hits) || !reflect.DeepEqual(part.FacetsByIndex, merged.FacetsByIndex) {
				t.Fatalf("%s, merged, distinct of all %v: %v of %d, %v, want %v of %d, %v", what, federation.Distinct != nil,
					part.Hits, *part.EstimatedTotalHits, part.FacetsByIndex, hits, len(merged.Hits), merged.FacetsByIndex)
			}
		}
	}
}

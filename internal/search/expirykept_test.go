package search

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"svc/internal/aggregate"
	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
)

// TestCachedCountsOfDocumentsThatReappear changes the time to live, so that hidden documents appear again, while others are deleted. It
// compares counts and aggregations with those of a view without caches.
func TestCachedCountsOfDocumentsThatReappear(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	g := newGrown(t)
	g.set([]string{"s", "n"}, nil)
	const size, few = 3000, 8
	var docs []map[string]any
	for id := range size {
		at := int64(4e9)
		if id%100 < few {
			at = int64(id % 100) // seconds since 1970
		}
		docs = append(docs, map[string]any{"id": id, "t": "hat", "s": fmt.Sprint("v", r.IntN(9)), "n": r.IntN(50), "at": at})
	}
	g.add(docs)
	g.batch++
	if _, _, err := g.ix.Compact(t.Context(), g.batch, nil); err != nil { // counts are cached with each segment
		t.Fatal(err)
	}
	aggregations, err := aggregate.Parse([]byte(`{"a":{"terms":"s","aggregations":{"x":{"stats":"n"}}}}`), "aggregations", searchAggregations)
	if err != nil {
		t.Fatal(err)
	}
	requests := []*Request{
		{Query: "hat", Limit: 1, Facets: []string{"s", "n"}},
		{Query: "hat", Limit: 1, Aggregations: aggregations},
	}
	equal := 0 // changes that left as many documents
	before := -1
	for round := range 20 {
		change := "null"
		if round%2 == 0 {
			change = `{"attribute":"at"}`
		}
		u, err := settings.ParseUpdate([]byte(`{"timeToLive":`+change+`}`), settings.Features{})
		if err != nil {
			t.Fatal(err)
		}
		g.apply(index.UpdateSettings{Update: u})
		if round == 1 { // as many as are hidden in the other rounds
			var ids []string
			for id := range size {
				if id%100 >= 100-few {
					ids = append(ids, fmt.Sprint(id))
				}
			}
			g.apply(index.DeleteDocuments{IDs: ids})
		}
		func() {
			v := held(g.ix.View())
			defer v.Release()
			if v.Documents() == before {
				equal++
			}
			before = v.Documents()
			kept, fresh := v.Cache, query.NewCache(resultcache.New(16<<20))
			for i, q := range requests {
				var got, want string
				for range 3 {
					got = g.answer(v, q)
				}
				v.Cache = fresh
				want = g.answer(v, q)
				v.Cache = kept
				if got != want {
					t.Fatalf("round %d, request %d: %s\nwant %s", round, i, got, want)
				}
			}
		}()
	}
	if equal == 0 {
		t.Error("no change left as many documents as there were")
	}
}

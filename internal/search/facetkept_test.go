package search

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/aggregate"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/segment"
)

// TestCachedCountsAcrossViews repeats a few searches with facets while documents are added, replaced and deleted, and compares the answers
// with those of a view without caches.
func TestCachedCountsAcrossViews(t *testing.T) {
	defer func(from, few, row int) { keptFrom, fewCandidates, timeOfRow = from, few, row }(keptFrom, fewCandidates, timeOfRow)
	r := rand.New(rand.NewPCG(5, 8))
	l := newLibrary(t)
	words := []string{"red", "green", "blue", "hat", "coat"}
	document := func(id int) string {
		return fmt.Sprintf(`{"id":%d,"t":"%s %s","d":"%s","n":[%d,%d],"s":["v%d","w%d"],"m":["%d",%d,"x%d"],"c":["c%d","d%d"]}`, id, words[r.IntN(5)], words[r.IntN(5)],
			words[r.IntN(5)], r.IntN(9), r.IntN(40), r.IntN(6), r.IntN(60), r.IntN(4), r.IntN(8), r.IntN(3), r.IntN(30), r.IntN(300))
	}
	var docs []string
	const size = 1300 // segments from 1,024 rows on have caches
	for id := range size {
		docs = append(docs, document(id))
	}
	l.put("a", `{"filterableAttributes":["n","s","m","c"],"sortableAttributes":["n"],"faceting":{"sortFacetValuesBy":{"s":"count"}}}`, docs...)
	parsed := func(s string) *filter.Expr {
		e, err := filter.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	// As in rank's test of pages, the searches of a family differ from its first one in one property each.
	things := []func(q *Request){
		func(q *Request) { q.Query = words[r.IntN(5)] + " " + words[r.IntN(5)] },
		func(q *Request) { q.Query = `"` + words[r.IntN(5)] + " " + words[r.IntN(5)] + `"` },
		func(q *Request) { q.Query = "hat -" + words[r.IntN(3)] },
		func(q *Request) { q.Filter = parsed(fmt.Sprintf("n > %d", r.IntN(40))) },
		func(q *Request) { q.Filter = parsed(fmt.Sprintf("s = v%d", r.IntN(6))) },
		func(q *Request) { q.Filter = nil },
		func(q *Request) { q.Facets = []string{"m"} },
		func(q *Request) { q.SearchOn = []string{[]string{"t", "d"}[r.IntN(2)]} },
		func(q *Request) { q.Strategy = query.Strategy(r.IntN(3)) },
		func(q *Request) { q.Sort = []string{"n:desc"} },
		func(q *Request) { q.Limit = 0 },
		func(q *Request) { q.Distinct = new(string); *q.Distinct = "s" },
		func(q *Request) { q.Page = new(int); *q.Page = 1 },
		func(q *Request) { q.Rules = rulesOf(t, pinning(pinnedHit[int]{1, r.IntN(size)})) },
	}
	for _, body := range []string{`{"a":{"terms":"s","aggregations":{"x":{"stats":"n"}}},"h":{"histogram":"n","interval":7}}`, `{"a":{"stats":"n"}}`, `{"a":{"terms":"m"},"p":{"percentiles":"n"}}`} {
		aggregations, err := aggregate.Parse([]byte(body), "aggregations", searchAggregations)
		if err != nil {
			t.Fatal(err)
		}
		things = append(things, func(q *Request) { q.Aggregations = aggregations })
	}
	states := map[string]*byte{} // first byte of each cached state, by key
	survived := 0                // cached states that a later view used
	var asked []Request
	for _, first := range []Request{
		{Limit: 5, Facets: []string{"n", "s", "m", "c"}},
		{Limit: 5, Facets: []string{"n", "s", "m", "c"}, Query: "hat"},
		{Limit: 5, Facets: []string{"n", "c", "s"}, Query: "red hat", Filter: parsed("n > 3")},
		{Limit: 5, Facets: []string{"c", "s", "m"}, Query: "gren", Filter: parsed("s = v1 OR n < 20")},
	} {
		asked = append(asked, first)
		for _, change := range things {
			sibling := first
			change(&sibling)
			asked = append(asked, sibling)
		}
	}
	for round := range 12 {
		keptFrom, fewCandidates, timeOfRow = []int{1 << 10, 1}[round%2], []int{3000, 10}[round/2%2], []int{100, 1 << 20}[round/3%2]
		func() { // releases the view also after a failure: closing the catalog waits for it
			v := held(l.c.Get("a").View())
			defer v.Release()
			kept, fresh := v.Cache, query.NewCache(resultcache.New(16<<20))
			for _, q := range asked {
				answer := func() string {
					response, err := Search(t.Context(), v, &q)
					if err != nil {
						t.Fatal(err)
					}
					body, err := response.AppendJSON(context.Background(), nil)
					if err != nil {
						t.Fatal(err)
					}
					if q.Aggregations != nil && v.Cache == kept {
						survived += statesKept(t, states, v, response, &q)
					}
					hits, rest, _ := strings.Cut(string(body), `,"query"`)
					_, counted, _ := strings.Cut(rest, `,"limit"`)
					counted, _, _ = strings.Cut(counted, `,"requestUid"`)
					return hits + counted
				}
				got := answer()
				v.Cache = fresh
				want := answer()
				v.Cache = kept
				if got != want {
					t.Fatalf("round %d: %+v: %s\nwant %s", round, q, got, want)
				}
			}
		}()
		var changed []string
		for range r.IntN(4) {
			changed = append(changed, document(r.IntN(size+20)))
		}
		if round%4 == 3 {
			l.put("a", "", changed...)
			continue // the same segments except for these
		}
		l.put("a", "", append(changed, document(r.IntN(size)))...)
	}
	if survived == 0 {
		t.Error("no state of aggregations was cached across views")
	}
}

// statesKept records the cached states of a request's result, and returns how many of them were known.
func statesKept(t *testing.T, known map[string]*byte, v *index.View, r *Response, q *Request) (again int) {
	s := statesOf(&candidateCounts{ctx: t.Context(), view: v, found: r.result.Result}, q.Aggregations)
	if s == nil {
		return 0
	}
	for seg := range v.Segments {
		scope := s.scope(seg)
		if scope == nil {
			continue
		}
		kept, ok := aggregationStates.Get(scope, s.buf)
		if !ok {
			continue
		}
		key, first := fmt.Sprint(scope.Owner(), string(s.buf)), &kept.state[0]
		if known[key] == first {
			again++
		}
		known[key] = first
	}
	return again
}

// TestAggregationsCountOnceDuringUpdates aggregates while matching documents are updated: from the first stale state on, counts are cached
// too, and follow the updates.
func TestAggregationsCountOnceDuringUpdates(t *testing.T) {
	l := newLibrary(t)
	const size = 3000
	document := func(id, version int) string {
		return fmt.Sprintf(`{"id":%d,"t":"hat %d","s":"v%d"}`, id, version, id%7)
	}
	var docs []string
	for id := range size {
		docs = append(docs, document(id, 0))
	}
	l.put("a", `{"filterableAttributes":["s"]}`, docs...)
	aggregations, err := aggregate.Parse([]byte(`{"a":{"terms":"s"}}`), "aggregations", searchAggregations)
	if err != nil {
		t.Fatal(err)
	}
	q := &Request{Limit: 1, Aggregations: aggregations}
	for round := range 5 {
		l.put("a", "", document(round, 1))
		func() {
			v := held(l.c.Get("a").View())
			defer v.Release()
			response, err := Search(t.Context(), v, q)
			if err != nil {
				t.Fatal(err)
			}
			found := response.result.Result
			id, _ := v.Fields.ID("s")
			seg := slices.IndexFunc(v.Segments, func(s segment.Live) bool { return s.Rows() >= size })
			if seg < 0 || found.AppendKey == nil {
				t.Fatal("no segment caches counts")
			}
			kept, ok := facetCounts.Get(v.Cache.OfFile(seg), found.AppendKey(append(binary.LittleEndian.AppendUint16(nil, uint16(id)), 1), seg))
			if ok != (round > 0) {
				t.Fatalf("round %d: counts are cached: %v", round, ok)
			}
			if !ok {
				return
			}
			if kept.candidates != found.Count(seg) || kept.candidates != size-round-1 {
				t.Errorf("round %d: counts of %d candidates, want %d of %d documents", round, kept.candidates, found.Count(seg), size)
			}
		}()
	}
}

// TestCachedCountsLoseValues deletes documents one by one that are the only ones with their facet values.
func TestCachedCountsLoseValues(t *testing.T) {
	g := newGrown(t)
	g.set([]string{"n", "s"}, nil)
	var docs []map[string]any
	for id := range 4000 {
		d := map[string]any{"id": id, "t": "coat", "n": id, "s": fmt.Sprint("v", id)}
		if id%400 == 0 {
			d["t"] = "hat"
		}
		docs = append(docs, d)
	}
	g.add(docs)
	for gone := 0; gone < 4000; gone += 400 {
		want := map[string]int{}
		for id := gone; id < 4000; id += 400 {
			want[fmt.Sprint(id)] = 1
		}
		for range 3 { // first count, count for the cache, cached
			v := held(g.ix.View())
			ctx := context.Background()
			body := got(got(Search(ctx, v, &Request{Query: "hat", Facets: []string{"n", "s"}})).AppendJSON(ctx, nil))
			v.Release()
			var answer struct{ FacetDistribution struct{ N, S map[string]int } }
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Fatal(err)
			}
			texts := map[string]int{}
			for id, n := range want {
				texts["v"+id] = n
			}
			if !maps.Equal(answer.FacetDistribution.N, want) || !maps.Equal(answer.FacetDistribution.S, texts) {
				t.Fatalf("without those below %d: got %v, want %v", gone, answer.FacetDistribution, want)
			}
		}
		g.apply(index.DeleteDocuments{IDs: []string{fmt.Sprint(gone)}})
	}
}

package rank

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/query"
	"svc/internal/resultcache"
)

// TestRoundsOnlyInFirstView searches the same words in a series of views: only the first one searches in rounds. All results are equal.
func TestRoundsOnlyInFirstView(t *testing.T) {
	defer func(c, l, r int) { classRows, listRows, retryRows = c, l, r }(classRows, listRows, retryRows)
	classRows, listRows, retryRows = 2, 3, 4
	var docs []*document
	for i := range 200 {
		docs = append(docs, doc(i, "title", []string{"apple pear", "apple tart with pear", "pear apple"}[i%3], "price", float64(i%40)))
	}
	ix := build(t, parseSettings(t, `{}`), [][]*document{docs}, nil)
	memory := resultcache.New(16 << 20)
	scope := memory.Scope()
	var before []Hit
	ran := taken{}
	for n := range 3 {
		view := *ix
		view.Cache = query.NewCache(memory, scope)
		for range 2 {
			if got := comesAgain(t, &view, "tart pear"); got != (n > 0) {
				t.Errorf("view %d: searched in an earlier view: %v", n, got)
			}
		}
		if comesAgain(t, &view, []string{"tart with", "with pear", "pear tart"}[n]) {
			t.Errorf("view %d: words that no view searched count as searched", n)
		}
		got, err := ran.search(&view, &Request{Query: "apple pear", Distinct: "price", Limit: 10, MaxTotal: 1000})
		if err != nil {
			t.Fatal(err)
		}
		view.Cache.Close()
		if n > 0 && !slices.EqualFunc(got.Hits, before, func(a, b Hit) bool { return a.ID == b.ID }) {
			t.Errorf("view %d: %v, want %v", n, found(got), found(&Result{Hits: before}))
		}
		before = got.Hits
	}
	ran.wants(t, distinctRetry)
}

// TestRoundsKeepKnownDuplicatesOut compares searches in rounds with others while distinct changes from marking duplicates to noting
// values. The marked duplicates must stay out of later rounds: they may rank before the last hit, and rounds end at the first document
// that is no tie with it.
func TestRoundsKeepKnownDuplicatesOut(t *testing.T) {
	defer func(c, l, r, h, m int) { classRows, listRows, retryRows, retryHits, maxMarking = c, l, r, h, m }(classRows, listRows, retryRows, retryHits, maxMarking)
	rng := rand.New(rand.NewPCG(5, 8))
	ran := taken{}
	for n := range 200 {
		classRows, listRows, retryHits, maxMarking = 2, 3, 1+rng.IntN(3), 1+rng.IntN(4)
		var parts [][]*document
		id := 0
		for range 1 + rng.IntN(2) {
			var part []*document
			for range 20 {
				values := []any{"title", strings.Repeat("pear ", rng.IntN(4)) + "apple tart"}
				if rng.IntN(2) == 0 {
					values = append(values, "price", float64(rng.IntN(4)))
				}
				part = append(part, doc(id, values...))
				id++
			}
			parts = append(parts, part)
		}
		request := &Request{Query: "apple tart", Distinct: "price", Limit: 1 + rng.IntN(8), MaxTotal: 1000}
		var got [2]*Result
		for i, most := range []int{4, 1000} {
			retryRows = most
			r := *request
			var err error
			if got[i], err = ran.search(build(t, parseSettings(t, `{}`), parts, nil), &r); err != nil {
				t.Fatal(err)
			}
		}
		if found(got[0]) != found(got[1]) || got[0].Total != got[1].Total {
			t.Fatalf("round %d, limit %d: %s of %d, want %s of %d", n, request.Limit, found(got[0]), got[0].Total, found(got[1]), got[1].Total)
		}
	}
	ran.wants(t, distinctRetry)
}

// comesAgain calls inLaterViews for the bucket of two words.
func comesAgain(t *testing.T, ix *Index, words string) bool {
	t.Helper()
	s := &search{job: job{request: request{ctx: context.Background(), r: &Request{Query: words}}, findings: findings{ix: ix}}, scratch: scratch{memory: memories.Get().(*memory)}}
	defer s.release()
	terms, err := read(s)
	if err != nil {
		t.Fatal(err)
	}
	if s.graph, err = ix.Build(s.ctx, terms, nil, s.late); err != nil {
		t.Fatal(err)
	}
	return inLaterViews(&s.findings, &bucket{interpretations: []interpretation{{nodes: []int{0, len(s.graph.Nodes) - 1}}}}, 1)
}

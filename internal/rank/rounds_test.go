package rank

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRoundsStartWherePositionsAreRead searches each word once, in large buckets with groups. attributeRank splits buckets by the fields
// of the word, without classes of all its documents, and rounds start after it. The hits equal a selection from all hits.
func TestRoundsStartWherePositionsAreRead(t *testing.T) {
	defer func(l, group int) { listRows, groupRows = l, group }(listRows, groupRows)
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 5))
	word := func() string { return fmt.Sprintf("w%02d", rng.IntN(40)) }
	var parts [][]*document
	id := 0
	for _, size := range []int{900, 200} {
		var part []*document
		for range size {
			text := make([]string, 1+rng.IntN(9))
			for i := range text {
				text[i] = word()
			}
			part = append(part, doc(id, "title", word(), "text", strings.Join(text, " "), "kind", float64(min(rng.IntN(30), rng.IntN(30)))))
			id++
		}
		parts = append(parts, part)
	}
	ix := build(t, parseSettings(t, `{"filterableAttributes":["kind"],"searchableAttributes":["title","text"],
		"rankingRules":["words","typo","proximity","attributeRank","wordPosition","exactness"]}`), parts, nil)
	ran, alone := taken{}, 0 // alone counts searches without rounds
	for n := range 40 {
		listRows, groupRows = 4+rng.IntN(40), 10+rng.IntN(90)
		asked := &Grouping{Field: "kind", New: 1 + rng.IntN(30), Hits: 1 + rng.IntN(3)}
		r := Request{Query: fmt.Sprintf("w%02d", n), Limit: 1000, MaxTotal: 2000, Grouping: asked, Plan: new(Plan)}
		got := mustSearch(t, ix, r)
		ran.add(r.Plan)
		rounds := 0
		for _, step := range r.Plan.Steps {
			switch {
			case step.Rule == "attributeRank" && step.Path == string(madeClasses):
				t.Errorf("seed %d, search %d, %+v: attributeRank makes classes of all documents with a word", seed, n, *asked)
			case step.Rule == "attributeRank" && step.Path == string(costSums) && step.Calls > 1:
				t.Errorf("seed %d, search %d, %+v: attributeRank splits the documents %d times", seed, n, *asked, step.Calls)
			case step.Path == string(groupRounds):
				rounds++
			}
		}
		if rounds == 0 {
			alone++
		}
		want := hitsOfGroups(t, ix, r)
		if !slices.EqualFunc(got.Hits, want, func(a, b Hit) bool { return a.ID == b.ID }) {
			t.Errorf("seed %d, search %d, %+v:\nhits %s, want %s", seed, n, *asked, found(got), found(&Result{Hits: want}))
		}
	}
	if ran.wants(t, groupRounds, groupPrune, costSums); alone == 0 {
		t.Error("all searches used rounds")
	}
}

// TestRoundsCountPrunedDocuments searches large buckets in rounds, whose rules judge no more documents than the round requests. Documents
// of full groups count among these, and are pruned before they are pulled.
func TestRoundsCountPrunedDocuments(t *testing.T) {
	defer func(l, hits, group int) { listRows, roundHits, groupRows = l, hits, group }(listRows, roundHits, groupRows)
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 4))
	word := func() string { return fmt.Sprintf("w%02d", rng.IntN(40)) }
	var parts [][]*document
	id := 0
	for _, size := range []int{1200, 300} {
		var part []*document
		for range size {
			title, text := make([]string, 1+rng.IntN(6)), make([]string, rng.IntN(12))
			for _, words := range [][]string{title, text} {
				for i := range words {
					words[i] = word()
				}
			}
			kind := min(rng.IntN(30), rng.IntN(30), rng.IntN(30))
			if rng.IntN(4) > 0 {
				kind = 0
			}
			part = append(part, doc(id, "title", strings.Join(title, " "), "text", strings.Join(text, " "), "kind", float64(kind), "price", float64(rng.IntN(60))))
			id++
		}
		parts = append(parts, part)
	}
	ix := build(t, parseSettings(t, `{"filterableAttributes":["kind"],"sortableAttributes":["price"],
		"rankingRules":["words","typo","proximity","attributeRank","wordPosition","sort","exactness"]}`), parts, nil)
	ran := taken{}
	for n := range 40 {
		listRows, roundHits, groupRows = 4+rng.IntN(40), 4+rng.IntN(30), 20+rng.IntN(50)
		asked := &Grouping{Field: "kind", New: 1 + rng.IntN(30), Hits: 1 + rng.IntN(3)}
		what := fmt.Sprintf("seed %d, search %d, %+v", seed, n, *asked)
		r := Request{Query: fmt.Sprintf("w%02d", n), Limit: 1000, MaxTotal: 2000, Grouping: asked, Plan: new(Plan), Scores: rng.IntN(2) == 0}
		if n%4 == 0 {
			threshold := 0.9 + rng.Float64()/12
			r.Threshold = &threshold
		}
		if n%3 > 0 {
			r.Sort = []SortKey{{Field: "price"}}
		}
		got := mustSearch(t, ix, r) // before the search for all hits, whose cached results would change the access path
		ran.add(r.Plan)
		want := hitsOfGroups(t, ix, r)
		if !slices.EqualFunc(got.Hits, want, func(a, b Hit) bool { return a.ID == b.ID && a.Score == b.Score }) {
			t.Errorf("%s:\nhits %s, want %s", what, found(got), found(&Result{Hits: want}))
		}
	}
	ran.wants(t, groupRounds, groupPrune, scanInOrder)
}

// TestRoundsCountHopelessParts fills a group with the first parts of a set: the remaining parts are dropped at once. They count as
// documents of the round, so documents of the other group, after the set, come in the next round.
func TestRoundsCountHopelessParts(t *testing.T) {
	defer func(l, hits, group int) { listRows, roundHits, groupRows = l, hits, group }(listRows, roundHits, groupRows)
	listRows, roundHits, groupRows = 8, 32, 20
	var part []*document
	for id := range 130 {
		if id < 90 { // 30 parts of the sort
			part = append(part, doc(id, "title", "x", "kind", "full", "price", float64(id/3)))
		} else {
			part = append(part, doc(id, "title", "y x", "kind", "behind", "price", 1.0))
		}
	}
	ix := build(t, parseSettings(t, `{"filterableAttributes":["kind"],"sortableAttributes":["price"],"rankingRules":["words","wordPosition","sort"]}`),
		[][]*document{part}, nil)
	ran := taken{}
	r := Request{Query: "x", Sort: []SortKey{{Field: "price"}}, Limit: 200, MaxTotal: 200, Grouping: &Grouping{Field: "kind", New: 2, Hits: 3}, Plan: new(Plan)}
	got := found(mustSearch(t, ix, r))
	ran.add(r.Plan)
	if want := "0 1 2 90 91 92"; got != want {
		t.Errorf("hits %s, want %s", got, want)
	}
	ran.wants(t, groupRounds, scanInOrder, walkValues)
}

// hitsOfGroups selects the hits of groups from all hits, for a grouping by a field with one value in each document.
func hitsOfGroups(t *testing.T, ix *Index, r Request) (kept []Hit) {
	t.Helper()
	asked := r.Grouping
	columns := GroupColumns(columnsOf(ix, asked.Field))
	r.Grouping, r.Limit = nil, 2000
	missing := map[GroupKey]int{}
	for _, h := range mustSearch(t, ix, r).Hits {
		key := columns.AppendKeys(nil, h.Segment, h.Row)[0]
		left, met := missing[key]
		if !met && len(missing) < asked.New {
			left = asked.Hits
		}
		if left > 0 {
			kept = append(kept, h)
			missing[key] = left - 1
		}
	}
	return kept
}

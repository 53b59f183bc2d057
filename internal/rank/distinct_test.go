package rank

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"svc/segment"
)

// TestDistinctAgainstOracle deduplicates documents with any number of values of a field, in wide and narrow ranges, some sorted and some
// deleted, and compares hits and totals.
func TestDistinctAgainstOracle(t *testing.T) {
	defer func(n int) { maxMarking = n }(maxMarking)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	ran := taken{}
	defer func() { ran.wants(t, fewKept) }()
	for round := 0; round < 60 || round < 1200 && ran.lacks(fewKept); round++ {
		wide := 1 + rng.IntN([]int{3, 30, 600}[rng.IntN(3)])
		parts := make([][]*document, 1+rng.IntN(5))
		deleted := map[segment.DocID]bool{}
		var live []*document
		turn := rng.IntN(2) == 0 // the ids of all segments interleave
		n := 1 + rng.IntN(300)
		for id := range n {
			d := doc(id, "price", rng.IntN(20))
			values := []int{1, 1, 0, 1, 1 + rng.IntN(3)}[rng.IntN(5)]
			strings := round%3 == 0 // at most one value
			if strings {
				values = min(values, 1)
			}
			for range values {
				kind := rng.IntN(6)
				if strings {
					kind = max(kind, 1)
				}
				switch v := rng.IntN(wide); kind {
				case 0:
					d.values["group"] = append(d.values["group"], float64(v))
				case 1:
					d.values["group"] = append(d.values["group"], []any{"", "A" + fmt.Sprint(v)}[rng.IntN(2)])
				default:
					d.values["group"] = append(d.values["group"], "a"+fmt.Sprint(v))
				}
			}
			at := id * len(parts) / n
			if turn {
				at = rng.IntN(len(parts))
			}
			parts[at] = append(parts[at], d)
			if rng.IntN(6) == 0 {
				deleted[d.id] = true
			} else {
				live = append(live, d)
			}
		}
		ix := build(t, parseSettings(t, `{"filterableAttributes":["group"],"sortableAttributes":["price"]}`), parts, deleted)
		o := newOracle(ix, live)
		for range 12 {
			maxMarking = []int{0, 1, 5, 1 << 10}[rng.IntN(4)]
			r := &Request{Distinct: "group", Limit: rng.IntN(40), Offset: rng.IntN(5) * rng.IntN(20), MaxTotal: 1000, Exhaustive: rng.IntN(3) == 0, Universe: universe(ix)}
			if rng.IntN(2) == 0 {
				r.Sort = []SortKey{{Field: "price", Desc: rng.IntN(2) == 0}}
			}
			got, err := Search(context.Background(), ix, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, total := range []int{1000, 1 + rng.IntN(30)} {
				alone, whole := *r, *r
				alone.MaxTotal, whole.MaxTotal, alone.HitsOnly = total, total, true
				only, err := ran.search(ix, &alone)
				if err != nil {
					t.Fatal(err)
				}
				all, err := Search(context.Background(), ix, &whole)
				if err != nil {
					t.Fatal(err)
				}
				if found(only) != found(all) || only.Total != all.Total {
					t.Fatalf("round %d: %d documents, %+v: of %d hits alone %s, with candidates of %d %s",
						round, n, whole, only.Total, found(only), all.Total, found(all))
				}
			}
			hits, candidates := o.rank(r)
			id := func(h Hit) segment.DocID { return h.ID }
			var ids []segment.DocID
			for m := newMerge(ix, got.Candidates); m.next(); {
				ids = append(ids, ix.Segments[m.segment].DocID(segment.Row(m.row)))
			}
			if !slices.EqualFunc(got.Hits, hits, func(a, b Hit) bool { return id(a) == id(b) }) || !slices.Equal(ids, candidates) {
				t.Fatalf("round %d: %d documents in %d segments, %d kept ones marked, %+v:\nhits %v, want %v\ncandidates %v, want %v",
					round, n, len(parts), maxMarking, r, found(got), found(&Result{Hits: hits}), ids, candidates)
			}
		}
	}
}

// TestDuplicatesInASkippedBucket has a bucket with more documents than are still to be skipped, but fewer without duplicates of earlier
// documents. It must be ranked: which documents with several values are kept depends on their order.
func TestDuplicatesInASkippedBucket(t *testing.T) {
	defer func(c, l int) { classRows, listRows = c, l }(classRows, listRows)
	docs := []*document{
		doc(0, "title", "alpha beta gamma", "tag", "x"),
		doc(1, "title", "alpha beta", "tag", "u", "tag", "v", "price", 9),
		doc(2, "title", "alpha beta", "tag", "v", "price", 1),
		doc(3, "title", "alpha beta", "tag", "u", "price", 2),
		doc(4, "title", "alpha beta", "tag", "x", "price", 5),
		doc(5, "title", "alpha beta", "tag", "x", "price", 5),
		doc(6, "title", "alpha beta", "tag", "x", "price", 5),
		doc(7, "title", "alpha", "tag", "a", "price", 4),
		doc(8, "title", "alpha", "tag", "b", "price", 3),
		doc(9, "title", "alpha", "tag", "c", "price", 2),
		doc(10, "title", "alpha", "tag", "d", "price", 1),
	}
	ix := build(t, parseSettings(t, `{"rankingRules":["words","price:asc"]}`), [][]*document{docs}, nil)
	for _, least := range []int{1, 1000} {
		classRows, listRows = least, least
		for _, alone := range []bool{false, true} {
			got := mustSearch(t, ix, Request{Query: "alpha beta gamma", Distinct: "tag", Offset: 4, HitsOnly: alone})
			if want := "9 8 7"; found(got) != want {
				t.Errorf("with sets from %d documents on, hits alone %v: %s, want %s", least, alone, found(got), want)
			}
		}
	}
}

// TestDuplicatesCountForScores has a bucket in which only a duplicate matches one of two interpretations of the query: the number of ranks
// of a rule depends on the interpretations.
func TestDuplicatesCountForScores(t *testing.T) {
	defer func(c, l int) { classRows, listRows = c, l }(classRows, listRows)
	docs := []*document{
		doc(0, "title", "sun flower", "tag", "x", "price", 1),
		doc(1, "title", "sun flower", "tag", "x", "price", 2),
		doc(2, "title", "sunflower", "tag", "y", "price", 2),
		doc(3, "title", "sunflower", "tag", "z", "price", 2),
	}
	ix := build(t, parseSettings(t, `{"rankingRules":["price:asc","words","proximity"]}`), [][]*document{docs}, nil)
	var want []Hit
	for _, least := range []int{1000, 1} {
		classRows, listRows = least, least
		r := Request{Query: "sun flower ", Distinct: "tag", Scores: true, Details: true}
		got := mustSearch(t, ix, r).Hits
		if least == 1 {
			compareHits(t, "price, words, proximity", r, got, want)
		}
		want = got
	}
	if len(want) != 3 {
		t.Errorf("%d hits", len(want))
	}
}

// TestDuplicatesKeepClassesOfDistance sorts documents less than a metre apart, after a rule that looks at words. Classes of about equal
// distance are those of all documents, duplicates of earlier hits included: so hits are the first of their values in the whole list,
// whatever the page and with or without scores.
func TestDuplicatesKeepClassesOfDistance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	dropped := 0 // duplicates of hits that match more words
	for range 30 {
		var parts [][]*document
		kind, words := map[segment.DocID]float64{}, map[segment.DocID]int{}
		for range 1 + rng.IntN(3) {
			var part []*document
			for range 80 {
				id := len(kind)
				text := []string{"red", "red hat"}[rng.IntN(2)]
				d := doc(id, "title", text, "kind", float64(rng.IntN(60)), "_geo", point{0, float64(rng.IntN(60)) * 0.6 / metresOfDegree})
				kind[d.id], words[d.id] = d.values["kind"][0].(float64), len(text)
				part = append(part, d)
			}
			parts = append(parts, part)
		}
		ix := build(t, parseSettings(t, `{"filterableAttributes":["kind"],"sortableAttributes":["_geo"],"rankingRules":["words","sort","proximity"]}`), parts, nil)
		r := Request{Query: "red hat", Limit: 1000, MaxTotal: 1000, Sort: []SortKey{{Geo: true, Desc: rng.IntN(2) == 0}}}
		var want []segment.DocID
		first := map[float64]segment.DocID{}
		for _, h := range mustSearch(t, ix, r).Hits {
			of, met := first[kind[h.ID]]
			switch {
			case !met:
				first[kind[h.ID]] = h.ID
				want = append(want, h.ID)
			case words[h.ID] < words[of]:
				dropped++
			}
		}
		for _, scores := range []bool{false, true} {
			r := r
			r.Distinct, r.Scores, r.HitsOnly = "kind", scores, rng.IntN(2) == 0
			r.Offset, r.Limit = rng.IntN(2)*rng.IntN(40), 1+rng.IntN(80)
			var got []segment.DocID
			for _, h := range mustSearch(t, ix, r).Hits {
				got = append(got, h.ID)
			}
			page := want[min(r.Offset, len(want)):min(r.Offset+r.Limit, len(want))]
			if !slices.Equal(got, page) {
				t.Errorf("scores %t, offset %d:\n%v, want\n%v", scores, r.Offset, got, page)
			}
		}
	}
	if dropped < 500 {
		t.Errorf("only %d duplicates of hits that match more words", dropped)
	}
}

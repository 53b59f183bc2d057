package rank

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"svc/segment"
)

// TestDistinctAgainstOracle deduplicates documents with any number of values of one field, wide and narrow, some of them sorted and some
// of them deleted, and looks at the hits and at what counts.
func TestDistinctAgainstOracle(t *testing.T) {
	defer func(n int) { maxMarking = n }(maxMarking)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 60 {
		wide := 1 + rng.IntN([]int{3, 30, 600}[rng.IntN(3)])
		parts := make([][]*document, 1+rng.IntN(5))
		deleted := map[segment.DocID]bool{}
		var live []*document
		turn := rng.IntN(2) == 0 // documents of all segments stand between each other
		n := 1 + rng.IntN(300)
		for id := range n {
			d := doc(id, "price", rng.IntN(20))
			for range []int{1, 1, 0, 1, 1 + rng.IntN(3)}[rng.IntN(5)] {
				switch v := rng.IntN(wide); rng.IntN(6) {
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
			hits, candidates := o.rank(r)
			id := func(h Hit) segment.DocID { return h.ID }
			var ids []segment.DocID
			for m := newMerge(ix, got.Candidates); m.next(); {
				ids = append(ids, m.id)
			}
			if !slices.EqualFunc(got.Hits, hits, func(a, b Hit) bool { return id(a) == id(b) }) || !slices.Equal(ids, candidates) {
				t.Fatalf("round %d: %d documents in %d segments, %d kept ones marked, %+v:\nhits %v, want %v\ncandidates %v, want %v",
					round, n, len(parts), maxMarking, r, found(got), found(&Result{Hits: hits}), ids, candidates)
			}
		}
	}
}

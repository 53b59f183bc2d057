package rank

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// TestSortOfARangeAgainstOracle sorts documents by what they were filtered by: those with the first or the last values are not among
// them, and some have several values, on both sides of the bound.
func TestSortOfARangeAgainstOracle(t *testing.T) {
	defer func(l, i int) { listRows, idleSteps = l, i }(listRows, idleSteps)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	passed, ran := 0, taken{}
	for round := range 80 {
		wide := []int{3, 40, 400}[rng.IntN(3)]
		parts := make([][]*document, 1+rng.IntN(4))
		deleted := map[segment.DocID]bool{}
		low, high := rng.IntN(wide), wide-rng.IntN(wide)/2
		var among []*document
		n := 100 + rng.IntN(300)
		for id := range n {
			d, in := doc(id), false
			for range []int{1, 1, 1, 0, 1 + rng.IntN(3)}[rng.IntN(5)] {
				v := rng.IntN(wide)
				in = in || low <= v && v <= high
				if rng.IntN(4) == 0 {
					d.values["price"] = append(d.values["price"], "a"+strconv.Itoa(v))
				} else {
					d.values["price"] = append(d.values["price"], float64(v))
				}
			}
			at := rng.IntN(len(parts))
			parts[at] = append(parts[at], d)
			if rng.IntN(6) == 0 {
				deleted[d.id] = true
			} else if in {
				among = append(among, d)
			}
		}
		ix := build(t, parseSettings(t, `{"sortableAttributes":["price"]}`), parts, deleted)
		o := newOracle(ix, among)
		allowed := make([]*roaring.Bitmap, len(ix.Segments))
		for i, s := range ix.Segments {
			allowed[i] = roaring.New()
			for it := s.LiveRows().Iterator(); it.HasNext(); {
				row := it.Next()
				if slices.ContainsFunc(among, func(d *document) bool { return d.id == s.DocID(segment.Row(row)) }) {
					allowed[i].Add(row)
				}
			}
		}
		for range 10 {
			listRows, idleSteps = rng.IntN(3), 1+rng.IntN(4)
			r := &Request{Limit: 1 + rng.IntN(10), Offset: rng.IntN(2) * rng.IntN(10), MaxTotal: 1000, Universe: allowed,
				Sort: []SortKey{{Field: "price", Desc: rng.IntN(2) == 0}}}
			got, err := ran.search(ix, r)
			if err != nil {
				t.Fatal(err)
			}
			hits, _ := o.rank(r)
			passed += len(hits)
			if !slices.EqualFunc(got.Hits, hits, func(a, b Hit) bool { return a.ID == b.ID }) {
				t.Fatalf("round %d: %d documents in %d segments, %d among them from %d to %d, %+v:\n%s, want %s",
					round, n, len(parts), len(among), low, high, r.Sort, found(got), found(&Result{Hits: hits}))
			}
		}
	}
	ran.wants(t, walkValues, rowByRow)
	if passed == 0 {
		t.Error("no document was found")
	}
}

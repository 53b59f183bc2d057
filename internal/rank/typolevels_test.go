package rank

import (
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/segment"
)

// TestTypoLevelsOfLiveDocuments checks that the levels of a node's live documents equal its levels without the deleted documents, with and
// without lookups of single documents.
func TestTypoLevelsOfLiveDocuments(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	alive := 0
	for range 500 {
		match := &query.Match{Segments: []query.SegmentRows{{Any: roaring.New()}}}
		found := &match.Segments[0]
		for level := range found.At {
			found.At[level] = roaring.New()
		}
		deleted := roaring.New()
		size := 1 + rng.IntN(200_000)
		for range 1 + rng.IntN(500) {
			row := uint32(rng.IntN(size))
			if found.Any.CheckedAdd(row) {
				found.At[rng.IntN(query.Levels)].Add(row)
			}
			if rng.IntN(20) == 0 {
				deleted.Add(row)
			}
		}
		in := roaring.AndNot(found.Any, deleted)
		if rng.IntN(3) == 0 { // only some live documents
			for it := in.Clone().Iterator(); it.HasNext(); {
				if row := it.Next(); rng.IntN(4) == 0 {
					in.Remove(row)
				}
			}
		}
		if in.IsEmpty() {
			continue
		}
		if isAlive(in, found.Any, deleted) {
			alive++
		}
		s := &findings{
			ix:     &Index{Segments: []segment.Live{{Deleted: deleted}}},
			graph:  &query.Graph{Nodes: []query.Node{{Match: match, Len: 1}}},
			onlyAt: []int{-1},
		}
		levels := newTypoLevels(s, &interpretation{nodes: []int{0}, rows: rows{in}})
		for cost := range query.Levels {
			got, want := levels.at(cost)[0], roaring.And(in, found.At[cost])
			if got == nil {
				got = roaring.New()
			}
			if !got.Equals(want) {
				t.Fatalf("%d typos: %d documents, want %d", cost, got.GetCardinality(), want.GetCardinality())
			}
		}
	}
	if alive == 0 {
		t.Error("no set had all live documents")
	}
}

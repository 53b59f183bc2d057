package ann

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestGatheredSigns checks that a search by gathered signs finds the same as one by all signs, and reads only the gathered ones. If more
// rows than allowed were gathered, it must return only allowed rows, and all of the nearest if it compares enough.
func TestGatheredSigns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 7))
	same, fewer := 0, 0
	for range 300 {
		stride, rows := 64*(1+rng.IntN(3)), 1+rng.IntN(6000)
		codes, query := make([]int8, rows*stride), make([]int8, stride)
		for i := range codes {
			codes[i] = int8(rng.IntN(5) - 2)
		}
		for i := range query {
			query[i] = int8(rng.IntN(255) - 127)
		}
		c, s := Codes{Bytes: codes, Stride: stride}, Signs{Stride: stride / 64, Dimensions: stride, Query: query}
		for row := range rows {
			s.Words = AppendSigns(s.Words, c.row(uint32(row)), make([]int8, stride))
		}
		allowed, part := roaring.New(), 1+rng.IntN(20)
		for row := range uint32(rows) {
			if rng.IntN(part) == 0 {
				allowed.Add(row)
			}
		}
		look, r := 1+rng.IntN(300), Reach{Pool: 1 + rng.IntN(100), Wanted: rng.IntN(20)}
		g := s.Gather(allowed)
		with := s
		with.Gathered = &g
		with.Touch = func([]uint64) { t.Fatal("signs outside the gathered ones are read") }
		with.TouchRows = func([]uint32) { t.Fatal("signs outside the gathered ones are read") }
		if s.Stride != 2 || s.marks(allowed) {
			same++
			want := s.Among(nil, c, query, look, r, allowed)
			if got := with.Among(nil, c, query, look, r, allowed); !slices.Equal(got, want) {
				t.Fatalf("%d of %d rows of %d, look %d, %+v:\ngot %v\nwant %v", allowed.GetCardinality(), rows, stride, look, r, got, want)
			}
		}
		left := allowed.Clone()
		for it := allowed.Iterator(); it.HasNext(); {
			if row := it.Next(); rng.IntN(8) == 0 {
				left.Remove(row)
			}
		}
		if !with.gathered(left.GetCardinality()) || left.IsEmpty() {
			continue
		}
		fewer++
		want := Scan(nil, c, query, r.settled(), left)
		order := func(a, b Neighbour) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Row, b.Row)) }
		slices.SortFunc(want, order)
		if got := with.Among(nil, c, query, rows, r, left); !slices.Equal(got, want) {
			t.Fatalf("%d of %d gathered rows of %d:\ngot %v\nwant %v", left.GetCardinality(), len(g.Rows), stride, got, want)
		}
	}
	if same < 100 || fewer < 100 {
		t.Errorf("%d searches among gathered rows, and %d among some of them", same, fewer)
	}
}

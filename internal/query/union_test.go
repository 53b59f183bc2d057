package query

import (
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestUnion compares with the library's union.
func TestUnion(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		rows := 1 + r.IntN(200_000)
		set := func() *roaring.Bitmap {
			b := roaring.New()
			for range r.IntN(3) {
				from := r.IntN(rows)
				b.AddRange(uint64(from), uint64(min(rows, from+r.IntN(3000))))
			}
			for range r.IntN(1000) {
				b.Add(uint32(r.IntN(rows)))
			}
			if r.IntN(2) == 0 {
				b.RunOptimize()
			}
			return b
		}
		a, b := set(), set()
		before := a.Clone()
		if got, want := union(a, b, rows), roaring.Or(a, b); !got.Equals(want) {
			t.Fatalf("%d rows of %d and %d, want %d", got.GetCardinality(), a.GetCardinality(), b.GetCardinality(), want.GetCardinality())
		}
		if !a.Equals(before) {
			t.Fatal("an operand was modified")
		}
	}
}

package rank

import (
	"math/rand/v2"
	"testing"

	"svc/segment/rowlist"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestLess compares pruned sets, with and without runs, of few and many rows, with the library's differences.
func TestLess(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := &search{scratch: scratch{memory: new(memory)}}
	s.pos.Open()
	dense := 0
	for range 500 {
		rows := 1 + r.IntN(150_000)
		set := func(runs int) *roaring.Bitmap {
			b := roaring.New()
			for range runs {
				from := r.IntN(rows)
				b.AddRange(uint64(from), uint64(min(rows, from+r.IntN(5000))))
			}
			for range r.IntN(100) {
				b.Add(uint32(r.IntN(rows)))
			}
			if r.IntN(20) == 0 {
				b.Add(uint32(rows + r.IntN(1000))) // rows of a forged segment
			}
			if r.IntN(2) == 0 {
				b.RunOptimize()
			}
			return b
		}
		a := set(r.IntN(4))
		var sets []*roaring.Bitmap
		want := a.Clone()
		for range r.IntN(4) {
			b := set(r.IntN(2))
			if r.IntN(20) == 0 {
				b.Or(a)
			}
			sets = append(sets, b)
			want.AndNot(b)
		}
		if a.HasRunCompression() && cardinality(a) >= rows/rowlist.BitsPer {
			dense++
		}
		before := a.Clone()
		got := s.lessAll(a, sets, rows)
		if got == nil {
			got = roaring.New()
		}
		if !got.Equals(want) || !a.Equals(before) {
			t.Fatalf("%d of %d rows are left, want %d", cardinality(got), cardinality(a), cardinality(want))
		}
	}
	if dense < 50 {
		t.Errorf("%d sets were many runs", dense)
	}
}

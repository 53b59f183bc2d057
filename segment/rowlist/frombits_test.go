package rowlist

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestFromBits compares sets of all densities with the library's, before and after changes.
func TestFromBits(t *testing.T) {
	rng := testRand(t)
	densities := []float64{0, 0.0001, 0.004, 0.02, 0.0625, 0.07, 0.5, 1}
	for range 300 {
		words := make([]uint64, rng.IntN(40))
		if rng.IntN(3) == 0 {
			words = make([]uint64, rng.IntN(9000))
		}
		density := 0.0
		for i := range words {
			if i%1024 == 0 {
				density = densities[rng.IntN(len(densities))]
			}
			for bit := range 64 {
				if rng.Float64() < density {
					words[i] |= 1 << bit
				}
			}
		}
		want := roaring.FromDense(words, true)
		got := FromBits(words)
		if !got.Equals(want) || got.GetCardinality() != want.GetCardinality() || got.HasRunCompression() {
			t.Fatalf("got %d of %d rows, or other rows", got.GetCardinality(), want.GetCardinality())
		}
		if got.GetSizeInBytes() != want.GetSizeInBytes() {
			t.Fatalf("%d rows take %d bytes, want %d", want.GetCardinality(), got.GetSizeInBytes(), want.GetSizeInBytes())
		}
		kept := got.Clone()
		other := roaring.New()
		for range rng.IntN(200) {
			other.Add(uint32(rng.IntN(64*len(words) + 1)))
		}
		clear(words)
		got.Or(other)
		want.Or(other)
		if got.AndNot(kept); !got.Equals(roaring.AndNot(want, kept)) {
			t.Fatal("wrong rows after a change of the set")
		}
		if want.AndNot(other); !roaring.AndNot(kept, other).Equals(want) {
			t.Fatal("changing a set changed its clone")
		}
	}
}

func BenchmarkFromBits(b *testing.B) {
	rng := testRand(b)
	for _, one := range []struct {
		name    string
		density float64
	}{{"3 in 1000", 0.003}, {"1 in 100", 0.01}, {"3 in 100", 0.03}, {"6 in 100", 0.06}, {"20 in 100", 0.2}} {
		words := make([]uint64, 7813)
		for range int(64 * 7813 * one.density) {
			words[rng.IntN(len(words))] |= 1 << rng.IntN(64)
		}
		b.Run("FromBits/"+one.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				FromBits(words)
			}
		})
		b.Run("FromDense/"+one.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				roaring.FromDense(words, true)
			}
		})
	}
}

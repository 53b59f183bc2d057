package rowlist

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// fewOf returns a set of n rows under each of some keys.
func fewOf(rng *rand.Rand, n int, keys ...uint32) *roaring.Bitmap {
	b := roaring.New()
	for _, key := range keys {
		for range n {
			b.Add(key<<16 | rng.Uint32N(1<<16))
		}
	}
	return b
}

// TestOrAll compares unions of many sets with the library's, and checks that they share no memory with the sets. Sets are drawn for each
// way to combine containers: merged values, bits, one or two containers of a key, and sets with runs.
func TestOrAll(t *testing.T) {
	rng := testRand(t)
	for i := range 60 {
		var sets []*roaring.Bitmap
		for n := range 1 + rng.IntN(9) {
			switch i % 4 {
			case 0: // three and more share key 1, with up to 60 values; few share the others
				sets = append(sets, fewOf(rng, 3, 1, rng.Uint32N(30)))
			case 1: // containers of key 1 have more values than are merged
				sets = append(sets, fewOf(rng, 50+rng.IntN(6000), 1, 2+uint32(n)))
			default:
				sets = append(sets, mixedSet(rng))
			}
			if i%4 < 3 {
				sets[n] = roaring.BitmapOf(sets[n].ToArray()...) // without runs
			}
		}
		own := make([]*roaring.Bitmap, len(sets))
		for n, b := range sets {
			own[n] = b.Clone()
		}
		want := roaring.FastOr(sets...)
		got := OrAll(sets)
		if !got.Equals(want) || got.GetCardinality() != want.GetCardinality() {
			t.Fatalf("a union of %d sets has %d rows, want %d", len(sets), got.GetCardinality(), want.GetCardinality())
		}
		if err := got.Validate(); err != nil && !got.IsEmpty() {
			t.Fatal(err)
		}
		if len(sets) > 1 && i%4 < 3 {
			if got = flatOrAll(sets); !got.Equals(want) || !isFlat(got) || got.GetSizeInBytes() != want.GetSizeInBytes() {
				t.Fatalf("a flat union of %d sets has %d rows in %d bytes, want %d in %d", len(sets), got.GetCardinality(), got.GetSizeInBytes(),
					want.GetCardinality(), want.GetSizeInBytes())
			}
		}
		if len(sets) > 1 {
			got.AddRange(0, 1<<19)
			got.Remove(1 << 18)
			for n, b := range sets {
				if !b.Equals(own[n]) {
					t.Fatal("a change of the union changed a set")
				}
			}
		}
	}
	if OrAll(nil) != nil {
		t.Fatal("a union of no sets")
	}
}

// TestReusedWriters makes sets while the memory of writers is filled with other bytes between any two of them. No set may change.
func TestReusedWriters(t *testing.T) {
	rng := testRand(t)
	var made, want []*roaring.Bitmap
	for range 12 {
		a, b, c := mixedSet(rng), mixedSet(rng), mixedSet(rng)
		for _, x := range []struct{ got, want *roaring.Bitmap }{
			{And(a, b), roaring.And(a, b)}, {Or(a, b), roaring.Or(a, b)}, {AndNot(a, b), roaring.AndNot(a, b)},
			{OrAll([]*roaring.Bitmap{a, b, c}), roaring.FastOr(a, b, c)}, {SetOf(a.ToArray(), 6<<16), a},
		} {
			made, want = append(made, x.got), append(want, x.want)
			var all []*setWriter
			for range 4 {
				w := setWriters.Get().(*setWriter)
				for i := range w.code[:cap(w.code)] {
					w.code[:cap(w.code)][i] = 0xa5
				}
				all = append(all, w)
			}
			for _, w := range all {
				setWriters.Put(w)
			}
			bits := TakeBits(1 << 12)
			for i := range bits.Words {
				bits.Words[i] = 0xa5a5a5a5a5a5a5a5
			}
			bits.Release()
		}
	}
	for i, b := range made {
		if !b.Equals(want[i]) {
			t.Fatalf("set %d has other rows than when it was made", i)
		}
	}
}

func BenchmarkOrAll(b *testing.B) {
	for _, n := range []int{3, 6, 12} {
		for _, rows := range []int{5, 50, 1000} {
			rng := rand.New(rand.NewPCG(1, 1))
			var keys []uint32
			for key := range uint32(31) {
				keys = append(keys, key)
			}
			var sets []*roaring.Bitmap
			for range n {
				sets = append(sets, Flat(fewOf(rng, rows, keys...)))
			}
			b.Run(fmt.Sprintf("%dx%d/OrAll", n, rows), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					OrAll(sets)
				}
			})
			b.Run(fmt.Sprintf("%dx%d/Or", n, rows), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					all := sets[0]
					for _, s := range sets[1:] {
						all = Or(all, s)
					}
				}
			})
		}
	}
}

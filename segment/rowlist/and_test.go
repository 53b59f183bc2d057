package rowlist

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// withAndWithoutKernel runs f on both paths, whatever the processor supports.
func withAndWithoutKernel(t *testing.T, f func(t *testing.T)) {
	t.Cleanup(func() { hasKernel = simd.HasCommonKernel() })
	hasKernel = true
	t.Run("kernel", f)
	hasKernel = false
	t.Run("no kernel", f)
}

// mixedSet returns a set with arrays of different lengths, bitmaps, runs and gaps.
func mixedSet(rng *rand.Rand) *roaring.Bitmap {
	b := roaring.New()
	share := []float64{.001, .01, .04, .0625, .2}[rng.IntN(5)]
	for key := range uint64(1 + rng.IntN(5)) {
		base := key << 16
		switch rng.IntN(8) {
		case 0: // none
		case 1:
			from := rng.Uint64N(1 << 15)
			b.AddRange(base+from, base+from+rng.Uint64N(1<<15))
		case 2:
			for range rng.IntN(30) {
				b.Add(uint32(base) + rng.Uint32N(1<<16))
			}
		default:
			for row := range uint32(1 << 16) {
				if rng.Float64() < share {
					b.Add(uint32(base) + row)
				}
			}
		}
	}
	if rng.IntN(2) == 0 {
		b.RunOptimize()
	}
	return b
}

// TestAnd compares intersections with the library's, and checks that a result shares no memory with its operands.
func TestAnd(t *testing.T) {
	withAndWithoutKernel(t, func(t *testing.T) {
		rng := testRand(t)
		taken := 0
		for range 300 {
			a, b := mixedSet(rng), mixedSet(rng)
			if rng.IntN(10) == 0 {
				b = a
			}
			if toIntersect(a, b) {
				taken++
			}
			beforeA, beforeB, want := a.Clone(), b.Clone(), roaring.And(a, b)
			got := And(a, b)
			if !got.Equals(want) || got.GetCardinality() != want.GetCardinality() {
				t.Fatalf("%d rows from sets of %d and %d, want %d", got.GetCardinality(), a.GetCardinality(), b.GetCardinality(), want.GetCardinality())
			}
			if err := got.Validate(); err != nil && !got.IsEmpty() {
				t.Fatal(err)
			}
			other := mixedSet(rng)
			got.Or(other)
			if got.AndNot(want); !got.Equals(roaring.AndNot(other, want)) {
				t.Fatal("wrong rows after a change of the result")
			}
			if !a.Equals(beforeA) || !b.Equals(beforeB) || !And(a, b).Equals(want) {
				t.Fatal("changing the result changed an operand")
			}
		}
		if hasKernel && taken == 0 {
			t.Fatal("no two sets consisted of arrays")
		}
	})
}

// TestAndOfAllKindsOfContainers intersects each pair of container kinds on the kernel's path, where random sets rarely have them.
func TestAndOfAllKindsOfContainers(t *testing.T) {
	rng := testRand(t)
	for range 200 {
		a, b := mixedSet(rng), mixedSet(rng)
		if want := roaring.And(a, b); !flatAnd(a, b).Equals(want) {
			t.Fatalf("%d rows and %d", a.GetCardinality(), b.GetCardinality())
		}
	}
}

// TestAndOfDamagedSets intersects arrays that do not ascend, as in a forged segment. The kernel finds more common values than dst has room
// for. Nothing else is guaranteed about the result.
func TestAndOfDamagedSets(t *testing.T) {
	const containers = 100
	rng := testRand(t)
	damaged := func() *roaring.Bitmap {
		w := newSetWriter(containers)
		defer setWriters.Put(w)
		for key := range containers {
			to := w.room()
			for i := range arrayMax {
				binary.LittleEndian.PutUint16(to[2*i:], uint16(rng.IntN(3)))
			}
			w.add(key, arrayMax, 2*arrayMax)
		}
		set, ok := w.set()
		if !ok {
			t.Fatal("too many containers")
		}
		return set
	}
	for range 10 {
		flatAnd(damaged(), damaged())
	}
}

func BenchmarkAnd(b *testing.B) {
	for _, shape := range []struct{ containers, few, many int }{{16, 64, 64}, {16, 500, 500}, {150, 10, 100}, {150, 1000, 1000}} {
		rng := rand.New(rand.NewPCG(1, 1))
		var sets [2][8]*roaring.Bitmap
		for i, n := range []int{shape.few, shape.many} {
			for j := range sets[i] {
				words := make([]uint64, 1024*shape.containers)
				for range n * shape.containers {
					row := rng.IntN(64 * len(words))
					words[row/64] |= 1 << (row % 64)
				}
				sets[i][j] = FromBits(words)
			}
		}
		for _, kind := range []struct {
			name string
			and  func(a, b *roaring.Bitmap) *roaring.Bitmap
		}{{"library", roaring.And}, {"kernel", flatAnd}} {
			b.Run(fmt.Sprint(shape, kind.name), func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					kind.and(sets[0][i%8], sets[1][i/8%8])
				}
			})
		}
	}
}

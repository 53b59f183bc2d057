package rowlist

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// withAndWithoutKernel runs f both ways, whatever the processor has.
func withAndWithoutKernel(t *testing.T, f func(t *testing.T)) {
	t.Cleanup(func() { hasKernel = simd.HasCommonKernel() })
	hasKernel = true
	t.Run("kernel", f)
	hasKernel = false
	t.Run("no kernel", f)
}

// mixedSet returns a set with arrays of different lengths, bits, runs and gaps.
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

// TestAnd compares with the library, and has the result share nothing with what it was made of.
func TestAnd(t *testing.T) {
	withAndWithoutKernel(t, func(t *testing.T) {
		rng := testRand(t)
		taken := 0
		for range 300 {
			a, b := mixedSet(rng), mixedSet(rng)
			if rng.IntN(10) == 0 {
				b = a
			}
			if arraysToIntersect(a, b) {
				taken++
			}
			beforeA, beforeB, want := a.Clone(), b.Clone(), roaring.And(a, b)
			got := And(a, b)
			if !got.Equals(want) || got.GetCardinality() != want.GetCardinality() {
				t.Fatalf("%d rows of %d and %d, not %d", got.GetCardinality(), a.GetCardinality(), b.GetCardinality(), want.GetCardinality())
			}
			if err := got.Validate(); err != nil && !got.IsEmpty() {
				t.Fatal(err)
			}
			other := mixedSet(rng)
			got.Or(other)
			if got.AndNot(want); !got.Equals(roaring.AndNot(other, want)) {
				t.Fatal("the result has other rows after it was changed")
			}
			if !a.Equals(beforeA) || !b.Equals(beforeB) || !And(a, b).Equals(want) {
				t.Fatal("the change of a result changed something else")
			}
		}
		if hasKernel && taken == 0 {
			t.Fatal("no two sets were arrays")
		}
	})
}

// TestAndOfAllKindsOfContainers has the kernel's path meet each kind of container, which it seldom does by itself.
func TestAndOfAllKindsOfContainers(t *testing.T) {
	rng := testRand(t)
	for range 200 {
		a, b := mixedSet(rng), mixedSet(rng)
		if want := roaring.And(a, b); !andOfArrays(a, b).Equals(want) {
			t.Fatalf("%d rows and %d", a.GetCardinality(), b.GetCardinality())
		}
	}
}

// TestAndOfDamagedSets intersects arrays that do not ascend, as a forged segment may have them. The kernel finds more values in common than
// either has, for which there is no room. Nothing else is known of the result.
func TestAndOfDamagedSets(t *testing.T) {
	const containers = 100
	rng := testRand(t)
	damaged := func() *roaring.Bitmap {
		w := newSetWriter(containers)
		defer setWriters.Put(w)
		for key := range containers {
			for i := range arrayMax {
				binary.LittleEndian.PutUint16(w.code[w.end+2*i:], uint16(rng.IntN(3)))
			}
			w.add(key, arrayMax, 2*arrayMax)
		}
		set, err := w.set()
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	for range 10 {
		andOfArrays(damaged(), damaged())
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
		}{{"library", roaring.And}, {"kernel", andOfArrays}} {
			b.Run(fmt.Sprint(shape, kind.name), func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					kind.and(sets[0][i%8], sets[1][i/8%8])
				}
			})
		}
	}
}

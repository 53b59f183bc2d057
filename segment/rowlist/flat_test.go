package rowlist

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// drawSet returns a set of up to most containers of all kinds.
func drawSet(rng *rand.Rand, most int) *roaring.Bitmap {
	b := roaring.New()
	for range 1 + rng.IntN(most) {
		at := uint64(rng.IntN(2*most)) << 16
		switch rng.IntN(4) {
		case 0:
			b.AddRange(at+uint64(rng.IntN(5000)), at+5000+uint64(rng.IntN(60000)))
		case 1:
			for range 5000 {
				b.Add(uint32(at) + uint32(rng.IntN(1<<16)))
			}
		default:
			for range 1 + rng.IntN(100) {
				b.Add(uint32(at) + uint32(rng.IntN(1<<16)))
			}
		}
	}
	if rng.IntN(2) == 0 {
		b.RunOptimize()
	}
	return b
}

func codeOf(t *testing.T, b *roaring.Bitmap) []byte {
	t.Helper()
	var code bytes.Buffer
	if _, err := b.WriteTo(&code); err != nil {
		t.Fatal(err)
	}
	return code.Bytes()
}

// TestFlatSets compares flat sets with those of the library: their rows, what operations make of them, and that changes of one set
// leave the others as they are, also when the collector has run.
func TestFlatSets(t *testing.T) {
	rng := testRand(t)
	for i := range 60 {
		most := []int{1, 3, 70, 300}[i%4]
		want, other := drawSet(rng, most), drawSet(rng, most)
		code := codeOf(t, want)
		inPlace, ok := flatOf(code, false)
		copied, ok2 := flatOf(slices.Clone(code), true)
		if !ok || !ok2 {
			t.Fatal("a code was not read")
		}
		withoutRuns := roaring.BitmapOf(want.ToArray()...)
		for name, got := range map[string]*roaring.Bitmap{"in place": inPlace, "copied": copied, "Flat": Flat(want), "FromRows": FromRows(want.ToArray())} {
			want, like := want.Clone(), want
			if name == "FromRows" {
				like = withoutRuns
			}
			switch {
			case !isFlat(got) || Flattened(got) != got:
				t.Fatalf("%s: the set is not flat", name)
			case !got.Equals(want) || !slices.Equal(got.ToArray(), want.ToArray()) || got.GetCardinality() != want.GetCardinality():
				t.Fatalf("%s: other rows", name)
			case got.GetSizeInBytes() != like.GetSizeInBytes() || got.HasRunCompression() != like.HasRunCompression():
				t.Fatalf("%s: %d bytes, want %d", name, got.GetSizeInBytes(), like.GetSizeInBytes())
			}
			derived := map[string][2]*roaring.Bitmap{
				"or":      {roaring.Or(got, other), roaring.Or(want, other)},
				"and":     {roaring.And(got, other), roaring.And(want, other)},
				"and not": {roaring.AndNot(got, other), roaring.AndNot(want, other)},
				"not":     {roaring.AndNot(other, got), roaring.AndNot(other, want)},
				"clone":   {got.Clone(), want.Clone()},
			}
			for range 20 {
				row := uint32(rng.IntN(2 * most << 16))
				if got.CheckedAdd(row) != want.CheckedAdd(row) {
					t.Fatalf("%s: row %d was there in one set", name, row)
				}
				if row = want.Maximum(); !got.CheckedRemove(row) || !want.CheckedRemove(row) || want.IsEmpty() {
					break
				}
			}
			got.Or(other)
			want.Or(other)
			got.RunOptimize()
			if !got.Equals(want) {
				t.Fatalf("%s: other rows after changes", name)
			}
			if isFlat(got) || !Flattened(got).Equals(got) {
				t.Fatalf("%s: the set is flat after changes", name)
			}
			runtime.GC()
			for kind, sets := range derived {
				if !sets[0].Equals(sets[1]) || !slices.Equal(sets[0].ToArray(), sets[1].ToArray()) {
					t.Fatalf("%s, %s: other rows", name, kind)
				}
			}
		}
	}
}

// TestFlatSetsAreFewObjects counts the allocations of a set, which do not grow with its containers.
func TestFlatSetsAreFewObjects(t *testing.T) {
	b := drawSet(testRand(t), 70)
	code := codeOf(t, b)
	for copied, want := range map[bool]float64{false: 1, true: 2} {
		if n := testing.AllocsPerRun(10, func() { flatOf(code, copied) }); n > want {
			t.Errorf("copied %t: %v allocations, want %v", copied, n, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { Flat(b) }); n > 2 {
		t.Errorf("%v allocations of a copy", n)
	}
}

// TestFlatSetsOfDamagedCode reads truncated and damaged codes. The library has to find the same rows, or none.
func TestFlatSetsOfDamagedCode(t *testing.T) {
	rng := testRand(t)
	for range 20 {
		code := codeOf(t, drawSet(rng, 5))
		for range 50 {
			damaged := slices.Clone(code[:rng.IntN(len(code)+1)])
			if len(damaged) > 20 && rng.IntN(2) == 0 {
				damaged[rng.IntN(20)] ^= 1 << rng.IntN(8)
			}
			got, ok := flatOf(damaged, rng.IntN(2) == 0)
			want := roaring.New()
			_, err := want.FromBuffer(damaged)
			if ok && err != nil || !ok && err == nil && !want.IsEmpty() {
				t.Fatalf("%t, but the library says %v", ok, err)
			}
			if ok && got.GetCardinality() != want.GetCardinality() {
				t.Fatal("other rows")
			}
		}
	}
}

// TestFlatSetsOfAllKeys makes sets with as many containers as there are keys, and about as many as a set has room for.
func TestFlatSetsOfAllKeys(t *testing.T) {
	for _, n := range []int{exactRooms - 1, exactRooms, exactRooms + 1, 2 * exactRooms, 2*exactRooms + 1, maxContainers} {
		rows := make([]uint32, n)
		for i := range rows {
			rows[i] = uint32(i)<<16 | uint32(i)&7
		}
		if got := FromRows(rows); !slices.Equal(got.ToArray(), rows) || !isFlat(got) {
			t.Errorf("%d containers: other rows", n)
		}
	}
}

package rowlist

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestCombine compares unions and differences with the library's, by whichever path they take, and checks that a result shares no
// memory with its operands.
func TestCombine(t *testing.T) {
	rng := testRand(t)
	taken := [2]int{}
	for range 300 {
		a, b, other := mixedSet(rng), mixedSet(rng), mixedSet(rng)
		if toUnite(a, b) {
			taken[0]++
		}
		if toSubtract(a, b) {
			taken[1]++
		}
		union, rest := roaring.Or(a, b), roaring.AndNot(a, b)
		for name, one := range map[string]struct {
			f    func(a, b *roaring.Bitmap) *roaring.Bitmap
			want *roaring.Bitmap
		}{"Or": {Or, union}, "AndNot": {AndNot, rest}, "Subtract": {Subtract, rest}} {
			c, d := a.Clone(), b.Clone()
			got := one.f(c, d)
			if !got.Equals(one.want) || got.GetCardinality() != one.want.GetCardinality() {
				t.Fatalf("%s: %d rows from sets of %d and %d, want %d", name, got.GetCardinality(), a.GetCardinality(), b.GetCardinality(), one.want.GetCardinality())
			}
			if err := got.Validate(); err != nil && !got.IsEmpty() {
				t.Fatal(err)
			}
			got.Or(other)
			if got.AndNot(one.want); !got.Equals(roaring.AndNot(other, one.want)) {
				t.Fatalf("%s: wrong rows after a change of the result", name)
			}
			if !d.Equals(b) || got != c && !c.Equals(a) {
				t.Fatalf("%s: changing the result changed an operand", name)
			}
		}
	}
	if taken[0] == 0 || taken[1] == 0 {
		t.Fatalf("%d unions and %d differences of arrays", taken[0], taken[1])
	}
}

// TestCombineAllKindsOfContainers combines each pair of containers without runs, and sets of which one has many more rows.
func TestCombineAllKindsOfContainers(t *testing.T) {
	rng := testRand(t)
	for i := range 300 {
		a, b := roaring.BitmapOf(mixedSet(rng).ToArray()...), roaring.BitmapOf(mixedSet(rng).ToArray()...)
		if i%3 == 0 {
			a = roaring.BitmapOf(b.ToArray()[:b.GetCardinality()/50]...)
		}
		if got, want := flatOr(a, b), roaring.Or(a, b); !got.Equals(want) || !isFlat(got) || got.GetSizeInBytes() != want.GetSizeInBytes() {
			t.Fatalf("union of %d rows and %d", a.GetCardinality(), b.GetCardinality())
		}
		if got, want := flatAndNot(a, b), roaring.AndNot(a, b); !got.Equals(want) || !isFlat(got) || got.GetSizeInBytes() != want.GetSizeInBytes() {
			t.Fatalf("difference of %d rows and %d", a.GetCardinality(), b.GetCardinality())
		}
	}
}

// TestSubtractInPlace takes a few rows after the other from sets of arrays, until none is left. A set is changed in place if few of its
// containers are concerned, and copied otherwise.
func TestSubtractInPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	for _, containers := range []int{1, fewContainers - 1, fewContainers, 30, 100} {
		words := make([]uint64, 1024*containers)
		for range 40 * containers {
			words[rng.IntN(len(words))] |= 1 << rng.IntN(64)
		}
		set := FromBits(words)
		if !toSubtract(set, roaring.New()) {
			t.Fatalf("%d containers: no set of arrays", containers)
		}
		rows := set.ToArray()
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		want := roaring.BitmapOf(rows...)
		inPlace := 0
		for len(rows) > 0 {
			n := min(1+rng.IntN(4), len(rows))
			part := roaring.BitmapOf(rows[:n]...)
			part.Add(uint32(rng.IntN(containers << 16))) // the set may not have it
			rows = rows[n:]
			before, few := set, inFew(part, set)
			set = Subtract(set, part)
			if few && set != before {
				t.Fatalf("%d containers: %d rows were taken from a copy", containers, n)
			}
			if few {
				inPlace++
			}
			if want.AndNot(part); !set.Equals(want) || set.GetCardinality() != want.GetCardinality() {
				t.Fatalf("%d containers: %d rows are left, want %d", containers, set.GetCardinality(), want.GetCardinality())
			}
		}
		if (inPlace > 0) != (containers >= fewContainers) {
			t.Errorf("%d containers: %d times in place", containers, inPlace)
		}
	}
}

func BenchmarkCombine(b *testing.B) {
	for _, shape := range []struct{ containers, few, many int }{{1, 30, 30}, {1, 1000, 1000}, {16, 10, 10}, {16, 10, 3000}, {16, 500, 500}, {16, 3000, 3000}, {16, 500, 20000}} {
		rng := rand.New(rand.NewPCG(1, 1))
		var sets [2][8]*roaring.Bitmap
		for i, n := range []int{shape.few, shape.many} {
			for j := range sets[i] {
				words := make([]uint64, 1024*shape.containers)
				for range n * shape.containers {
					words[rng.IntN(len(words))] |= 1 << rng.IntN(64)
				}
				sets[i][j] = FromBits(words)
			}
		}
		for _, op := range []struct {
			name string
			f    func(a, b *roaring.Bitmap) *roaring.Bitmap
		}{{"And", And}, {"roaring.And", roaring.And}, {"Or", Or}, {"roaring.Or", roaring.Or}, {"AndNot", AndNot}, {"roaring.AndNot", roaring.AndNot}} {
			b.Run(fmt.Sprintf("%dx%d,%d/%s", shape.containers, shape.few, shape.many, op.name), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					op.f(sets[0][i%8], sets[1][i/8%8])
				}
			})
		}
	}
}

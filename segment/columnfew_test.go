package segment

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"svc/internal/numeric"
)

// TestFewNumbersOfColumn compares ordinals from the table for few distinct numbers with those of sorting.
func TestFewNumbersOfColumn(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 3))
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, -1, 1.5}
	for _, test := range []struct {
		values, distinct int
		few              bool
	}{
		{minRepeats*minFew - 1, 1, false},
		{minRepeats * minFew, 1, true},
		{4000, 3, true},
		{4000, 300, true},
		{4000, 4000, false},
		{minRepeats * (maxFew + 100), maxFew, true},
		{minRepeats * (maxFew + 100), 2 * maxFew, false},
	} {
		pool := make([]float64, test.distinct)
		for i := range pool {
			if pool[i] = r.NormFloat64() * 1e6; i < len(special) && r.IntN(2) == 0 {
				pool[i] = special[i]
			}
		}
		var c columnBuilder
		for i := range test.values {
			x := pool[i%len(pool)]
			if i >= len(pool) {
				x = pool[r.IntN(len(pool))]
			}
			c.number(uint32(r.IntN(test.values)), numeric.Value{Float: x})
		}
		pairs := make([]rowOrdinal, len(c.numbers))
		worked := 0
		floats := c.fewFloats(pairs, func(n int) { worked += n })
		if few := floats != nil; few != test.few {
			t.Errorf("seed %d: %d distinct of %d numbers: from a table: %v, want %v", seed, test.distinct, test.values, few, test.few)
		}
		if floats == nil {
			continue
		}
		if worked < test.values {
			t.Errorf("seed %d: work on %d of %d numbers was reported", seed, worked, test.values)
		}
		want := make([]float64, len(c.numbers))
		for i, n := range c.numbers {
			want[i] = n.float
		}
		slices.Sort(want)
		if want = slices.Compact(want); !slices.Equal(floats, want) {
			t.Fatalf("seed %d: numbers %v, want %v", seed, floats, want)
		}
		for i, n := range c.numbers {
			if ord, _ := slices.BinarySearch(want, n.float); pairs[i] != (rowOrdinal{n.row, uint32(ord)}) {
				t.Fatalf("seed %d: number %d is %v, want row %d, ordinal %d", seed, i, pairs[i], n.row, ord)
			}
		}
	}
}

// TestNumbersThatShareSlots checks that the table is abandoned for numbers chosen to collide.
func TestNumbersThatShareSlots(t *testing.T) {
	factor := uint64(0x9e3779b97f4a7c15) // that of numeric.Value.Hash; a variable, because its products exceed 64 bits
	inverse := factor
	for range 6 { // Newton's method doubles the correct bits
		inverse *= 2 - factor*inverse
	}
	var c columnBuilder
	for i := range uint64(4000) {
		x := math.Float64frombits((i%(4*maxProbes) + 1) * inverse)
		if x == 0 || math.IsNaN(x) {
			continue
		}
		if h := (numeric.Value{Float: x}).Hash(); h > 4*maxProbes {
			t.Fatalf("the hash of %v is %d", x, h)
		}
		c.number(uint32(i), numeric.Value{Float: x})
	}
	if floats := c.fewFloats(make([]rowOrdinal, len(c.numbers)), func(int) {}); floats != nil {
		t.Errorf("the table is used for %d numbers of one slot", len(floats))
	}
}

// TestSortedStrings sorts short strings of few byte values, including zeros, so that many share their first eight bytes.
func TestSortedStrings(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for range 50 {
		var c columnBuilder
		var want [][]byte
		for range rng.IntN(500) {
			s := make([]byte, rng.IntN(13))
			for i := range s {
				s[i] = []byte{0, 1, 'a', 0xff}[rng.IntN(4)&rng.IntN(4)]
			}
			if _, fresh := c.table.index(s, 0); fresh {
				want = append(want, s)
			}
		}
		slices.SortFunc(want, bytes.Compare)
		got := c.sortedStrings(func(int) {})
		if len(got) != len(want) {
			t.Fatalf("%d strings, want %d", len(got), len(want))
		}
		for ord, n := range got {
			if key := c.table.key(int(n)); !bytes.Equal(key, want[ord]) {
				t.Fatalf("string %d is %q, want %q", ord, key, want[ord])
			}
		}
	}
}

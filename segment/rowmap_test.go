package segment

import (
	"math"
	"testing"
)

// TestRowMap compares maps of rows with lists. At some places only, rows are deleted or interleaved with those of other inputs.
func TestRowMap(t *testing.T) {
	rng := testRand(t)
	shifted, listed := 0, 0
	for range 200 {
		to := make([]uint32, rng.IntN(20<<shiftBits))
		next := rng.Uint32N(1 << 20)
		rare := 1 + rng.IntN(1000)
		for row := range to {
			switch rng.IntN(rare) {
			case 0:
				next += rng.Uint32N(100)
			case 1:
				to[row] = noRow
				continue
			}
			to[row] = next
			next++
		}
		m := newRowMap(to)
		for row, want := range to {
			if got := m.of(uint32(row)); got != want {
				t.Fatalf("row %d of %d is %d, want %d", row, len(to), got, want)
			}
			if b := row >> shiftBits; b < len(m.shifts) && m.shifts[b] != noRow {
				shifted++
			} else {
				listed++
			}
		}
		for _, row := range []int{len(to), len(to) + rng.IntN(2<<shiftBits), math.MaxUint32} {
			if got := m.of(uint32(row)); got != noRow {
				t.Errorf("row %d of %d is %d, and it is not there", row, len(to), got)
			}
		}
	}
	if shifted == 0 || listed == 0 {
		t.Errorf("%d rows have shifts, and %d none", shifted, listed)
	}
}

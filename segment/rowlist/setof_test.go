package rowlist

import (
	"slices"
	"testing"
)

// TestSetsOfRows includes lists that are unordered, repeat rows, or have rows beyond the segment, as in forged files.
func TestSetsOfRows(t *testing.T) {
	const rows = 1000
	for _, list := range [][]uint32{nil, {3}, {3, 999}, {1 << 20}, make([]uint32, 100), {5, 5}, {9, 3}, {4, 8, 2, 8}} {
		if n := len(list); n == 100 {
			for i := range list[:n-2] {
				list[i] = uint32(7 * i)
			}
			list[n-2], list[n-1] = 999, 1<<31
		}
		var got, want []uint32
		for it := SetOf(list, rows).Iterator(); it.HasNext(); {
			if row := it.Next(); row < rows {
				got = append(got, row)
			}
		}
		for _, row := range list {
			if row < rows {
				want = append(want, row)
			}
		}
		slices.Sort(want)
		if want = slices.Compact(want); !slices.Equal(got, want) {
			t.Errorf("%d rows are %d, want %d", len(list), got, want)
		}
	}
}

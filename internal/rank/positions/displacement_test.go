package positions

import (
	"slices"
	"testing"
)

func TestDisplacements(t *testing.T) {
	var costs [tableSize]uint8
	for _, start := range []int{0, 1, 2, 7, 15, 16, 17, 23, 24, 25, 33, 64, 100, 700, tableStarts - 1} {
		for n := 1; n <= 3; n++ {
			nearest := fillDisplacements(&costs, start, n)
			for at := range 1 << 16 {
				if got, want := uint32(costs[min(at, tableSize-1)]), Displacement(at, start, n); got != want {
					t.Fatalf("%d terms with their place at %d cost %d at %d, want %d", n, start, got, at, want)
				}
			}
			if !slices.IsSorted(costs[nearest:]) {
				t.Fatalf("%d terms with their place at %d: costs fall behind %d", n, start, nearest)
			}
		}
	}
}

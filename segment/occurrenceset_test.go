package segment

import (
	"slices"
	"testing"
)

// TestOccurrenceSetSorts compares the set with sorting, for dense and sparse occurrences anywhere in a window.
func TestOccurrenceSetSorts(t *testing.T) {
	rng := testRand(t)
	var set occurrenceSet
	dense := 0
	for range 400 {
		rows, positions := 1+rng.IntN(1<<rng.IntN(17)), 1+rng.IntN(1<<rng.IntN(13))
		first := rng.IntN(windowRows - rows + 1)
		var list []occurrence
		for range rng.IntN(4000) {
			list = append(list, occurrence((first+rng.IntN(rows))<<16|rng.IntN(positions)))
		}
		given := slices.Clone(list)
		sorted, done := set.sort(list)
		if !done {
			if !slices.Equal(sorted, given) {
				t.Fatalf("%d occurrences in %d rows changed", len(given), rows)
			}
			continue
		}
		dense++
		slices.Sort(given)
		if !slices.Equal(sorted, slices.Compact(given)) {
			t.Fatalf("%d occurrences in %d rows from %d at %d positions are not sorted", len(given), rows, first, positions)
		}
		if slices.ContainsFunc(set.words, func(w uint64) bool { return w != 0 }) {
			t.Fatal("the set is not empty")
		}
	}
	if dense < 20 || dense > 380 {
		t.Errorf("%d of 400 were dense", dense)
	}
	for _, o := range [][]occurrence{
		slices.Repeat([]occurrence{0}, 100), slices.Repeat([]occurrence{1<<32 - 1}, 1000),
		slices.Repeat([]occurrence{1<<32 - 1, 1<<32 - 1<<15, 0xffff<<16 | 5}, 1000),
	} {
		want := slices.Compact(slices.Sorted(slices.Values(o)))
		if sorted, done := set.sort(o); !done || !slices.Equal(sorted, want) {
			t.Errorf("%v (%v), want %v", sorted, done, want)
		}
	}
}

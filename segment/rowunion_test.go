package segment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestRowUnion unites lists of all densities in reused memory, and compares the unions with sorted rows.
func TestRowUnion(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var u rowUnion
	byBits, byMerging := 0, 0
	for range 500 {
		span := 1 + rng.IntN(1<<rng.IntN(20))
		first := rng.IntN(1 << 20)
		var fields []fieldRows
		var want []uint32
		for f := range 1 + rng.IntN(9) {
			rows := make([]uint32, 1+rng.IntN(1<<rng.IntN(9)))
			for i := range rows {
				rows[i] = uint32(first + rng.IntN(span))
			}
			slices.Sort(rows)
			rows = slices.Compact(rows)
			fields = append(fields, fieldRows{id: FieldID(f), rows: rows})
			want = append(want, rows...)
		}
		if lowest, total := slices.Min(want)&^63, len(want); int(slices.Max(want)-lowest)/64+1 <= unionSpan*total {
			byBits++
		} else {
			byMerging++
		}
		slices.Sort(want)
		want = slices.Compact(want)
		if got := u.of(fields); !slices.Equal(got, want) {
			t.Fatalf("a union of %d lists has %d rows, want %d", len(fields), len(got), len(want))
		}
		if slices.ContainsFunc(u.bits, func(w uint64) bool { return w != 0 }) {
			t.Fatal("a union left bits for the next one")
		}
	}
	if byBits < 20 || byMerging < 20 {
		t.Errorf("%d unions by bits, %d by merging", byBits, byMerging)
	}
}

// TestAscendingRows sorts lists of a few ascending parts, and compares them with sorted rows. A row may end one part and start the next.
func TestAscendingRows(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var u rowUnion
	merged, sorted := 0, 0
	for range 1000 {
		var list []uint32
		for range rng.IntN(2 * mergedParts) {
			row := uint32(rng.IntN(100))
			if n := len(list); n > 0 && rng.IntN(3) == 0 {
				row = list[n-1]
			}
			for range 1 + rng.IntN(20) {
				list = append(list, row)
				row += 1 + uint32(rng.IntN(10))
			}
		}
		parts := 1
		for i := 1; i < len(list); i++ {
			if list[i] <= list[i-1] {
				parts++
			}
		}
		if parts > mergedParts {
			sorted++
		} else if parts > 1 {
			merged++
		}
		want := slices.Clone(list)
		slices.Sort(want)
		want = slices.Compact(want)
		if got := u.ascending(list); !slices.Equal(got, want) {
			t.Fatalf("%d ascending parts: %v, want %v", parts, got, want)
		}
	}
	if merged < 100 || sorted < 100 {
		t.Errorf("%d lists were merged and %d sorted", merged, sorted)
	}
}

// BenchmarkRowUnion unites lists of fields of a segment of 100,000 rows.
func BenchmarkRowUnion(b *testing.B) {
	for _, fields := range []int{2, 4, 12} {
		for _, count := range []int{32, 400, 5000, 40000} {
			rng := rand.New(rand.NewPCG(1, 2))
			lists := make([]fieldRows, fields)
			total := 0
			for f := range lists {
				for range count {
					lists[f].rows = append(lists[f].rows, uint32(rng.IntN(100_000)))
				}
				slices.Sort(lists[f].rows)
				lists[f].rows = slices.Compact(lists[f].rows)
				total += len(lists[f].rows)
			}
			b.Run(fmt.Sprintf("fields=%d/rows=%d", fields, count), func(b *testing.B) {
				var u rowUnion
				for b.Loop() {
					u.of(lists)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(total), "ns/row")
			})
		}
	}
}

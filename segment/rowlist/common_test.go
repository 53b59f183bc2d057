package rowlist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// listsOf encodes rows as Append does. If that is Roaring format, it also returns them as deltas.
func listsOf(rows []uint32) []List {
	p, code := Append(nil, rows)
	all := []List{{P: p, Code: code, Count: len(rows)}}
	if code == Roaring {
		all = append(all, List{P: AppendDelta(nil, rows), Code: Delta, Count: len(rows)})
	}
	return all
}

// kin returns rows that overlap with the given ones in different ways.
func kin(rng *rand.Rand, rows []uint32) []uint32 {
	var out []uint32
	switch rng.IntN(4) {
	case 0:
		return randomRows(rng)
	case 1: // few of them
		keep := 1 + rng.IntN(1+len(rows))
		for range keep {
			out = append(out, rows[rng.IntN(len(rows))]+uint32(rng.IntN(2)))
		}
	case 2: // most of them
		for _, r := range rows {
			if rng.IntN(10) > 0 {
				out = append(out, r)
			}
		}
		out = append(out, rows[0])
	default: // those and their neighbours
		for _, r := range rows {
			for range rng.IntN(3) {
				out = append(out, r+uint32(rng.IntN(3)))
			}
		}
		out = append(out, rows[len(rows)-1]+1)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestCommonRows(t *testing.T) {
	withAndWithoutKernel(t, func(t *testing.T) {
		rng := testRand(t)
		kinds := map[string]int{}
		for range 1500 {
			rows := randomRows(rng)
			others := kin(rng, rows)
			if rng.IntN(2) == 0 {
				rows, others = others, rows
			}
			want := []Place{{Row: 7}} // what stood there
			for i, row := range rows {
				if j, ok := slices.BinarySearch(others, row); ok {
					want = append(want, Place{row, uint32(i), uint32(j)})
				}
			}
			for _, a := range listsOf(rows) {
				for _, b := range listsOf(others) {
					if got := AppendCommon([]Place{{Row: 7}}, a, b); !slices.Equal(got, want) {
						t.Fatalf("%d rows (code %d) and %d (code %d) have %d in common, want %d", a.Count, a.Code, b.Count, b.Code, len(got)-1, len(want)-1)
					}
					if got := CountCommon(a, b); got != len(want)-1 {
						t.Fatalf("%d rows (code %d) and %d (code %d) have %d in common, want %d", a.Count, a.Code, b.Count, b.Code, got, len(want)-1)
					}
					var c, d RoaringCursor
					if a.Code == Roaring && b.Code == Roaring && c.Init(a.P) && d.Init(b.P) {
						kinds[fmt.Sprint(c.kind, d.kind)]++
					}
				}
			}
		}
		for _, c := range []int{containerArray, containerBitmap, containerRuns} {
			for _, d := range []int{containerArray, containerBitmap, containerRuns} {
				if kinds[fmt.Sprint(c, d)] == 0 {
					t.Errorf("containers of kinds %d and %d have not met", c, d)
				}
			}
		}
	})
}

func TestFindIsRankOfThoseThatAreThere(t *testing.T) {
	rng := testRand(t)
	for range 300 {
		rows := randomRows(rng)
		var c RoaringCursor
		if !c.Init(AppendRoaring(nil, rows)) {
			t.Fatal("there is no cursor")
		}
		for _, row := range kin(rng, rows) {
			i, in := slices.BinarySearch(rows, row)
			got, ok, ahead := c.Find(row)
			if ok != in || ok && got != i {
				t.Fatalf("row %d of %d: %d, %v, want %d, %v", row, len(rows), got, ok, i, in)
			}
			if i < len(rows) && ahead > rows[i] {
				t.Fatalf("row %d of %d: none up to %d, but there is %d", row, len(rows), ahead, rows[i])
			}
		}
	}
}

func TestFromRows(t *testing.T) {
	rng := testRand(t)
	for i := range 300 {
		var rows []uint32
		if i > 0 {
			rows = randomRows(rng)
		}
		got, want := FromRows(rows), roaring.BitmapOf(rows...)
		if err := got.Validate(); !got.Equals(want) || err != nil && len(rows) > 0 {
			t.Fatalf("%d rows: %d, %v", len(rows), got.GetCardinality(), err)
		}
		got.Add(1 << 25)
		got.Remove(0)
		want.Add(1 << 25)
		want.Remove(0)
		if !got.Equals(want) {
			t.Fatalf("%d rows: changed, others are there", len(rows))
		}
	}
}

// FuzzCommon has damaged lists walked through.
func FuzzCommon(f *testing.F) {
	f.Add(AppendRoaring(nil, []uint32{1, 2, 3, 70000}), AppendRoaring(nil, []uint32{2, 70000}), 4, 2)
	runs := make([]uint32, 9000)
	for i := range runs {
		runs[i] = uint32(i + i/3)
	}
	f.Add(AppendRoaring(nil, runs), AppendRoaring(nil, runs[:300]), 9000, 300)
	f.Fuzz(func(t *testing.T, p, q []byte, m, n int) {
		for _, a := range []int{Delta, Roaring} {
			for _, b := range []int{Delta, Roaring} {
				AppendCommon(nil, List{P: p, Code: a, Count: m}, List{P: q, Code: b, Count: n})
			}
		}
	})
}

package segment

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestPlanes compares a column in planes with one in lists: few and many ordinals, rare and frequent ones, and rows without ordinals.
func TestPlanes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	inPlanes, inBitmaps, inLists := 0, 0, 0
	for round := range 100 {
		rows := []int{1, 63, 64, 255, 256, 257, 1000, 5000, 70_000}[r.IntN(9)]
		most := 1 + r.IntN([]int{1, 2, 60, 300, 600, 4000}[r.IntN(6)])
		rare, lacking := r.IntN(3) == 0, r.IntN(3)
		if round == 0 {
			rows, most, rare, lacking = 70_000, 300, false, 0
		}
		of := make(map[uint32]bool)
		var pairs []rowOrdinal
		for row := range uint32(rows) {
			ord := r.IntN(most)
			if rare && r.IntN(rows/10+2) > 0 {
				ord = 0
			}
			if lacking == 0 || r.IntN(4) >= lacking {
				pairs = append(pairs, rowOrdinal{row, uint32(ord)})
				of[uint32(ord)] = true
			}
		}
		if len(pairs) == 0 || sparseShare*len(pairs) < rows {
			continue
		}
		var used []uint32 // distinct ordinals of the rows
		for ord := range of {
			used = append(used, ord)
		}
		slices.Sort(used)
		var values numberList
		for i, p := range pairs {
			ord, _ := slices.BinarySearch(used, p.ord)
			pairs[i].ord = uint32(ord)
		}
		for _, x := range used {
			values.floats = append(values.floats, float64(x))
		}
		column := func(planes bool) *Column {
			d := &columnData{rows: rows, numbers: values, numberPairs: pairs, planes: planes}
			b := &blocks{}
			b.sound.Store(true)
			c, err := openColumn(b, encodeColumn(nil, d), 0, rows)
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			if err := c.verify(); err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			return c
		}
		got, want := column(true), column(false)
		if got.rowNumbers.kind != forwardPlanes || want.rowNumbers.kind == forwardPlanes {
			t.Fatalf("seed %d, round %d: %d ordinals are not in planes", seed, round, len(used))
		}
		for e := got.numberRows.heavy; len(e) > 0; e = e[16:] {
			if binary.LittleEndian.Uint32(e[12:]) == 0 {
				inPlanes++
			} else {
				inBitmaps++
			}
		}
		inLists += len(got.numberRows.light)
		check := func(what string, of func(c *Column) any) {
			t.Helper()
			if g, w := of(got), of(want); !equalAny(g, w) {
				t.Fatalf("seed %d, round %d, %d rows, %d ordinals: %s: got %.200v, want %.200v", seed, round, rows, len(used), what, g, w)
			}
		}
		some := roaring.New()
		for row := range uint32(rows) {
			if r.IntN(1+round%7*20) == 0 {
				some.Add(row)
			}
		}
		marked := make([]uint64, (rows+63)/64)
		some.WriteDenseTo(marked)
		list := append(some.ToArray(), uint32(rows)+3) // a row beyond the segment, as in a forged one
		check("rows", func(c *Column) any {
			var all []uint32
			for row := range rows {
				all = append(c.RowNumbers(append(all, 1<<31), Row(row)), 1<<30)
			}
			return all
		})
		for range 20 {
			lo := r.IntN(len(used))
			hi := lo + 1
			if r.IntN(2) == 0 {
				hi += r.IntN(len(used) - lo)
			}
			check("marks", func(c *Column) any {
				marks := make([]uint64, (rows+63)/64)
				c.MarkNumbers(marks, lo, hi)
				return marks
			})
			check("parts of marks", func(c *Column) any {
				marks := make([]uint64, (rows+63)/64)
				c.MarkNumberRows(marks, lo, hi)
				c.MarkFrequentNumberRows(marks, lo, hi)
				return marks
			})
			check("added rows", func(c *Column) any {
				set := roaring.New()
				c.AddNumberRows(set, lo, hi)
				return set.ToArray()
			})
			check("rows among", func(c *Column) any {
				set := roaring.New()
				c.AddNumberRowsAmong(set, lo, some)
				return set.ToArray()
			})
			check("rows that have", func(c *Column) any { return c.RowsWithNumbers(nil, list, lo, hi) })
			check("counts", func(c *Column) any {
				return []uint32{uint32(c.NumberCount(lo)), uint32(c.CountNumberRows(lo, some)), uint32(c.numberRows.countMarked(lo, some, marked)),
					uint32(c.NextMarkedNumber(lo, marked)), uint32(c.LastMarkedNumber(lo, marked))}
			})
		}
		check("counts of all", func(c *Column) any {
			counts := make([]uint32, len(used))
			c.CountNumbers(counts, some.ToArray())
			ords, places := c.EachNumber(nil, nil, list)
			return slices.Concat(counts, ords, places)
		})
	}
	if inPlanes == 0 || inBitmaps == 0 || inLists == 0 {
		t.Errorf("seed %d: %d ordinals in planes, %d in bitmaps, %d bytes of lists", seed, inPlanes, inBitmaps, inLists)
	}
}

func equalAny(a, b any) bool {
	if a, ok := a.([]uint64); ok {
		return slices.Equal(a, b.([]uint64))
	}
	return slices.Equal(a.([]uint32), b.([]uint32))
}

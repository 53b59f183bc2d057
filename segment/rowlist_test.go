package segment

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// randomRows returns ascending rows of a random shape: scattered, dense, in runs, over several containers.
func randomRows(rng *rand.Rand) []uint32 {
	var rows []uint32
	row := uint32(rng.IntN(3)) * uint32(rng.IntN(70000))
	gap := []int{1, 2, 3, 40, 5000}[rng.IntN(5)]
	run := []int{1, 1, 2, 300}[rng.IntN(4)]
	n := []int{1, 2, 20, 31, 32, 33, 200, 5000, 70000}[rng.IntN(9)]
	for len(rows) < n && row < 1<<24 {
		for range 1 + rng.IntN(run) {
			if len(rows) < n {
				rows = append(rows, row)
			}
			row++
		}
		row += uint32(rng.IntN(gap))
	}
	return rows
}

func TestRowListsAreRoaringBitmaps(t *testing.T) {
	rng := testRand(t)
	for range 300 {
		rows := randomRows(rng)
		p, code := appendRowList([]byte{1, 2, 3}, rows)
		p = p[3:]
		l := rowList{p: p, code: code, count: len(rows)}
		want := roaring.BitmapOf(rows...)
		got := l.bitmap()
		if err := got.Validate(); err != nil || !got.Equals(want) {
			t.Fatalf("%d rows: %v, %v", len(rows), err, got)
		}
		if code == rowsRoaring {
			want.RunOptimize()
			if b, err := want.ToBytes(); err != nil || !slices.Equal(b, p) {
				t.Fatalf("%d rows: the code is not that of the library", len(rows))
			}
		}
		if !slices.Equal(l.appendTo(nil), rows) {
			t.Fatalf("%d rows are decoded wrong", len(rows))
		}
		added := roaring.BitmapOf(1<<30, 5)
		l.addTo(added)
		want.Add(5)
		want.Add(1 << 30)
		if !added.Equals(want) {
			t.Fatalf("%d rows are added wrong", len(rows))
		}
	}
}

func TestRowCursorFindsIndexes(t *testing.T) {
	rng := testRand(t)
	for range 300 {
		rows := randomRows(rng)
		p, code := appendRowList(nil, rows)
		c := rowList{p: p, code: code, count: len(rows)}.cursor()
		check := func(row uint32) {
			i, ok := slices.BinarySearch(rows, row)
			if got, found := c.find(row); found != ok || ok && got != i {
				t.Fatalf("row %d of %d is at %d (%v), want %d (%v)", row, len(rows), got, found, i, ok)
			}
		}
		step := 1 + rng.IntN(100)
		for i := 0; i < len(rows); i += step { // ascending, with misses
			check(rows[i])
			check(rows[i] + uint32(rng.IntN(3)))
		}
		for range 20 { // anywhere
			check(rows[rng.IntN(len(rows))] + uint32(rng.IntN(2)))
			check(uint32(rng.IntN(1 << 18)))
		}
	}
}

func TestPositionsSkipAndDecode(t *testing.T) {
	rng := testRand(t)
	for range 200 {
		var all [][]uint16
		var p []byte
		for range 1 + rng.IntN(400) {
			var positions []uint16
			next := rng.IntN(1 << (1 + rng.IntN(16)))
			for range 1 + rng.IntN(1+rng.IntN(5)) {
				if next > 65535 {
					break
				}
				positions = append(positions, uint16(next))
				next += 1 + rng.IntN(1<<(1+rng.IntN(15)))
			}
			all = append(all, positions)
			p = appendPositions(p, positions)
		}
		if !validPositions(p, len(all)) || validPositions(p, len(all)+1) || validPositions(p[:len(p)-1], len(all)) {
			t.Fatal("validPositions is wrong")
		}
		at := 0
		for i, want := range all {
			if skipped := skipRows(p, 0, i); skipped != at {
				t.Fatalf("row %d begins at %d, skipped to %d", i, at, skipped)
			}
			var got []uint16
			if got, at = decodePositions(nil, p, at); !slices.Equal(got, want) {
				t.Fatalf("row %d has %v, want %v", i, got, want)
			}
		}
		if at != len(p) || skipRows(p, 0, len(all)+1) != len(p) {
			t.Fatalf("the rows end at %d of %d", at, len(p))
		}
	}
}

// TestPositionReaderOverManyRows reads a word in more rows than a skip block, in steps and backwards.
func TestPositionReaderOverManyRows(t *testing.T) {
	rng := testRand(t)
	for range 20 {
		rows := randomRows(rng)
		var f fieldRows
		f.rows = rows
		var all [][]uint16
		for range rows {
			positions := []uint16{uint16(rng.IntN(1000))}
			if rng.IntN(4) == 0 {
				positions = append(positions, positions[0]+uint16(1+rng.IntN(5000)))
			}
			all = append(all, positions)
			f.positions = appendPositions(f.positions, positions)
		}
		p, code := appendRowList(nil, rows)
		fp := FieldPosting{rows: rowList{p: p, code: code, count: len(rows)}, skips: skipBytes(len(rows))}
		fp.positions = append(appendSkips(nil, f.positions, len(rows)), f.positions...)
		reader := fp.Positions()
		for _, step := range []int{1, 7, 127, 128, 129, 1000} {
			for i := rng.IntN(step); i < len(rows); i += 1 + rng.IntN(step) {
				if got := reader.Append(nil, Row(rows[i])); !slices.Equal(got, all[i]) {
					t.Fatalf("step %d: row %d has %v, want %v", step, i, got, all[i])
				}
				if rng.IntN(3) == 0 { // the same row again
					if got := reader.Append(nil, Row(rows[i])); !slices.Equal(got, all[i]) {
						t.Fatalf("again: row %d has %v, want %v", i, got, all[i])
					}
				}
			}
		}
	}
}

// appendPositions appends the ascending distinct positions of one row, at least one.
func appendPositions(dst []byte, positions []uint16) []byte {
	next := uint32(0)
	for _, p := range positions {
		dst = appendNumber(dst, uint32(p)-next)
		next = uint32(p) + 1
	}
	dst[len(dst)-1] |= endOfRow
	return dst
}

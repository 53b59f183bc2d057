package segment

import (
	"math/rand/v2"
	"slices"
	"testing"

	"svc/segment/rowlist"
)

// randomRows returns ascending rows of random shape: scattered, dense, in runs, over several containers.
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

// TestPositionReaderOverManyRows reads a word with more rows than a skip block, in steps and backwards.
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
		p, code := rowlist.Append(nil, rows)
		fp := FieldPosting{rows: rowlist.List{P: p, Code: code, Count: len(rows)}, skips: skipBytes(len(rows))}
		fp.positions = append(appendSkips(nil, f.positions, len(rows)), f.positions...)
		reader := fp.Positions()
		for _, step := range []int{1, 7, 127, 128, 129, 1000} {
			for i := rng.IntN(step); i < len(rows); i += 1 + rng.IntN(step) {
				if got := reader.Append(nil, Row(rows[i])); !slices.Equal(got, all[i]) {
					t.Fatalf("step %d: row %d has %v, want %v", step, i, got, all[i])
				}
				if rng.IntN(3) == 0 { // reads the same row again
					if got := reader.Append(nil, Row(rows[i])); !slices.Equal(got, all[i]) {
						t.Fatalf("again: row %d has %v, want %v", i, got, all[i])
					}
				}
			}
		}
	}
}

// appendPositions appends the ascending distinct positions of one row, which has at least one.
func appendPositions(dst []byte, positions []uint16) []byte {
	next := uint32(0)
	for _, p := range positions {
		dst = appendNumber(dst, uint32(p)-next)
		next = uint32(p) + 1
	}
	dst[len(dst)-1] |= endOfRow
	return dst
}

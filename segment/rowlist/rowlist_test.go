package rowlist

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
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

func TestRowListsAreRoaringBitmaps(t *testing.T) {
	rng := testRand(t)
	for range 300 {
		rows := randomRows(rng)
		p, code := Append([]byte{1, 2, 3}, rows)
		p = p[3:]
		l := List{P: p, Code: code, Count: len(rows)}
		want := roaring.BitmapOf(rows...)
		got := l.Bitmap()
		if err := got.Validate(); err != nil || !got.Equals(want) {
			t.Fatalf("%d rows: %v, %v", len(rows), err, got)
		}
		if n := len(AppendRoaring(nil, rows)); RoaringBytes(rows) != n {
			t.Fatalf("%d rows are said to have %d bytes as a bitmap, and have %d", len(rows), RoaringBytes(rows), n)
		}
		for _, l := range []List{l, {P: AppendDelta(nil, rows), Code: Delta, Count: len(rows)}} {
			var walked []uint32
			walk, step := l.Walk(), 1<<(7+rng.IntN(12))
			for end := uint32(0); len(walked) < len(rows); end += uint32(1 + rng.IntN(step)) {
				n := len(walked)
				walked = walk.AppendBelow(walked, end)
				if at, _ := slices.BinarySearch(rows, end); at != len(walked) {
					t.Fatalf("%d rows, code %d: %d below %d, want %d; %d before", len(rows), l.Code, len(walked), end, at, n)
				}
			}
			if !slices.Equal(walked, rows) {
				t.Fatalf("%d rows, code %d: others are walked through", len(rows), l.Code)
			}
			if got := l.AppendTo(nil); !slices.Equal(got, rows) {
				t.Fatalf("%d rows, code %d: decoded wrong", len(rows), l.Code)
			}
		}
		if code == Roaring {
			want.RunOptimize()
			// the library keeps runs in some containers that would be smaller as bitmaps
			if b, err := want.ToBytes(); err != nil || len(p) > len(b) || len(p) == len(b) && !slices.Equal(b, p) {
				t.Fatalf("%d rows: %d bytes are not the code of the library, which has %d", len(rows), len(p), len(b))
			}
		}
		if !slices.Equal(l.AppendTo(nil), rows) {
			t.Fatalf("%d rows are decoded wrong", len(rows))
		}
		if first := l.First(); len(rows) > 0 && first != rows[0] {
			t.Fatalf("%d rows begin with %d, not with %d", len(rows), first, rows[0])
		}
		words := make([]uint64, 1+rng.IntN(1<<12))
		l.AddToBits(words)
		for i, w := range words {
			for bit := range uint32(64) {
				if in := w>>bit&1 != 0; in != want.Contains(uint32(64*i)+bit) {
					t.Fatalf("%d rows: bit of row %d is %v", len(rows), uint32(64*i)+bit, in)
				}
			}
		}
		some, common := make([]uint64, []int{len(words), 1 + rng.IntN(1<<12), 1 << 12}[rng.IntN(3)]), 0
		for i := range some {
			some[i] = rng.Uint64() & rng.Uint64()
		}
		for _, r := range rows {
			if int(r/64) < len(some) && some[r/64]>>(r%64)&1 != 0 {
				common++
			}
		}
		if got := l.CountInBits(some); got != common {
			t.Fatalf("%d rows: %d have bits in %d words, want %d", len(rows), got, len(some), common)
		}
		if code == Roaring {
			lo, hi := rows[rng.IntN(len(rows))]-uint32(rng.IntN(2)), rows[rng.IntN(len(rows))]+uint32(rng.IntN(2))
			if lo > hi {
				lo, hi = hi, lo
			}
			var c RoaringCursor
			c.Init(p)
			between := slices.DeleteFunc(slices.Clone(rows), func(r uint32) bool { return r < lo || r > hi })
			if got := c.AppendBetween(nil, lo, hi); !slices.Equal(got, between) {
				t.Fatalf("%d rows, %d to %d: %d found, want %d", len(rows), lo, hi, len(got), len(between))
			}
		}
		var indexes, at []uint32
		for i := rng.IntN(len(rows)); i < len(rows)+2; i += 1 + rng.IntN(1+rng.IntN(len(rows))) {
			if indexes = append(indexes, uint32(i)); i < len(rows) {
				at = append(at, rows[i])
			}
		}
		if got := l.AppendAt([]uint32{7}, indexes); !slices.Equal(got[1:], at) {
			t.Fatalf("%d rows, of which %d: %d, want %d", len(rows), indexes, got[1:], at)
		}
		added := roaring.BitmapOf(1<<30, 5)
		l.AddTo(added)
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
		p, code := Append(nil, rows)
		c := List{P: p, Code: code, Count: len(rows)}.Cursor()
		check := func(row uint32) {
			i, ok := slices.BinarySearch(rows, row)
			if got, found := c.Find(row); found != ok || ok && got != i {
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

func TestRanksCountTheRowsBefore(t *testing.T) {
	rng := testRand(t)
	for range 300 {
		rows := randomRows(rng)
		if len(rows) < RoaringFrom {
			continue
		}
		p, _ := Append(nil, rows)
		var c RoaringCursor
		if !c.Init(p) {
			t.Fatalf("%d rows are no bitmap", len(rows))
		}
		step := 1 + rng.IntN(1<<(1+rng.IntN(14)))
		for row := rows[0] - min(rows[0], uint32(rng.IntN(100))); row < rows[len(rows)-1]+100; row += uint32(1 + rng.IntN(step)) {
			i, ok := slices.BinarySearch(rows, row)
			at, found, ahead := c.Rank(row)
			if at != i || found != ok {
				t.Fatalf("%d rows before row %d (%v), want %d (%v)", at, row, found, i, ok)
			}
			if next, _ := slices.BinarySearch(rows, row+1); next < len(rows) && ahead > rows[next] {
				t.Fatalf("no row between %d and %d, but %d is one", row, ahead, rows[next])
			}
		}
	}
}

func testRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestOnesOfAWord(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		word := rng.Uint64()
		for range rng.IntN(3) {
			word &= rng.Uint64()
		}
		k := 0
		for at := range 64 {
			if word>>at&1 == 0 {
				continue
			}
			if got := oneAt(word, k); got != at {
				t.Fatalf("the 1 number %d of %064b is at %d, want %d", k, word, got, at)
			}
			k++
		}
	}
	if got := oneAt(1<<64-1, 63); got != 63 {
		t.Errorf("the last 1 is at %d", got)
	}
}

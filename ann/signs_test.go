package ann

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// Signs, and what a scan of them finds, are those of a slow twin that takes components one by one.
func TestScanOfSigns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 200 {
		stride, rows := 64*(1+rng.IntN(4)), rng.IntN(3000)
		codes, query := make([]int8, rows*stride), make([]int8, stride)
		for i := range codes {
			codes[i] = int8(rng.IntN(256))
		}
		for i := range query {
			query[i] = int8(rng.IntN(255) - 127)
		}
		s := Signs{Stride: stride / 64}
		for row := range rows {
			s.Words = AppendSigns(s.Words, codes[row*stride:(row+1)*stride])
		}
		touched := 0
		s.Touch = func(words []uint64) {
			if len(words) == 0 || &words[0] != &s.Words[touched] {
				t.Fatalf("%d words are touched out of order, after %d", len(words), touched)
			}
			touched += len(words)
		}
		var counts func(uint32) bool
		if rng.IntN(2) == 0 {
			counts = func(row uint32) bool { return row%3 != 1 }
		}
		keep := 1 + rng.IntN(300)
		var want []Neighbour
		for row := range rows {
			n := Neighbour{Row: uint32(row)}
			for i, x := range codes[row*stride : (row+1)*stride] {
				if x < 0 {
					n.Score -= int32((int(query[i])*7+127*7+63)/127 - 7)
				}
			}
			if counts == nil || counts(n.Row) {
				want = append(want, n)
			}
		}
		slices.SortStableFunc(want, func(a, b Neighbour) int { return cmp.Compare(b.Score, a.Score) })
		want = want[:min(keep, len(want))]
		if got := s.Scan(nil, query, keep, counts); !slices.Equal(got, want) {
			t.Fatalf("%d rows of %d, %d kept:\n%v found,\n%v expected", rows, stride, keep, got, want)
		}
		if touched != len(s.Words) {
			t.Fatalf("%d words of %d are touched", touched, len(s.Words))
		}
	}
}

// A search among some rows finds those with the best codes of those with the best signs, as a slow twin does.
func TestSignsAmongAllowedRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	for range 200 {
		stride, rows := 64*(1+rng.IntN(4)), 1+rng.IntN(3000)
		codes, query := make([]int8, rows*stride), make([]int8, stride)
		for i := range codes {
			codes[i] = int8(rng.IntN(5) - 2) // many scores are equal
		}
		for i := range query {
			query[i] = int8(rng.IntN(255) - 127)
		}
		c, s := Codes{Bytes: codes, Stride: stride}, Signs{Stride: stride / 64}
		for row := range rows {
			s.Words = AppendSigns(s.Words, c.row(uint32(row)))
		}
		allowed, part := roaring.New(), rng.IntN(4)+1
		for row := range uint32(rows) {
			if rng.IntN(part) == 0 {
				allowed.Add(row)
			}
		}
		touched := roaring.New()
		s.TouchRows = touched.AddMany
		look, keep := 1+rng.IntN(300), 1+rng.IntN(100)
		want := s.Scan(nil, query, look, allowed.Contains)
		for i, n := range want {
			want[i].Score = c.pair(query, c.row(n.Row))
		}
		slices.SortFunc(want, func(a, b Neighbour) int { return cmp.Compare(b.Score, a.Score) })
		want = want[:min(keep, len(want))]
		got := s.Among(nil, c, query, look, keep, allowed)
		for i := range max(len(got), len(want)) {
			if len(got) != len(want) || got[i].Score != want[i].Score || got[i].Score != c.pair(query, c.row(got[i].Row)) || !allowed.Contains(got[i].Row) {
				t.Fatalf("%d of %d rows of %d, %d looked at, %d kept:\n%v found,\n%v expected", allowed.GetCardinality(), rows, stride, look, keep, got, want)
			}
		}
		if !touched.Equals(allowed) {
			t.Fatal("not the allowed rows are touched")
		}
	}
}

func BenchmarkScanOfSigns(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 8))
	s := Signs{Words: make([]uint64, 30_000*6), Stride: 6}
	for i := range s.Words {
		s.Words[i] = rng.Uint64()
	}
	query := make([]int8, 384)
	for i := range query {
		query[i] = int8(rng.IntN(255) - 127)
	}
	var found []Neighbour
	for b.Loop() {
		found = s.Scan(found[:0], query, 80, nil)
	}
}

package ann

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
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

// The components of a query are rounded to the nearest of fifteen values.
func TestPlanesOfAQuery(t *testing.T) {
	query := make([]int8, 256)
	for i := range query {
		query[i] = int8(max(i-128, -127))
	}
	p := appendPlanes(nil, query)
	for i, x := range query {
		got := 0
		for bit := range planes {
			weight := 1 << bit
			if bit == planes-1 {
				weight = -weight
			}
			got += weight * int(p[i/64*planes+bit]>>(i%64)&1)
		}
		if d := 7*int(x) - 127*got; d < -64 || d > 63 {
			t.Errorf("%d becomes %d", x, got)
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

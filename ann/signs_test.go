package ann

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestScanOfSigns compares signs and a scan of them with a slow reference that handles components one by one.
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
		centre := make([]int8, stride)
		for i := range centre {
			centre[i] = int8(rng.IntN(256))
		}
		s := Signs{Stride: stride / 64, Query: query}
		for row := range rows {
			s.Words = AppendSigns(s.Words, codes[row*stride:(row+1)*stride], centre)
		}
		touched := 0
		s.Touch = func(words []uint64) {
			if len(words) == 0 || &words[0] != &s.Words[touched] {
				t.Fatalf("%d words are touched out of order after %d", len(words), touched)
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
				if x < centre[i] {
					n.Score -= int32((int(query[i])*7+127*7+63)/127 - 7)
				}
			}
			if counts == nil || counts(n.Row) {
				want = append(want, n)
			}
		}
		slices.SortStableFunc(want, func(a, b Neighbour) int { return cmp.Compare(b.Score, a.Score) })
		want = want[:min(keep, len(want))]
		if got := s.Scan(nil, keep, counts); !slices.Equal(got, want) {
			t.Fatalf("%d rows of %d, %d kept:\ngot %v\nwant %v", rows, stride, keep, got, want)
		}
		if touched != len(s.Words) {
			t.Fatalf("%d words of %d are touched", touched, len(s.Words))
		}
	}
}

// TestSignsAmongAllowedRows compares a search among some rows with a slow reference: it takes the best codes among the rows with
// the best signs.
func TestSignsAmongAllowedRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	marked, more, all, scanned := 0, 0, 0, 0
	for range 300 {
		stride, rows := 64*(1+rng.IntN(4)), 1+rng.IntN(3000)
		if rng.IntN(3) == 0 {
			stride, rows = 128, 1+rng.IntN(12_000)
		}
		dimensions := stride - rng.IntN(64)
		codes, query, centre := make([]int8, rows*stride), make([]int8, stride), make([]int8, stride)
		for i := range codes {
			if i%stride < dimensions {
				codes[i] = int8(rng.IntN(5) - 2) // makes many scores equal
			}
		}
		for i := range dimensions {
			query[i], centre[i] = int8(rng.IntN(255)-127), int8(rng.IntN(3)-1)
		}
		c, s := Codes{Bytes: codes, Stride: stride}, Signs{Stride: stride / 64, Dimensions: dimensions, Query: make([]int8, stride)}
		for i, x := range query {
			s.Query[i] = x/2 - centre[i]
		}
		for row := range rows {
			s.Words = AppendSigns(s.Words, c.row(uint32(row)), centre)
		}
		allowed, part, from := roaring.New(), 1<<rng.IntN(8), rng.IntN(rows)
		for row := range uint32(rows) {
			if rng.IntN(part) == 0 && (part%2 == 0 || int(row) >= from) {
				allowed.Add(row)
			}
		}
		touched := roaring.New()
		s.TouchRows = touched.AddMany
		s.Touch = func(words []uint64) {
			at := cap(s.Words) - cap(words)
			if at < 0 || at >= len(s.Words) || &words[0] != &s.Words[at] {
				t.Fatal("words outside the rows are touched")
			}
			touched.AddRange(uint64(at/s.Stride), uint64((at+len(words))/s.Stride))
		}
		look, r := 1+rng.IntN(1<<rng.IntN(9)), Reach{Pool: 1 + rng.IntN(100), Wanted: max(0, rng.IntN(20)-4)}
		want, times := slowAmong(s, c, query, look, r, allowed)
		if s.marks(allowed) {
			marked++
		}
		switch {
		case times > 1:
			more++
		case times == 0:
			all++
		}
		touched.Clear()
		if got := s.Among(nil, c, query, look, r, allowed); !slices.Equal(got, want) {
			t.Fatalf("%d of %d rows of %d, look %d, %+v:\ngot %v\nwant %v", allowed.GetCardinality(), rows, stride, look, r, got, want)
		}
		if !s.marks(allowed) && !touched.Equals(allowed) || roaring.AndNot(allowed, touched).GetCardinality() > 0 {
			t.Fatal("the touched rows are not the allowed ones")
		}
		if s.Stride == 2 && rows > 0 {
			scanned++
			coarse := roaring.New()
			for _, n := range coarseAmong(s, look+look/2, allowed) {
				coarse.Add(n.Row)
			}
			if got, want := s.ScanMarked(nil, look, allowed), s.Scan(nil, look, coarse.Contains); !slices.Equal(got, want) {
				t.Fatalf("%d of %d rows, %d kept:\ngot %v\nwant %v", allowed.GetCardinality(), rows, look, got, want)
			}
		}
	}
	if marked < 20 || more < 8 || all < 8 || scanned < 100 {
		t.Errorf("cache lines are compared in %d searches, more codes in %d, and all in %d; %d scans", marked, more, all, scanned)
	}
}

// slowAmong is the reference implementation of Among. times is the factor by which it looked at more rows, or 0 if it compared
// the codes of all.
func slowAmong(s Signs, c Codes, query []int8, look int, r Reach, allowed *roaring.Bitmap) (found []Neighbour, times int) {
	order := func(a, b Neighbour) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Row, b.Row)) }
	among := func(others, more []Neighbour, n int) (better int) {
		top := slices.SortedFunc(slices.Values(others), order)
		top = top[:min(n, len(top))]
		for _, n := range more {
			if len(top) == 0 || order(n, top[len(top)-1]) < 0 {
				better++
			}
		}
		return better
	}
	if s.marks(allowed) {
		look += look / 2
	}
	for times = 1; ; times, look = lookMore*times, lookMore*look {
		if count := int(allowed.GetCardinality()); times > 1 && look > count/lookShare {
			for _, row := range allowed.ToArray() {
				found = append(found, Neighbour{Row: row})
			}
			times = 0
		} else if most := look * (1 + min(r.Wanted, 1)); s.marks(allowed) {
			found = coarseAmong(s, most, allowed)
		} else {
			found = s.Scan(nil, most, allowed.Contains)
		}
		for i, n := range found {
			found[i].Score = c.pair(query, c.row(n.Row))
		}
		first := min(look, len(found))
		half := min(look/2, first)
		top := 2 * r.Wanted
		if top > half {
			top = r.Wanted
		}
		switch {
		case times == 0 || r.Wanted == 0:
		case 2*r.Wanted <= half && among(found[:half], found[half:first], top) == 0:
			found = found[:first]
		case among(found[:first], found[first:], top) > top/10:
			found = nil
			continue
		}
		slices.SortFunc(found, order)
		return found[:min(r.settled(), len(found))], times
	}
}

// coarseAmong is the reference implementation of marked.
func coarseAmong(s Signs, look int, allowed *roaring.Bitmap) []Neighbour {
	query, squares := s.Query[:s.Dimensions], 0
	for _, x := range query {
		squares += int(x) * int(x)
	}
	var all []Neighbour
	for it := allowed.Iterator(); it.HasNext(); {
		n := Neighbour{Row: it.Next()}
		for i, x := range query {
			below := s.Words[2*int(n.Row)+i/64]>>(i%64)&1 == 1
			large := int(x)*int(x)*len(query) >= squares
			switch {
			case below != (x < 0) && large:
				n.Score -= 3
			case below != (x < 0):
				n.Score -= 2
			case !large:
				n.Score--
			}
		}
		all = append(all, n)
	}
	slices.SortStableFunc(all, func(a, b Neighbour) int { return cmp.Compare(b.Score, a.Score) })
	most := min(2*look, len(all))
	for look < most && all[look].Score == all[look-1].Score {
		look++
	}
	return all[:min(look, most)]
}

// TestMarkedRowsAreInOrder checks that rows which a scan by cache lines reports as ordered are sorted by score, then by row, so that the
// best rows come first.
func TestMarkedRowsAreInOrder(t *testing.T) {
	r := seeded(t)
	const rows = 40_000
	s := Signs{Stride: 2, Dimensions: 128, Query: make([]int8, 128), Words: make([]uint64, 2*rows)}
	ordered, unordered := 0, 0
	for range 40 {
		same := r.IntN(2) == 0 // all rows are equally similar
		for i := range s.Words {
			if s.Words[i] = r.Uint64(); same {
				s.Words[i] = 0
			}
		}
		for i := range s.Query {
			s.Query[i] = int8(r.IntN(255) - 127)
		}
		allowed, look := roaring.New(), 1+r.IntN(300)
		allowed.AddRange(uint64(r.IntN(rows/2)), uint64(rows-r.IntN(rows/4)))
		var w walker
		w.mark(allowed, rows)
		w.marked(s, look, int(allowed.GetCardinality()))
		if !w.ordered {
			unordered++
			continue
		}
		ordered++
		for n := range len(w.ahead) {
			if some := slices.Clone(w.ahead); n > 0 && slices.Min(best(some, n)) != w.ahead[n-1] {
				t.Fatalf("the best %d of %d candidates are not the first ones", n, len(w.ahead))
			}
		}
	}
	if ordered == 0 || unordered == 0 {
		t.Fatalf("%d scans left rows in order, %d did not", ordered, unordered)
	}
}

// TestManyEqualSigns scans very many rows with equal signs, only some of which are compared by codes. The sampled rows are more similar
// than all others, so that the sample misleads, and all rows must be compared again.
func TestManyEqualSigns(t *testing.T) {
	const rows, look = 40_000, 100
	codes, query := make([]int8, 128*rows), make([]int8, 128)
	for i := range query {
		query[i] = 1
	}
	c, s := Codes{Bytes: codes, Stride: 128}, Signs{Stride: 2, Dimensions: 128, Query: query}
	centre, near, allowed := make([]int8, 128), 0, roaring.New()
	allowed.AddRange(0, rows)
	for row := range rows {
		code := codes[128*row:][:128]
		code[0] = int8(row%100) + 1
		if row >= 64 && row < 64+look/3 { // in the sample
			near++
		} else {
			code[1+row%3] = -1 // the score by signs does not depend on the place
		}
		s.Words = AppendSigns(s.Words, code, centre)
	}
	var w walker
	w.mark(allowed, len(s.Words)/2)
	w.marked(s, look, int(allowed.GetCardinality()))
	if limit := w.sample(s, look, rows); limit >= differences || w.within(s, look, limit) >= look {
		t.Errorf("with a limit of %d the sample does not mislead", limit)
	}
	if n := w.within(s, look, differences); n < fullAt(look) || len(w.ahead) != 2*look {
		t.Errorf("%d rows are equally similar, %d of them are left", n, len(w.ahead))
	}
	r := Reach{Pool: look, Wanted: 10}
	want, times := slowAmong(s, c, query, look, r, allowed)
	if got := s.Among(nil, c, query, look, r, allowed); times == 1 || !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v; of %d times as many rows", got, want, times)
	}
}

func BenchmarkScanOfSigns(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 8))
	s := Signs{Words: make([]uint64, 30_000*6), Stride: 6, Query: make([]int8, 384)}
	for i := range s.Words {
		s.Words[i] = rng.Uint64()
	}
	for i := range s.Query {
		s.Query[i] = int8(rng.IntN(255) - 127)
	}
	var found []Neighbour
	for b.Loop() {
		found = s.Scan(found[:0], 80, nil)
	}
}

package ann

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// markedShare: if at least one in so many rows is allowed, rows of two words are compared by whole cache lines.
const markedShare = 64

// marks reports whether marked can compare the allowed rows, and is worth it.
func (s Signs) marks(allowed *roaring.Bitmap) bool {
	return s.Stride == 2 && uint64(len(s.Words)/2) <= markedShare*allowed.GetCardinality()
}

// differences is one more than the maximum difference between a row of two words and a query of coarse components.
const differences = 3*128 + 1

// tally counts rows by how much they differ from a query.
type tally struct {
	differ [differences]int
	limit  int // only rows that differ by less can be among the best
	within int // number of rows below the limit
}

// tighten lowers the limit while at least look rows stay below it.
func (t *tally) tighten(look int) {
	for t.within-t.differ[t.limit-1] >= look {
		t.limit--
		t.within -= t.differ[t.limit]
	}
}

// mark sets w.marks to the allowed rows of a total of rows.
func (w *walker) mark(allowed *roaring.Bitmap, rows int) {
	n := max((rows+63)/64, int(allowed.DenseSize()))
	w.marks = slices.Grow(w.marks[:0], n)[:n]
	clear(w.marks)
	allowed.WriteDenseTo(w.marks)
}

// marked puts into w.ahead those of the count rows in w.marks that are most similar to the query by their signs and
// coarse query components. These are look rows, and rows that tie with the last one, up to twice as many in all. Among tied rows,
// lower ones come first. Candidates have their rows negated.
func (w *walker) marked(s Signs, look, count int) {
	w.planes = simd.AppendCoarsePlanes(w.planes[:0], s.Query[:s.Dimensions])
	if w.room == nil {
		w.room = new(simd.MarkedRoom)
	}
	if limit := w.sample(s, look, count); w.within(s, look, limit) < min(look, count) {
		w.within(s, look, differences) // the sample misled
	}
}

// ScanMarked is Scan among allowed rows, by cache lines, for rows of two words. It reads them in order, so comparing overlaps with
// reading from disk.
func (s Signs) ScanMarked(dst []Neighbour, keep int, allowed *roaring.Bitmap) []Neighbour {
	if keep <= 0 || len(s.Words) == 0 {
		return dst
	}
	w := walkers.Get().(*walker)
	defer w.end()
	w.mark(allowed, len(s.Words)/2)
	w.planes = simd.AppendCoarsePlanes(w.planes[:0], s.Query[:s.Dimensions])
	if w.room == nil {
		w.room = new(simd.MarkedRoom)
	}
	w.within(s, keep+keep/2, differences)
	w.several = w.several[:0]
	for _, x := range w.ahead {
		w.several = append(w.several, lowerFirst(x.row()))
	}
	slices.Sort(w.several)
	rest := w.several
	w.signs(s, keep, func(ids []uint32) int {
		n := copy(ids, rest)
		rest = rest[n:]
		return n
	})
	slices.Sort(w.ahead)
	return appendBest(dst, w.ahead)
}

// sampleOf is about how many of the wanted rows a sample should contain.
const sampleOf = 8

// sample estimates the largest difference to the query among the look best of count marked rows, from rows spread over the segment. Only
// rows that differ by less become candidates, so a low limit saves writing most of them down.
func (w *walker) sample(s Signs, look, count int) int {
	whole := len(s.Words) / 128
	part := min(max(1, whole/look), simd.MarkedWords)
	if count < 16*look || sampleOf*part > whole {
		return differences
	}
	t, sampled := tally{limit: differences}, 0
	for i := range sampleOf {
		at := (whole - part) * i / (sampleOf - 1)
		sampled += w.compare(s, &t, s.Words[128*at:128*(at+part)], w.marks[at:at+part])
	}
	t.within = sampled
	t.tighten(sampled*look/count*3/2 + sampleOf)
	return t.limit
}

// compare scores marked rows, and counts those within the limit. It returns their number. They are the first of w.room.
func (w *walker) compare(s Signs, t *tally, words, marks []uint64) int {
	if s.Touch != nil {
		s.Touch(words)
	}
	if len(words) < 128*len(marks) { // the kernel reads whole cache lines
		words = append(make([]uint64, 0, 128), words...)[:128]
	}
	n := simd.SignsMarked(w.room, w.planes, words, marks, int32(-t.limit))
	for _, score := range w.room.Scores[:n] {
		t.differ[-score]++
	}
	return n
}

// within is marked with a limit on how much rows may differ from the query. It returns how many rows it found: at least look if so
// many are within the limit.
func (w *walker) within(s Signs, look, limit int) int {
	t, whole := tally{limit: limit}, len(s.Words)/128
	w.ahead = w.ahead[:0]
	w.ordered = true
	for at, step := 0, 4; at < len(w.marks); {
		end := min(at+step, whole)
		switch {
		case w.marks[at] == 0:
			at++
			continue
		case at >= whole: // the last rows, fewer than a word marks
			end = at + 1
		}
		for w.marks[end-1] == 0 {
			end--
		}
		n := w.compare(s, &t, s.Words[128*at:min(128*end, len(s.Words))], w.marks[at:end])
		for i, row := range w.room.Kept[:n] {
			w.ahead = append(w.ahead, newCandidate(w.room.Scores[i], lowerFirst(uint32(64*at)+row)))
		}
		t.within += n
		t.tighten(look)
		if len(w.ahead) >= fullAt(look) {
			w.ahead, w.ordered = best(w.ahead, 2*look), false
		}
		at, step = end, min(2*step, simd.MarkedWords)
	}
	if w.ordered {
		w.sortCounted(&t)
		w.ahead = w.ahead[:min(t.within, 2*look)]
	} else {
		w.ahead = best(closest(w.ahead, t.limit), 2*look)
	}
	return t.within
}

// sortCounted sorts w.ahead, which is in the order of rows and was counted, the most similar rows first. No branch depends on the
// candidates, and the branch predictor is mostly right when some of them are selected afterwards.
func (w *walker) sortCounted(t *tally) {
	var places [differences]int
	at := 0
	for d, n := range t.differ {
		places[d] = at
		at += n
	}
	sorted := slices.Grow(w.kept[:0], at)[:at]
	for _, x := range w.ahead {
		place := &places[-x.score()]
		sorted[*place] = x
		*place++
	}
	w.ahead, w.kept = sorted, w.ahead
}

// fullAt is the number of candidates from which only the best 2·look of them are kept. Many rows may be about equally similar. At
// least half of the candidates are dropped, so that each of them is examined only a few times.
func fullAt(look int) int { return 4*look + 2*64*simd.MarkedWords }

// closest returns the candidates that differ by less than the limit.
func closest(all []candidate, limit int) []candidate {
	return slices.DeleteFunc(all, func(x candidate) bool { return x.score() <= int32(-limit) })
}

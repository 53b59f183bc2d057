package ann

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// GatheredSigns are contiguous copies of the signs of some rows. A scan reads only these, and in order. Among the signs of all rows,
// those of two words share a cache line with three others, so that a scan for a tenth of the rows reads a third of the lines, out of
// order.
type GatheredSigns struct {
	Words []uint64
	Rows  []uint32 // ascending
}

// Gather copies the signs of some rows.
func (s Signs) Gather(rows *roaring.Bitmap) GatheredSigns {
	g := GatheredSigns{Rows: rows.ToArray()}
	if s.TouchRows != nil {
		s.TouchRows(g.Rows)
	}
	g.Words = make([]uint64, 0, len(g.Rows)*s.Stride)
	for _, row := range g.Rows {
		g.Words = append(g.Words, s.Words[int(row)*s.Stride:][:s.Stride]...)
	}
	return g
}

// gathered reports whether to scan s.Gathered for the given number of allowed rows. If many of its rows are not allowed, a scan of
// all signs costs less, and cannot find too few.
func (s Signs) gathered(allowed uint64) bool {
	return s.Gathered != nil && 4*allowed >= 3*uint64(len(s.Gathered.Rows))
}

// gathered fills w.ahead like marked or signs, with rows of s.Gathered, which include the allowed rows. count is the number of
// allowed rows.
func (w *walker) gathered(s Signs, look int, allowed *roaring.Bitmap, count uint64) {
	rows := s.Gathered.Rows
	s.Words, s.Touch, s.TouchRows = s.Gathered.Words, nil, nil
	excluded := len(rows) - int(count)
	look += look * excluded / int(count) * 2 // as if as many of the best were excluded as of all, and then some
	if s.Stride == 2 {
		w.marks = slices.Grow(w.marks[:0], len(rows)/64+1)[:(len(rows)+63)/64]
		for i := range w.marks {
			w.marks[i] = ^uint64(0)
		}
		if rest := len(rows) % 64; rest > 0 {
			w.marks[len(rows)/64] = 1<<rest - 1
		}
		w.marked(s, look, len(rows))
	} else {
		at := 0
		w.signs(s, look, func(ids []uint32) int {
			n := min(len(ids), len(rows)-at)
			for i := range n {
				ids[i] = uint32(at + i)
			}
			at += n
			return n
		})
	}
	for i, x := range w.ahead {
		w.ahead[i] = newCandidate(x.score(), lowerFirst(rows[lowerFirst(x.row())]))
	}
	if excluded > 0 {
		w.ahead = slices.DeleteFunc(w.ahead, func(x candidate) bool { return !allowed.Contains(lowerFirst(x.row())) })
	}
}

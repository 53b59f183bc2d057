package segment

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/ann"
	"svc/internal/mapped"
)

// A walk through a graph that is not in memory waits for the disk at least once per step, and reads a block of 4 KiB for
// each row of codes. While a file is being read ahead, searches read the signs of all codes instead: one range, a
// thirty-second of the full rows. Then they request at once the full rows that are worth comparing.

// mostSigns is the maximum number of bytes of signs that a search reads. They take as long as the blocks of a walk.
const mostSigns = 32 << 20

// keptShare: if more than one in so many rows would be compared, a walk, or a scan of all codes, reads less.
const keptShare = 8

// mostKept: a search does not request more full rows than this.
const mostKept = 8 << 10

// keptBySigns returns how many rows found by signs have to be compared to get the wanted nearest ones: with so many, recall was
// measured to be at least 98 %, with up to a million vectors. Signs of few dimensions carry less information.
func (s *EmbedderShape) keptBySigns(wanted int) int {
	few := 128 / float64(s.Dimensions)
	return 10 + int(float64(wanted)*(1.5+40*few*max(few, math.Sqrt(few))))
}

// wideSigns says how many rows, of a sample, a search had to keep by signs to find the signsHits nearest ones with recall wideRecall.
// The zero value means that EmbedderShape.keptBySigns suffices.
type wideSigns struct{ kept, of uint32 }

// The number of rows that a search by signs has to keep grows with these powers of the numbers of compared and wanted rows. For
// independent normal components it was measured to grow with a power of 0.45 to 0.65 from 16,384 to 1,000,000 rows.
const (
	wideByRows    = 0.7
	wideByFewRows = 0.55 // of fewer than the sample has
	wideByWanted  = 0.5
)

// keptBySigns returns how many rows found by signs have to be compared to get the wanted nearest ones of among rows.
func (v *Vectors) keptBySigns(wanted, among int) int {
	keep := v.shape.keptBySigns(wanted)
	if w := v.wide; w.of > 0 {
		power := wideByRows
		if among < int(w.of) {
			power = wideByFewRows
		}
		more := float64(w.kept) * math.Pow(float64(among)/float64(w.of), power) * math.Pow(float64(wanted)/signsHits, wideByWanted)
		keep = max(keep, int(min(more, maxRows)))
	}
	return keep
}

// mostCosine is the largest mean cosine of two vectors for which searches compare signs that are not centred. If the mean of the
// vectors is large, so are many components of it, and nearly all rows have the same sign in these.
const mostCosine = 1.0 / 8

// comparesSigns reports whether searches among allowed rows compare signs.
func (v *Vectors) comparesSigns() bool {
	return len(v.signs.Words) > 0 && v.signs.Quick() && (v.centred || 0 < v.cosine && v.cosine <= mostCosine)
}

// signsInstead reports whether no search walks, because the vectors have no clusters that could guide a walk. Searches compare signs
// instead, or all codes if signs would keep more than one row in keptShare.
func (v *Vectors) signsInstead() bool { return v.wide.of > 0 && v.comparesSigns() }

// scanShare: with long rows, and at most so many rows per step of its patience, a walk takes longer than comparing the signs of all
// rows.
const scanShare = 350

// scansSigns reports whether searches that may find all vectors compare signs instead of walking with the given reach. Walks that
// judge rows by their signs are faster.
func (v *Vectors) scansSigns(r ann.Reach) bool {
	return v.shape.Dimensions > usualCode && v.vectors <= scanShare*r.Patience && v.comparesSigns() && !v.signs.Forecast() &&
		v.keptBySigns(r.Wanted, v.vectors) <= v.vectors/keptShare
}

// signsOf returns the signs, with the query's code less their centre.
func (s *vectorSearch) signsOf() ann.Signs {
	signs := s.v.signs
	signs.Query = s.code
	if s.v.centred {
		s.offset = append(s.offset[:0], s.normal...)
		for i := range s.offset {
			s.offset[i] -= float32(s.v.centre[i]) / s.v.quantizer.Scale
		}
		q := ann.Quantizer{Dimensions: len(s.offset), Scale: queryScale(s.offset)}
		s.offsetCode = q.AppendCode(s.offsetCode[:0], s.offset)
		signs.Query = s.offsetCode
	}
	return signs
}

// glance searches by signs where the file is not in memory yet. It reports whether it did.
func (s *vectorSearch) glance(k, wanted int, allowed *roaring.Bitmap) bool {
	v := s.v
	words := bytesOf(v.signs.Words)
	keep := v.keptBySigns(wanted, v.vectors)
	if len(words) == 0 || !v.centred && v.cosine > mostCosine || len(words) > mostSigns || keep > min(v.vectors/keptShare, mostKept) || !v.r.isCold() {
		return false
	}
	counts, among := s.counts, allowed
	switch {
	case allowed != nil:
		counts = allowed.Contains
	case s.rows == nil:
		counts, among = nil, v.all
	}
	v.r.ahead.waiting.Add(1)
	defer v.r.ahead.waiting.Add(-1)
	if mapped.Guard(func() error {
		v.r.blocks.fetchAll(words)
		if signs := s.signsOf(); signs.Stride == 2 && s.rows == nil {
			s.found = signs.ScanMarked(s.found[:0], keep, among)
		} else {
			s.found = signs.Scan(s.found[:0], keep, counts)
		}
		return nil
	}) != nil {
		return false // the alternatives may be undamaged
	}
	s.fetch(len(s.found), len(s.found))
	s.best = s.best[:0]
	s.addOutliers(allowed)
	s.ids = s.ids[:0]
	for _, n := range s.found {
		s.ids = append(s.ids, n.Row)
	}
	s.compare()
	s.settle(k)
	s.complete(k)
	v.r.askForDocuments(s.best)
	return len(s.best) == k || len(s.found) < keep
}

// mostDocuments and documentStart limit what is requested of documents that will be shown.
const (
	mostDocuments = 32
	documentStart = 16 << 10
)

// askForDocuments requests the documents of the first of some rows, so that a caller does not wait for them one after the other.
func (r *Reader) askForDocuments(rows []Scored) {
	ids := make([]Row, 0, mostDocuments)
	for _, x := range rows[:min(len(rows), mostDocuments)] {
		ids = append(ids, x.Row)
	}
	r.requestDocuments(ids, r.blocks.fetchAll)
}

// requestDocuments calls ask with the entries of the index for some rows, and then with the beginnings of their documents.
func (r *Reader) requestDocuments(rows []Row, ask func(p []byte)) {
	index, data := r.docs.index, r.docs.data
	offsets := func(row Row) []byte { return index[docOffsetBytes*int(row):][:2*docOffsetBytes] }
	for _, row := range rows {
		if int(row) < r.docs.rows { // or it is damaged
			ask(offsets(row))
		}
	}
	for _, row := range rows {
		if int(row) >= r.docs.rows {
			continue
		}
		// It may be damaged: the reader of the document reports that.
		at := offsets(row)
		from, to := documentOffset(at), documentOffset(at[docOffsetBytes:])
		if from < to && to <= uint64(len(data)) {
			ask(data[from:min(to, from+documentStart)])
		}
	}
}

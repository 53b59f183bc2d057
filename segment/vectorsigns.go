package segment

import (
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/ann"
)

// signsTrial is a sample of rows in which searches by signs are compared with searches by codes.
type signsTrial struct {
	w       *vectorWriter
	codes   ann.Codes
	signs   ann.Signs
	rows    int
	queries int
	nearest []ann.Neighbour // of a query, by codes
	found   []ann.Neighbour // by signs
	offset  []float32
}

// newSignsTrial copies a sample of the rows and their signs.
func (w *vectorWriter) newSignsTrial(codes ann.Codes) *signsTrial {
	stride, rows := codes.Stride, codes.Rows()
	most := min(signsSample, max(1, signsSampled/stride))
	step := (rows + most - 1) / most
	rows = (rows + step - 1) / step
	t := &signsTrial{w: w, rows: rows, queries: min(signsQueries, rows), offset: make([]float32, w.shape.Dimensions)}
	t.codes = ann.Codes{Bytes: make([]int8, 0, rows*stride), Stride: stride}
	t.signs = ann.Signs{Words: make([]uint64, 0, rows*stride/64), Stride: stride / 64, Dimensions: w.shape.Dimensions}
	for row := range rows {
		code := codes.Bytes[row*step*stride:][:stride]
		t.codes.Bytes = append(t.codes.Bytes, code...)
		t.signs.Words = ann.AppendSigns(t.signs.Words, code, w.centre)
	}
	return t
}

// each calls do with each query, a row of the sample, and its codes. It stops once the context has ended, and reports whether it did not.
func (t *signsTrial) each(do func(row uint32, query []int8)) bool {
	stride := t.codes.Stride
	for i := range t.queries {
		if t.w.ctx.Err() != nil {
			return false
		}
		row := i * t.rows / t.queries
		query := t.codes.Bytes[row*stride:][:stride]
		for j := range t.offset {
			t.offset[j] = float32(query[j]) - float32(t.w.centre[j])
		}
		t.signs.Query = ann.Quantizer{Dimensions: len(t.offset), Scale: queryScale(t.offset)}.AppendCode(t.signs.Query[:0], t.offset)
		t.nearest = ann.Scan(t.nearest[:0], t.codes, query, signsHits, nil)
		do(uint32(row), query)
	}
	return true
}

// recall returns the recall of searches by signs that keep the usual number of rows. It is low for sparse vectors: most components of
// the rows and of the centre are 0, so many rows have the same signs. It is 0 once the context has ended.
func (t *signsTrial) recall() float64 {
	all, look, hits, missed := roaring.New(), t.w.shape.keptBySigns(signsHits), 0, 0
	all.AddRange(0, uint64(t.rows))
	if !t.each(func(_ uint32, query []int8) {
		t.found = t.signs.Among(t.found[:0], t.codes, query, look, ann.Reach{Pool: len(t.nearest)}, all)
		for j, n := range t.nearest {
			hits++
			if j >= len(t.found) || t.found[j].Score < n.Score {
				missed++
			}
		}
	}) {
		return 0
	}
	return 1 - float64(missed)/float64(hits)
}

// wide returns how many rows searches by signs have to keep for a recall of wideRecall. It reports whether this is at most one row in
// widestShare.
func (t *signsTrial) wide() (wideSigns, bool) {
	keep := t.rows / widestShare
	var places []int // of the nearest rows, as signs order them
	place := make([]int, t.rows)
	if !t.each(func(row uint32, _ []int8) {
		for i := range place {
			place[i] = t.rows
		}
		t.found = t.signs.Scan(t.found[:0], keep, nil)
		for i, n := range t.found {
			place[n.Row] = i + 1
		}
		for _, n := range t.nearest {
			if n.Row != row {
				places = append(places, place[n.Row])
			}
		}
	}) {
		return wideSigns{}, false
	}
	slices.Sort(places)
	kept := places[int(wideRecall*float64(len(places)-1))]
	kept, ok := kept+kept/4, kept <= keep // for other queries than rows of the sample
	return wideSigns{uint32(min(kept, t.rows)), uint32(t.rows)}, ok
}

// writeSigns writes the section vsgc or vsgw, or none if signs are too inaccurate.
func (w *vectorWriter) writeSigns(codes ann.Codes) {
	trial := w.newSignsTrial(codes)
	if trial.recall() >= leastRecall {
		w.f.begin(tagSigns, uint32(w.shape.ID))
	} else if wide, ok := trial.wide(); ok {
		w.f.begin(tagWideSigns, uint32(w.shape.ID))
		head := binary.LittleEndian.AppendUint32(make([]byte, 0, wideHeadBytes), wide.kept)
		w.f.Write(binary.LittleEndian.AppendUint32(head, wide.of)[:wideHeadBytes])
	} else {
		return
	}
	w.f.Write(bytesOf(w.centre))
	words := make([]uint64, 0, codes.Stride/64)
	for code := range slices.Chunk(codes.Bytes, codes.Stride) {
		words = ann.AppendSigns(words[:0], code, w.centre)
		w.f.Write(bytesOf(words))
	}
	w.f.end()
}

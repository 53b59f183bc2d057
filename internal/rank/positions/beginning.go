package positions

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
	"svc/segment/rowlist"
)

// positionBytes is how many bytes AppendStarting reads in these fields.
func positionBytes(fields []segment.FieldPosting) (n int) {
	for _, f := range fields {
		n += f.PositionBytes()
	}
	return n
}

// Beginning returns the rows of a segment, among in, in which a field begins with a word or phrase as written, or with the first word
// of the phrase. ok is false if that would read more than bytes bytes. The rows must have the word or phrase, and its place must be
// the first one.
func (r *Reader) Beginning(node, seg int, in *roaring.Bitmap, bytes int) (*roaring.Bitmap, bool) {
	v := &r.Graph.Nodes[node]
	words, weights := v.Words[seg], r.Words
	if v.Phrase {
		p, only := v.PhraseIn(seg)
		if !only {
			return nil, false
		}
		words, weights = p.Segments[seg].Words, r.Searched
	}
	fields := fieldsIn(words[0], weights)
	if positionBytes(fields) > bytes {
		return nil, false
	}
	var found *roaring.Bitmap
	for _, f := range fields {
		r.rows = f.AppendStarting(r.rows[:0])
		if len(r.rows) == 0 {
			continue
		}
		rows := rowlist.SetOf(r.rows, r.Segments[seg].Rows())
		if v.Phrase || r.Restricted || in != v.Segments[seg].Word { // else all of them are
			rows = and(rows, in)
		}
		switch {
		case found == nil:
			found = rows
		case rows != nil:
			found = roaring.Or(found, rows)
		}
	}
	return found, true
}

// BeginningBytes is how many bytes of positions Beginning reads for a word.
func (r *Reader) BeginningBytes(node, seg int) int {
	return positionBytes(fieldsIn(r.Graph.Nodes[node].Words[seg][0], r.Words))
}

// AppendBeginning appends those of some ascending rows of a segment in which a field begins with a word as written, ascending. It
// reads only these rows.
func (r *Reader) AppendBeginning(dst []uint32, node, seg int, rows []uint32) []uint32 {
	begin := len(dst)
	mark := r.Numbers.Mark()
	left := append(r.Numbers.Take(len(rows))[:0], rows...)
	for _, f := range fieldsIn(r.Graph.Nodes[node].Words[seg][0], r.Words) {
		r.lowest = f.FirstPositions(r.lowest[:0], left)
		n := 0
		for i, row := range left {
			if r.lowest[i] == 0 {
				dst = append(dst, row)
			} else {
				left[n] = row
				n++
			}
		}
		left = left[:n]
	}
	r.Numbers.Release(mark)
	slices.Sort(dst[begin:])
	return dst
}

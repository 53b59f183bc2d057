package positions

import (
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

// Beginning returns those of some rows of a segment in which a field begins with a word or phrase as it is written, or with the first word
// of the phrase; false where that reads more than so many bytes. The rows have the word or phrase, and its place is the first one.
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

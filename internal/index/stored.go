package index

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// storedDocs walks live documents of all segments of a view in ascending DocID.
type storedDocs struct {
	streams []rowStream
	least   int // of streams: the one with the lowest document
	left    int
}

// rowStream is one segment on the way.
type rowStream struct {
	live segment.Live
	rows roaring.IntPeekable
	head item
	ok   bool
}

// newStoredDocs reads the rows of only, or all rows if only is nil, without the rows of gone.
func newStoredDocs(v *View, gone, only map[*file]*roaring.Bitmap) *storedDocs {
	d := new(storedDocs)
	for i, f := range v.files {
		if only != nil && only[f] == nil {
			continue
		}
		l := f.live(union(v.Segments[i].Deleted, gone[f]))
		rows := l.LiveRows()
		if only != nil {
			rows = roaring.And(rows, only[f])
		}
		s := rowStream{live: l, rows: rows.Iterator(), head: item{state: -1, seg: int32(i)}}
		s.advance()
		d.streams = append(d.streams, s)
		d.left += int(rows.GetCardinality())
	}
	d.findLeast()
	return d
}

func (s *rowStream) advance() {
	if s.ok = s.rows.HasNext(); s.ok {
		s.head.row = segment.Row(s.rows.Next())
		s.head.id = s.live.DocID(s.head.row)
	}
}

// findLeast looks at all streams: there are few.
func (d *storedDocs) findLeast() {
	d.least = -1
	for i := range d.streams {
		if s := &d.streams[i]; s.ok && (d.least < 0 || s.head.id < d.streams[d.least].head.id) {
			d.least = i
		}
	}
}

// peek returns the next document; ok is false at the end, and of a nil list.
func (d *storedDocs) peek() (it item, ok bool) {
	if d == nil || d.least < 0 {
		return item{}, false
	}
	return d.streams[d.least].head, true
}

// next goes to the next document, in the order of DocIDs over all segments.
func (d *storedDocs) next() {
	d.streams[d.least].advance()
	d.left--
	d.findLeast()
}

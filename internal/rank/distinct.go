package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// distinct keeps the first document of those that share a value of a field.
type distinct struct {
	ix       *Index
	columns  []*segment.Column // by segment; nil where no document has a value
	excluded rows              // documents that share a value with a kept one, the kept ones too
	kept     rows
	ordinals []uint32
}

func newDistinct(ix *Index, field string) *distinct {
	d := &distinct{ix: ix, columns: make([]*segment.Column, len(ix.Segments))}
	id, ok := ix.Fields.ID(field)
	for i, s := range ix.Segments {
		d.excluded = append(d.excluded, roaring.New())
		d.kept = append(d.kept, roaring.New())
		if ok {
			d.columns[i] = s.Column(id)
		}
	}
	return d
}

// keep reports whether no kept document shares a value with this one, and then keeps it.
func (d *distinct) keep(seg int, row segment.Row) bool {
	if d.excluded[seg].Contains(uint32(row)) {
		return false
	}
	d.kept[seg].Add(uint32(row))
	c := d.columns[seg]
	if c == nil {
		return true
	}
	d.ordinals = c.RowNumbers(d.ordinals[:0], row)
	for _, ord := range d.ordinals {
		d.excludeNumber(c.Number(int(ord)))
	}
	d.ordinals = c.RowStrings(d.ordinals[:0], row)
	for _, ord := range d.ordinals {
		if s := c.String(int(ord)); len(s) > 0 {
			d.excludeString(s)
		}
	}
	return true
}

func (d *distinct) excludeNumber(x float64) {
	for i, c := range d.columns {
		if c == nil {
			continue
		}
		if ord := c.SearchNumber(x); ord < c.Numbers() && c.Number(ord) == x {
			c.AddNumberRows(d.excluded[i], ord, ord+1)
		}
	}
}

func (d *distinct) excludeString(s []byte) {
	for i, c := range d.columns {
		if c == nil {
			continue
		}
		if ord := c.SearchString(s); ord < c.Strings() && string(c.String(ord)) == string(s) {
			c.AddStringRows(d.excluded[i], ord, ord+1)
		}
	}
}

// apply takes the documents that were found to be duplicates out of a set.
func (d *distinct) apply(r rows) rows {
	out := make(rows, len(r))
	for i := range r {
		duplicates := roaring.AndNot(d.excluded[i], d.kept[i])
		out[i] = andNot(r[i], duplicates)
	}
	return out
}

// deduplicate keeps of a set the first document by id of each value.
func (s *search) deduplicate(r rows) rows {
	d := newDistinct(s.ix, s.r.Distinct)
	for m := newMerge(s.ix, r); m.next(); {
		d.keep(m.segment, segment.Row(m.row))
	}
	return each(r, d.kept, and)
}

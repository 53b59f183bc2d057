package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// Distinct keeps the first document of those that share a value of a field.
type Distinct struct {
	ix       *Index
	field    string
	columns  []*segment.Column // by segment; nil where no document has a value
	excluded rows              // documents that share a value with a kept one, the kept ones too
	kept     rows
	ordinals []uint32
}

// NewDistinct returns a Distinct that has kept nothing yet.
func NewDistinct(ix *Index, field string) *Distinct {
	d := &Distinct{ix: ix, field: field, columns: columnsOf(ix, field)}
	for range ix.Segments {
		d.excluded = append(d.excluded, roaring.New())
		d.kept = append(d.kept, roaring.New())
	}
	return d
}

// Keep reports whether no kept document shares a value with this one, and then keeps it.
func (d *Distinct) Keep(seg int, row segment.Row) bool {
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
		c.AddNumberRows(d.excluded[seg], int(ord), int(ord)+1)
		d.excludeNumber(seg, c.Number(int(ord)))
	}
	d.ordinals = c.RowStrings(d.ordinals[:0], row)
	for _, ord := range d.ordinals {
		if s := c.String(int(ord)); len(s) > 0 {
			c.AddStringRows(d.excluded[seg], int(ord), int(ord)+1)
			d.excludeString(seg, s)
		}
	}
	return true
}

// excludeNumber excludes the documents of segments other than seg that have a number.
func (d *Distinct) excludeNumber(seg int, x float64) {
	for i, c := range d.columns {
		if c == nil || i == seg {
			continue
		}
		if ord := c.SearchNumber(x); ord < c.Numbers() && c.Number(ord) == x {
			c.AddNumberRows(d.excluded[i], ord, ord+1)
		}
	}
}

// excludeString excludes the documents of segments other than seg that have a string.
func (d *Distinct) excludeString(seg int, s []byte) {
	for i, c := range d.columns {
		if c == nil || i == seg {
			continue
		}
		if ord := c.SearchString(s); ord < c.Strings() && string(c.String(ord)) == string(s) {
			c.AddStringRows(d.excluded[i], ord, ord+1)
		}
	}
}

// Candidates returns a set, by segment, without the documents that were found to be duplicates. exhaustive: it keeps only the first
// document by id of each value. No bitmap of it is nil.
func (d *Distinct) Candidates(r []*roaring.Bitmap, exhaustive bool) []*roaring.Bitmap {
	out := make(rows, len(r))
	for i := range r {
		duplicates := roaring.AndNot(d.excluded[i], d.kept[i])
		out[i] = andNot(r[i], duplicates)
	}
	if exhaustive {
		out = d.deduplicate(out)
	}
	for i := range out {
		if out[i] == nil {
			out[i] = roaring.New()
		}
	}
	return out
}

// deduplicate keeps of a set the first document by id of each value.
func (d *Distinct) deduplicate(r rows) rows {
	v := newValueNumbers(d.ix, d.field)
	kept := make(rows, len(r))
	for i := range kept {
		kept[i] = roaring.New()
	}
	for m := newMerge(d.ix, r); m.next(); {
		if v.first(m.segment, segment.Row(m.row)) {
			kept[m.segment].Add(m.row)
		}
	}
	return kept
}

// valueNumbers numbers the values of a field as they are met, the same in all segments.
type valueNumbers struct {
	columns          []*segment.Column
	numbers, strings [][]uint32 // by segment and ordinal: number of the value, 0 when it was not met yet
	ofNumber         map[float64]uint32
	ofString         map[string]uint32
	seen             []bool // by number: a document has it
	ordinals, found  []uint32
}

func newValueNumbers(ix *Index, field string) *valueNumbers {
	v := &valueNumbers{columns: columnsOf(ix, field), ofNumber: map[float64]uint32{}, ofString: map[string]uint32{}, seen: make([]bool, 1)}
	v.numbers, v.strings = make([][]uint32, len(v.columns)), make([][]uint32, len(v.columns))
	for i, c := range v.columns {
		if c != nil {
			v.numbers[i], v.strings[i] = make([]uint32, c.Numbers()), make([]uint32, c.Strings())
		}
	}
	return v
}

// first reports whether no document before had one of the row's values.
func (v *valueNumbers) first(seg int, row segment.Row) bool {
	c := v.columns[seg]
	if c == nil {
		return true
	}
	v.found = v.found[:0]
	v.ordinals = c.RowNumbers(v.ordinals[:0], row)
	for _, ord := range v.ordinals {
		n := &v.numbers[seg][ord]
		if *n == 0 {
			*n = number(v, v.ofNumber, c.Number(int(ord)))
		}
		v.found = append(v.found, *n)
	}
	v.ordinals = c.RowStrings(v.ordinals[:0], row)
	for _, ord := range v.ordinals {
		n := &v.strings[seg][ord]
		if *n == 0 {
			value := c.String(int(ord))
			if len(value) == 0 {
				continue
			}
			*n = number(v, v.ofString, string(value))
		}
		v.found = append(v.found, *n)
	}
	for _, n := range v.found {
		if v.seen[n] {
			return false
		}
	}
	for _, n := range v.found {
		v.seen[n] = true
	}
	return true
}

// number returns the number of a value, a new one if it was not met before.
func number[V comparable](v *valueNumbers, of map[V]uint32, value V) uint32 {
	n, ok := of[value]
	if !ok {
		n = uint32(len(v.seen))
		v.seen = append(v.seen, false)
		of[value] = n
	}
	return n
}

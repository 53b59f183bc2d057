package rank

import (
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numbering"
	"svc/internal/numeric"
	"svc/segment"
	"svc/segment/rowlist"
)

// Distinct keeps the first of the documents that share a value of a field.
//
// For the first kept documents it marks all documents that share a value with them, which takes longer with more segments. After many
// it records the values seen, by number, and checks the values of each unmarked document.
type Distinct struct {
	ix       *Index
	field    string
	columns  []*segment.Column // by segment; nil: no document has a value
	excluded []rowBits         // by segment: documents that share a value with a kept one, including the kept ones; nil until one was kept
	kept     rows
	ordinals []uint32
	count    int // of kept

	met     *metValues // nil: all are marked
	in, out []rowBits  // by segment: kept documents, and duplicates
}

// NewDistinct returns a Distinct that has kept nothing yet.
func NewDistinct(ix *Index, field string) *Distinct {
	d := &Distinct{ix: ix, field: field, columns: columnsOf(ix, field)}
	for range ix.Segments {
		d.excluded = append(d.excluded, nil)
		d.kept = append(d.kept, roaring.New())
	}
	return d
}

// maxMarking is the number of kept documents for which others are marked. (A variable, so that tests can lower it.)
var maxMarking = 1 << 10

// note switches from sets of excluded rows to sets of seen values.
func (d *Distinct) note() {
	d.met = newMetValues(d.ix, d.field)
	for i, kept := range d.kept {
		in, out := newRowBits(d.ix.Segments[i].Rows()), newRowBits(d.ix.Segments[i].Rows())
		kept.WriteDenseTo(in)
		copy(out, d.excluded[i])
		for w := range out {
			out[w] &^= in[w]
		}
		d.in, d.out = append(d.in, in), append(d.out, out)
		for it := kept.Iterator(); it.HasNext(); {
			d.met.note(i, segment.Row(it.Next()))
		}
	}
}

// Keep reports whether no kept document shares a value with this one, and if so keeps it.
func (d *Distinct) Keep(seg int, row segment.Row) bool {
	if d.met != nil {
		if d.out[seg].has(uint32(row)) {
			return false
		}
		if !d.met.first(seg, row) {
			d.out[seg].set(uint32(row))
			return false
		}
		d.in[seg].set(uint32(row))
		return true
	}
	if e := d.excluded[seg]; e != nil && e.has(uint32(row)) {
		return false
	}
	d.kept[seg].Add(uint32(row))
	c := d.columns[seg]
	if c == nil {
		return true
	}
	if d.count++; d.count > maxMarking {
		d.note()
		return true
	}
	d.ordinals = c.RowNumbers(d.ordinals[:0], row)
	for _, ord := range d.ordinals {
		c.MarkNumbers(d.exclude(seg), int(ord), int(ord)+1)
		d.excludeNumber(seg, c.Number(int(ord)))
	}
	d.ordinals = c.RowStrings(d.ordinals[:0], row)
	for _, ord := range d.ordinals {
		if s := c.String(int(ord)); len(s) > 0 {
			c.MarkStrings(d.exclude(seg), int(ord), int(ord)+1)
			d.excludeString(seg, s)
		}
	}
	return true
}

// exclude returns the excluded documents of a segment, to add to them.
func (d *Distinct) exclude(seg int) rowBits {
	if d.excluded[seg] == nil {
		d.excluded[seg] = newRowBits(d.ix.Segments[seg].Rows())
	}
	return d.excluded[seg]
}

// left returns the documents of a set that are neither kept nor known to be duplicates. ok is false if that requires reading the
// values of each document.
func (d *Distinct) left(r rows) (rows, bool) {
	if d.met != nil {
		return nil, false
	}
	out := d.unlike(r)
	for i := range out {
		out[i] = andNot(out[i], d.kept[i])
	}
	return out, true
}

// single reports whether every document has at most one value. Then it does not matter to the others which document of a value is
// kept.
func (d *Distinct) single() bool { return singleValued(d.columns) }

// unlike returns the documents of a set that are not known to share a value with a kept one. Of equal sets, a later call returns no
// document that an earlier one did not.
func (d *Distinct) unlike(r rows) rows {
	known := d.excluded
	if d.met != nil {
		known = d.out
	}
	out := make(rows, len(r))
	for i := range r {
		out[i] = known[i].without(r[i])
	}
	return out
}

// excludeNumber excludes the documents of segments other than seg that have a number.
func (d *Distinct) excludeNumber(seg int, x numeric.Value) {
	for i, c := range d.columns {
		if c == nil || i == seg {
			continue
		}
		if ord := c.SearchNumber(x); ord < c.Numbers() && c.Number(ord) == x {
			c.MarkNumbers(d.exclude(i), ord, ord+1)
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
			c.MarkStrings(d.exclude(i), ord, ord+1)
		}
	}
}

// SingleValued reports whether every document is known to have at most one value of a field.
func SingleValued(ix *Index, field string) bool { return singleValued(columnsOf(ix, field)) }

func singleValued(columns []*segment.Column) bool {
	for _, c := range columns {
		switch {
		case c == nil:
		case c.Numbers() > 0 && (c.Strings() > 0 || !c.SingleNumbers()), c.Strings() > 0 && !c.SingleStrings():
			return false
		}
	}
	return true
}

// Candidates returns a set, by segment, without the documents found to be duplicates. With exhaustive, it keeps only the first
// document by id of each value, and may stop after most documents. No bitmap of it is nil.
func (d *Distinct) Candidates(r []*roaring.Bitmap, exhaustive bool, most int) []*roaring.Bitmap {
	out := make(rows, len(r))
	for i := range r {
		if d.met != nil {
			out[i] = d.unmet(i, r[i])
			continue
		}
		duplicates := roaring.AndNot(rowlist.FromBits(d.excluded[i]), d.kept[i])
		out[i] = andNot(r[i], duplicates)
	}
	if exhaustive {
		out = d.deduplicate(out, most)
	}
	for i := range out {
		if out[i] == nil {
			out[i] = roaring.New()
		}
	}
	return out
}

// unmet returns the rows of a set that were kept, or share no value with a kept one.
func (d *Distinct) unmet(seg int, set *roaring.Bitmap) *roaring.Bitmap {
	if set == nil || d.columns[seg] == nil {
		return set
	}
	in := newRowBits(d.ix.Segments[seg].Rows())
	set.WriteDenseTo(in)
	for i := range in {
		in[i] &^= d.out[seg][i]
		for rest := in[i] &^ d.in[seg][i]; rest != 0; rest &= rest - 1 { // rows not checked yet
			row := uint32(64*i + bits.TrailingZeros64(rest))
			if d.met.met(seg, segment.Row(row)) {
				in[i] &^= 1 << (row % 64)
			}
		}
	}
	return roaring.FromDense(in, false)
}

// deduplicate returns the first document by id of each value in a set, at most most documents.
func (d *Distinct) deduplicate(r rows, most int) rows {
	v := newMetValues(d.ix, d.field)
	kept := make(rows, len(r))
	in := make([]rowBits, len(r))
	for i := range in {
		in[i] = newRowBits(d.ix.Segments[i].Rows())
	}
	for m, n := newMerge(d.ix, r), 0; n < most && m.next(); {
		if v.first(m.segment, segment.Row(m.row)) {
			in[m.segment].set(m.row)
			n++
		}
	}
	for i := range kept {
		kept[i] = roaring.FromDense(in[i], false)
	}
	return kept
}

// rowBits has a bit for each row of a segment.
type rowBits []uint64

func newRowBits(rows int) rowBits { return make(rowBits, (rows+63)/64) }

func (b rowBits) set(row uint32)      { b[row/64] |= 1 << (row % 64) }
func (b rowBits) has(row uint32) bool { return b[row/64]>>(row%64)&1 != 0 }

// without returns the rows of a set whose bits are not set, or nil if there are none.
func (b rowBits) without(r *roaring.Bitmap) *roaring.Bitmap {
	switch {
	case r == nil || b == nil:
		return r
	case int(r.GetCardinality()) < len(b):
		left := roaring.New()
		for it := r.Iterator(); it.HasNext(); {
			if row := it.Next(); !b.has(row) {
				left.Add(row)
			}
		}
		r = left
	default:
		in := make(rowBits, len(b))
		r.WriteDenseTo(in)
		for i := range in {
			in[i] &^= b[i]
		}
		r = roaring.FromDense(in, false)
	}
	if r.IsEmpty() {
		return nil
	}
	return r
}

// metValues are the values of a field that documents had.
type metValues struct {
	numbers, strings metNumbers
	found            []uint32 // numbers of the current document
}

// metNumbers are those of its numbers, or of its strings.
type metNumbers struct {
	columns  []*segment.Column // nil for segments without any
	strings  bool
	none     []bool // by segment: the first string is empty, which is no value
	of       *numbering.Numbers
	met      rowBits // by number
	ordinals []uint32
}

func newMetValues(ix *Index, field string) *metValues {
	v := new(metValues)
	v.numbers.open(ix, field, false)
	v.strings.open(ix, field, true)
	return v
}

// open prepares for a field: it takes its columns, and numbers its values over all segments.
func (m *metNumbers) open(ix *Index, field string, strings bool) {
	m.columns, m.strings = columnsOf(ix, field), strings
	id, ok := ix.Fields.ID(field)
	if !ok {
		return
	}
	m.none = make([]bool, len(m.columns))
	m.of = valueNumbers(ix, id, strings)
	m.met = newRowBits(m.of.Count)
	for i, c := range m.columns {
		switch {
		case c == nil:
		case strings && c.Strings() > 0:
			m.none[i] = len(c.String(0)) == 0
		case strings || c.Numbers() == 0:
			m.columns[i] = nil
		}
	}
}

// valueNumbers returns the numbers of a field's values.
func valueNumbers(ix *Index, field segment.FieldID, strings bool) *numbering.Numbers {
	columns := make([]numbering.Column, len(ix.Segments))
	for i, s := range ix.Segments {
		columns[i].Column = s.Column(field)
		if ix.Cache != nil {
			columns[i].Scope = ix.Cache.OfFile(i)
		}
	}
	if ix.Cache == nil {
		return numbering.New(columns, field, strings, nil)
	}
	return numbering.New(columns, field, strings, ix.Cache.Own())
}

// append appends the numbers of a row's values.
func (m *metNumbers) append(dst []uint32, seg int, row segment.Row) []uint32 {
	c := m.columns[seg]
	if c == nil {
		return dst
	}
	if m.strings {
		m.ordinals = c.RowStrings(m.ordinals[:0], row)
	} else {
		m.ordinals = c.RowNumbers(m.ordinals[:0], row)
	}
	for _, ord := range m.ordinals {
		if ord > 0 || !m.none[seg] {
			dst = append(dst, m.of.Of(seg, ord))
		}
	}
	return dst
}

func (m *metNumbers) any(numbers []uint32) bool {
	for _, n := range numbers {
		if m.met.has(n) {
			return true
		}
	}
	return false
}

func (m *metNumbers) note(numbers []uint32) {
	for _, n := range numbers {
		m.met.set(n)
	}
}

// look looks at the values of a row.
func (v *metValues) look(seg int, row segment.Row) (numbers, strings []uint32) {
	v.found = v.numbers.append(v.found[:0], seg, row)
	n := len(v.found)
	v.found = v.strings.append(v.found, seg, row)
	return v.found[:n], v.found[n:]
}

// met reports whether one of a row's values was met.
func (v *metValues) met(seg int, row segment.Row) bool {
	numbers, strings := v.look(seg, row)
	return v.numbers.any(numbers) || v.strings.any(strings)
}

// first reports whether none was met, and then notes them.
func (v *metValues) first(seg int, row segment.Row) bool {
	numbers, strings := v.look(seg, row)
	if v.numbers.any(numbers) || v.strings.any(strings) {
		return false
	}
	v.numbers.note(numbers)
	v.strings.note(strings)
	return true
}

func (v *metValues) note(seg int, row segment.Row) {
	numbers, strings := v.look(seg, row)
	v.numbers.note(numbers)
	v.strings.note(strings)
}

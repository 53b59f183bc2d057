package search

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/index"
	"svc/internal/numeric"
	"svc/internal/rank"
	"svc/segment"
)

// facetValue is one value of a facet and the number of candidates that have it. Equal values of several segments are one facetValue.
type facetValue struct {
	isNumber bool
	number   numeric.Value
	key      []byte // of a string: normalised
	shown    []byte // of a number; nil until it is known to be shown
	count    int

	in     *facetRows // of a string: where it is; nil for numbers
	ord    int        // of a string: in its column
	varies bool       // candidates may spell it differently
}

// facetRows are the documents of a segment whose values of a facet are counted.
type facetRows struct {
	segment.Live
	column  *segment.Column
	found   *rank.Result // has the candidates in the segment; nil: they are those of among
	segment int          // its place in the view
	among   *roaring.Bitmap
}

// rows returns them; nil: all.
func (r *facetRows) rows() *roaring.Bitmap {
	if r.found != nil {
		return r.found.In(r.segment)
	}
	return r.among
}

// count returns how many they are, where not all.
func (r *facetRows) count() int {
	if r.found != nil {
		return r.found.Count(r.segment)
	}
	return int(r.among.GetCardinality())
}

// rows returns the documents that have a string.
func (v *facetValue) rows() *roaring.Bitmap {
	rows := roaring.New()
	v.in.column.AddStringRows(rows, v.ord, v.ord+1)
	if among := v.in.rows(); among != nil {
		rows.And(among)
	}
	return rows
}

// first returns the lowest document with a string, or the largest number if all of them are deleted.
func (v *facetValue) first() segment.DocID {
	rows := v.rows()
	if rows.IsEmpty() {
		return math.MaxUint32
	}
	return v.in.DocID(segment.Row(rows.Minimum()))
}

// compare orders numbers by value, and then strings by their normalised form.
func (v *facetValue) compare(o *facetValue) int {
	switch {
	case v.isNumber && o.isNumber:
		return v.number.Compare(o.number)
	case v.isNumber:
		return -1
	case o.isNumber:
		return 1
	}
	return bytes.Compare(v.key, o.key)
}

// showNumber makes the text of a number.
func (v *facetValue) showNumber() {
	if v.isNumber && v.shown == nil {
		v.shown = v.number.AppendText(nil)
	}
}

// countBoth returns a function that counts the documents, among some of each segment, that have both a number and a string in a
// field. It computes the documents of a segment once, and only if values of the segment can be alike.
func countBoth(v *index.View, field segment.FieldID, rows func(seg int) *roaring.Bitmap) func(number, text *facetValue) int {
	type mixed struct {
		*segment.Column
		segment int
		among   *roaring.Bitmap // nil: not asked for yet
	}
	var columns []mixed // with numbers and strings
	for i, s := range v.Segments {
		if c := s.Column(field); c != nil && c.Numbers() > 0 && c.Strings() > 0 {
			columns = append(columns, mixed{Column: c, segment: i})
		}
	}
	return func(number, text *facetValue) (n int) {
		for i := range columns {
			c := &columns[i]
			of := c.SearchNumber(number.number)
			if of == c.Numbers() || c.Number(of) != number.number {
				continue
			}
			ord := c.SearchString(text.key)
			if ord == c.Strings() || !bytes.Equal(c.String(ord), text.key) {
				continue
			}
			if c.among == nil {
				c.among = rows(c.segment)
			}
			with := roaring.New()
			c.AddStringRowsAmong(with, ord, c.among)
			n += c.CountNumberRows(of, with)
		}
		return n
	}
}

// countNumbers counts the numbers, which come before strings.
func countNumbers(values []facetValue) int {
	n := 0
	for n < len(values) && values[n].isNumber {
		n++
	}
	return n
}

// fewCandidates is the number of candidates up to which numbers are listed by their shown texts, if values are not listed by count.
// With more, they are listed by value. This is visible to clients if maxValuesPerFacet cuts a list off. (A variable, so that tests
// can lower it.)
var fewCandidates = 3000

// rows counts the rows of all segments; nil has none.
func rows(segments []*roaring.Bitmap) int {
	n := 0
	for _, b := range segments {
		if b != nil {
			n += int(b.GetCardinality())
		}
	}
	return n
}

// sortByText orders numbers by how they are shown.
func sortByText(values []facetValue) {
	for i := range values {
		values[i].showNumber()
	}
	slices.SortFunc(values, func(a, b facetValue) int { return bytes.Compare(a.shown, b.shown) })
}

func (v *facetValue) text() []byte {
	if v.isNumber {
		return v.shown
	}
	return v.key
}

// topValues keeps limit values of a list: those with the largest counts, and among equal counts the first.
func topValues(values []facetValue, limit int) []facetValue {
	var top []int // a heap of the indexes of the best so far, the worst of them on top
	compare := func(i, j int) int { return cmp.Or(cmp.Compare(values[i].count, values[j].count), cmp.Compare(j, i)) }
	worse := func(i, j int) bool { return compare(i, j) < 0 }
	for i := range values {
		if len(top) < limit || limit > 0 && worse(top[0], i) {
			top = keepBest(top, limit, i, worse)
		}
	}
	slices.SortFunc(top, func(i, j int) int { return compare(j, i) })
	kept := make([]facetValue, len(top))
	for i, at := range top {
		kept[i] = values[at]
	}
	return kept
}

package search

import (
	"bytes"

	"github.com/RoaringBitmap/roaring/v2"
)

// A value is shown in the spelling of the lowest document that has it, whether or not that is a candidate.

// lowestSpellings has the segments with strings of a field, in which those spellings are.
type lowestSpellings struct {
	columns []spelledColumn
	some    bool // some document of a column is not a candidate
}

type spelledColumn struct {
	in      *facetRows
	segment int  // its place in the view
	idle    bool // it has no candidates
}

// add adds a column with the given number of live documents.
func (l *lowestSpellings) add(in *facetRows, segment int, candidates *roaring.Bitmap, live int) {
	n := int(candidates.GetCardinality())
	l.columns = append(l.columns, spelledColumn{in, segment, n == 0})
	l.some = l.some || n < live
}

// manyPerSpelt is how many values are walked in the time of looking one up in the other segments. (A variable, so that tests can
// change it.)
var manyPerSpelt = 8

// find gives a value the spelling of its lowest document.
func (l *lowestSpellings) find(value *facetValue) {
	if !l.some {
		return
	}
	var parts []facetValue
	for _, c := range l.columns {
		parts = c.append(parts, value.key)
	}
	n := value.count
	*value = joined(parts)
	value.count = n
}

// appendIdle appends the parts of the segments without candidates for the value of parts, those of the other segments.
func (l *lowestSpellings) appendIdle(parts []facetValue) []facetValue {
	for _, c := range l.columns {
		if c.idle {
			parts = c.append(parts, parts[0].key)
		}
	}
	return parts
}

func (c *spelledColumn) append(parts []facetValue, key []byte) []facetValue {
	column := c.in.column
	if ord := column.SearchString(key); ord < column.Strings() && bytes.Equal(column.String(ord), key) {
		parts = append(parts, facetValue{key: key, shown: column.Original(ord), in: c.in, ord: ord, varies: column.Varies(ord)})
	}
	return parts
}

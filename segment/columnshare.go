package segment

import "slices"

// Most values of fields of elements are inside elements. As long as all are, only the column of elements collects and sorts them, and
// the column by row takes them from it. This ends for a field with its first value outside elements.

// followElements reports whether the column of elements collects the values of this column, the one by row. This starts only while
// both columns are empty.
func (c *columnBuilder) followElements(elements *columnBuilder) bool {
	if c.inElements == nil && len(c.numbers) == 0 && len(c.strings) == 0 && len(elements.numbers) == 0 && len(elements.strings) == 0 {
		c.inElements = elements
	}
	return c.inElements != nil
}

// leaveElements copies what the column of elements has collected so far. rows are elements, ascending in the order in which the
// values came.
func (c *columnBuilder) leaveElements(rows []uint32) {
	e := c.inElements
	c.inElements = nil
	c.rests, c.table, c.originals, c.originBytes = e.rests, e.table.clone(), slices.Clone(e.originals), e.originBytes
	c.numbers, c.strings = slices.Clone(e.numbers), slices.Clone(e.strings)
	for i := range c.numbers {
		c.numbers[i].row = rows[c.numbers[i].row]
	}
	for i := range c.strings {
		c.strings[i].row = rows[c.strings[i].row]
	}
}

// dataByRow returns the data of a column whose values are in the column of elements. elements has the row of each element. Ordinals
// are the same in both columns, and the column of elements keeps its data until it is written.
func (c *columnBuilder) dataByRow(rows int, elements []uint32, worked func(n int)) *columnData {
	of := c.inElements.data(len(elements), worked)
	c.inElements.made = of
	d := *of
	d.rows, d.null, d.empty = rows, c.null.appendTo(nil), c.empty.appendTo(nil)
	d.numberPairs, d.stringPairs = pairsByRow(of.numberPairs, elements), pairsByRow(of.stringPairs, elements)
	return &d
}

// pairsByRow returns the ordinals of the rows of elements.
func pairsByRow(pairs []rowOrdinal, rows []uint32) []rowOrdinal {
	byRow := make([]rowOrdinal, len(pairs))
	for i, p := range pairs {
		byRow[i] = rowOrdinal{rows[p.row], p.ord}
	}
	return sortPairs(byRow)
}

package aggregate

import (
	"svc/internal/numeric"
	"svc/segment"
)

// columnOf is the source of an attribute's values in a segment.
type columnOf struct {
	column *segment.Column // nil: no document has the attribute
	among  int             // candidates
	rows   int             // of the segment
	counts func(strings bool) Ordinals
}

// tallies reports whether to count all candidates by ordinal takes less time than to walk them.
func (c *columnOf) tallies(values int) bool {
	const walked = 8 // ordinals that are looked at in the time in which a row is walked
	return c.among == c.rows || c.among*walked >= values
}

// numbersOf gives the numbers of rows to a fold.
type numbersOf struct {
	columnOf
	ords, groups []uint32
	values       []numeric.Value
}

// folding folds values into groups below most. nil times stand for one each.
type folding func(w *work, groups []uint32, values []numeric.Value, times []uint32, most int) error

// walk folds the numbers of rows.
func (n *numbersOf) walk(w *work, p pairs, fold folding) error {
	if n.column == nil || n.column.Numbers() == 0 {
		return nil
	}
	n.groups, n.values = n.groups[:0], n.values[:0]
	most, size := uint32(0), n.column.Numbers()
	for i, row := range p.rows {
		if i == 0 || row != p.rows[i-1] {
			n.ords = n.column.RowNumbers(n.ords[:0], segment.Row(row))
		}
		g := p.groups[i]
		most = max(most, g)
		for _, ord := range n.ords {
			if int(ord) < size { // a forged segment may name others
				n.groups, n.values = append(n.groups, g), append(n.values, n.column.Number(int(ord)))
			}
		}
	}
	return fold(w, n.groups, n.values, nil, int(most)+1)
}

// tally folds the numbers of all candidates into group 0.
func (n *numbersOf) tally(w *work, fold folding) (bool, error) {
	if n.column == nil || n.column.Numbers() == 0 {
		return true, nil
	}
	if !n.tallies(n.column.Numbers()) {
		return false, nil
	}
	counts := n.counts(false)
	var zeros [batch]uint32
	return true, counts.each(func(ords, times []uint32) error {
		n.values = n.values[:0]
		for _, ord := range ords {
			n.values = append(n.values, n.column.Number(int(ord)))
		}
		if err := fold(w, zeros[:len(ords)], n.values, times, 1); err != nil {
			return err
		}
		return w.step()
	})
}

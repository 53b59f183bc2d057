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

// preload prepares for a walk of the numbers of all candidates.
func (c *columnOf) preload(w *work) {
	if w.preloads(preloaded{c.column, numbersWithOrdinals}) {
		c.column.PreloadNumbers(c.among)
	}
}

// preloadOrdinals is preload for ordinals alone.
func (c *columnOf) preloadOrdinals(w *work, strings bool) {
	part := numberOrdinals
	if strings {
		part = stringOrdinals
	}
	if w.preloads(preloaded{c.column, part}) {
		c.column.PreloadOrdinals(strings, c.among)
	}
}

// preloaded is a part of a column that was brought into the cache.
type preloaded struct {
	column *segment.Column
	part   int
}

// Parts of a column that are preloaded.
const (
	numbersWithOrdinals = iota
	numberOrdinals
	stringOrdinals
)

// Cost of walking a row, in looked-up ordinals, by what is done with it:
const (
	walkedCount    = .125 // it is counted by interval
	walkedFold     = .5   // its value is folded
	walkedSum      = 1    // its whole number is added up
	walkedNear     = 1    // it is in one of the intervals that are listed
	walkedIndex    = 2    // the index has its interval
	walkedKey      = 8    // its key has to be found
	walkedSort     = 16   // its value has to be sorted
	walkedInterval = 32   // its interval has to be found
)

// tallies reports whether counting all candidates by ordinal takes less time than walking them. walked is one of the constants.
func (c *columnOf) tallies(values int, walked float64) bool {
	return c.among == c.rows || float64(c.among)*walked >= float64(values)
}

// numbersOf gives the numbers of rows to a fold.
type numbersOf struct {
	columnOf
	ords, places, groups []uint32
	values               []numeric.Value
}

// folding folds values into groups below most. nil groups mean group 0 for all, nil times mean one document each.
type folding func(w *work, groups []uint32, values []numeric.Value, times []uint32, most int) error

// walk folds the numbers of rows.
func (n *numbersOf) walk(w *work, p pairs, fold folding) error {
	if n.column == nil || n.column.Numbers() == 0 {
		return nil
	}
	n.preload(w)
	n.ords, n.places = n.column.EachNumber(n.ords[:0], n.places[:0], p.rows)
	if len(n.ords) == 0 {
		return nil
	}
	n.values = n.column.NumbersAt(n.values[:0], n.ords)
	if p.groups == nil {
		return fold(w, nil, n.values, nil, 1)
	}
	n.groups = n.groups[:0]
	most := uint32(0)
	for _, place := range n.places {
		g := p.groups[place]
		n.groups, most = append(n.groups, g), max(most, g)
	}
	return fold(w, n.groups, n.values, nil, int(most)+1)
}

// tally folds the numbers of all candidates into group 0, in ascending order.
func (n *numbersOf) tally(w *work, walked float64, fold folding) (bool, error) {
	if n.column == nil || n.column.Numbers() == 0 {
		return true, nil
	}
	if !n.tallies(n.column.Numbers(), walked) {
		return false, nil
	}
	counts := n.counts(false)
	return true, counts.Each(func(ords, times []uint32) error {
		n.values = n.column.NumbersAt(n.values[:0], ords)
		if err := fold(w, nil, n.values, times, 1); err != nil {
			return err
		}
		return w.step()
	})
}

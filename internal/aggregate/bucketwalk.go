package aggregate

import (
	"math"
	"slices"

	"svc/segment"
)

// rowKeys finds the keys of a row, each once.
func (b *buckets) rowKeys(w *work, row segment.Row) error {
	b.row = b.row[:0]
	c := b.source.column
	if c.Numbers() > 0 {
		b.ords = c.RowNumbers(b.ords[:0], row)
		for _, ord := range b.ords {
			if b.all != nil {
				if int(ord) < c.Numbers() {
					b.all.each(c.Number(int(ord)), func(id uint32) { b.row = append(b.row, id) })
				}
				continue
			}
			id, err := b.idOf(w, false, int(ord))
			if err != nil {
				return err
			}
			b.row = append(b.row, id)
		}
	}
	if b.all == nil && c.Strings() > 0 {
		b.ords = c.RowStrings(b.ords[:0], row)
		for _, ord := range b.ords {
			id, err := b.idOf(w, true, int(ord))
			if err != nil {
				return err
			}
			b.row = append(b.row, id)
		}
	}
	if len(b.row) > 1 {
		slices.Sort(b.row)
		b.row = slices.Compact(b.row)
	}
	if last := len(b.row) - 1; last >= 0 && b.row[last] == unkeyed {
		b.row = b.row[:last]
	}
	return nil
}

// walk finds the buckets of each pair, counts them, and passes pairs of row and bucket on to the nested
// nodes, a batch at a time.
func (b *buckets) walk(w *work, p pairs) error {
	if b.source.column == nil {
		return nil
	}
	if p.groups == nil {
		near, err := b.isNear(w)
		switch {
		case err != nil:
			return err
		case near:
			return b.walkNear(w, p)
		}
	}
	if strings, ok := b.single(); ok {
		return b.walkSingle(w, p, strings)
	}
	b.rows, b.groups = b.rows[:0], b.groups[:0]
	for i, row := range p.rows {
		if i == 0 || row != p.rows[i-1] {
			if err := b.rowKeys(w, segment.Row(row)); err != nil {
				return err
			}
		}
		for _, id := range b.row {
			at, err := b.bucket(w, p.group(i), id)
			if err != nil {
				return err
			}
			b.counts[at]++
			if len(b.nested) > 0 {
				b.rows, b.groups = append(b.rows, row), append(b.groups, at)
			}
		}
		if len(b.rows) >= batch {
			if err := b.pass(w, b.rows, b.groups); err != nil {
				return err
			}
			b.rows, b.groups = b.rows[:0], b.groups[:0]
		}
	}
	return b.pass(w, b.rows, b.groups)
}

// single reports whether all values are numbers, or all are strings, and no row has two of them.
func (b *buckets) single() (strings, ok bool) {
	c := b.source.column
	switch {
	case b.all != nil:
		return false, false
	case c.Strings() == 0:
		return false, c.SingleNumbers()
	case c.Numbers() == 0:
		return true, c.SingleStrings()
	}
	return false, false
}

// walkSingle walks rows with one value at most.
func (b *buckets) walkSingle(w *work, p pairs, strings bool) (err error) {
	c, kind, size := b.source.column, 0, b.source.column.Numbers()
	b.source.preloadOrdinals(w, strings)
	if strings {
		kind, size = 1, c.Strings()
		b.ords = c.StringOrdinals(withRoom(b.ords, len(p.rows)), p.rows)
	} else {
		b.ords = c.NumberOrdinals(withRoom(b.ords, len(p.rows)), p.rows)
	}
	m := b.mapping(p.rows)
	for i := 0; i < len(b.ords); i++ {
		if p.groups == nil {
			if i = b.countListed(b.ids[kind], b.ords, i, &m); i == len(b.ords) {
				break
			}
		}
		ord := b.ords[i]
		if int(ord) >= size {
			m.skip(i)
			continue
		}
		id, err := b.idOf(w, strings, int(ord))
		if err != nil {
			return err
		}
		if id == unkeyed {
			m.skip(i)
			continue
		}
		at, err := b.bucket(w, p.group(i), id)
		if err != nil {
			return err
		}
		b.counts[at]++
		m.put(i, at)
	}
	return b.passOn(w, &m)
}

// countListed counts rows of group 0 in their buckets, from index from up to the first row whose bucket its ordinal does not
// determine. It returns the index of that row. ids are those of b.
func (b *buckets) countListed(ids, ords []uint32, from int, m *mapping) int {
	first, counts, rest := b.first, b.counts, ords[from:] // in registers, which fields of b would not be
	var groups []uint32
	if m.rows != nil {
		groups = m.groups[len(m.groups):][:len(rest)]
	}
	n := 0
	for i, ord := range rest {
		if uint(ord) >= uint(len(ids)) {
			break
		}
		id := ids[ord] - 1 // the largest number if it is not known
		if uint(id) >= uint(len(first)) {
			break
		}
		at := first[id]
		if uint(at) >= uint(len(counts)) {
			break
		}
		counts[at]++
		if n++; i < len(groups) {
			groups[i] = at
		}
	}
	if m.rows != nil {
		m.groups = m.groups[:len(m.groups)+n]
		if m.skipped {
			m.own = append(m.own, m.rows[from:from+n]...)
		}
	}
	return from + n
}

// withRoom empties a slice and makes room for n entries.
func withRoom[T any](s []T, n int) []T { return slices.Grow(s[:0], n) }

// mapping has the bucket of each row of a batch, if anything is nested. Rows without a bucket are left out. Before the first of them,
// the rows are those of the batch.
type mapping struct {
	rows, groups []uint32 // nil: nothing is nested
	skipped      bool
	own          []uint32 // rows that have a bucket, from the first skipped one on
}

// mapping begins a mapping of rows.
func (b *buckets) mapping(rows []uint32) mapping {
	if len(b.nested) == 0 {
		return mapping{}
	}
	b.groups = withRoom(b.groups, len(rows))
	return mapping{rows: rows, groups: b.groups, own: b.rows[:0]}
}

// put notes the bucket of the row at a place.
func (m *mapping) put(i int, at uint32) {
	if m.rows == nil {
		return
	}
	m.groups = append(m.groups, at)
	if m.skipped {
		m.own = append(m.own, m.rows[i])
	}
}

// skip leaves the row at a place out.
func (m *mapping) skip(i int) {
	if m.rows != nil && !m.skipped {
		m.skipped, m.own = true, append(m.own, m.rows[:i]...)
	}
}

// passOn hands the rows of a mapping over.
func (b *buckets) passOn(w *work, m *mapping) error {
	if m.rows == nil {
		return nil
	}
	b.groups = m.groups
	if m.skipped {
		b.rows, m.rows = m.own, m.own
	}
	return b.pass(w, m.rows, m.groups)
}

// pass hands the rows of buckets over to the nested aggregations.
func (b *buckets) pass(w *work, rows, groups []uint32) error {
	if len(rows) == 0 {
		return nil
	}
	for _, n := range b.nested {
		if err := n.walk(w, pairs{rows: rows, groups: groups, end: len(b.counts)}); err != nil {
			return err
		}
	}
	return w.step()
}

// tally counts by ordinal where that counts documents: nothing is nested, and no document has two values in one bucket.
func (b *buckets) tally(w *work) (bool, error) {
	c, walked := b.source.column, float64(walkedKey)
	near, err := b.isNear(w)
	if err != nil {
		return false, err
	}
	switch _, ok := b.by.(intervals); {
	case near && len(b.near.counts) > 0:
		walked = walkedCount
	case near && len(b.near.buckets) > 0:
		walked = walkedNear
	case near:
		walked = walkedIndex
	case ok:
		walked = walkedInterval
	}
	switch {
	case c == nil:
		return true, nil
	case len(b.nested) > 0, !b.source.tallies(c.Numbers()+c.Strings(), walked):
		return false, nil
	}
	if b.spec.kind.name != "terms" && !(c.SingleNumbers() && (c.Strings() == 0 || b.all != nil)) {
		return false, nil
	}
	for _, strings := range []bool{false, true} {
		if strings && (b.all != nil || c.Strings() == 0) || !strings && c.Numbers() == 0 {
			continue
		}
		counts := b.source.counts(strings)
		if by, ok := b.by.(intervals); ok && !strings {
			if err := b.tallyIntervals(w, &counts, by); err != nil {
				return true, err
			}
			continue
		}
		err := counts.Each(func(ords, times []uint32) error {
			for i, ord := range ords {
				if b.all != nil {
					b.row = b.row[:0]
					b.all.each(c.Number(int(ord)), func(id uint32) { b.row = append(b.row, id) })
				} else {
					id, err := b.idOf(w, strings, int(ord))
					if err != nil {
						return err
					}
					b.row = append(b.row[:0], id)
				}
				for _, id := range b.row {
					if id == unkeyed {
						continue
					}
					at, err := b.bucket(w, 0, id)
					if err != nil {
						return err
					}
					b.counts[at] += uint64(times[i])
				}
			}
			return w.step()
		})
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// tallyIntervals counts numbers in ascending order, so that it looks for a bucket once.
func (b *buckets) tallyIntervals(w *work, counts *Ordinals, by intervals) error {
	at, end := uint32(none), math.Inf(-1)
	return counts.Each(func(ords, times []uint32) error {
		b.values = b.source.column.NumbersAt(b.values[:0], ords)
		for i, x := range b.values {
			if !(x.Float < end) {
				k, ok, err := b.by.number(w, x)
				if err != nil {
					return err
				}
				if at, end = none, math.Inf(-1); ok {
					id, err := b.place(w, k)
					if err != nil {
						return err
					}
					if at, err = b.bucket(w, 0, id); err != nil {
						return err
					}
					end = by.end(k)
				}
			}
			if at != none {
				b.counts[at] += uint64(times[i])
			}
		}
		return w.step()
	})
}

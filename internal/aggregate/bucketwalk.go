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
	b.out.rows, b.out.groups = b.out.rows[:0], b.out.groups[:0]
	if p.groups == nil {
		near, err := b.isNear(w)
		if err == nil && near {
			err = b.walkNear(w, p)
		}
		switch {
		case err != nil:
			return err
		case near:
			return b.pass(w)
		}
	}
	if strings, ok := b.single(); ok {
		if err := b.walkSingle(w, p, strings); err != nil {
			return err
		}
		return b.pass(w)
	}
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
				b.out.rows, b.out.groups = append(b.out.rows, row), append(b.out.groups, at)
			}
		}
		if len(b.out.rows) >= batch {
			if err := b.pass(w); err != nil {
				return err
			}
		}
	}
	return b.pass(w)
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
	c, kind := b.source.column, 0
	if strings {
		b.ords, b.places = c.EachString(b.ords[:0], b.places[:0], p.rows)
		kind = 1
	} else {
		b.ords, b.places = c.EachNumber(b.ords[:0], b.places[:0], p.rows)
	}
	for i, ord := range b.ords {
		id := uint32(0)
		if ids := b.ids[kind]; ids != nil {
			id = ids[ord]
		}
		if id == 0 {
			if id, err = b.idOf(w, strings, int(ord)); err != nil {
				return err
			}
			id++
		}
		if id--; id == unkeyed {
			continue
		}
		place := b.places[i]
		at := uint32(none)
		if p.groups == nil && int(id) < len(b.first) {
			at = b.first[id]
		}
		if at == none {
			if at, err = b.bucket(w, p.group(int(place)), id); err != nil {
				return err
			}
		}
		b.counts[at]++
		if len(b.nested) > 0 {
			b.out.rows, b.out.groups = append(b.out.rows, p.rows[place]), append(b.out.groups, at)
		}
	}
	return nil
}

// pass hands the rows of buckets over to the nested aggregations.
func (b *buckets) pass(w *work) error {
	if len(b.out.rows) == 0 {
		return nil
	}
	for _, n := range b.nested {
		if err := n.walk(w, b.out); err != nil {
			return err
		}
	}
	b.out.rows, b.out.groups = b.out.rows[:0], b.out.groups[:0]
	return w.step()
}

// tally counts by ordinal where that counts documents: nothing is nested, and no document has two values in one bucket.
func (b *buckets) tally(w *work) (bool, error) {
	c, walked := b.source.column, walkedKey
	near, err := b.isNear(w)
	if err != nil {
		return false, err
	}
	switch _, ok := b.by.(intervals); {
	case near:
		walked = walkedNear
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

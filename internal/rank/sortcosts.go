package rank

import (
	"slices"

	"svc/segment"
)

// sortKey is the sort key of an entry within its segment, and the entry: from the highest bit on, the class of the value, its ordinal
// in the direction of the sort, and the index of the entry. Lists have fewer than 2³⁰ entries, because each takes 48 bytes.
type sortKey uint64

const (
	sortIndexBits = 30
	sortClassAt   = 62
)

func newSortKey(class ValueClass, ordinal uint32, entry int, desc bool) sortKey {
	if desc {
		ordinal = ^ordinal
	}
	return sortKey(class)<<sortClassAt | sortKey(ordinal)<<sortIndexBits | sortKey(entry)
}

func (k sortKey) class() ValueClass { return ValueClass(k >> sortClassAt) }
func (k sortKey) entry() int        { return int(k & (1<<sortIndexBits - 1)) }

// alike reports whether two keys of a segment have the same value.
func (k sortKey) alike(o sortKey) bool { return k>>sortIndexBits == o>>sortIndexBits }

// value returns the value of a key of a column.
func (k sortKey) value(c *segment.Column, desc bool) SortValue {
	ordinal := uint32(k >> sortIndexBits)
	if desc {
		ordinal = ^ordinal
	}
	switch k.class() {
	case OfNumber:
		return NumberValue(c.Number(int(ordinal)))
	case OfText:
		return SortValue{Class: OfText, Text: c.String(int(ordinal))}
	}
	return SortValue{Class: OfNothing}
}

// sortRun has consecutive entries of one segment in a list: their keys in order, without those numbered already.
type sortRun struct {
	column *segment.Column
	keys   []sortKey
	value  SortValue // of the first key
}

// sortCosts numbers the entries by their values in columns, by segment, and returns the value of each number. Ordinals are in the
// order of the values of their segment, so entries of a segment are sorted by ordinals, and segments are merged by values.
func sortCosts(s *scratch, e []entry, columns []*segment.Column, desc bool, costs []uint32) []SortValue {
	m := &s.sorting
	m.keys = slices.Grow(m.keys[:0], len(e))[:len(e)]
	m.runs = m.runs[:0]
	distinct := 0
	for begin := 0; begin < len(e); {
		end := begin + 1
		for end < len(e) && e[end].segment == e[begin].segment {
			end++
		}
		c := columns[e[begin].segment]
		keys := m.keys[begin:end]
		m.read(c, s.rowsOfEntries(e[begin:end]), begin, keys, desc)
		slices.Sort(keys)
		for i := range keys {
			if i == 0 || !keys[i].alike(keys[i-1]) {
				distinct++
			}
		}
		m.runs = append(m.runs, sortRun{c, keys, keys[0].value(c, desc)})
		begin = end
	}
	out := m.distinct.Take(distinct)[:0]
	for len(m.runs) > 0 {
		least := 0
		for i := 1; i < len(m.runs); i++ {
			if m.runs[i].value.Compare(&m.runs[least].value, desc) < 0 {
				least = i
			}
		}
		run := &m.runs[least]
		if n := len(out); n == 0 || run.value.Compare(&out[n-1], desc) != 0 {
			out = append(out, run.value)
		}
		n := 0
		for ; n < len(run.keys) && run.keys[n].alike(run.keys[0]); n++ {
			costs[run.keys[n].entry()] = uint32(len(out) - 1)
		}
		if run.keys = run.keys[n:]; len(run.keys) > 0 {
			run.value = run.keys[0].value(run.column, desc)
		} else {
			m.runs = slices.Delete(m.runs, least, least+1)
		}
	}
	m.dirty = max(m.dirty, m.distinct.Mark())
	m.distinct.Release(m.distinct.Mark() - distinct + len(out))
	return out
}

// rowsOfEntries returns the rows of entries, valid until the next call.
func (s *scratch) rowsOfEntries(e []entry) []uint32 {
	s.inSet = slices.Grow(s.inSet[:0], len(e))[:len(e)]
	for i := range e {
		s.inSet[i] = e[i].row
	}
	return s.inSet
}

// read fills in the keys of rows of a column: each row counts with the first of its values in the direction of the sort. first is the
// index of the first entry.
func (m *sorting) read(c *segment.Column, rows []uint32, first int, keys []sortKey, desc bool) {
	for i := range keys {
		keys[i] = newSortKey(OfNothing, 0, first+i, desc)
	}
	if c == nil {
		return
	}
	if none := uint32(emptyStrings(c)); c.Strings() > int(none) {
		m.ordinals, m.places = c.EachString(m.ordinals[:0], m.places[:0], rows)
		for i, ordinal := range m.ordinals {
			if at := m.places[i]; ordinal >= none && (desc || keys[at].class() != OfText) {
				keys[at] = newSortKey(OfText, ordinal, first+int(at), desc)
			}
		}
	}
	if c.Numbers() > 0 {
		m.ordinals, m.places = c.EachNumber(m.ordinals[:0], m.places[:0], rows)
		for i, ordinal := range m.ordinals {
			if at := m.places[i]; desc || keys[at].class() != OfNumber {
				keys[at] = newSortKey(OfNumber, ordinal, first+int(at), desc)
			}
		}
	}
}

// number numbers the values by their order and returns the value of each number.
func (m *sorting) number(desc bool, costs []uint32) []SortValue {
	values := m.values
	m.order = slices.Grow(m.order[:0], len(values))[:len(values)]
	order := m.order
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return values[i].Compare(&values[j], desc) })
	out := m.distinct.Take(len(values))[:0]
	for k, i := range order {
		if k == 0 || values[i].Compare(&out[len(out)-1], desc) != 0 {
			out = append(out, values[i])
		}
		costs[i] = uint32(len(out) - 1)
	}
	m.dirty = max(m.dirty, m.distinct.Mark())
	m.distinct.Release(m.distinct.Mark() - len(values) + len(out))
	return out
}

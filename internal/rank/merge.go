package rank

import (
	"math"
	"slices"

	"svc/segment"
)

// merge walks a set of documents in the order of their ids.
type merge struct {
	ix      *Index
	its     []mergeSource
	from    int           // in its: the source of the documents up to
	until   segment.DocID // the next one of another source
	segment int
	row     uint32
}

type mergeSource struct {
	it      rowIterator
	segment int
	id      segment.DocID // of the next row
}

// rowIterator goes through rows of a segment, ascending.
type rowIterator interface {
	HasNext() bool
	Next() uint32
	PeekNext() uint32
}

func newMerge(ix *Index, r rows) *merge {
	m := &merge{ix: ix}
	for i, b := range r {
		if b != nil && !b.IsEmpty() {
			it := b.Iterator()
			m.its = append(m.its, mergeSource{it, i, ix.Segments[i].DocID(segment.Row(it.PeekNext()))})
		}
	}
	m.turn()
	return m
}

// turn goes to the source with the least document.
func (m *merge) turn() {
	if len(m.its) == 0 {
		return
	}
	m.from, m.until = 0, math.MaxUint32
	for i := range m.its {
		if m.its[i].id < m.its[m.from].id {
			m.from = i
		}
	}
	for i := range m.its {
		if i != m.from {
			m.until = min(m.until, m.its[i].id)
		}
	}
}

// next moves to the row with the next id. It stays in a segment until another segment has a lower id.
func (m *merge) next() bool {
	if len(m.its) == 0 {
		return false
	}
	src := &m.its[m.from]
	m.segment, m.row = src.segment, src.it.Next()
	if src.it.HasNext() {
		if len(m.its) == 1 { // no other id to compare with
			return true
		}
		if src.id = m.ix.Segments[src.segment].DocID(segment.Row(src.it.PeekNext())); src.id < m.until {
			return true
		}
	} else {
		m.its = slices.Delete(m.its, m.from, m.from+1)
	}
	m.turn()
	return true
}

// newEntryMerge walks entries, ordered by segment and row.
func newEntryMerge(ix *Index, e []entry) *merge {
	m := &merge{ix: ix}
	for len(e) > 0 {
		n := 1
		for n < len(e) && e[n].segment == e[0].segment {
			n++
		}
		rows := entryRows(e[:n])
		m.its = append(m.its, mergeSource{&rows, int(e[0].segment), ix.Segments[e[0].segment].DocID(segment.Row(e[0].row))})
		e = e[n:]
	}
	m.turn()
	return m
}

// entryRows are the rows of entries of one segment.
type entryRows []entry

func (e *entryRows) HasNext() bool    { return len(*e) > 0 }
func (e *entryRows) PeekNext() uint32 { return (*e)[0].row }

func (e *entryRows) Next() uint32 {
	row := (*e)[0].row
	*e = (*e)[1:]
	return row
}

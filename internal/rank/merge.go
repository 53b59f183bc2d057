package rank

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

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
	id      segment.DocID
}

type mergeSource struct {
	it      roaring.IntPeekable
	segment int
	id      segment.DocID // of the next row
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

// next goes to the row with the next id. Rows of one segment come one after the other until another segment
// has a lower id.
func (m *merge) next() bool {
	if len(m.its) == 0 {
		return false
	}
	src := &m.its[m.from]
	m.segment, m.row, m.id = src.segment, src.it.Next(), src.id
	if src.it.HasNext() {
		if src.id = m.ix.Segments[src.segment].DocID(segment.Row(src.it.PeekNext())); src.id < m.until {
			return true
		}
	} else {
		m.its = slices.Delete(m.its, m.from, m.from+1)
	}
	m.turn()
	return true
}

// entryMerge walks entries, which come by segment and row, in the order of their ids.
type entryMerge struct {
	ix      *Index
	runs    []entryRun
	from    int           // in runs: the one that has the next entry
	until   segment.DocID // the least id of the other runs
	segment int
	row     segment.Row
	id      segment.DocID
}

// entryRun is the entries of one segment that are still to come.
type entryRun struct {
	entries []entry
	id      segment.DocID // of the first one
}

func newEntryMerge(ix *Index, e []entry) *entryMerge {
	m := &entryMerge{ix: ix, runs: make([]entryRun, 0, 4)}
	for len(e) > 0 {
		n := 1
		for n < len(e) && e[n].segment == e[0].segment {
			n++
		}
		m.runs = append(m.runs, entryRun{e[:n], m.idOf(&e[0])})
		e = e[n:]
	}
	m.turn()
	return m
}

func (m *entryMerge) idOf(e *entry) segment.DocID {
	return m.ix.Segments[e.segment].DocID(segment.Row(e.row))
}

// turn goes to the run with the least document.
func (m *entryMerge) turn() {
	m.from, m.until = 0, math.MaxUint32
	for i := range m.runs {
		if m.runs[i].id < m.runs[m.from].id {
			m.from = i
		}
	}
	for i := range m.runs {
		if i != m.from {
			m.until = min(m.until, m.runs[i].id)
		}
	}
}

// next goes to the entry with the next id.
func (m *entryMerge) next() bool {
	if len(m.runs) == 0 {
		return false
	}
	run := &m.runs[m.from]
	m.segment, m.row, m.id = int(run.entries[0].segment), segment.Row(run.entries[0].row), run.id
	if run.entries = run.entries[1:]; len(run.entries) > 0 {
		if run.id = m.idOf(&run.entries[0]); run.id < m.until {
			return true
		}
	} else {
		m.runs = slices.Delete(m.runs, m.from, m.from+1)
	}
	m.turn()
	return true
}

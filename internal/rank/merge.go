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

package segment

import (
	"fmt"
)

// vectorEntries collects the entries of the rows of a segment for one embedder, by ascending row, without the vectors themselves.
type vectorEntries struct {
	rows      []uint32
	kinds     []byte
	ends      []uint32 // of the vectors of each entry
	fragments []uint16 // of each vector, noFragment for none; empty as long as none has one
}

// vectors is the number of vectors of all entries.
func (e *vectorEntries) vectors() int {
	if len(e.ends) == 0 {
		return 0
	}
	return int(e.ends[len(e.ends)-1])
}

// add adds an entry with n vectors; fragments are nil or one a vector.
func (e *vectorEntries) add(row uint32, kind byte, n int, fragments []uint16) {
	have := e.vectors()
	if len(fragments) > 0 || len(e.fragments) > 0 {
		for len(e.fragments) < have {
			e.fragments = append(e.fragments, noFragment)
		}
		e.fragments = append(e.fragments, fragments...)
		for len(e.fragments) < have+n {
			e.fragments = append(e.fragments, noFragment)
		}
	}
	e.rows = append(e.rows, row)
	e.kinds = append(e.kinds, kind)
	e.ends = append(e.ends, uint32(have+n))
}

// span returns the numbers of the vectors of an entry: from first up to end.
func (e *vectorEntries) span(entry int) (first, end int) {
	if entry > 0 {
		first = int(e.ends[entry-1])
	}
	return first, int(e.ends[entry])
}

func (e *vectorEntries) memoryBytes() int64 {
	return int64(cap(e.rows)*4 + cap(e.kinds) + cap(e.ends)*4 + cap(e.fragments)*2)
}

// Sizes of the slabs of a vectorStore: each has twice the bytes of the one before.
const (
	firstSlabBytes = 4 << 10
	maxSlabBytes   = 1 << 20
)

// vectorStore collects entries and vectors of one embedder by ascending row.
type vectorStore struct {
	shape EmbedderShape
	vectorEntries
	slabs [][]byte // full rows as in the file, never one row in two slabs
	bytes int64    // capacity of the slabs
	err   error    // the first thing that was no entry
}

// add adds the entry of a row. Rows ascend; a second entry of the same row is left out. An entry that does
// not fit the embedder sets err, which Write returns, and everything after it is dropped.
func (s *vectorStore) add(row uint32, v DocVectors) {
	n := 0
	if s.shape.Dimensions > 0 {
		n = len(v.Vectors) / s.shape.Dimensions
	}
	switch {
	case s.err != nil:
		return
	case s.shape.Dimensions <= 0 || s.shape.Dimensions > MaxDimensions || len(v.Vectors) != n*s.shape.Dimensions:
		s.err = fmt.Errorf("%d numbers are no vectors of %d dimensions for embedder %d", len(v.Vectors), s.shape.Dimensions, s.shape.ID)
		return
	case len(v.Fragments) != 0 && len(v.Fragments) != n:
		s.err = fmt.Errorf("%d fragments for %d vectors of embedder %d", len(v.Fragments), n, s.shape.ID)
		return
	case len(s.rows) > 0 && s.rows[len(s.rows)-1] >= row:
		if s.rows[len(s.rows)-1] > row {
			s.err = fmt.Errorf("vectors of row %d come after those of row %d", row, s.rows[len(s.rows)-1])
		}
		return
	}
	for _, f := range v.Fragments {
		if f >= MaxFragments {
			s.err = fmt.Errorf("fragment %d of embedder %d is beyond %d", f, s.shape.ID, MaxFragments)
			return
		}
	}
	kind := byte(0)
	if v.Regenerate {
		kind |= kindRegenerate
	}
	if v.Given {
		kind |= kindGiven
	}
	s.vectorEntries.add(row, kind, n, v.Fragments)
	d, size := s.shape.Dimensions, s.shape.rowBytes()
	for i := range n {
		vector := v.Vectors[i*d : (i+1)*d]
		slab := s.room(size)
		*slab = s.shape.appendRow(*slab, vector)
	}
}

// room returns a slab with room for size bytes.
func (s *vectorStore) room(size int) *[]byte {
	if n := len(s.slabs); n == 0 || cap(s.slabs[n-1])-len(s.slabs[n-1]) < size {
		next := firstSlabBytes
		if n > 0 {
			next = min(2*cap(s.slabs[n-1]), maxSlabBytes)
		}
		s.slabs = append(s.slabs, make([]byte, 0, max(next, size)))
		s.bytes += int64(cap(s.slabs[n]))
	}
	return &s.slabs[len(s.slabs)-1]
}

func (s *vectorStore) memoryBytes() int64 { return s.bytes + s.vectorEntries.memoryBytes() }

// full calls visit with all full rows in order, some at a time.
func (s *vectorStore) full(visit func(rows []byte)) error {
	for _, slab := range s.slabs {
		visit(slab)
	}
	return nil
}

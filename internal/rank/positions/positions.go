// Package positions reads where the terms of a query occur in documents. It measures two things: the distance of two neighbouring
// terms (distance.go), and how far a term is from its place in the query (displacement.go, exact.go). It knows no ranking rule: rules
// sum up what it measures.
//
// Positions are read for batches: documents of one segment that match the nodes of the query at the same levels. Each measure has two
// kinds of code. One gathers the occurrences of a term in the documents of the batch (occurrences.go). The other, for batches whose
// documents lie close together, decodes the positions of all rows between the first and the last one, which takes less time per row
// (dense.go).
//
// Some measures are known for whole segments: which rows have two words next to each other (neighbours.go), and which rows have a field
// that begins with a word (beginning.go). They return bitmaps. Where they read positions, the caller limits the bytes.
package positions

import (
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/settings"
	"svc/segment"
	"svc/segment/rowlist"
)

// Reader reads positions of the nodes of a query. One goroutine uses it, until Release.
type Reader struct {
	*query.Index
	Graph    *query.Graph
	Words    []int32 // by field: −1 where words do not count
	Searched []int32 // by field: −1 where phrases do not count, and where a field cannot be an exact match

	Restricted bool // the searched fields are not all that are searchable

	// Dense is called with the name of the measure when positions are decoded in all rows of a range; nil: no calls.
	Dense func(measure string)

	*memory
}

// memory is what readers work in, one after the other.
type memory struct {
	Numbers      Stack[uint32]
	Left, Right  Sides            // of a pair of nodes
	tables       []*table         // by node, level and segment
	set          []uint32         // rows of a set
	rows         []uint32         // of a word
	beside       []uint32         // indexes of rows in a batch
	lowest       []uint16         // positions of a word
	dense        []uint8          // measures of all rows between two
	costs        [tableSize]uint8 // of positions
	tableScratch []uint64         // of a table that is made
	wordScratch  [][]uint64       // occurrences of the words of an exact match
	exact        []Word           // these words
	bits         []uint64         // a bit for each row of a segment
	pairs        pairs
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// Open prepares a reader whose exported fields are set.
func (r *Reader) Open() {
	r.memory = memories.Get().(*memory)
	r.Forget()
}

// Forget forgets the graph, for the reader to get another one.
func (r *Reader) Forget() { clear(r.tables) }

// Release forgets all that belongs to the view: mapped memory may go away.
func (r *Reader) Release() {
	clear(r.tables)
	clear(r.exact[:cap(r.exact)])
	r.Numbers.Reset()
	memories.Put(r.memory)
	r.memory = nil
}

// byField reports whether words in the same field count as neighbours.
func (r *Reader) byField() bool { return r.Settings.ProximityPrecision == settings.ByAttribute }

// Batch is rows of one segment, ascending, that match the nodes at the same levels.
type Batch struct {
	Segment int
	Rows    []uint32
	Levels  Levels
	Fixed   bool // each node counts at its level alone; else at all levels

	beside []uint64 // where set, what stands in other fields or rows than these occurrences need not be gathered
}

// Levels has two bits for each node: the level at which a document matches it, or WordOnly.
type Levels uint64

// MaxNodes is how many nodes Levels has room for.
const MaxNodes = 32

const _ uint = MaxNodes - query.MaxNodes // all nodes of a query have room

// WordOnly stands for the word as written, if no other words count.
const WordOnly = 3

// Of returns the level of a node.
func (l Levels) Of(node int) int { return int(l>>(2*node)) & 3 }

// Set sets the level of a node.
func (l *Levels) Set(node, level int) { *l = *l&^(3<<(2*node)) | Levels(level)<<(2*node) }

// Mask returns the levels of a node that count, as bits. word: only the word as it is written counts.
func (b *Batch) Mask(node int) (mask int, word bool) {
	switch l := b.Levels.Of(node); {
	case l == WordOnly:
		return 0, true
	case b.Fixed:
		return 1 << l, false
	default:
		return 1<<query.Levels - 1, false
	}
}

// Stack allocates slices from one array. Release frees the slices taken after a mark.
type Stack[T any] struct {
	buf  []T
	used int
}

// Take returns n elements with arbitrary content.
func (s *Stack[T]) Take(n int) []T {
	if s.used+n > len(s.buf) {
		s.buf = make([]T, max(2*len(s.buf), n, 1024))
		s.used = 0
	}
	out := s.buf[s.used : s.used+n : s.used+n]
	s.used += n
	return out
}

// Mark returns the mark of all that is taken now.
func (s *Stack[T]) Mark() int { return s.used }

// Release frees the slices taken after a mark.
func (s *Stack[T]) Release(mark int) { s.used = min(mark, s.used) }

// Reset releases everything.
func (s *Stack[T]) Reset() { s.used = 0 }

// Clear overwrites the first n elements of the array.
func (s *Stack[T]) Clear(n int) { clear(s.buf[:min(n, len(s.buf))]) }

// RowsIn returns the rows of a set of a segment, valid until the next call.
func (r *Reader) RowsIn(set *roaring.Bitmap) []uint32 {
	n := int(set.GetCardinality())
	r.set = slices.Grow(r.set[:0], n)[:n]
	return r.set[:set.ManyIterator().NextMany(r.set)]
}

// fieldsIn returns the parts of a posting in the fields that have a weight.
func fieldsIn(p segment.Posting, weights []int32) (fields []segment.FieldPosting) {
	for k := range p.Fields() {
		if f := p.Field(k); weights[f.ID()] >= 0 {
			fields = append(fields, f)
		}
	}
	return fields
}

func and(a, b *roaring.Bitmap) *roaring.Bitmap {
	if a == nil || b == nil {
		return nil
	}
	both := rowlist.And(a, b)
	if both.IsEmpty() {
		return nil
	}
	return both
}

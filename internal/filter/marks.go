package filter

import (
	"encoding/binary"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/segment"
	"svc/segment/rowlist"
)

// rowsOfElements are cached under the number of a part.
var rowsOfElements = resultcache.NewKind[*segment.ElementRows]("rows of elements")

// markedFrom: conditions use a bit set of elements if at least one in so many may match. (A variable, so that tests can change it.)
var markedFrom = 256

// marker is a condition in braces that can set a bit for each matching element. The bits become rows at the end. Sets of elements
// would be written by each condition, and read again by the next one.
type marker interface {
	bound

	// marks reports whether mark is to be used. It is not if candidates are looked up faster.
	marks() bool

	// mark sets the bits of the elements that match, 64 a word; none is set before.
	mark(s source, elements []uint64)
}

// marks reports whether a condition is a marker that mark is to be used of.
func marks(b bound) bool {
	m, ok := b.(marker)
	return ok && m.marks()
}

// markedRows returns the rows of the matching elements in a scope (nil: all). It returns false if the bits should not be used.
func markedRows(s source, e *segment.Elements, b bound, in *roaring.Bitmap) (*roaring.Bitmap, bool) {
	words := (e.Len() + 63) / 64
	if s.scope == nil || !marks(b) || in != nil && int(in.DenseSize()) > words || b.size(s.in(e)) < e.Len()/markedFrom {
		return nil, false
	}
	elements := rowlist.TakeBits(words)
	defer elements.Release()
	b.(marker).mark(s.in(e), elements.Words)
	if in != nil {
		all := rowlist.TakeBits(words)
		defer all.Release()
		in.WriteDenseTo(all.Words)
		intersect(elements.Words, all.Words)
	}
	rows := rowlist.TakeBits((s.Rows() + 63) / 64)
	defer rows.Release()
	markRows(s, e, rows.Words, elements.Words)
	return rowlist.FromBits(rows.Words), true
}

func (a allOf) marks() bool { return allMark(a) }
func (a anyOf) marks() bool { return allMark(a) }

func allMark(parts []bound) bool {
	for _, b := range parts {
		if !marks(b) {
			return false
		}
	}
	return true
}

func (a allOf) mark(s source, elements []uint64) { markEach(a, s, elements, intersect) }
func (a anyOf) mark(s source, elements []uint64) { markEach(a, s, elements, unite) }

func markEach(parts []bound, s source, elements []uint64, join func(to, with []uint64)) {
	parts[0].(marker).mark(s, elements)
	for _, b := range parts[1:] {
		own := rowlist.TakeBits(len(elements))
		b.(marker).mark(s, own.Words)
		join(elements, own.Words)
		own.Release()
	}
}

func (m noneOf) marks() bool { return marks(m.bound) }

func (m noneOf) mark(s source, elements []uint64) {
	m.bound.(marker).mark(s, elements)
	for i := range elements {
		elements[i] = ^elements[i]
	}
	if rest := s.Rows() % 64; rest > 0 {
		elements[len(elements)-1] &= 1<<rest - 1
	}
}

func (m equalMatch) marks() bool { return true }

func (m equalMatch) mark(s source, elements []uint64) {
	c := s.Column(m.id)
	if c == nil {
		return
	}
	m.each(c, func(_ *roaring.Bitmap, lo, hi int) { c.MarkNumbers(elements, lo, hi) },
		func(_ *roaring.Bitmap, lo, hi int) { c.MarkStrings(elements, lo, hi) }, nil)
}

func (m rangeMatch) marks() bool { return true }

func (m rangeMatch) mark(s source, elements []uint64) {
	c := s.Column(m.id)
	if c == nil {
		return
	}
	markNumbers(s, m.id, c, m.numbers(c), elements)
	if texts := m.strings(c); !texts.empty() {
		c.MarkStrings(elements, texts.lo, texts.hi)
	}
}

func unite(bits, with []uint64) {
	for i, w := range with {
		bits[i] |= w
	}
}

func intersect(bits, with []uint64) {
	for i, w := range with {
		bits[i] &= w
	}
}

// rowsOf returns the rows of some elements, as a bitmap of the caller's own.
func rowsOf(s source, e *segment.Elements, elements *roaring.Bitmap) *roaring.Bitmap {
	if s.scope == nil || int(elements.GetCardinality()) < e.Len()/movedTogether || int(elements.DenseSize()) > (e.Len()+63)/64 {
		return e.Rows(elements)
	}
	rows, marked := rowlist.TakeBits((s.Rows()+63)/64), rowlist.TakeBits((e.Len()+63)/64)
	defer rows.Release()
	defer marked.Release()
	elements.WriteDenseTo(marked.Words)
	markRows(s, e, rows.Words, marked.Words)
	return rowlist.FromBits(rows.Words)
}

// movedTogether: if at least one element in so many is marked, mapping all to rows in one pass is no slower than looking up each row.
// (A variable, so that tests can change it.)
var movedTogether = 48

// markRows sets the bits of the rows of marked elements. If many are marked, it uses segment.ElementRows, which are made and cached
// from the second such call on.
func markRows(s source, e *segment.Elements, rows, elements []uint64) {
	n, least := 0, e.Len()/movedTogether
	for i := 0; i < len(elements) && n < least; i++ {
		n += bits.OnesCount64(elements[i])
	}
	if n < least || !moveRows(s, e, rows, elements) {
		e.MarkRows(rows, elements)
	}
}

// moveRows is markRows by ElementRows. It returns false if these are not or cannot be cached, or if the search is stopped. Some rows may
// then be marked already.
func moveRows(s source, e *segment.Elements, rows, elements []uint64) bool {
	parts := (e.Len() + segment.ElementsOfPart - 1) / segment.ElementsOfPart
	if !s.scope.Fits(parts, e.ElementRowsBytes()/max(parts, 1)) {
		return false
	}
	carry, makes := uint64(0), false
	for part := range parts {
		key := binary.LittleEndian.AppendUint32(nil, uint32(part))
		p, ok := rowsOfElements.Get(s.scope, key)
		if !ok {
			if makes = makes || rowsOfElements.Admit(s.scope, key); !makes || s.stop.stops() {
				return false
			}
			if p = e.ElementRows(part); p == nil {
				return false
			}
			rowsOfElements.Put(s.scope, key, p, p.Bytes())
			if _, ok := rowsOfElements.Get(s.scope, key); !ok { // larger than most, or evicted
				return false
			}
		}
		carry = p.MarkRows(rows, elements, carry)
	}
	return true
}

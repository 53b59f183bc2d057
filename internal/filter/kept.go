package filter

import (
	"encoding/binary"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/segment"
	"svc/segment/rowlist"
)

var (
	filterRows = resultcache.NewKind[*keptRows]("rows of a filter") // under the filter as it is printed

	// Under a field, and the number of the slice.
	sliceRows        = resultcache.NewKind[[]uint64]("rows of a slice of the numbers")
	elementSliceRows = resultcache.NewKind[[]uint64]("rows of a slice of the numbers of elements")
	elementSlices    = resultcache.NewKind[[]uint64]("elements of a slice of the numbers")

	rowsOfElements = resultcache.NewKind[*segment.ElementRows]("rows of elements")
)

// maxKey is how long a filter may be whose rows are kept.
const maxKey = 1 << 10

// keptRows is what a filter has found in a segment.
type keptRows struct {
	all     *roaring.Bitmap // the rows that match, deleted or not
	deleted *roaring.Bitmap // the rows that were deleted in the view that asked last; nil: none
	live    *roaring.Bitmap // all without deleted: all itself where it has none of them
	bytes   int             // of all
}

// Kept is Rows with the scope of the segment: what a filter that is asked again has found stays with the segment, whatever rows of
// it are deleted later. The bitmap may be shared, and is not to be modified.
func (b *Bound) Kept(stop Stop, s segment.Live, scope *resultcache.Scope) *roaring.Bitmap {
	if b.root == nil {
		return s.LiveRows()
	}
	k, rows := b.all(source{Live: s, scope: scope, stop: stop})
	switch {
	case s.Deleted == nil || s.Deleted.IsEmpty():
		return rows
	case k == nil:
		return roaring.AndNot(rows, s.Deleted)
	case k.deleted != s.Deleted:
		k = k.without(s.Deleted)
		filterRows.Put(scope, b.key, k, k.size())
	}
	return k.live
}

// Among returns those of some rows of a segment, deleted or not, that match. keep: a filter that is asked again is evaluated for the
// segment, and that stays with it as in Kept. The bitmap may be shared, and is not to be modified.
func (b *Bound) Among(stop Stop, s segment.Live, scope *resultcache.Scope, rows *roaring.Bitmap, keep bool) *roaring.Bitmap {
	if b.root == nil {
		return rows
	}
	if b.key == nil || scope == nil {
		return b.root.rows(source{Live: s, scope: scope, stop: stop}, rows)
	}
	return keptAmong(b.root, source{Live: s, scope: scope, stop: stop}, b.key, rows, keep)
}

// keptAmong returns the candidates that a part of a filter finds; keep: where it is asked again, what it finds in the segment is kept.
func keptAmong(b bound, s source, key []byte, among *roaring.Bitmap, keep bool) *roaring.Bitmap {
	if k, ok := filterRows.Get(s.scope, key); ok {
		return shared(k.all, among)
	}
	if keep && filterRows.Admit(s.scope, key) {
		_, all := evaluate(b, s, key)
		return shared(all, among)
	}
	return b.rows(s, among)
}

// without returns the same with other rows deleted.
func (k *keptRows) without(deleted *roaring.Bitmap) *keptRows {
	n := &keptRows{all: k.all, deleted: deleted, live: k.all, bytes: k.bytes}
	if k.all.Intersects(deleted) {
		n.live = roaring.AndNot(k.all, deleted)
	}
	return n
}

// size is what the cache charges. A bitmap of deletions counts, because it may be the last reference to it.
func (k *keptRows) size() int {
	n := k.bytes + 64
	if k.deleted != nil { // it outlives the view that it is from
		n += resultcache.Overhead(k.deleted) + int(k.deleted.GetSizeInBytes())
	}
	if k.live != k.all {
		n += resultcache.Overhead(k.live) + int(k.live.GetSizeInBytes())
	}
	return n
}

// all returns the rows that match, deleted or not, which are shared, and how they are kept; nil: they are not.
func (b *Bound) all(s source) (*keptRows, *roaring.Bitmap) {
	if b.key == nil || s.scope == nil {
		return nil, b.root.rows(s, nil)
	}
	return keep(b.root, s, b.key)
}

// keep returns the rows of a part of a filter, which it keeps under a key that is asked for again.
func keep(b bound, s source, key []byte) (*keptRows, *roaring.Bitmap) {
	if k, ok := filterRows.Get(s.scope, key); ok {
		return k, k.all
	}
	if !filterRows.Admit(s.scope, key) {
		return nil, b.rows(s, nil)
	}
	return evaluate(b, s, key)
}

// evaluate is keep where it is known that nothing is kept yet, and is to be.
func evaluate(b bound, s source, key []byte) (*keptRows, *roaring.Bitmap) {
	rows := b.rows(s, nil)
	if s.stop.stops() {
		return nil, rows
	}
	k := newKeptRows(s, key, rows)
	return k, k.all
}

// newKeptRows keeps what was found, deleted or not.
func newKeptRows(s source, key []byte, rows *roaring.Bitmap) *keptRows {
	k := &keptRows{}
	k.all, k.bytes = resultcache.Trim(rows)
	k.live = k.all
	filterRows.Put(s.scope, key, k, k.size())
	return k
}

// Key tells what the filter finds in a segment, deleted or not, from what all others of the index find; nil: that depends on more than
// the segment.
func (b *Bound) Key() []byte { return b.key }

// keptPart is a part of a filter that is kept, where the rest of it cannot be: a shard, say, whose documents the network deals out.
type keptPart struct {
	bound
	key []byte
}

func (m keptPart) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	if s.scope == nil {
		return m.bound.rows(s, among)
	}
	return keptAmong(m.bound, s, m.key, among, true)
}

// keepParts has those parts of a filter kept that can be, where all of them have to match and others cannot.
func keepParts(n node, root bound) bound {
	j, ok := n.(*junction)
	if !ok || j.or {
		return root
	}
	var lasts []node
	var kept, others allOf
	for i, part := range root.(allOf) {
		if lasting(j.kids[i]) {
			lasts, kept = append(lasts, j.kids[i]), append(kept, part)
		} else {
			others = append(others, part)
		}
	}
	if len(kept) == 0 || len(others) == 0 {
		return root
	}
	key := (&Expr{root: join(false, lasts)}).key()
	if key == nil {
		return root
	}
	return append(others, keptPart{kept, key})
}

// key tells a filter from all others of the index. Fields have their numbers for ever, and what a condition finds in a segment
// depends on nothing else. nil: it depends on other things, too.
func (e *Expr) key() []byte {
	if !lasting(e.root) {
		return nil
	}
	key := print(nil, e.root, "")
	if len(key) > maxKey {
		return nil
	}
	return key
}

// lasting reports whether what a node finds in a segment is the same for ever.
func lasting(n node) bool {
	switch n := n.(type) {
	case *junction:
		if len(n.kids) > maxKey/4 {
			return false
		}
		for _, k := range n.kids {
			if !lasting(k) {
				return false
			}
		}
		return true
	case *not:
		return lasting(n.kid)
	case *elements:
		return lasting(n.kid)
	case *condition:
		return n.attr != shardAttr && len(n.values) <= maxKey/4
	}
	return false
}

// A range of numbers may be met by most rows of a segment, each of which has to be set in a bitmap at random. So the numbers of a
// column fall into slices of about as many rows, whose bits are kept: a range is the slices inside it, and the rows of a part of two more.
const (
	sliceCount = 16

	// maxSliceBytes is how large a slice may be; of a larger segment there are none.
	maxSliceBytes = 256 << 10
)

// slicedFrom is from how many rows on a range is put together of slices. (A variable, so that tests can lower it.)
var slicedFrom = 1 << 12

// sliced reports whether slices are kept of the numbers of what is looked at.
func (s source) sliced() bool { return s.scope != nil && (s.Rows()+63)/64 <= maxSliceBytes/8 }

// numberRows returns the candidates with a number in a span of ordinals.
func numberRows(s source, id segment.FieldID, c *segment.Column, p span, among *roaring.Bitmap) *roaring.Bitmap {
	if !s.sliced() || c.NumberEntries(p.lo, p.hi) < slicedFrom {
		rows := roaring.New()
		c.AddNumberRows(rows, p.lo, p.hi)
		return within(rows, among)
	}
	words, kept := (s.Rows()+63)/64, sliceRows
	if s.elements != nil {
		kept = elementSlices
	}
	own := rowlist.TakeBits(words)
	defer own.Release()
	bits := own.Words
	eachSlice(c, p, func(k int, whole, part span) {
		if part == whole {
			unite(bits, sliceBits(s.scope, kept, id, k, words, func(bits []uint64) { c.MarkNumberRows(bits, part.lo, part.hi) }))
		} else {
			c.MarkNumberRows(bits, part.lo, part.hi)
		}
	})
	c.MarkFrequentNumberRows(bits, p.lo, p.hi)
	if among == nil {
		return rowlist.FromBits(bits)
	}
	if int(among.DenseSize()) > words { // a forged segment may name rows that are not there
		return roaring.And(rowlist.FromBits(bits), among)
	}
	candidates := rowlist.TakeBits(words)
	defer candidates.Release()
	among.WriteDenseTo(candidates.Words)
	for i, w := range candidates.Words {
		bits[i] &= w
	}
	return rowlist.FromBits(bits)
}

// elementRows returns the rows of the elements with a number in a span of ordinals; nil: slices do not help.
func elementRows(s source, e *segment.Elements, id segment.FieldID, c *segment.Column, p span) *roaring.Bitmap {
	words, elements := (s.Rows()+63)/64, (e.Len()+63)/64
	if s.scope == nil || c.NumberEntries(p.lo, p.hi) < slicedFrom || 8*words > maxSliceBytes {
		return nil
	}
	rows, found := rowlist.TakeBits(words), rowlist.TakeBits(elements)
	defer rows.Release()
	defer found.Release()
	eachSlice(c, p, func(k int, whole, part span) {
		if part != whole {
			c.MarkNumberRows(found.Words, part.lo, part.hi)
			return
		}
		unite(rows.Words, sliceBits(s.scope, elementSliceRows, id, k, words, func(bits []uint64) {
			marked := rowlist.TakeBits(elements)
			defer marked.Release()
			c.MarkNumberRows(marked.Words, part.lo, part.hi)
			markRows(s, e, bits, marked.Words)
		}))
	})
	c.MarkFrequentNumberRows(found.Words, p.lo, p.hi)
	markRows(s, e, rows.Words, found.Words)
	return rowlist.FromBits(rows.Words)
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

// movedTogether: if at least one element in so many is marked, finding all rows at once is not slower than looking up each row. (A
// variable, so that tests can change it.)
var movedTogether = 48

// markRows sets the bits of the rows of marked elements. If many are marked, it uses segment.ElementRows, which are made and cached from
// the second such call on.
func markRows(s source, e *segment.Elements, rows, elements []uint64) {
	n := 0
	for _, w := range elements {
		n += bits.OnesCount64(w)
	}
	if n < e.Len()/movedTogether || !moveRows(s, e, rows, elements) {
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

// eachSlice calls f for the slices of a column that have numbers of a span, with the part of the slice that is in the span.
func eachSlice(c *segment.Column, p span, f func(k int, whole, part span)) {
	all := c.NumberEntries(0, c.Numbers())
	for k, lo := 0, 0; k < sliceCount && lo < p.hi; k++ {
		hi := c.Numbers()
		if k < sliceCount-1 {
			hi = c.NumberFrom((k + 1) * all / sliceCount)
		}
		if hi > p.lo && lo < hi {
			f(k, span{lo, hi}, span{max(lo, p.lo), min(hi, p.hi)})
		}
		lo = hi
	}
}

func unite(bits, with []uint64) {
	for i, w := range with {
		bits[i] |= w
	}
}

// sliceBits returns the rows of a slice of a column, as a bit a row; shared. mark sets the bits of those that are not kept.
func sliceBits(scope *resultcache.Scope, kept resultcache.Kind[[]uint64], id segment.FieldID, k, words int, mark func(bits []uint64)) []uint64 {
	var buf [4]byte
	key := append(binary.LittleEndian.AppendUint16(buf[:0], uint16(id)), byte(k))
	if bits, ok := kept.Get(scope, key); ok {
		return bits
	}
	bits := make([]uint64, words)
	mark(bits)
	kept.Put(scope, key, bits, 8*len(bits))
	return bits
}

package filter

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/segment"
)

const (
	keyOfFilter = 'F' // and the filter as it is printed
	keyOfSlice  = 'N' // and a field, and the number of the slice

	// maxKey is how long a filter may be whose rows are kept.
	maxKey = 1 << 10
)

// Kept is Rows with the shelf of the segment: what a filter that is asked again has found stays with the segment, whatever rows of
// it are deleted later. The bitmap may be shared, and is not to be modified.
func (b *Bound) Kept(s segment.Live, shelf *resultcache.Shelf) *roaring.Bitmap {
	if b.root == nil {
		return s.LiveRows()
	}
	rows := b.all(source{s, shelf})
	if s.Deleted == nil || s.Deleted.IsEmpty() {
		return rows
	}
	return roaring.AndNot(rows, s.Deleted)
}

// all returns the rows that match, deleted or not; shared.
func (b *Bound) all(s source) *roaring.Bitmap {
	if b.key == nil || s.shelf == nil {
		return b.root.rows(s, nil)
	}
	if rows, ok := s.shelf.Get(b.key).(*roaring.Bitmap); ok {
		return rows
	}
	again := s.shelf.Again(b.key)
	rows := b.root.rows(s, nil)
	if again && (b.stop == nil || !b.stop()) {
		kept, n := resultcache.Trim(rows)
		s.shelf.Put(b.key, kept, n)
		return kept
	}
	return rows
}

// keptPart is a part of a filter that is kept, where the rest of it cannot be: a shard, say, whose documents the network deals out.
type keptPart struct {
	bound
	key  []byte
	stop func() bool
}

func (m keptPart) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	if s.shelf == nil {
		return m.bound.rows(s, among)
	}
	if rows, ok := s.shelf.Get(m.key).(*roaring.Bitmap); ok {
		return shared(rows, among)
	}
	if !s.shelf.Again(m.key) {
		return m.bound.rows(s, among)
	}
	rows := m.bound.rows(s, nil)
	if m.stop == nil || !m.stop() {
		kept, n := resultcache.Trim(rows)
		s.shelf.Put(m.key, kept, n)
		return shared(kept, among)
	}
	return within(rows, among)
}

// keepParts has those parts of a filter kept that can be, where all of them have to match and others cannot.
func (env *Env) keepParts(n node, root bound) bound {
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
	key := (&Expr{join(false, lasts)}).key()
	if key == nil {
		return root
	}
	return append(others, keptPart{kept, key, env.Stop})
}

// key tells a filter from all others of the index. Fields have their numbers for ever, and what a condition finds in a segment
// depends on nothing else. nil: it depends on other things, too.
func (e *Expr) key() []byte {
	if !lasting(e.root) {
		return nil
	}
	key := print([]byte{keyOfFilter}, e.root)
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

// addNumbers adds the rows with a number in a span of ordinals.
func addNumbers(dst *roaring.Bitmap, s source, id segment.FieldID, c *segment.Column, p span) {
	words := (s.Rows() + 63) / 64
	if s.shelf == nil || c.NumberEntries(p.lo, p.hi) < slicedFrom || 8*words > maxSliceBytes {
		c.AddNumberRows(dst, p.lo, p.hi)
		return
	}
	bits := make([]uint64, words)
	all := c.NumberEntries(0, c.Numbers())
	for k, lo := 0, 0; k < sliceCount && lo < p.hi; k++ {
		hi := c.Numbers()
		if k < sliceCount-1 {
			hi = c.NumberFrom((k + 1) * all / sliceCount)
		}
		switch {
		case hi <= p.lo || lo == hi:
		case p.lo <= lo && hi <= p.hi:
			for i, w := range sliceBits(s, id, c, k, span{lo, hi}) {
				bits[i] |= w
			}
		default:
			c.MarkNumberRows(bits, max(lo, p.lo), min(hi, p.hi))
		}
		lo = hi
	}
	dst.Or(roaring.FromDense(bits, false))
	c.AddFrequentNumberRows(dst, p.lo, p.hi)
}

// sliceBits returns the rows of a slice of a column, as a bit a row; shared.
func sliceBits(s source, id segment.FieldID, c *segment.Column, k int, p span) []uint64 {
	var buf [4]byte
	key := append(binary.LittleEndian.AppendUint16(append(buf[:0], keyOfSlice), uint16(id)), byte(k))
	if bits, ok := s.shelf.Get(key).([]uint64); ok {
		return bits
	}
	bits := make([]uint64, (s.Rows()+63)/64)
	c.MarkNumberRows(bits, p.lo, p.hi)
	s.shelf.Put(key, bits, 8*len(bits))
	return bits
}

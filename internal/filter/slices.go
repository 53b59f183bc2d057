package filter

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/segment"
	"svc/segment/rowlist"
)

// Most rows of a segment may match a range of numbers, and setting their bits one by one is slow. So the numbers of a column are
// divided into slices with about the same number of rows, whose bits are cached: a range is the union of the slices inside it and of
// parts of two more. If no row has two numbers, each slice has the bits of itself and of all later slices instead: a range is then
// the difference of two of them.
const (
	sliceCount = 16

	// maxSliceBytes limits the number of rows, and of elements, of one slice: a row may have several. A larger segment has no slices.
	maxSliceBytes        = 256 << 10
	maxElementSliceBytes = 4 * maxSliceBytes
)

// Bits of slices are cached by field, number of the slice, and 1 for those of elements.
var (
	slicesOfRows = resultcache.NewKind[[]uint64]("rows or elements of a slice of the numbers")
	slicesFrom   = resultcache.NewKind[[]uint64]("rows or elements of a slice and of all behind it")
)

// slicedFrom is the number of rows from which a range is assembled from slices. (A variable, so that tests can lower it.)
var slicedFrom = 1 << 12

// sliced reports whether slices are cached for the numbers of this source.
func (s source) sliced() bool {
	most := maxSliceBytes
	if s.elements != nil {
		most = maxElementSliceBytes
	}
	return s.scope != nil && (s.Rows()+63)/64 <= most/8
}

// numberRows returns the candidates with a number in a span of ordinals.
func numberRows(s source, id segment.FieldID, c *segment.Column, p span, among *roaring.Bitmap) *roaring.Bitmap {
	if !s.sliced() || c.NumberEntries(p.lo, p.hi) < slicedFrom {
		rows := roaring.New()
		c.AddNumberRows(rows, p.lo, p.hi)
		return within(rows, among)
	}
	words := (s.Rows() + 63) / 64
	own := rowlist.TakeBits(words)
	defer own.Release()
	bits := own.Words
	markNumbers(s, id, c, p, bits)
	if among == nil {
		return rowlist.FromBits(bits)
	}
	if int(among.DenseSize()) > words { // a forged segment may name rows that are not there
		return roaring.And(rowlist.FromBits(bits), among)
	}
	candidates := rowlist.TakeBits(words)
	defer candidates.Release()
	among.WriteDenseTo(candidates.Words)
	intersect(bits, candidates.Words)
	return rowlist.FromBits(bits)
}

// markNumbers sets the bits of what has a number in a span of ordinals, 64 a word; none is set before.
func markNumbers(s source, id segment.FieldID, c *segment.Column, p span, bits []uint64) {
	switch {
	case !s.sliced() || c.NumberEntries(p.lo, p.hi) < slicedFrom:
		c.MarkNumbers(bits, p.lo, p.hi)
		return
	case c.SingleNumbers():
		markBetween(s, id, c, p, bits)
	default:
		eachSlice(c, p, func(k int, whole, part span) {
			if part == whole {
				unite(bits, sliceBits(s, slicesOfRows, id, k, func(bits []uint64) { c.MarkNumberRows(bits, part.lo, part.hi) }))
			} else {
				c.MarkNumberRows(bits, part.lo, part.hi)
			}
		})
	}
	c.MarkFrequentNumberRows(bits, p.lo, p.hi)
}

// markBetween is markNumbers if nothing has two numbers. The rows of a span are those with a number from its begin on, without those
// from its end on. The bits of both are cached from the next slice limit on, and few have to be added.
func markBetween(s source, id segment.FieldID, c *segment.Column, p span, bits []uint64) {
	all := c.NumberEntries(0, c.Numbers())
	near := func(ord int) (k, limit int) {
		k = (c.NumberEntries(0, ord)*sliceCount + all/2) / all
		return k, limitOf(c, k, all)
	}
	lowest, from := near(p.lo)
	highest, to := near(p.hi)
	if lowest == highest {
		c.MarkNumberRows(bits, p.lo, p.hi)
		return
	}
	c.MarkNumberRows(bits, min(p.lo, from), max(p.lo, from))
	c.MarkNumberRows(bits, min(p.hi, to), max(p.hi, to))
	if highest < sliceCount { // it comes first: the others can be made of its bits
		differ(bits, bitsFrom(s, id, c, highest, all))
	}
	differ(bits, bitsFrom(s, id, c, lowest, all))
}

// limitOf returns the first ordinal of slice k of a column with all entries in total.
func limitOf(c *segment.Column, k, all int) int {
	if k == sliceCount {
		return c.Numbers()
	}
	return c.NumberFrom(k * all / sliceCount)
}

// bitsFrom returns the bits of rows or elements with a number in a slice or a later one. They are shared.
func bitsFrom(s source, id segment.FieldID, c *segment.Column, k, all int) []uint64 {
	return sliceBits(s, slicesFrom, id, k, func(bits []uint64) {
		to := c.Numbers()
		for next := k + 1; next < sliceCount; next++ {
			if more, ok := slicesFrom.Get(s.scope, s.sliceKey(nil, id, next)); ok {
				to = limitOf(c, next, all)
				copy(bits, more)
				break
			}
		}
		c.MarkNumberRows(bits, limitOf(c, k, all), to)
	})
}

func differ(bits, with []uint64) {
	for i, w := range with {
		bits[i] ^= w
	}
}

// eachSlice calls f for the slices of a column that have numbers of a span, with the part of the slice that is in the span.
func eachSlice(c *segment.Column, p span, f func(k int, whole, part span)) {
	all := c.NumberEntries(0, c.Numbers())
	for k, lo := 0, 0; k < sliceCount && lo < p.hi; k++ {
		hi := limitOf(c, k+1, all)
		if hi > p.lo && lo < hi {
			f(k, span{lo, hi}, span{max(lo, p.lo), min(hi, p.hi)})
		}
		lo = hi
	}
}

// sliceBits returns the bits of a slice of a column; shared. mark sets those that are not cached.
func sliceBits(s source, kind resultcache.Kind[[]uint64], id segment.FieldID, k int, mark func(bits []uint64)) []uint64 {
	var buf [4]byte
	key := s.sliceKey(buf[:0], id, k)
	if bits, ok := kind.Get(s.scope, key); ok {
		return bits
	}
	bits := make([]uint64, (s.Rows()+63)/64)
	mark(bits)
	kind.Put(s.scope, key, bits, 8*len(bits))
	return bits
}

// sliceKey appends the key of a slice of a column.
func (s source) sliceKey(key []byte, id segment.FieldID, k int) []byte {
	key = append(binary.LittleEndian.AppendUint16(key, uint16(id)), byte(k))
	if s.elements != nil {
		key = append(key, 1)
	}
	return key
}

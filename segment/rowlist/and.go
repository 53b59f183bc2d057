package rowlist

import (
	"encoding/binary"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// hasKernel is whether two arrays are intersected by the kernel. Tests change it.
var hasKernel = simd.HasCommonKernel()

// combineMemory is what And, Or and AndNot work in.
type combineMemory struct {
	of   [2]RoaringCursor          // at the containers that are combined
	bits [2][simd.OnesWords]uint64 // none is set between two calls

	all    cursors                // of OrAll, zero between two calls
	merged [2][2 * mergeMost]byte // arrays that it merges
}

var combineMemories = sync.Pool{New: func() any { return new(combineMemory) }}

// And returns the rows of both sets, as roaring.And does. If one of them consists of arrays for the most part, and the kernel intersects
// arrays, the result is flat.
func And(a, b *roaring.Bitmap) *roaring.Bitmap {
	if !hasKernel || !toIntersect(a, b) {
		return roaring.And(a, b)
	}
	return flatAnd(a, b)
}

// flatAnd is And with a flat result.
func flatAnd(a, b *roaring.Bitmap) *roaring.Bitmap {
	m := combineMemories.Get().(*combineMemory)
	defer m.release()
	l, o := layoutOf(a), layoutOf(b)
	w := newSetWriter(min(len(l.keys), len(o.keys)))
	defer setWriters.Put(w)
	c, d := &m.of[0], &m.of[1]
	for i, j := 0, 0; i < len(l.keys) && j < len(o.keys); {
		switch x, y := l.keys[i], o.keys[j]; {
		case x < y:
			i++
		case x > y:
			j++
		default:
			c.enter(l, i)
			d.enter(o, j)
			m.and(w, c, d)
			i, j = i+1, j+1
		}
	}
	if set, ok := w.set(); ok {
		return set
	}
	return roaring.And(a, b)
}

// release ends the use of the memory, which must not refer to sets afterwards.
func (m *combineMemory) release() {
	m.of = [2]RoaringCursor{}
	combineMemories.Put(m)
}

// mostSkewed is the ratio of sizes from which on the library intersects arrays faster.
const mostSkewed = 64

// toIntersect reports whether one of two sets consists mostly of array containers, and neither is much larger or has runs. Arrays take
// two bytes per row; bit sets with more than arrayMax rows take less.
func toIntersect(a, b *roaring.Bitmap) bool {
	n, m := a.GetCardinality(), b.GetCardinality()
	return n > 0 && m > 0 && max(n, m) < mostSkewed*min(n, m) && (isArrays(a, n) || isArrays(b, m)) && !a.HasRunCompression() && !b.HasRunCompression()
}

// isArrays reports whether a set of n rows consists mostly of array containers.
func isArrays(b *roaring.Bitmap, n uint64) bool { return 2*n < b.GetSizeInBytes() }

// and adds the common values of two containers of the same key.
func (m *combineMemory) and(w *setWriter, c, d *RoaringCursor) {
	if d.kind < c.kind || d.kind == c.kind && d.card < c.card {
		c, d = d, c
	}
	v, values := c.p[c.begin:c.begin+c.size], d.p[d.begin:d.begin+d.size]
	to := w.room()
	switch {
	case c.kind == containerArray && d.kind == containerArray:
		n := min(simd.Common((*simd.CommonRoom)(to), v, values), c.card) // more only if the sets are damaged
		w.add(int(c.key), n, 2*n)
	case c.kind == containerArray && d.kind == containerBitmap:
		n := 0
		for ; len(v) >= 2; v = v[2:] { // each is written, and some stay: no branch depends on the values
			x := binary.LittleEndian.Uint16(v)
			binary.LittleEndian.PutUint16(to[2*n:], x)
			n += int(values[x>>3] >> (x & 7) & 1)
		}
		w.add(int(c.key), n, 2*n)
	default:
		own, others := m.bits[0][:], m.bits[1][:]
		c.mark(own)
		d.mark(others)
		for i, word := range others {
			own[i] &= word
		}
		w.addBits(int(c.key), own)
		clear(own)
		clear(others)
	}
}

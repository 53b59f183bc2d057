package rowlist

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// hasKernel is whether two arrays are intersected by the kernel. Tests change it.
var hasKernel = simd.HasCommonKernel()

// andMemory is what And works in.
type andMemory struct {
	codes [2]bytes.Buffer
	bits  [2][simd.OnesWords]uint64 // none is set between two calls
}

var andMemories = sync.Pool{New: func() any { return new(andMemory) }}

// And returns the rows of both sets, as roaring.And does. Where both are arrays for the most part, it intersects copies of their code with
// the kernel. The result has no spare room then.
func And(a, b *roaring.Bitmap) *roaring.Bitmap {
	if !hasKernel || !arraysToIntersect(a, b) {
		return roaring.And(a, b)
	}
	return andOfArrays(a, b)
}

// andOfArrays is And through copies.
func andOfArrays(a, b *roaring.Bitmap) *roaring.Bitmap {
	m := andMemories.Get().(*andMemory)
	defer andMemories.Put(m)
	var c, d RoaringCursor
	if !c.initCopy(&m.codes[0], a) || !d.initCopy(&m.codes[1], b) {
		return roaring.And(a, b)
	}
	w := newSetWriter(min(c.containers, d.containers))
	defer setWriters.Put(w)
	for meet(&c, &d) {
		m.and(w, &c, &d)
		c.nextContainer()
		d.nextContainer()
	}
	if set, ok := w.set(); ok {
		return set
	}
	return roaring.And(a, b)
}

// initCopy is Init for a set, whose code is written to memory that the cursor uses from then on.
func (c *RoaringCursor) initCopy(memory *bytes.Buffer, set *roaring.Bitmap) bool {
	memory.Reset()
	_, err := set.WriteTo(memory)
	return err == nil && c.Init(memory.Bytes())
}

const (
	leastToIntersect = 256 // rows of a set for which two copies are worth making
	mostSkewed       = 64  // from this ratio of sizes on, the library is fast
)

// arraysToIntersect reports whether both sets consist mostly of array containers and neither is much larger. Arrays take two bytes
// per row; bit sets with more than arrayMax rows, and most runs, take less.
func arraysToIntersect(a, b *roaring.Bitmap) bool {
	n, m := a.GetCardinality(), b.GetCardinality()
	return min(n, m) >= leastToIntersect && max(n, m) < mostSkewed*min(n, m) && 2*n < a.GetSizeInBytes() && 2*m < b.GetSizeInBytes()
}

// and adds the common values of two containers of the same key.
func (m *andMemory) and(w *setWriter, c, d *RoaringCursor) {
	if d.kind < c.kind || d.kind == c.kind && d.card < c.card {
		c, d = d, c
	}
	v, values := c.p[c.begin:c.begin+c.size], d.p[d.begin:d.begin+d.size]
	to := w.code[w.end:]
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

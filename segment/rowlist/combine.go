package rowlist

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"
)

// Or returns the rows of either set, as roaring.Or does. If both sets consist of arrays for the most part, the result is flat.
func Or(a, b *roaring.Bitmap) *roaring.Bitmap {
	if !toUnite(a, b) {
		return roaring.Or(a, b)
	}
	return flatOr(a, b)
}

// toUnite reports whether two sets consist mostly of arrays, without runs.
func toUnite(a, b *roaring.Bitmap) bool {
	return isArrays(a, a.GetCardinality()) && isArrays(b, b.GetCardinality()) && !a.HasRunCompression() && !b.HasRunCompression()
}

// flatOr is Or of sets without runs, with a flat result.
func flatOr(a, b *roaring.Bitmap) *roaring.Bitmap {
	m := combineMemories.Get().(*combineMemory)
	defer m.release()
	l, o := layoutOf(a), layoutOf(b)
	w := newSetWriter(min(maxContainers, len(l.keys)+len(o.keys)))
	defer setWriters.Put(w)
	c, d := &m.of[0], &m.of[1]
	for i, j := 0, 0; i < len(l.keys) || j < len(o.keys); {
		switch {
		case j == len(o.keys) || i < len(l.keys) && l.keys[i] < o.keys[j]:
			w.copy(c.enter(l, i))
			i++
		case i == len(l.keys) || l.keys[i] > o.keys[j]:
			w.copy(d.enter(o, j))
			j++
		default:
			m.or(w, c.enter(l, i), d.enter(o, j))
			i, j = i+1, j+1
		}
	}
	if set, ok := w.set(); ok {
		return set
	}
	return roaring.Or(a, b)
}

// AndNot returns the rows of a that b does not have, as roaring.AndNot does. If a consists of arrays for the most part, the result is
// flat.
func AndNot(a, b *roaring.Bitmap) *roaring.Bitmap {
	if !toSubtract(a, b) {
		return roaring.AndNot(a, b)
	}
	return flatAndNot(a, b)
}

// Subtract is AndNot that may change a, which the caller has to own, and return it.
func Subtract(a, b *roaring.Bitmap) *roaring.Bitmap {
	if !inFew(b, a) && toSubtract(a, b) {
		return flatAndNot(a, b)
	}
	a.AndNot(b)
	return a
}

// fewContainers is how many times as many containers a set has at least, if changing those that another set has, too, takes less than a
// copy of the set. A walk of sorted values subtracts a row or two from a large set, a thousand times for a deep page.
const fewContainers = 8

// inFew reports whether b has few of the containers of a, so that a copy of a would take longer than changing it.
func inFew(b, a *roaring.Bitmap) bool {
	return fewContainers*len(layoutOf(b).keys) <= len(layoutOf(a).keys)
}

// toSubtract reports whether a consists mostly of arrays, and neither set has runs.
func toSubtract(a, b *roaring.Bitmap) bool {
	return isArrays(a, a.GetCardinality()) && !a.HasRunCompression() && !b.HasRunCompression()
}

// flatAndNot is AndNot of sets without runs, with a flat result.
func flatAndNot(a, b *roaring.Bitmap) *roaring.Bitmap {
	m := combineMemories.Get().(*combineMemory)
	defer m.release()
	l, o := layoutOf(a), layoutOf(b)
	w := newSetWriter(len(l.keys))
	defer setWriters.Put(w)
	c, d := &m.of[0], &m.of[1]
	for i, j := 0, 0; i < len(l.keys); i++ {
		for j < len(o.keys) && o.keys[j] < l.keys[i] {
			j++
		}
		c.enter(l, i)
		if j == len(o.keys) || o.keys[j] > l.keys[i] {
			w.copy(c)
		} else {
			m.andNot(w, c, d.enter(o, j))
		}
	}
	if set, ok := w.set(); ok {
		return set
	}
	return roaring.AndNot(a, b)
}

// enter moves the cursor to a container of a set, and to no other afterwards.
func (c *RoaringCursor) enter(l *bitmapLayout, i int) *RoaringCursor {
	kind, count, p := l.containers[i].content()
	if kind == containerArray {
		count = len(p) / 2
	}
	c.p, c.key, c.kind, c.card, c.begin, c.size = p, uint32(l.keys[i]), kind, count, 0, len(p)
	return c
}

// copy adds a container that is no run.
func (w *setWriter) copy(c *RoaringCursor) {
	copy(w.room(), c.p)
	w.add(int(c.key), c.card, c.size)
}

// mergeMost is up to how many values two arrays are merged value by value. More are combined with a bit set.
const mergeMost = 128

// or adds the values of either of two containers of the same key.
func (m *combineMemory) or(w *setWriter, c, d *RoaringCursor) {
	if c.kind != containerArray || d.kind != containerArray || c.card+d.card > mergeMost {
		bits := m.bits[0][:]
		c.mark(bits)
		d.mark(bits)
		w.addBits(int(c.key), bits)
		clear(bits)
		return
	}
	n := mergeValues(w.room(), c.p, d.p)
	w.add(int(c.key), n, 2*n)
}

// mergeValues writes the values of two arrays in ascending order, and returns how many there are.
func mergeValues(to, v, x []byte) (n int) {
	le := binary.LittleEndian
	for ; len(v) >= 2 && len(x) >= 2; n++ {
		a, b := le.Uint16(v), le.Uint16(x)
		le.PutUint16(to[2*n:], min(a, b))
		if a <= b {
			v = v[2:]
		}
		if b <= a {
			x = x[2:]
		}
	}
	n += copy(to[2*n:], v) / 2
	n += copy(to[2*n:], x) / 2
	return n
}

// andNot adds the values of c that d does not have.
func (m *combineMemory) andNot(w *setWriter, c, d *RoaringCursor) {
	bits := m.bits[0][:]
	if c.kind != containerArray {
		others := m.bits[1][:]
		c.mark(bits)
		d.mark(others)
		for i, word := range others {
			bits[i] &^= word
		}
		w.addBits(int(c.key), bits)
		clear(bits)
		clear(others)
		return
	}
	le := binary.LittleEndian
	to, n := w.room(), 0
	switch {
	case d.kind == containerBitmap:
		for v := c.p; len(v) >= 2; v = v[2:] { // each is written, and some stay: no branch depends on the values
			x := le.Uint16(v)
			le.PutUint16(to[2*n:], x)
			n += int(^d.p[x>>3] >> (x & 7) & 1)
		}
	case d.card >= skewed*c.card:
		at := 0
		for v := c.p; len(v) >= 2; v = v[2:] {
			x := le.Uint16(v)
			if at = gallop(d.p, at, d.card, int(x)); at == d.card || le.Uint16(d.p[2*at:]) != x {
				le.PutUint16(to[2*n:], x)
				n++
			}
		}
	case c.card+d.card > mergeMost:
		d.mark(bits)
		for v := c.p; len(v) >= 2; v = v[2:] {
			x := le.Uint16(v)
			le.PutUint16(to[2*n:], x)
			n += int(^bits[x>>6] >> (x & 63) & 1)
		}
		clear(bits)
	default:
		x := d.p
		for v := c.p; len(v) >= 2; v = v[2:] {
			a := le.Uint16(v)
			for len(x) >= 2 && le.Uint16(x) < a {
				x = x[2:]
			}
			if len(x) < 2 || le.Uint16(x) != a {
				le.PutUint16(to[2*n:], a)
				n++
			}
		}
	}
	w.add(int(c.key), n, 2*n)
}

// skewed is from which ratio of lengths on values of the shorter array are looked up in the other one.
const skewed = 16

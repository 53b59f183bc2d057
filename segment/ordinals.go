package segment

import (
	"encoding/binary"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment/rowlist"
)

// inverse finds the rows of an ordinal.
type inverse struct {
	column []byte
	ords   int
	width  int
	starts []byte // ords + 1 of 4 bytes: places in light
	heavy  []byte // entries of 16 bytes: ordinal, count, offset and length of a bitmap in column
	light  []byte
	planes bitPlanes // of the other direction, if it is forwardPlanes: of ordinals with an entry in heavy that has no bitmap
}

// readUint returns number i of a list of little-endian numbers of w bytes, where w is 1, 2 or 4.
func readUint(p []byte, w, i int) uint32 {
	switch w {
	case 1:
		return uint32(p[i])
	case 2:
		return uint32(binary.LittleEndian.Uint16(p[2*i:]))
	}
	return binary.LittleEndian.Uint32(p[4*i:])
}

// openInverse opens the part "ordinal → rows" of a column with the given number of ordinals. It verifies only the head and the last
// offset. The other offsets may be forged, so their range is checked on use.
func openInverse(b *blocks, column, p []byte, ords int) (inverse, bool) {
	if ords == 0 {
		return inverse{}, true
	}
	if len(p) < 8 {
		return inverse{}, false
	}
	b.touch(p[:8])
	heavy, w := uint64(binary.LittleEndian.Uint32(p)), int(binary.LittleEndian.Uint32(p[4:]))
	starts := 4 * (uint64(ords) + 1)
	if w != 1 && w != 2 && w != 4 || 8+starts+16*heavy > uint64(len(p)) {
		return inverse{}, false
	}
	v := inverse{column: column, ords: ords, width: w, starts: p[8 : 8+starts], heavy: p[8+starts : 8+starts+16*heavy]}
	b.touch(v.starts[4*ords:])
	light := uint64(w) * uint64(binary.LittleEndian.Uint32(v.starts[4*ords:]))
	p = p[8+starts+16*heavy:]
	if light > uint64(len(p)) {
		return inverse{}, false
	}
	v.light = p[:light]
	return v, true
}

// span returns the range of light that has the rows of ordinals [lo, hi).
func (v *inverse) span(lo, hi int) (from, to int) {
	from = int(binary.LittleEndian.Uint32(v.starts[4*lo:]))
	to = int(binary.LittleEndian.Uint32(v.starts[4*hi:]))
	if n := len(v.light) / v.width; from > to || to > n {
		return 0, 0
	}
	return from, to
}

// heavyFrom returns the first heavy entry with an ordinal ≥ ord.
func (v *inverse) heavyFrom(ord int) int {
	return sort.Search(len(v.heavy)/16, func(i int) bool { return int(binary.LittleEndian.Uint32(v.heavy[16*i:])) >= ord })
}

// inPlanes reports whether the rows of a heavy entry are in the planes.
func (v *inverse) inPlanes(l rowlist.List) bool { return len(l.P) == 0 && v.planes.n > 0 }

// bitmap returns the rows of the heavy entry of an ordinal; shared.
func (v *inverse) bitmap(l rowlist.List, ord int) *roaring.Bitmap {
	if v.inPlanes(l) {
		return v.planes.set(ord)
	}
	return l.Bitmap()
}

// heavyRows returns the bitmap of a heavy entry and its ordinal.
func (v *inverse) heavyRows(entry int) (rowlist.List, int) {
	e := v.heavy[16*entry:]
	at, n := uint64(binary.LittleEndian.Uint32(e[8:])), uint64(binary.LittleEndian.Uint32(e[12:]))
	if at+n > uint64(len(v.column)) {
		return rowlist.List{}, v.ords
	}
	l := rowlist.List{P: v.column[at : at+n], Code: rowlist.Roaring, Count: int(binary.LittleEndian.Uint32(e[4:]))}
	return l, int(binary.LittleEndian.Uint32(e))
}

// addRows adds the rows of ordinals [lo, hi) of a segment with the given number of rows: one by one if they are few, else through a
// bit set. dst then has no run containers: the library adds to them, and unites others with them, run by run.
func (v *inverse) addRows(dst *roaring.Bitmap, rows, lo, hi int) {
	lo, hi = max(lo, 0), min(hi, v.ords)
	if lo >= hi {
		return
	}
	from, to := v.span(lo, hi)
	n, heavy := to-from, v.heavyBetween(lo, hi)
	switch {
	case heavy == 1 && n == 0 && dst.IsEmpty() && v.addWhole(dst, lo):
	case n == 0 && heavy == 0:
	case (n <= 32 || hi-lo == 1) && heavy == 0:
		var few [32]uint32
		list := few[:0]
		for i := from; i < to; i++ {
			list = append(list, readUint(v.light, v.width, i))
		}
		dst.AddMany(list)
	default:
		dst.Or(setOf(rows, func(bits []uint64) { v.markAll(bits, lo, hi) }))
	}
}

// markAll sets the bits of the rows of ordinals [lo, hi), 64 a word.
func (v *inverse) markAll(bits []uint64, lo, hi int) {
	lo, hi = max(lo, 0), min(hi, v.ords)
	switch {
	case lo >= hi:
		return
	case v.planes.n > 0 && v.planes.n*v.ords < 64*(hi-lo): // there are more rows than words of the planes, if all ordinals have as many
		v.planes.mark(bits, lo, hi)
		return
	}
	if from, to := v.span(lo, hi); from < to {
		v.mark(bits, from, to)
	}
	v.markHeavy(bits, lo, hi)
}

// markHeavy sets the bits of the rows of those ordinals in [lo, hi) that have a bitmap.
func (v *inverse) markHeavy(bits []uint64, lo, hi int) {
	for i := v.heavyFrom(lo); 16*i < len(v.heavy); i++ {
		l, ord := v.heavyRows(i)
		if ord >= hi {
			break
		}
		if v.inPlanes(l) {
			v.planes.mark(bits, ord, ord+1)
		} else {
			l.AddToBits(bits)
		}
	}
}

// heavyBetween returns how many ordinals in [lo, hi) have a bitmap.
func (v *inverse) heavyBetween(lo, hi int) (n int) {
	for i := v.heavyFrom(lo); 16*i < len(v.heavy) && int(binary.LittleEndian.Uint32(v.heavy[16*i:])) < hi; i++ {
		n++
	}
	return n
}

// addWhole adds the bitmap of the first ordinal from lo on that has one, unless the bitmap consists of runs.
func (v *inverse) addWhole(dst *roaring.Bitmap, lo int) bool {
	l, _ := v.heavyRows(v.heavyFrom(lo))
	if v.inPlanes(l) {
		return false
	}
	set := l.Bitmap()
	if set.HasRunCompression() {
		return false
	}
	dst.Or(set)
	return true
}

// addAmong adds those of some rows that have an ordinal.
func (v *inverse) addAmong(dst *roaring.Bitmap, ord int, among *roaring.Bitmap) {
	if uint(ord) >= uint(v.ords) {
		return
	}
	from, to := v.span(ord, ord+1)
	if from == to {
		if i := v.heavyFrom(ord); 16*i < len(v.heavy) {
			switch l, is := v.heavyRows(i); {
			case is != ord:
			case v.inPlanes(l):
				v.planes.addAmong(dst, ord, among)
			default:
				dst.Or(roaring.And(l.Bitmap(), among))
			}
		}
		return
	}
	var few [64]uint32
	list := few[:0]
	for i := from; i < to; i++ {
		if r := readUint(v.light, v.width, i); among.Contains(r) {
			if list = append(list, r); len(list) == len(few) {
				dst.AddMany(list)
				list = list[:0]
			}
		}
	}
	dst.AddMany(list)
}

// nextMarked returns the first ordinal from ord on that one of the marked rows has; ords: none has one.
func (v *inverse) nextMarked(ord int, bits []uint64) int {
	for i := v.heavyFrom(ord); ord < v.ords; i++ {
		end, heavy := v.heavyAt(i)
		if end < ord { // only in a forged segment: a loop over them might never end
			break
		}
		for at, to := v.span(ord, min(end, v.ords)); at < to; at++ {
			if r := readUint(v.light, v.width, at); int(r/64) < len(bits) && bits[r/64]>>(r%64)&1 != 0 {
				return ord + v.holder(ord, min(end, v.ords), at)
			}
		}
		if end < v.ords && v.countInBits(heavy, end, bits) > 0 {
			return end
		}
		ord = end + 1
	}
	return v.ords
}

// lastMarked is nextMarked for the last ordinal up to ord; −1: none has one.
func (v *inverse) lastMarked(ord int, bits []uint64) int {
	for i := v.heavyFrom(ord+1) - 1; ord >= 0; i-- {
		end, heavy := -1, rowlist.List{}
		if i >= 0 {
			end, heavy = v.heavyAt(i)
		}
		if end > ord {
			return -1
		}
		from, to := v.span(end+1, ord+1)
		for at := to - 1; at >= from; at-- {
			if r := readUint(v.light, v.width, at); int(r/64) < len(bits) && bits[r/64]>>(r%64)&1 != 0 {
				return end + 1 + v.holder(end+1, ord+1, at)
			}
		}
		if end >= 0 && v.countInBits(heavy, end, bits) > 0 {
			return end
		}
		ord = end - 1
	}
	return -1
}

// heavyAt returns the ordinal and the rows of a heavy entry; ords behind the last one, and for a damaged one.
func (v *inverse) heavyAt(entry int) (int, rowlist.List) {
	if 16*entry >= len(v.heavy) {
		return v.ords, rowlist.List{}
	}
	l, ord := v.heavyRows(entry)
	return ord, l
}

// holder returns which of the ordinals [lo, hi), counted from lo, has the row at a place of light.
func (v *inverse) holder(lo, hi, at int) int {
	return sort.Search(hi-lo-1, func(i int) bool { return int(binary.LittleEndian.Uint32(v.starts[4*(lo+i+1):])) > at })
}

// mark sets the bits of rows from…to−1 in light.
func (v *inverse) mark(bits []uint64, from, to int) {
	switch v.width {
	case 1:
		for _, r := range v.light[from:to] {
			if i := int(r / 64); i < len(bits) {
				bits[i] |= 1 << (r % 64)
			}
		}
	case 2:
		for p := v.light[2*from : 2*to]; len(p) >= 2; p = p[2:] {
			r := binary.LittleEndian.Uint16(p)
			if i := int(r / 64); i < len(bits) {
				bits[i] |= 1 << (r % 64)
			}
		}
	default:
		for p := v.light[4*from : 4*to]; len(p) >= 4; p = p[4:] {
			r := binary.LittleEndian.Uint32(p)
			if i := int(r / 64); i < len(bits) {
				bits[i] |= 1 << (r % 64)
			}
		}
	}
}

// entries returns how many rows of ordinals [lo, hi) are in light, or 0 if the planes have the rows of ranges.
func (v *inverse) entries(lo, hi int) int {
	lo, hi = max(lo, 0), min(hi, v.ords)
	if lo >= hi || v.planes.n > 0 {
		return 0
	}
	from, to := v.span(lo, hi)
	return to - from
}

// from returns the first ordinal whose rows in light begin at n or later, or the number of ordinals.
func (v *inverse) from(n int) int {
	return sort.Search(v.ords, func(i int) bool { return int(binary.LittleEndian.Uint32(v.starts[4*i:])) >= n })
}

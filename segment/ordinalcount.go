package segment

import (
	"encoding/binary"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment/rowlist"
)

// count returns how many rows have an ordinal, without reading them, and 0 for an ordinal that does not exist.
func (v *inverse) count(ord int) int {
	if uint(ord) >= uint(v.ords) {
		return 0
	}
	if from, to := v.span(ord, ord+1); from < to {
		return to - from
	}
	if i := 16 * v.heavyFrom(ord); i < len(v.heavy) && int(binary.LittleEndian.Uint32(v.heavy[i:])) == ord {
		return int(binary.LittleEndian.Uint32(v.heavy[i+4:]))
	}
	return 0
}

// allCounts fills counts with those of the ordinals from lo on.
func (v *inverse) allCounts(counts []uint32, lo int) {
	starts := v.starts[4*lo : 4*(lo+len(counts)+1)]
	from := binary.LittleEndian.Uint32(starts)
	starts = starts[4:]
	for i := range counts {
		to := binary.LittleEndian.Uint32(starts)
		starts = starts[4:]
		counts[i], from = to-min(from, to), to // min: of a forged segment
	}
	for i := 16 * v.heavyFrom(lo); i < len(v.heavy); i += 16 {
		ord := int(binary.LittleEndian.Uint32(v.heavy[i:])) - lo
		if ord >= len(counts) {
			break
		}
		if ord >= 0 && counts[ord] == 0 {
			counts[ord] = binary.LittleEndian.Uint32(v.heavy[i+4:])
		}
	}
}

// repeated appends the ordinals that several rows have.
func (v *inverse) repeated(dst []uint32) []uint32 {
	if v.ords == 0 {
		return dst
	}
	from := binary.LittleEndian.Uint32(v.starts)
	for ord := range v.ords {
		to := binary.LittleEndian.Uint32(v.starts[4*ord+4:])
		if to-from != 1 && v.count(ord) > 1 { // nearly all have one row where this is asked for
			dst = append(dst, uint32(ord))
		}
		from = to
	}
	return dst
}

// countAmong returns how many of some rows have an ordinal.
func (v *inverse) countAmong(ord int, among *roaring.Bitmap) int {
	if uint(ord) >= uint(v.ords) {
		return 0
	}
	n := 0
	from, to := v.span(ord, ord+1)
	for i := from; i < to; i++ {
		if among.Contains(readUint(v.light, v.width, i)) {
			n++
		}
	}
	if from < to {
		return n
	}
	if i := v.heavyFrom(ord); 16*i < len(v.heavy) {
		if l, is := v.heavyRows(i); is == ord {
			return int(v.bitmap(l, ord).AndCardinality(among))
		}
	}
	return 0
}

// countInBits returns how many rows of the heavy entry of an ordinal are marked.
func (v *inverse) countInBits(l rowlist.List, ord int, marked []uint64) (n int) {
	if !v.inPlanes(l) {
		return l.CountInBits(marked)
	}
	own := rowlist.TakeBits(len(marked))
	defer own.Release()
	v.planes.mark(own.Words, ord, ord+1)
	for i, w := range own.Words {
		n += bits.OnesCount64(w & marked[i])
	}
	return n
}

// countMarked is countAmong for rows that are marked as bits, too.
func (v *inverse) countMarked(ord int, among *roaring.Bitmap, bits []uint64) int {
	if uint(ord) >= uint(v.ords) {
		return 0
	}
	from, to := v.span(ord, ord+1)
	if from == to {
		return v.countHeavyMarked(ord, among, bits)
	}
	n := 0
	switch v.width {
	case 1:
		for _, r := range v.light[from:to] {
			if i := int(r / 64); i < len(bits) {
				n += int(bits[i] >> (r % 64) & 1)
			}
		}
	case 2:
		for p := v.light[2*from : 2*to]; len(p) >= 2; p = p[2:] {
			r := binary.LittleEndian.Uint16(p)
			if i := int(r / 64); i < len(bits) {
				n += int(bits[i] >> (r % 64) & 1)
			}
		}
	default:
		for p := v.light[4*from : 4*to]; len(p) >= 4; p = p[4:] {
			r := binary.LittleEndian.Uint32(p)
			if i := int(r / 64); i < len(bits) {
				n += int(bits[i] >> (r % 64) & 1)
			}
		}
	}
	return n
}

// sparse: if at most one in this many rows of a segment has a value, rows are looked up one by one. A bitmap of so few rows consists
// of lists.
const sparse = 16

// countHeavyMarked counts the rows of a heavy ordinal among a set that is given twice, as a bitmap and as
// bits. It intersects the bitmaps if the ordinal has many rows for the size of the set, and tests bits
// otherwise. It returns 0 if the ordinal is not heavy.
func (v *inverse) countHeavyMarked(ord int, among *roaring.Bitmap, bits []uint64) int {
	i := v.heavyFrom(ord)
	if 16*i >= len(v.heavy) {
		return 0
	}
	l, is := v.heavyRows(i)
	switch {
	case is != ord:
		return 0
	case !v.inPlanes(l) && l.Count*sparse > 64*len(bits):
		return int(l.Bitmap().AndCardinality(among))
	}
	return v.countInBits(l, ord, bits)
}

// effort estimates the cost of counting the rows of ordinals [lo, hi) among marked ones, in looked-up rows.
func (v *inverse) effort(rows, lo, hi int) int {
	n := v.entries(lo, hi)
	for i := v.heavyFrom(lo); 16*i < len(v.heavy) && int(binary.LittleEndian.Uint32(v.heavy[16*i:])) < hi; i++ {
		n += min(int(binary.LittleEndian.Uint32(v.heavy[16*i+4:])), rows/sparse/4)
	}
	return n
}

package segment

import (
	"encoding/binary"
	"math/bits"
	"slices"
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

// forward finds the ordinals of a row.
type forward struct {
	kind  int
	width int
	have  int       // rows with any
	bits  bitPlanes // of forwardPlanes
	rows  []byte    // of forwardSparse
	start []byte
	ords  []byte
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

// openInverse opens the part "ordinal → rows" of a column with so many ordinals. It verifies only the head
// and the last offset; the others are checked for range when they are used, since they may be forged.
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

// openForward opens the part "row → ordinals" of a column of a segment with so many rows. ords is the number
// of ordinals; with none the part is empty.
func openForward(b *blocks, p []byte, rows, ords int) (forward, bool) {
	if ords == 0 {
		return forward{}, true
	}
	if len(p) < 8 {
		return forward{}, false
	}
	b.touch(p[:8])
	f := forward{kind: int(p[0]), width: int(p[1]), have: int(binary.LittleEndian.Uint32(p[4:]))}
	p = p[8:]
	w := uint64(f.width)
	n := uint64(rows)
	if f.kind == forwardPlanes {
		size := planesBytes(rows, f.width)
		if w > maxPlanes || ords >= 1<<w || size > len(p) {
			return forward{}, false
		}
		f.ords = p[:size]
		f.bits = bitPlanes{n: f.width, rows: rows, words: f.ords}
		return f, true
	}
	if w != 1 && w != 2 && w != 4 {
		return forward{}, false
	}
	switch f.kind {
	case forwardSingle:
		if w*n > uint64(len(p)) {
			return forward{}, false
		}
		f.ords = p[:w*n]
		return f, true
	case forwardSparse:
		n = uint64(f.have)
		if 4*n > uint64(len(p)) {
			return forward{}, false
		}
		f.rows, p = p[:4*n], p[4*n:]
	case forwardMulti:
	default:
		return forward{}, false
	}
	if 4*(n+1) > uint64(len(p)) {
		return forward{}, false
	}
	f.start, p = p[:4*(n+1)], p[4*(n+1):]
	b.touch(f.start[4*n:])
	if m := w * uint64(binary.LittleEndian.Uint32(f.start[4*n:])); m > uint64(len(p)) {
		return forward{}, false
	} else {
		f.ords = p[:m]
	}
	return f, true
}

// span returns which stretch of light holds the rows of ordinals [lo, hi).
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

// count returns how many rows have an ordinal, without reading them; 0 for an ordinal that there is not.
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

// allCounts fills counts with those of the ordinals from lo on, all of which there are.
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

// inPlanes reports whether the rows of a heavy entry are in the planes.
func (v *inverse) inPlanes(l rowlist.List) bool { return len(l.P) == 0 && v.planes.n > 0 }

// bitmap returns the rows of the heavy entry of an ordinal; shared.
func (v *inverse) bitmap(l rowlist.List, ord int) *roaring.Bitmap {
	if v.inPlanes(l) {
		return v.planes.set(ord)
	}
	return l.Bitmap()
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

// sparse is of how many rows of a segment one at most has a value for its rows to be looked up one by one: a bitmap of them consists of
// lists.
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

// effort estimates what it takes to count the rows of ordinals [lo, hi) among marked ones: in rows that are looked up.
func (v *inverse) effort(rows, lo, hi int) int {
	n := v.entries(lo, hi)
	for i := v.heavyFrom(lo); 16*i < len(v.heavy) && int(binary.LittleEndian.Uint32(v.heavy[16*i:])) < hi; i++ {
		n += min(int(binary.LittleEndian.Uint32(v.heavy[16*i+4:])), rows/sparse/4)
	}
	return n
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

// addRows adds the rows of ordinals [lo, hi) of a segment with so many rows: one by one when they are few, else through a bit
// for every row of the segment. Sets of runs are no part of dst then: the library adds to them, and unites others with them, run by run.
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

// addWhole adds the bitmap of the first ordinal from lo on that has one, unless it is one of runs.
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
		if end < ord { // only a forged segment has them in another order: whoever goes on would never come to an end
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

// append appends the ordinals of a row.
func (f *forward) append(dst []uint32, row Row) []uint32 {
	i := int(row)
	switch f.kind {
	case forwardSingle:
		if i*f.width >= len(f.ords) {
			return dst
		}
		ord := readUint(f.ords, f.width, i)
		if ord == noOrdinal>>(32-8*f.width) {
			return dst
		}
		return append(dst, ord)
	case forwardSparse:
		i = sort.Search(f.have, func(i int) bool { return binary.LittleEndian.Uint32(f.rows[4*i:]) >= uint32(row) })
		if i == f.have || binary.LittleEndian.Uint32(f.rows[4*i:]) != uint32(row) {
			return dst
		}
	case forwardPlanes:
		if i < f.bits.rows {
			if ord := f.bits.ordinal(i); ord != 1<<f.bits.n-1 {
				dst = append(dst, ord)
			}
		}
		return dst
	case forwardMulti:
		if 4*i+8 > len(f.start) {
			return dst
		}
	default:
		return dst
	}
	from, to := int(binary.LittleEndian.Uint32(f.start[4*i:])), int(binary.LittleEndian.Uint32(f.start[4*i+4:]))
	if to > len(f.ords)/f.width {
		return dst
	}
	for ; from < to; from++ {
		dst = append(dst, readUint(f.ords, f.width, from))
	}
	return dst
}

// each appends the ordinals of each row, and for each of them the place of its row in rows. Ordinals from size on are left out.
func (f *forward) each(ords, places, rows []uint32, size int) (_, _ []uint32) {
	switch f.kind {
	case forwardSingle:
		return f.eachSingle(ords, places, rows, size)
	case forwardPlanes:
		return f.bits.each(ords, places, rows, size)
	}
	for i, row := range rows {
		from := len(ords)
		ords = f.append(ords, Row(row))
		kept := ords[:from]
		for _, ord := range ords[from:] {
			if int(ord) < size {
				kept, places = append(kept, ord), append(places, uint32(i))
			}
		}
		ords = kept
	}
	return ords, places
}

// eachSingle is each where a row has one ordinal at most. The mark of a row without a value is an ordinal past size. Each row is written,
// and some stay: branches would depend on the values.
func (f *forward) eachSingle(ords, places, rows []uint32, size int) (_, _ []uint32) {
	n, m := len(ords), len(places)
	ords, places = slices.Grow(ords, len(rows))[:n+len(rows)], slices.Grow(places, len(rows))[:m+len(rows)]
	at, to, got := ords[n:], places[m:], 0
	switch f.width {
	case 1:
		for i, row := range rows {
			if int(row) < len(f.ords) {
				ord := uint32(f.ords[row])
				at[got], to[got] = ord, uint32(i)
				if int(ord) < size {
					got++
				}
			}
		}
	case 2:
		for i, row := range rows {
			if p := 2 * int(row); p+2 <= len(f.ords) {
				ord := uint32(binary.LittleEndian.Uint16(f.ords[p:]))
				at[got], to[got] = ord, uint32(i)
				if int(ord) < size {
					got++
				}
			}
		}
	default:
		for i, row := range rows {
			if p := 4 * int(row); p+4 <= len(f.ords) {
				ord := binary.LittleEndian.Uint32(f.ords[p:])
				at[got], to[got] = ord, uint32(i)
				if int(ord) < size {
					got++
				}
			}
		}
	}
	return ords[:n+got], places[:m+got]
}

// with appends those rows that have an ordinal in [lo, hi). dst may be rows[:0].
func (f *forward) with(dst, rows []uint32, lo, hi uint32) []uint32 {
	if f.kind == forwardSingle {
		return f.withSingle(dst, rows, lo, hi)
	}
	if f.kind == forwardPlanes {
		return f.bits.with(dst, rows, int(lo), int(hi))
	}
	var buf []uint32
	for _, row := range rows {
		buf = f.append(buf[:0], Row(row))
		for _, ord := range buf {
			if ord-lo < hi-lo {
				dst = append(dst, row)
				break
			}
		}
	}
	return dst
}

// withSingle is with where a row has one ordinal at most. It writes as eachSingle does.
func (f *forward) withSingle(dst, rows []uint32, lo, hi uint32) []uint32 {
	n := len(dst)
	dst = slices.Grow(dst, len(rows))[:n+len(rows)]
	at, got := dst[n:], 0
	switch f.width {
	case 1:
		for _, row := range rows {
			if int(row) < len(f.ords) {
				at[got] = row
				if uint32(f.ords[row])-lo < hi-lo {
					got++
				}
			}
		}
	case 2:
		for _, row := range rows {
			if p := 2 * int(row); p+2 <= len(f.ords) {
				at[got] = row
				if uint32(binary.LittleEndian.Uint16(f.ords[p:]))-lo < hi-lo {
					got++
				}
			}
		}
	default:
		for _, row := range rows {
			if p := 4 * int(row); p+4 <= len(f.ords) {
				at[got] = row
				if binary.LittleEndian.Uint32(f.ords[p:])-lo < hi-lo {
					got++
				}
			}
		}
	}
	return dst[:n+got]
}

// chosen appends those rows whose ordinal has a bit; the bit of size is that of rows without one. A row has one ordinal at most. It
// writes as eachSingle does.
func (f *forward) chosen(dst, rows []uint32, bits []uint64, size int) []uint32 {
	n := len(dst)
	dst = slices.Grow(dst, len(rows))[:n+len(rows)]
	at, got := dst[n:], 0
	for _, row := range rows {
		ord := size
		switch f.width {
		case 1:
			if int(row) < len(f.ords) {
				ord = min(int(f.ords[row]), size)
			}
		case 2:
			if p := 2 * int(row); p+2 <= len(f.ords) {
				ord = min(int(binary.LittleEndian.Uint16(f.ords[p:])), size)
			}
		case 4:
			if p := 4 * int(row); p+4 <= len(f.ords) {
				ord = min(int(binary.LittleEndian.Uint32(f.ords[p:])), size)
			}
		}
		at[got] = row
		got += int(bits[ord/64] >> (ord % 64) & 1)
	}
	return dst[:n+got]
}

// count adds one to the count of each ordinal of each row.
func (f *forward) count(counts, rows []uint32) {
	switch f.kind {
	case forwardSingle:
		f.countSingle(counts, rows)
	case forwardMulti:
		f.countMulti(counts, rows)
	default:
		var buf []uint32
		for _, row := range rows {
			buf = f.append(buf[:0], Row(row))
			for _, ord := range buf {
				if int(ord) < len(counts) {
					counts[ord]++
				}
			}
		}
	}
}

// countMulti counts where a row may have several ordinals.
func (f *forward) countMulti(counts, rows []uint32) {
	ords := len(f.ords) / f.width
	for _, row := range rows {
		at := 4 * int(row)
		if at+8 > len(f.start) {
			continue
		}
		start := f.start[at : at+8]
		from, to := int(binary.LittleEndian.Uint32(start)), min(int(binary.LittleEndian.Uint32(start[4:])), ords)
		if from >= to {
			continue
		}
		switch f.width {
		case 1:
			for _, ord := range f.ords[from:to] {
				if int(ord) < len(counts) {
					counts[ord]++
				}
			}
		case 2:
			for p := f.ords[2*from : 2*to]; len(p) >= 2; p = p[2:] {
				if ord := int(binary.LittleEndian.Uint16(p)); ord < len(counts) {
					counts[ord]++
				}
			}
		default:
			for p := f.ords[4*from : 4*to]; len(p) >= 4; p = p[4:] {
				if ord := int(binary.LittleEndian.Uint32(p)); ord < len(counts) {
					counts[ord]++
				}
			}
		}
	}
}

// countSingle counts where a row has one ordinal at most. An ordinal past the
// counts is the mark of a row without a value.
func (f *forward) countSingle(counts, rows []uint32) {
	switch f.width {
	case 1:
		for _, row := range rows {
			if int(row) < len(f.ords) {
				if ord := int(f.ords[row]); ord < len(counts) {
					counts[ord]++
				}
			}
		}
	case 2:
		for _, row := range rows {
			if at := 2 * int(row); at+2 <= len(f.ords) {
				if ord := int(binary.LittleEndian.Uint16(f.ords[at:])); ord < len(counts) {
					counts[ord]++
				}
			}
		}
	default:
		for _, row := range rows {
			if int(row)*f.width < len(f.ords) {
				if ord := readUint(f.ords, f.width, int(row)); int(ord) < len(counts) {
					counts[ord]++
				}
			}
		}
	}
}

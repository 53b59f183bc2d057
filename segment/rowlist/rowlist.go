// Package rowlist encodes sets of rows, and reads them in place: as a bitmap, as numbers, and the place of a row in the list. It
// trusts no byte: damaged bytes give other rows, but no panic of this package.
package rowlist

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// A row list is a set of rows in one of two codes:
//
//	Delta    the first row, then the distance of each further row to the one before minus 1, as uvarints
//	Roaring  the portable Roaring format (github.com/RoaringBitmap/RoaringFormatSpec), used in place
//
// Few rows are smaller and quicker to write as the former; the latter becomes
// a bitmap without reading the rows.
const (
	Delta   = 0
	Roaring = 1

	// RoaringFrom is from how many rows on a list is in Roaring format.
	// There its 16 bytes of header and 2 bytes a row begin to be worth the time of
	// decoding deltas.
	RoaringFrom = 32

	roaringCookie     = 12346 // no run containers
	roaringCookieRuns = 12347 // some; number of containers − 1 in the upper half
	roaringOffsetsMin = 4     // containers from which the second kind has an offset table
	arrayMax          = 4096  // values up to which a container is an array
	containerBytes    = 8192  // of a bitmap container
)

// Append appends the code of ascending distinct rows and says which one it took.
func Append(dst []byte, rows []uint32) ([]byte, int) {
	if len(rows) >= RoaringFrom {
		return AppendRoaring(dst, rows), Roaring
	}
	return AppendDelta(dst, rows), Delta
}

// AppendDelta appends ascending distinct rows as deltas.
func AppendDelta(dst []byte, rows []uint32) []byte {
	next := uint32(0)
	for _, r := range rows {
		dst = binary.AppendUvarint(dst, uint64(r-next))
		next = r + 1
	}
	return dst
}

// RoaringBytes returns how many bytes AppendRoaring appends.
func RoaringBytes(rows []uint32) int {
	containers, withRuns, size := 0, false, 0
	for ; len(rows) > 0; containers++ {
		n := splitKey(rows)
		switch runs := countRuns(rows[:n]); {
		case runsPay(n, runs):
			withRuns = true
			size += 2 + 4*runs
		case n <= arrayMax:
			size += 2 * n
		default:
			size += containerBytes
		}
		rows = rows[n:]
	}
	if !withRuns {
		return size + 8 + 8*containers
	}
	size += 4 + (containers+7)/8 + 4*containers
	if containers >= roaringOffsetsMin {
		size += 4 * containers
	}
	return size
}

// splitKey returns the length of the first stretch of rows that share their upper 16 bits.
func splitKey(rows []uint32) int {
	key := rows[0] >> 16
	if rows[len(rows)-1]>>16 == key {
		return len(rows)
	}
	n, _ := slices.BinarySearch(rows, (key+1)<<16)
	return n
}

// countRuns returns the number of runs of consecutive rows.
func countRuns(rows []uint32) int {
	if int(rows[len(rows)-1]-rows[0]) == len(rows)-1 {
		return 1
	}
	n := 0 // rows in runs
	next := rows[0] + 1
	for _, r := range rows[1:] {
		if r == next {
			n++
		}
		next = r + 1
	}
	return len(rows) - n
}

// runsPay reports whether n values in the given number of runs are smallest as a run container.
func runsPay(n, runs int) bool {
	other := 2 * n
	if n > arrayMax {
		other = containerBytes
	}
	return 2+4*runs < other
}

// AppendRoaring appends the portable Roaring format of ascending distinct rows.
func AppendRoaring(dst []byte, rows []uint32) []byte {
	containers, withRuns := 0, false
	for rest := rows; len(rest) > 0; containers++ {
		n := splitKey(rest)
		withRuns = withRuns || runsPay(n, countRuns(rest[:n]))
		rest = rest[n:]
	}
	le := binary.LittleEndian
	start := len(dst)
	if withRuns {
		dst = le.AppendUint32(dst, roaringCookieRuns|uint32(containers-1)<<16)
		dst = append(dst, make([]byte, (containers+7)/8)...)
	} else {
		dst = le.AppendUint32(dst, roaringCookie)
		dst = le.AppendUint32(dst, uint32(containers))
	}
	for rest := rows; len(rest) > 0; {
		n := splitKey(rest)
		dst = le.AppendUint16(dst, uint16(rest[0]>>16))
		dst = le.AppendUint16(dst, uint16(n-1))
		rest = rest[n:]
	}
	offsets := -1
	if !withRuns || containers >= roaringOffsetsMin {
		offsets = len(dst)
		dst = append(dst, make([]byte, 4*containers)...)
	}
	for i := 0; len(rows) > 0; i++ {
		n := splitKey(rows)
		if offsets >= 0 {
			le.PutUint32(dst[offsets+4*i:], uint32(len(dst)-start))
		}
		c := rows[:n]
		runs := n // as many do not pay
		if withRuns {
			runs = countRuns(c)
		}
		switch {
		case runsPay(n, runs):
			dst[start+4+i/8] |= 1 << (i % 8)
			dst = le.AppendUint16(dst, uint16(runs))
			for j := 0; j < n; {
				k := j + 1
				if runs == 1 {
					k = n
				}
				for k < n && c[k] == c[k-1]+1 {
					k++
				}
				dst = le.AppendUint16(dst, uint16(c[j]))
				dst = le.AppendUint16(dst, uint16(k-j-1))
				j = k
			}
		case n <= arrayMax:
			for _, r := range c {
				dst = le.AppendUint16(dst, uint16(r))
			}
		default:
			at := len(dst)
			dst = append(dst, make([]byte, containerBytes)...)
			for _, r := range c {
				dst[at+int(r&0xffff)>>3] |= 1 << (r & 7)
			}
		}
		rows = rows[n:]
	}
	return dst
}

// bitmapOf returns the rows of a list as a bitmap that may use p in place.
func bitmapOf(p []byte, code, count int) *roaring.Bitmap {
	if code == Delta {
		var few [RoaringFrom]uint32
		rows := appendRowsOf(few[:0], p, code, count)
		if !ascend(rows) { // damaged ones may be beyond the highest row
			return roaring.BitmapOf(rows...)
		}
		return FromRows(rows)
	}
	if b, ok := flatOf(p, false); ok {
		return b
	}
	return roaring.New()
}

// appendRowsOf appends the rows of a list in ascending order.
func appendRowsOf(dst []uint32, p []byte, code, count int) []uint32 {
	if code == Delta {
		n := max(0, min(count, len(p))) // a row has a byte at least
		dst = slices.Grow(dst, n)
		d := deltas{p: p, left: n}
		return dst[:len(dst)+d.read(dst[len(dst):len(dst)+n])]
	}
	var c RoaringCursor
	for ok := c.Init(p); ok && c.container < c.containers; c.nextContainer() {
		dst = c.appendContainer(dst)
	}
	return dst
}

// deltas goes through the rows of a list of deltas.
type deltas struct {
	p    []byte
	left int // rows
	next uint64
}

// read reads the next rows, as many as fit, and returns how many these are.
func (d *deltas) read(rows []uint32) int {
	p, next, at := d.p, d.next, 0
	rows = rows[:min(len(rows), d.left)]
	for i := range rows {
		var v uint64
		if at+1 < len(p) && p[at]&p[at+1] < 0x80 { // one byte or two is unpredictable, so there is no branch for it
			v = uint64(binary.LittleEndian.Uint16(p[at:]))
			two := v >> 7 & 1
			v = v&0x7f | v>>1&0x3f80&-two
			at += 1 + int(two)
		} else {
			var size int
			if v, size = binary.Uvarint(p[at:]); size <= 0 {
				d.left = 0
				return i
			}
			at += size
		}
		next += v
		rows[i] = uint32(next)
		next++
	}
	d.p, d.next, d.left = p[at:], next, d.left-len(rows)
	return len(rows)
}

// List is the code of some rows in mapped memory.
type List struct {
	P     []byte
	Code  int
	Count int
}

func (l List) Bitmap() *roaring.Bitmap { return bitmapOf(l.P, l.Code, l.Count) }

func (l List) AppendTo(dst []uint32) []uint32 { return appendRowsOf(dst, l.P, l.Code, l.Count) }

func (l List) Cursor() Cursor { return Cursor{list: l} }

// AppendAt appends the rows with some indexes in the list, which ascend.
func (l List) AppendAt(dst []uint32, indexes []uint32) []uint32 {
	if len(indexes) == 0 {
		return dst
	}
	if l.Code == Delta {
		var few [RoaringFrom]uint32
		rows := l.AppendTo(few[:0])
		for _, i := range indexes {
			if int(i) < len(rows) {
				dst = append(dst, rows[i])
			}
		}
		return dst
	}
	var c RoaringCursor
	if c.Init(l.P) {
		dst = c.AppendAt(dst, indexes)
	}
	return dst
}

// First returns the lowest row, or 0 if there is none.
func (l List) First() uint32 {
	if l.Code == Delta {
		row, _ := binary.Uvarint(l.P)
		return uint32(row)
	}
	var c RoaringCursor
	if !c.Init(l.P) || c.container == c.containers {
		return 0
	}
	values := c.p[c.begin : c.begin+c.size]
	switch {
	case len(values) < 2:
		return 0
	case c.kind != containerBitmap: // values, or the starts of runs
		return c.key<<16 | uint32(binary.LittleEndian.Uint16(values))
	}
	for i := 0; i < len(values); i += 8 {
		if word := binary.LittleEndian.Uint64(values[i:]); word != 0 {
			return c.key<<16 | uint32(8*i+bits.TrailingZeros64(word))
		}
	}
	return 0
}

// AddToBits sets the bits of the rows, 64 a word; rows beyond are left out.
func (l List) AddToBits(words []uint64) {
	if l.Code == Delta {
		d := deltas{p: l.P, left: l.Count}
		var some [64]uint32
		for n := d.read(some[:]); n > 0; n = d.read(some[:]) {
			for _, r := range some[:n] {
				if int(r/64) < len(words) {
					words[r/64] |= 1 << (r % 64)
				}
			}
		}
		return
	}
	var c RoaringCursor
	if c.Init(l.P) {
		c.addTo(words)
	}
}

// CountInBits returns how many of the rows have bits in words, 64 a word; rows beyond have none.
func (l List) CountInBits(words []uint64) (n int) {
	if l.Code == Delta {
		var few [RoaringFrom]uint32
		for _, r := range l.AppendTo(few[:0]) {
			if int(r/64) < len(words) {
				n += int(words[r/64] >> (r % 64) & 1)
			}
		}
		return n
	}
	var c RoaringCursor
	if c.Init(l.P) {
		n = c.countIn(words)
	}
	return n
}

func (l List) AddTo(dst *roaring.Bitmap) {
	if l.Code == Roaring {
		dst.Or(l.Bitmap())
		return
	}
	var few [RoaringFrom]uint32
	if rows := l.AppendTo(few[:0]); len(rows) < 4 {
		for _, r := range rows {
			dst.Add(r)
		}
	} else {
		dst.AddMany(rows)
	}
}

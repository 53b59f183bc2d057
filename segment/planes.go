package segment

import (
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment/rowlist"
	"svc/simd"
)

const (
	// maxPlanes is how many bits the ordinals of a column in planes have at most. Lists of rows take less than more planes.
	maxPlanes = 12

	// planeShare: if at least one in so many rows has an ordinal, its rows are read from the planes. That takes up to five times as
	// long as marking listed rows, but a list would be larger than the planes.
	planeShare = 128

	// planeListRows is from how many rows on an ordinal of a column in planes has a bitmap, if rows take 4 bytes in a list.
	planeListRows = 128
)

// bitPlanes are the ordinals of rows with at most one ordinal. For each 256 rows there are 4 words with the lowest bits of their
// ordinals, then 4 with the next bits, and so on. So a comparison of 64 rows needs a few operations per bit (Y. Li and J. M. Patel,
// BitWeaving, SIGMOD 2013). All bits are set for a row without an ordinal, and after the last row.
type bitPlanes struct {
	n     int // bits of an ordinal; 0: the column has no planes
	rows  int
	words []byte
}

const (
	planeRows  = simd.PlaneRows
	planeBytes = simd.PlaneBytes
)

// planesFor returns the number of bits per ordinal, for the given number of ordinals and one more value that means none.
func planesFor(ords int) (n int) {
	for ords >= 1<<n {
		n++
	}
	return n
}

// planesBytes returns the size in bytes of the planes of a number of rows.
func planesBytes(rows, n int) int { return (rows + planeRows - 1) / planeRows * planeBytes * n }

// block returns the planes of the rows from planeRows·i on.
func (p *bitPlanes) block(i int) []byte {
	size := planeBytes * p.n
	return p.words[size*i : size*(i+1)]
}

// mark sets the bits of the rows with an ordinal in [lo, hi), 64 a word.
func (p *bitPlanes) mark(marks []uint64, lo, hi int) {
	marks = marks[:min(len(marks), (p.rows+63)/64)]
	simd.MarkPlanes(marks, p.words, p.n, lo, hi)
	if block := len(marks) / len(simd.PlaneMarks{}); len(marks)%len(simd.PlaneMarks{}) > 0 {
		found := simd.FindInPlanes(p.block(block), lo, hi)
		for j := range marks[len(found)*block:] {
			marks[len(found)*block+j] |= found[j]
		}
	}
	if rest := p.rows % 64; rest > 0 && len(marks) > p.rows/64 {
		marks[p.rows/64] &= 1<<rest - 1 // a forged segment may have others
	}
}

// ordinal returns the ordinal of a row; all bits are set: it has none.
func (p *bitPlanes) ordinal(row int) (ord uint32) {
	at := row % planeRows / 64 * 8
	for b, block := 0, p.block(row/planeRows); len(block) >= planeBytes; b, block = b+1, block[planeBytes:] {
		ord |= uint32(binary.LittleEndian.Uint64(block[at:])>>(row%64)&1) << b
	}
	return ord
}

const (
	lowBits   = 0x0101010101010101 // of bytes
	oneBits   = 0x8040201008040201 // bit i of byte i
	gatherLow = 0x0102040810204080 // a product with it has the lowest bits of bytes in its highest byte
)

// decode returns the ordinals of the 64 rows from 64·word on. Rows without an ordinal have all bits set.
func (p *bitPlanes) decode(ords *[64]uint32, word int) {
	block, at := p.block(word/len(simd.PlaneMarks{})), word%len(simd.PlaneMarks{})*8
	for i := range 8 {
		var low, high uint64 // bytes of the ordinals of 8 rows
		for b := range p.n {
			// Each byte gets the bits of the plane and keeps only the bit of its row, which then becomes the lowest.
			bits := uint64(block[planeBytes*b+at+i]) * lowBits & oneBits
			bits = (bits + 0x7f*lowBits) >> 7 & lowBits
			if b < 8 {
				low |= bits << b
			} else {
				high |= bits << (b - 8)
			}
		}
		to := (*[8]uint32)(ords[8*i:])
		for j := range to {
			to[j] = uint32(byte(low>>(8*j))) | uint32(byte(high>>(8*j)))<<8
		}
	}
}

// decodeFrom is the number of wanted rows in a word from which all its rows are decoded.
const decodeFrom = 8

// each appends the ordinals of rows and, for each, the index of its row in rows. It leaves out ordinals from size on, and rows
// without an ordinal.
func (p *bitPlanes) each(ords, places, rows []uint32, size int) (_, _ []uint32) {
	n, m := len(ords), len(places)
	ords, places = slices.Grow(ords, len(rows))[:n+len(rows)], slices.Grow(places, len(rows))[:m+len(rows)]
	at, to, got := ords[n:], places[m:], 0
	var decoded [64]uint32
	word := -1
	for i, row := range rows {
		if int(row) >= p.rows {
			continue
		}
		var ord uint32
		switch w := int(row / 64); {
		case w == word:
			ord = decoded[row%64]
		case i+decodeFrom <= len(rows) && int(rows[i+decodeFrom-1]/64) == w:
			p.decode(&decoded, w)
			ord, word = decoded[row%64], w
		default:
			ord = p.ordinal(int(row))
		}
		at[got], to[got] = ord, uint32(i)
		if int(ord) < size {
			got++
		}
	}
	return ords[:n+got], places[:m+got]
}

// with appends those rows that have an ordinal in [lo, hi). It compares all rows of a block, so neighbours cost little.
func (p *bitPlanes) with(dst, rows []uint32, lo, hi int) []uint32 {
	at, found := -1, simd.PlaneMarks{}
	for _, row := range rows {
		if int(row) >= p.rows {
			continue
		}
		if i := int(row / planeRows); i != at {
			at, found = i, simd.FindInPlanes(p.block(i), lo, hi)
		}
		if found[row%planeRows/64]>>(row%64)&1 != 0 {
			dst = append(dst, row)
		}
	}
	return dst
}

// set returns the rows with an ordinal.
func (p *bitPlanes) set(ord int) *roaring.Bitmap {
	return setOf(p.rows, func(marks []uint64) { p.mark(marks, ord, ord+1) })
}

// addAmong adds those of some rows that have an ordinal. It looks up few rows one by one. For more rows, it first marks the rows with
// the ordinal.
func (p *bitPlanes) addAmong(dst *roaring.Bitmap, ord int, among *roaring.Bitmap) {
	few := among.GetCardinality()*planeShare < uint64(p.rows)
	var marked *rowlist.Bits
	if !few {
		marked = rowlist.TakeBits((p.rows + 63) / 64)
		defer marked.Release()
		p.mark(marked.Words, ord, ord+1)
	}
	var chunk [1024]uint32
	var found []uint32
	for it := among.ManyIterator(); ; {
		some := chunk[:it.NextMany(chunk[:])]
		switch {
		case len(some) == 0:
			dst.Or(rowlist.FromRows(found))
			return
		case few:
			found = p.with(found, some, ord, ord+1)
			continue
		}
		n := len(found)
		found = slices.Grow(found, len(some))[:n+len(some)]
		at, got := found[n:], 0
		for _, row := range some { // each is written, and some stay: branches would depend on the values
			at[got] = row
			if w := int(row / 64); w < len(marked.Words) {
				got += int(marked.Words[w] >> (row % 64) & 1)
			}
		}
		found = found[:n+got]
	}
}

// appendPlanes appends the planes of rows; pairs ascend by row.
func appendPlanes(dst []byte, rows, n int, pairs []rowOrdinal) []byte {
	var none, ords [2][planeRows]byte // by byte of ordinals, the lowest first
	for i := range planeRows {
		none[0][i], none[1][i] = 0xff, 0xff
	}
	i := 0
	for from := 0; from < rows; from += planeRows {
		ords = none
		for ; i < len(pairs) && int(pairs[i].row) < from+planeRows; i++ {
			row, ord := pairs[i].row%planeRows, pairs[i].ord
			ords[0][row], ords[1][row] = byte(ord), byte(ord>>8)
		}
		for b := range n {
			bytes := &ords[b/8]
			for at := 0; at < planeRows; at += 8 {
				bits := binary.LittleEndian.Uint64(bytes[at:]) >> (b % 8) & lowBits
				dst = append(dst, byte(bits*gatherLow>>56))
			}
		}
	}
	return dst
}

package segment

import (
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment/rowlist"
)

const (
	// maxPlanes is how many bits the ordinals of a column in planes have at most. Lists of rows take less than more planes.
	maxPlanes = 12

	// planeShare: if one row in so many has an ordinal, the planes are read for its rows. That takes up to five times as long as to mark
	// listed rows, and a list would take more bytes than the planes.
	planeShare = 128

	// planeListRows is from how many rows on an ordinal of a column in planes has a bitmap, if rows take 4 bytes in a list.
	planeListRows = 128
)

// bitPlanes are the ordinals of rows that have one at most. For each 256 rows there are 4 words with the lowest bits of their ordinals,
// then 4 with the next bits, and so on. So a comparison needs a few operations per bit for 64 rows (Y. Li and J. M. Patel, BitWeaving,
// SIGMOD 2013). All bits are set for a row without an ordinal, and behind the last row.
type bitPlanes struct {
	n     int // bits of an ordinal; 0: the column has no planes
	rows  int
	words []byte
}

const (
	planeRows  = 256           // of a block
	planeBytes = planeRows / 8 // of a plane of a block
)

// planeMarks have a bit for each row of a block.
type planeMarks [planeRows / 64]uint64

// planesFor returns how many bits ordinals have of which there are so many, and one more that stands for none.
func planesFor(ords int) (n int) {
	for ords >= 1<<n {
		n++
	}
	return n
}

// planesBytes returns what the planes of so many rows take.
func planesBytes(rows, n int) int { return (rows + planeRows - 1) / planeRows * planeBytes * n }

// block returns the planes of the rows from planeRows·i on.
func (p *bitPlanes) block(i int) []byte {
	size := planeBytes * p.n
	return p.words[size*i : size*(i+1)]
}

// mark sets the bits of the rows with an ordinal in [lo, hi), 64 a word.
func (p *bitPlanes) mark(marks []uint64, lo, hi int) {
	marks = marks[:min(len(marks), (p.rows+63)/64)]
	i := 0
	if hi == lo+1 {
		i = p.markEqual(marks, lo)
	}
	for to := marks[min(len(marks), i*len(planeMarks{})):]; len(to) > 0; i++ {
		found := p.find(i, lo, hi)
		for j := range min(len(to), len(found)) {
			to[j] |= found[j]
		}
		to = to[min(len(to), len(found)):]
	}
	if rest := p.rows % 64; rest > 0 && len(marks) > p.rows/64 {
		marks[p.rows/64] &= 1<<rest - 1 // a forged segment may have others
	}
}

// markEqual is mark for an ordinal and the blocks that have marks for all rows. It returns how many they are. The loops are one function,
// as calls would take as long as the work.
func (p *bitPlanes) markEqual(marks []uint64, ord int) (blocks int) {
	words, size := p.words, planeBytes*p.n
	for ; len(marks) >= len(planeMarks{}) && len(words) >= size; blocks++ {
		block := words[:size]
		a, b, c, d, flips := ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ord
		for len(block) >= planeBytes {
			flip := uint64(flips&1) - 1 // ^0 where the bit is not set
			x := (*[planeBytes]byte)(block)
			a &= binary.LittleEndian.Uint64(x[0:]) ^ flip
			b &= binary.LittleEndian.Uint64(x[8:]) ^ flip
			c &= binary.LittleEndian.Uint64(x[16:]) ^ flip
			d &= binary.LittleEndian.Uint64(x[24:]) ^ flip
			flips >>= 1
			block = block[planeBytes:]
		}
		to := (*planeMarks)(marks)
		to[0], to[1], to[2], to[3] = to[0]|a, to[1]|b, to[2]|c, to[3]|d
		marks, words = marks[len(to):], words[size:]
	}
	return blocks
}

// find returns which rows of a block have an ordinal in [lo, hi).
func (p *bitPlanes) find(i, lo, hi int) planeMarks {
	block := p.block(i)
	found := lessIn(block, hi)
	if lo > 0 {
		less := lessIn(block, lo)
		for j, w := range less {
			found[j] &^= w
		}
	}
	return found
}

// lessIn returns which rows of a block have an ordinal below a bound, which has as many bits as there are planes. So rows without an
// ordinal never have. From the lowest bit on, a row is less if its bit is not set and that of the bound is, or if they are the same and the
// row was less by the bits before.
func lessIn(block []byte, bound int) planeMarks {
	var a, b, c, d uint64
	for ; len(block) >= planeBytes; block = block[planeBytes:] {
		x := (*[planeBytes]byte)(block)
		xa, xb := binary.LittleEndian.Uint64(x[0:]), binary.LittleEndian.Uint64(x[8:])
		xc, xd := binary.LittleEndian.Uint64(x[16:]), binary.LittleEndian.Uint64(x[24:])
		if bound&1 != 0 {
			a, b, c, d = a|^xa, b|^xb, c|^xc, d|^xd
		} else {
			a, b, c, d = a&^xa, b&^xb, c&^xc, d&^xd
		}
		bound >>= 1
	}
	return planeMarks{a, b, c, d}
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

// decode returns the ordinals of the rows from 64·word on; those of rows without one have all bits set.
func (p *bitPlanes) decode(ords *[64]uint32, word int) {
	block, at := p.block(word/len(planeMarks{})), word%len(planeMarks{})*8
	for i := range 8 {
		var low, high uint64 // bytes of the ordinals of 8 rows
		for b := range p.n {
			// Each byte gets the plane's bits, but keeps that of its row, which then becomes the lowest.
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

// decodeFrom is how many rows of a word must be wanted so that all are decoded.
const decodeFrom = 8

// each appends the ordinals of rows, and for each of them the place of its row in rows. Ordinals from size on are left out; so is that of
// rows without one.
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
	at, found := -1, planeMarks{}
	for _, row := range rows {
		if int(row) >= p.rows {
			continue
		}
		if i := int(row / planeRows); i != at {
			at, found = i, p.find(i, lo, hi)
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

// addAmong adds those of some rows that have an ordinal. Few rows are looked up; if there are more, the rows with the ordinal are marked
// first.
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

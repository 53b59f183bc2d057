package segment

import (
	"encoding/binary"

	"svc/simd"
)

// The positions of a word in one field of one row are ascending numbers. The first one is encoded as it is, each further one as its
// distance from the previous one, minus 1. A number is a sequence of bytes of 6 bits each, low bits first:
//
//	bit 7     last byte of the row
//	bit 6     last byte of the number
//	bits 0-5  payload
//
// One position below 64 is one byte, and a run of rows is skipped by counting
// bytes with bit 7, eight at a time, without decoding any.
const (
	endOfRow    = 0x80
	endOfNumber = 0x40
	payload     = 0x3f

	// blockRows is how many rows of positions stand between two entries of a skip table.
	blockRows = 128
)

// appendNumber appends one number without the end of row mark.
func appendNumber(dst []byte, v uint32) []byte {
	for v > payload {
		dst = append(dst, byte(v&payload))
		v >>= 6
	}
	return append(dst, byte(v)|endOfNumber)
}

// decodePositions appends the positions of the row that begins at p[at]. If the bytes end before the row does, it appends the
// positions before that.
func decodePositions(dst []uint16, p []byte, at int) ([]uint16, int) {
	next, v, shift := uint32(0), uint32(0), 0
	for at < len(p) {
		b := p[at]
		at++
		v |= uint32(b&payload) << (shift & 31)
		shift += 6
		if b&endOfNumber != 0 {
			next += v
			dst = append(dst, uint16(next))
			next++
			v, shift = 0, 0
		}
		if b&endOfRow != 0 {
			break
		}
	}
	return dst, at
}

const (
	everyEnd  = 0x8080808080808080
	everyByte = everyEnd >> 7 // 1 in each byte
)

// skipRows returns the offset after the n-th end of a row after p[at], or len(p) if there are fewer. If p ends before at, it returns
// at.
func skipRows(p []byte, at, n int) int {
	if at >= len(p) {
		return at
	}
	return at + simd.SkipMarked(p[at:], n)
}

// appendSkips appends the skip table of the rows coded in p: for each block
// of blockRows rows after the first, its offset in p.
func appendSkips(dst []byte, p []byte, rows int) []byte {
	at := 0
	for n := blockRows; n < rows; n += blockRows {
		at = skipRows(p, at, blockRows)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(at))
	}
	return dst
}

// skipBytes returns the size of the skip table of a number of rows.
func skipBytes(rows int) int {
	if rows <= blockRows {
		return 0
	}
	return (rows - 1) / blockRows * 4
}

// validPositions reports whether p holds the positions of exactly n rows.
func validPositions(p []byte, n int) bool {
	next, v, shift := uint32(0), uint32(0), 0
	for _, b := range p {
		v |= uint32(b&payload) << (shift & 31)
		shift += 6
		if shift > 18 {
			return false
		}
		if b&endOfNumber != 0 {
			if next += v; next > 0xffff {
				return false
			}
			next++
			v, shift = 0, 0
		}
		if b&endOfRow != 0 {
			if b&endOfNumber == 0 {
				return false
			}
			n--
			next = 0
		}
	}
	return n == 0 && (len(p) == 0 || p[len(p)-1]&endOfRow != 0)
}

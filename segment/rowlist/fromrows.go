package rowlist

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"
)

// FromRows returns the set of strictly ascending rows. Like a result of FromBits, it has no runs and no spare room, and containers
// are copied before they are changed in place.
func FromRows(rows []uint32) *roaring.Bitmap {
	b := roaring.New()
	if len(rows) == 0 {
		return b
	}
	containers, size := 0, setHeaderBytes
	for rest := rows; len(rest) > 0; containers++ {
		n := splitKey(rest)
		size += containerHeaderBytes + min(2*n, containerBytes)
		rest = rest[n:]
	}
	code := make([]byte, size)
	le := binary.LittleEndian
	le.PutUint32(code, roaringCookie)
	le.PutUint32(code[4:], uint32(containers))
	header, to := code[setHeaderBytes:], code[setHeaderBytes+containerHeaderBytes*containers:]
	for rest := rows; len(rest) > 0; header = header[4:] {
		n := splitKey(rest)
		le.PutUint16(header, uint16(rest[0]>>16))
		le.PutUint16(header[2:], uint16(n-1))
		if n <= arrayMax {
			for i, row := range rest[:n] {
				le.PutUint16(to[2*i:], uint16(row))
			}
			to = to[2*n:]
		} else {
			for _, row := range rest[:n] {
				to[row&0xffff>>3] |= 1 << (row & 7)
			}
			to = to[containerBytes:]
		}
		rest = rest[n:]
	}
	if _, err := b.FromBuffer(code); err != nil {
		b = roaring.BitmapOf(rows...) // no error is known that our own bytes give
	}
	return b
}

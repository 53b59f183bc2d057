package rowlist

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"
)

// FromRows returns the set of strictly ascending rows. Like a result of FromBits, it has no runs and no spare room, and containers
// are copied before they are changed in place.
func FromRows(rows []uint32) *roaring.Bitmap {
	containers, size, withBits := 0, 0, false
	for rest := rows; len(rest) > 0; containers++ {
		n := splitKey(rest)
		size, withBits = size+min(2*n, containerBytes), withBits || n > arrayMax
		rest = rest[n:]
	}
	if containers == 0 {
		return roaring.New()
	}
	f := newFlat(containers, withBits)
	to := make([]byte, size)
	for i := range containers {
		n := splitKey(rows)
		kind, bytes := byte(containerArray), to[:min(2*n, containerBytes)]
		if n <= arrayMax {
			for i, row := range rows[:n] {
				binary.LittleEndian.PutUint16(bytes[2*i:], uint16(row))
			}
		} else {
			kind = containerBitmap
			for _, row := range rows[:n] {
				bytes[row&0xffff>>3] |= 1 << (row & 7)
			}
		}
		f.put(i, uint16(rows[0]>>16), kind, n, bytes)
		to, rows = to[len(bytes):], rows[n:]
	}
	return f.set
}

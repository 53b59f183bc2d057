package rowlist

import "github.com/RoaringBitmap/roaring/v2"

// BitsPer: a set with at least one in so many rows of a segment is built from a bit set.
const BitsPer = 64

// SetOf returns a set of rows of a segment with the given number of rows. The list may have any order and duplicates. A long list
// goes through a bit set; rows that the segment does not have, which only a forged one names, are then dropped.
func SetOf(list []uint32, rows int) *roaring.Bitmap {
	if len(list) < rows/BitsPer {
		if ascend(list) {
			return FromRows(list)
		}
		return roaring.BitmapOf(list...)
	}
	bits := TakeBits((rows + 63) / 64)
	defer bits.Release()
	for _, row := range list {
		if w := int(row / 64); w < len(bits.Words) {
			bits.Words[w] |= 1 << (row % 64)
		}
	}
	return FromBits(bits.Words)
}

// ascend reports whether each of some rows is above the one before it.
func ascend(rows []uint32) bool {
	for i := 1; i < len(rows); i++ {
		if rows[i] <= rows[i-1] {
			return false
		}
	}
	return true
}

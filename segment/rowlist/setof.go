package rowlist

import "github.com/RoaringBitmap/roaring/v2"

// BitsPer is from which share of the rows of a segment on, one in so many, a set is made with a bit a row.
const BitsPer = 64

// SetOf returns a set of rows of a segment with so many rows. The list may have any order, and rows twice. Many go through a bit for each
// row; then rows that the segment does not have, as only a forged one names them, are left out.
func SetOf(list []uint32, rows int) *roaring.Bitmap {
	if len(list) < rows/BitsPer {
		if ascend(list) {
			return FromRows(list)
		}
		return roaring.BitmapOf(list...)
	}
	words := make([]uint64, (rows+63)/64)
	for _, row := range list {
		if w := int(row / 64); w < len(words) {
			words[w] |= 1 << (row % 64)
		}
	}
	return roaring.FromDense(words, false)
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

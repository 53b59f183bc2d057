package rowlist

import "github.com/RoaringBitmap/roaring/v2"

// FromRows returns the set of ascending distinct rows. Like one FromBits returns, it has no spare room, and what is changed in place is
// copied first.
func FromRows(rows []uint32) *roaring.Bitmap {
	b := roaring.New()
	if len(rows) == 0 {
		return b
	}
	if _, err := b.FromBuffer(AppendRoaring(make([]byte, 0, RoaringBytes(rows)), rows)); err != nil {
		b = roaring.BitmapOf(rows...) // no error is known that our own bytes give
	}
	return b
}

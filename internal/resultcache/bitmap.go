package resultcache

import "github.com/RoaringBitmap/roaring/v2"

// Size estimates the bytes of a bitmap that has no spare capacity and is not mapped.
func Size(b *roaring.Bitmap) int { return Overhead(b) + int(b.GetSizeInBytes()) }

// Overhead estimates the bytes of a bitmap without its rows, which may be mapped.
func Overhead(b *roaring.Bitmap) int {
	const bitmap, container = 160, 64
	if b.IsEmpty() {
		return bitmap
	}
	return bitmap + container*(1+int(b.Maximum()>>16-b.Minimum()>>16))
}

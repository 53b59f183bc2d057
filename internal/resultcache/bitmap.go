package resultcache

import "github.com/RoaringBitmap/roaring/v2"

// Trim returns a copy of a bitmap without the spare room that computing it has left, which may be as much again, and the bytes
// that it takes.
func Trim(b *roaring.Bitmap) (trimmed *roaring.Bitmap, bytes int) {
	trimmed = b.Clone()
	return trimmed, Size(trimmed)
}

// Size estimates the bytes of a bitmap without spare room that is not mapped.
func Size(b *roaring.Bitmap) int { return Overhead(b) + int(b.GetSizeInBytes()) }

// Overhead estimates the bytes of a bitmap beside its rows, which may be mapped.
func Overhead(b *roaring.Bitmap) int {
	const bitmap, container = 160, 64
	if b.IsEmpty() {
		return bitmap
	}
	return bitmap + container*(1+int(b.Maximum()>>16-b.Minimum()>>16))
}

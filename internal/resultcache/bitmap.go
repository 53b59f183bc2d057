package resultcache

import (
	"bytes"

	"github.com/RoaringBitmap/roaring/v2"
)

// Trim returns a copy of a bitmap without spare capacity, which may be as large as the bitmap, and the size of the copy in bytes. The
// copy is one allocation, so that the garbage collector has less to scan. Containers are copied before they are modified in place.
func Trim(b *roaring.Bitmap) (trimmed *roaring.Bitmap, size int) {
	var code bytes.Buffer
	code.Grow(int(b.GetSerializedSizeInBytes()))
	trimmed = roaring.New()
	_, err := b.WriteTo(&code)
	if err == nil {
		var read int64
		if read, err = trimmed.FromBuffer(code.Bytes()); read == int64(code.Len()) && err == nil {
			return trimmed, Size(trimmed)
		}
	}
	trimmed = b.Clone() // it has containers that the format does not know
	return trimmed, Size(trimmed)
}

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

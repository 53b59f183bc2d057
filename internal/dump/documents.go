package dump

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/index"
	"svc/segment"
)

// eachDocument calls f for the documents of a view among rows (nil: all), as dumps and exports send them. f may append
// to doc, and keeps nothing of it.
func eachDocument(v *index.View, rows []*roaring.Bitmap, f func(doc []byte) error) error {
	return v.EachDocument(rows, func(_ int, _ segment.Row, doc []byte) error { return f(doc) })
}

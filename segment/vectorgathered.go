package segment

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/ann"
	"svc/internal/mapped"
)

// FilterSigns are copies of the signs of the rows of a filter. They make searches among these rows quick. A caller that searches with a
// filter more than once keeps them.
type FilterSigns struct{ signs ann.GatheredSigns }

// Bytes is what they take of the heap.
func (f *FilterSigns) Bytes() int {
	if f == nil {
		return 0
	}
	return 8*cap(f.signs.Words) + 4*cap(f.signs.Rows)
}

const (
	// leastGathered: fewer rows are quickly compared one by one.
	leastGathered = 1 << 12

	// gatheredShare: signs are not gathered for more than one in so many rows, because a walk is faster.
	gatheredShare = 2
)

// GatherSigns copies the signs of some rows, which may be deleted. It returns nil if searches among these would gain nothing.
func (v *Vectors) GatherSigns(rows *roaring.Bitmap) (signs *FilterSigns) {
	n := rows.GetCardinality()
	if !v.comparesSigns() || v.rows != nil || v.ends != nil || n < leastGathered || gatheredShare*n > uint64(v.vectors) || int(rows.Maximum()) >= v.vectors {
		return nil
	}
	if mapped.Guard(func() error {
		signs = &FilterSigns{v.signs.Gather(rows)}
		return nil
	}) != nil {
		return nil // searches meet the damage as well
	}
	return signs
}

// SearchGathered is Search among rows whose signs were gathered from this segment, maybe with those of some more rows. signs may be
// nil.
func (v *Vectors) SearchGathered(dst []Scored, q []float32, k int, allowed *roaring.Bitmap, signs *FilterSigns) []Scored {
	return v.search(dst, q, k, 0, allowed, signs)
}

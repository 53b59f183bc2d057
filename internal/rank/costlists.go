package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
	"svc/internal/resultcache"
	"svc/segment/rowlist"
)

// costLists are rows by cost, as they were found.
type costLists [][]uint32

// reset empties the lists and keeps their room.
func (l *costLists) reset() { *l = (*l)[:0] }

// at returns the list of a cost, for more to be added.
func (l *costLists) at(cost int) *[]uint32 {
	for len(*l) <= cost {
		if n := len(*l); n < cap(*l) {
			*l = (*l)[:n+1]
			(*l)[n] = (*l)[n][:0]
		} else {
			*l = append(*l, nil)
		}
	}
	return &(*l)[cost]
}

// add adds rows with their costs, without those that cost as much as the rest.
func (l *costLists) add(rows, costs []uint32, rest int) {
	for i, c := range costs {
		if int(c) < len(*l) && int(c) != rest {
			(*l)[c] = append((*l)[c], rows[i])
		} else if int(c) != rest {
			list := l.at(int(c))
			*list = append(*list, rows[i])
		}
	}
}

// classes returns the lists as bitmaps of a segment with the given number of rows.
func (l costLists) classes(rows int) *segmentClasses {
	c := &segmentClasses{}
	for cost, list := range l {
		if len(list) > 0 {
			c.costs, c.rows = append(c.costs, cost), append(c.rows, rowlist.SetOf(list, rows))
		}
	}
	return c
}

// segmentClasses are the documents of one segment by cost. They are cached with it.
type segmentClasses struct {
	costs   []int // ascending
	rows    []*roaring.Bitmap
	covered *roaring.Bitmap // union of rows; nil if not needed
	bytes   int             // that they take
	sum     uint64          // their checksum, under invariant.Enabled
}

// trim compacts the classes for the cache, and estimates their memory.
func (c *segmentClasses) trim() {
	c.bytes = 200
	covers := -1
	for i, b := range c.rows {
		if b == c.covered {
			covers = i
		}
		c.rows[i] = rowlist.Flattened(b)
		c.bytes += resultcache.Size(c.rows[i])
	}
	switch {
	case covers >= 0:
		c.covered = c.rows[covers]
	case c.covered != nil:
		c.covered = rowlist.Flattened(c.covered)
		c.bytes += resultcache.Size(c.covered)
	}
	if invariant.Enabled {
		c.sum = c.checksum()
	}
}

// cover computes the union. If there is only one class, it is that class.
func (c *segmentClasses) cover() {
	if c.covered = rowlist.OrAll(c.rows); c.covered == nil {
		c.covered = roaring.New()
	}
}

package task

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// columns holds a few timestamps for each of many uids, in pages of
// consecutive uids that know their extremes, so that a range of time is
// decided for most pages without looking inside. Times are nanoseconds, 0 for none.
type columns struct {
	width int
	pages map[uint32]*columnPage
	order []uint32 // of pages, sorted
}

const pageBits = 12

type columnPage struct {
	values []int64 // [uid in page * width + column]
	// lowest, highest bound the values ever set, by column; some says whether any value is, or was, absent.
	lowest, highest []int64
}

func newColumns(width int) *columns {
	return &columns{width: width, pages: map[uint32]*columnPage{}}
}

// set stores the values of a uid, one a column.
func (c *columns) set(uid uint32, values []int64) {
	p := c.pages[uid>>pageBits]
	if p == nil {
		p = &columnPage{
			values: make([]int64, c.width<<pageBits),
			lowest: make([]int64, c.width), highest: make([]int64, c.width),
		}
		for i := range p.lowest {
			p.lowest[i], p.highest[i] = 1<<63-1, -1<<63
		}
		c.pages[uid>>pageBits] = p
		at, _ := slices.BinarySearch(c.order, uid>>pageBits)
		c.order = slices.Insert(c.order, at, uid>>pageBits)
	}
	copy(p.values[int(uid&(1<<pageBits-1))*c.width:], values)
	for i, v := range values {
		// An absent value counts as before every bound, so a page that has one is never taken whole.
		if v == 0 {
			v = -1 << 63
		}
		p.lowest[i], p.highest[i] = min(p.lowest[i], v), max(p.highest[i], v)
	}
}

// get returns a value of a uid.
func (c *columns) get(uid uint32, column int) int64 {
	p := c.pages[uid>>pageBits]
	if p == nil {
		return 0
	}
	return p.values[int(uid&(1<<pageBits-1))*c.width+column]
}

// drop forgets pages without any uid of all.
func (c *columns) drop(all *roaring.Bitmap) {
	c.order = slices.DeleteFunc(c.order, func(n uint32) bool {
		base := uint64(n) << pageBits
		empty := !all.IntersectsWithInterval(base, base+1<<pageBits)
		if empty {
			delete(c.pages, n)
		}
		return empty
	})
}

// keepBetween removes from set the uids whose value in a column is missing or not strictly between two bounds.
func (c *columns) keepBetween(set *roaring.Bitmap, column int, after, before int64) {
	var ranges [][2]uint64 // of uids to remove, and
	out := roaring.New()   // single ones: the set stays as it is while the iterator walks it
	it := set.Iterator()
	done := uint64(0)
	for _, n := range c.order {
		base := uint64(n) << pageBits
		end := base + 1<<pageBits
		ranges = append(ranges, [2]uint64{done, base})
		done = end
		p := c.pages[n]
		if p.lowest[column] > after && p.highest[column] < before {
			continue
		}
		if p.highest[column] <= after || p.lowest[column] >= before {
			ranges = append(ranges, [2]uint64{base, end})
			continue
		}
		it.AdvanceIfNeeded(uint32(base))
		for it.HasNext() && uint64(it.PeekNext()) < end {
			uid := it.Next()
			if v := p.values[int(uid&(1<<pageBits-1))*c.width+column]; v == 0 || v <= after || v >= before {
				out.Add(uid)
			}
		}
	}
	ranges = append(ranges, [2]uint64{done, 1 << 32})
	for _, r := range ranges {
		if r[0] < r[1] {
			set.RemoveRange(r[0], r[1])
		}
	}
	set.AndNot(out)
}

// counts holds a number for each of many uids, in pages of consecutive uids.
type counts struct{ pages map[uint32]*countPage }

type countPage struct {
	of  [1 << pageBits]uint32
	sum int
}

func newCounts() *counts { return &counts{pages: map[uint32]*countPage{}} }

// add adds n to the number of a uid.
func (c *counts) add(uid, n uint32) {
	p := c.pages[uid>>pageBits]
	if p == nil {
		p = &countPage{}
		c.pages[uid>>pageBits] = p
	}
	p.of[uid&(1<<pageBits-1)] += n
	p.sum += int(n)
}

// sub takes n from the number of a uid, which is at least n.
func (c *counts) sub(uid, n uint32) {
	p := c.pages[uid>>pageBits]
	p.of[uid&(1<<pageBits-1)] -= n
	if p.sum -= int(n); p.sum == 0 {
		delete(c.pages, uid>>pageBits)
	}
}

// get returns the number of a uid.
func (c *counts) get(uid uint32) uint32 {
	if p := c.pages[uid>>pageBits]; p != nil {
		return p.of[uid&(1<<pageBits-1)]
	}
	return 0
}

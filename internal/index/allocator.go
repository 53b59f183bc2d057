package index

import (
	"errors"
	"math"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// allocator assigns document ids for one batch after another, the lowest free one first. Ids freed by a batch are free for the next
// batch.
type allocator struct {
	used *roaring.Bitmap // by live documents after the last commit

	// of the running batch
	next        int64 // all below are used or given out
	from        int64 // those from here up to next are given out, and not in given yet: sets take a run at once faster than its numbers
	given       *roaring.Bitmap
	freed       *roaring.Bitmap
	startedOver bool // used does not count any more
}

// newAllocator finds the ids of all live documents.
func newAllocator(v *View) *allocator {
	a := &allocator{used: roaring.New()}
	for _, l := range v.Segments {
		a.used.Or(idsOf(l))
	}
	a.used.RunOptimize()
	a.begin()
	return a
}

// idsOf returns the ids of a segment's live documents. Ids ascend with rows, so a run of rows has no gap if its ends are as far apart
// as their ids. A long run thus needs few lookups.
func idsOf(l segment.Live) *roaring.Bitmap {
	ids := roaring.New()
	for start, n := 0, l.Rows(); start < n; {
		first := l.DocID(segment.Row(start))
		gapless := func(length int) bool {
			return start+length <= n && int(l.DocID(segment.Row(start+length-1))-first) == length-1
		}
		length := 1
		for gapless(2 * length) {
			length *= 2
		}
		length += sort.Search(length, func(more int) bool { return !gapless(length + more + 1) })
		ids.AddRange(uint64(first), uint64(first)+uint64(length))
		start += length
	}
	if l.Deleted != nil {
		for it := l.Deleted.Iterator(); it.HasNext(); {
			ids.Remove(uint32(l.DocID(segment.Row(it.Next()))))
		}
	}
	return ids
}

// begin forgets what a batch that was not committed had taken.
func (a *allocator) begin() {
	a.next, a.from, a.startedOver = 0, 0, false
	a.given, a.freed = roaring.New(), roaring.New()
}

// take returns the lowest free id.
func (a *allocator) take() (segment.DocID, error) {
	if !a.startedOver {
		if next := nextAbsent(a.used, a.next); next != a.next {
			a.endRun()
			a.next, a.from = next, next
		}
	}
	if a.next >= math.MaxUint32 {
		return 0, errors.New("the index is full: all document numbers are in use")
	}
	id := uint32(a.next)
	a.next++
	return segment.DocID(id), nil
}

// nextAbsent returns the lowest number from from on that is not in a set. (The library's NextAbsentValue returns numbers that are in
// the set, or −1, if 65,536 of them follow each other.)
func nextAbsent(set *roaring.Bitmap, from int64) int64 {
	if from > math.MaxUint32 || !set.Contains(uint32(from)) {
		return from
	}
	before := int64(set.Rank(uint32(from))) - 1 // below from
	full := func(length int64) bool {
		last := from + length - 1
		return last <= math.MaxUint32 && int64(set.Rank(uint32(last)))-before == length
	}
	length := int64(1)
	for full(2 * length) {
		length *= 2
	}
	more := sort.Search(int(length), func(more int) bool { return !full(length + int64(more) + 1) })
	return from + length + int64(more)
}

// endRun puts the ids that were given out last into the set.
func (a *allocator) endRun() {
	a.given.AddRange(uint64(a.from), uint64(a.next))
	a.from = a.next
}

// free gives an id back.
func (a *allocator) free(id segment.DocID) { a.freed.Add(uint32(id)) }

// startOver makes every id free at once: all documents go.
func (a *allocator) startOver() {
	a.begin()
	a.startedOver = true
}

// committed makes what the batch did final.
func (a *allocator) committed() {
	a.endRun()
	if a.startedOver {
		a.used = roaring.New()
	}
	a.used.Or(a.given)
	a.used.AndNot(a.freed)
	a.begin()
}

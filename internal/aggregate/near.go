package aggregate

import (
	"math"
	"slices"
	"sync"

	"svc/internal/numeric"
	"svc/segment"
)

// near finds the buckets of a histogram, in a segment whose rows have at most one number, by the number of their interval: in a list
// of all intervals if these are few, otherwise by the index of keys. If numbers and intervals are integers and nothing is nested,
// listed intervals are counted without their buckets, which settle creates.
type near struct {
	histogram
	factor  float64   // 1/interval
	first   float64   // interval
	size    float64   // how many intervals there are from first on; 0: near cannot be used
	buckets []uint32  // by interval from first on: the bucket in group 0, or none; empty: the index of keys is used
	counts  []uint32  // instead of buckets, by interval: candidates that were walked and are in no bucket yet; empty: not used
	memory  *[]uint32 // of counts
	start   int64     // with counts: where the first interval begins
	opened  bool      // for the segment
	fresh   bool      // no other segment has given keys, so the index of keys need not be asked
}

// maxNear is the maximum number of listed intervals, and nearPerRow their maximum number per row, because a list has to be cleared.
// (Variables, so that tests can lower them.)
var (
	maxNear    = 1 << 15
	nearPerRow = 4
)

// The numbers of intervals are between −endNear and endNear, and 1/interval is at least minFactor, which is not a denormal number.
const (
	endNear   = 1 << 40
	minFactor = 0x1p-1000
)

// apart reports whether the bounds of intervals from first to last are well apart from each other, so that each number has one interval.
func (h histogram) apart(first, last float64) bool {
	largest := max(math.Abs(h.spec.offset), math.Abs(h.begin(first)), math.Abs(h.begin(last)))
	return h.spec.interval >= largest*0x1p-48
}

// forget ends a segment.
func (n *near) forget() { n.buckets, n.counts, n.size, n.opened = n.buckets[:0], nil, 0, false }

// intervalCounts have memory for counts of intervals.
var intervalCounts = sync.Pool{New: func() any { return new([]uint32) }}

// whole reports whether all numbers, and the bounds of all intervals from first on, are whole numbers that CountIntervals takes.
func (n *near) whole(c *segment.Column, first float64) bool {
	size, offset := n.spec.interval, n.spec.offset
	const end = segment.MaxIntervalSize
	return size == math.Trunc(size) && size >= 2 && size <= end && offset == math.Trunc(offset) && math.Abs(offset) <= end && c.SumsNumbers() &&
		math.Abs(n.begin(first)) < 2*end
}

// open prepares near for rows of a segment. n.size stays 0 if near cannot be used. counts says that rows need no bucket before
// settle.
func (n *near) open(w *work, by selector, c *segment.Column, rows int, counts bool) error {
	n.opened = true
	h, ok := by.(histogram)
	if !ok || c == nil || c.Numbers() == 0 || c.Strings() > 0 || !c.SingleNumbers() {
		return nil
	}
	if c.Large() { // near sees only the float64 of numbers
		return nil
	}
	first, last := h.interval(c.Number(0).Float), h.interval(c.Number(c.Numbers()-1).Float)
	factor := 1 / h.spec.interval
	if !(first > -endNear && first <= last && last < endNear) || math.IsInf(factor, 0) || factor < minFactor || !h.apart(first, last+1) {
		return nil
	}
	n.histogram, n.factor, n.first, n.size = h, factor, first, last-first+1
	if n.size > float64(maxNear) || n.size > float64(nearPerRow)*float64(rows) {
		return nil
	}
	size := int(n.size)
	if counts && n.whole(c, first) {
		if err := w.hold(4 * size); err != nil {
			return err
		}
		n.memory, n.start = intervalCounts.Get().(*[]uint32), int64(n.begin(first))
		*n.memory = slices.Grow((*n.memory)[:0], size)
		n.counts = (*n.memory)[:size]
		clear(n.counts)
		return nil
	}
	if more := size - cap(n.buckets); more > 0 {
		if err := w.hold(4 * more); err != nil {
			return err
		}
		n.buckets = make([]uint32, size)
	}
	n.buckets = n.buckets[:size]
	for i := range n.buckets {
		n.buckets[i] = none
	}
	return nil
}

// isNear reports whether the segment has buckets that are found by the number of their interval, for rows in group 0. It is not
// called for nested histograms, so the first call creates the buckets.
func (b *buckets) isNear(w *work) (bool, error) {
	if !b.near.opened {
		b.near.fresh = len(b.keys) == 0
		if err := b.near.open(w, b.by, b.source.column, b.source.among, len(b.nested) == 0); err != nil {
			return false, err
		}
	}
	return b.near.size > 0, nil
}

// walkNear walks rows with one number at most, which are all in group 0.
func (b *buckets) walkNear(w *work, p pairs) (err error) {
	n := &b.near
	b.source.preload(w)
	if len(n.counts) > 0 {
		b.source.column.CountIntervals(n.counts, p.rows, n.start, uint64(n.spec.interval))
		return nil
	}
	b.floats = b.source.column.FloatsOf(withRoom(b.floats, len(p.rows)), p.rows)
	m := b.mapping(p.rows)
	for i, x := range b.floats {
		at, ok := n.near(x)
		if !ok { // no number, or numbers of a forged segment that do not ascend
			m.skip(i)
			continue
		}
		to := uint32(none)
		if len(n.buckets) > 0 {
			to = n.buckets[at]
		} else if id, ok := b.numbers.find(numeric.Of(n.first + float64(at))); ok && int(id) < len(b.first) {
			to = b.first[id]
		}
		if to == none {
			if to, err = b.nearBucket(w, at); err != nil {
				return err
			}
		}
		b.counts[to]++
		m.put(i, to)
	}
	return b.passOn(w, &m)
}

// settleAll ends a segment in all nodes.
func settleAll(w *work, nodes []node) error {
	for _, n := range nodes {
		if b, ok := n.(*buckets); ok {
			if err := b.settle(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle puts the candidates that were counted by interval into buckets, at the end of a segment.
func (b *buckets) settle(w *work) error {
	n, different := &b.near, 0
	if len(n.counts) == 0 {
		return nil
	}
	for _, count := range n.counts {
		if count > 0 {
			different++
		}
	}
	if n.fresh {
		b.keys, b.first = slices.Grow(b.keys, different), slices.Grow(b.first, different)
		b.parent, b.key, b.counts = slices.Grow(b.parent, different), slices.Grow(b.key, different), slices.Grow(b.counts, different)
	}
	for at, count := range n.counts {
		if count == 0 {
			continue
		}
		to, err := b.nearBucket(w, at)
		if err != nil {
			return err
		}
		b.counts[to] += uint64(count)
	}
	size := len(n.counts)
	intervalCounts.Put(n.memory)
	n.counts, n.memory = nil, nil
	return w.hold(-4 * size)
}

// nearBucket returns the bucket of the interval at a place from the first one on, and lists it.
func (b *buckets) nearBucket(w *work, at int) (to uint32, err error) {
	k, id := key{isNumber: true, number: numeric.Of(b.near.first + float64(at))}, uint32(0)
	listed := len(b.near.buckets) > 0
	if b.near.fresh && (listed || len(b.near.counts) > 0) { // it is asked once for each interval
		id, err = b.add(w, k)
	} else {
		id, err = b.place(w, k)
	}
	if err != nil {
		return 0, err
	}
	to, err = b.bucket(w, 0, id)
	if err == nil && listed {
		b.near.buckets[at] = to
	}
	return to, err
}

// near is interval by multiplication, which takes less time than division. It returns the place from the first interval on. The product is
// off by less than 1 from the quotient, because the intervals of the segment are below endNear, and the bounds decide.
func (n *near) near(x float64) (at int, ok bool) {
	place := (x-n.spec.offset)*n.factor - n.first
	if !(-1 < place && place < n.size+1) { // not a number, too
		return 0, false
	}
	at = int(place) // those above −1 become 0
	if q := n.first + float64(at); n.begin(q+1) <= x {
		at++
	} else if n.begin(q) > x {
		at--
	}
	return at, uint(at) < uint(n.size)
}

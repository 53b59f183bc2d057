package aggregate

import (
	"math"

	"svc/internal/numeric"
	"svc/segment"
)

// near are the buckets of a histogram in a segment whose numbers are in few intervals: each is found by the number of its interval.
type near struct {
	histogram
	factor  float64  // 1/interval
	first   float64  // interval
	buckets []uint32 // by interval from first on: the bucket in group 0, or none
	opened  bool     // for the segment
}

// maxNear is the largest number of intervals for which near is used. (A variable, so that tests can lower it.)
var maxNear = 1 << 12

// The numbers of intervals are between −endNear and endNear, and 1/interval is at least minFactor, which is no denormal number.
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
func (n *near) forget() { n.buckets, n.opened = n.buckets[:0], false }

// open prepares near for a segment. n.buckets stays empty if near cannot be used.
func (n *near) open(w *work, by selector, c *segment.Column) error {
	n.opened = true
	h, ok := by.(histogram)
	if !ok || c == nil || c.Numbers() == 0 || c.Strings() > 0 || !c.SingleNumbers() {
		return nil
	}
	first, last := h.interval(c.Number(0).Float), h.interval(c.Number(c.Numbers()-1).Float)
	factor := 1 / h.spec.interval
	if !(first > -endNear && first <= last && last < endNear && last-first < float64(maxNear)) || math.IsInf(factor, 0) || factor < minFactor || !h.apart(first, last+1) {
		return nil
	}
	size := int(last-first) + 1
	if more := size - cap(n.buckets); more > 0 {
		if err := w.hold(4 * more); err != nil {
			return err
		}
		n.buckets = make([]uint32, size)
	}
	n.histogram, n.factor, n.first, n.buckets = h, factor, first, n.buckets[:size]
	for i := range n.buckets {
		n.buckets[i] = none
	}
	return nil
}

// isNear reports whether the segment has buckets that are found by the number of their interval, for rows in group 0. Histograms that are
// nested are never asked, so the buckets are made by the first call.
func (b *buckets) isNear(w *work) (bool, error) {
	if !b.near.opened {
		if err := b.near.open(w, b.by, b.source.column); err != nil {
			return false, err
		}
	}
	return len(b.near.buckets) > 0, nil
}

// walkNear walks rows with one number at most, which are all in group 0.
func (b *buckets) walkNear(w *work, p pairs) (err error) {
	n := &b.near
	b.floats = b.source.column.FloatsOf(withRoom(b.floats, len(p.rows)), p.rows)
	m := b.mapping(p.rows)
	for i, x := range b.floats {
		if x != x { // no number
			m.skip(i)
			continue
		}
		at := int(n.near(x) - n.first)
		if uint(at) >= uint(len(n.buckets)) { // the numbers of a forged segment need not ascend
			m.skip(i)
			continue
		}
		if n.buckets[at] == none {
			if n.buckets[at], err = b.nearBucket(w, x); err != nil {
				return err
			}
		}
		to := n.buckets[at]
		b.counts[to]++
		m.put(i, to)
	}
	return b.passOn(w, &m)
}

// nearBucket returns the bucket of a number.
func (b *buckets) nearBucket(w *work, x float64) (uint32, error) {
	k, _, err := b.near.number(w, numeric.Of(x))
	if err != nil {
		return 0, err
	}
	id, err := b.place(w, k)
	if err != nil {
		return 0, err
	}
	return b.bucket(w, 0, id)
}

// near is interval by multiplication, which takes less time than division. The product is off by less than 1 from the quotient, because
// the intervals of the segment are below endNear, and the bounds decide.
func (n *near) near(x float64) float64 {
	q := math.Floor((x - n.spec.offset) * n.factor)
	if n.begin(q+1) <= x {
		q++
	} else if n.begin(q) > x {
		q--
	}
	return q
}

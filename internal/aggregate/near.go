package aggregate

import (
	"math"

	"svc/internal/numeric"
	"svc/segment"
)

// near finds the buckets of a histogram, in a segment whose rows have one number at most, by the number of their interval: in a list of all
// intervals if these are few, otherwise by the index of keys.
type near struct {
	histogram
	factor  float64  // 1/interval
	first   float64  // interval
	size    float64  // how many intervals there are from first on; 0: near cannot be used
	buckets []uint32 // by interval from first on: the bucket in group 0, or none; empty: the index of keys is used
	opened  bool     // for the segment
}

// maxNear is the largest number of intervals that are listed, and nearPerRow how many there are at most for each row: a list has to be
// cleared. (Variables, so that tests can lower them.)
var (
	maxNear    = 1 << 12
	nearPerRow = 4
)

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
func (n *near) forget() { n.buckets, n.size, n.opened = n.buckets[:0], 0, false }

// open prepares near for so many rows of a segment. n.size stays 0 if near cannot be used.
func (n *near) open(w *work, by selector, c *segment.Column, rows int) error {
	n.opened = true
	h, ok := by.(histogram)
	if !ok || c == nil || c.Numbers() == 0 || c.Strings() > 0 || !c.SingleNumbers() {
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

// isNear reports whether the segment has buckets that are found by the number of their interval, for rows in group 0. Histograms that are
// nested are never asked, so the buckets are made by the first call.
func (b *buckets) isNear(w *work) (bool, error) {
	if !b.near.opened {
		if err := b.near.open(w, b.by, b.source.column, b.source.among); err != nil {
			return false, err
		}
	}
	return b.near.size > 0, nil
}

// walkNear walks rows with one number at most, which are all in group 0.
func (b *buckets) walkNear(w *work, p pairs) (err error) {
	n := &b.near
	b.source.preload()
	b.floats = b.source.column.FloatsOf(withRoom(b.floats, len(p.rows)), p.rows)
	m := b.mapping(p.rows)
	for i, x := range b.floats {
		q := n.near(x)
		if at := q - n.first; !(0 <= at && at < n.size) { // there is no number; or those of a forged segment do not ascend
			m.skip(i)
			continue
		}
		to := uint32(none)
		if len(n.buckets) > 0 {
			to = n.buckets[int(q-n.first)]
		} else if id, ok := b.numbers.find(numeric.Of(q)); ok && int(id) < len(b.first) {
			to = b.first[id]
		}
		if to == none {
			if to, err = b.nearBucket(w, q); err != nil {
				return err
			}
		}
		b.counts[to]++
		m.put(i, to)
	}
	return b.passOn(w, &m)
}

// nearBucket returns the bucket of an interval, and lists it.
func (b *buckets) nearBucket(w *work, q float64) (uint32, error) {
	id, err := b.place(w, key{isNumber: true, number: numeric.Of(q)})
	if err != nil {
		return 0, err
	}
	at, err := b.bucket(w, 0, id)
	if err == nil && len(b.near.buckets) > 0 {
		b.near.buckets[int(q-b.near.first)] = at
	}
	return at, err
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

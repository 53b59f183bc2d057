package aggregate

import (
	"slices"

	"svc/segment"
)

// near are the buckets of a histogram in a segment whose numbers are in few intervals: each is found by the number of its interval.
type near struct {
	histogram
	first   float64  // interval
	buckets []uint32 // by interval from first on: the bucket in group 0, or none
}

// maxNear is how many intervals a segment has at most. (A variable, so that tests can lower it.)
var maxNear = 1 << 12

// open begins a segment, whose numbers the column has. There are no buckets where others have to find them.
func (n *near) open(by selector, c *segment.Column) {
	n.buckets = n.buckets[:0]
	h, ok := by.(histogram)
	if !ok || c == nil || c.Numbers() == 0 || c.Strings() > 0 || !c.SingleNumbers() {
		return
	}
	first, last := h.interval(c.Number(0).Float), h.interval(c.Number(c.Numbers()-1).Float)
	if !(first > -maxIntervals && last < maxIntervals && last-first < float64(maxNear)) {
		return
	}
	size := int(last-first) + 1
	n.histogram, n.first, n.buckets = h, first, slices.Grow(n.buckets, size)[:size]
	for i := range n.buckets {
		n.buckets[i] = none
	}
}

// walkNear walks rows with one number at most, which are all in group 0.
func (b *buckets) walkNear(w *work, p pairs) (err error) {
	n, c := &b.near, b.source.column
	b.ords, b.places = c.EachNumber(b.ords[:0], b.places[:0], p.rows)
	b.values = c.NumbersAt(b.values[:0], b.ords)
	for i := range b.values {
		at := int(n.interval(b.values[i].Float) - n.first)
		if uint(at) >= uint(len(n.buckets)) { // the numbers of a forged segment need not ascend
			continue
		}
		if n.buckets[at] == none {
			k, _, err := n.number(w, b.values[i])
			if err != nil {
				return err
			}
			id, err := b.place(w, k)
			if err != nil {
				return err
			}
			if n.buckets[at], err = b.bucket(w, 0, id); err != nil {
				return err
			}
		}
		to := n.buckets[at]
		b.counts[to]++
		if len(b.nested) > 0 {
			b.out.rows, b.out.groups = append(b.out.rows, p.rows[b.places[i]]), append(b.out.groups, to)
		}
	}
	return nil
}

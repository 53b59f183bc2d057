package aggregate

import "svc/segment"

// near are the buckets of a histogram in a segment whose numbers are in few intervals: each is found by the number of its interval.
type near struct {
	histogram
	first   float64  // interval
	buckets []uint32 // by interval from first on: the bucket in group 0, or none
	opened  bool     // for the segment
}

// maxNear is the largest number of intervals for which near is used. (A variable, so that tests can lower it.)
var maxNear = 1 << 12

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
	if !(first > -maxIntervals && first <= last && last < maxIntervals && last-first < float64(maxNear)) {
		return nil
	}
	size := int(last-first) + 1
	if more := size - cap(n.buckets); more > 0 {
		if err := w.hold(4 * more); err != nil {
			return err
		}
		n.buckets = make([]uint32, size)
	}
	n.histogram, n.first, n.buckets = h, first, n.buckets[:size]
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

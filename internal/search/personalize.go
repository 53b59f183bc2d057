package search

import (
	"bytes"
	"time"

	"svc/internal/budget"
	"svc/internal/turns"
)

// Reorder returns the order of the hits of a page, each as it is sent, that suits the user: by their indexes, some of which may be
// left out. nil keeps the order. deadline is that of the search; zero: none.
type Reorder func(deadline time.Time, hits [][]byte) ([]int, error)

// hitSpans are the places of hits in an answer.
type hitSpans struct {
	begin  int // of the first one
	ends   []int
	pinned []int // positions of the hits that do not move, ascending
}

// apply reorders the hits, with commas between them at the end of dst, as f says, and meanwhile releases the turn. f does not get
// pinned hits. They keep their positions, or come last if f drops too many hits before them.
func (h *hitSpans) apply(t turns.Turn, dst []byte, f Reorder, deadline time.Time) ([]byte, error) {
	all, release, err := h.copies(t.Account(), dst)
	if err != nil {
		return nil, err
	}
	defer release()
	var hits [][]byte
	var pins []pinnedHit[[]byte]
	for i, hit := range all {
		if len(pins) < len(h.pinned) && h.pinned[len(pins)] == i {
			pins = append(pins, pinnedHit[[]byte]{i, hit})
		} else {
			hits = append(hits, hit)
		}
	}
	if len(hits) == 0 {
		return dst, nil
	}
	t.Pause()
	defer t.Resume()
	order, err := f(deadline, hits)
	if order == nil || err != nil {
		return dst, err
	}
	next := func() ([]byte, bool) {
		if len(order) == 0 {
			return nil, false
		}
		n := order[0]
		order = order[1:]
		return hits[n], true
	}
	dst = dst[:h.begin]
	for i, hit := range weave(pins, next, 0, len(h.ends)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, hit...)
	}
	return dst, nil
}

// copies returns copies of the hits, which are charged until release is called.
func (h *hitSpans) copies(account *budget.Account, dst []byte) (hits [][]byte, release func(), err error) {
	size := int64(len(dst) - h.begin)
	if err := account.Hold(size); err != nil {
		return nil, nil, err
	}
	hits = make([][]byte, len(h.ends))
	begin := h.begin
	for i, end := range h.ends {
		hits[i] = bytes.Clone(dst[begin:end])
		begin = end + 1
	}
	return hits, func() { _ = account.Hold(-size) }, nil // giving back never fails
}

package search

import (
	"time"

	"svc/internal/turns"
)

// Reorder says in which order the hits of a page, each as it is sent, suit who asks: by their indexes, of which some may be
// left out. nil stands for the order they have. deadline is that of the search; zero: there is none.
type Reorder func(deadline time.Time, hits [][]byte) ([]int, error)

// hitSpans are the places of hits in an answer.
type hitSpans struct {
	begin int // of the first one
	ends  []int
}

// apply puts the hits, with commas between them at the end of dst, into the order that f gives them, while others may work.
func (h *hitSpans) apply(t turns.Turn, dst []byte, f Reorder, deadline time.Time) ([]byte, error) {
	if len(h.ends) == 0 {
		return dst, nil
	}
	hits := make([][]byte, len(h.ends))
	begin := h.begin
	for i, end := range h.ends {
		hits[i] = append([]byte(nil), dst[begin:end]...)
		begin = end + 1
	}
	t.Pause()
	defer t.Resume()
	order, err := f(deadline, hits)
	if order == nil || err != nil {
		return dst, err
	}
	dst = dst[:h.begin]
	for i, n := range order {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, hits[n]...)
	}
	return dst, nil
}

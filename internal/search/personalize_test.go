package search

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"svc/internal/budget"
	"svc/internal/turns"
)

// TestCopiesOfHitsAreCharged reorders hits with enough memory for their copies, and with too little.
func TestCopiesOfHitsAreCharged(t *testing.T) {
	const head, answer = `{"hits":[`, `{"id":1},{"id":2},{"id":3}`
	for _, short := range []int64{0, 1} {
		b := budget.New(2*int64(len(answer))/3+1-short, nil) // small requests may take half as much again
		turn := turns.Of(context.WithValue(t.Context(), budget.Key, b.Open(1<<20)))
		spans := hitSpans{begin: len(head), ends: []int{len(head) + 8, len(head) + 17, len(head) + 26}, pinned: []int{1}}
		asked := false
		got, err := spans.apply(turn, []byte(head+answer), func(_ time.Time, hits [][]byte) ([]int, error) {
			asked = true
			if b.Used() != int64(len(answer)) || !slices.EqualFunc(hits, []string{`{"id":1}`, `{"id":3}`}, func(a []byte, b string) bool { return string(a) == b }) {
				t.Errorf("%d bytes are charged for %s", b.Used(), hits)
			}
			return []int{1, 0}, nil
		}, time.Time{})
		switch {
		case b.Used() != 0:
			t.Errorf("%d bytes stay charged", b.Used())
		case short > 0 && (!errors.Is(err, budget.ErrFull) || asked):
			t.Errorf("without memory: %s, %v", got, err)
		case short == 0 && (err != nil || string(got) != head+`{"id":3},{"id":2},{"id":1}`):
			t.Errorf("%s, %v", got, err)
		}
	}
}

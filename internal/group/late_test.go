package group

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// lateSource answers that there is nothing new, after some time.
type lateSource struct {
	source
	takes time.Duration
}

func (s *lateSource) log(_ context.Context, after Position, _ time.Duration) (*Batch, error) {
	time.Sleep(s.takes)
	return &Batch{Run: Position{after.Term, after.Run, after.Index + 1}, End: after.Index}, nil
}

// TestLateAnswersAreNotFresh has the writer answer at once, after the wait that it was asked for, and through a partition: that answer
// was made at an unknown time since the request.
func TestLateAnswersAreNotFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lateSource{}
		r := &Reader{source: s, pos: Position{1, 1, 7}}
		r.prog.state = StateFollows
		for _, x := range []struct{ takes, want time.Duration }{{0, 0}, {pollTime, 0}, {time.Minute, time.Minute}, {pollTime / 2, 0}} {
			s.takes = x.takes
			if err := r.step(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if got, known := r.Staleness(); got != x.want || !known {
				t.Errorf("after an answer that took %v the staleness is %v, known %v; want %v", x.takes, got, known, x.want)
			}
		}
	})
}

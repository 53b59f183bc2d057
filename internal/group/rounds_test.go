package group

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

// TestRoundsAreShared checks that concurrent calls share rounds, and that no answer is older than its call.
func TestRoundsAreShared(t *testing.T) {
	const callers, calls = 8, 200
	var now, asked atomic.Uint64
	s := newRounds()
	ask := func(context.Context) (Position, error) {
		asked.Add(1)
		return Position{Index: now.Load()}, nil
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				least := now.Add(1)
				at, err := s.join(t.Context(), ask)
				if err != nil || at.Index < least {
					t.Errorf("%v, %v: want at least %d", at, err, least)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d questions for %d calls", asked.Load(), callers*calls)

	// All calls that arrive during a round share the next one.
	started, end := make(chan struct{}), make(chan struct{})
	asked.Store(0)
	slow := func(context.Context) (Position, error) {
		if asked.Add(1) == 1 {
			close(started)
			<-end
		}
		return Position{}, nil
	}
	waiting := waitingContext{t.Context(), new(atomic.Int64)}
	join := func() {
		if _, err := s.join(waiting, slow); err != nil {
			t.Error(err)
		}
	}
	all.Go(join)
	<-started
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.join(late, slow); err != errNoLeader {
		t.Errorf("a call that is cancelled: %v", err)
	}
	for range callers {
		all.Go(join)
	}
	within(t, "all wait", func() bool { return waiting.n.Load() == callers+1 })
	close(end)
	all.Wait()
	if n := asked.Load(); n != 2 {
		t.Errorf("%d questions", n)
	}
}

// TestAnAbandonedRoundIsRepeated cancels the call that asks for all others: one of them must ask again, and all get answers.
func TestAnAbandonedRoundIsRepeated(t *testing.T) {
	s := newRounds()
	s.turn <- struct{}{} // so that all share a round
	short, cancel := context.WithCancel(t.Context())
	waiting := waitingContext{t.Context(), new(atomic.Int64)}
	patient := func(context.Context) (Position, error) { return Position{Index: 1}, nil }
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if at, err := s.join(waiting, patient); err != nil || at.Index != 1 {
				t.Errorf("%v, %v", at, err)
			}
		})
	}
	within(t, "all wait", func() bool { return waiting.n.Load() == 4 })
	s.ask(short, s.next, func(ctx context.Context) (Position, error) {
		cancel()
		return Position{}, ctx.Err()
	})
	<-s.turn
	all.Wait()
}

// waitingContext counts the calls that wait for it to end.
type waitingContext struct {
	context.Context
	n *atomic.Int64
}

func (c waitingContext) Done() <-chan struct{} {
	c.n.Add(1)
	return c.Context.Done()
}

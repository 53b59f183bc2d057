package group

import (
	"context"
	"sync"
)

// rounds lets calls share the answers to a question. An answer must not be older than the call, so a call that arrives while a
// question is under way waits for the next one.
type rounds struct {
	turn chan struct{} // held by the caller that asks

	mu   sync.Mutex
	next *round // not started yet; nil: no caller waits for it
}

// round is one question.
type round struct {
	done chan struct{}
	at   Position // once done is closed
	err  error    // as above
	left bool     // as above: who asked gave up, so others ask again
}

func newRounds() *rounds { return &rounds{turn: make(chan struct{}, 1)} }

// join returns the answer of a question that begins after the call. One of those that wait for it calls ask with its context.
func (s *rounds) join(ctx context.Context, ask func(context.Context) (Position, error)) (Position, error) {
	for {
		s.mu.Lock()
		if s.next == nil {
			s.next = &round{done: make(chan struct{})}
		}
		r := s.next
		s.mu.Unlock()
		select {
		case <-r.done:
		case s.turn <- struct{}{}:
			s.ask(ctx, r, ask)
			<-s.turn
		case <-ctx.Done():
			return Position{}, errNoLeader
		}
		if !r.left || ctx.Err() != nil {
			return r.at, r.err
		}
	}
}

// ask runs a round, unless another call has already done so. The turn is held.
func (s *rounds) ask(ctx context.Context, r *round, ask func(context.Context) (Position, error)) {
	s.mu.Lock()
	begins := s.next == r
	if begins {
		s.next = nil
	}
	s.mu.Unlock()
	if begins {
		r.at, r.err = ask(ctx)
		r.left = r.err != nil && ctx.Err() != nil
		close(r.done)
	}
}

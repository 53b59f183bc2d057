package fastapi

import (
	"context"
	"time"

	"svc/internal/budget"
	"svc/internal/search"
	"svc/internal/turns"
)

const (
	// readAtOnce is the size in bytes up to which a remote's answer is parsed without a turn: that takes no longer than getting a
	// turn.
	readAtOnce = 256 << 10
	// readFor is how long an answer is parsed without a turn at most.
	readFor = time.Millisecond
)

// beside returns the limits for parsing a remote's answer of this many bytes, by a goroutine without a turn. The turn of the request
// is paused while it waits for all remotes. Large or long parsing gets a turn of its own in the lane of long work. The caller must
// call end.
func (s *Server) beside(ctx context.Context, bytes int) (reading *search.Reading, end func()) {
	own, _ := ctx.Value(turns.Key).(*turn) // shared with other goroutines: only its immutable fields are used
	began, account := time.Now(), budget.Of(ctx)
	var t *turn // nil until the parsing needs one
	enter := func() error {
		if t != nil || own == nil || bytes <= readAtOnce && time.Since(began) < readFor {
			return nil
		}
		t = (&turn{work: own.work, request: own.request, slots: own.slots}).charged()
		account = t.Account()
		t.enter()
		return t.Err()
	}
	reading = &search.Reading{
		Hold: func(n int64) error {
			if err := enter(); err != nil {
				return err
			}
			return account.Hold(n)
		},
		Yield: func() error {
			if err := enter(); err != nil {
				return err
			}
			if t != nil {
				if err := t.Yield(); err != nil {
					return err
				}
			}
			return ctx.Err()
		},
	}
	return reading, func() {
		if t != nil {
			t.slots.giveBack(t)
		}
	}
}

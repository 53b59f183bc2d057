// Package turns makes long work yield to other work. A turn is the right of one goroutine to work for a request. Code that does long
// work gets the turn from its context, once, and yields between steps:
//
//	t := turns.Of(ctx)
//	for _, step := range steps {
//		if err := t.Yield(); err != nil {
//			return err
//		}
//		…
//	}
//
// A turn belongs to the goroutine that got it and lasts as long as the call that it was passed to. A context does not: its Err never
// blocks, so it may go to other goroutines, which do not yield.
package turns

import (
	"context"

	"svc/internal/budget"
)

// Turn is the right of one goroutine to work for a request. Its methods must not be called with a lock held, by another goroutine, or
// after the end of the call that received the turn.
type Turn interface {
	// Yield lets others work if this goroutine has worked for long and others wait, and blocks until it may continue. The error says
	// why it must not: that of the context, or that there are too many others. It is cheap enough for steps of a microsecond.
	Yield() error

	// Pause lets others work while this goroutine waits for something else, until Resume. Meanwhile, Yield does not block.
	Pause()
	// Resume ends a Pause. It does not block.
	Resume()

	// Account returns the account of the request's bytes: waiting for memory through it releases the turn. nil has no limits. Other
	// goroutines use budget.Of instead.
	Account() *budget.Account
}

type key struct{}

// Key is the key under which a context has the turn of its goroutine.
var Key any = key{}

// Of returns the turn that ctx is or has. Without one, Yield returns the error of ctx and never blocks.
func Of(ctx context.Context) Turn {
	if t, ok := ctx.(Turn); ok {
		return t
	}
	t, _ := ctx.Value(Key).(Turn)
	if t == nil {
		return none{ctx}
	}
	return derived{t, ctx}
}

// none is the turn of work without a request.
type none struct{ ctx context.Context }

func (n none) Yield() error             { return n.ctx.Err() }
func (n none) Pause()                   {}
func (n none) Resume()                  {}
func (n none) Account() *budget.Account { return budget.Of(n.ctx) }

// derived is a turn whose work may end earlier, with a context derived from that of the turn.
type derived struct {
	Turn
	ctx context.Context
}

func (d derived) Yield() error {
	if err := d.Turn.Yield(); err != nil {
		return err
	}
	return d.ctx.Err()
}

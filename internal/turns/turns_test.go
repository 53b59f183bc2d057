package turns

import (
	"context"
	"errors"
	"testing"

	"svc/internal/budget"
)

// own is a context that is itself a turn.
type own struct {
	context.Context
	yields int
	err    error
}

func (o *own) Yield() error             { o.yields++; return o.err }
func (o *own) Pause()                   {}
func (o *own) Resume()                  {}
func (o *own) Account() *budget.Account { return nil }
func (o *own) Value(k any) any {
	if k == Key {
		return o
	}
	return o.Context.Value(k)
}

func TestOf(t *testing.T) {
	o := &own{Context: t.Context()}
	if Of(o) != Turn(o) {
		t.Error("a context that is a turn returns another one")
	}
	inner, cancel := context.WithCancel(o)
	of := Of(inner)
	if err := of.Yield(); err != nil || o.yields != 1 {
		t.Errorf("a context derived from a turn: %d yields, %v", o.yields, err)
	}
	cancel()
	if err := of.Yield(); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if o.err = errors.New("too many"); !errors.Is(of.Yield(), o.err) {
		t.Errorf("the turn has an error: %v", of.Yield())
	}
}

// TestWithoutATurn does work that no request waits for.
func TestWithoutATurn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	account := budget.New(100, nil).Open(100)
	of := Of(context.WithValue(ctx, budget.Key, account))
	of.Pause()
	of.Resume()
	if err := of.Yield(); err != nil || of.Account() != account {
		t.Errorf("yield: %v, account %p, want %p", err, of.Account(), account)
	}
	cancel()
	if err := of.Yield(); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

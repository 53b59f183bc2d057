package fastapi

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/budget"
)

// work is the context of a request. Most requests end long before their deadline. So Err compares times when it is called, and a
// timer and a channel are created only if Done is called.
type work struct {
	parent  context.Context // of the server, with the span of the request
	account *budget.Account
	began   time.Time
	most    time.Duration         // from then on
	ended   atomic.Pointer[error] // why it ended; nil: it has not

	waiting sync.Mutex
	waited  atomic.Pointer[waited] // nil: Done was not called
}

// waited is the same context, made by the standard library, for callers of Done.
type waited struct {
	context.Context
	cancel context.CancelFunc
}

// forEver is longer than any work takes.
const forEver = 100 * 365 * 24 * time.Hour

// begin sets the parent, the account, the start and the time limit.
func (w *work) begin(parent context.Context, account *budget.Account, now time.Time, most time.Duration) {
	w.parent, w.account, w.began, w.most = parent, account, now, most
}

// started reports whether begin was called.
func (w *work) started() bool { return w.parent != nil }

// cancel ends the work, unless it is over.
func (w *work) cancel() {
	if w.Err() == nil {
		w.over(&canceled)
	}
}

var canceled, tooLate = context.Canceled, context.DeadlineExceeded

func (w *work) over(err *error) {
	w.ended.CompareAndSwap(nil, err)
	if waited := w.waited.Load(); waited != nil {
		waited.cancel()
	}
}

func (w *work) Deadline() (time.Time, bool) { return w.began.Add(w.most), true }

// Err never blocks and never yields, so any goroutine may call it. It ends the work when its time is over.
func (w *work) Err() error {
	if err := w.noted(); err != nil {
		return err
	}
	if time.Since(w.began) >= w.most {
		w.over(&tooLate)
		return tooLate
	}
	return nil
}

// noted is Err without a look at the time.
func (w *work) noted() error {
	if err := w.ended.Load(); err != nil {
		return *err
	}
	return w.parent.Err()
}

func (w *work) Done() <-chan struct{} { return w.forWaiting().Done() }

// forWaiting returns the same context, made by the standard library.
func (w *work) forWaiting() context.Context {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	is := w.waited.Load()
	if is == nil {
		is = new(waited)
		is.Context, is.cancel = context.WithDeadline(w.parent, w.began.Add(w.most))
		w.waited.Store(is)
		if w.ended.Load() != nil {
			is.cancel()
		}
	}
	return is.Context
}

// Value returns the account of the request. It passes other keys to the context of waited if there is one: the standard library
// recognises it as its own, so contexts derived from this one need no goroutine to watch it.
func (w *work) Value(key any) any {
	if key == budget.Key {
		return w.account
	}
	if waited := w.waited.Load(); waited != nil {
		return waited.Value(key)
	}
	return w.parent.Value(key)
}

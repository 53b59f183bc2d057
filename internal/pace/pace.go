// Package pace lets background work yield to searches. The work runs at full speed while there are no searches. While there are, it
// runs in slices of a millisecond, each followed by a rest three times as long, up to 100 ms.
//
// Searches counts the running searches of a process. Background work gets its context from Beside and calls Yield often, at points
// where it holds no lock. Until a slice is over, Yield only reads the clock. All goroutines of one Worker share its slices and rest
// one after the other, so that their number does not change their share: about a quarter of a processor. Work that makes searches
// faster may get half of one: see Half.
//
// The rest is proportional to the slice, not fixed, because the next call of Yield may come late: after a long step,
// the work rests longer.
//
// Caveats:
//   - Work that a client waits for must not yield, or searches of others could delay that client without limit.
//   - Work that yields still makes progress: permanent searches slow it down fourfold or more, but do not stop it.
package pace

import (
	"context"
	"sync/atomic"
	"time"

	"svc/internal/monotonic"
)

const (
	// slice is how long work runs without a rest while there are searches. Most searches take longer.
	slice = time.Millisecond
	// restFactor is the usual ratio of a rest to the slice before it. It leaves a quarter of a processor to the work.
	restFactor = 3
	maxRest    = 100 * time.Millisecond
	// quiet is the time without searches after which work runs at full speed.
	quiet = 50 * time.Millisecond
	// lull is the time without a rest after which work no longer counts as yielding.
	lull = 5 * time.Second
)

// Searches counts running searches. The zero value is ready to use. Its methods may be called from several goroutines.
type Searches struct {
	running atomic.Int64
	last    atomic.Int64 // end of the last one, by monotonic.Nanos
	rested  atomic.Int64 // end of the last rest of work, by monotonic.Nanos; 0: never
	onYield atomic.Pointer[func()]
}

// Begin records the start of a search. The caller calls End afterwards.
func (s *Searches) Begin() { s.running.Add(1) }

// End records the end of a search.
func (s *Searches) End() { s.EndAt(time.Now()) }

// EndAt is End for callers that know the time.
func (s *Searches) EndAt(now time.Time) {
	s.last.Store(monotonic.Nanos(now))
	s.running.Add(-1)
}

// Going reports whether a search runs, or ended less than quiet ago.
func (s *Searches) Going() bool { return s.going(time.Now()) }

// Yielding reports whether work has rested for searches in the last lull.
func (s *Searches) Yielding() bool { return monotonic.Nanos(time.Now())-s.rested.Load() < int64(lull) }

// OnYield sets a function that is called whenever work starts to yield, before its first rest. It replaces the previous function.
func (s *Searches) OnYield(f func()) { s.onYield.Store(&f) }

// rest records that work rests until a time.
func (s *Searches) rest(until time.Time) {
	before := s.rested.Swap(monotonic.Nanos(until))
	if monotonic.Nanos(until)-before < int64(lull) {
		return
	}
	if f := s.onYield.Load(); f != nil {
		(*f)()
	}
}

func (s *Searches) going(now time.Time) bool {
	return s.running.Load() > 0 || monotonic.Nanos(now)-s.last.Load() < int64(quiet)
}

// Worker is background work that yields. Goroutines that share a Worker rest one after the other.
type Worker struct {
	searches *Searches
	rests    int           // ratio of a rest to the slice before it
	began    atomic.Int64  // start of the slice, by monotonic.Nanos
	resting  chan struct{} // one slot, held by the goroutine that rests; others wait for it, and then rest themselves
}

type key struct{}

// Beside returns a context for work that yields to searches.
func Beside(ctx context.Context, s *Searches) context.Context {
	return context.WithValue(ctx, key{}, newWorker(s, restFactor))
}

// Half returns a worker for work that makes searches faster once it is done: it keeps half of a processor while there are searches.
func Half(s *Searches) *Worker { return newWorker(s, 1) }

func newWorker(s *Searches, rests int) *Worker {
	w := &Worker{searches: s, rests: rests, resting: make(chan struct{}, 1)}
	w.began.Store(monotonic.Nanos(time.Now()))
	return w
}

// Of returns the worker of a context, or nil.
func Of(ctx context.Context) *Worker {
	w, _ := ctx.Value(key{}).(*Worker)
	return w
}

// Yield rests if the slice is over and there are searches, and returns how long it slept. Call it often, without locks that a search
// may need. A nil Worker never rests.
func (w *Worker) Yield() (slept time.Duration) {
	if w == nil {
		return 0
	}
	now := time.Now()
	began := w.began.Load()
	worked := monotonic.Nanos(now) - began
	if worked < int64(slice) {
		return 0
	}
	if !w.searches.going(now) {
		w.began.Store(monotonic.Nanos(now))
		return 0
	}
	w.resting <- struct{}{}
	pause := min(time.Duration(w.rests)*time.Duration(worked), maxRest)
	w.searches.rest(now.Add(pause))
	time.Sleep(pause)
	slept = time.Since(now)
	w.began.Store(monotonic.Nanos(now.Add(slept)))
	<-w.resting
	return slept
}

// Package pace has work in the background yield to searches: it runs at full speed while nobody searches, and in short slices with
// rests between them while somebody does.
package pace

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// slice is how long work goes on beside searches without a rest: less than most searches take.
	slice = time.Millisecond
	// restFactor is how many times longer than the slice before it a rest is. So a quarter of a processor is left to the work, which gets
	// done however long somebody searches.
	restFactor = 3
	maxRest    = 100 * time.Millisecond
	// quiet is for how long nobody has searched when work goes on at full speed.
	quiet = 50 * time.Millisecond
	// lull is after how long without a rest work that yields is over.
	lull = 5 * time.Second
)

// Searches knows whether somebody searches. The zero value is ready to use.
type Searches struct {
	running atomic.Int64
	last    atomic.Int64 // when the last one ended, as UnixNano
	rested  atomic.Int64 // when work last rested for them, as UnixNano; 0: never
	onYield atomic.Pointer[func()]
}

// Begin notes that a search begins. End follows.
func (s *Searches) Begin() { s.running.Add(1) }

// End notes that a search has ended.
func (s *Searches) End() { s.EndAt(time.Now()) }

// EndAt is End where it is known what time it is.
func (s *Searches) EndAt(now time.Time) {
	s.last.Store(now.UnixNano())
	s.running.Add(-1)
}

// Going reports whether somebody searches, or did a moment ago.
func (s *Searches) Going() bool { return s.going(time.Now()) }

// Yielding reports whether work rests for searches now and then.
func (s *Searches) Yielding() bool { return time.Now().UnixNano()-s.rested.Load() < int64(lull) }

// OnYield has f called whenever work begins to yield, before its first rest.
func (s *Searches) OnYield(f func()) { s.onYield.Store(&f) }

// rest notes that work rests until a time.
func (s *Searches) rest(until time.Time) {
	before := s.rested.Swap(until.UnixNano())
	if until.UnixNano()-before < int64(lull) {
		return
	}
	if f := s.onYield.Load(); f != nil {
		(*f)()
	}
}

func (s *Searches) going(now time.Time) bool {
	return s.running.Load() > 0 || now.UnixNano()-s.last.Load() < int64(quiet)
}

// Worker is work that yields. Goroutines that share one rest one after the other: together they get no more than a third of a processor,
// however many there are.
type Worker struct {
	searches *Searches
	began    atomic.Int64  // the slice, as UnixNano
	resting  chan struct{} // one slot, taken by the goroutine that rests; others wait for it with their own rest still to come
}

type key struct{}

// Beside returns a context of work that yields to searches.
func Beside(ctx context.Context, s *Searches) context.Context {
	w := &Worker{searches: s, resting: make(chan struct{}, 1)}
	w.began.Store(time.Now().UnixNano())
	return context.WithValue(ctx, key{}, w)
}

// Of returns the worker that a context is of, nil for none.
func Of(ctx context.Context) *Worker {
	w, _ := ctx.Value(key{}).(*Worker)
	return w
}

// Yield rests if the work has gone on for a slice beside searches, and returns for how long. It is called often, with no lock held that a
// search may want, and not at all by work that is paid for by somebody who waits. A nil Worker never rests.
func (w *Worker) Yield() (slept time.Duration) {
	if w == nil {
		return 0
	}
	now := time.Now()
	began := w.began.Load()
	worked := now.UnixNano() - began
	if worked < int64(slice) {
		return 0
	}
	if !w.searches.going(now) {
		w.began.Store(now.UnixNano())
		return 0
	}
	w.resting <- struct{}{}
	pause := min(restFactor*time.Duration(worked), maxRest)
	w.searches.rest(now.Add(pause))
	time.Sleep(pause)
	slept = time.Since(now)
	w.began.Store(now.Add(slept).UnixNano())
	<-w.resting
	return slept
}

package fastapi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/search"
)

// slots bounds how many searches run at once. Others wait in a bag: a free
// slot goes to a random one of them, and when the bag is full a random one is
// refused in favour of the newcomer. So under overload everyone's chance is
// equal, and those that are served did not wait in vain (LIFO and FIFO both
// starve someone).
type slots struct {
	limit     int           // of searches that run at once
	size      int           // of the bag
	dropAfter time.Duration // who waited longer is refused when his turn comes

	mu      sync.Mutex
	free    int
	waiting []*waiter
}

type waiter struct {
	since time.Time
	turn  chan bool // true: the slot is yours; false: refused
}

func newSlots(running, waiting int, dropAfter time.Duration) *slots {
	return &slots{limit: running, size: waiting, dropAfter: dropAfter, free: running}
}

// acquire takes a slot, which release gives back. It may wait, and it may be refused.
func (s *slots) acquire() error {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	if s.size == 0 {
		s.mu.Unlock()
		return tooManySearches()
	}
	if len(s.waiting) == s.size {
		s.take().turn <- false
	}
	w := &waiter{time.Now(), make(chan bool, 1)}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	if !<-w.turn {
		return tooManySearches()
	}
	return nil
}

// turn waits for the turn of a search. limited ends when the search has taken too long, and when the server can't wait
// for it any more. waited is how long this took. The search calls end when it is done.
func (s *Server) turn(ctx *fasthttp.RequestCtx) (limited context.Context, waited time.Duration, end func(), err error) {
	arrived := time.Now()
	err = s.slots.acquire()
	waited = time.Since(arrived)
	ctx.SetUserValue(idleKey{}, waited)
	if err != nil {
		return nil, waited, nil, err
	}
	limited, cancel := context.WithTimeout(s.searching, maxSearchTime)
	return limited, waited, func() { cancel(); s.slots.release() }, nil
}

// idleKey is the place of the time that a request waited for its turn among its values.
type idleKey struct{}

// tryAcquire takes a slot if one is free.
func (s *slots) tryAcquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free <= 0 {
		return false
	}
	s.free--
	return true
}

// spread calls run for 0…n−1 and returns when all calls have. The caller holds a slot; where more are free, they
// are borrowed for goroutines that share the work, at most as many as there are processors, not counting those that wait: while
// a call has given its slot back with Pause, the next one begins. After an error no
// further call begins; of several errors the one of the lowest number is returned, which is that of calls one by one.
func (s *slots) spread(n int, run func(i int, slot search.Slot) error) error {
	var (
		next   atomic.Int64
		failed atomic.Bool
		errs   = make([]error, n)
		group  sync.WaitGroup
		slot   sharedSlot
	)
	work := func() {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if errs[i] = guarded(func() error { return run(i, slot) }); errs[i] != nil {
				failed.Store(true)
			}
		}
	}
	slot = sharedSlot{s, func() bool {
		if failed.Load() || int(next.Load()) >= n || !s.tryAcquire() {
			return false
		}
		group.Go(func() {
			defer s.release()
			work()
		})
		return true
	}}
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		if !slot.more() {
			break
		}
	}
	work()
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sharedSlot is the slot of a call of spread.
type sharedSlot struct {
	*slots
	more func() bool // begins another goroutine if there is work for it and a slot is free
}

// Pause gives the slot back, to those who wait for one or else to the next call.
func (s sharedSlot) Pause() {
	s.slots.Pause()
	s.more()
}

// guarded turns a panic, and a fault on mapped memory, into an error: in a goroutine of its own it would end the process.
func guarded(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if damage := mapped.Damage(p); damage != nil {
				err = damage
				return
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	mapped.Watch()
	return run()
}

// Pause gives the slot of a search back that will go on: it waits for something else.
func (s *slots) Pause() { s.release() }

// Resume takes a slot for a search that goes on. It does not wait: for a while, more searches may run than there are slots.
func (s *slots) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free--
}

// release gives a slot back.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free < 0 {
		s.free++
		return
	}
	for len(s.waiting) > 0 {
		w := s.take()
		fresh := time.Since(w.since) <= s.dropAfter
		w.turn <- fresh
		if fresh {
			return // the slot changed hands
		}
	}
	s.free++
}

// now returns how many searches may wait, how many run and how many wait.
func (s *slots) now() (size, running, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.limit - s.free, len(s.waiting)
}

// take removes a random waiter from the bag. The lock is held.
func (s *slots) take() *waiter {
	i := rand.IntN(len(s.waiting))
	last := len(s.waiting) - 1
	w := s.waiting[i]
	s.waiting[i] = s.waiting[last]
	s.waiting[last] = nil
	s.waiting = s.waiting[:last]
	return w
}

func tooManySearches() error {
	return apierr.New("too_many_search_requests", "Too many searches wait for their turn. Try again in a few seconds.")
}

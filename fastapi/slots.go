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

	"svc/internal/apierr"
	"svc/internal/mapped"
)

// slots limits how many searches run at once. Other searches wait in a bag. While few wait, a free slot goes to the one that has
// waited longest. Once many wait, it goes to a random one, and if the bag is full a random one is refused in favour of the newcomer.
// So under overload all have the same chance, and those that are served did not wait in vain. With many waiting, LIFO would starve
// the first, and FIFO would serve each one just before it gives up. Large requests have a bag of their own: it is served when no
// small request waits, or after several small ones, and it is refused first.
type slots struct {
	limit     int           // of searches that run at once
	size      int           // of the bag
	dropAfter time.Duration // a search that waited longer is refused when its turn comes

	mu      sync.Mutex
	free    int
	waiting []*waiter // for small requests
	large   []*waiter
	waited  uint64 // how many have waited so far
	passed  int    // times that a small request was preferred to a large one
	moves   uint64 // how often work began, ended or changed hands
	lane    lane
}

type waiter struct {
	number uint64 // in the order in which they came
	since  time.Time
	turn   chan bool // true: the slot is granted; false: refused
}

func newSlots(running, waiting int, dropAfter time.Duration) *slots {
	return &slots{limit: running, size: waiting, dropAfter: dropAfter, free: running, lane: lane{processors: runtime.GOMAXPROCS(0)}}
}

// acquire takes a slot, which release returns. It may wait, and it may be refused. large marks large requests.
func (s *slots) acquire(large bool) error {
	if s.take(large) {
		return nil
	}
	return s.wait(large)
}

// take takes a slot if there is one.
func (s *slots) take(large bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeFree(large)
}

func (s *slots) takeFree(large bool) bool {
	if s.free > 0 && (!large || s.lane.open()) {
		s.free--
		s.moves++
		return true
	}
	return false
}

// wait waits for a slot.
func (s *slots) wait(large bool) error {
	s.mu.Lock()
	if s.takeFree(large) {
		s.mu.Unlock()
		return nil
	}
	if s.size == 0 {
		s.mu.Unlock()
		return tooManySearches()
	}
	if len(s.waiting)+len(s.large) == s.size {
		s.refuse()
	}
	s.waited++
	w := &waiter{s.waited, time.Now(), make(chan bool, 1)}
	if large {
		s.large = append(s.large, w)
	} else {
		s.waiting = append(s.waiting, w)
	}
	s.mu.Unlock()
	if !<-w.turn {
		return tooManySearches()
	}
	disturbed()
	return nil
}

// tryAcquire takes a slot if one is free.
func (s *slots) tryAcquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free <= 0 {
		return false
	}
	s.free--
	s.moves++
	return true
}

// spread calls run for 0…n−1 and returns when all calls have returned. The caller holds a slot. spread borrows free slots for
// goroutines that share the work, at most one per processor, not counting those that wait: while a call has released its slot with
// Pause, the next one starts. Each call gets the turn of its goroutine as context and must not use it afterwards. After an error no
// further call starts. Of several errors, spread returns the one with the lowest number, as sequential calls would.
func (s *slots) spread(own *turn, n int, run func(ctx context.Context, i int) error) error {
	var (
		next   atomic.Int64
		failed atomic.Bool
		errs   = make([]error, n)
		group  sync.WaitGroup
		shared atomic.Bool // others work, too
		more   func() bool // begins another goroutine if there is work for it and a slot is free
		spent  = own.spent
	)
	work := func(t *turn) {
		for !failed.Load() {
			disturbed()
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			err := t.Yield()
			if err == nil {
				err = guarded(func() error { return run(t, i) })
			}
			if errs[i] = err; err != nil {
				failed.Store(true)
			}
		}
	}
	more = func() bool {
		if failed.Load() || int(next.Load()) >= n || !s.tryAcquire() {
			return false
		}
		shared.Store(true)
		group.Go(func() {
			t := own.beside(spent)
			t.more = more
			defer s.giveBack(t)
			work(t)
		})
		return true
	}
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		if !more() {
			break
		}
	}
	own.more = more
	work(own)
	own.more = nil
	if shared.Load() {
		// Calls that became long meanwhile may wait for the lane, which own may hold. So own holds nothing while it waits for them.
		own.Pause()
		group.Wait()
		own.Resume()
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// guarded converts a panic, and a fault on mapped memory, into an error, because in a goroutine of its own it would end the process.
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

// resume takes a slot for a search that continues. It does not wait, so for a while more searches may run than there are slots.
func (s *slots) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free--
	s.moves++
}

// release gives a slot back.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeSlot()
}

// freeSlot gives a slot back. The lock is held.
func (s *slots) freeSlot() {
	s.free++
	s.moves++
	s.handOver()
}

// handOver gives free slots to waiting searches. The lock is held.
func (s *slots) handOver() {
	for s.free > 0 {
		w := s.next()
		if w == nil {
			return
		}
		fresh := time.Since(w.since) <= s.dropAfter
		if fresh {
			s.free--
		}
		w.turn <- fresh
	}
}

// now returns how many searches may wait, how many run and how many wait.
func (s *slots) now() (size, running, waiting int) {
	_, running, waiting = s.progress()
	return s.size, running, waiting
}

// progress returns a number that grows as searches make progress, how many run and how many wait.
func (s *slots) progress() (moves uint64, running, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moves, s.limit - s.free + s.lane.running, len(s.waiting) + len(s.large) + len(s.lane.waiting)
}

// largeShare is how many small requests are preferred to a large one.
const largeShare = 16

// next removes the waiter that is served next, or returns nil. The lock is held.
func (s *slots) next() *waiter {
	switch {
	case len(s.large) > 0 && s.lane.open() && (len(s.waiting) == 0 || s.passed >= largeShare):
		s.passed = 0
		return s.pick(&s.large)
	case len(s.waiting) > 0:
		s.passed++
		return s.pick(&s.waiting)
	}
	return nil
}

// inOrder is the number of waiting searches, per slot, up to which a bag is served first come, first served. If many clients wait all
// the time, this keeps the longest wait near the mean one: with random choices, one in a hundred waits more than four times as long.
const inOrder = 16

// pick removes the waiter of a bag that is served next.
func (s *slots) pick(bag *[]*waiter) *waiter {
	if len(*bag) > inOrder*s.limit {
		return random(bag)
	}
	oldest := 0
	for i, w := range *bag {
		if w.number < (*bag)[oldest].number {
			oldest = i
		}
	}
	return remove(bag, oldest)
}

// refuse makes room for another waiter. The lock is held.
func (s *slots) refuse() {
	bag := &s.waiting
	if len(s.large) > 0 {
		bag = &s.large
	}
	random(bag).turn <- false
}

// random removes a random waiter from a bag.
func random(bag *[]*waiter) *waiter {
	return remove(bag, rand.IntN(len(*bag)))
}

// remove removes a waiter from a bag.
func remove(bag *[]*waiter, i int) *waiter {
	w, last := (*bag)[i], len(*bag)-1
	(*bag)[i] = (*bag)[last]
	(*bag)[last] = nil
	*bag = (*bag)[:last]
	return w
}

func tooManySearches() error {
	return apierr.New("too_many_search_requests", "Too many searches are waiting. Try again in a few seconds.")
}

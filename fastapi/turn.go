package fastapi

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/budget"
	"svc/internal/invariant"
	"svc/internal/socket"
	"svc/internal/turns"
)

// slice is how long a search works before it yields to waiting searches, and checks whether its client is still connected. (A
// variable, so that tests can lower it.)
var slice = 20 * time.Millisecond

// disturb is called, with no lock held, wherever work starts, ends and changes hands, so that tests can delay it there. nil: not set.
var disturb func()

func disturbed() {
	if disturb != nil {
		disturb()
	}
}

// turn is the right of one goroutine to work for a request: a turns.Turn and the context of that work. A search starts with a slot.
// After one slice of time it counts as long: it releases its slot and continues in the lane of long searches, where searches take
// turns, slice by slice. So a short search never waits for a long one. A turn changes hands in Yield, which is never called with a
// lock held. The lane prefers the search that has worked least, unless another has waited for many times the difference.
type turn struct {
	*work   // the context
	request *request
	slots   *slots
	holds   hold
	since   time.Time     // when the slice began
	spent   time.Duration // on slices before
	account budget.Account
	more    func() bool // of spread: starts another call; nil: none

	looked time.Duration // relative to since: when the clock was last read
	unseen int           // calls of Yield until the next read
	stride int           // what unseen begins with

	busy atomic.Bool // a method is running; only with invariants enabled
}

var _ turns.Turn = (*turn)(nil)

const (
	// maxStride is how many calls of Yield pass at most without reading the clock. So if frequent calls suddenly become rare, the end
	// of a slice or a deadline is noticed up to eight calls late, otherwise within lookEvery.
	maxStride = 7
	// lookEvery is the approximate time between two reads of the clock. A read takes as long as a small step of a search.
	lookEvery = 50 * time.Microsecond
	// notShort is the time from which on a slice may be long enough to be interrupted.
	notShort = time.Millisecond
)

// wakeMonitor is a variable so that tests can count.
var wakeMonitor = socket.WakeMonitor

// within reports whether the slice continues. Only a few of many calls look at the time: the work between two calls may take less
// than that.
func (t *turn) within() bool {
	if t.holds == paused {
		return false
	}
	now := time.Since(t.since)
	if now >= notShort && (t.looked < notShort || t.looked > now) {
		wakeMonitor()
	}
	switch gap := now - t.looked; {
	case gap < 0 || gap > 4*lookEvery: // below 0: another slice has started
		t.stride = 0
	case gap > lookEvery:
		t.stride /= 2
	default:
		t.stride = min(2*t.stride+1, maxStride)
	}
	t.looked = now
	return now < slice
}

// hold is what a turn has.
type hold uint8

const (
	nothing hold = iota
	aSlot
	theLane
	paused // nothing, while the work waits for something else; not in the queue
	over   // nothing: the turn was released for good
)

// Yield implements turns.Turn.
func (t *turn) Yield() error {
	if invariant.Enabled {
		defer t.exclusive()()
	}
	if err := t.noted(); err != nil {
		return err
	}
	if t.unseen > 0 && t.holds != paused {
		t.unseen--
		return nil
	}
	if t.holds == over {
		t.usedAfterwards()
		return t.Err()
	}
	// Within a slice the deadline is not checked: a monotonic time is cheaper than one with the time of day.
	if t.within() {
		t.unseen = t.stride
		return nil
	}
	if err := t.Err(); err != nil || t.holds == paused {
		return err
	}
	t.yield(time.Now())
	return t.Err()
}

// exclusive checks that only one goroutine at a time uses the turn. The returned function ends the use.
func (t *turn) exclusive() (end func()) {
	if !t.busy.CompareAndSwap(false, true) {
		invariant.Fail("two goroutines use one turn")
	}
	return func() { t.busy.Store(false) }
}

// usedAfterwards is called when a turn is used after its end, which is a bug of the caller. The turn then takes no place in the lane,
// because it would never be released.
func (t *turn) usedAfterwards() {
	if invariant.Enabled {
		invariant.Fail("a turn is used after it was given back")
	}
}

// Value returns the turn. Other goroutines share the account of the request: see Account.
func (t *turn) Value(key any) any {
	if key == turns.Key {
		return t
	}
	return t.work.Value(key)
}

// Account implements turns.Turn.
func (t *turn) Account() *budget.Account {
	if t.work.account == nil {
		return nil
	}
	return &t.account
}

// charged gives the turn its account.
func (t *turn) charged() *turn {
	t.work.account.For(&t.account, t)
	return t
}

// yield lets others work if they wait, and returns when it is this turn's again.
func (t *turn) yield(now time.Time) {
	if t.holds == over {
		t.usedAfterwards()
		return
	}
	if !t.since.IsZero() {
		t.spent += now.Sub(t.since)
	}
	disturbed()
	if w := t.slots.lineUp(t, now); w != nil {
		disturbed()
		select {
		case <-w.turn:
			disturbed()
		case <-t.Done():
			t.slots.leave(t, w)
		}
	}
	if t.request != nil && t.request.work.started() && t.request.gone() {
		t.request.work.cancel()
	}
	t.since = time.Now()
}

// enter queues for the lane, for work that does not begin with a slot, and yields when its slice is over.
func (t *turn) enter() {
	if invariant.Enabled {
		defer t.exclusive()()
	}
	if now := time.Now(); t.holds == nothing || t.holds == paused || now.Sub(t.since) >= slice {
		t.yield(now)
	}
}

// Pause implements turns.Turn.
func (t *turn) Pause() {
	if invariant.Enabled {
		defer t.exclusive()()
	}
	if t.holds == over {
		t.usedAfterwards()
		return
	}
	disturbed()
	t.slots.pause(t, time.Now())
	if t.more != nil {
		t.more()
	}
}

// Resume implements turns.Turn. For a while, more searches may run than there are slots.
func (t *turn) Resume() {
	if invariant.Enabled {
		defer t.exclusive()()
	}
	if t.holds == over {
		t.usedAfterwards()
		return
	}
	t.resume()
}

func (t *turn) resume() {
	disturbed()
	t.slots.resume()
	t.holds, t.since = aSlot, time.Now()
}

// Idle releases what the turn holds, calls wait, and takes it again. The wait does not count as work.
func (t *turn) Idle(wait func()) {
	if invariant.Enabled {
		defer t.exclusive()()
	}
	had, now := t.holds, time.Now()
	if had == nothing || had == paused || had == over {
		wait()
		return
	}
	since, worked := t.since, time.Duration(0)
	if !since.IsZero() { // requests for many hits have used up their slice from the start
		worked = now.Sub(since)
	}
	t.slots.putDown(t, now)
	t.holds = paused
	wait()
	if had == aSlot {
		if t.resume(); since.IsZero() {
			t.since = since
		} else {
			t.since = t.since.Add(-worked)
		}
		return
	}
	t.spent += worked
	t.holds, t.since = nothing, time.Time{}
	t.yield(time.Now())
}

// beside returns a turn for another goroutine of the same request, which has taken a slot. spent is how long the request has worked:
// long work continues in the lane and does not get a slice among the short searches for each goroutine.
func (t *turn) beside(spent time.Duration) *turn {
	b := (&turn{work: t.work, request: t.request, slots: t.slots, holds: aSlot, since: time.Now()}).charged()
	if spent >= slice {
		b.since, b.spent = time.Time{}, spent
	}
	return b
}

// spread shares work with goroutines that have turns of their own; see slots.spread.
func (t *turn) spread(n int, run func(ctx context.Context, i int) error) error {
	return t.slots.spread(t, n, run)
}

// lane is where long searches continue.
type lane struct {
	processors int
	running    int
	waiting    []*laneWaiter
	quick      time.Time // when a search that never became long last ended
}

// laneWaiter is a turn that waits for the lane.
type laneWaiter struct {
	turn chan struct{} // closed when it comes
	due  time.Time     // the search with the earliest one continues
}

const (
	// laneReady is how many may wait for the lane when a large request is admitted.
	laneReady = 4
	// laneSize is how many long searches may be in progress. Beyond that, a search that becomes long is refused.
	laneSize = 128
	// quickTime is how long after the end of a short search a processor is kept free for the next one.
	quickTime = 250 * time.Millisecond
	// overtaken limits how long a search can be overtaken by newer ones that have not worked yet, as a multiple of its work. Without
	// it, new searches that end within one slice would keep it waiting as long as they keep arriving.
	overtaken = 10
)

// width returns how many long searches may run: one processor is kept free while there are short ones.
func (l *lane) width(now time.Time) int {
	if now.Sub(l.quick) > quickTime {
		return l.processors
	}
	return max(l.processors-1, 1)
}

// open reports whether requests that go directly to the lane may be admitted.
func (l *lane) open() bool { return len(l.waiting) < laneReady }

// quiet reports whether no short search has ended for a while.
func (s *slots) quiet(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.lane.quick) > quickTime
}

// lineUp releases what the turn holds and gives it the lane, or returns a waiter that signals when it has the lane.
func (s *slots) lineUp(t *turn, now time.Time) (wait *laneWaiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.lane
	switch t.holds {
	case theLane:
		if l.running <= l.width(now) && len(l.waiting) == 0 {
			return nil
		}
		l.running--
	case aSlot:
		if len(l.waiting) >= laneSize {
			refused := tooManySearches()
			t.over(&refused) // all of the work
			return nil
		}
		s.freeSlot()
	}
	t.holds = theLane
	if len(l.waiting) == 0 && l.running < l.width(now) {
		l.running++
		s.moves++
		return nil
	}
	wait = &laneWaiter{make(chan struct{}), now.Add(overtaken * t.spent)}
	l.waiting = append(l.waiting, wait)
	s.admit(now)
	return wait
}

// admit lets waiting searches continue, up to the width of the lane. The lock is held.
func (s *slots) admit(now time.Time) {
	l := &s.lane
	for len(l.waiting) > 0 && l.running < l.width(now) {
		first := 0
		for i, w := range l.waiting {
			if w.due.Before(l.waiting[first].due) {
				first = i
			}
		}
		close(l.waiting[first].turn)
		l.waiting = slices.Delete(l.waiting, first, first+1)
		l.running++
		s.moves++
	}
	s.handOver() // the lane may have room again
}

// leave removes a turn from the waiting ones. It then holds nothing.
func (s *slots) leave(t *turn, wait *laneWaiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.holds = nothing
	if i := slices.Index(s.lane.waiting, wait); i >= 0 {
		s.lane.waiting = slices.Delete(s.lane.waiting, i, i+1)
	} else {
		s.lane.running-- // it was admitted at the same moment
	}
	s.admit(time.Now())
}

// giveBack gives back what a turn holds, which ends it.
func (s *slots) giveBack(t *turn) { s.giveBackAt(t, time.Now()) }

// giveBackAt ends a turn and passes its slot on. It records when a short search ended.
func (s *slots) giveBackAt(t *turn, now time.Time) {
	disturbed()
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.holds == aSlot {
		s.lane.quick = now
	}
	s.takeBack(t, now)
	t.holds, t.unseen = over, 0
}

// pause gives back what a turn holds until it resumes.
func (s *slots) pause(t *turn, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.holds == aSlot {
		s.lane.quick = now
	}
	s.takeBack(t, now)
	t.holds, t.unseen = paused, 0
}

// putDown releases what a turn holds that continues later.
func (s *slots) putDown(t *turn, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeBack(t, now)
}

// takeBack frees what a turn holds. The lock is held.
func (s *slots) takeBack(t *turn, now time.Time) {
	switch t.holds {
	case aSlot:
		s.freeSlot()
	case theLane:
		s.lane.running--
		s.moves++
		s.admit(now)
	}
}

// bulk lets a few requests at a time do large work before they have a slot.
type bulk chan struct{}

// take waits for its turn. The returned function ends it, and may be called again.
func (b bulk) take(ctx context.Context) (end func(), err error) {
	select {
	case b <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return sync.OnceFunc(func() { <-b }), nil
}

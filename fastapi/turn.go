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

// slice is how long a search works before it lets others work that wait, and finds out whether its client is still there. (A variable, so
// that tests can lower it.)
var slice = 20 * time.Millisecond

// disturb is called, with no lock held, wherever work begins, ends and changes hands, so that tests can delay it there. nil: nobody does.
var disturb func()

func disturbed() {
	if disturb != nil {
		disturb()
	}
}

// turn is the right of one goroutine to work for a request: a turns.Turn, and the context of that work. A search begins with a slot. When
// it has worked for a slice of time it counts as long: it gives its slot back and goes on in the lane of long searches, where those that
// are ready take turns, slice by slice. So a short search never waits for a long one. A turn changes hands in Yield, which is never called
// with a lock held. Of those that wait for the lane, the one that has worked least goes on, unless another has waited for many times the
// difference.
type turn struct {
	*work   // the context
	request *request
	slots   *slots
	holds   hold
	since   time.Time     // when the slice began
	spent   time.Duration // on slices before
	account budget.Account
	more    func() bool // of spread: has another call begin; nil: there is none

	looked time.Duration // after since, when the time was looked up last
	unseen int           // calls of Yield until that is done again
	stride int           // what unseen begins with

	busy atomic.Bool // a method runs; only where invariants are checked
}

var _ turns.Turn = (*turn)(nil)

const (
	// maxStride is how many calls of Yield at most pass without a look at the time. So the end of a slice, or a deadline, is noticed eight
	// calls late where calls that came often come rarely all at once, and without that by lookEvery.
	maxStride = 7
	// lookEvery is about how much time passes between two looks. A look takes as long as a small step of a search.
	lookEvery = 50 * time.Microsecond
	// notShort is from when on a slice may be long enough to be interrupted.
	notShort = time.Millisecond
)

// wakeMonitor is a variable so that tests can count.
var wakeMonitor = socket.WakeMonitor

// within reports whether the slice goes on. It is asked at a few of many calls: a look at the time at each of them would cost more than
// the work between them.
func (t *turn) within() bool {
	if t.holds == paused {
		return false
	}
	now := time.Since(t.since)
	if now >= notShort && (t.looked < notShort || t.looked > now) {
		wakeMonitor()
	}
	switch gap := now - t.looked; {
	case gap < 0 || gap > 4*lookEvery: // below 0: another slice has begun
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
	paused // nothing, while the work waits for something else: it does not line up
	over   // nothing for good: the turn was given back
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
	// Within a slice the time of the whole work is not looked up: a moment without the time of day is cheaper than one with it.
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

// exclusive checks that one goroutine at a time uses the turn. The function that it returns ends the use.
func (t *turn) exclusive() (end func()) {
	if !t.busy.CompareAndSwap(false, true) {
		invariant.Fail("two goroutines use one turn")
	}
	return func() { t.busy.Store(false) }
}

// usedAfterwards is called for a turn that was given back: the caller has kept it for longer than it lasts. It takes no place in the lane
// then, which nobody would give back.
func (t *turn) usedAfterwards() {
	if invariant.Enabled {
		invariant.Fail("a turn is used after it was given back")
	}
}

// Value has the turn. The account of the request is that of other goroutines, too: see Account.
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
	if t.request != nil && t.request.work.begun() && t.request.gone() {
		t.request.work.cancel()
	}
	t.since = time.Now()
}

// enter lines up for the lane, for work that does not begin with a slot, and lets others work when its slice is over.
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

// Idle calls wait while the turn holds nothing, and returns when it holds again what it did. The wait does not count as work.
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
	if !since.IsZero() { // requests for many hits have used up their slice from the beginning
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

// beside returns a turn for another goroutine of the same request, which has taken a slot. spent is how long the request has worked: long
// work goes on in the lane, and does not get a slice of time among the short searches for each of its goroutines.
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

// lane is where long searches go on.
type lane struct {
	processors int
	running    int
	waiting    []*laneWaiter
	quick      time.Time // when a search ended last that never was long
}

// laneWaiter is a turn that waits for the lane.
type laneWaiter struct {
	turn chan struct{} // closed when it comes
	due  time.Time     // the least goes on
}

const (
	// laneReady is how many may wait for the lane when a request that asks for much is let in.
	laneReady = 4
	// laneSize is how many long searches may be under way; one that becomes long beyond that is refused.
	laneSize = 128
	// quickTime is how long after the end of a search that was not long a processor is kept free for the next.
	quickTime = 250 * time.Millisecond
	// overtaken is for how many times as long as it has worked a search is overtaken by those that come later and have not worked yet.
	// Without an end to that, new ones that are done within a slice each would keep it waiting for as long as they come.
	overtaken = 10
)

// width is how many long searches may run: one processor is kept free while there are short ones.
func (l *lane) width(now time.Time) int {
	if now.Sub(l.quick) > quickTime {
		return l.processors
	}
	return max(l.processors-1, 1)
}

// open reports whether requests may be let in that go to the lane at once.
func (l *lane) open() bool { return len(l.waiting) < laneReady }

// quiet reports whether no short search has ended for a while.
func (s *slots) quiet(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.lane.quick) > quickTime
}

// lineUp takes what the turn holds and gives it the lane, or returns what tells it when it has that.
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

// admit lets those go on that wait for the lane, as many as it is wide. The lock is held.
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

// leave takes a turn out of those that wait. It holds nothing then.
func (s *slots) leave(t *turn, wait *laneWaiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.holds = nothing
	if i := slices.Index(s.lane.waiting, wait); i >= 0 {
		s.lane.waiting = slices.Delete(s.lane.waiting, i, i+1)
	} else {
		s.lane.running-- // its turn came at the same moment
	}
	s.admit(time.Now())
}

// giveBack gives back what a turn holds, which ends it.
func (s *slots) giveBack(t *turn) { s.giveBackAt(t, time.Now()) }

// giveBackAt ends a turn and hands its slot on. The lane learns when a short search ended last.
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

// putDown gives back what a turn holds that goes on later.
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

// bulk lets few at a time work on what is large before they have a slot.
type bulk chan struct{}

// take waits for its turn; the function that it returns ends it, and may be called again.
func (b bulk) take(ctx context.Context) (end func(), err error) {
	select {
	case b <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return sync.OnceFunc(func() { <-b }), nil
}

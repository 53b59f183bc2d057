package fastapi

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"svc/internal/budget"
	"svc/internal/invariant"
	"svc/internal/socket"
	"svc/internal/turns"
)

func newTurn(t *testing.T, s *slots) *turn {
	t.Helper()
	if err := s.acquire(false); err != nil {
		t.Fatal(err)
	}
	return ownTurn(t, s)
}

// TestLongWorkMakesWay has two long searches in the lane of one processor: the one that has worked less runs, and short ones
// have the slots.
func TestLongWorkMakesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2, 10, time.Minute)
		s.lane.processors = 1
		first, second := newTurn(t, s), newTurn(t, s)
		if s.tryAcquire() {
			t.Fatal("a third search has a slot")
		}
		time.Sleep(slice)
		if err := first.Yield(); err != nil || first.holds != theLane {
			t.Fatalf("after a slice the first holds %v: %v", first.holds, err)
		}
		went := make(chan error)
		go func() {
			time.Sleep(slice)
			went <- second.Yield()
		}()
		time.Sleep(slice + slice/2)
		synctest.Wait()
		if s.free != 2 || len(s.lane.waiting) != 1 || s.lane.running != 1 {
			t.Fatalf("%d slots are free, %d long searches wait, %d run", s.free, len(s.lane.waiting), s.lane.running)
		}
		// The first has worked longer by now: it waits until the second yields.
		back := make(chan error)
		go func() { back <- first.Yield() }()
		if err := <-went; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s.lane.running != 1 || len(s.lane.waiting) != 1 {
			t.Fatalf("%d run, %d wait", s.lane.running, len(s.lane.waiting))
		}
		s.giveBack(second)
		if err := <-back; err != nil {
			t.Fatal(err)
		}
		s.giveBack(first)
		if s.free != 2 || s.lane.running != 0 || len(s.lane.waiting) != 0 {
			t.Errorf("at the end %d slots are free, %d run, %d wait", s.free, s.lane.running, len(s.lane.waiting))
		}
	})
}

// TestLongWorkIsNotStarved has a search in the lane that has worked a little more than a slice, while new short searches keep arriving.
func TestLongWorkIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8, 1000, time.Minute)
		s.lane.processors = 1
		var others sync.WaitGroup
		for range 3 {
			others.Go(func() {
				for range 500 {
					if err := s.acquire(true); err != nil {
						t.Error(err)
						return
					}
					large := ownTurn(t, s)
					large.since, large.spent = time.Time{}, slice
					if err := large.Yield(); err != nil {
						t.Error(err)
					}
					time.Sleep(slice / 2)
					s.giveBack(large)
				}
			})
		}
		own := newTurn(t, s)
		time.Sleep(slice + slice/10)
		began := time.Now()
		if err := own.Yield(); err != nil {
			t.Error(err)
		}
		if waited := time.Since(began); waited > 4*slice {
			t.Errorf("the long search waited for %v", waited)
		}
		s.giveBack(own)
		others.Wait()
	})
}

// TestSharedWorkBecomesLong has calls of one request that all become long: a goroutine that is done must not keep the lane from those
// that it waits for.
func TestSharedWorkBecomesLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4, 10, time.Minute)
		s.lane.processors = 1
		own := newTurn(t, s)
		began := time.Now()
		err := s.spread(own, 4, func(ctx context.Context, i int) error {
			time.Sleep(slice + time.Duration(i)*time.Millisecond)
			return turns.Of(ctx).Yield()
		})
		if err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		s.giveBack(own)
		if s.free != 4 || s.lane.running != 0 || len(s.lane.waiting) != 0 {
			t.Errorf("at the end %d slots are free, %d run, %d wait", s.free, s.lane.running, len(s.lane.waiting))
		}
	})
}

// TestLongWorkSharesTheLane has a long request share its work: none of its goroutines may use the slots of short searches.
func TestLongWorkSharesTheLane(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4, 10, time.Minute)
		s.lane.processors, s.lane.quick = 2, time.Now() // one of them is kept free
		own := newTurn(t, s)
		own.since, own.spent = time.Time{}, slice
		at, most := 0, 0
		err := s.spread(own, 8, func(ctx context.Context, _ int) error {
			at++
			most = max(most, at)
			if holds := ctx.(*turn).holds; holds != theLane {
				t.Errorf("a goroutine holds %v", holds)
			}
			time.Sleep(slice / 20)
			at--
			return nil
		})
		if err != nil || most != 1 {
			t.Errorf("%d worked at once: %v", most, err)
		}
		s.giveBack(own)
		if s.free != 4 || s.lane.running != 0 || len(s.lane.waiting) != 0 {
			t.Errorf("at the end %d slots are free, %d run, %d wait", s.free, s.lane.running, len(s.lane.waiting))
		}
	})
}

// TestTurnEndsForGood uses a turn after it was released, as work does that keeps the context of a call of spread: it must acquire nothing,
// and otherwise act as the context of the request.
func TestTurnEndsForGood(t *testing.T) {
	uses := []struct {
		name string
		use  func(*turn)
	}{
		{"Yield", func(t *turn) { _ = t.Yield() }},
		{"enter", (*turn).enter},
		{"Pause and Resume", func(t *turn) { t.Pause(); t.Resume() }},
		{"Idle", func(t *turn) { t.Idle(func() {}) }},
	}
	for _, u := range uses {
		for _, ended := range []hold{aSlot, theLane} {
			synctest.Test(t, func(t *testing.T) {
				s := newSlots(1, 10, time.Minute)
				ctx, cancel := context.WithCancel(t.Context())
				own := newTurn(t, s)
				own.work = workOf(ctx)
				if ended == theLane {
					time.Sleep(slice)
				}
				if err := own.Yield(); err != nil || own.holds != ended {
					t.Fatalf("the turn holds %v: %v", own.holds, err)
				}
				s.giveBack(own)
				time.Sleep(2 * slice)
				func() {
					defer func() {
						if p := recover(); (p != nil) != (invariant.Enabled && u.name != "Idle") {
							t.Errorf("%s of an ended turn: %v", u.name, p)
						}
					}()
					for range maxStride + 1 {
						u.use(own)
					}
				}()
				if s.free != 1 || s.lane.running != 0 || len(s.lane.waiting) != 0 {
					t.Errorf("%s of an ended turn: %d slots are free, %d run, %d wait", u.name, s.free, s.lane.running, len(s.lane.waiting))
				}
				cancel()
				if err := own.Yield(); !errors.Is(err, context.Canceled) {
					t.Errorf("after the end of the request: %v", err)
				}
			})
		}
	}
}

// TestPausedWorkHoldsNothing asks whether work may continue while it is paused: it must not queue for a slot.
func TestPausedWorkHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 10, time.Minute)
		own := newTurn(t, s)
		own.Pause()
		time.Sleep(2 * slice)
		if err := own.Yield(); err != nil {
			t.Fatal(err)
		}
		own.Resume()
		s.giveBack(own)
		if s.free != 1 || s.lane.running != 0 {
			t.Errorf("at the end %d slots are free, %d run", s.free, s.lane.running)
		}
	})
}

// TestWaitForMemoryHoldsNothing has a long search wait for memory that slow readers hold: others in the lane run meanwhile, the wait does
// not count as work, and a waiting short search keeps the rest of its slice.
func TestWaitForMemoryHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		s := newSlots(2, 10, time.Minute)
		s.lane.processors = 1
		b := budget.New(limit, nil)
		readers, r := b.Open(limit), &request{}
		b.OpenAs(&r.account, limit)
		if err := readers.Hold(limit); err != nil {
			t.Fatal(err)
		}
		first, second := newTurn(t, s), newTurn(t, s)
		first.request, first.work.account = r, &r.account
		first.charged()
		time.Sleep(slice)
		if err := first.Yield(); err != nil || first.holds != theLane {
			t.Fatalf("the turn holds %v: %v", first.holds, err)
		}
		held := make(chan error)
		go func() { held <- first.Account().Hold(budget.SmallBytes + 1) }()
		synctest.Wait()
		began := time.Now()
		if err := second.Yield(); err != nil || second.holds != theLane || time.Since(began) > 0 {
			t.Errorf("the other turn holds %v after %v: %v", second.holds, time.Since(began), err)
		}
		time.Sleep(slice)
		s.giveBack(second)
		readers.Close()
		if err := <-held; err != nil || first.holds != theLane || first.spent != slice || r.account.Held() != budget.SmallBytes+1 {
			t.Errorf("the turn holds %v after %v of work: %v", first.holds, first.spent, err)
		}
		s.giveBack(first)

		short := newTurn(t, s)
		short.request, short.work.account = r, &r.account
		short.charged()
		readers = b.Open(limit)
		if err := readers.Hold(limit - budget.SmallBytes - 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(slice / 2)
		go func() { held <- short.Account().Hold(budget.SmallBytes) }()
		synctest.Wait()
		if _, running, _ := s.now(); running != 0 {
			t.Errorf("%d turns are held during the wait", running)
		}
		if err := <-held; !errors.Is(err, budget.ErrFull) {
			t.Errorf("unavailable memory is granted: %v", err)
		}
		time.Sleep(slice/2 - 1)
		if err := short.Yield(); err != nil || short.holds != aSlot {
			t.Errorf("the short turn holds %v: %v", short.holds, err)
		}
		time.Sleep(time.Nanosecond)
		if err := short.Yield(); err != nil || short.holds != theLane {
			t.Errorf("after its slice the short turn holds %v: %v", short.holds, err)
		}
		s.giveBack(short)
		if s.free != 2 || s.lane.running != 0 || len(s.lane.waiting) != 0 {
			t.Errorf("at the end %d slots are free, %d run, %d wait", s.free, s.lane.running, len(s.lane.waiting))
		}
	})
}

// TestWaitForTheLaneEnds cancels the context of a waiting search, and fills the lane.
func TestWaitForTheLaneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2*laneSize, 0, time.Minute)
		s.lane.processors = 1
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, laneSize+1)
		for range laneSize + 1 { // one of them runs
			w := newTurn(t, s)
			w.work = workOf(ctx)
			go func() {
				time.Sleep(slice)
				err := w.Yield()
				if err == nil {
					<-ctx.Done()
				}
				s.giveBack(w)
				ended <- err
			}()
		}
		time.Sleep(2 * slice)
		synctest.Wait()
		late := newTurn(t, s)
		time.Sleep(slice)
		if err := late.Yield(); err == nil {
			t.Error("the lane has no limit")
		}
		s.giveBack(late)
		cancel()
		failed := 0
		for range laneSize + 1 {
			if err := <-ended; err != nil {
				failed++
			}
		}
		if failed != laneSize || s.lane.running != 0 || len(s.lane.waiting) != 0 || s.free != 2*laneSize {
			t.Errorf("%d waiting searches ended; %d run, %d wait, %d slots are free", failed, s.lane.running, len(s.lane.waiting), s.free)
		}
	})
}

// TestLargeRequestsWaitBehind lets small requests pass large ones, but not forever.
func TestLargeRequestsWaitBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 100, time.Minute)
		newTurn(t, s)
		order := make(chan string, 100)
		ask := func(what string, large bool) {
			if s.acquire(large) == nil {
				order <- what
				s.release()
			}
		}
		go ask("large", true)
		synctest.Wait()
		for range 2 * largeShare {
			go ask("small", false)
		}
		synctest.Wait()
		s.release()
		synctest.Wait()
		for i := range 2*largeShare + 1 {
			if got := <-order; (got == "large") != (i == largeShare) {
				t.Errorf("%d. was %s", i, got)
			}
		}
	})
}

// TestTheEndOfASliceIsNoticed has work ask at various intervals: it must become long in time, also if tiny intervals
// suddenly become large.
func TestTheEndOfASliceIsNoticed(t *testing.T) {
	for _, test := range []struct {
		name         string
		first, later time.Duration // gaps between two calls, before and after half of the slice
		late         time.Duration // largest allowed delay
	}{
		{"often", time.Microsecond, time.Microsecond, 2 * lookEvery},
		{"steps", 10 * time.Microsecond, 10 * time.Microsecond, maxStride * 10 * time.Microsecond},
		{"rarely", time.Millisecond, time.Millisecond, time.Millisecond},
		{"often, then rarely", time.Microsecond, time.Millisecond, (maxStride + 1) * time.Millisecond},
		{"rarely, then often", time.Millisecond, time.Microsecond, 2 * lookEvery},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlots(1, 10, time.Minute)
				own, began := newTurn(t, s), time.Now()
				for own.holds == aSlot {
					gap := test.first
					if time.Since(began) >= slice/2 {
						gap = test.later
					}
					time.Sleep(gap)
					if err := own.Yield(); err != nil {
						t.Fatal(err)
					}
					if time.Since(began) > 2*slice {
						t.Fatal("the work never becomes long")
					}
				}
				if late := time.Since(began) - slice; late > test.late {
					t.Errorf("the end is noticed %v late, want at most %v", late, test.late)
				}
			})
		})
	}
}

// TestADeadlineIsNoticed checks that the deadline of a request is noticed by work that asks often, and by work that asks rarely.
func TestADeadlineIsNoticed(t *testing.T) {
	for _, gap := range []time.Duration{time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(1, 10, time.Minute)
			after := 3*slice + slice/2
			own, began := newTurn(t, s), time.Now()
			own.work = new(work)
			own.begin(t.Context(), nil, time.Now(), after)
			for own.Yield() == nil {
				time.Sleep(gap)
				if time.Since(began) > 2*after {
					t.Fatal("the work never ends")
				}
			}
			if late := time.Since(began) - after; late < 0 || late > slice+(maxStride+1)*gap {
				t.Errorf("with checks every %v, the work ends %v late", gap, late)
			}
		})
	}
}

func TestTheMonitorIsWokenForLongWork(t *testing.T) {
	var woken atomic.Int32
	wakeMonitor = func() { woken.Add(1) }
	defer func() { wakeMonitor = socket.WakeMonitor }()
	began := func(ago time.Duration) time.Time { return time.Now().Add(-ago) }
	own := &turn{work: workOf(t.Context()), slots: newSlots(1, 0, 0), holds: aSlot, since: began(-time.Hour)}
	for _, step := range []struct {
		name  string
		since time.Time
		want  int32
	}{
		{"a new slice", own.since, 0},
		{"after a while", began(2 * notShort), 1},
		{"a while later", began(4 * notShort), 0},
		{"another new slice", began(-time.Hour), 0},
		{"checked late", began(slice + time.Hour), 1},
		{"another, checked late first", began(slice / 2), 1},
	} {
		own.since = step.since
		woken.Store(0)
		own.within()
		if n := woken.Load(); n != step.want {
			t.Errorf("%s: woken %d times, want %d", step.name, n, step.want)
		}
	}

	c := newClient(t, Options{})
	for _, request := range []struct {
		method, path string
		want         int32
	}{{"GET", "/version", 1}, {"POST", "/multi-search", 0}} {
		woken.Store(0)
		c.send(request.method, request.path, strings.NewReader(`{"queries": []}`), "Content-Type", "application/json")
		if n := woken.Load(); n != request.want {
			t.Errorf("%s %s: woken %d times, want %d", request.method, request.path, n, request.want)
		}
	}
}

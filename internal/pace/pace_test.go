package pace

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"svc/internal/monotonic"
)

// TestYield counts the steps of 0.1 ms that work gets done in a second of virtual time.
func TestYield(t *testing.T) {
	done := func(ctx context.Context) (steps int) {
		w := Of(ctx)
		for end := time.Now().Add(time.Second); time.Now().Before(end); steps++ {
			time.Sleep(slice / 10)
			w.Yield()
		}
		return steps
	}
	synctest.Test(t, func(t *testing.T) {
		if n := done(t.Context()); n != 10_000 {
			t.Errorf("work that does not yield: %d steps, want 10000", n)
		}
		s := new(Searches)
		if n := done(Beside(t.Context(), s)); n != 10_000 {
			t.Errorf("no searches: %d steps, want 10000", n)
		}
		s.Begin()
		if n := done(Beside(t.Context(), s)); n < 2400 || n > 2600 {
			t.Errorf("beside a search: %d steps, want a quarter of 10000", n)
		}
		if n := done(context.WithValue(t.Context(), key{}, Half(s))); n < 4900 || n > 5100 {
			t.Errorf("half beside a search: %d steps, want half of 10000", n)
		}
		s.End()
		if n := done(Beside(t.Context(), s)); n < 9500 || n >= 10_000 {
			t.Errorf("after a search: %d steps, want almost 10000", n)
		}
		time.Sleep(quiet)
		if n := done(Beside(t.Context(), s)); n != 10_000 {
			t.Errorf("long after a search: %d steps, want 10000", n)
		}
	})
}

// TestARestIsAsLongAsItsSlice does work that cannot yield for long.
func TestARestIsAsLongAsItsSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(Searches)
		s.Begin()
		w := Of(Beside(t.Context(), s))
		for worked, want := range map[time.Duration]time.Duration{slice / 2: 0, 10 * slice: 30 * slice, time.Hour: maxRest} {
			w.began.Store(monotonic.Nanos(time.Now()))
			time.Sleep(worked)
			before := time.Now()
			w.Yield()
			if got := time.Since(before); got != want {
				t.Errorf("after %v of work it rests %v, want %v", worked, got, want)
			}
		}
	})
}

// TestWorkersOfOneTaskShareItsTime works for one task on several goroutines: during searches, many must not get more done than few.
func TestWorkersOfOneTaskShareItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(Searches)
		s.Begin()
		for _, goroutines := range []int{1, 2, 8} {
			w := Of(Beside(t.Context(), s))
			var group sync.WaitGroup
			var steps atomic.Int64
			end := time.Now().Add(10 * time.Second)
			for range goroutines {
				group.Go(func() {
					for time.Now().Before(end) {
						time.Sleep(slice / 10)
						steps.Add(1)
						w.Yield()
					}
				})
			}
			group.Wait()
			if n := steps.Load(); n < 20_000 || n > 36_000 {
				t.Errorf("%d goroutines do %d steps, want a quarter to a third of 100000", goroutines, n)
			}
		}
	})
}

// TestYieldingIsReported starts yielding, continues for longer than a lull, and starts again after one.
func TestYieldingIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(Searches)
		told := 0
		s.OnYield(func() { told++ })
		work := func() {
			w := Of(Beside(t.Context(), s))
			for end := time.Now().Add(2 * lull); time.Now().Before(end); w.Yield() {
				time.Sleep(slice / 2)
			}
		}
		if work(); told != 0 || s.Yielding() || s.Going() {
			t.Errorf("no searches: reported %d times, yielding %v, going %v", told, s.Yielding(), s.Going())
		}
		for n := 1; n <= 2; n++ {
			s.Begin()
			work()
			if told != n || !s.Yielding() || !s.Going() {
				t.Errorf("beside a search: reported %d times, want %d; yielding %v, going %v", told, n, s.Yielding(), s.Going())
			}
			s.End()
			time.Sleep(lull + maxRest)
			if told != n || s.Yielding() || s.Going() {
				t.Errorf("after it: reported %d times, want %d; yielding %v, going %v", told, n, s.Yielding(), s.Going())
			}
		}
	})
}

// ahead returns a time as it would be if the clock of the machine had been ahead by d, and was set right since.
func ahead(t time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(d/time.Second) << 30 // seconds of the time of day, not of the monotonic clock
	return t
}

// TestTheTimeOfDayIsSetBack has a search, a rest and a slice before it, and looks afterwards.
func TestTheTimeOfDayIsSetBack(t *testing.T) {
	now := time.Now()
	if a := ahead(now, time.Hour); a.Round(0).Sub(now.Round(0)) != time.Hour || a.Sub(now) != 0 {
		t.Fatalf("the layout of times has changed: %v", a)
	}
	s := new(Searches)
	s.Begin()
	s.EndAt(ahead(now.Add(-quiet), time.Hour))
	s.rest(ahead(now.Add(-lull), time.Hour))
	if s.Going() || s.Yielding() {
		t.Errorf("searches before seem to go on: going %v, yielding %v", s.Going(), s.Yielding())
	}
	s.Begin()
	w := newWorker(s, restFactor)
	w.began.Store(monotonic.Nanos(ahead(now.Add(-10*slice), time.Hour)))
	if w.Yield() == 0 {
		t.Error("work does not yield")
	}
}

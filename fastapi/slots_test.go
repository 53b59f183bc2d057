package fastapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/turns"
)

func TestSlotsBound(t *testing.T) {
	s := newSlots(3, 1000, time.Minute)
	var mu sync.Mutex
	running, most := 0, 0
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				if err := s.acquire(false); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				mu.Lock()
				running--
				mu.Unlock()
				s.release()
			}
		})
	}
	wg.Wait()
	if most > 3 || s.free != 3 || len(s.waiting) != 0 {
		t.Errorf("%d ran at once; at the end %d are free and %d wait", most, s.free, len(s.waiting))
	}
}

// TestSlotsPause checks that a paused search frees its slot for another one, and that when it resumes, the next search to end
// frees no slot.
func TestSlotsPause(t *testing.T) {
	s := newSlots(1, 0, time.Minute)
	if err := s.acquire(false); err != nil {
		t.Fatal(err)
	}
	if s.acquire(false) == nil {
		t.Fatal("two searches run in one slot")
	}
	own := ownTurn(t, s)
	own.Pause()
	if err := s.acquire(false); err != nil {
		t.Fatalf("while a search is paused: %v", err)
	}
	own.Resume()
	s.release()
	if s.acquire(false) == nil || s.tryAcquire() {
		t.Fatal("a third search runs beside the resumed one")
	}
	s.release()
	if s.free != 1 {
		t.Fatalf("%d slots are free at the end", s.free)
	}
}

func TestSlotsRefuseWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 2, time.Minute)
		if err := s.acquire(false); err != nil {
			t.Fatal(err)
		}
		results := make(chan error, 5)
		for range 5 {
			go func() { results <- s.acquire(false) }()
			synctest.Wait()
		}
		// Two are waiting; of the five, three were refused in favour of later ones.
		if len(results) != 3 {
			t.Fatalf("%d were refused, want 3", len(results))
		}
		for range 3 {
			if e := apierr.From(<-results); e.Code != "too_many_search_requests" || e.Code.Status() != 503 {
				t.Errorf("got %v", e.Code)
			}
		}
		for range 2 {
			s.release()
			if err := <-results; err != nil {
				t.Errorf("a waiter got %v", err)
			}
		}
		s.release()
		if s.free != 1 {
			t.Errorf("%d are free", s.free)
		}
	})
}

// TestSlotsServeFewInOrder has searches wait for one slot: a few are served in order of arrival, many in random order at first.
func TestSlotsServeFewInOrder(t *testing.T) {
	for _, n := range []int{1, inOrder, 4 * inOrder} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlots(1, 1000, time.Minute)
				if err := s.acquire(false); err != nil {
					t.Fatal(err)
				}
				var served []int
				for i := range n {
					go func() {
						if err := s.acquire(false); err != nil {
							t.Error(err)
							return
						}
						served = append(served, i)
						s.release()
					}()
					synctest.Wait()
				}
				s.release()
				synctest.Wait()
				if len(served) != n {
					t.Fatalf("%d were served", len(served))
				}
				random := max(0, n-inOrder)
				if random > 0 && slices.IsSorted(served[:random]) {
					t.Errorf("of many that waited, these were served first: %v", served[:random])
				}
				if !slices.IsSorted(served[random:]) {
					t.Errorf("the last %d were served in order %v", n-random, served[random:])
				}
			})
		})
	}
}

func TestSlotsWithoutQueue(t *testing.T) {
	s := newSlots(1, 0, time.Minute)
	if err := s.acquire(false); err != nil {
		t.Fatal(err)
	}
	if err := s.acquire(false); err == nil {
		t.Error("a second search got in")
	}
	s.release()
	if err := s.acquire(false); err != nil {
		t.Error(err)
	}
}

func TestSlotsDropLateSearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 10, 5*time.Second)
		if err := s.acquire(false); err != nil {
			t.Fatal(err)
		}
		late, fresh := make(chan error, 1), make(chan error, 1)
		go func() { late <- s.acquire(false) }()
		time.Sleep(6 * time.Second)
		go func() { fresh <- s.acquire(false) }()
		synctest.Wait()
		s.release()
		if err := <-fresh; err != nil {
			t.Errorf("the fresh one: %v", err)
		}
		s.release()
		synctest.Wait()
		if err := <-late; err == nil {
			t.Error("the late one was served")
		}
	})
}

// TestSearchRefusal checks the answer to a refused search.
func TestSearchRefusal(t *testing.T) {
	c := newClient(t, Options{Searches: 1, SearchQueue: 0})
	if err := c.server.slots.acquire(false); err != nil {
		t.Fatal(err)
	}
	defer c.server.slots.release()
	r := c.json("POST", "/indexes/a/search", `{}`)
	if r.status != 503 || r.code() != "too_many_search_requests" || r.header.Get("Retry-After") != "10" {
		t.Errorf("%d %s %v", r.status, r.body, r.header)
	}
}

// TestTurn checks what a search learns: how long it waited, and that the server stops.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Searches: 1, SearchQueue: 1, Logger: slog.New(slog.DiscardHandler)})
		var first, ctx fasthttp.RequestCtx
		s.begin(&first)
		s.begin(&ctx)
		one, waited, err := s.turn(&first, 0)
		if err != nil || waited != 0 {
			t.Fatalf("the first: %v %v", waited, err)
		}
		time.AfterFunc(time.Second, one.end)
		limited, waited, err := s.turn(&ctx, 0)
		if err != nil || waited != time.Second || requestOf(&ctx).idle() != time.Second {
			t.Fatalf("the second: %v %v %v", waited, requestOf(&ctx).idle(), err)
		}
		if limited.Err() != nil {
			t.Error("the turn ended too early")
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.public(&ctx, fmt.Errorf("cannot search: %w", limited.Err())).Code.Status() != 503 {
			t.Errorf("after the end of the server: %v", limited.Err())
		}
		limited.end()
	})
}

// TestSpreadWhileCallsWait has calls that all wait for each other with released slots.
func TestSpreadWhileCallsWait(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, free := range []int{0, 1, 10} {
		s := newSlots(1+free, 0, time.Minute)
		if err := s.acquire(false); err != nil {
			t.Fatal(err)
		}
		const n = 6
		var all sync.WaitGroup
		all.Add(n)
		err := s.spread(ownTurn(t, s), n, func(ctx context.Context, i int) error {
			own := turns.Of(ctx)
			own.Pause()
			defer own.Resume()
			all.Done()
			all.Wait()
			return nil
		})
		if err != nil || s.free != free {
			t.Errorf("%d free: the error is %v, and %d are free afterwards", free, err, s.free)
		}
	}
}

// ownTurn returns the turn of a search that has acquired a slot.
func ownTurn(t *testing.T, s *slots) *turn {
	return &turn{work: workOf(t.Context()), slots: s, holds: aSlot, since: time.Now()}
}

// workOf returns work that may use all the time of ctx.
func workOf(ctx context.Context) *work {
	w := new(work)
	w.begin(ctx, nil, time.Now(), forEver)
	return w
}

// TestSpread checks how often each call runs, the returned error, and the slots afterwards.
func TestSpread(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, free := range []int{0, 1, 10} {
		s := newSlots(1+free, 0, time.Minute)
		if err := s.acquire(false); err != nil {
			t.Fatal(err)
		}
		for n := range 9 {
			for bad := -1; bad < n; bad++ {
				var mu sync.Mutex
				calls := make([]int, n)
				running, most := 0, 0
				err := s.spread(ownTurn(t, s), n, func(_ context.Context, i int) error {
					mu.Lock()
					running++
					most = max(most, running)
					calls[i]++
					mu.Unlock()
					defer func() {
						mu.Lock()
						running--
						mu.Unlock()
					}()
					if bad >= 0 && i >= bad {
						return fmt.Errorf("%d", i)
					}
					return nil
				})
				if bad < 0 && err != nil || bad >= 0 && (err == nil || err.Error() != fmt.Sprint(bad)) {
					t.Fatalf("%d free, %d calls, failing from %d on: the error is %v", free, n, bad, err)
				}
				for i, c := range calls {
					if c > 1 || c == 0 && (bad < 0 || i <= bad) {
						t.Fatalf("%d free, %d calls, failing from %d on: call %d was made %d times", free, n, bad, i, c)
					}
				}
				if most > min(4, 1+free) || running != 0 || s.free != free {
					t.Fatalf("%d free: %d ran at once, %d still run, %d are free afterwards", free, most, running, s.free)
				}
			}
		}
	}
}

func TestSpreadPanic(t *testing.T) {
	s := newSlots(3, 0, time.Minute)
	if err := s.acquire(false); err != nil {
		t.Fatal(err)
	}
	err := s.spread(ownTurn(t, s), 3, func(context.Context, int) error { panic(errors.New("out of order")) })
	if err == nil || !strings.Contains(err.Error(), "out of order") || s.free != 2 {
		t.Errorf("the error is %v, and %d slots are free", err, s.free)
	}
}

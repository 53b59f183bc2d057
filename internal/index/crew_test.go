package index

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"svc/internal/pace"
	"svc/internal/vfs"
)

// TestCrew runs tasks during a search, which only the steady threads take, and then tasks that wait for each other, which
// need all threads.
func TestCrew(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 5, YieldingThreads: 3})
	defer b.close()
	batch := &batch{ix: b.create("a"), ctx: context.Background()}
	searches := b.c.Searches()
	searches.Begin()
	var group errgroup.Group
	crew := batch.newCrew(&group)
	var running, most, done atomic.Int64
	for range 50 {
		crew.Go(func(p *pace.Worker) error {
			for n := running.Add(1); ; {
				if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			if p != nil {
				t.Error("a steady thread yields")
			}
			done.Add(1)
			running.Add(-1)
			return nil
		})
	}
	if err := group.Wait(); err != nil || most.Load() > 2 || done.Load() != 50 {
		t.Errorf("%d tasks at once, %d in all, %v", most.Load(), done.Load(), err)
	}
	searches.End()
	var all sync.WaitGroup
	all.Add(5)
	var yielding atomic.Int64
	for range 5 {
		crew.Go(func(p *pace.Worker) error {
			all.Done()
			all.Wait()
			if p != nil {
				yielding.Add(1)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil || yielding.Load() != 3 {
		t.Errorf("%d threads yield, want 3: %v", yielding.Load(), err)
	}
}

// TestCrewEndsWithItsBatch cancels a batch while a task waits for searches to end.
func TestCrewEndsWithItsBatch(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 2, YieldingThreads: 1})
	defer b.close()
	ctx, cancel := context.WithCancel(context.Background())
	batch := &batch{ix: b.create("a"), ctx: ctx}
	b.c.Searches().Begin()
	defer b.c.Searches().End()
	var group errgroup.Group
	crew := batch.newCrew(&group)
	crew.Go(func(*pace.Worker) error { <-ctx.Done(); return nil })
	crew.Go(func(*pace.Worker) error { <-ctx.Done(); return nil })
	cancel()
	if err := group.Wait(); err != nil && err != context.Canceled {
		t.Error(err)
	}
}

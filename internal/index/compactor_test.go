package index

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"svc/internal/vfs"
)

// TestFailedMergesPause checks that a failed merge is retried after a pause, not at each commit.
func TestFailedMergesPause(t *testing.T) {
	fail := false
	b := newBed(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
		if fail && o.Kind == vfs.OpCreate {
			return errors.New("no room")
		}
		return nil
	}), Options{})
	defer b.close()
	ix := b.create("a")
	k := b.c.compactor
	k.plan.MinRun = 2
	for range 2 {
		b.apply(ix, b.payload(`{"id":1}`, `{"id":2}`), b.payload(`{"id":3}`))
		b.apply(ix, b.payload(`{"id":4}`))
	}
	l := k.lanes[0]
	fail = true
	if k.step(l, ix) || ix.failures[0].pause != minMergePause {
		t.Fatalf("a merge without room succeeds, or leaves no pause: %v", ix.failures[0])
	}
	fail = false
	if k.step(l, ix) {
		t.Error("a failed merge is retried without a pause")
	}
	ix.failures[0].until = ix.failures[0].until.Add(-minMergePause)
	if !k.step(l, ix) {
		t.Error("a failed merge is not retried after its pause")
	}
	if ix.failures[0] != (failure{}) {
		t.Error("a merge that succeeds leaves a pause")
	}
}

// TestACommitWakesTheCompactorForItsIndex checks that a commit wakes the compactor for its own index only.
func TestACommitWakesTheCompactorForItsIndex(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	a := b.create("a")
	b.create("b")
	for range 2 {
		b.apply(a, b.payload(`{"id":1}`))
	}
	for _, l := range b.c.compactor.lanes {
		if ix := l.next(); ix != a {
			t.Errorf("the lane checks %v", ix)
		}
		if ix := l.next(); ix != nil {
			t.Errorf("the lane also checks %s", ix.UID())
		}
	}
}

// TestWhichMergesRestForSearches checks how merges share the processor with searches. Large merges get half of one processor while the
// index has few segments, and a quarter if its batches yield. Small merges and merges of many segments do not rest.
func TestWhichMergesRestForSearches(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, b.payload(`{"id":1}`))
	size := ix.Outline().size
	const steps = 100 // of one time slice each
	rests := func(l *lane) (slept time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			throttle := b.c.compactor.throttle(l, ix)
			for range steps {
				time.Sleep(time.Millisecond)
				began := time.Now()
				if err := throttle(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				slept += time.Since(began)
			}
		})
		return slept
	}
	lanes := b.c.compactor.lanes
	for _, step := range []struct {
		what     string
		searches bool
		yields   bool
		segments int
		lane     int
		want     time.Duration // rest per step
	}{
		{"no searches", false, true, 1, 2, 0},
		{"a small merge", true, false, 1, 0, 0},
		{"a medium merge", true, false, 12, 1, time.Millisecond},
		{"a large merge", true, false, manySegments, 2, time.Millisecond},
		{"many segments", true, false, manySegments + 1, 2, 0},
		{"the batch yields", true, true, 1, 1, 3 * time.Millisecond},
		{"a small merge of a batch that yields", true, true, 1, 0, 3 * time.Millisecond},
		{"many segments of batches that yield", true, true, manySegments + 1, 1, 3 * time.Millisecond},
	} {
		size.Segments = step.segments
		ix.yields.Store(step.yields)
		if step.searches {
			b.c.Searches().Begin()
		}
		if got := rests(lanes[step.lane]); got != steps*step.want {
			t.Errorf("%s: rests of %v, want %v", step.what, got, steps*step.want)
		}
		if step.searches {
			b.c.Searches().EndAt(time.Time{})
		}
	}
}

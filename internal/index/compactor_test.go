package index

import (
	"errors"
	"testing"

	"svc/internal/vfs"
)

// A merge that failed is not tried again at each commit, but it is after a pause.
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
		t.Error("a merge that failed is tried again at once")
	}
	ix.failures[0].until = ix.failures[0].until.Add(-minMergePause)
	if !k.step(l, ix) {
		t.Error("a merge that failed is not tried again after its pause")
	}
	if ix.failures[0] != (failure{}) {
		t.Error("a merge that succeeds leaves a pause")
	}
}

// A commit wakes the compactor for its index alone.
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
			t.Errorf("the lane looks at %v", ix)
		}
		if ix := l.next(); ix != nil {
			t.Errorf("the lane looks at %s, too", ix.UID())
		}
	}
}

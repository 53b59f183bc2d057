package task

import (
	"fmt"
	"path"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"svc/internal/vfs"
)

// TestDeletionsGetTheReserve fills the disk up to the reserve: an addition must wait, the deletion of an index must run, and the reserve
// must be there again when there is room.
func TestDeletionsGetTheReserve(t *testing.T) {
	o, _ := testOptions(t)
	disk := memDisk(t, o.Dir)
	e := newFake(disk)
	e.indexes["old"] = &fakeIndex{primaryKey: "id", documents: map[string]bool{}}
	name := path.Join(o.Dir, "reserve")
	there := func() bool {
		_, err := disk.Stat(name)
		return err == nil
	}
	var full atomic.Bool
	o.FS = vfs.Hook(disk, func(op vfs.Op) error {
		if full.Load() && op.Kind == vfs.OpWrite && (op.Name == name || there()) {
			return fmt.Errorf("%v: %w", op, syscall.ENOSPC)
		}
		return nil
	})
	c := &clock{at: time.Unix(1e9, 0)}
	o.engine, o.Reserve, o.Now = e, 1<<16, c.now
	q := paused(t, o)
	q.reserve.fill() // as the scheduler does
	if !there() {
		t.Fatal("there is no reserve")
	}
	addition := enqueue(t, q, letters(t, q, "a")[0])

	full.Store(true)
	turns(t, q)
	if s := statusOf(t, q, addition.UID); s != Enqueued || !there() {
		t.Fatalf("the addition is %s, the reserve is there: %v", s, there())
	}
	deletion := enqueue(t, q, New{IndexUID: "old", Content: DeleteIndex{}})
	turns(t, q)
	if s := statusOf(t, q, deletion.UID); s != Succeeded || there() {
		t.Fatalf("the deletion is %s, the reserve is there: %v", s, there())
	}

	full.Store(false)
	enqueue(t, q, letters(t, q, "a")[0])
	turns(t, q)
	if s := statusOf(t, q, addition.UID); s != Succeeded || !there() {
		t.Errorf("the addition is %s, the reserve is there: %v", s, there())
	}
}

package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/vfs"
)

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// turns runs batches until none is due.
func turns(t *testing.T, q *Queue) {
	t.Helper()
	for {
		ran, _, err := q.turn()
		if err != nil {
			t.Fatal(err)
		}
		if !ran {
			return
		}
	}
}

func statusOf(t *testing.T, q *Queue, uid uint32) Status {
	t.Helper()
	task, err := q.Task(uid, nil)
	if err != nil {
		t.Fatal(err)
	}
	return task.Status
}

// TestTasksWaitForTheMachine checks that an accepted write waits for any resource that the machine lacks, and is applied once it is
// available. Tasks of other indexes do not wait.
func TestTasksWaitForTheMachine(t *testing.T) {
	for _, fault := range []error{
		fmt.Errorf("cannot write segment: %w", syscall.ENOSPC), syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE,
		&apierr.Corruption{File: "segment", Offset: 3, Reason: "bits"}, apierr.New("invalid_store_file", "set aside"),
	} {
		o, e := testOptions(t)
		c := &clock{at: time.Unix(1e9, 0)}
		o.Now = c.now
		e.indexes["sick"] = &fakeIndex{primaryKey: "id", documents: map[string]bool{}}
		var mended atomic.Bool
		e.fail = func(op index.Op) error {
			if add, ok := op.(index.AddDocuments); ok && !mended.Load() {
				if ids, err := e.ids(add.Payload); err != nil || ids[0] == "sick" {
					return errors.Join(err, fault)
				}
			}
			return nil
		}
		q := paused(t, o)
		var payloads []string
		for range 3 {
			task := enqueue(t, q, adding(t, q, "sick", AddDocuments{}, "sick"))
			full, err := q.Task(task.UID, nil)
			if err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, q.payloadPath(full.Content.(AddDocuments).File))
		}
		swap := enqueue(t, q, New{Content: SwapIndexes{Swaps: []Swap{{Indexes: [2]string{"sick", "well"}}}}})
		after := enqueue(t, q, adding(t, q, "well", AddDocuments{MayCreate: true}, "1"))
		other := enqueue(t, q, adding(t, q, "other", AddDocuments{MayCreate: true}, "1"))
		turns(t, q)
		for uid := range uint32(5) {
			if s := statusOf(t, q, uid); s != Enqueued {
				t.Errorf("%v: task %d is %v", fault, uid, s)
			}
		}
		if s := statusOf(t, q, other.UID); s != Succeeded {
			t.Errorf("%v: another index's task is %v", fault, s)
		}
		for _, name := range payloads {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%v: %v", fault, err)
			}
		}
		shown, err := q.Task(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b := string(shown.AppendJSON(nil)); !strings.Contains(b, `"status":"enqueued"`) || !strings.Contains(b, `"parked":{"reason":{"message":`) || !strings.Contains(b, `"tries":1,"nextTryAt":"`) {
			t.Errorf("%v: shown as %s", fault, b)
		}
		if list := q.Parked(); len(list) != 1 || list[0].IndexUID != "sick" || list[0].Reason.Code != apierr.From(fault).Code && !apierr.IsCorruption(fault) {
			t.Errorf("%v: parked %+v", fault, list)
		}
		c.pass(2 * time.Second)
		turns(t, q)
		if list := q.Parked(); len(list) != 1 || list[0].Tries != 2 {
			t.Errorf("%v: after a second try: %+v", fault, list)
		}
		mended.Store(true)
		turns(t, q)
		if s := statusOf(t, q, 0); s != Enqueued {
			t.Errorf("%v: retried too early: %v", fault, s)
		}
		c.pass(longestPause)
		turns(t, q)
		for _, uid := range []uint32{0, 1, 2, after.UID} {
			if s := statusOf(t, q, uid); s != Succeeded {
				t.Errorf("%v: after the repair, task %d is %v", fault, uid, s)
			}
		}
		if s := statusOf(t, q, swap.UID); s != Failed { // the index `well` did not exist yet: an error of the task
			t.Errorf("%v: the swap is %v", fault, s)
		}
		if len(q.Parked()) != 0 {
			t.Errorf("%v: still parked: %+v", fault, q.Parked())
		}
	}
}

// TestOwnFaultsFail checks that errors of the task itself fail it at once.
func TestOwnFaultsFail(t *testing.T) {
	o, e := testOptions(t)
	e.fail = func(index.Op) error { return apierr.New("max_fields_limit_exceeded", "too many") }
	e.indexes["x"] = &fakeIndex{primaryKey: "id", documents: map[string]bool{}}
	q := paused(t, o)
	task := enqueue(t, q, adding(t, q, "x", AddDocuments{}, "1"))
	turns(t, q)
	if s := statusOf(t, q, task.UID); s != Failed {
		t.Error(s)
	}
}

// TestAFullDiskAcceptsOnlyDeletions checks that a full disk refuses all tasks except those that make room, which run at once.
func TestAFullDiskAcceptsOnlyDeletions(t *testing.T) {
	o, e := testOptions(t)
	c := &clock{at: time.Unix(1e9, 0)}
	o.Now = c.now
	for _, uid := range []string{"full", "old"} {
		e.indexes[uid] = &fakeIndex{primaryKey: "id", documents: map[string]bool{}}
	}
	e.fail = func(op index.Op) error {
		if _, ok := op.(index.AddDocuments); ok {
			e.mu.Unlock() // apply holds it
			defer e.mu.Lock()
			if _, there := e.info("old"); there {
				return syscall.ENOSPC
			}
		}
		return nil
	}
	q := paused(t, o)
	first := enqueue(t, q, adding(t, q, "full", AddDocuments{}, "1"))
	turns(t, q)
	for _, n := range []New{{IndexUID: "other", Content: CreateIndex{}}, adding(t, q, "full", AddDocuments{}, "2"), {IndexUID: "old", Content: DeleteDocuments{IDs: []string{"1"}}}} {
		_, err := q.Enqueue(context.Background(), n)
		if err == nil || apierr.From(err).Code != noSpace {
			t.Errorf("%v was accepted: %v", n.Content.Kind(), err)
		}
		if n.Payload != nil {
			n.Payload.Discard()
		}
	}
	enqueue(t, q, New{IndexUID: "old", Content: DeleteIndex{}})
	turns(t, q) // no time passes
	if s := statusOf(t, q, first.UID); s != Succeeded {
		t.Error(s)
	}
	enqueue(t, q, adding(t, q, "full", AddDocuments{}, "3"))
	turns(t, q)
}

// TestTasksWaitForADamagedIndex checks that the tasks of a damaged index wait until it is repaired, without a restart, or are
// deleted with it.
func TestTasksWaitForADamagedIndex(t *testing.T) {
	dir := t.TempDir()
	open := func() (*index.Catalog, *Queue, *clock) {
		c, err := index.OpenCatalog(filepath.Join(dir, "indexes"), index.Options{FS: vfs.OS, MaxIndexingMemory: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		at := &clock{at: time.Now()}
		return c, paused(t, Options{Dir: filepath.Join(dir, "tasks"), Catalog: c, MaxBatchTasks: -1, MaxBatchBytes: -1, noSync: true, Now: at.now}), at
	}
	c, q, _ := open()
	enqueue(t, q, adding(t, q, "mended", AddDocuments{MayCreate: true}, "1"))
	enqueue(t, q, adding(t, q, "deleted", AddDocuments{MayCreate: true}, "1"))
	turns(t, q)
	if err := errors.Join(q.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "indexes", "*", "MANIFEST"))
	if err != nil || len(manifests) != 2 {
		t.Fatal(manifests, err)
	}
	for _, name := range manifests {
		if err := os.Rename(name, name+".away"); err != nil {
			t.Fatal(err)
		}
	}
	c, q, at := open()
	waits := enqueue(t, q, adding(t, q, "mended", AddDocuments{MayCreate: true}, "2"))
	goes := enqueue(t, q, adding(t, q, "deleted", AddDocuments{MayCreate: true}, "2"))
	turns(t, q)
	for _, uid := range []uint32{waits.UID, goes.UID} {
		if s := statusOf(t, q, uid); s != Enqueued {
			t.Errorf("task %d is %v", uid, s)
		}
	}
	if err := os.Rename(manifests[0]+".away", manifests[0]); err != nil { // of the index that was created first
		t.Fatal(err)
	}
	last := enqueue(t, q, New{IndexUID: "deleted", Content: DeleteIndex{}})
	at.pass(longestPause)
	turns(t, q)
	for _, uid := range []uint32{waits.UID, goes.UID, last.UID} {
		if s := statusOf(t, q, uid); s != Succeeded {
			t.Errorf("task %d is %v", uid, s)
		}
	}
	v := held(c.Get("mended").View())
	if v.Documents() != 2 {
		t.Errorf("%d documents", v.Documents())
	}
	v.Release()
	if c.Get("deleted") != nil || c.Damaged("deleted") {
		t.Error("the deleted index still exists")
	}
	if err := errors.Join(q.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestUncountedDocumentsAreNotZero checks that tasks which need the number of documents of an index wait while it cannot be counted.
func TestUncountedDocumentsAreNotZero(t *testing.T) {
	o, e := testOptions(t)
	c := &clock{at: time.Unix(1e9, 0)}
	o.Now = c.now
	for _, uid := range []string{"cleared", "keyless"} {
		e.indexes[uid] = &fakeIndex{primaryKey: "id", documents: map[string]bool{"1": true, "2": true}, uncounted: syscall.EMFILE}
	}
	q := paused(t, o)
	cleared := enqueue(t, q, New{IndexUID: "cleared", Content: ClearDocuments{}})
	keyless := enqueue(t, q, New{IndexUID: "keyless", Content: UpdateIndex{EmptyKey: true}})
	turns(t, q)
	for _, task := range []*Task{cleared, keyless} {
		if s := statusOf(t, q, task.UID); s != Enqueued {
			t.Errorf("the task of %s is %v", task.IndexUID, s)
		}
	}
	for _, ix := range e.indexes {
		ix.uncounted = nil
	}
	c.pass(time.Hour)
	turns(t, q)
	task, err := q.Task(cleared.UID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if task.Status != Succeeded || !strings.Contains(string(task.Details), `"deletedDocuments":2`) {
		t.Errorf("cleared: %v, %s", task.Status, task.Details)
	}
	if s := statusOf(t, q, keyless.UID); s != Failed {
		t.Errorf("the primary key of an index with documents was changed: %v", s)
	}
}

package task

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/boltfile"
)

// TestReadersWaitForTheRoster reads while the file has a commit that the roster does not have yet.
func TestReadersWaitForTheRoster(t *testing.T) {
	o, _ := testOptions(t)
	var slow atomic.Bool
	written, release := make(chan struct{}), make(chan struct{})
	o.commit = func(tx *boltfile.Tx) error {
		err := tx.Commit()
		if slow.CompareAndSwap(true, false) {
			close(written)
			<-release // a slow disk
		}
		return err
	}
	o.MaxBatchTasks = 0 // no task runs
	q := openQueue(t, o)
	enqueue(t, q, New{IndexUID: "a", Content: CreateIndex{}})
	slow.Store(true)
	done := make(chan *Task)
	go func() { done <- enqueue(t, q, New{IndexUID: "b", Content: CreateIndex{}}) }()
	<-written
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			if page, err := q.Tasks(Filter{Limit: 10}); err != nil || page.Total != 2 {
				t.Errorf("%+v, %v", page, err)
			}
		})
	}
	time.Sleep(10 * time.Millisecond) // most of them wait by now, but the test does not depend on it
	close(release)
	readers.Wait()
	if task := <-done; task.UID != 1 {
		t.Errorf("task %d", task.UID)
	}
}

// TestAPanicInACommitIsReported leaves a commit in the file that the roster never gets, because of a panic: readers must get an error
// instead of waiting.
func TestAPanicInACommitIsReported(t *testing.T) {
	o, _ := testOptions(t)
	var broken atomic.Bool
	o.commit = func(tx *boltfile.Tx) error {
		err := tx.Commit()
		if broken.Load() {
			panic("behind the root")
		}
		return err
	}
	o.MaxBatchTasks = 0
	q := openQueue(t, o)
	enqueue(t, q, New{IndexUID: "a", Content: CreateIndex{}})
	broken.Store(true)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the commit did not panic")
			}
		}()
		_ = q.update(func(tx *txn) error { return tx.setName(7, "b") })
	}()
	broken.Store(false)
	if _, err := q.Tasks(Filter{Limit: 10}); !apierr.IsCorruption(err) {
		t.Errorf("read: %v", err)
	}
	if err := q.update(func(tx *txn) error { return nil }); !apierr.IsCorruption(err) {
		t.Errorf("changed: %v", err)
	}
}

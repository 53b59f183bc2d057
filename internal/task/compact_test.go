package task

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestCompactQueue checks that compaction frees the space of deleted tasks while others read and write, and that everything stored before,
// during and after it is there after a restart.
func TestCompactQueue(t *testing.T) {
	o, _ := testOptions(t)
	q := openQueue(t, o)
	for range 2000 {
		enqueue(t, q, New{IndexUID: "a", Content: CreateIndex{PrimaryKey: "id"}})
	}
	wait(t, q, 1999)
	uids, err := q.Match(Filter{Statuses: []Status{Succeeded, Failed}})
	if err != nil {
		t.Fatal(err)
	}
	gone := enqueue(t, q, New{Content: DeleteTasks{Query: "?", Tasks: uids}})
	wait(t, q, gone.UID)

	var others sync.WaitGroup
	stop := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := q.listTasks(Filter{Limit: 20}); err != nil {
					t.Error(err)
					return
				}
				q.DiskBytes()
			}
		}
	})
	others.Go(func() {
		for range 50 {
			enqueue(t, q, New{IndexUID: "b", Content: CreateIndex{}})
		}
	})
	file := filepath.Join(o.Dir, "queue.db")
	for i := range 5 {
		before, after, err := q.Compact()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && after >= before {
			t.Errorf("%d bytes of deleted tasks became %d", before, after)
		}
	}
	close(stop)
	others.Wait()
	last := enqueue(t, q, New{IndexUID: "c", Content: CreateIndex{}})
	wait(t, q, last.UID)

	list := func() string {
		l, err := q.listTasks(Filter{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var b []byte
		for _, t := range l.Results {
			b = t.AppendJSON(b)
		}
		return string(b)
	}
	want := list()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	// A compaction that was interrupted by a crash leaves a partial copy.
	if err := os.WriteFile(file+compactSuffix, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	q = openQueue(t, o)
	if got := list(); got != want {
		t.Errorf("after a restart the queue holds\n%s\nwant\n%s", got, want)
	}
	if _, err := os.Stat(file + compactSuffix); !os.IsNotExist(err) {
		t.Errorf("the left-over copy is still there: %v", err)
	}
}

func TestCompactQueueFails(t *testing.T) {
	o, _ := testOptions(t)
	q := openQueue(t, o)
	// A non-empty directory in place of the copy cannot be removed.
	if err := os.MkdirAll(filepath.Join(o.Dir, "queue.db"+compactSuffix, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := q.Compact(); err == nil {
		t.Fatal("compacted into a directory")
	}
	wait(t, q, enqueue(t, q, New{IndexUID: "a", Content: CreateIndex{}}).UID)
}

package task

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/index"
	"svc/internal/vfs"
)

// realStory runs a story on real indexes. The machine stops at the n-th point between two writes, or at the n-th change of a file, and
// loses what was not synced.
func realStory(t *testing.T, point, operation int, want string) (points, operations int, end string) {
	t.Helper()
	dir := filepath.ToSlash(t.TempDir())
	disk := memDisk(t, dir)
	crashed := false
	run := func(crashing bool) (done bool) {
		failing := false
		hooked := vfs.Hook(disk, func(op vfs.Op) error {
			if !crashing || !op.Kind.Changes() {
				return nil
			}
			if operations++; operations == operation {
				failing = true
			}
			if failing {
				return errCrash
			}
			return nil
		})
		c, err := index.OpenCatalog(path.Join(dir, "indexes"), index.Options{FS: hooked, MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 1})
		if err != nil {
			if failing {
				return false
			}
			t.Fatal(err)
		}
		defer c.Close()
		o := Options{Dir: dir, FS: hooked, Catalog: c, MaxBatchTasks: -1, MaxBatchBytes: -1, noSync: true}
		o.hook = func(string) error {
			if points++; crashing && points == point {
				return errCrash
			}
			if failing {
				return errCrash
			}
			return nil
		}
		q, err := open(o)
		if err != nil {
			if failing {
				return false
			}
			t.Fatal(err)
		}
		q.done.Add(1)
		go q.commit()
		defer q.Close()
		if q.roster.tasks.IsEmpty() {
			// Do not crash while tasks are enqueued.
			was := operation
			operation = -1
			for _, n := range letters(t, q, "a p i y a s c n u e f w a d r a d z") {
				enqueue(t, q, n)
			}
			operation = was
		}
		for {
			ran, _, err := q.turn()
			if err != nil || failing {
				return false
			}
			if !ran {
				break
			}
		}
		var b strings.Builder
		tasks, err := q.listTasks(Filter{Limit: 1000, Reverse: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks.Results {
			code := ""
			if task.Error != nil {
				code = string(task.Error.Code) + " " + task.Error.Message
			}
			fmt.Fprintf(&b, "task %d %s %v batch %s %s %s\n", task.UID, task.IndexUID, task.Status, text(task.BatchUID), task.Details, code)
		}
		for _, uid := range c.UIDs() {
			v := held(c.Get(uid).View())
			fmt.Fprintf(&b, "index %s key %q %d documents\n", uid, v.PrimaryKey, v.Documents())
			v.Release()
		}
		if end = b.String(); sameEnding(q, end, want) {
			end = want
		}
		return true
	}
	for crashing := point > 0 || operation > 0; !run(crashing); crashing = false {
		if crashed {
			t.Fatal("the story does not end")
		}
		crashed = true
		disk = disk.CrashClone(nil)
	}
	return points, operations, end
}

func TestACrashAnywhereOnRealIndexes(t *testing.T) {
	points, operations, want := realStory(t, 1<<30, 1<<30, "")
	if !strings.Contains(want, "index z") || points < 20 || operations < 50 {
		t.Fatalf("%d points, %d operations:\n%s", points, operations, want)
	}
	for n := 1; n <= points; n++ {
		if _, _, got := realStory(t, n, 0, want); got != want {
			t.Errorf("after a crash at point %d:\n%s\nwant\n%s", n, got, want)
		}
	}
	// Every third operation, from a random start.
	seed := int(time.Now().UnixNano() % 3)
	t.Logf("seed %d", seed)
	for n := 1 + seed; n <= operations; n += 3 {
		if _, _, got := realStory(t, 0, n, want); got != want {
			t.Errorf("after a crash at file operation %d:\n%s\nwant\n%s", n, got, want)
		}
	}
}

// held returns a view that must not fail.
func held(v *index.View, err error) *index.View {
	if err != nil {
		panic(err)
	}
	return v
}

package task

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/index"
	"svc/internal/vfs"
	"svc/segment"
)

// processing returns the uids of running tasks.
func processing(t *testing.T, q *Queue) []uint32 {
	t.Helper()
	uids, err := q.Match(Filter{Statuses: []Status{Processing}})
	if err != nil {
		t.Fatal(err)
	}
	return uids
}

// until waits until exactly the given tasks run.
func until(t *testing.T, q *Queue, want ...uint32) {
	t.Helper()
	var got []uint32
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if got = processing(t, q); slices.Equal(got, want) {
			return
		}
	}
	t.Fatalf("running tasks %v, want %v", got, want)
}

func TestBatchesOfOtherIndexesRunBeside(t *testing.T) {
	o, e := testOptions(t)
	o.Concurrent = 3
	e.blocks = map[string]chan struct{}{}
	for _, uid := range []string{"w", "x", "y", "z"} {
		e.blocks[uid] = make(chan struct{}, 9)
	}
	for _, uid := range []string{"w", "x", "y", "z", "v"} {
		if err := e.create(uid, "id", 0); err != nil {
			t.Fatal(err)
		}
	}
	dumped := make(chan struct{})
	o.Executors = map[Kind]Executor{DumpCreation: func(context.Context, *Queue, []*Task, index.Progress) ([]Outcome, error) {
		<-dumped
		return []Outcome{{}}, nil
	}}
	q := openQueue(t, o)
	add := func(uid string) uint32 {
		return enqueue(t, q, adding(t, q, uid, AddDocuments{MayCreate: true}, "1")).UID
	}
	x := add("x")
	until(t, q, x)
	y := add("y")
	until(t, q, x, y)
	x2 := add("x")
	swap := enqueue(t, q, New{Content: SwapIndexes{[]Swap{{Indexes: [2]string{"y", "v"}}}}}).UID
	v := add("v") // after the swap, which waits for y
	z := add("z")
	until(t, q, x, y, z)
	w := add("w") // three tasks run
	batches, err := q.listBatches(Filter{Statuses: []Status{Processing}, Limit: 9})
	if err != nil || batches.Total != 3 {
		t.Fatalf("%+v %v", batches, err)
	}
	if !q.Indexing("x") || !q.Indexing("y") || !q.Indexing("z") || q.Indexing("w") {
		t.Error("Indexing does not report the running indexes")
	}
	e.blocks["z"] <- struct{}{}
	until(t, q, x, y, w)

	// A cancelation stops only the batch that it concerns.
	cancelation := enqueue(t, q, New{Content: CancelTasks{"?uids=" + fmt.Sprint(x), []uint32{x}}}).UID
	wait(t, q, cancelation)
	if task, err := q.Task(x, nil); err != nil || task.Status != Canceled {
		t.Errorf("%+v %v", task, err)
	}
	until(t, q, y, x2, w)

	// A dump waits for all running tasks, and holds back later ones.
	dump := enqueue(t, q, New{Content: CreateDump{}}).UID
	z2 := add("z")
	e.blocks["w"] <- struct{}{}
	wait(t, q, w)
	e.blocks["x"] <- struct{}{}
	wait(t, q, x2)
	until(t, q, y)
	e.blocks["y"] <- struct{}{}
	until(t, q, dump)
	close(dumped)
	e.blocks["z"] <- struct{}{}
	for _, uid := range []uint32{x2, y, swap, v, z, w, dump, z2} {
		if task := wait(t, q, uid); task.Status != Succeeded {
			t.Errorf("task %d is %s: %v", uid, task.Status, task.Error)
		}
	}
	if first, second := wait(t, q, swap), wait(t, q, v); first.FinishedAt.After(second.StartedAt) {
		t.Errorf("the addition began at %v, before the swap ended at %v", second.StartedAt, first.FinishedAt)
	}
}

// mixture enqueues n tasks of four indexes, some of them of several indexes at once.
func mixture(t *testing.T, r *rand.Rand, q *Queue, n int) {
	t.Helper()
	uids := []string{"w", "x", "y", "z"}
	for i := range n {
		uid := uids[r.IntN(4)]
		task := New{IndexUID: uid}
		switch k := r.IntN(20); {
		case k < 10:
			task = adding(t, q, uid, AddDocuments{MayCreate: true, PrimaryKey: "id"}, fmt.Sprint(i), fmt.Sprint(r.IntN(20)))
		case k < 13:
			task.Content = DeleteDocuments{IDs: []string{fmt.Sprint(r.IntN(20)), fmt.Sprint(r.IntN(n))}}
		case k < 14:
			task.Content = ClearDocuments{}
		case k < 15:
			task.Content = DeleteIndex{}
		case k < 16:
			task.Content = CreateIndex{PrimaryKey: "id"}
		case k < 17:
			task.Content = UpdateIndex{NewUID: uids[r.IntN(4)]}
		default:
			task = New{Content: SwapIndexes{[]Swap{{Indexes: [2]string{uid, uids[(slices.Index(uids, uid)+1+r.IntN(3))%4]}}}}}
		}
		enqueue(t, q, task)
	}
}

// together runs a mixture on real indexes with the given number of concurrent batches. It crashes at the given point between two writes or
// the given change of a file, and loses what was not synced. It returns how the tasks end and what is in the indexes.
func together(t *testing.T, seed uint64, concurrent int, point, operation int64) (points, operations int64, end string) {
	t.Helper()
	dir := filepath.ToSlash(t.TempDir())
	disk := memDisk(t, dir)
	run := func(crash bool) bool {
		var counted, changed atomic.Int64
		var crashed atomic.Bool
		fail := func(counter *atomic.Int64, at int64) error {
			if counter.Add(1) == at && crash {
				crashed.Store(true)
			}
			if crashed.Load() {
				return errCrash
			}
			return nil
		}
		var enqueuing atomic.Bool
		enqueuing.Store(true)
		hooked := vfs.Hook(disk, func(op vfs.Op) error {
			if enqueuing.Load() || !op.Kind.Changes() {
				return nil
			}
			return fail(&changed, operation)
		})
		c, err := index.OpenCatalog(path.Join(dir, "indexes"), index.Options{FS: hooked, MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		o := Options{Dir: dir, FS: hooked, Catalog: c, MaxBatchTasks: -1, MaxBatchBytes: -1, noSync: true, Concurrent: concurrent}
		o.hook = func(string) error { return fail(&counted, point) }
		q, err := open(o)
		if err != nil {
			t.Fatal(err)
		}
		q.done.Add(1)
		go q.commit()
		defer q.Close()
		if q.roster.tasks.IsEmpty() {
			mixture(t, rand.New(rand.NewPCG(seed, 1)), q, 40)
		}
		enqueuing.Store(false)
		q.done.Add(1)
		go q.schedule()
		for open := true; open; time.Sleep(100 * time.Microsecond) {
			uids, err := q.Match(Filter{Statuses: []Status{Enqueued, Processing}})
			if err != nil {
				t.Fatal(err)
			}
			open = len(uids) > 0 && q.ctx.Err() == nil
		}
		points, operations = max(points, counted.Load()), max(operations, changed.Load())
		if crashed.Load() {
			return false
		}
		var b strings.Builder
		tasks, err := q.listTasks(Filter{Limit: 1000, Reverse: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks.Results {
			fmt.Fprintf(&b, "task %d %s %v\n", task.UID, task.IndexUID, task.Status)
		}
		for _, uid := range c.UIDs() {
			v := held(c.Get(uid).View())
			var documents []string
			err := v.EachDocument(v.LiveRows(), func(_ int, _ segment.Row, doc []byte) error {
				documents = append(documents, string(doc))
				return nil
			})
			v.Release()
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(documents)
			fmt.Fprintf(&b, "index %s %q\n", uid, documents)
		}
		end = b.String()
		return true
	}
	for crash := point > 0 || operation > 0; !run(crash); crash = false {
		disk = disk.CrashClone(nil)
	}
	for _, left := range []string{"payloads", lostDir} {
		if names, err := disk.List(path.Join(dir, left)); err == nil && len(names) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("in %s: %v %v", left, names, err)
		}
	}
	return points, operations, end
}

func TestBatchesSideBySideEndAsOneAfterTheOther(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for range 4 {
		seed++
		points, operations, want := together(t, seed, 1, 0, 0)
		if _, _, got := together(t, seed, 3, 0, 0); got != want {
			t.Fatalf("seed %d, side by side:\n%s\none after the other:\n%s", seed, got, want)
		}
		r := rand.New(rand.NewPCG(seed, 2))
		for range 6 {
			point, operation := 1+r.Int64N(points), 1+r.Int64N(operations)
			if _, _, got := together(t, seed, 3, point, 0); got != want {
				t.Fatalf("seed %d, crash at point %d:\n%s\nwant\n%s", seed, point, got, want)
			}
			if _, _, got := together(t, seed, 3, 0, operation); got != want {
				t.Fatalf("seed %d, crash at operation %d:\n%s\nwant\n%s", seed, operation, got, want)
			}
		}
	}
}

// TestTasksBesideACrashingOneSucceed crashes the process whenever one of three tasks runs, the first time beside the others. That task
// must fail, and the others must not.
func TestTasksBesideACrashingOneSucceed(t *testing.T) {
	for guilty := range uint32(3) {
		o, e := testOptions(t)
		o.Concurrent = 3
		var down atomic.Bool
		o.FS = vfs.Hook(vfs.OS, func(op vfs.Op) error {
			if down.Load() && op.Kind.Changes() {
				return errCrash
			}
			return nil
		})
		e.fs = o.FS
		e.block, e.entered = make(chan struct{}), make(chan struct{}, 99)
		release := make(chan struct{})
		e.blocks = map[string]chan struct{}{fmt.Sprint("index", guilty): release}
		go func() {
			for range 3 { // all three are in apply
				<-e.entered
			}
			close(release)
		}()
		ends := 0
		e.fail = func(op index.Op) error {
			ids, err := e.ids(op.(index.AddDocuments).Payload)
			if err != nil || !slices.Contains(ids, fmt.Sprint(guilty)) {
				return err
			}
			ends++
			down.Store(true)
			return errCrash
		}
		q := paused(t, o)
		for i := range 3 {
			enqueue(t, q, adding(t, q, fmt.Sprint("index", i), AddDocuments{MayCreate: true}, fmt.Sprint(i)))
		}
		for range 3 {
			q.done.Add(1)
			go q.schedule()
			for done := false; !done; time.Sleep(time.Millisecond) {
				list, err := q.listTasks(Filter{Statuses: []Status{Succeeded, Failed}, Limit: 1})
				if err != nil {
					t.Fatal(err)
				}
				done = q.ctx.Err() != nil || list.Total == 3
			}
			q.Close()
			down.Store(false)
			if e.block != nil {
				close(e.block)
				e.block = nil
			}
			q = paused(t, o)
		}
		for uid := range uint32(3) {
			task, err := q.Task(uid, nil)
			if err != nil {
				t.Fatal(err)
			}
			if uid == guilty && (task.Status != Failed || !strings.Contains(task.Error.Message, "ended 2 times")) || uid != guilty && task.Status != Succeeded {
				t.Errorf("task %d ends the program, and task %d is %s: %v", guilty, uid, task.Status, task.Error)
			}
		}
		if ends != maxCrashes {
			t.Errorf("task %d ended the program %d times", guilty, ends)
		}
	}
}

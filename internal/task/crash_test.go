package task

import (
	"context"
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

	"svc/internal/boltfile"
	"svc/internal/index"
	"svc/internal/vfs"
)

// story is a list of tasks whose batches take every path through run.
const story = "a i y a s c n u e f w d r a d z"

// ending describes the state after a story: every task, batch and index.
func ending(t *testing.T, q *Queue, e *fakeEngine) string {
	t.Helper()
	var b strings.Builder
	tasks, err := q.listTasks(Filter{Limit: 1000, Reverse: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks.Results {
		fmt.Fprintf(&b, "task %d %s %v batch %s %s\n", task.UID, task.IndexUID, task.Status, text(task.BatchUID), task.Details)
	}
	batches, err := q.listBatches(Filter{Limit: 1000, Reverse: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range batches.Results {
		fmt.Fprintf(&b, "batch %d %d %s %v\n", batch.UID, batch.Stats.Total, batch.Details, batch.Stats.Indexes)
	}
	for _, uid := range sortedKeys(e.indexes) {
		ix := e.indexes[uid]
		fmt.Fprintf(&b, "index %s key %q %v settings %d\n", uid, ix.primaryKey, sortedKeys(ix.documents), ix.settings)
	}
	fmt.Fprintln(&b, strings.Join(e.took(), "; "))
	return b.String()
}

// sameEnding compares the state after a story with and without a crash. If the crash split a batch, its tasks ran one by one: they are in
// other batches, and their counts may differ where a later task undoes them.
func sameEnding(q *Queue, got, want string) bool {
	if got == want {
		return true
	}
	batches, err := q.listBatches(Filter{Limit: 1000})
	if err != nil || !slices.ContainsFunc(batches.Results, func(b *Batch) bool { return b.Strategy == reasonApart }) {
		return false
	}
	return outline(got) == outline(want)
}

// outline returns the part of an ending that does not depend on which tasks ran together.
func outline(ending string) string {
	var b strings.Builder
	for line := range strings.Lines(ending) {
		switch {
		case strings.HasPrefix(line, "task "):
			line, _, _ = strings.Cut(line, " batch ")
			b.WriteString(line + "\n")
		case strings.HasPrefix(line, "index "):
			b.WriteString(line)
		}
	}
	return b.String()
}

// crashing runs a story, crashes at the n-th point between two writes, counted over the whole story, and continues in a new queue on
// the same files.
func crashing(t *testing.T, n int, want string) (points []string, end string) {
	o, e := testOptions(t)
	e.indexes["other"] = &fakeIndex{primaryKey: "id", documents: map[string]bool{"7": true}}
	o.hook = func(point string) error {
		points = append(points, point)
		if len(points) == n {
			return errCrash
		}
		return nil
	}
	q := paused(t, o)
	for _, task := range letters(t, q, story) {
		enqueue(t, q, task)
	}
	for {
		ran, _, err := q.turn()
		if err != nil {
			q.Close()
			q = paused(t, o)
			continue
		}
		if !ran {
			break
		}
	}
	if files, err := os.ReadDir(filepath.Join(o.Dir, "payloads")); err != nil || len(files) > 0 && n == 0 {
		t.Errorf("payloads left: %v %v", files, err)
	}
	if end = ending(t, q, e); sameEnding(q, end, want) {
		end = want
	}
	return points, end
}

func TestACrashAnywhereChangesNothing(t *testing.T) {
	points, want := crashing(t, 0, "")
	if len(points) < 30 {
		t.Fatalf("the story has only the points %v", points)
	}
	for n := range points {
		if _, got := crashing(t, n+1, want); got != want {
			t.Errorf("after a crash at point %d, %q:\n%s\nwant\n%s", n+1, points[n], got, want)
		}
	}
}

// TestACrashAtEveryFileOperation crashes at every operation on payloads and the journal, and loses what was not synced.
func TestACrashAtEveryFileOperation(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := int64(1); ; n++ {
		dir := filepath.ToSlash(t.TempDir())
		disk := memDisk(t, dir)
		failing := vfs.FailFrom(n, 1<<62, func(op vfs.Op) bool { return op.Kind.Changes() }, errCrash)
		var failed atomic.Bool
		o := Options{Dir: dir, MaxBatchTasks: -1, MaxBatchBytes: -1, noSync: true}
		o.FS = vfs.Hook(disk, func(op vfs.Op) error {
			err := failing(op)
			if err != nil {
				failed.Store(true)
			}
			return err
		})
		e := newFake(o.FS)
		o.engine = e
		acknowledged := map[uint32]string{}
		documents := map[string]bool{}
		q, err := open(o)
		if err == nil {
			q.done.Add(1)
			go q.commit()
			for i := range 6 {
				id := fmt.Sprint(i)
				p, err := q.NewPayload()
				if err != nil {
					break
				}
				fmt.Fprintf(p, "{\"id\":%q}\n", id)
				task, err := q.Enqueue(context.Background(), New{IndexUID: "x", Content: AddDocuments{MayCreate: true, Documents: 1}, Payload: p})
				if err != nil {
					p.Discard()
					break
				}
				acknowledged[task.UID], documents[id] = id, true
				if i%2 == 1 {
					if _, _, err := q.turn(); err != nil {
						break
					}
				}
			}
			q.Close()
		}
		o.FS = disk.CrashClone(r)
		e.fs = o.FS
		q = paused(t, o)
		drain(t, q)
		for uid, id := range acknowledged {
			task, err := q.Task(uid, nil)
			if err != nil || task.Status != Succeeded || !e.indexes["x"].documents[id] {
				t.Fatalf("crash at operation %d: task %d, document %s: %+v %v", n, uid, id, task, err)
			}
		}
		if left, err := o.FS.List(path.Join(o.Dir, "payloads")); err != nil || len(left) > 0 {
			t.Fatalf("crash at operation %d: payloads left: %v %v", n, left, err)
		}
		q.Close()
		if !failed.Load() {
			if len(acknowledged) != 6 || n < 20 {
				t.Fatalf("%d tasks, %d operations", len(acknowledged), n)
			}
			return
		}
	}
}

// memDisk returns a file system in memory on which dir can be made durable.
func memDisk(t *testing.T, dir string) *vfs.MemFS {
	t.Helper()
	disk := vfs.NewMem()
	if err := disk.MkdirAll(path.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	for up := path.Dir(dir); up != "/"; up = path.Dir(up) {
		if err := disk.SyncDir(path.Dir(up)); err != nil {
			t.Fatal(err)
		}
	}
	return disk
}

// TestAResumedBatchIsTheSame crashes in a batch, and again at every file operation of the second run. Data that was not synced is kept or
// lost at random.
func TestAResumedBatchIsTheSame(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, point := range []string{"journaled", "created", "applied"} {
		for n, failed := int64(1), true; failed; n++ {
			for range 5 {
				failed = resumedTwice(t, r, point, n)
			}
		}
	}
}

func resumedTwice(t *testing.T, r *rand.Rand, point string, n int64) bool {
	o := Options{Dir: filepath.ToSlash(t.TempDir()), MaxBatchTasks: -1, MaxBatchBytes: -1, noSync: true}
	disk := memDisk(t, o.Dir)
	e := newFake(disk)
	o.FS, o.engine = disk, e
	o.hook = func(at string) error {
		if at == point {
			return errCrash
		}
		return nil
	}
	q := paused(t, o)
	for _, n := range letters(t, q, "a A i a") {
		enqueue(t, q, n)
	}
	if _, _, err := q.turn(); err == nil {
		t.Fatal("no crash")
	}
	for _, n := range letters(t, q, "a i") { // would have joined the batch
		enqueue(t, q, n)
	}
	q.Close()

	disk = disk.CrashClone(r)
	failing := vfs.FailFrom(n, 1<<62, func(op vfs.Op) bool { return op.Kind.Changes() }, errCrash)
	var crashed atomic.Bool
	o.FS = vfs.Hook(disk, func(op vfs.Op) error {
		err := failing(op)
		if err != nil {
			crashed.Store(true)
		}
		return err
	})
	e.fs, o.hook = disk, nil
	if q, err := open(o); err == nil {
		for ran, err := true, error(nil); ran && err == nil; {
			ran, _, err = q.turn()
		}
		q.Close()
	}

	disk = disk.CrashClone(r)
	e.fs, o.FS = disk, disk
	q = paused(t, o)
	drain(t, q)
	list, err := q.listTasks(Filter{Limit: 9, Reverse: true})
	if err != nil {
		t.Fatal(err)
	}
	took := strings.Join(e.took(), "; ")
	if point == "applied" { // the same batch, whose work is not repeated
		for _, task := range list.Results[:4] {
			if task.BatchUID == nil || *task.BatchUID != 0 || task.Status != Succeeded {
				t.Errorf("%s, then operation %d: task %d is %s in batch %v: %v", point, n, task.UID, task.Status, task.BatchUID, task.Error)
			}
		}
		want := "create x; x: add 1 add 1 delete 1 add 1; x: add 1 delete 1"
		apart := "create x; x: add 1 add 1 delete 1 add 1; x: add 1; x: delete 1" // if the next batch was running at the second crash
		if took != want && took != apart {
			t.Errorf("%s, then operation %d: the indexes did %s, want %s", point, n, took, want)
		}
		return crashed.Load()
	}
	done, guilty := 0, 0 // the batch changed nothing: each of its tasks runs alone, and at most one of them was running at both crashes
	for i, task := range list.Results {
		switch {
		case task.Status == Succeeded:
			done++
		case task.Status == Failed && strings.Contains(task.Error.Message, "ended 2 times"):
			guilty++
		case task.Status != Failed || task.Error.Code != "index_not_found":
			t.Errorf("%s, then operation %d: task %d is %s: %v", point, n, task.UID, task.Status, task.Error)
		}
		if i > 0 && i <= 4 && *task.BatchUID == *list.Results[i-1].BatchUID {
			t.Errorf("%s, then operation %d: tasks %d and %d run together", point, n, i-1, i)
		}
	}
	if ops := strings.Count(took, "add") + strings.Count(took, "delete"); guilty > 1 || ops != done {
		t.Errorf("%s, then operation %d: %d tasks succeeded, %d were given up, and the indexes did %s", point, n, done, guilty, took)
	}
	return crashed.Load()
}

// TestABatchThatEndsTheProgram runs a batch that crashes each time, which must fail in the end, and one that is stopped in order each
// time, which must not.
func TestABatchThatEndsTheProgram(t *testing.T) {
	for _, kind := range []string{"addition", "dump"} {
		for _, crash := range []bool{true, false} {
			o, e := testOptions(t)
			ran := 0
			var q *Queue
			o.Executors = map[Kind]Executor{DumpCreation: func(context.Context, *Queue, []*Task, index.Progress) ([]Outcome, error) {
				return []Outcome{{}}, nil
			}}
			o.hook = func(at string) error {
				if at != "journaled" {
					return nil
				}
				if ran++; crash {
					return errCrash
				}
				q.stop(errClosed)
				return errClosed
			}
			q = paused(t, o)
			content := New{Content: CreateDump{}}
			if kind == "addition" {
				content = letters(t, q, "a")[0]
			}
			enqueue(t, q, content)
			for range 5 {
				_, _, _ = q.turn()
				q.Close()
				q = paused(t, o)
			}
			if !crash {
				o.hook = nil
				q.Close()
				q = paused(t, o)
				drain(t, q)
			}
			task, err := q.Task(0, nil)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case crash && (ran != maxCrashes || task.Status != Failed || !strings.Contains(task.Error.Message, "ended 2 times") || len(e.took()) > 0):
				t.Errorf("%s: a task that ends the program ran %d times, and is %s: %v", kind, ran, task.Status, task.Error)
			case !crash && (ran != 5 || task.Status != Succeeded):
				t.Errorf("%s: a task that was stopped %d times in order is %s: %v", kind, ran, task.Status, task.Error)
			}
		}
	}
}

// TestOnlyTheGuiltyTaskFails lets one of several tasks crash the process each time it runs: the other tasks of its batch must succeed.
func TestOnlyTheGuiltyTaskFails(t *testing.T) {
	for _, there := range []bool{true, false} { // whether the index exists before
		for _, story := range []string{"a a a a", "a s a a", "a i a f"} {
			for guilty := range uint32(3) {
				name := fmt.Sprintf("task %d of %q, index there: %t", guilty, story, there)
				o, e := testOptions(t)
				if there {
					if err := e.create("x", "", 0); err != nil {
						t.Fatal(err)
					}
				}
				ran, turns := 0, 0
				var q *Queue
				o.hook = func(at string) error {
					run := q.roster.running.holding(guilty)
					if run != nil && (at == "created" || at == "journaled" && !run.Create) {
						ran++
						return errCrash
					}
					return nil
				}
				q = paused(t, o)
				for _, n := range letters(t, q, story) {
					enqueue(t, q, n)
				}
				for more := true; more; turns++ {
					var err error
					more, _, err = q.turn()
					if err != nil || turns%3 == 2 { // or a stop in order, between two batches
						more = true
						q.Close()
						q = paused(t, o)
					}
					if turns > 50 {
						t.Fatalf("%s: the tasks do not end", name)
					}
				}
				list, err := q.listTasks(Filter{Limit: 10})
				if err != nil {
					t.Fatal(err)
				}
				for _, task := range list.Results {
					want := Succeeded
					if task.UID == guilty {
						want = Failed
					}
					if task.Status != want {
						t.Errorf("%s: task %d is %s: %v", name, task.UID, task.Status, task.Error)
					}
				}
				if ran != maxCrashes {
					t.Errorf("%s: the guilty task ran %d times", name, ran)
				}
				if left, err := os.ReadDir(filepath.Join(o.Dir, lostDir)); err == nil {
					t.Errorf("%s: payloads were quarantined: %v", name, left)
				}
			}
		}
	}
}

func TestACancelationStopsAResumedBatchUnlessItWasApplied(t *testing.T) {
	for point, want := range map[string]Status{"journaled": Canceled, "created": Canceled, "applied": Succeeded} {
		o, e := testOptions(t)
		crashed := false
		o.hook = func(at string) error {
			if at == point && !crashed {
				crashed = true
				return errCrash
			}
			return nil
		}
		q := paused(t, o)
		enqueue(t, q, letters(t, q, "a")[0])
		if _, _, err := q.turn(); err == nil {
			t.Fatal("no crash")
		}
		enqueue(t, q, New{Content: CancelTasks{"?uids=0", []uint32{0}}})
		q.Close()
		q = paused(t, o)
		drain(t, q)
		task, err := q.Task(0, nil)
		if err != nil || task.Status != want {
			t.Errorf("%s: %+v %v, want %v", point, task, err, want)
		}
		documents := 0
		if ix := e.indexes["x"]; ix != nil {
			documents = len(ix.documents)
		}
		if (documents > 0) != (want == Succeeded) {
			t.Errorf("%s: %d documents", point, documents)
		}
	}
}

func TestPayloadsThatNoTaskNamesAreSwept(t *testing.T) {
	o, _ := testOptions(t)
	q := paused(t, o)
	enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1"))
	p, err := q.NewPayload()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(p, "{}")
	p.file.Close() // as the system does when the process ends
	q.Close()
	q = paused(t, o)
	if files, _ := os.ReadDir(filepath.Join(o.Dir, "payloads")); len(files) != 1 {
		t.Errorf("%d payloads", len(files))
	}
	if q.payloadBytes.Load() == 0 {
		t.Error("no payload bytes after a restart")
	}
	drain(t, q)
	if task, err := q.Task(0, nil); err != nil || task.Status != Succeeded {
		t.Errorf("%+v %v", task, err)
	}
}

func TestASecondProcessIsRefused(t *testing.T) {
	o, _ := testOptions(t)
	paused(t, o)
	if q, err := Open(o); err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Errorf("%v %v", q, err)
	}
}

func TestADamagedQueueIsNamed(t *testing.T) {
	o, _ := testOptions(t)
	q := paused(t, o)
	enqueue(t, q, New{IndexUID: "x", Content: CreateIndex{}})
	if err := q.update(func(tx *txn) error { return boltfile.Put(tx.tasks, key(0), []byte{9, 9}) }); err != nil {
		t.Fatal(err)
	}
	q.Close()
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "queue.db: section tasks") {
		t.Errorf("%v", err)
	}
}

// TestPayloadsBesideAFailedSync receives a payload while the sync of another name fails: the name of the payload must be made
// durable again.
func TestPayloadsBesideAFailedSync(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	disk, fails := memDisk(t, dir), false
	o := Options{Dir: dir, MaxBatchTasks: -1, MaxBatchBytes: -1, noSync: true}
	o.FS = vfs.Hook(disk, disk.LoseOnError(func(op vfs.Op) error {
		if fails && op.Kind == vfs.OpSyncDir && path.Base(op.Name) == "payloads" {
			return errCrash
		}
		return nil
	}))
	o.engine = newFake(o.FS)
	q := paused(t, o)
	receive := func() *Payload {
		p, err := q.NewPayload()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(p, `{"id":"1"}`)
		return p
	}
	enqueue := func(p *Payload) error {
		_, err := q.Enqueue(t.Context(), New{IndexUID: "x", Content: AddDocuments{MayCreate: true, Documents: 1}, Payload: p})
		return err
	}
	before, other := receive(), receive()
	fails = true
	if enqueue(other) == nil {
		t.Fatal("a name that is not durable gives no error")
	}
	other.Discard()
	fails = false
	after := receive()
	for _, p := range []*Payload{before, after} {
		name := p.name
		if err := enqueue(p); err != nil {
			t.Fatal(err)
		}
		if _, err := disk.CrashClone(nil).Stat(path.Join(dir, "payloads", name)); err != nil {
			t.Errorf("a power failure loses the payload of an accepted task: %v", err)
		}
	}
}

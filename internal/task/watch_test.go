package task

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// changes waits for the next changes of a watch and writes each as "uid status".
func changes(t *testing.T, q *Queue, w *Watch, f Filter) []string {
	t.Helper()
	select {
	case <-w.Changed():
	case <-time.After(time.Minute):
		t.Fatal("no change arrives")
	}
	tasks, err := q.ChangedTasks(w, f)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{}
	for _, task := range tasks {
		shown = append(shown, fmt.Sprintf("%d %s", task.UID, task.Status))
	}
	return shown
}

// TestWatchShowsEachState holds a batch at each state and checks what the watches report.
func TestWatchShowsEachState(t *testing.T) {
	o, e := testOptions(t)
	e.indexes["x"] = &fakeIndex{primaryKey: "id", documents: map[string]bool{}}
	e.indexes["y"] = &fakeIndex{primaryKey: "id", documents: map[string]bool{}}
	e.block, e.entered = make(chan struct{}), make(chan struct{})
	q := openQueue(t, o)
	w, hidden, batches := q.WatchTasks(), q.WatchTasks(), q.WatchBatches()
	onlyY := Filter{Allowed: func(uid string) bool { return uid == "y" }}
	expect := func(w *Watch, f Filter, want ...string) {
		t.Helper()
		if got := changes(t, q, w, f); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	enqueue(t, q, adding(t, q, "x", AddDocuments{}, "1"))
	<-e.entered
	expect(w, Filter{}, "0 processing") // no watch asked before, so that "enqueued" is skipped
	expect(hidden, onlyY)
	enqueue(t, q, adding(t, q, "y", AddDocuments{}, "1"))
	expect(w, Filter{}, "1 enqueued")
	expect(hidden, onlyY, "1 enqueued")
	<-batches.Changed()
	running, err := q.ChangedBatches(batches, Filter{})
	if err != nil || len(running) != 1 || running[0].UID != 0 || running[0].Progress == nil {
		t.Errorf("%+v %v", running, err)
	}
	enqueue(t, q, New{Content: CancelTasks{Query: "?uids=0", Tasks: []uint32{0}}})
	wait(t, q, 2)
	<-e.entered // the task of y
	expect(w, Filter{}, "0 canceled", "1 processing", "2 succeeded")
	close(e.block)
	wait(t, q, 1)
	expect(w, Filter{Statuses: []Status{Failed}})
	<-batches.Changed()
	ended, err := q.ChangedBatches(batches, onlyY)
	if err != nil || len(ended) != 1 || ended[0].Progress != nil || ended[0].Stats.Indexes["y"] != 1 {
		t.Errorf("%+v %v", ended, err)
	}
	for _, w := range []*Watch{w, hidden, batches} {
		w.Close()
	}
	if len(q.watches.open) != 0 || q.watches.ofBatches.Load() != 0 {
		t.Errorf("closed watches stay: %v", q.watches.open)
	}
}

// TestWatchReadsInParts has more changes than one call returns.
func TestWatchReadsInParts(t *testing.T) {
	o, _ := testOptions(t)
	q := paused(t, o)
	w := q.WatchTasks()
	defer w.Close()
	const n = 3*watchedResults + 5
	for range n {
		enqueue(t, q, New{Content: CreateDump{}})
	}
	var got []string
	for parts := 1; len(got) < n; parts++ {
		part := changes(t, q, w, Filter{})
		if len(part) == 0 || len(part) > watchedResults || parts > 4 {
			t.Fatalf("part %d has %d tasks", parts, len(part))
		}
		got = append(got, part...)
	}
	for uid, s := range got {
		if want := fmt.Sprintf("%d enqueued", uid); s != want {
			t.Fatalf("%s, want %s", s, want)
		}
	}
}

// TestWatchMissesNothing asks at random moments while tasks run: the states of each task must come in order, and the last one must be its
// current state.
func TestWatchMissesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	o, e := testOptions(t)
	o.MaxBatchTasks = 7
	e.indexes["x"] = &fakeIndex{primaryKey: "id", documents: map[string]bool{}}
	q := openQueue(t, o)
	w := q.WatchTasks()
	defer w.Close()
	const n = 300
	go func() {
		for i := range n {
			if i%10 == 9 {
				enqueue(t, q, New{Content: CancelTasks{Query: "?", Tasks: []uint32{uint32(i - 1), uint32(i - 2)}}})
			} else {
				enqueue(t, q, adding(t, q, "x", AddDocuments{}, fmt.Sprint(i)))
			}
		}
	}()
	last := map[uint32]Status{}
	for ended := 0; ended < n; {
		<-w.Changed()
		if rnd.IntN(3) == 0 {
			time.Sleep(time.Duration(rnd.IntN(3)) * time.Millisecond)
		}
		tasks, err := q.ChangedTasks(w, Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			before, seen := last[task.UID]
			if seen && before.Finished() {
				t.Fatalf("task %d changed from %s to %s", task.UID, before, task.Status)
			}
			last[task.UID] = task.Status
			if task.Status.Finished() {
				ended++
			}
		}
	}
	for uid := range uint32(n) {
		if task, err := q.Task(uid, nil); err != nil || task.Status != last[uid] {
			t.Errorf("task %d: %v %v, the watch reported %s", uid, task, err, last[uid])
		}
	}
}

// TestAnIdleWatchIsSmall checks that a watch that is never read holds one bit per task, however often tasks change.
func TestAnIdleWatchIsSmall(t *testing.T) {
	o, _ := testOptions(t)
	q := paused(t, o)
	w := q.WatchTasks()
	defer w.Close()
	for range 100 {
		for uid := uint32(0); uid < 1_000_000; uid += 1000 {
			q.watches.tell(roaring.BitmapOf(uid), nil)
		}
	}
	if n := w.changed.GetCardinality(); n != 1000 {
		t.Errorf("%d tasks have changed", n)
	}
	if size := w.changed.GetSizeInBytes(); size > 16<<10 {
		t.Errorf("a watch holds %d bytes", size)
	}
}

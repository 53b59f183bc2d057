package task

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/boltfile"
)

// parted runs a cancelation of five tasks and two overlapping deletions in parts of two, and crashes at the n-th point between two writes.
// It returns the points and the final state.
func parted(t *testing.T, n int) (points []string, left string) {
	t.Helper()
	o, e := testOptions(t)
	o.partTasks = 2
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { now = now.Add(time.Second); return now }
	o.hook = func(point string) error {
		points = append(points, point)
		if len(points) == n {
			return errCrash
		}
		return nil
	}
	q := paused(t, o)
	run := func() {
		for {
			ran, _, err := q.turn()
			if err != nil {
				if err := q.Close(); err != nil {
					t.Fatal(err)
				}
				q = paused(t, o)
				continue
			}
			if !ran {
				return
			}
		}
	}
	for _, n := range letters(t, q, "a i y s f") { // 0 to 4
		enqueue(t, q, n)
	}
	enqueue(t, q, New{Content: CancelTasks{"?uids=0,1,2,3,4", []uint32{0, 1, 2, 3, 4}}}) // 5
	run()
	for range 3 { // 6 to 8
		enqueue(t, q, New{IndexUID: "z", Content: CreateIndex{}})
	}
	run()
	enqueue(t, q, New{Content: DeleteTasks{Query: "?1", Tasks: []uint32{0, 1, 2, 3, 6, 9}}})       // 9
	enqueue(t, q, New{Content: DeleteTasks{Query: "?2", Tasks: []uint32{1, 3, 4, 6, 7, 9, 4711}}}) // 10
	enqueue(t, q, New{IndexUID: "z", Content: CreateIndex{}})                                      // 11
	run()
	sameMemory(t, q)
	return points, ending(t, q, e)
}

func TestACrashBetweenPartsChangesNothing(t *testing.T) {
	points, want := parted(t, 0)
	for point, n := range map[string]int{"part stored": 2, "part deleted": 3} {
		if got := len(slices.DeleteFunc(slices.Clone(points), func(p string) bool { return p != point })); got != n {
			t.Errorf("%d points %q, want %d", got, point, n)
		}
	}
	for _, line := range []string{
		`task 5  succeeded batch 0 {"matchedTasks":5,"canceledTasks":5,"originalFilter":"?uids=0,1,2,3,4"}`,
		`task 9  succeeded batch 4 {"matchedTasks":6,"deletedTasks":5,"originalFilter":"?1"}`,
		`task 10  succeeded batch 4 {"matchedTasks":7,"deletedTasks":2,"originalFilter":"?2"}`,
		`batch 0 6 {"receivedDocuments":2,"indexedDocuments":0,"providedIds":1,"deletedDocuments":0,`,
	} {
		if !strings.Contains(want, line) {
			t.Errorf("missing line %s in\n%s", line, want)
		}
	}
	for n := range points {
		if _, got := parted(t, n+1); got != want {
			t.Errorf("after a crash at point %d, %q:\n%s\nwant\n%s", n+1, points[n], got, want)
		}
	}
}

// TestAnInterruptedCancelationRunsFirst checks that a cancelation which a crash interrupted runs first, even before a newer one that is to
// cancel it, because its batch is not stored yet.
func TestAnInterruptedCancelationRunsFirst(t *testing.T) {
	o, _ := testOptions(t)
	o.partTasks = 2
	crashed := false
	o.hook = func(point string) error {
		if point == "part stored" && !crashed {
			crashed = true
			return errCrash
		}
		return nil
	}
	q := paused(t, o)
	for _, n := range letters(t, q, "a a a a a") {
		enqueue(t, q, n)
	}
	first := enqueue(t, q, New{Content: CancelTasks{"?", []uint32{0, 1, 2, 3, 4}}})
	if _, _, err := q.turn(); err == nil {
		t.Fatal("no crash")
	}
	second := enqueue(t, q, New{Content: CancelTasks{"?", []uint32{first.UID}}})
	q.Close()
	q = paused(t, o)
	drain(t, q)
	for uid := range second.UID + 1 {
		task, err := q.Task(uid, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, batch := Canceled, uint32(0)
		if uid >= first.UID {
			want, batch = Succeeded, uid-first.UID
		}
		if task.Status != want || *task.BatchUID != batch {
			t.Errorf("task %d is %v in batch %d, want %v in batch %d", uid, task.Status, *task.BatchUID, want, batch)
		}
	}
	if task, err := q.Task(second.UID, nil); err != nil || string(task.Details) != `{"matchedTasks":1,"canceledTasks":0,"originalFilter":"?"}` {
		t.Errorf("%v: the second cancelation: %s", err, task.Details)
	}
	if b, err := q.Batch(0, nil); err != nil || b.Stats.Total != 6 || b.Stats.Statuses[Canceled] != 5 {
		t.Errorf("%v: batch 0 is %+v", err, b)
	}
	sameMemory(t, q)
}

// TestADeletionIsCanceledBetweenParts checks that a deletion can be canceled between two parts, and reports what it has deleted.
func TestADeletionIsCanceledBetweenParts(t *testing.T) {
	o, _ := testOptions(t)
	o.partTasks = 2
	var q *Queue
	o.hook = func(point string) error {
		if point == "part deleted" {
			enqueue(t, q, New{Content: CancelTasks{"?", []uint32{6}}})
		}
		return nil
	}
	q = paused(t, o)
	for range 6 {
		enqueue(t, q, New{IndexUID: "z", Content: CreateIndex{}})
	}
	drain(t, q)
	enqueue(t, q, New{Content: DeleteTasks{Query: "?", Tasks: []uint32{0, 1, 2, 3, 4, 5}}}) // 6
	drain(t, q)
	task, err := q.Task(6, nil)
	if err != nil || task.Status != Canceled || string(task.Details) != `{"matchedTasks":6,"deletedTasks":2,"originalFilter":"?"}` {
		t.Errorf("%v: the deletion is %v, %s", err, task.Status, task.Details)
	}
	if left, err := q.Match(Filter{}); err != nil || !slices.Equal(left, []uint32{2, 3, 4, 5, 6, 7}) {
		t.Errorf("%v: tasks left: %v", err, left)
	}
}

// storeMany enqueues many tasks without waiting for each, and returns their uids.
func storeMany(t testing.TB, q *Queue, n int, what func(i int) New) (uids []uint32) {
	t.Helper()
	for i := 0; i < n; i += maxGroup {
		var group []*request
		for j := i; j < min(i+maxGroup, n); j++ {
			r := &request{New: what(j)}
			var err error
			if r.content, err = encodeContent(r.Content); err != nil {
				t.Fatal(err)
			}
			group = append(group, r)
		}
		q.store(group)
		for _, r := range group {
			if r.err != nil {
				t.Fatal(r.err)
			}
			uids = append(uids, r.task.UID)
		}
	}
	return uids
}

// TestPartsAreBounded checks that however many tasks are canceled or deleted, each transaction changes a bounded part of them, other calls
// run between two transactions, and no batch record is decoded.
func TestPartsAreBounded(t *testing.T) {
	const tasks, part = 3000, 100
	o, _ := testOptions(t)
	o.partTasks = part
	enqueued := func(q *Queue) int { return int(q.roster.byStatus[Enqueued].GetCardinality()) }
	var q *Queue
	var commits, most, others int
	o.commit = func(tx *boltfile.Tx) error {
		commits++
		return tx.Commit()
	}
	was := 0
	o.hook = func(point string) error {
		if !strings.HasPrefix(point, "part ") {
			return nil
		}
		left := enqueued(q) + int(q.roster.tasks.GetCardinality())
		if was > 0 {
			most = max(most, was-left)
		}
		if others < 3 { // other calls run without waiting
			others++
			enqueue(t, q, New{IndexUID: "a", Content: CreateIndex{}})
			if _, err := q.listTasks(Filter{Limit: 20}); err != nil {
				t.Error(err)
			}
		}
		was = enqueued(q) + int(q.roster.tasks.GetCardinality())
		return nil
	}
	q = paused(t, o)
	all := storeMany(t, q, tasks, func(i int) New { return New{IndexUID: fmt.Sprint("index-", i%7), Content: ClearDocuments{}} })
	enqueue(t, q, New{Content: CancelTasks{"?", all}})
	commits = 0
	turn := func() {
		t.Helper()
		if ran, _, err := q.turn(); !ran || err != nil {
			t.Fatal(ran, err)
		}
	}
	turn()
	if commits != tasks/part+others || most > part {
		t.Errorf("%d tasks were canceled in %d transactions, up to %d in one", tasks, commits-others, most)
	}
	drain(t, q)
	enqueue(t, q, New{Content: DeleteTasks{Query: "?", Tasks: all}})
	commits, most, was, others = 0, 0, 0, 0
	turn()
	if commits != tasks/part+others || most > part {
		t.Errorf("%d tasks were deleted in %d transactions, up to %d in one", tasks, commits-others, most)
	}
	sameMemory(t, q)
}

// TestDeletedBatchesAreNotDecoded checks that deleting tasks with a batch each allocates little: the batch records, which are JSON,
// are not decoded.
func TestDeletedBatchesAreNotDecoded(t *testing.T) {
	const tasks, most = 2000, 25
	o, _ := testOptions(t)
	million(t, o, tasks)
	q := paused(t, o)
	all, err := q.Match(Filter{})
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, q, New{Content: DeleteTasks{Query: "?", Tasks: all}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if ran, _, err := q.turn(); !ran || err != nil {
		t.Fatal(ran, err)
	}
	runtime.ReadMemStats(&after)
	if n := (after.Mallocs - before.Mallocs) / tasks; n > most {
		t.Errorf("%d allocations for each deleted task, want at most %d", n, most)
	}
	if left, err := q.Match(Filter{}); err != nil || !slices.Equal(left, []uint32{tasks}) {
		t.Errorf("%v: tasks left: %v", err, left)
	}
	if q.roster.batches.GetCardinality() != 1 {
		t.Errorf("%d batches are left", q.roster.batches.GetCardinality())
	}
}

// TestTheFileShrinksByItself checks that the file is compacted in the background after tasks were deleted, or at the next start,
// while others write.
func TestTheFileShrinksByItself(t *testing.T) {
	o, _ := testOptions(t)
	o.shrinkFrom = 64 << 10
	million(t, o, 3000)
	q := paused(t, o) // no background compaction
	large := q.DiskBytes()
	all, err := q.Match(Filter{})
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, q, New{Content: DeleteTasks{Query: "?", Tasks: all}})
	drain(t, q)
	if got := q.DiskBytes(); got < large {
		t.Errorf("%d bytes became %d before the file was compacted", large, got)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	small := func(q *Queue) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); q.DiskBytes() > large/2; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the file has %d bytes, before %d", q.DiskBytes(), large)
			}
		}
	}
	q = openQueue(t, o)
	small(q)
	last := storeMany(t, q, 600, func(int) New {
		return New{IndexUID: "a", Content: CreateIndex{PrimaryKey: strings.Repeat("k", 5000)}}
	})[599]
	wait(t, q, last)
	large = q.DiskBytes()
	uids, err := q.Match(Filter{Statuses: []Status{Succeeded, Failed}})
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, q, New{Content: DeleteTasks{Query: "?", Tasks: uids}})
	small(q)
	wait(t, q, enqueue(t, q, New{IndexUID: "b", Content: CreateIndex{}}).UID)
}

// TestCompactBesideWriters stores tasks and ends batches between all steps of a compaction: the new file must have all of them.
func TestCompactBesideWriters(t *testing.T) {
	o, e := testOptions(t)
	q := paused(t, o)
	steps := 0
	for range 3 {
		storeMany(t, q, 150, func(int) New { // so that there are several steps
			return New{IndexUID: "a", Content: CreateIndex{PrimaryKey: strings.Repeat("k", 10_000)}}
		})
		drain(t, q)
		_, _, err := q.compact(func() error {
			steps++
			for _, n := range letters(t, q, "a i n") {
				enqueue(t, q, n)
			}
			if _, _, err := q.turn(); err != nil {
				return err
			}
			uids, err := q.Match(Filter{Statuses: []Status{Failed}, Limit: 3})
			if err == nil && len(uids) > 0 {
				enqueue(t, q, New{Content: DeleteTasks{Query: "?", Tasks: uids[:1]}})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if steps < 9 {
		t.Errorf("only %d steps", steps)
	}
	drain(t, q)
	sameMemory(t, q)
	want := ending(t, q, e)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	q = paused(t, o)
	if got := ending(t, q, e); got != want {
		t.Errorf("after a restart:\n%s\nwant\n%s", got, want)
	}
}

// TestManyPayloadsAreRemovedInTheBackground checks that the payloads of many tasks that end together are removed in the background, also
// after a restart, without delaying other tasks.
func TestManyPayloadsAreRemovedInTheBackground(t *testing.T) {
	o := Options{Dir: filepath.ToSlash(t.TempDir()), MaxBatchTasks: -1, MaxBatchBytes: -1, noSync: true}
	o.FS = memDisk(t, o.Dir)
	o.engine = newFake(o.FS)
	payloads := func() int {
		names, err := o.FS.List(path.Join(o.Dir, "payloads"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	q := paused(t, o) // no background removal
	for range fewPayloads + 1 {
		enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1"))
	}
	drain(t, q)
	if n := payloads(); n != fewPayloads+1 || q.DiskBytes() <= fileBytes(q.db) {
		t.Fatalf("%d payloads, and %d bytes, are left", n, q.DiskBytes())
	}
	enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1"))
	drain(t, q)
	if n := payloads(); n != fewPayloads+1 {
		t.Errorf("one payload more was not removed at once: %d are left", n)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	gone := func(q *Queue) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); payloads() > 0 || q.payloadBytes.Load() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d payloads of %d bytes are left", payloads(), q.payloadBytes.Load())
			}
		}
	}
	q = openQueue(t, o)
	gone(q)
	var last uint32
	for range fewPayloads + 1 {
		last = enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1")).UID
	}
	wait(t, q, last)
	gone(q)
}

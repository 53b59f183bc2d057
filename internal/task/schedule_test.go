package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/index"
)

// executors returns executors for the kinds of other packages that do nothing.
func executors() map[Kind]Executor {
	done := func(_ context.Context, _ *Queue, tasks []*Task, _ index.Progress) ([]Outcome, error) {
		return make([]Outcome, len(tasks)), nil
	}
	m := map[Kind]Executor{}
	for _, k := range []Kind{DumpCreation, SnapshotCreation, Export, UpgradeDatabase, NetworkTopologyChange, RuleUpdate, RuleClear} {
		m[k] = done
	}
	return m
}

func TestOrderOfKinds(t *testing.T) {
	o, e := testOptions(t)
	o.Executors = executors()
	e.indexes["x"] = &fakeIndex{primaryKey: "id", documents: map[string]bool{}}
	var order []string
	o.OnBatch = func(tasks []*Task) {
		var uids []string
		for _, task := range tasks {
			uids = append(uids, fmt.Sprint(task.UID))
		}
		order = append(order, tasks[0].Kind.String()+" "+strings.Join(uids, ","))
	}
	q := paused(t, o)
	for range 2 {
		enqueue(t, q, adding(t, q, "x", AddDocuments{}, "1")) // 0 9
		enqueue(t, q, New{Content: CreateDump{}})             // 1 10
		enqueue(t, q, New{Content: CreateSnapshot{}})         // 2 11
		enqueue(t, q, New{Content: ExportTo{URL: "http://x"}})
		enqueue(t, q, New{IndexUID: "x", Content: CompactIndex{}})
		enqueue(t, q, New{Content: DeleteTasks{Query: "?uids=99"}})
		enqueue(t, q, New{Content: ChangeTopology{}})
		enqueue(t, q, New{Content: CancelTasks{Query: "?uids=99"}})
		enqueue(t, q, New{Content: CancelTasks{Query: "?uids=99"}})
	}
	enqueue(t, q, New{Content: Upgrade{}})
	drain(t, q)
	want := []string{
		"taskCancelation 17", "taskCancelation 16", "taskCancelation 8", "taskCancelation 7", "upgradeDatabase 18",
		"taskDeletion 5,14", "indexCompaction 4", "export 3", "snapshotCreation 2", "dumpCreation 1", "documentAdditionOrUpdate 0", "networkTopologyChange 6",
		"indexCompaction 13", "export 12", "snapshotCreation 11", "dumpCreation 10", "documentAdditionOrUpdate 9", "networkTopologyChange 15",
	}
	if !slices.Equal(order, want) {
		t.Errorf("ran as\n%s\nwant\n%s", strings.Join(order, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFailedUpgradeStopsEverything(t *testing.T) {
	o, _ := testOptions(t)
	o.Executors = executors()
	works := o.Executors[UpgradeDatabase]
	o.Executors[UpgradeDatabase] = func(context.Context, *Queue, []*Task, index.Progress) ([]Outcome, error) {
		return nil, errors.New("no room")
	}
	q := paused(t, o)
	enqueue(t, q, New{Content: Upgrade{From: "v1", To: "v2"}})
	enqueue(t, q, New{IndexUID: "x", Content: CreateIndex{}})
	drain(t, q)
	for uid, want := range []Status{Failed, Enqueued} {
		if task, err := q.Task(uint32(uid), nil); err != nil || task.Status != want {
			t.Errorf("task %d: %+v %v, want %v", uid, task, err, want)
		}
	}
	q.Close()
	o.Executors[UpgradeDatabase] = works
	q = paused(t, o)
	drain(t, q)
	for uid := range 2 {
		if task, err := q.Task(uint32(uid), nil); err != nil || task.Status != Succeeded || task.Error != nil {
			t.Errorf("after a restart, task %d: %+v %v", uid, task, err)
		}
	}
}

func TestExecutorsGiveDetailsAndErrors(t *testing.T) {
	o, _ := testOptions(t)
	o.Executors = map[Kind]Executor{SnapshotCreation: func(_ context.Context, _ *Queue, tasks []*Task, p index.Progress) ([]Outcome, error) {
		p(0, index.Step{Name: "start the snapshot creation", Total: 6})
		return []Outcome{{Details: []byte(`{"x":1}`)}, {Err: apierr.New("dump_process_failed", "no")}}, nil
	}}
	q := paused(t, o)
	enqueue(t, q, New{Content: CreateSnapshot{}})
	enqueue(t, q, New{Content: CreateSnapshot{}})
	drain(t, q)
	a, _ := q.Task(0, nil)
	b, _ := q.Task(1, nil)
	if a.Status != Succeeded || string(a.Details) != `{"x":1}` || b.Status != Failed || b.Error.Code != "dump_process_failed" {
		t.Errorf("%+v %+v", a, b)
	}
}

func TestCancelQueuedTasks(t *testing.T) {
	o, _ := testOptions(t)
	var told [][]uint32
	o.OnBatch = func(tasks []*Task) {
		var uids []uint32
		for _, task := range tasks {
			uids = append(uids, task.UID)
		}
		told = append(told, uids)
	}
	q := paused(t, o)
	enqueue(t, q, New{IndexUID: "x", Content: CreateIndex{}})
	drain(t, q)
	enqueue(t, q, adding(t, q, "x", AddDocuments{}, "1", "2"))                                            // 1
	enqueue(t, q, New{IndexUID: "x", Content: DeleteDocuments{IDs: []string{"a"}}})                       // 2
	enqueue(t, q, New{IndexUID: "x", Content: UpdateSettings{Update: mustUpdate(t, `{"stopWords":[]}`)}}) // 3
	uids, err := q.Match(Filter{IndexUIDs: []string{"x"}})
	if err != nil || !slices.Equal(uids, []uint32{0, 1, 2, 3}) {
		t.Fatalf("match %v %v", uids, err)
	}
	enqueue(t, q, New{Content: CancelTasks{"?indexUids=x", []uint32{0, 1, 2}}}) // 4
	enqueue(t, q, New{Content: CancelTasks{"?uids=4", []uint32{4}}})            // 5 cancels the cancelation first
	enqueue(t, q, New{Content: CancelTasks{"?uids=1,2", []uint32{1, 2, 6, 7}}}) // 6 leaves itself and later ones out
	drain(t, q)
	want := []struct {
		status  Status
		by      int
		details string
	}{
		{Succeeded, -1, `{"primaryKey":null}`},
		{Canceled, 6, `{"receivedDocuments":2,"indexedDocuments":0}`},
		{Canceled, 6, `{"providedIds":1,"deletedDocuments":0,"originalFilter":null}`},
		{Succeeded, -1, `{"stopWords":[]}`},
		{Canceled, 5, `{"matchedTasks":3,"canceledTasks":0,"originalFilter":"?indexUids=x"}`},
		{Succeeded, -1, `{"matchedTasks":1,"canceledTasks":1,"originalFilter":"?uids=4"}`},
		{Succeeded, -1, `{"matchedTasks":4,"canceledTasks":2,"originalFilter":"?uids=1,2"}`},
	}
	for uid, w := range want {
		task, err := q.Task(uint32(uid), nil)
		if err != nil {
			t.Fatal(err)
		}
		by := -1
		if task.CanceledBy != nil {
			by = int(*task.CanceledBy)
		}
		if task.Status != w.status || by != w.by || string(task.Details) != w.details {
			t.Errorf("task %d: %v by %d %s, want %v by %d %s", uid, task.Status, by, task.Details, w.status, w.by, w.details)
		}
	}
	if fmt.Sprint(told) != "[[0] [1 2 6] [4 5] [3]]" {
		t.Errorf("batches %v", told)
	}
	batch, err := q.Batch(1, nil)
	if err != nil || string(batch.Details) != `{"receivedDocuments":2,"indexedDocuments":0,"providedIds":1,"deletedDocuments":0,"originalFilter":"?uids=1,2","matchedTasks":4,"canceledTasks":2}` {
		t.Errorf("%+v %v", batch, err)
	}
	if got := batch.Stats; got.Total != 3 || got.Statuses[Canceled] != 2 || got.Indexes["x"] != 2 {
		t.Errorf("%+v", got)
	}
	if list, err := q.listTasks(Filter{CanceledBy: []uint32{6}, Limit: 9}); err != nil || list.Total != 2 {
		t.Errorf("%+v %v", list, err)
	}
	if list, err := q.listBatches(Filter{CanceledBy: []uint32{6}, Limit: 9}); err != nil || list.Total != 1 || list.Results[0].UID != 1 {
		t.Errorf("%+v %v", list, err)
	}
	files, _ := os.ReadDir(filepath.Join(o.Dir, "payloads"))
	if len(files) != 0 {
		t.Errorf("payloads left: %v", files)
	}
}

func TestCancelRunningTasks(t *testing.T) {
	o, e := testOptions(t)
	e.block, e.entered = make(chan struct{}), make(chan struct{}, 9)
	q := openQueue(t, o)
	now := time.Now()
	enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1")) // runs, blocked
	<-e.entered
	enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "2")) // 1 waits

	running, err := q.Task(0, nil)
	if err != nil || running.Status != Processing || *running.BatchUID != 0 || running.StartedAt.IsZero() || !running.FinishedAt.IsZero() {
		t.Fatalf("%+v %v", running, err)
	}
	if !q.Indexing("x") || q.Indexing("y") {
		t.Error("Indexing does not report x")
	}
	count := func(f Filter) int {
		list, err := q.listTasks(f)
		if err != nil {
			t.Fatal(err)
		}
		return list.Total
	}
	for _, c := range []struct {
		f    Filter
		want int
	}{
		{Filter{Statuses: []Status{Processing}}, 1}, {Filter{Statuses: []Status{Enqueued}}, 1}, {Filter{Statuses: []Status{Enqueued, Processing}}, 2},
		{Filter{BatchUIDs: []uint32{0}}, 1}, {Filter{AfterStartedAt: now}, 1}, {Filter{BeforeStartedAt: now}, 0}, {Filter{AfterFinishedAt: now}, 0},
	} {
		if got := count(c.f); got != c.want {
			t.Errorf("%+v: %d tasks, want %d", c.f, got, c.want)
		}
	}
	batches, err := q.listBatches(Filter{Statuses: []Status{Processing}, Limit: 1})
	if err != nil || batches.Total != 1 {
		t.Fatalf("%+v %v", batches, err)
	}
	b := string(batches.Results[0].AppendJSON(nil))
	if !strings.HasPrefix(b, `{"uid":0,"progress":{"steps":[{"currentStep":"processing tasks","finished":0,"total":2}`) ||
		!strings.Contains(b, `"details":{"receivedDocuments":1,"indexedDocuments":null}`) || !strings.Contains(b, `"status":{"processing":1}`) ||
		!strings.Contains(b, `"duration":null`) || !strings.Contains(b, `"finishedAt":null`) {
		t.Errorf("running batch %s", b)
	}
	if task, err := q.listBatches(Filter{UIDs: []uint32{0}}); err != nil || task.Total != 1 {
		t.Errorf("the running batch is not found by its task: %+v %v", task, err)
	}

	close(e.block)
	wait(t, q, 1)
}

func TestACanceledBatchLeavesNothing(t *testing.T) {
	o, e := testOptions(t)
	e.block, e.entered = make(chan struct{}), make(chan struct{}, 9)
	q := openQueue(t, o)
	enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1"))
	enqueueDone := enqueue(t, q, adding(t, q, "y", AddDocuments{MayCreate: true}, "1"))
	<-e.entered
	cancel := enqueue(t, q, New{Content: CancelTasks{"?uids=0", []uint32{0}}})
	c := wait(t, q, cancel.UID)
	if *c.BatchUID != 0 || string(c.Details) != `{"matchedTasks":1,"canceledTasks":1,"originalFilter":"?uids=0"}` {
		t.Errorf("the cancelation: %s", c.AppendJSON(nil))
	}
	task := wait(t, q, 0)
	if task.Status != Canceled || *task.CanceledBy != cancel.UID || *task.BatchUID != 0 || !task.StartedAt.Equal(c.StartedAt) || !task.FinishedAt.Equal(c.FinishedAt) {
		t.Errorf("the canceled task: %s", task.AppendJSON(nil))
	}
	if ix, there := e.info("x"); !there || ix.documents != 0 {
		t.Errorf("index x: %v %v", ix, there)
	}
	<-e.entered
	close(e.block)
	if y := wait(t, q, enqueueDone.UID); y.Status != Succeeded || *y.BatchUID != 1 {
		t.Errorf("the other task: %s", y.AppendJSON(nil))
	}
}

func TestUnmatchedTasksOfACanceledBatchRunAgain(t *testing.T) {
	o, e := testOptions(t)
	e.block, e.entered = make(chan struct{}), make(chan struct{}, 9)
	q := paused(t, o)
	for _, n := range letters(t, q, "a a a") {
		enqueue(t, q, n)
	}
	q.done.Add(1)
	go q.schedule()
	<-e.entered
	enqueue(t, q, New{Content: CancelTasks{"?uids=1", []uint32{1}}})
	<-e.entered
	close(e.block)
	for uid, want := range []Status{Succeeded, Canceled, Succeeded, Succeeded} {
		if task := wait(t, q, uint32(uid)); task.Status != want {
			t.Errorf("task %d: %v, want %v", uid, task.Status, want)
		}
	}
}

func TestCloseStopsTheRunningBatchAndItRunsAgain(t *testing.T) {
	o, e := testOptions(t)
	e.block, e.entered = make(chan struct{}), make(chan struct{}, 9)
	q := openQueue(t, o)
	enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1"))
	<-e.entered
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := q.Enqueue(context.Background(), New{IndexUID: "x", Content: CreateIndex{}}); !errors.Is(err, errClosed) {
			t.Fatalf("enqueue on a closed queue: %v", err)
		}
	}
	close(e.block)
	q = openQueue(t, o)
	if task := wait(t, q, 0); task.Status != Succeeded || *task.BatchUID != 0 {
		t.Errorf("%s", task.AppendJSON(nil))
	}
}

func TestDeleteTasks(t *testing.T) {
	o, _ := testOptions(t)
	q := paused(t, o)
	for _, n := range letters(t, q, "a a d") { // one batch, then
		enqueue(t, q, n)
	}
	drain(t, q)
	for _, n := range letters(t, q, "n a") { // two more
		enqueue(t, q, n)
	}
	drain(t, q)
	enqueue(t, q, adding(t, q, "x", AddDocuments{}, "1"))                                         // 5 waits
	enqueue(t, q, New{Content: DeleteTasks{Query: "?uids=0", Tasks: []uint32{0}}})                // 6
	enqueue(t, q, New{Content: DeleteTasks{Query: "?uids=0,1,3,5", Tasks: []uint32{0, 1, 3, 5}}}) // 7
	if ran, _, err := q.turn(); !ran || err != nil {
		t.Fatal(ran, err)
	}
	details := func(uid uint32) string {
		task, err := q.Task(uid, nil)
		if err != nil {
			return string(apierr.From(err).Code)
		}
		return string(task.Details)
	}
	for uid, want := range map[uint32]string{
		0: "task_not_found", 1: "task_not_found", 2: `{"deletedDocuments":0}`, 3: "task_not_found", 4: `{"receivedDocuments":1,"indexedDocuments":1}`,
		5: `{"receivedDocuments":1,"indexedDocuments":null}`,
		6: `{"matchedTasks":1,"deletedTasks":1,"originalFilter":"?uids=0"}`, 7: `{"matchedTasks":4,"deletedTasks":2,"originalFilter":"?uids=0,1,3,5"}`,
	} {
		if got := details(uid); got != want {
			t.Errorf("task %d: %s, want %s", uid, got, want)
		}
	}
	// The batch of tasks 0, 1 and 2 keeps its stats; that of task 3 is gone.
	if b, err := q.Batch(0, nil); err != nil || b.Stats.Total != 3 {
		t.Errorf("batch 0: %+v %v", b, err)
	}
	if _, err := q.Batch(1, nil); apierr.From(err).Code != "batch_not_found" {
		t.Errorf("batch 1: %v", err)
	}
	drain(t, q)
	// A deletion may include older deletions and cancelations, and uids continue after a restart.
	all, err := q.Match(Filter{})
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, q, New{Content: DeleteTasks{Query: "?uids=*", Tasks: all}}) // 8
	drain(t, q)
	q.Close()
	q = paused(t, o)
	list, err := q.listTasks(Filter{Limit: 9})
	if err != nil || list.Total != 1 || list.Results[0].UID != 8 {
		t.Fatalf("%+v %v", list, err)
	}
	if batches, err := q.listBatches(Filter{Limit: 9}); err != nil || batches.Total != 1 {
		t.Errorf("batches that lost their last task are left: %+v %v", batches, err)
	}
	if left := q.roster.names.all(); len(left.texts)+len(left.ids) != 0 {
		t.Errorf("names without tasks: %v", left)
	}
	if task := enqueue(t, q, New{IndexUID: "x", Content: DeleteIndex{}}); task.UID != 9 {
		t.Errorf("uid %d, want 9", task.UID)
	}
	drain(t, q)
	if task, err := q.Task(9, nil); err != nil || *task.BatchUID != 6 {
		t.Errorf("%s %v", task.AppendJSON(nil), err)
	}
}

func TestRetention(t *testing.T) {
	o, _ := testOptions(t)
	o.MaxTasks = 40
	q := paused(t, o)
	for i := range 40 {
		enqueue(t, q, New{IndexUID: fmt.Sprint("x", i), Content: CreateIndex{}})
	}
	drain(t, q)
	list, err := q.listTasks(Filter{Kinds: []Kind{TaskDeletion}, Limit: 50})
	if err != nil || list.Total == 0 {
		t.Fatalf("%+v %v", list, err)
	}
	first := list.Results[len(list.Results)-1]
	if !strings.Contains(string(first.Details), `"deletedTasks":`) || !strings.Contains(string(first.Details), `"originalFilter":"?beforeEnqueuedAt=2`) ||
		!strings.Contains(string(first.Details), `Z&statuses=succeeded,failed,canceled"`) {
		t.Errorf("details %s", first.Details)
	}
	if all, _ := q.Match(Filter{}); len(all) >= 42 || len(all) < 30 {
		t.Errorf("%d tasks are left", len(all))
	}
	if waiting, _ := q.Match(Filter{Statuses: []Status{Enqueued}}); len(waiting) != 0 {
		t.Errorf("%v wait", waiting)
	}

	o, _ = testOptions(t)
	o.MaxTasks = -1
	q = paused(t, o)
	for i := range 50 {
		enqueue(t, q, New{IndexUID: fmt.Sprint("x", i), Content: CreateIndex{}})
	}
	drain(t, q)
	if all, _ := q.Match(Filter{}); len(all) != 50 {
		t.Errorf("without retention %d tasks are left", len(all))
	}
}

func TestAFullQueueAcceptsOnlyTasksThatFreeIt(t *testing.T) {
	o, _ := testOptions(t)
	o.MaxBytes = 1
	q := paused(t, o)
	refused := func(n New) bool {
		_, err := q.Enqueue(context.Background(), n)
		if err != nil && apierr.From(err).Code != "no_space_left_on_device" {
			t.Fatal(err)
		}
		return err != nil
	}
	if !refused(New{IndexUID: "x", Content: CreateIndex{}}) || !refused(New{Content: CancelTasks{"?uids=", nil}}) || !refused(New{Content: DeleteTasks{Query: "?uids=", Tasks: nil}}) {
		t.Error("a full queue accepts tasks")
	}
	if refused(New{Content: CancelTasks{"?uids=0", []uint32{0}}}) || refused(New{Content: DeleteTasks{Query: "?uids=0", Tasks: []uint32{0}}}) {
		t.Error("a full queue refuses a task that frees it")
	}
	n := adding(t, q, "x", AddDocuments{}, "1")
	if !refused(n) {
		t.Error("a full queue accepts documents")
	}
	n.Payload.Discard()
	if files, _ := os.ReadDir(filepath.Join(o.Dir, "payloads")); len(files) != 0 {
		t.Errorf("payloads left: %v", files)
	}
}

func TestRequestedUIDsAndDryRuns(t *testing.T) {
	o, _ := testOptions(t)
	q := paused(t, o)
	at := func(uid uint32) *uint32 { return &uid }
	create := New{IndexUID: "x", Content: CreateIndex{}}
	create.UID = at(5)
	if task := enqueue(t, q, create); task.UID != 5 {
		t.Errorf("uid %d, want 5", task.UID)
	}
	create.UID = at(5)
	if _, err := q.Enqueue(context.Background(), create); apierr.From(err).Code != "bad_request" {
		t.Errorf("a taken uid: %v", err)
	}
	dry := adding(t, q, "x", AddDocuments{}, "1")
	dry.DryRun = true
	if task := enqueue(t, q, dry); task.UID != 6 {
		t.Errorf("uid %d, want 6", task.UID)
	}
	if _, err := q.Task(6, nil); apierr.From(err).Code != "task_not_found" {
		t.Errorf("a dry run stored its task: %v", err)
	}
	if files, _ := os.ReadDir(filepath.Join(o.Dir, "payloads")); len(files) != 0 {
		t.Errorf("payloads left: %v", files)
	}
}

func TestPayloadsOfTasks(t *testing.T) {
	o, _ := testOptions(t)
	q := paused(t, o)
	enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1", "2"))
	f, err := q.Documents(0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, _ := f.Read(b)
	f.Close()
	if got := string(b[:n]); got != "{\"id\":\"1\"}\n{\"id\":\"2\"}\n" {
		t.Errorf("payload %q", got)
	}
	if got := q.DiskBytes(); got < int64(n) {
		t.Errorf("%d bytes", got)
	}
	drain(t, q)
	if _, err := q.Documents(0); apierr.From(err).Code != "task_file_not_found" {
		t.Errorf("a finished task: %v", err)
	}
	if _, err := q.Documents(1); apierr.From(err).Code != "task_not_found" {
		t.Errorf("an unknown task: %v", err)
	}
	if q.payloadBytes.Load() != 0 {
		t.Errorf("%d payload bytes", q.payloadBytes.Load())
	}
}

func TestManyCallersAtOnce(t *testing.T) {
	o, e := testOptions(t)
	q := openQueue(t, o)
	const callers, each = 8, 25
	done := make(chan []uint32)
	for c := range callers {
		go func() {
			var uids []uint32
			for i := range each {
				p, err := q.NewPayload()
				if err != nil {
					t.Error(err)
					break
				}
				fmt.Fprintf(p, "{\"id\":\"%d-%d\"}\n", c, i)
				task, err := q.Enqueue(context.Background(), New{IndexUID: "x", Content: AddDocuments{MayCreate: true, Documents: 1}, Payload: p})
				if err != nil {
					t.Error(err)
					break
				}
				if len(uids) > 0 && task.UID <= uids[len(uids)-1] {
					t.Errorf("uid %d after %d", task.UID, uids[len(uids)-1])
				}
				if _, err := q.listTasks(Filter{Limit: 3, Statuses: []Status{Succeeded, Enqueued}}); err != nil {
					t.Error(err)
				}
				uids = append(uids, task.UID)
			}
			done <- uids
		}()
	}
	seen := map[uint32]bool{}
	for range callers {
		for _, uid := range <-done {
			seen[uid] = true
		}
	}
	if len(seen) != callers*each {
		t.Fatalf("%d uids", len(seen))
	}
	for uid := range seen {
		if task := wait(t, q, uid); task.Status != Succeeded {
			t.Errorf("task %d: %v", uid, task.Error)
		}
	}
	if ix, _ := e.info("x"); ix.documents != callers*each {
		t.Errorf("%d documents, want %d", ix.documents, callers*each)
	}
}

package task

import (
	"cmp"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
)

// history is a queue that went through random tasks, and a naive record of what each task touches.
type history struct {
	q       *Queue
	r       *rand.Rand
	touched map[uint32][]string // by task
	ended   []uint32            // batches that OnEnd reported
	now     time.Time
}

func newHistory(t *testing.T, r *rand.Rand) *history {
	o, _ := testOptions(t)
	return newHistoryOf(t, r, o)
}

func newHistoryOf(t *testing.T, r *rand.Rand, o Options) *history {
	h := &history{r: r, touched: map[uint32][]string{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	o.Now = func() time.Time { h.now = h.now.Add(time.Minute); return h.now }
	o.Executors = executors()
	o.OnBatch = func(tasks []*Task) {
		for _, task := range tasks {
			if task.Status != Succeeded {
				continue
			}
			for _, s := range renames(task) {
				h.rename(task.UID, s.Indexes[0], s.Indexes[1])
			}
		}
	}
	o.OnEnd = func(batch uint32) { h.ended = append(h.ended, batch) }
	o.partTasks = 2
	h.q = paused(t, o)
	return h
}

// rename follows the rule as documented: tasks with a lower uid that touch one of the two indexes get the uid of the other.
func (h *history) rename(uid uint32, a, b string) {
	for other, texts := range h.touched {
		if other >= uid {
			continue
		}
		for i, text := range texts {
			switch text {
			case a:
				texts[i] = b
			case b:
				texts[i] = a
			}
		}
	}
}

func (h *history) index() string { return string(rune('a' + h.r.Intn(5))) }

func (h *history) enqueue(t *testing.T) {
	uid, other := h.index(), h.index()
	n := New{IndexUID: uid}
	touched := []string{uid}
	matched, err := h.q.Match(h.filter(0))
	if err != nil {
		t.Fatal(err)
	}
	switch h.r.Intn(14) {
	case 0, 1, 2, 3:
		n = adding(t, h.q, uid, AddDocuments{MayCreate: true}, "1", []string{"2", "bad"}[h.r.Intn(2)])
	case 4:
		n.Content = DeleteDocuments{IDs: []string{"1"}}
	case 5:
		n.Content = CreateIndex{}
	case 6:
		n.Content = DeleteIndex{}
	case 7:
		n.Content = ClearDocuments{}
	case 8, 9:
		if uid == other {
			return
		}
		n, touched = New{Content: SwapIndexes{[]Swap{{Indexes: [2]string{uid, other}}}}}, []string{uid, other}
	case 10:
		if uid == other {
			return
		}
		n.Content, touched = UpdateIndex{NewUID: other}, []string{uid, other}
	case 11:
		n, touched = New{Content: CancelTasks{"?", matched}}, nil
	case 12:
		if h.r.Intn(3) > 0 {
			return
		}
		n, touched = New{Content: DeleteTasks{Query: "?", Tasks: matched}}, nil
	case 13:
		n, touched = New{Content: CreateDump{}}, nil
	}
	task := enqueue(t, h.q, n)
	h.touched[task.UID] = touched
}

// filter returns a random filter over uids of tasks and batches below limit.
func (h *history) filter(limit int) Filter {
	f := Filter{Limit: limit, Reverse: h.r.Intn(2) == 0}
	some := func() bool { return h.r.Intn(4) == 0 }
	uids := func() []uint32 {
		list := []uint32{}
		for range h.r.Intn(40) {
			list = append(list, uint32(h.r.Intn(300)))
		}
		return list
	}
	if some() {
		f.UIDs = uids()
	}
	if some() {
		f.BatchUIDs = uids()
	}
	if some() {
		if some() {
			f.CanceledBy = uids()
		}
	}
	if some() {
		f.Statuses = []Status{}
		for range h.r.Intn(4) {
			f.Statuses = append(f.Statuses, Status(h.r.Intn(5)))
		}
	}
	if some() {
		f.Kinds = []Kind{}
		for range h.r.Intn(6) {
			f.Kinds = append(f.Kinds, Kind(h.r.Intn(len(kindNames))))
		}
	}
	if some() {
		f.IndexUIDs = []string{}
		for range h.r.Intn(4) {
			f.IndexUIDs = append(f.IndexUIDs, h.index())
		}
	}
	if some() {
		f.From = new(uint32)
		*f.From = uint32(h.r.Intn(310))
	}
	if some() {
		forbidden := h.index()
		f.Allowed = func(uid string) bool { return uid != forbidden }
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, date := range []*time.Time{&f.AfterEnqueuedAt, &f.BeforeEnqueuedAt, &f.AfterStartedAt, &f.BeforeStartedAt, &f.AfterFinishedAt, &f.BeforeFinishedAt} {
		if some() {
			if some() {
				*date = start.Add(time.Duration(h.r.Int63n(int64(h.now.Sub(start)/time.Minute)+1)) * time.Minute)
			}
		}
	}
	return f
}

// in reports whether list is nil or contains x.
func in[T comparable](list []T, x T) bool { return list == nil || slices.Contains(list, x) }

func inDates(at, after, before time.Time) bool {
	if after.IsZero() && before.IsZero() {
		return true
	}
	return !at.IsZero() && (after.IsZero() || at.After(after)) && (before.IsZero() || at.Before(before))
}

// matches is the reference implementation of the filter of tasks.
func (h *history) matches(f *Filter, t *Task) bool {
	touched := h.touched[t.UID]
	if f.IndexUIDs != nil && (t.Kind.Global() || !slices.ContainsFunc(touched, func(uid string) bool { return slices.Contains(f.IndexUIDs, uid) })) {
		return false
	}
	if f.Allowed != nil && (t.Kind.Global() || slices.ContainsFunc(touched, func(uid string) bool { return !f.Allowed(uid) })) {
		return false
	}
	if f.BatchUIDs != nil && (t.BatchUID == nil || !slices.Contains(f.BatchUIDs, *t.BatchUID)) {
		return false
	}
	if f.CanceledBy != nil && (t.CanceledBy == nil || !slices.Contains(f.CanceledBy, *t.CanceledBy)) {
		return false
	}
	return in(f.UIDs, t.UID) && in(f.Statuses, t.Status) && in(f.Kinds, t.Kind) &&
		inDates(t.EnqueuedAt, f.AfterEnqueuedAt, f.BeforeEnqueuedAt) && inDates(t.StartedAt, f.AfterStartedAt, f.BeforeStartedAt) &&
		inDates(t.FinishedAt, f.AfterFinishedAt, f.BeforeFinishedAt)
}

// matchesBatch is the reference implementation of the filter of batches. all are the tasks still stored.
func matchesBatch(f *Filter, b *Batch, enqueued []time.Time, all []*Task) bool {
	anyOf := func(ok func(string) bool) bool {
		for uid := range b.Stats.Indexes {
			if ok(uid) {
				return true
			}
		}
		return false
	}
	if (f.IndexUIDs != nil || f.Allowed != nil) && !anyOf(func(uid string) bool { return in(f.IndexUIDs, uid) && (f.Allowed == nil || f.Allowed(uid)) }) {
		return false
	}
	if f.Statuses != nil && !slices.ContainsFunc(f.Statuses, func(s Status) bool { return b.Stats.Statuses[s] > 0 }) {
		return false
	}
	if f.Kinds != nil && !slices.ContainsFunc(f.Kinds, func(k Kind) bool { return b.Stats.Kinds[k] > 0 }) {
		return false
	}
	of := func(ok func(*Task) bool) bool {
		return slices.ContainsFunc(all, func(t *Task) bool { return t.BatchUID != nil && *t.BatchUID == b.UID && ok(t) })
	}
	if f.UIDs != nil && !of(func(t *Task) bool { return slices.Contains(f.UIDs, t.UID) }) {
		return false
	}
	if f.CanceledBy != nil && !of(func(t *Task) bool {
		return slices.Contains(f.CanceledBy, t.UID) && slices.ContainsFunc(all, func(c *Task) bool { return c.CanceledBy != nil && *c.CanceledBy == t.UID })
	}) {
		return false
	}
	oldest, newest := slices.MinFunc(enqueued, time.Time.Compare), slices.MaxFunc(enqueued, time.Time.Compare)
	return in(f.BatchUIDs, b.UID) &&
		(inDates(oldest, f.AfterEnqueuedAt, f.BeforeEnqueuedAt) || inDates(newest, f.AfterEnqueuedAt, f.BeforeEnqueuedAt)) &&
		inDates(b.StartedAt, f.AfterStartedAt, f.BeforeStartedAt) && inDates(b.FinishedAt, f.AfterFinishedAt, f.BeforeFinishedAt)
}

// pageOf is the reference implementation of paging. uids are newest first.
func pageOf(f *Filter, uids []uint32) (page []uint32, from, next *uint32) {
	uids = slices.Clone(uids)
	slices.SortFunc(uids, func(a, b uint32) int {
		if f.Reverse {
			return cmp.Compare(a, b)
		}
		return cmp.Compare(b, a)
	})
	for i, uid := range uids {
		if f.From != nil && (f.Reverse && uid < *f.From || !f.Reverse && uid > *f.From) {
			continue
		}
		if len(page) == f.Limit {
			return page, from, &uids[i]
		}
		if from == nil {
			from = &uids[i]
		}
		page = append(page, uid)
	}
	return page, from, nil
}

func TestListsAgainstANaiveFilter(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	h := newHistory(t, r)
	enqueuedIn := map[uint32][]time.Time{} // by batch
	told := h.q.o.OnBatch
	h.q.o.OnBatch = func(tasks []*Task) {
		told(tasks)
		for _, task := range tasks {
			enqueuedIn[*task.BatchUID] = append(enqueuedIn[*task.BatchUID], task.EnqueuedAt)
		}
	}
	for range 60 {
		for range r.Intn(9) {
			h.enqueue(t)
		}
		for range r.Intn(5) {
			if _, _, err := h.q.turn(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 10 {
		h.enqueue(t)
	}
	// A last batch that does not end.
	run, _, err := h.q.pick()
	if err != nil {
		t.Fatal(err)
	}
	h.q.begin(run)
	for _, task := range run.tasks {
		enqueuedIn[run.uid] = append(enqueuedIn[run.uid], task.EnqueuedAt)
	}
	compareLists(t, h, enqueuedIn, 1500)

	// A restart reads the same state, except for the running batch.
	h.q.roster.running = nil
	before, err := h.q.listTasks(Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	o := h.q.o
	h.q.Close()
	h.q = paused(t, o)
	after, err := h.q.listTasks(Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, after) {
		t.Error("the tasks differ after a restart")
	}
	delete(enqueuedIn, run.uid)
	compareLists(t, h, enqueuedIn, 500)
}

func compareLists(t *testing.T, h *history, enqueuedIn map[uint32][]time.Time, rounds int) {
	t.Helper()
	all, err := h.q.listTasks(Filter{Limit: 10000})
	if err != nil {
		t.Fatal(err)
	}
	batches, err := h.q.listBatches(Filter{Limit: 10000})
	if err != nil {
		t.Fatal(err)
	}
	ended, running, err := h.q.BatchSets()
	if err != nil {
		t.Fatal(err)
	}
	if told := roaring.BitmapOf(h.ended...); int(told.GetCardinality()) != len(h.ended) || roaring.AndNot(ended, told).GetCardinality() > 0 {
		t.Errorf("OnEnd reported %d, ended are %v", h.ended, ended)
	}
	if all := roaring.Or(ended, running); all.GetCardinality() != ended.GetCardinality()+running.GetCardinality() || int(all.GetCardinality()) != len(batches.Results) {
		t.Errorf("ended: %v, running: %v, listed: %d", ended, running, len(batches.Results))
	}
	for _, b := range batches.Results {
		if b.FinishedAt.IsZero() != running.Contains(b.UID) {
			t.Errorf("batch %d ended at %v", b.UID, b.FinishedAt)
		}
		if !slices.ContainsFunc(all.Results, func(t *Task) bool { return t.BatchUID != nil && *t.BatchUID == b.UID }) {
			t.Errorf("batch %d is left without a task", b.UID)
		}
	}
	for _, task := range all.Results {
		if task.IndexUID != "" && h.touched[task.UID][0] != task.IndexUID {
			t.Errorf("task %d is of index %s, want %s", task.UID, task.IndexUID, h.touched[task.UID][0])
		}
		if c := task.Details; task.Kind == IndexSwap {
			want := fmt.Sprintf(`{"swaps":[{"indexes":["%s","%s"],"rename":false}]}`, h.touched[task.UID][0], h.touched[task.UID][1])
			if string(c) != want {
				t.Errorf("task %d: details %s, want %s", task.UID, c, want)
			}
		}
	}
	for range rounds {
		f := h.filter(h.r.Intn(30))
		var want []uint32
		for _, task := range all.Results {
			if h.matches(&f, task) {
				want = append(want, task.UID)
			}
		}
		list, err := h.q.listTasks(f)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint32
		for _, task := range list.Results {
			got = append(got, task.UID)
		}
		comparePage(t, "tasks", &f, want, got, list.Total, list.From, list.Next)

		want = nil
		for _, b := range batches.Results {
			if matchesBatch(&f, b, enqueuedIn[b.UID], all.Results) {
				want = append(want, b.UID)
			}
		}
		page, err := h.q.listBatches(f)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, b := range page.Results {
			got = append(got, b.UID)
		}
		comparePage(t, "batches", &f, want, got, page.Total, page.From, page.Next)

		uid := uint32(h.r.Intn(300))
		visible := false
		for _, task := range all.Results {
			visible = visible || task.UID == uid && h.matches(&Filter{Allowed: f.Allowed}, task)
		}
		if _, err := h.q.Task(uid, f.Allowed); (err == nil) != visible || err != nil && apierr.From(err).Code != "task_not_found" {
			t.Fatalf("task %d is visible: %v, want %v", uid, visible, err)
		}
	}
}

func comparePage(t *testing.T, what string, f *Filter, all, got []uint32, total int, from, next *uint32) {
	t.Helper()
	want, wantFrom, wantNext := pageOf(f, all)
	if !slices.Equal(got, want) || total != len(all) || !reflect.DeepEqual(from, wantFrom) || !reflect.DeepEqual(next, wantNext) {
		t.Fatalf("%s of %+v:\n%v of %d, want %v of %d (from %v want %v, next %v want %v)",
			what, *f, got, total, want, len(all), text(from), text(wantFrom), text(next), text(wantNext))
	}
}

func text(uid *uint32) string { return string(appendUID(nil, uid)) }

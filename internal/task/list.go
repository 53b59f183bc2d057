package task

import (
	"fmt"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"go.etcd.io/bbolt"

	"svc/internal/apierr"
)

// Filter selects tasks or batches: nil lists do not restrict, empty ones match nothing. Dates are exclusive bounds.
type Filter struct {
	UIDs, BatchUIDs, CanceledBy       []uint32
	Statuses                          []Status
	Kinds                             []Kind
	IndexUIDs                         []string
	AfterEnqueuedAt, BeforeEnqueuedAt time.Time
	AfterStartedAt, BeforeStartedAt   time.Time
	AfterFinishedAt, BeforeFinishedAt time.Time
	Reverse                           bool
	From                              *uint32
	Limit                             int
	Allowed                           func(indexUID string) bool // nil: all; else what the caller's key may see
}

// TaskList and BatchList are pages. MarshalJSON gives the answers of the API.
type TaskList struct {
	Results      []*Task
	Total, Limit int
	From, Next   *uint32
}
type BatchList struct {
	Results      []*Batch
	Total, Limit int
	From, Next   *uint32
}

func (l *TaskList) MarshalJSON() ([]byte, error) {
	return appendList(l.Results, l.Total, l.Limit, l.From, l.Next), nil
}

func (l *BatchList) MarshalJSON() ([]byte, error) {
	return appendList(l.Results, l.Total, l.Limit, l.From, l.Next), nil
}

func appendList[T interface{ AppendJSON([]byte) []byte }](results []T, total, limit int, from, next *uint32) []byte {
	b := append(make([]byte, 0, 128+512*len(results)), `{"results":[`...)
	for i, r := range results {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.AppendJSON(b)
	}
	b = append(b, `],"total":`...)
	b = strconv.AppendInt(b, int64(total), 10)
	b = append(b, `,"limit":`...)
	b = strconv.AppendInt(b, int64(limit), 10)
	b = append(b, `,"from":`...)
	b = appendUID(b, from)
	b = append(b, `,"next":`...)
	b = appendUID(b, next)
	return append(b, '}')
}

// Tasks lists tasks, the newest first unless f.Reverse. They come without Content.
func (q *Queue) Tasks(f Filter) (*TaskList, error) {
	l := &TaskList{Limit: f.Limit, Results: []*Task{}}
	var uids []uint32
	var names *names
	var run *running
	err := q.read(func(ro *roster, tx *bbolt.Tx) error {
		set, err := ro.selectTasks(&f, tx)
		if err != nil {
			return err
		}
		l.Total = int(set.GetCardinality())
		uids, l.From, l.Next = f.page(set)
		names, run = ro.names, ro.running
		return nil
	}, func(tx *bbolt.Tx) error {
		for _, uid := range uids {
			t, err := readTask(tx, uid, names, run, false)
			if err != nil {
				return err
			}
			l.Results = append(l.Results, t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Task returns a task; task_not_found when there is none that the caller may see.
func (q *Queue) Task(uid uint32, allowed func(string) bool) (*Task, error) {
	var t *Task
	err := q.read(func(ro *roster, tx *bbolt.Tx) (err error) {
		f := Filter{UIDs: []uint32{uid}, Allowed: allowed}
		if set, err := ro.selectTasks(&f, tx); err != nil || set.IsEmpty() {
			return err
		}
		t, err = readTask(tx, uid, ro.names, ro.running, true)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, apierr.New("task_not_found", "There is no task %d.", uid)
	}
	return t, nil
}

// Match returns the uids a cancelation or deletion asked now would concern, in order.
func (q *Queue) Match(f Filter) ([]uint32, error) {
	var uids []uint32
	err := q.read(func(ro *roster, tx *bbolt.Tx) error {
		set, err := ro.selectTasks(&f, tx)
		if err == nil {
			uids = set.ToArray()
		}
		return err
	}, nil)
	return uids, err
}

// Batches lists batches, the newest first unless f.Reverse.
func (q *Queue) Batches(f Filter) (*BatchList, error) {
	l := &BatchList{Limit: f.Limit, Results: []*Batch{}}
	var uids []uint32
	var run *running
	err := q.read(func(ro *roster, tx *bbolt.Tx) error {
		set, err := ro.selectBatches(&f, tx)
		if err != nil {
			return err
		}
		l.Total = int(set.GetCardinality())
		uids, l.From, l.Next = f.page(set)
		run = ro.running
		return nil
	}, func(tx *bbolt.Tx) error {
		for _, uid := range uids {
			b, err := readBatch(tx, uid, run)
			if err != nil {
				return err
			}
			l.Results = append(l.Results, b)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Batch returns a batch; batch_not_found when there is none that the caller may see.
func (q *Queue) Batch(uid uint32, allowed func(string) bool) (*Batch, error) {
	var b *Batch
	err := q.read(func(ro *roster, tx *bbolt.Tx) (err error) {
		if !ro.visibleBatches(allowed, nil).Contains(uid) {
			return nil
		}
		b, err = readBatch(tx, uid, ro.running)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, apierr.New("batch_not_found", "There is no batch %d.", uid)
	}
	return b, nil
}

// page cuts the page out of set, which it may change.
func (f *Filter) page(set *roaring.Bitmap) (uids []uint32, from, next *uint32) {
	var it roaring.IntIterable
	if f.Reverse {
		if f.From != nil {
			set.RemoveRange(0, uint64(*f.From))
		}
		it = set.Iterator()
	} else {
		if f.From != nil {
			set.RemoveRange(uint64(*f.From)+1, 1<<32)
		}
		it = set.ReverseIterator()
	}
	for it.HasNext() && len(uids) < f.Limit {
		uids = append(uids, it.Next())
	}
	if len(uids) > 0 {
		from = &uids[0]
	}
	if it.HasNext() {
		uid := it.Next()
		next = &uid
	}
	return uids, from, next
}

// bounds are the limits of one date of a filter, in nanoseconds, exclusive; ok is false when there are none.
func bounds(after, before time.Time) (lo, hi int64, ok bool) {
	lo, hi = -1<<63, 1<<63-1
	if !after.IsZero() {
		lo = after.UnixNano()
	}
	if !before.IsZero() {
		hi = before.UnixNano()
	}
	return lo, hi, !after.IsZero() || !before.IsZero()
}

// selectTasks returns the matching tasks; the caller owns the set. tx is read for f.BatchUIDs.
func (r *roster) selectTasks(f *Filter, tx *bbolt.Tx) (*roaring.Bitmap, error) {
	set := r.tasks.Clone()
	if f.UIDs != nil {
		set.And(roaring.BitmapOf(f.UIDs...))
	}
	if f.Statuses != nil {
		var parts []*roaring.Bitmap
		for _, s := range f.Statuses {
			switch {
			case s == Enqueued:
				parts = append(parts, r.enqueued())
			case s == Processing && r.running != nil:
				parts = append(parts, r.running.set)
			case s != Processing && r.running != nil:
				parts = append(parts, roaring.AndNot(r.byStatus[s], r.running.set))
			default:
				parts = append(parts, r.byStatus[s])
			}
		}
		set.And(roaring.FastOr(parts...))
	}
	if f.Kinds != nil {
		var parts []*roaring.Bitmap
		for _, k := range f.Kinds {
			parts = append(parts, r.byKind[k])
		}
		set.And(roaring.FastOr(parts...))
	}
	if f.IndexUIDs != nil {
		var parts []*roaring.Bitmap
		for _, uid := range f.IndexUIDs {
			parts = append(parts, r.named(uid))
		}
		set.And(roaring.FastOr(parts...))
		r.withoutGlobal(set)
	}
	if f.CanceledBy != nil {
		var parts []*roaring.Bitmap
		for _, by := range f.CanceledBy {
			if s := r.canceledBy[by]; s != nil {
				parts = append(parts, s)
			}
		}
		set.And(roaring.FastOr(parts...))
	}
	if f.BatchUIDs != nil {
		of, err := r.tasksOf(f.BatchUIDs, tx)
		if err != nil {
			return nil, err
		}
		set.And(of)
	}
	if lo, hi, ok := bounds(f.AfterEnqueuedAt, f.BeforeEnqueuedAt); ok {
		r.times.keepBetween(set, enqueuedAt, lo, hi)
	}
	if lo, hi, ok := bounds(f.AfterStartedAt, f.BeforeStartedAt); ok {
		run := r.takeRunning(set)
		r.times.keepBetween(set, startedAt, lo, hi)
		if run != nil {
			if at := toNanos(r.running.startedAt); lo < at && at < hi {
				set.Or(run)
			}
		}
	}
	if lo, hi, ok := bounds(f.AfterFinishedAt, f.BeforeFinishedAt); ok {
		r.takeRunning(set)
		r.times.keepBetween(set, finishedAt, lo, hi)
	}
	if f.Allowed != nil {
		r.withoutGlobal(set)
		for uid, id := range r.names.ids {
			if s := r.byName[id]; s != nil && !f.Allowed(uid) {
				set.AndNot(s)
			}
		}
	}
	return set, nil
}

// takeRunning removes the running batch's tasks from set and returns them.
func (r *roster) takeRunning(set *roaring.Bitmap) *roaring.Bitmap {
	if r.running == nil {
		return nil
	}
	run := roaring.And(set, r.running.set)
	set.AndNot(r.running.set)
	return run
}

func (r *roster) withoutGlobal(set *roaring.Bitmap) {
	for k, s := range r.byKind {
		if Kind(k).Global() {
			set.AndNot(s)
		}
	}
}

// tasksOf returns the tasks of batches that are still stored.
func (r *roster) tasksOf(batches []uint32, tx *bbolt.Tx) (*roaring.Bitmap, error) {
	of := roaring.New()
	for _, uid := range batches {
		if r.running != nil && uid == r.running.uid {
			of.Or(r.running.set)
			continue
		}
		v := tx.Bucket(batchBucket).Get(key(uid))
		if v == nil {
			continue
		}
		_, tasks, err := decodeBatch(uid, v)
		if err != nil {
			return nil, damagedBatch(tx.DB().Path(), uid, err)
		}
		of.Or(tasks)
	}
	return of, nil
}

// batchesOf returns the batches that hold, or held before they were canceled, any of the tasks.
func (r *roster) batchesOf(tasks *roaring.Bitmap, tx *bbolt.Tx) (*roaring.Bitmap, error) {
	of := roaring.New()
	bucket := tx.Bucket(taskBucket)
	var rec record
	for it := tasks.Iterator(); it.HasNext(); {
		uid := it.Next()
		if r.running != nil && r.running.set.Contains(uid) {
			of.Add(r.running.uid)
			continue
		}
		v := bucket.Get(key(uid))
		if v == nil {
			continue
		}
		if _, err := rec.decodeHead(v); err != nil {
			return nil, fmt.Errorf("cannot read task %d: %w", uid, err)
		}
		if rec.batch != noUID {
			of.Add(rec.batch)
		}
	}
	return of, nil
}

// selectBatches returns the matching batches; the caller owns the set. Each
// list of f selects for itself: a batch with a failed task and a task of index
// x matches statuses=failed&indexUids=x even when these are two tasks.
func (r *roster) selectBatches(f *Filter, tx *bbolt.Tx) (*roaring.Bitmap, error) {
	set := r.visibleBatches(f.Allowed, f.IndexUIDs)
	run := r.running
	if run != nil && !set.Contains(run.uid) {
		run = nil
	}
	if f.BatchUIDs != nil {
		set.And(roaring.BitmapOf(f.BatchUIDs...))
	}
	if f.Statuses != nil {
		match := roaring.New()
		for _, s := range f.Statuses {
			match.Or(r.batchesByStatus[s])
			if s == Processing && run != nil {
				match.Add(run.uid)
			}
		}
		set.And(match)
	}
	if f.Kinds != nil {
		match := roaring.New()
		for _, k := range f.Kinds {
			match.Or(r.batchesByKind[k])
			if run != nil && run.kinds&(1<<k) != 0 {
				match.Add(run.uid)
			}
		}
		set.And(match)
	}
	if f.UIDs != nil {
		of, err := r.batchesOf(roaring.And(r.tasks, roaring.BitmapOf(f.UIDs...)), tx)
		if err != nil {
			return nil, err
		}
		set.And(of)
	}
	if f.CanceledBy != nil {
		by := roaring.New()
		for _, uid := range f.CanceledBy {
			if r.canceledBy[uid] != nil {
				by.Add(uid)
			}
		}
		of, err := r.batchesOf(by, tx)
		if err != nil {
			return nil, err
		}
		set.And(of)
	}
	// between keeps the batches that fit the bounds in all columns, and the running one when its value fits them.
	between := func(after, before time.Time, columns []int, running func() (oldest, newest int64)) {
		lo, hi, ok := bounds(after, before)
		if !ok {
			return
		}
		keep := run != nil && set.Contains(run.uid)
		if keep {
			oldest, newest := running()
			keep = oldest != 0 && (oldest > lo && oldest < hi || newest > lo && newest < hi)
			set.Remove(run.uid) // it has no row in the columns
		}
		matches := roaring.New()
		for _, c := range columns {
			m := set.Clone()
			r.batchTimes.keepBetween(m, c, lo, hi)
			matches.Or(m)
		}
		set = matches
		if keep {
			set.Add(run.uid)
		}
	}
	between(f.AfterEnqueuedAt, f.BeforeEnqueuedAt, []int{oldestEnqueued, newestEnqueued}, func() (int64, int64) { return run.oldest, run.newest })
	between(f.AfterStartedAt, f.BeforeStartedAt, []int{startedAt}, func() (int64, int64) { n := toNanos(run.startedAt); return n, n })
	between(f.AfterFinishedAt, f.BeforeFinishedAt, []int{finishedAt}, func() (int64, int64) { return 0, 0 })
	return set, nil
}

// visibleBatches returns the batches, with the running one, that have a task
// of one of the indexes that a caller may see and asked for; the caller owns the set.
func (r *roster) visibleBatches(allowed func(string) bool, indexUIDs []string) *roaring.Bitmap {
	if allowed == nil && indexUIDs == nil {
		set := r.batches.Clone()
		if r.running != nil {
			set.Add(r.running.uid)
		}
		return set
	}
	set := roaring.New()
	take := func(uid string) {
		if allowed != nil && !allowed(uid) {
			return
		}
		if s := r.batchesByIndex[uid]; s != nil {
			set.Or(s)
		}
		if r.running != nil && r.running.indexes[uid] {
			set.Add(r.running.uid)
		}
	}
	if indexUIDs != nil {
		for _, uid := range indexUIDs {
			take(uid)
		}
		return set
	}
	for uid := range r.batchesByIndex {
		take(uid)
	}
	if r.running != nil {
		for uid := range r.running.indexes {
			take(uid)
		}
	}
	return set
}

// readTask reads a task as it is shown: as processing when the running batch holds it.
func readTask(tx *bbolt.Tx, uid uint32, names *names, run *running, withContent bool) (*Task, error) {
	rec, err := readRecord(tx.Bucket(taskBucket), uid)
	if err != nil {
		return nil, err
	}
	t := rec.task(uid, names)
	if withContent {
		if t.Content, err = decodeContent(rec.kind, rec.content); err != nil {
			return nil, fmt.Errorf("cannot read the content of task %d: %w", uid, err)
		}
	}
	if run != nil && run.set.Contains(uid) {
		t.Status, t.BatchUID, t.StartedAt, t.FinishedAt, t.Error = Processing, &run.uid, run.startedAt, time.Time{}, nil
	}
	return t, nil
}

func readBatch(tx *bbolt.Tx, uid uint32, run *running) (*Batch, error) {
	if run != nil && uid == run.uid {
		return run.batch(), nil
	}
	v := tx.Bucket(batchBucket).Get(key(uid))
	b, _, err := decodeBatch(uid, v)
	if err != nil {
		return nil, damagedBatch(tx.DB().Path(), uid, err)
	}
	return b, nil
}

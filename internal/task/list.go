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

	changed *roaring.Bitmap // only these; nil: all
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
	var parked map[string]*parking
	err := q.read(func(ro *roster, tx *bbolt.Tx) error {
		set, err := ro.selectTasks(&f, tx)
		if err != nil {
			return err
		}
		l.Total = int(set.GetCardinality())
		uids, l.From, l.Next = f.page(set)
		names, run, parked = ro.names, ro.running, ro.parkedNow()
		return nil
	}, func(tx *bbolt.Tx) error {
		for _, uid := range uids {
			t, err := readTask(tx, uid, names, run, false)
			if err != nil {
				return err
			}
			t.waitsFor(parked)
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
		if t, err = readTask(tx, uid, ro.names, ro.running, true); err == nil {
			t.waitsFor(ro.parked)
		}
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
	b, _, err := storedBatchOf(tx.Bucket(batchBucket), uid)
	return b, err
}

package task

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/boltfile"
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
	Room                              Room                       // nil: any

	changed *roaring.Bitmap // only these; nil: all
}

// Room is asked before memory is taken for a task or batch that is large. Its error is returned.
type Room interface {
	Hold(bytes int) error
}

// largeBytes is from which size on that is.
const largeBytes = 32 << 10

// Page is a page of tasks or batches. Results reads them from the file on demand, several at a time, and skips those
// deleted meanwhile.
type Page[T any] struct {
	Results    iter.Seq2[T, error]
	Total      int
	From, Next *uint32
}

// At most pageStep tasks or batches, and about pageBytes of their details, are read at once. So little is in memory, and no
// transaction stays open while the caller works.
const (
	pageStep  = 128
	pageBytes = 256 << 10
)

// shown is what the roster says of tasks and batches when they are read.
type shown struct {
	names *names
	runs  runs
	waits waits
}

// Tasks lists tasks, the newest first unless f.Reverse. They come without Content.
func (q *Queue) Tasks(f Filter) (*Page[*Task], error) {
	there := func(ro *roster, uid uint32) bool { return ro.tasks.Contains(uid) }
	return page(q, &f, (*roster).selectTasks, there, func(tx *boltfile.Tx, uid uint32, now *shown) (*Task, int, error) {
		t, err := shownTask(tx, uid, now.names, now.runs, f.Room)
		if err != nil {
			return nil, 0, err
		}
		t.waitsFor(now.waits)
		return t, len(t.Details), nil
	})
}

// Batches lists batches, the newest first unless f.Reverse.
func (q *Queue) Batches(f Filter) (*Page[*Batch], error) {
	there := func(ro *roster, uid uint32) bool {
		return ro.batches.Contains(uid) || ro.running.batch(uid) != nil
	}
	return page(q, &f, (*roster).selectBatches, there, func(tx *boltfile.Tx, uid uint32, now *shown) (*Batch, int, error) {
		b, err := readBatch(tx, uid, now.runs, f.Room)
		if err != nil {
			return nil, 0, err
		}
		return b, len(b.Details), nil
	})
}

// BatchSets returns the uids of the batches that have ended and have tasks still, and of those that run. The sets are the caller's.
func (q *Queue) BatchSets() (ended, running *roaring.Bitmap, err error) {
	running = roaring.New()
	err = q.read(func(ro *roster, _ *boltfile.Tx) error {
		ended = ro.batches.Clone()
		for _, run := range ro.running {
			running.Add(run.uid)
		}
		return nil
	}, nil)
	return ended, running, err
}

// page returns the page that f requests of the set that choose returns. read returns an item and the size of its details.
func page[T any](q *Queue, f *Filter, choose func(*roster, *Filter, *boltfile.Tx) (*roaring.Bitmap, error), there func(*roster, uint32) bool,
	read func(*boltfile.Tx, uint32, *shown) (T, int, error)) (*Page[T], error) {
	p := &Page[T]{}
	var uids []uint32
	err := q.read(func(ro *roster, tx *boltfile.Tx) error {
		set, err := choose(ro, f, tx)
		if err != nil {
			return err
		}
		p.Total = int(set.GetCardinality())
		uids, p.From, p.Next = f.page(set)
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	// some reads the next items and returns the rest.
	some := func(uids []uint32) (items []T, left []uint32, err error) {
		var now shown
		var next []uint32
		left = uids[min(pageStep, len(uids)):]
		err = q.read(func(ro *roster, _ *boltfile.Tx) error {
			now = shown{ro.names, ro.running, ro.waits()}
			for _, uid := range uids[:len(uids)-len(left)] {
				if there(ro, uid) {
					next = append(next, uid)
				}
			}
			return nil
		}, func(tx *boltfile.Tx) error {
			size := 0
			for i, uid := range next {
				item, bytes, err := read(tx, uid, &now)
				if err != nil {
					return err
				}
				items = append(items, item)
				if size += bytes; size >= pageBytes && i+1 < len(next) {
					left = uids[slices.Index(uids, next[i+1]):]
					break
				}
			}
			return nil
		})
		return items, left, err
	}
	p.Results = func(yield func(T, error) bool) {
		for rest := uids; len(rest) > 0; {
			items, left, err := some(rest)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			rest = left
		}
	}
	return p, nil
}

// Task returns a task, or task_not_found if the caller may see none with this uid.
func (q *Queue) Task(uid uint32, allowed func(string) bool) (*Task, error) {
	var t *Task
	err := q.read(func(ro *roster, tx *boltfile.Tx) (err error) {
		f := Filter{UIDs: []uint32{uid}, Allowed: allowed}
		if set, err := ro.selectTasks(&f, tx); err != nil || set.IsEmpty() {
			return err
		}
		if t, err = readTask(tx, uid, ro.names, ro.running); err == nil {
			t.waitsFor(ro.waits())
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

// Shown returns a task as the API shows it, without its content, or task_not_found if the caller may see none with this uid.
func (q *Queue) Shown(uid uint32, allowed func(string) bool, room Room) (t *Task, err error) {
	there := false
	var now shown
	err = q.read(func(ro *roster, tx *boltfile.Tx) error {
		f := Filter{UIDs: []uint32{uid}, Allowed: allowed}
		set, err := ro.selectTasks(&f, tx)
		there, now = err == nil && !set.IsEmpty(), shown{ro.names, ro.running, ro.waits()}
		return err
	}, func(tx *boltfile.Tx) error {
		if !there {
			return apierr.New("task_not_found", "There is no task %d.", uid)
		}
		var err error
		if t, err = shownTask(tx, uid, now.names, now.runs, room); err == nil {
			t.waitsFor(now.waits)
		}
		return err
	})
	return t, err
}

// Match returns the uids a cancelation or deletion asked now would concern, in order.
func (q *Queue) Match(f Filter) ([]uint32, error) {
	var uids []uint32
	err := q.read(func(ro *roster, tx *boltfile.Tx) error {
		set, err := ro.selectTasks(&f, tx)
		if err == nil {
			uids = set.ToArray()
		}
		return err
	}, nil)
	return uids, err
}

// Batch returns a batch, or batch_not_found if the caller may see none with this uid.
func (q *Queue) Batch(uid uint32, allowed func(string) bool) (*Batch, error) {
	return q.ShownBatch(uid, allowed, nil)
}

// ShownBatch is Batch for an answer.
func (q *Queue) ShownBatch(uid uint32, allowed func(string) bool, room Room) (b *Batch, err error) {
	there := false
	var rs runs
	err = q.read(func(ro *roster, tx *boltfile.Tx) error {
		there, rs = ro.visibleBatches(allowed, nil).Contains(uid), ro.running
		return nil
	}, func(tx *boltfile.Tx) (err error) {
		if there {
			b, err = readBatch(tx, uid, rs, room)
		}
		return err
	})
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

// readTask reads a task as it is shown: as processing when a running batch holds it.
func readTask(tx *boltfile.Tx, uid uint32, names *names, rs runs) (*Task, error) {
	rec, err := readRecord(tx.Bucket(taskBucket), uid)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, lostTask(tx.Bucket(taskBucket), uid)
	}
	t := taskOf(rec, uid, names, rs)
	if t.Content, err = decodeContent(rec.kind, rec.content); err != nil {
		return nil, fmt.Errorf("cannot read the content of task %d: %w", uid, err)
	}
	return t, nil
}

// shownTask reads a task without its content.
func shownTask(tx *boltfile.Tx, uid uint32, names *names, rs runs, room Room) (*Task, error) {
	rec, err := readShown(tx.Bucket(taskBucket), uid, room)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, lostTask(tx.Bucket(taskBucket), uid)
	}
	return taskOf(rec, uid, names, rs), nil
}

// taskOf is what a record says of a task, and the batch that runs it.
func taskOf(rec *record, uid uint32, names *names, rs runs) *Task {
	t := rec.task(uid, names)
	if run := rs.holding(uid); run != nil {
		t.Status, t.BatchUID, t.StartedAt, t.FinishedAt, t.Error = Processing, &run.uid, run.startedAt, time.Time{}, nil
	}
	return t
}

// readBatch returns a batch from memory while it runs, else from the file, or nil.
func readBatch(tx *boltfile.Tx, uid uint32, rs runs, room Room) (*Batch, error) {
	if run := rs.batch(uid); run != nil {
		return run.batch(), nil
	}
	b, _, err := storedBatchOf(tx.Bucket(batchBucket), uid, room)
	return b, err
}

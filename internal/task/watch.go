package task

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/boltfile"
)

// A Watch collects which tasks or batches have changed since its last read. It keeps a bit for each, so a late reader sees
// only the last state, and costs no more memory. Its owner closes it.
type Watch struct {
	in      *watches
	batches bool
	wake    chan struct{} // one slot: there is something to ask for

	changed *roaring.Bitmap // under watches.mu; nil: nothing
}

// watches has all watches of a queue. Its lock is taken after all others except that of a progress.
type watches struct {
	mu        sync.Mutex
	open      map[*Watch]struct{}
	ofBatches atomic.Int64 // watches of batches
}

// progressPause is how long svc collects changes of a batch's progress before it notifies watches. Every document may cause a change.
const progressPause = 100 * time.Millisecond

// How much of what has changed is read in one go.
const (
	watchedResults = 64
	watchedBytes   = 64 << 10 // of details
)

// WatchTasks begins to collect the tasks that change from now on.
func (q *Queue) WatchTasks() *Watch { return q.watches.add(false) }

// WatchBatches begins to collect the batches that begin, progress or end from now on.
func (q *Queue) WatchBatches() *Watch { return q.watches.add(true) }

// add registers a watch that begins with nothing changed.
func (ws *watches) add(batches bool) *Watch {
	w := &Watch{in: ws, batches: batches, wake: make(chan struct{}, 1)}
	if batches {
		ws.ofBatches.Add(1)
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.open == nil {
		ws.open = map[*Watch]struct{}{}
	}
	ws.open[w] = struct{}{}
	return w
}

// Close ends the watch; once is enough.
func (w *Watch) Close() {
	if w.batches {
		w.in.ofBatches.Add(-1)
	}
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	delete(w.in.open, w)
}

// Changed receives when something has changed.
func (w *Watch) Changed() <-chan struct{} { return w.wake }

// tell records changed tasks and batches; nil means none. For changes in the roster, the lock of the roster is held. So a caller that
// takes the changes while it reads sees all of them, and is not notified of them twice.
func (ws *watches) tell(tasks, batches *roaring.Bitmap) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.open {
		if w.batches {
			w.note(batches)
		} else {
			w.note(tasks)
		}
	}
}

// note is called with the lock held.
func (w *Watch) note(changed *roaring.Bitmap) {
	switch {
	case changed == nil || changed.IsEmpty():
		return
	case w.changed == nil:
		w.changed = changed.Clone()
	default:
		w.changed.Or(changed)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// progressed records that a running batch has made progress. A timer reports this once per progressPause. It may fire once more after
// the queue is closed, and then finds no watch.
func (ws *watches) progressed(r *running) {
	if ws.ofBatches.Load() == 0 || !r.due.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(progressPause, func() {
		r.due.Store(false)
		ws.tell(nil, roaring.BitmapOf(r.uid))
	})
}

// take returns what has changed, which counts as seen.
func (w *Watch) take() *roaring.Bitmap {
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	changed := w.changed
	w.changed = nil
	return changed
}

// giveBack records changes that were taken but not read.
func (w *Watch) giveBack(rest *roaring.Bitmap) {
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	w.note(rest)
}

// ChangedTasks returns changed tasks of a watch that the filter selects, in their current state and in uid order. If there are more,
// w.Changed receives at once. The order and page of the filter are ignored.
func (q *Queue) ChangedTasks(w *Watch, f Filter) ([]*Task, error) {
	rest := roaring.New()
	var names *names
	var rs runs
	var why waits
	var tasks []*Task
	err := q.read(func(ro *roster, tx *boltfile.Tx) (err error) {
		if f.changed = w.take(); f.changed == nil {
			return nil
		}
		rest, err = ro.selectTasks(&f, tx)
		names, rs, why = ro.names, ro.running, ro.waits()
		return err
	}, func(tx *boltfile.Tx) error {
		size := 0
		for it := rest.Iterator(); it.HasNext() && len(tasks) < watchedResults && size < watchedBytes; {
			t, err := shownTask(tx, it.Next(), names, rs, f.Room)
			if err != nil {
				return err
			}
			t.waitsFor(why)
			tasks = append(tasks, t)
			size += len(t.Details)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		rest.Remove(t.UID)
	}
	w.giveBack(rest)
	return tasks, nil
}

// ChangedBatches is ChangedTasks for a watch of batches.
func (q *Queue) ChangedBatches(w *Watch, f Filter) ([]*Batch, error) {
	rest := roaring.New()
	var rs runs
	var batches []*Batch
	err := q.read(func(ro *roster, tx *boltfile.Tx) (err error) {
		if f.changed = w.take(); f.changed == nil {
			return nil
		}
		rest, err = ro.selectBatches(&f, tx)
		rs = ro.running
		return err
	}, func(tx *boltfile.Tx) error {
		size := 0
		for it := rest.Iterator(); it.HasNext() && len(batches) < watchedResults && size < watchedBytes; {
			b, err := readBatch(tx, it.Next(), rs, f.Room)
			if err != nil {
				return err
			}
			batches = append(batches, b)
			size += len(b.Details)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, b := range batches {
		rest.Remove(b.UID)
	}
	w.giveBack(rest)
	return batches, nil
}

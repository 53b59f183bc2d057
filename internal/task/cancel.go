package task

import (
	"context"
	"errors"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/boltfile"
	"svc/internal/index"
)

// cancelTasks runs one cancelation: all matched tasks that wait become
// canceled in the transaction that ends the cancelation.
func (q *Queue) cancelTasks(run *running) error {
	t := run.tasks[0]
	c := t.Content.(CancelTasks)
	run.progress.inside(0, index.Step{Name: "retrieving tasks", Total: 4})
	set := roaring.BitmapOf(c.Tasks...)
	set.RemoveRange(uint64(t.UID), 1<<32)
	var canceled []*Task
	var names *names
	err := q.read(func(ro *roster, _ *boltfile.Tx) error {
		set.And(ro.byStatus[Enqueued])
		names = ro.names
		return nil
	}, func(tx *boltfile.Tx) (err error) {
		canceled, err = readTasks(tx, set, names)
		return err
	})
	if err != nil {
		return err
	}
	run.progress.inside(0, index.Step{Name: "updating tasks", Finished: 3, Total: 4})
	ends := make([]end, 0, len(canceled)+1)
	for _, other := range canceled {
		ends = append(ends, end{task: other, status: Canceled, canceledBy: t.UID, result: result{outcome: outcome{failed: true}}})
	}
	ends = append(ends, end{task: t, status: Succeeded, result: result{outcome: outcome{count: len(canceled)}}})
	return q.finish(run, ends, nil)
}

// deleteTasks runs all waiting deletions: what they matched and is finished
// goes in the transaction that ends them. A batch goes with its last task.
func (q *Queue) deleteTasks(run *running) error {
	run.progress.inside(0, index.Step{Name: "retrieving tasks", Total: 8})
	gone := roaring.New()
	ends := make([]end, len(run.tasks))
	var finished *roaring.Bitmap
	q.roster.mu.RLock()
	finished = roaring.FastOr(q.roster.byStatus[Succeeded], q.roster.byStatus[Failed], q.roster.byStatus[Canceled])
	q.roster.mu.RUnlock()
	for i, t := range run.tasks {
		set := roaring.BitmapOf(t.Content.(DeleteTasks).Tasks...)
		set.And(finished)
		set.AndNot(gone)
		gone.Or(set)
		ends[i] = end{task: t, status: Succeeded, result: result{outcome: outcome{count: int(set.GetCardinality())}}}
	}
	run.progress.inside(0, index.Step{Name: "deleting tasks", Finished: 6, Total: 8})
	return q.finish(run, ends, func(tx *txn) error { return tx.deleteTasks(gone) })
}

// deleteTasks removes finished tasks and the batches that lose their last one.
func (tx *txn) deleteTasks(gone *roaring.Bitmap) error {
	touched := roaring.New()
	var rec record
	for it := gone.Iterator(); it.HasNext(); {
		uid := it.Next()
		found, err := readHead(tx.tasks, uid, &rec)
		if err != nil {
			return err
		}
		if found && rec.batch != noUID {
			touched.Add(rec.batch)
		}
		if err := tx.tasks.Delete(key(uid)); err != nil {
			return err
		}
	}
	emptied := roaring.New()
	for it := touched.Iterator(); it.HasNext(); {
		uid := it.Next()
		b, tasks, err := storedBatchOf(tx.batches, uid, nil)
		if err != nil {
			return err
		}
		if b == nil {
			continue
		}
		tasks.And(tx.roster.tasks)
		if tasks.AndNot(gone); tasks.IsEmpty() {
			emptied.Add(uid)
			if err := tx.batches.Delete(key(uid)); err != nil {
				return err
			}
		}
	}
	tx.after = append(tx.after, func(ro *roster) {
		ro.remove(gone)
		ro.removeBatches(emptied)
	})
	return tx.dropNames(gone)
}

// retain asks for the deletion of the oldest finished tasks when too many are stored.
func (q *Queue) retain() error {
	limit := q.o.MaxTasks
	if limit < 0 {
		return nil
	}
	q.roster.mu.RLock()
	full := int(q.roster.tasks.GetCardinality()) >= limit
	asked := q.roster.byStatus[Enqueued].Intersects(q.roster.byKind[TaskDeletion])
	var oldest []uint32
	var newest int64 // time of enqueuing
	if full && !asked {
		finished := roaring.FastOr(q.roster.byStatus[Succeeded], q.roster.byStatus[Failed], q.roster.byStatus[Canceled])
		for it := finished.Iterator(); it.HasNext() && len(oldest) < limit/10; {
			uid := it.Next()
			oldest = append(oldest, uid)
			newest = max(newest, q.roster.times.get(uid, enqueuedAt))
		}
	}
	q.roster.mu.RUnlock()
	switch {
	case !full || asked:
		return nil
	case len(oldest) < 2:
		q.log.Warn("the queue holds many tasks, and hardly any is finished: none is deleted", "limit", limit)
		return nil
	}
	query := "?beforeEnqueuedAt=" + fromNanos(newest+1).Format(time.RFC3339Nano) + "&statuses=succeeded,failed,canceled"
	r := &request{New: New{Content: DeleteTasks{Query: query, Tasks: oldest}}}
	var err error
	if r.content, err = encodeContent(r.Content); err != nil {
		return err
	}
	q.store([]*request{r})
	return r.err
}

// IsCanceled reports whether the batch of an Executor's context was canceled, and not only interrupted.
func IsCanceled(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errCanceled) }

// Amend changes the content of an unfinished task, and what its details say. The kind stays.
func (q *Queue) Amend(uid uint32, c Content) error {
	b, err := encodeContent(c)
	if err != nil {
		return err
	}
	return q.update(func(tx *txn) error {
		rec, err := tx.record(uid)
		if err != nil || rec == nil || rec.status != Enqueued {
			return err
		}
		rec.content, rec.details = b, c.details("", nil)
		return tx.put(uid, rec)
	})
}

package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/boltfile"
	"svc/internal/index"
)

// partTasks and partBytes bound the part of a cancelation or deletion in one transaction. They bound the delay of
// enqueueing and the memory.
const (
	partTasks = 10_000
	partBytes = 16 << 20 // of the records of tasks
)

// part is partTasks, or what a test wants.
func (o *Options) part() int {
	if o.partTasks > 0 {
		return o.partTasks
	}
	return partTasks
}

// cancelTasks runs one cancelation. It cancels the matched waiting tasks in parts, one transaction each; the last one also
// ends the cancelation. No other batch begins until then. After a crash the cancelation runs first and continues in the
// same batch (see interruptedCancelation), which the tasks that it has already canceled name.
func (q *Queue) cancelTasks(run *running) error {
	t := run.tasks[0]
	run.progress.inside(0, index.Step{Name: "retrieving tasks", Total: 4})
	waiting := roaring.BitmapOf(t.Content.(CancelTasks).Tasks...)
	waiting.RemoveRange(uint64(t.UID), 1<<32)
	before := roaring.New()
	q.roster.mu.RLock()
	waiting.And(q.roster.byStatus[Enqueued])
	if set := q.roster.canceledBy[t.UID]; set != nil {
		before.Or(set)
	}
	q.roster.mu.RUnlock()
	s := summarize(run)
	if err := q.recount(s, before); err != nil {
		return err
	}
	run.progress.inside(0, index.Step{Name: "updating tasks", Finished: 3, Total: 4})
	total := int(before.GetCardinality() + waiting.GetCardinality())
	for {
		run.progress.inside(1, index.Step{Name: "task", Finished: s.batch.Stats.Total, Total: total})
		done, err := q.cancelPart(s, waiting)
		if done || err != nil {
			return err
		}
		// Not run.ctx: a cancellation that has started cannot be cancelled.
		if err := context.Cause(q.ctx); err != nil {
			return err
		}
	}
}

// cancelPart cancels as many of the tasks that wait as fit into a transaction, and takes them out of the set. With the last of them, which
// done reports, the cancelation and its batch end.
func (q *Queue) cancelPart(s *summary, waiting *roaring.Bitmap) (done bool, err error) {
	at := q.finishTime(s.run)
	by := s.run.tasks[0]
	before := s.batch.Stats.Total
	var canceled []*Task
	var batch []byte
	done, err = q.storeBatch(s, func(tx *txn) (_ []*Task, _ []byte, err error) {
		if canceled, err = tx.cancel(s.run, firstOf(waiting, q.o.part()), at); err != nil {
			return nil, nil, err
		}
		if uint64(len(canceled)) < waiting.GetCardinality() {
			return canceled, nil, nil
		}
		e := end{task: by, status: Succeeded, result: result{outcome: outcome{count: before + len(canceled)}}}
		ended := append(canceled, e.finished(s.run, at))
		if err := tx.finish(ended[len(canceled)]); err != nil {
			return nil, nil, err
		}
		if batch == nil { // a second try ends the same tasks
			for _, t := range ended {
				s.add(t)
			}
			if batch, err = s.close(at); err != nil {
				return nil, nil, err
			}
		}
		return ended, batch, nil
	})
	if done || err != nil {
		return done, err
	}
	for _, t := range canceled {
		s.add(t)
		waiting.Remove(t.UID)
	}
	return false, nil
}

// recount adds tasks to a summary that an earlier run of their cancelation has canceled.
func (q *Queue) recount(s *summary, tasks *roaring.Bitmap) error {
	var names *names
	return q.read(func(ro *roster, _ *boltfile.Tx) error {
		names = ro.names
		return nil
	}, func(tx *boltfile.Tx) error {
		for it := tasks.Iterator(); it.HasNext(); {
			t, err := shownTask(tx, it.Next(), names, nil, nil)
			if err != nil {
				return err
			}
			s.add(t)
		}
		return nil
	})
}

// cancel cancels tasks that wait, but no more than partBytes, and returns them.
func (tx *txn) cancel(run *running, tasks *roaring.Bitmap, at time.Time) (canceled []*Task, err error) {
	var records []*record
	bytes := 0
	err = eachOf(tx.tasks, tasks, damagedTask, func(uid uint32, v []byte) (more bool, err error) {
		rec, err := decodeRecord(v)
		if err != nil {
			return false, damagedTask(tx.tasks, uid, err)
		}
		t := rec.task(uid, tx.names)
		if t.Content, err = decodeContent(rec.kind, rec.content); err != nil {
			return false, fmt.Errorf("cannot read the content of task %d: %w", uid, err)
		}
		e := end{task: t, status: Canceled, canceledBy: run.tasks[0].UID, result: result{outcome: outcome{failed: true}}}
		canceled, records = append(canceled, e.finished(run, at)), append(records, rec)
		bytes += len(v)
		return bytes < partBytes, nil
	})
	if err == nil && len(records) == 0 && !tasks.IsEmpty() {
		err = lostTask(tx.tasks, tasks.Minimum())
	}
	for i, rec := range records {
		if err == nil {
			err = tx.end(canceled[i], rec)
		}
	}
	return canceled, err
}

// interruptedCancelation returns a waiting cancelation that has canceled tasks in a batch that is not stored: the process ended
// meanwhile. It runs next, in that batch.
func (r *roster) interruptedCancelation(tx *boltfile.Tx) (uid, batch uint32, ok bool, err error) {
	waiting := roaring.And(r.byStatus[Enqueued], r.byKind[TaskCancelation])
	for it := waiting.Iterator(); it.HasNext(); {
		uid := it.Next()
		canceled := r.canceledBy[uid]
		if canceled == nil {
			continue
		}
		var rec record
		found, err := readHead(tx.Bucket(taskBucket), canceled.Minimum(), &rec)
		if err != nil {
			return 0, 0, false, err
		}
		if found && rec.batch != noUID && !r.batches.Contains(rec.batch) {
			return uid, rec.batch, true, nil
		}
	}
	return 0, 0, false, nil
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

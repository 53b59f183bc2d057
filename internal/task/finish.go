package task

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/index"
)

// end is how a task ends.
type end struct {
	result
	task       *Task
	status     Status
	canceledBy uint32 // of canceled ones
}

// summary collects the results of the tasks of a batch that ends.
type summary struct {
	run     *running
	batch   *Batch
	fact    batchFact
	tasks   *roaring.Bitmap
	details union
}

func summarize(run *running) *summary {
	return &summary{run: run, tasks: roaring.New(), batch: &Batch{UID: run.uid, StartedAt: run.startedAt, Strategy: run.Strategy}}
}

// add takes note of a task that has ended in the batch.
func (s *summary) add(t *Task) {
	s.tasks.Add(t.UID)
	s.details.add(t.Kind, t.Details)
	s.batch.Stats.count(t)
	s.fact.count(t)
}

// close ends the batch and returns its record.
func (s *summary) close(finished time.Time) ([]byte, error) {
	s.batch.FinishedAt = finished
	s.batch.Details = s.details.json(true)
	s.batch.Stats.trace = s.run.progress.times()
	s.batch.Stats.Requests = requestsOf(&s.run.requests)
	s.fact.indexes = sortedKeys(s.batch.Stats.Indexes)
	s.fact.times[startedAt], s.fact.times[finishedAt] = toNanos(s.batch.StartedAt), toNanos(finished)
	return encodeBatch(s.batch, &s.fact, s.tasks)
}

// finishTime is when tasks of a batch end that end now.
func (q *Queue) finishTime(run *running) time.Time {
	finished := q.now().UTC()
	if finished.Before(run.startedAt) {
		finished = run.startedAt
	}
	return finished
}

// finished returns the task as it is when it has ended.
func (e *end) finished(run *running, at time.Time) *Task {
	t := *e.task
	t.Status, t.Error = e.status, e.err
	t.BatchUID, t.StartedAt, t.FinishedAt = &run.uid, run.startedAt, at
	if e.status == Canceled {
		t.CanceledBy = &e.canceledBy
	}
	if t.Details = e.details; t.Details == nil {
		t.Details = t.Content.details(t.IndexUID, &e.outcome)
	}
	return &t
}

// finish stores the ends of tasks, in uid order, with their batch, in one transaction. extra may add changes to it. Then
// it drops payloads and calls OnBatch.
func (q *Queue) finish(run *running, ends []end, extra func(*txn) error) error {
	run.progress.outer(1)
	at := q.finishTime(run)
	s := summarize(run)
	tasks := make([]*Task, len(ends))
	for i := range ends {
		run.progress.set(1, index.Step{Name: "task", Finished: i, Total: len(ends)})
		tasks[i] = ends[i].finished(run, at)
		s.add(tasks[i])
	}
	batch, err := s.close(at)
	if err != nil {
		return err
	}
	_, err = q.storeBatch(s, func(tx *txn) ([]*Task, []byte, error) {
		for _, t := range tasks {
			if err := tx.finish(t); err != nil {
				return nil, nil, err
			}
		}
		if extra != nil {
			return tasks, batch, extra(tx)
		}
		return tasks, batch, nil
	})
	return err
}

// storeBatch stores a batch in one transaction. store adds the ends of its tasks, or of the last ones, and returns them
// with the batch's record (nil if others have not ended). Then storeBatch drops payloads and calls OnBatch and OnEnd.
// ended reports whether the batch is stored.
func (q *Queue) storeBatch(s *summary, store func(*txn) ([]*Task, []byte, error)) (ended bool, err error) {
	run := s.run
	var tasks []*Task
	err = q.persist(func(tx *txn) (err error) {
		var batch []byte
		tasks, batch, err = store(tx)
		if ended = err == nil && batch != nil; !ended {
			return err
		}
		if err := tx.putBatch(run.uid, &s.fact, batch); err != nil {
			return err
		}
		tx.after = append(tx.after, func(ro *roster) {
			ro.running = ro.running.without(run)
			ro.unpark(run)
			if run.has(freeingKinds) {
				ro.hurryAll()
			}
		})
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, t := range tasks {
		if t.Error != nil && t.Error.HasCause() {
			q.log.Error("a task failed because of the machine", "task", t.UID, "type", t.Kind, "error", t.Error)
		}
	}
	point := "part stored"
	if ended {
		point = "stored"
	}
	if err := q.at(point); err != nil {
		return false, err
	}
	if ended {
		q.ended.Add(1)
		q.logEnd(s.batch, tasks)
	}
	q.finished(tasks)
	if ended && q.o.OnEnd != nil {
		q.o.OnEnd(run.uid)
	}
	return ended, nil
}

// finished drops the payloads of tasks that have ended, and calls OnBatch.
func (q *Queue) finished(tasks []*Task) {
	var payloads []string
	for _, t := range tasks {
		if c, ok := t.Content.(AddDocuments); ok && c.File != "" {
			payloads = append(payloads, c.File)
		}
	}
	q.dropPayloads(payloads)
	if q.o.OnBatch != nil {
		q.telling.Lock()
		defer q.telling.Unlock()
		q.o.OnBatch(tasks)
	}
}

// logEnd logs the end of a batch and its first failure. It is a warning if the machine is the cause instead of a task.
func (q *Queue) logEnd(b *Batch, tasks []*Task) {
	attrs := []slog.Attr{
		slog.Uint64("batch", uint64(b.UID)), slog.String("type", tasks[0].Kind.String()),
		slog.Int("tasks", b.Stats.Total), slog.Duration("took", b.FinishedAt.Sub(b.StartedAt)),
	}
	if uid := tasks[0].IndexUID; uid != "" {
		attrs = slices.Insert(attrs, 2, slog.String("index", uid))
	}
	level, failures := slog.LevelInfo, 0
	for _, t := range tasks {
		if t.Error == nil {
			continue
		}
		if failures++; failures == 1 {
			attrs = append(attrs, slog.Uint64("task", uint64(t.UID)), slog.Any("error", t.Error))
		}
		if kind := t.Error.Code.Type(); kind == "internal" || kind == "system" {
			level = slog.LevelWarn
		}
	}
	if failures > 0 {
		attrs = append(attrs, slog.Int("failed", failures))
	}
	q.log.LogAttrs(q.ctx, level, "batch finished", attrs...)
}

// persist is update for changes that must not be lost, because the indexes have already changed. It retries until the disk accepts
// the change or the queue closes. If the queue closes, the next start finds the batch in the journal.
func (q *Queue) persist(f func(*txn) error) error {
	for {
		err := q.update(f)
		if err == nil {
			return nil
		}
		q.log.Error("cannot store the end of a batch; retrying", "error", err, "after", retryAfter)
		select {
		case <-time.After(retryAfter):
		case <-q.ctx.Done():
			return err
		}
	}
}

// finish stores a finished task over its enqueued self.
func (tx *txn) finish(t *Task) error {
	rec, err := tx.record(t.UID)
	if err != nil {
		return err
	}
	if rec == nil {
		return fmt.Errorf("task %d is gone", t.UID)
	}
	return tx.end(t, rec)
}

// end stores a finished task over its record of before.
func (tx *txn) end(t *Task, rec *record) (err error) {
	rec.status, rec.details, rec.err = t.Status, t.Details, t.Error
	rec.batch = *t.BatchUID
	rec.times[startedAt], rec.times[finishedAt] = toNanos(t.StartedAt), toNanos(t.FinishedAt)
	if t.CanceledBy != nil {
		rec.canceledBy = *t.CanceledBy
	}
	if c, ok := t.Content.(ender); ok {
		if rest, less := c.ended(); less {
			if rec.content, err = encodeContent(rest); err != nil {
				return err
			}
		}
	}
	return tx.put(t.UID, rec)
}

// rename exchanges two index uids in all tasks before uid that touch one of them. Tasks from uid on keep theirs. It exchanges the
// names, so only the few later tasks have to be updated, and older swaps are rewritten.
func (tx *txn) rename(uid uint32, a, b string) error {
	if a == b {
		return nil
	}
	idA, err := tx.nameOf(a)
	if err != nil {
		return err
	}
	idB, err := tx.nameOf(b)
	if err != nil {
		return err
	}
	touching := roaring.New()
	for _, id := range []nameID{idA, idB} {
		if set := tx.roster.byName[id]; set != nil {
			touching.Or(set)
		}
	}
	later := touching.Clone()
	later.RemoveRange(0, uint64(uid))
	older := roaring.And(touching, tx.roster.byKind[IndexSwap])
	older.RemoveRange(uint64(uid), 1<<32)

	for it := later.Iterator(); it.HasNext(); {
		rec, err := tx.record(it.PeekNext())
		if err != nil {
			return err
		}
		if rec == nil {
			return lostTask(tx.tasks, it.PeekNext())
		}
		rec.names = slices.Clone(rec.names)
		for i, id := range rec.names {
			switch id {
			case idA:
				rec.names[i] = idB
			case idB:
				rec.names[i] = idA
			}
		}
		if err := tx.put(it.Next(), rec); err != nil {
			return err
		}
	}
	for it := older.Iterator(); it.HasNext(); {
		if err := tx.rewriteSwap(it.Next(), a, b); err != nil {
			return err
		}
	}
	if err := tx.setName(idA, b); err != nil {
		return err
	}
	return tx.setName(idB, a)
}

// rewriteSwap exchanges two uids in the text of an older swap.
func (tx *txn) rewriteSwap(uid uint32, a, b string) error {
	rec, err := tx.record(uid)
	if err != nil {
		return err
	}
	if rec == nil {
		return lostTask(tx.tasks, uid)
	}
	content, err := decodeContent(rec.kind, rec.content)
	if err != nil {
		return err
	}
	c := content.(SwapIndexes)
	for i := range c.Swaps {
		for j, text := range c.Swaps[i].Indexes {
			switch text {
			case a:
				c.Swaps[i].Indexes[j] = b
			case b:
				c.Swaps[i].Indexes[j] = a
			}
		}
	}
	rec.details = c.details("", nil)
	if rec.content, err = encodeContent(c); err != nil {
		return err
	}
	return tx.put(uid, rec)
}

package task

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/boltfile"
	"svc/internal/index"
)

// end is how a task ends.
type end struct {
	result
	task       *Task
	status     Status
	canceledBy uint32 // of canceled ones
}

// finish stores the ends of tasks, in uid order, with their batch in one
// transaction, in which extra may change more. Then it drops payloads and tells OnBatch.
func (q *Queue) finish(run *running, ends []end, extra func(*txn) error) error {
	run.progress.outer(1)
	finished := q.now().UTC()
	if finished.Before(run.startedAt) {
		finished = run.startedAt
	}
	b := &Batch{UID: run.uid, StartedAt: run.startedAt, FinishedAt: finished, Strategy: run.Strategy}
	set := roaring.New()
	var u union
	tasks := make([]*Task, len(ends))
	for i, e := range ends {
		run.progress.set(1, index.Step{Name: "task", Finished: i, Total: len(ends)})
		t := *e.task
		t.Status, t.Error = e.status, e.err
		t.BatchUID, t.StartedAt, t.FinishedAt = &run.uid, run.startedAt, finished
		if e.status == Canceled {
			t.CanceledBy = &ends[i].canceledBy
		}
		if t.Details = e.details; t.Details == nil {
			t.Details = t.Content.details(t.IndexUID, &e.outcome)
		}
		tasks[i] = &t
		set.Add(t.UID)
		u.add(t.Kind, t.Details)
		b.Stats.count(&t)
	}
	b.Details = u.json(true)
	b.Stats.trace = run.progress.times()
	b.Stats.Requests = requestsOf(&run.requests)
	fact := b.fact(tasks)
	rec, err := encodeBatch(b, fact, set)
	if err != nil {
		return err
	}
	err = q.persist(func(tx *txn) error {
		for _, t := range tasks {
			if err := tx.finish(t); err != nil {
				return err
			}
		}
		if err := boltfile.Put(tx.batches, key(run.uid), rec); err != nil {
			return err
		}
		tx.changedBatches = roaring.BitmapOf(run.uid)
		tx.after = append(tx.after, func(ro *roster) {
			ro.addBatch(run.uid, fact)
			ro.running = ro.running.without(run)
			ro.unpark(run)
			if run.kinds&(1<<IndexDeletion|1<<TaskDeletion|1<<DocumentDeletion|1<<IndexCompaction) != 0 {
				ro.hurryAll()
			}
		})
		if extra != nil {
			return extra(tx)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := q.at("stored"); err != nil {
		return err
	}
	q.ended.Add(1)
	q.logEnd(b, tasks)
	for _, t := range tasks {
		if c, ok := t.Content.(AddDocuments); ok {
			q.dropPayload(c)
		}
	}
	if q.o.OnBatch != nil {
		q.telling.Lock()
		defer q.telling.Unlock()
		q.o.OnBatch(tasks)
	}
	return nil
}

// logEnd tells the end of a batch, and its first failure: as a warning when the machine, and not the task, is to blame.
func (q *Queue) logEnd(b *Batch, tasks []*Task) {
	attrs := []slog.Attr{
		slog.Uint64("batch", uint64(b.UID)), slog.String("type", tasks[0].Kind.String()),
		slog.Int("tasks", len(tasks)), slog.Duration("took", b.FinishedAt.Sub(b.StartedAt)),
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

// persist is update for what must not be lost: the indexes have changed
// already. It tries until the disk takes it or the queue closes; in that case
// the next start finds the batch in the journal.
func (q *Queue) persist(f func(*txn) error) error {
	for {
		err := q.update(f)
		if err == nil {
			return nil
		}
		q.log.Error("the end of a batch cannot be stored; trying again", "error", err, "after", retryAfter)
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
	old := rec.status
	rec.status, rec.details, rec.err = t.Status, t.Details, t.Error
	rec.batch = *t.BatchUID
	rec.times[startedAt], rec.times[finishedAt] = toNanos(t.StartedAt), toNanos(t.FinishedAt)
	if t.CanceledBy != nil {
		rec.canceledBy = *t.CanceledBy
	}
	if c, ok := t.Content.(DeleteDocuments); ok {
		// The ids may be many, and nobody asks for them any more.
		c.IDs = nil
		if rec.content, err = encodeContent(c); err != nil {
			return err
		}
	}
	if c, ok := t.Content.(ExportTo); ok && c.APIKey != "" {
		c.APIKey = "" // nor for the secret
		if rec.content, err = encodeContent(c); err != nil {
			return err
		}
	}
	if c, ok := t.Content.(ChangeTopology); ok {
		c.State = nil // it has keys in it
		if rec.content, err = encodeContent(c); err != nil {
			return err
		}
	}
	if err := tx.put(t.UID, rec); err != nil {
		return err
	}
	tx.after = append(tx.after, func(ro *roster) { ro.change(t.UID, old, rec) })
	return nil
}

// rename gives all tasks before uid that touch one of two indexes the other's
// uid. The tasks from uid on keep theirs. It is an exchange of names; only the
// few later tasks move, and older swaps are written anew.
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
	if err := tx.setName(idB, a); err != nil {
		return err
	}
	tx.after = append(tx.after, func(ro *roster) {
		setA, setB := roaring.New(), roaring.New()
		if s := ro.byName[idA]; s != nil {
			setA = s
		}
		if s := ro.byName[idB]; s != nil {
			setB = s
		}
		laterA, laterB := roaring.And(setA, later), roaring.And(setB, later)
		setA.AndNot(laterA)
		setB.AndNot(laterB)
		setA.Or(laterB)
		setB.Or(laterA)
		ro.byName[idA], ro.byName[idB] = setA, setB
	})
	return nil
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

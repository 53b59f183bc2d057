package task

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/boltfile"
	"svc/internal/index"
)

// deleteTasks runs all waiting deletions. It deletes the matched finished tasks in parts, one transaction each, which also
// records the number of deleted tasks. The last transaction ends the deletions. After a crash or a stop they continue from
// there. A batch is deleted with its last task.
func (q *Queue) deleteTasks(run *running) error {
	defer q.shrinkSoon()
	run.progress.inside(0, index.Step{Name: "retrieving tasks", Total: 8})
	ends := make([]end, len(run.tasks))
	part, note := roaring.New(), func(*txn) error { return nil } // what goes next
	for i, t := range run.tasks {
		c := t.Content.(DeleteTasks)
		gone := roaring.BitmapOf(c.Tasks...)
		q.roster.mu.RLock()
		gone.And(roaring.FastOr(q.roster.byStatus[Succeeded], q.roster.byStatus[Failed], q.roster.byStatus[Canceled]))
		q.roster.mu.RUnlock()
		gone.AndNot(part)
		run.progress.inside(0, index.Step{Name: "deleting tasks", Finished: 6, Total: 8})
		total := c.Deleted + int(gone.GetCardinality())
		for !gone.IsEmpty() {
			if err := q.deletePart(run, part, note); err != nil {
				return err
			}
			part = firstOf(gone, q.o.part())
			gone.AndNot(part)
			run.progress.inside(1, index.Step{Name: "task", Finished: c.Deleted, Total: total})
			c.Deleted += int(part.GetCardinality())
			note = func(tx *txn) error { return tx.noteDeleted(t.UID, c.Deleted) }
		}
		ends[i] = end{task: t, status: Succeeded, result: result{outcome: outcome{count: c.Deleted}}}
	}
	return q.finish(run, ends, func(tx *txn) error { return tx.deleteTasks(part) })
}

// deletePart deletes some tasks, if there are any, and calls note in the same transaction.
func (q *Queue) deletePart(run *running, tasks *roaring.Bitmap, note func(*txn) error) error {
	if tasks.IsEmpty() {
		return nil
	}
	if err := context.Cause(run.ctx); err != nil {
		return err
	}
	err := q.persist(func(tx *txn) error {
		if err := tx.deleteTasks(tasks); err != nil {
			return err
		}
		return note(tx)
	})
	if err != nil {
		return err
	}
	return q.at("part deleted")
}

// firstOf returns the first n of a set, or all.
func firstOf(set *roaring.Bitmap, n int) *roaring.Bitmap {
	last, err := set.Select(uint32(n))
	if err != nil { // there are no more than n
		return set.Clone()
	}
	first := set.Clone()
	first.RemoveRange(uint64(last), 1<<32)
	return first
}

// deleteTasks removes finished tasks, the batches that lose their last one and the names that nothing touches any more. A transaction does
// it once.
func (tx *txn) deleteTasks(tasks *roaring.Bitmap) error {
	d := newDeletion()
	var rec record
	err := eachOf(tx.tasks, tasks, damagedTask, func(uid uint32, v []byte) (more bool, err error) {
		if _, err := rec.decodeHead(v); err != nil {
			return false, damagedTask(tx.tasks, uid, err)
		}
		d.task(uid, &rec.head)
		return true, nil
	})
	if err != nil {
		return err
	}
	if err := deleteOf(tx.tasks, tasks); err != nil {
		return err
	}
	if err := tx.dropBatches(d); err != nil {
		return err
	}
	if err := tx.dropNames(d); err != nil {
		return err
	}
	tx.effects.deleted = d
	return nil
}

// dropBatches removes the batches whose last tasks go.
func (tx *txn) dropBatches(d *deletion) error {
	emptied := roaring.New()
	for uid, n := range d.batches {
		if tx.roster.batchTasks.get(uid) == n && tx.roster.batches.Contains(uid) {
			emptied.Add(uid)
		}
	}
	var fact batchFact
	err := eachOf(tx.batches, emptied, damagedBatch, func(uid uint32, v []byte) (more bool, err error) {
		if _, err := fact.decode(v); err != nil {
			return false, damagedBatch(tx.batches, uid, err)
		}
		d.batch(uid, &fact)
		return true, nil
	})
	if err != nil {
		return err
	}
	return deleteOf(tx.batches, emptied)
}

// deleteOf removes what a bucket has of some uids.
func deleteOf(b *boltfile.Bucket, uids *roaring.Bitmap) error {
	k := make([]byte, 4)
	for it := uids.Iterator(); it.HasNext(); {
		binary.BigEndian.PutUint32(k, it.Next())
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// dropNames forgets the names that only tasks touch that go.
func (tx *txn) dropNames(d *deletion) error {
	unused := roaring.New()
	for it := d.names.Iterator(); it.HasNext(); {
		id := it.Next()
		if set := tx.roster.byName[nameID(id)]; set != nil && set.AndCardinality(d.tasks) == set.GetCardinality() {
			unused.Add(id)
		}
	}
	if unused.IsEmpty() {
		return nil
	}
	if !tx.namesCloned {
		tx.names, tx.namesCloned = tx.names.clone(), true
	}
	for it := unused.Iterator(); it.HasNext(); {
		tx.names.remove(nameID(it.Next()))
	}
	return deleteOf(tx.tx.Bucket(nameBucket), unused)
}

// noteDeleted has a deletion of tasks say how many it has deleted.
func (tx *txn) noteDeleted(uid uint32, deleted int) error {
	rec, err := tx.record(uid)
	if err != nil {
		return err
	}
	if rec == nil {
		return lostTask(tx.tasks, uid)
	}
	if rec.content, err = withDeleted(rec.content, deleted); err != nil {
		return damagedTask(tx.tasks, uid, err)
	}
	return tx.put(uid, rec)
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
		q.log.Warn("the queue holds many tasks but hardly any finished ones: none is deleted", "limit", limit)
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

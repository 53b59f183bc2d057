package task

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/boltfile"
	"svc/internal/commit"
)

// A queue in follow mode shows the tasks of another program, the writer, whose changes Follow applies here. It stores no tasks and
// runs no batches. It derives the changes in memory from the changes of the file alone: see followed. If invariants are checked, a
// queue that writes compares this with the effects that its own code collects (checkEffects).

// errFollows is the error of a write to a queue that follows.
var errFollows = apierr.New("no_writer", "This server follows another one, and takes no writes itself. Send the request to the server that writes.")

// Follow applies a change of the queue file or of the journal. The payloads that it names are in the directory, durably or kept by a
// log (commit.Keeper). After an error the caller applies the same change again before any other; applying it twice does no harm.
func (q *Queue) Follow(c commit.Change) error {
	q.writing.Lock()
	defer q.writing.Unlock()
	if !q.follows.Load() {
		return errors.New("cannot follow a change of the task queue: it follows nobody")
	}
	switch base := path.Base(c.Name); {
	case c.Kind == commit.Tasks && base == path.Base(q.file):
		if err := q.writable(); err != nil {
			return err
		}
		return boltfile.Guard(q.file, func() error { return q.followTasks(c.Data) })
	case c.Kind == commit.Begin && base == path.Base(q.journal.name):
		if err := q.journal.follow(c.Data); err != nil {
			return err
		}
		return q.showRunning(lastEntry(c.Data))
	}
	return fmt.Errorf("%s is not a file of the task queue", c.Name)
}

// Lead ends follow mode: batches that the writer started run again, and from then on the queue accepts tasks, as if it had been
// opened without Options.Follow. No call of Follow may be running, and the catalog must lead already.
func (q *Queue) Lead() error {
	q.writing.Lock()
	defer q.writing.Unlock()
	if !q.follows.Load() {
		return nil
	}
	if q.ctx.Err() != nil {
		return errClosed
	}
	q.setRunning(nil)
	q.journal.close() // takeUp opens it
	if _, err := q.takeUp(); err != nil {
		return err
	}
	q.follows.Store(false)
	q.work()
	return nil
}

// followTasks makes a transaction of the writer.
func (q *Queue) followTasks(b []byte) error {
	changes, err := boltfile.DecodeChanges(b)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", q.file, err)
	}
	if changes.Format != formatVersion {
		return fmt.Errorf("cannot write %s: the change has format version %d, and this svc writes version %d", q.file, changes.Format, formatVersion)
	}
	tx, err := q.newTxn()
	if err != nil {
		return err
	}
	defer tx.tx.Rollback() // without effect after a commit
	f := newFollowed(tx.tx, tx.names)
	if err := f.read(changes); err != nil {
		return err
	}
	if err := tx.tx.Apply(changes); err != nil {
		return fmt.Errorf("cannot write %s: %w", q.file, err)
	}
	tx.effects, tx.names = f.effects, f.names
	tx.after = append(tx.after, func(ro *roster) {
		for _, c := range f.brought { // before they are dropped
			q.payloadBytes.Add(c.Size)
			q.need(c.File)
		}
		q.keepRunning(ro)
	})
	err = q.endTxn(tx, func(apply func() error) error { return apply() })
	if err == nil {
		q.dropPayloads(f.dropped)
	}
	return err
}

// showRunning shows the batches of a journal entry as running, if the queue does not know their end.
func (q *Queue) showRunning(last *entry) error {
	var shown runs
	for _, e := range last.all() {
		if e.Stopped || !q.unfinished(e) {
			continue
		}
		if run := q.roster.running.batch(e.UID); run != nil && slices.Equal(run.set.ToArray(), e.Tasks) {
			shown = shown.with(run)
			continue
		}
		var tasks []*Task
		err := boltfile.Guard(q.file, func() error {
			return q.db.View(func(tx *boltfile.Tx) (err error) {
				tasks, err = readTasks(tx, roaring.BitmapOf(e.Tasks...), q.roster.names)
				return err
			})
		})
		if err != nil {
			return err
		}
		run := q.newRunning(e.UID, e.StartedAt, tasks, e.Plan)
		run.progress.outer(0)
		shown = shown.with(run)
	}
	q.setRunning(shown)
	return nil
}

// setRunning sets the running batches, and notifies watches of those that begin or end.
func (q *Queue) setRunning(next runs) {
	q.roster.mu.Lock()
	defer q.roster.mu.Unlock()
	tasks, batches := roaring.New(), roaring.New()
	note := func(these, others runs) {
		for _, run := range these {
			if !slices.Contains(others, run) {
				tasks.Or(run.set)
				batches.Add(run.uid)
			}
		}
	}
	was := q.roster.running
	note(was, next)
	note(next, was)
	q.roster.running = next
	for _, run := range was {
		if !slices.Contains(next, run) {
			run.cancel(nil)
		}
	}
	q.watches.tell(tasks, batches)
}

// keepRunning removes the batches whose end is in the file from the running ones. The lock of the roster is held.
func (q *Queue) keepRunning(ro *roster) {
	for _, run := range ro.running {
		if ro.batches.Contains(run.uid) || run.set.AndCardinality(ro.byStatus[Enqueued]) < run.set.GetCardinality() {
			ro.running = ro.running.without(run)
			run.cancel(nil)
		}
	}
}

// followed collects how the changes of a transaction affect the state in memory. tx sees the file before them.
type followed struct {
	effects
	tx    *boltfile.Tx
	names *names // as the changes leave them
	clone bool   // names are a copy

	tasks    map[uint32]*head // as the changes so far leave them
	outgoing map[uint32]*Outgoing
	brought  []AddDocuments // of new tasks, whose payloads are here
	dropped  []string       // payloads that a task or request no longer needs
}

func newFollowed(tx *boltfile.Tx, n *names) *followed {
	return &followed{tx: tx, names: n, tasks: map[uint32]*head{}, outgoing: map[uint32]*Outgoing{}}
}

// read finds the effects of the changes in a transaction of the writer. It fails on a value with a wrong checksum.
func (f *followed) read(c *boltfile.Changes) error {
	return c.Each(func(bucket string, k, stored []byte) error {
		var value []byte
		var err error
		if stored != nil {
			value, err = boltfile.Value(k, stored)
		}
		if err == nil {
			err = f.edit(bucket, k, value, stored != nil)
		}
		if err != nil {
			return fmt.Errorf("cannot follow a change of %s, bucket %s, key %x: %w", fileName(f.tx.Path()), bucket, k, err)
		}
		return nil
	})
}

// edit takes note of a value that is put, or of a key that is deleted.
func (f *followed) edit(bucket string, k, value []byte, put bool) error {
	var uid uint32
	switch bucket {
	case string(taskBucket), string(batchBucket), string(nameBucket), string(outboxBucket):
		if len(k) != 4 {
			return errRecord
		}
		uid = binary.BigEndian.Uint32(k)
	}
	switch bucket {
	case string(taskBucket):
		if put {
			return f.task(uid, value)
		}
		return f.deleteTask(uid)
	case string(batchBucket):
		return f.batch(uid, k, value, put)
	case string(nameBucket):
		if !f.clone {
			f.names, f.clone = f.names.clone(), true
		}
		if put {
			f.names.set(nameID(uid), string(value))
		} else {
			f.names.remove(nameID(uid))
		}
		return nil
	case string(outboxBucket):
		return f.request(uid, k, value, put)
	case string(positionBucket):
		return f.position(k, value, put)
	case string(originBucket):
		return f.origin(k, put)
	}
	return errors.New("this svc does not know the bucket: a later one wrote it")
}

// taskBefore returns a task as the changes so far leave it, or nil.
func (f *followed) taskBefore(uid uint32) (*head, error) {
	if h, ok := f.tasks[uid]; ok {
		return h, nil
	}
	var rec record
	found, err := readHead(f.tx.Bucket(taskBucket), uid, &rec)
	if err != nil || !found {
		return nil, err
	}
	return &rec.head, nil
}

// task records that a task is stored. It also records payloads that a new addition brings, or that a finished one no longer needs.
func (f *followed) task(uid uint32, value []byte) error {
	was, err := f.taskBefore(uid)
	if err != nil {
		return err
	}
	rec, err := decodeRecord(value)
	if err != nil {
		return err
	}
	now := rec.stored
	f.effects.tasks = append(f.effects.tasks, taskEffect{uid, was, now})
	f.tasks[uid] = now
	begins, ends := was == nil && now.status == Enqueued, was != nil && was.status == Enqueued && now.status.Finished()
	if !begins && !ends || now.kind != DocumentAdditionOrUpdate && now.kind != DocumentEdition {
		return nil
	}
	content, err := decodeContent(now.kind, rec.content)
	if err != nil {
		return err
	}
	if c, ok := content.(AddDocuments); ok && c.File != "" {
		if begins {
			f.brought = append(f.brought, c)
		} else {
			f.dropped = append(f.dropped, c.File)
		}
	}
	return nil
}

func (f *followed) deletion() *deletion {
	if f.deleted == nil {
		f.deleted = newDeletion()
	}
	return f.deleted
}

// deleteTask records that a task is deleted. Deleting a missing task has no effect.
func (f *followed) deleteTask(uid uint32) error {
	was, err := f.taskBefore(uid)
	if was != nil {
		f.deletion().task(uid, was)
		f.tasks[uid] = nil
	}
	return err
}

// batch notes that a batch is stored or deleted.
func (f *followed) batch(uid uint32, k, value []byte, put bool) error {
	fact := new(batchFact)
	if put {
		if _, err := fact.decode(value); err != nil {
			return err
		}
		f.batches = append(f.batches, batchEffect{uid, fact})
		return nil
	}
	v, err := boltfile.Get(f.tx.Bucket(batchBucket), k)
	if v == nil || err != nil {
		return err
	}
	if _, err := fact.decode(v); err != nil {
		return damagedBatch(f.tx.Bucket(batchBucket), uid, err)
	}
	f.deletion().batch(uid, fact)
	return nil
}

// stored returns the value in the file under a key of a bucket, which may be missing.
func (f *followed) stored(bucket, k []byte) ([]byte, error) {
	b := f.tx.Bucket(bucket)
	if b == nil {
		return nil, nil
	}
	return b.Get(k)
}

// request records that a request of the outbox is stored or deleted. Its previous state may be from the same transaction or from the
// file.
func (f *followed) request(uid uint32, k, value []byte, put bool) (err error) {
	was, known := f.outgoing[uid]
	if !known {
		v, err := f.stored(outboxBucket, k)
		if err == nil && v != nil {
			was, err = decodeOutgoing(k, v)
		}
		if err != nil {
			return err
		}
	}
	now := &Outgoing{UID: uid}
	switch {
	case put:
		if err := json.Unmarshal(value, now); err != nil {
			return err
		}
	case was == nil:
		return nil
	case was.File != "":
		f.dropped = append(f.dropped, was.File)
	}
	var pending []string
	if was != nil {
		pending = was.Pending
	}
	f.effects.outgoing = append(f.effects.outgoing, outgoingEffect{pending, now})
	if f.outgoing[uid] = now; !put {
		f.outgoing[uid] = nil
	}
	return nil
}

// position notes a new position among the requests of a leader. A deleted one becomes the zero position.
func (f *followed) position(k, value []byte, put bool) error {
	p := new(Position)
	if put {
		if err := json.Unmarshal(value, p); err != nil {
			return err
		}
	}
	switch string(k) {
	case string(toldKey):
		f.told = p
	case string(gotKey):
		f.got = p
	default:
		return errRecord
	}
	return nil
}

// origin notes that the origin of a request is stored or deleted.
func (f *followed) origin(k []byte, put bool) error {
	v, err := f.stored(originBucket, k)
	switch {
	case err != nil:
		return err
	case put && v == nil:
		f.origins = append(f.origins, bytes.Clone(k))
	case !put && v != nil:
		f.forgotten++
	}
	return nil
}

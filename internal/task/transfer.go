package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/bytedance/sonic"

	"svc/internal/boltfile"
	"svc/internal/vfs"
)

// Each calls task for every stored task in uid order, with its content, and then batch for every stored batch, all from one state. It
// omits running batches, and shows their tasks as enqueued. Pages that change meanwhile are not reused, so the queue file grows while
// Each runs.
func (q *Queue) Each(task func(*Task) error, batch func(*Batch) error) error {
	var names *names
	return q.read(func(ro *roster, _ *boltfile.Tx) error {
		names = ro.names
		return nil
	}, func(tx *boltfile.Tx) error {
		tasks := tx.Bucket(taskBucket).Cursor()
		for k, _ := tasks.First(); k != nil; k, _ = tasks.Next() {
			t, err := readTask(tx, uidOf(k), names, nil)
			if err != nil {
				return err
			}
			if err := task(t); err != nil {
				return err
			}
		}
		batches := tx.Bucket(batchBucket).Cursor()
		for k, _ := batches.First(); k != nil; k, _ = batches.Next() {
			b, err := readBatch(tx, uidOf(k), nil, nil)
			if err != nil {
				return err
			}
			if err := batch(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// CopyTo writes the current queue file, without the given tasks, to a new file. It returns the payload files that the copy needs.
// Those of waiting tasks stay as long as no batch ends, which the caller must prevent until it has read them. Those of the outbox
// stay until release is called. compact omits free pages.
func (q *Queue) CopyTo(name string, without []uint32, compact bool) (payloads []string, release func(), err error) {
	var waiting *roaring.Bitmap
	var names *names
	var held []string
	err = q.read(func(ro *roster, _ *boltfile.Tx) error {
		names = ro.names
		waiting = ro.bringPayloads()
		held = q.holdOutgoing() // what tx sees of the outbox: it changes under the lock of the roster
		return nil
	}, func(tx *boltfile.Tx) error {
		for it := waiting.Iterator(); it.HasNext(); {
			t, err := readTask(tx, it.Next(), names, nil)
			if err != nil {
				return err
			}
			if c, ok := t.Content.(AddDocuments); ok && c.File != "" {
				payloads = append(payloads, q.payloadPath(c.File))
			}
		}
		for _, file := range held {
			payloads = append(payloads, q.payloadPath(file))
		}
		slices.Sort(payloads)
		payloads = slices.Compact(payloads)
		if !compact {
			return tx.CopyFile(name)
		}
		return tx.CopyLive(name, fileOptions(q.log, false))
	})
	if err == nil {
		err = dropTasks(name, without)
	}
	release = func() { q.dropPayloads(held) }
	if err != nil {
		release()
		return nil, nil, fmt.Errorf("cannot copy %s to %s: %w", q.file, name, err)
	}
	return payloads, release, nil
}

// dropTasks deletes tasks from a queue file that is not open, such as that of a snapshot.
func dropTasks(name string, uids []uint32) error {
	db, err := boltfile.Open(name, fileOptions(nil, false))
	if err != nil {
		return err
	}
	err = db.Update(func(tx *boltfile.Tx) error {
		for _, uid := range uids {
			if err := tx.Bucket(taskBucket).Delete(key(uid)); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, db.Close())
}

// Restore fills the queue of a directory that has none yet with tasks and batches of another. Nothing runs meanwhile.
type Restore struct {
	q       *Queue
	pending []func(*txn) error
	batches map[uint32]*roaring.Bitmap // the tasks of each
}

// restoreGroup is how many tasks or batches are stored in one transaction.
const restoreGroup = 4096

// NewRestore creates the queue of dir. What is added is durable once Close has returned nil.
func NewRestore(fsys vfs.FS, dir string) (*Restore, error) {
	q, err := open(Options{Dir: dir, FS: fsys, MaxBytes: -1, MaxTasks: -1, noSync: true})
	if err != nil {
		return nil, err
	}
	return &Restore{q: q, batches: map[uint32]*roaring.Bitmap{}}, nil
}

// NewPayload begins the payload of an enqueued addition.
func (r *Restore) NewPayload() (*Payload, error) { return r.q.NewPayload() }

// Task adds a task. The details of an enqueued task follow from its content; a finished task has those of t. payload may be nil; the
// queue takes ownership. t.Status is not Processing.
func (r *Restore) Task(t *Task, payload *Payload) error {
	content := t.Content
	if c, ok := content.(AddDocuments); ok {
		c.File, c.Size, c.Sum = "", 0, 0
		if payload != nil {
			if err := payload.finish(); err != nil {
				return err
			}
			c.File, c.Size, c.Sum = payload.name, payload.size, payload.sum.Sum64()
			payload.name = ""
		}
		content = c
	}
	stored, err := encodeContent(content)
	if err != nil {
		return err
	}
	rec := &record{
		head:     head{fact: fact{status: t.Status, kind: content.Kind(), batch: uidOr(t.BatchUID)}, canceledBy: uidOr(t.CanceledBy)},
		metadata: t.CustomMetadata, details: t.Details, err: t.Error, content: stored,
	}
	rec.times = [taskTimes]int64{toNanos(t.EnqueuedAt), toNanos(t.StartedAt), toNanos(t.FinishedAt)}
	if !t.Status.Finished() {
		rec.details = content.details(t.IndexUID, nil)
	}
	if t.BatchUID != nil {
		addTo(r.batches, *t.BatchUID, t.UID)
	}
	own := t.IndexUID
	if rec.kind.Global() {
		own = ""
	}
	uid, others := t.UID, touched(content)
	return r.add(func(tx *txn) error {
		old, err := tx.record(uid)
		if err != nil {
			return err
		}
		if old != nil {
			return fmt.Errorf("there are two tasks %d", uid)
		}
		if err := tx.setNames(rec, own, others); err != nil {
			return err
		}
		return tx.put(uid, rec)
	})
}

// Batch adds a finished batch, after all tasks; one that no task names is left out.
func (r *Restore) Batch(b *Batch) error {
	set := r.batches[b.UID]
	if set == nil {
		return nil
	}
	f := &batchFact{indexes: sortedKeys(b.Stats.Indexes)}
	f.times[startedAt], f.times[finishedAt] = toNanos(b.StartedAt), toNanos(b.FinishedAt)
	f.times[oldestEnqueued], f.times[newestEnqueued] = toNanos(b.Oldest), toNanos(b.Newest)
	for s, n := range b.Stats.Statuses {
		if n > 0 {
			f.statuses |= 1 << s
		}
	}
	for k, n := range b.Stats.Kinds {
		if n > 0 {
			f.kinds |= 1 << k
		}
	}
	rec, err := encodeBatch(b, f, set)
	if err != nil {
		return err
	}
	uid := b.UID
	return r.add(func(tx *txn) error { return tx.putBatch(uid, f, rec) })
}

// add queues a change. Several are stored in one transaction.
func (r *Restore) add(f func(*txn) error) error {
	r.pending = append(r.pending, f)
	if len(r.pending) < restoreGroup {
		return nil
	}
	return r.flush()
}

// flush stores the queued changes. After an error they are dropped.
func (r *Restore) flush() error {
	if len(r.pending) == 0 {
		return nil
	}
	defer func() { r.pending = r.pending[:0] }()
	return r.q.update(func(tx *txn) error {
		for _, f := range r.pending {
			if err := f(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close makes everything durable and closes the queue.
func (r *Restore) Close() error {
	err := r.flush()
	if err == nil {
		err = r.q.db.Sync()
	}
	for _, dir := range []string{path.Join(r.q.o.Dir, "payloads"), r.q.o.Dir} {
		if err == nil {
			err = r.q.fs.SyncDir(dir)
		}
	}
	r.q.stop(errClosed)
	r.q.journal.close()
	return errors.Join(err, r.q.db.Close())
}

func uidOr(uid *uint32) uint32 {
	if uid == nil {
		return noUID
	}
	return *uid
}

// MarshalJSON gives the statistics of the API.
func (s *Stats) MarshalJSON() ([]byte, error) { return s.appendJSON(nil), nil }

// UnmarshalJSON reads the output of MarshalJSON. It ignores unknown statuses and types.
func (s *Stats) UnmarshalJSON(b []byte) error {
	var in struct {
		Total    int               `json:"totalNbTasks"`
		Status   map[string]int    `json:"status"`
		Types    map[string]int    `json:"types"`
		Indexes  map[string]int    `json:"indexUids"`
		Trace    map[string]string `json:"progressTrace"`
		Requests *Requests         `json:"embedderRequests"`
	}
	if err := sonic.Unmarshal(b, &in); err != nil {
		return err
	}
	*s = Stats{Total: in.Total, Indexes: in.Indexes, Requests: in.Requests}
	for name, n := range in.Status {
		if i := slices.Index(statusNames[:], name); i >= 0 {
			s.Statuses[i] = n
		}
	}
	for name, n := range in.Types {
		if i := slices.Index(kindNames[:], name); i >= 0 {
			s.Kinds[i] = n
		}
	}
	for _, path := range slices.Sorted(maps.Keys(in.Trace)) {
		if took, err := time.ParseDuration(in.Trace[path]); err == nil {
			s.trace = append(s.trace, traceEntry{path, took})
		}
	}
	return nil
}

func uidOf(key []byte) uint32 { return binary.BigEndian.Uint32(key) }

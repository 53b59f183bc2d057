package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"time"

	"svc/internal/apierr"
	"svc/internal/boltfile"
	"svc/internal/commit"
	"svc/internal/invariant"
	"svc/internal/vfs"
)

// The queue file has six buckets (see boltfile): these, and three for writes of a network (outbox.go), which are created on first
// use. Uids are big-endian keys, so that cursors walk in order.
var (
	taskBucket  = []byte("tasks")   // uid → record
	batchBucket = []byte("batches") // uid → batch record
	nameBucket  = []byte("names")   // nameID → index uid
)

const (
	formatVersion = 2
	fileStep      = 1 << 20  // the file grows by this many bytes
	mapStart      = 64 << 20 // address space mapped from the start, so that growth rarely waits for readers
	pageFill      = 0.8      // uids come in order; the rest of a page is room for records to grow when they finish
)

func fileOptions(log *slog.Logger, noSync bool) boltfile.Options {
	return boltfile.Options{
		Format: formatVersion, Buckets: [][]byte{taskBucket, batchBucket, nameBucket}, Logger: log, MapSize: mapStart, Step: fileStep, NoSync: noSync, Fill: pageFill,
	}
}

// fileName returns the name of an open queue file. One that was compacted or reverted was opened under another name.
func fileName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, compactSuffix), boltfile.NewSuffix)
}

func key(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// load builds the roster from the file.
func load(db *boltfile.DB) (*roster, error) {
	r := newRoster()
	damaged := func(section string, k []byte, err error) error {
		return &apierr.Corruption{File: fileName(db.Path()), Section: section, Offset: -1, Reason: fmt.Sprintf("key %x: %v", k, err)}
	}
	err := db.View(func(tx *boltfile.Tx) error {
		r.txid = tx.ID()
		c := tx.Bucket(nameBucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if len(k) != 4 {
				return damaged("names", k, errRecord)
			}
			name, err := boltfile.Value(k, v)
			if err != nil {
				return damaged("names", k, err)
			}
			r.names.set(nameID(binary.BigEndian.Uint32(k)), string(name))
		}
		var rec record
		c = tx.Bucket(taskBucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if len(k) != 4 {
				return damaged("tasks", k, errRecord)
			}
			value, err := boltfile.Value(k, v)
			if err == nil {
				_, err = rec.decodeHead(value)
			}
			if err != nil {
				return damaged("tasks", k, err)
			}
			r.add(binary.BigEndian.Uint32(k), &rec.head)
		}
		var fact batchFact
		c = tx.Bucket(batchBucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if len(k) != 4 {
				return damaged("batches", k, errRecord)
			}
			value, err := boltfile.Value(k, v)
			if err == nil {
				_, err = fact.decode(value)
			}
			if err != nil {
				return damaged("batches", k, err)
			}
			r.addBatch(binary.BigEndian.Uint32(k), &fact)
		}
		return nil
	})
	return r, err
}

// txn is a change of the file and, once it is committed, of what memory has of it.
type txn struct {
	tx             *boltfile.Tx
	tasks, batches *boltfile.Bucket
	roster         *roster // as it was before the change: the only writer is us
	names          *names  // as the change leaves them
	namesCloned    bool
	effects        effects
	payloads       []string        // the files of new tasks
	contents       [][]byte        // of payloads, by index; nil: not at hand
	named          func() error    // waits until the names of these are durable; nil: they are
	after          []func(*roster) // what else is to happen before others see the change: none of it is in the file
}

// update runs f in a transaction; when f gives an error nothing has changed.
// The roster follows under its lock, all at once.
func (q *Queue) update(f func(*txn) error) error {
	q.writing.Lock()
	defer q.writing.Unlock()
	if q.follows.Load() {
		return errFollows
	}
	if err := q.writable(); err != nil {
		return err
	}
	return boltfile.Guard(q.file, func() error { return q.change(f) })
}

// change is update, with the lock held.
func (q *Queue) change(f func(*txn) error) error {
	tx, err := q.newTxn()
	if err != nil {
		return err
	}
	defer tx.tx.Rollback() // without effect after a commit
	compares := q.compares()
	if commit.Logged(q.fs) || compares {
		tx.tx.Record()
	}
	if err := f(tx); err != nil {
		return err
	}
	if compares {
		q.checkEffects(tx)
	}
	return q.endTxn(tx, func(apply func() error) error {
		return commit.Do(q.fs, func() (commit.Change, error) {
			b, err := tx.tx.Changes()
			return commit.Change{Kind: commit.Tasks, Name: q.file, Data: b, Files: tx.payloads, Contents: tx.contents}, err
		}, apply)
	})
}

// newTxn begins a transaction, which the caller rolls back. writing is held.
func (q *Queue) newTxn() (tx *txn, err error) {
	btx, err := boltfile.Begin(q.db, q.roster.txid)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", q.file, err)
	}
	defer func() { // also when it panics
		if tx == nil {
			btx.Rollback()
		}
	}()
	opened := &txn{
		tx: btx, tasks: btx.Bucket(taskBucket), batches: btx.Bucket(batchBucket),
		roster: q.roster, names: q.roster.names,
	}
	if opened.tasks == nil || opened.batches == nil {
		return nil, &apierr.Corruption{File: q.file, Section: "buckets", Offset: -1, Reason: "one that was there is missing"}
	}
	opened.tasks.Fill(pageFill)
	opened.batches.Fill(pageFill)
	return opened, nil
}

// endTxn commits a transaction, with the function that do calls, and has memory follow. writing is held.
func (q *Queue) endTxn(tx *txn, do func(apply func() error) error) error {
	id := tx.tx.ID()
	write := (*boltfile.Tx).Commit
	if q.o.commit != nil {
		write = q.o.commit
	}
	began := time.Now()
	q.roster.unknown.Store(true)
	defer q.roster.giveUp() // also when it panics
	var unnamed error
	err := do(func() error {
		if tx.named != nil {
			if unnamed = tx.named(); unnamed != nil {
				return unnamed
			}
		}
		return write(tx.tx)
	})
	q.commits.Since(began)
	if err != nil {
		if unnamed == nil {
			err = fmt.Errorf("cannot write %s: %w", q.file, err)
		}
		if boltfile.Unsure(q.db, id) {
			q.unsure = true
			q.roster.mu.Lock()
			q.roster.txid = id // that of the mapped file; the roster and lists stay as they were
			q.roster.mu.Unlock()
			if e := q.revert(); e != nil {
				q.log.Error("a change of the task queue failed; svc writes no others until the previous state is restored", "error", e)
			}
		}
		return err
	}
	q.lone = true
	q.roster.mu.Lock()
	defer q.roster.mu.Unlock()
	q.roster.follow(&tx.effects)
	q.roster.names = tx.names
	q.outbox.follow(&tx.effects)
	for _, apply := range tx.after {
		apply(q.roster)
	}
	q.roster.txid = id
	q.roster.catchUp()
	q.watches.tell(tx.effects.changed())
	if invariant.Enabled {
		q.checkMemory()
	}
	return nil
}

// writable returns the reason why the file cannot be written, or nil. writing is held.
func (q *Queue) writable() error {
	if q.unsure {
		if err := q.revert(); err != nil {
			return err
		}
	}
	if !q.unsynced {
		return nil
	}
	if err := q.fs.SyncDir(path.Dir(q.file)); err != nil {
		return fmt.Errorf("cannot make %s durable: %w", q.file, err)
	}
	q.unsynced = false
	return nil
}

// settle makes both roots of the file hold the last change, once nothing reads or writes the file.
func (q *Queue) settle() error {
	q.writing.Lock()
	defer q.writing.Unlock()
	if !q.lone || q.unsure || q.unsynced {
		return nil
	}
	q.roster.unknown.Store(true)
	defer q.roster.giveUp()
	now, err := boltfile.Settle(q.db, q.roster.txid)
	q.roster.mu.Lock()
	defer q.roster.mu.Unlock()
	q.roster.txid = now
	q.roster.catchUp()
	return err
}

// revert restores the file to the state before a change that failed after its commit point, because its caller was told that it
// failed. writing is held.
func (q *Queue) revert() error {
	old := q.db
	var before *boltfile.DB
	err := q.unread(func() (err error) {
		before, err = boltfile.Revert(old, q.file, fileOptions(q.log, q.o.noSync))
		return err
	}, func() { q.db, q.roster.txid = before, boltfile.LastTx(before) })
	if err != nil {
		return fmt.Errorf("%w. The state of the task queue on disk is unknown: svc writes nothing to it meanwhile", err)
	}
	q.unsure = false
	if err := old.Close(); err != nil {
		q.log.Warn("cannot close the task queue file from before a failed change", "error", err)
	}
	return nil
}

// readersEnd is how long replacing the file waits for its readers, on systems where they prevent it.
const readersEnd = 10 * time.Second

// unread calls replace, and then show with the roster locked. On systems where an open file cannot be replaced, it locks
// the roster for both, once nothing reads the file. Later reads use the new file. writing is held.
func (q *Queue) unread(replace func() error, show func()) error {
	if vfs.ReplacesOpen {
		if err := replace(); err != nil {
			return err
		}
		q.roster.mu.Lock()
		show()
		q.roster.mu.Unlock()
		return nil
	}
	for end := time.Now().Add(readersEnd); ; time.Sleep(10 * time.Millisecond) {
		q.roster.mu.Lock()
		if q.db.Readers() == 0 {
			defer q.roster.mu.Unlock()
			if err := replace(); err != nil {
				return err
			}
			show()
			return nil
		}
		q.roster.mu.Unlock()
		// Readers may wait for the roster themselves, so do not wait for them while it is locked.
		if time.Now().After(end) {
			return errors.New("it is being read; try again")
		}
	}
}

// read calls f with the roster locked for reading and a transaction of the same state. Then it unlocks the roster and calls g, which
// may be slow.
func (q *Queue) read(f func(*roster, *boltfile.Tx) error, g func(*boltfile.Tx) error) error {
	return boltfile.Guard(q.file, func() error {
		tx, err := q.readRoster(f)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if g == nil {
			return nil
		}
		return g(tx)
	})
}

// readRoster calls f with the roster locked, and returns the transaction.
func (q *Queue) readRoster(f func(*roster, *boltfile.Tx) error) (*boltfile.Tx, error) {
	q.roster.mu.RLock()
	defer q.roster.mu.RUnlock()
	tx, err := q.readKnown()
	if err != nil {
		return nil, err
	}
	keep := false
	defer func() { // also when f panics
		if !keep {
			tx.Rollback()
		}
	}()
	if err := f(q.roster, tx); err != nil {
		return nil, err
	}
	keep = true
	return tx, nil
}

// readKnown begins a transaction that shows what the roster knows. Its lock is held for reading, but not while a commit is awaited.
func (q *Queue) readKnown() (*boltfile.Tx, error) {
	for {
		tx, err := q.db.Read()
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", q.file, err)
		}
		id := tx.ID()
		if id == q.roster.txid {
			return tx, nil
		}
		tx.Rollback()
		switch {
		case id < q.roster.txid:
			return nil, boltfile.RootLost(q.file)
		case !q.roster.unknown.Load():
			return nil, &apierr.Corruption{File: q.file, Section: "roots", Offset: -1,
				Reason: "the newest one belongs to a failed change, and its state on disk is unknown. Restart"}
		}
		q.roster.known.Wait() // for its writer, which waits for the disk, or has not updated the roster yet
	}
}

// put stores a task, which is new or of decodeRecord.
func (tx *txn) put(uid uint32, r *record) error {
	now := r.head
	tx.effects.tasks = append(tx.effects.tasks, taskEffect{uid, r.stored, &now})
	r.stored = &now
	return boltfile.PutOwned(tx.tasks, key(uid), r.append(make([]byte, 0, r.size()+boltfile.SumBytes)))
}

// putBatch stores a new batch, encoded, whose fact is f.
func (tx *txn) putBatch(uid uint32, f *batchFact, batch []byte) error {
	tx.effects.batches = append(tx.effects.batches, batchEffect{uid, f})
	return boltfile.Put(tx.batches, key(uid), batch)
}

// nameOf returns the id of an index uid, and creates one if there is none.
func (tx *txn) nameOf(uid string) (nameID, error) {
	if id, ok := tx.names.id(uid); ok {
		return id, nil
	}
	id := tx.names.next
	return id, tx.setName(id, uid)
}

// setName gives a number a uid. The names that readers see stay as they are until the commit.
func (tx *txn) setName(id nameID, uid string) error {
	if !tx.namesCloned {
		tx.names, tx.namesCloned = tx.names.clone(), true
	}
	tx.names.set(id, uid)
	return boltfile.Put(tx.tx.Bucket(nameBucket), key(uint32(id)), []byte(uid))
}

// setNames sets the names of the record to those of uids. If own is set, it comes first.
func (tx *txn) setNames(r *record, own string, others []string) error {
	r.names, r.hasIndex = nil, own != ""
	uids := others
	if own != "" {
		uids = append([]string{own}, others...)
	}
	for _, uid := range uids {
		id, err := tx.nameOf(uid)
		if err != nil {
			return err
		}
		r.names = append(r.names, id)
	}
	return nil
}

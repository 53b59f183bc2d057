package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"go.etcd.io/bbolt"

	"svc/internal/apierr"
)

// The queue file has four buckets; uids are big-endian keys, so that cursors walk in order.
var (
	metaBucket  = []byte("meta")    // "format" → formatVersion
	taskBucket  = []byte("tasks")   // uid → record
	batchBucket = []byte("batches") // uid → batch record
	nameBucket  = []byte("names")   // nameID → index uid
	formatKey   = []byte("format")
)

const (
	formatVersion = 1
	fileStep      = 1 << 20  // the file grows by this many bytes
	mapStart      = 64 << 20 // address space mapped from the start, so that growth rarely waits for readers
	pageFill      = 0.8      // uids come in order; the rest of a page is room for records to grow when they finish
)

// openFile opens the queue's file, or makes it.
func openFile(path string, noSync bool) (*bbolt.DB, error) {
	db, err := openBolt(path, noSync)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if meta := tx.Bucket(metaBucket); meta != nil {
			if v := meta.Get(formatKey); len(v) != 1 || v[0] != formatVersion {
				return fmt.Errorf("format version %v, this program reads %d", v, formatVersion)
			}
			return nil
		}
		for _, name := range [][]byte{metaBucket, taskBucket, batchBucket, nameBucket} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(metaBucket).Put(formatKey, []byte{formatVersion})
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	return db, nil
}

func openBolt(file string, noSync bool) (*bbolt.DB, error) {
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{
		Timeout: time.Second, FreelistType: bbolt.FreelistMapType, InitialMmapSize: mapStart,
		NoSync: noSync, NoGrowSync: noSync,
	})
	if errors.Is(err, bbolt.ErrTimeout) {
		return nil, fmt.Errorf("cannot open %s: another process uses it", file)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", file, err)
	}
	db.AllocSize = fileStep
	return db, nil
}

// fileName returns the name of an open queue file. One that was compacted was opened under another name.
func fileName(db *bbolt.DB) string { return strings.TrimSuffix(db.Path(), compactSuffix) }

func key(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// load builds the roster from the file.
func load(db *bbolt.DB) (*roster, error) {
	r := newRoster()
	damaged := func(section string, k []byte, err error) error {
		return &apierr.Corruption{File: fileName(db), Section: section, Offset: -1, Reason: fmt.Sprintf("key %x: %v", k, err)}
	}
	err := db.View(func(tx *bbolt.Tx) error {
		r.txid = tx.ID()
		c := tx.Bucket(nameBucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if len(k) != 4 {
				return damaged("names", k, errRecord)
			}
			r.names.set(nameID(binary.BigEndian.Uint32(k)), string(v))
		}
		var rec record
		c = tx.Bucket(taskBucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if len(k) != 4 {
				return damaged("tasks", k, errRecord)
			}
			if _, err := rec.decodeHead(v); err != nil {
				return damaged("tasks", k, err)
			}
			r.add(binary.BigEndian.Uint32(k), &rec)
		}
		var fact batchFact
		c = tx.Bucket(batchBucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if len(k) != 4 {
				return damaged("batches", k, errRecord)
			}
			if _, err := fact.decode(v); err != nil {
				return damaged("batches", k, err)
			}
			r.addBatch(binary.BigEndian.Uint32(k), &fact)
		}
		return nil
	})
	return r, err
}

// txn is a change of the file and, once it is committed, of the roster.
type txn struct {
	tx             *bbolt.Tx
	tasks, batches *bbolt.Bucket
	roster         *roster // as it was before the change: the only writer is us
	names          *names  // as the change leaves them
	namesCloned    bool
	after          []func(*roster)
}

// update runs f in a transaction; when f gives an error nothing has changed.
// The roster follows under its lock, all at once.
func (q *Queue) update(f func(*txn) error) error {
	q.writing.Lock()
	defer q.writing.Unlock()
	btx, err := q.db.Begin(true)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", fileName(q.db), err)
	}
	defer btx.Rollback() // without effect after a commit
	tx := &txn{
		tx: btx, tasks: btx.Bucket(taskBucket), batches: btx.Bucket(batchBucket),
		roster: q.roster, names: q.roster.names,
	}
	tx.tasks.FillPercent, tx.batches.FillPercent = pageFill, pageFill
	if err := f(tx); err != nil {
		return err
	}
	id := btx.ID()
	if err := btx.Commit(); err != nil {
		return fmt.Errorf("cannot write %s: %w", fileName(q.db), err)
	}
	q.roster.mu.Lock()
	defer q.roster.mu.Unlock()
	for _, apply := range tx.after {
		apply(q.roster)
	}
	q.roster.names = tx.names
	q.roster.txid = id
	return nil
}

// read calls f with the roster locked for reading and a transaction that shows
// exactly what the roster knows; then it unlocks the roster and calls g, which may take its time.
func (q *Queue) read(f func(*roster, *bbolt.Tx) error, g func(*bbolt.Tx) error) error {
	for {
		q.roster.mu.RLock()
		tx, err := q.db.Begin(false)
		if err != nil {
			q.roster.mu.RUnlock()
			return fmt.Errorf("cannot read %s: %w", fileName(q.db), err)
		}
		if tx.ID() != q.roster.txid {
			// A commit is in the file; its writer waits for our lock to tell the roster.
			q.roster.mu.RUnlock()
			tx.Rollback()
			runtime.Gosched()
			continue
		}
		err = f(q.roster, tx)
		q.roster.mu.RUnlock()
		if err == nil && g != nil {
			err = g(tx)
		}
		tx.Rollback()
		return err
	}
}

// record reads a task; nil when there is none.
func (tx *txn) record(uid uint32) (*record, error) { return readRecord(tx.tasks, uid) }

func readRecord(tasks *bbolt.Bucket, uid uint32) (*record, error) {
	v := tasks.Get(key(uid))
	if v == nil {
		return nil, nil
	}
	r, err := decodeRecord(v)
	if err != nil {
		return nil, &apierr.Corruption{File: fileName(tasks.Tx().DB()), Section: "tasks", Offset: -1, Reason: fmt.Sprintf("task %d: %v", uid, err)}
	}
	return r, nil
}

func (tx *txn) put(uid uint32, r *record) error { return tx.tasks.Put(key(uid), r.append(nil)) }

// insert stores a new task.
func (tx *txn) insert(uid uint32, r *record) error {
	if err := tx.put(uid, r); err != nil {
		return err
	}
	tx.after = append(tx.after, func(ro *roster) { ro.add(uid, r) })
	return nil
}

// nameOf returns the id of an index uid, made when there is none.
func (tx *txn) nameOf(uid string) (nameID, error) {
	if id, ok := tx.names.id(uid); ok {
		return id, nil
	}
	id := tx.names.next
	return id, tx.setName(id, uid)
}

func (tx *txn) setName(id nameID, uid string) error {
	if !tx.namesCloned {
		tx.names, tx.namesCloned = tx.names.clone(), true
	}
	tx.names.set(id, uid)
	return tx.tx.Bucket(nameBucket).Put(key(uint32(id)), []byte(uid))
}

// dropNames forgets the names that no task but the given ones touches.
func (tx *txn) dropNames(gone *roaring.Bitmap) error {
	for id, set := range tx.roster.byName {
		if set.AndCardinality(gone) < set.GetCardinality() {
			continue
		}
		if !tx.namesCloned {
			tx.names, tx.namesCloned = tx.names.clone(), true
		}
		tx.names.remove(id)
		if err := tx.tx.Bucket(nameBucket).Delete(key(uint32(id))); err != nil {
			return err
		}
		tx.after = append(tx.after, func(ro *roster) { delete(ro.byName, id) })
	}
	return nil
}

// setNames makes the record's names those of uids, the first its own when own is set.
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

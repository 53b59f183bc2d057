package boltfile

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"svc/internal/vfs"
)

// DB is an open file. If a page differs from what was written, reads and changes panic with an *apierr.Corruption; call them in a
// Guard.
type DB struct {
	bolt  *bbolt.DB
	file  *os.File // bbolt's
	path  string
	pages *pages

	writer sync.Mutex    // held from Begin to Commit or Rollback
	noted  *noted        // under writer: what a copy that is being made has to change; nil: none is
	known  atomic.Uint64 // the newest transaction whose pages are known

	waiting    sync.Mutex
	committing bool       // under waiting: a change is written, whose pages are not known yet
	committed  *sync.Cond // of waiting: it is not any more

	mu     sync.Mutex // held while a transaction begins
	root   *root      // of the transaction that is known
	lost   error      // nothing is written any more
	closed bool
	held   atomic.Bool // bbolt has panicked with its locks held, and keeps them: nothing is asked of it any more
}

// newDB takes over a file that bbolt has opened after it was checked.
func newDB(bolt *bbolt.DB, f *os.File, c *checker) (*DB, error) {
	db := &DB{bolt: bolt, file: f, path: f.Name(), pages: newPages(f, c)}
	db.committed = sync.NewCond(&db.waiting)
	r, err := db.pages.rootOf(c.tx, c.rootPage)
	if err != nil {
		return nil, err
	}
	db.root = r
	db.known.Store(r.tx)
	return db, nil
}

// Path returns the name that the file was opened under.
func (db *DB) Path() string { return db.path }

// Readers returns how many transactions read the file.
func (db *DB) Readers() int { return db.bolt.Stats().OpenTxN }

// FreeBytes returns how much of the file is free, or will be free once older readers have ended.
func (db *DB) FreeBytes() int64 {
	s := db.bolt.Stats()
	return int64(s.FreePageN+s.PendingPageN) * db.pages.size
}

// Close closes the file once its readers have ended. Locks that bbolt holds for ever end with the process.
func (db *DB) Close() error {
	db.mu.Lock()
	closed := db.closed
	db.closed = true
	db.mu.Unlock()
	switch {
	case closed:
		return nil
	case db.held.Load():
		return errors.Join(vfs.UnlockFile(db.file), db.file.Close())
	}
	return db.bolt.Close()
}

// isOpen reports whether it was not closed yet.
func (db *DB) isOpen() bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	return !db.closed
}

// begin starts a bbolt transaction if the newest root is what was written.
func (db *DB) begin(writable bool) (*Tx, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil, bolterrors.ErrDatabaseNotOpen
	}
	if db.lost != nil && writable {
		return nil, db.lost
	}
	if db.held.Load() {
		return nil, RootLost(db.path)
	}
	if err := db.pages.stands(db.root); err != nil {
		return nil, err
	}
	done := false
	defer func() {
		if !done {
			db.held.Store(true)
		}
	}()
	tx, err := db.bolt.Begin(writable)
	done = true
	if err != nil {
		return nil, err
	}
	t := &Tx{db: db, tx: tx, id: uint64(tx.ID())}
	if writable {
		t.id-- // the transaction that it sees
	}
	t.root = uint64(tx.Cursor().Bucket().Root())
	return t, nil
}

// Read begins a transaction that sees the file as the last change left it.
func (db *DB) Read() (*Tx, error) { return db.begin(false) }

// View calls f with a transaction of Read, in a Guard.
func (db *DB) View(f func(*Tx) error) error {
	return Guard(db.path, func() error {
		tx, err := db.Read()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return f(tx)
	})
}

// Update calls f with a transaction that changes the file, commits it when f returns nil, in a Guard.
func (db *DB) Update(f func(*Tx) error) error {
	return Guard(db.path, func() error {
		tx, err := Begin(db, int(db.known.Load()))
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := f(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// Begin starts a change of a file whose last transaction was last. If its root has been damaged since, bbolt would continue from the
// older root and undo the last change. Begin then returns an *apierr.Corruption.
func Begin(db *DB, last int) (*Tx, error) {
	var tx *Tx
	db.writer.Lock()
	defer func() { // also when bbolt panics
		if tx == nil {
			db.writer.Unlock()
		}
	}()
	tx, err := db.begin(true)
	if err != nil {
		return nil, err
	}
	tx.writes = true
	if tx.ID() != last+1 {
		err = RootLost(db.path)
	} else {
		err = tx.freeList()
	}
	if err != nil {
		tx.Rollback()
		return nil, err
	}
	return tx, nil
}

func (db *DB) setCommitting(is bool) {
	db.waiting.Lock()
	defer db.waiting.Unlock()
	db.committing = is
	db.committed.Broadcast()
}

// lose has nothing written to the file any more.
func (db *DB) lose(err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.lost == nil {
		db.lost = err
	}
}

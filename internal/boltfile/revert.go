package boltfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"svc/internal/vfs"
)

// LastTx returns the number of the last transaction that a file shows; 0 once it is closed, or its newest root is damaged.
func LastTx(db *DB) (id int) {
	if err := db.View(func(tx *Tx) error { id = tx.ID(); return nil }); err != nil {
		return 0
	}
	return id
}

// Settle writes the root of a file whose last transaction has that number once more, durably, and returns the number that the file has
// then: both roots say what the last change left. Until then a root that is damaged later takes that change away, and brings back what it
// deleted.
func Settle(db *DB, last int) (now int, err error) {
	now = last
	err = Guard(db.Path(), func() error {
		tx, err := Begin(db, last)
		if err != nil {
			return err
		}
		defer tx.Rollback() // without effect after a commit
		id := tx.ID()
		if err = tx.Commit(); err == nil {
			now = id
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("cannot write the second root of %s: %w", db.Path(), err)
	}
	return now, err
}

// Unsure reports, of a transaction whose commit failed, whether it may be in the file all the same: its root was
// written, and only the sync behind it failed. A sync that failed says nothing of the next one, so nothing is to be
// written to such a file before Revert.
func Unsure(db *DB, id int) bool { return LastTx(db) == id }

// Revert undoes the last transaction of a file, which is Unsure, and returns the file as it was before, opened. The
// older root and its pages were durable before that transaction began, and it has overwritten none of them; they are
// copied to a file of its own that is synced as a whole and takes the name. The caller closes db when nobody reads it any
// more; where an open file cannot be replaced it is closed already. After an error it may try again, with the same db, and must
// before anything is written.
func Revert(db *DB, name string, o Options) (*DB, error) {
	fail := func(err error) error {
		return fmt.Errorf("cannot revert %s to the state before a failed change: %w", name, err)
	}
	temp := name + NewSuffix
	// Where db had to be closed, a try before this one has made the copy, and maybe given it the name.
	if db.isOpen() {
		if err := copyWithoutRoot(db, name, temp); err != nil {
			_ = vfs.OS.Remove(temp)
			return nil, fail(err)
		}
	} else if _, err := vfs.OS.Stat(temp); errors.Is(err, fs.ErrNotExist) {
		temp = name
	}
	reverted, err := open(temp, &o) // before it gets the name: it is checked, and locked
	if err != nil {
		if db.isOpen() {
			_ = vfs.OS.Remove(temp)
		}
		return nil, fail(err)
	}
	if temp == name {
		return reverted, nil
	}
	if !vfs.ReplacesOpen {
		if reverted, err = Supplant(db, reverted, name, func() (*DB, error) { return open(name, &o) }); err != nil {
			return nil, fail(err)
		}
		return reverted, nil
	}
	if _, err := vfs.Move(vfs.OS, temp, name); err != nil {
		// It may have the name already. Then the next try copies it, and finds no newest root to leave out.
		return nil, fail(errors.Join(err, reverted.Close()))
	}
	return reverted, nil
}

// Supplant gives fresh, a file whose bytes are synced, the name of one that is open as old, where no open file can be replaced
// (see vfs.ReplacesOpen): it closes both, old once its readers have ended, and opens what then has the name with reopen. After
// an error both are closed; which of them has the name then is for the caller to see.
func Supplant(old, fresh *DB, name string, reopen func() (*DB, error)) (*DB, error) {
	temp := fresh.Path()
	err := errors.Join(fresh.Close(), old.Close())
	if err == nil {
		err = vfs.OS.Rename(temp, name)
	}
	if err != nil {
		return nil, err
	}
	return reopen()
}

// copyWithoutRoot copies the file of db but for its newest root, durably.
func copyWithoutRoot(db *DB, name, temp string) (err error) {
	last := LastTx(db)
	if last == 0 {
		return RootLost(name)
	}
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if e := to.Close(); err == nil {
			err = e
		}
	}()
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	page := db.pages.size
	if _, err := to.WriteAt(make([]byte, page), page*int64(last%2)); err != nil { // where bbolt writes the root of a transaction
		return err
	}
	return to.Sync()
}

// Sync makes what was written to a file without syncs durable.
func (db *DB) Sync() error { return db.bolt.Sync() }

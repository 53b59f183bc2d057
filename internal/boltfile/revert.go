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

// Settle writes the root of the last transaction, numbered last, a second time, durably, so that both roots have the last change. It
// returns the new number of the file's last transaction. Before that, damage to the newest root would undo the last change and bring
// back what it deleted.
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

// Unsure reports whether a transaction whose commit failed may still be on disk: its root was written, and only the sync after it
// failed. A later sync proves nothing, so such a file must not be written before Revert.
func Unsure(db *DB, id int) bool { return LastTx(db) == id }

// Revert undoes the last transaction of a file, which is Unsure, and returns the opened file in its previous state. The older root
// and its pages were durable before that transaction began, and it has overwritten none of them. Revert copies them to a new file,
// syncs it as a whole, and renames it. The caller closes db once it has no readers; if open files cannot be replaced, it is already
// closed. After an error the caller may retry with the same db, and must do so before anything is written.
func Revert(db *DB, name string, o Options) (*DB, error) {
	fail := func(err error) error {
		return fmt.Errorf("cannot revert %s to the state before a failed change: %w", name, err)
	}
	temp := name + NewSuffix
	// If db had to be closed, an earlier try has made the copy, and may have given it the name.
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

// Supplant replaces the open file old by fresh, a synced file, on systems where open files cannot be replaced (see vfs.ReplacesOpen).
// It closes both, old once its readers have ended, and calls reopen for the file of this name. After an error both are closed, and
// the caller has to find out which of them has the name.
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

// copyWithoutRoot copies the file of db, except its newest root, durably.
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

// Sync makes durable what was written to a file without syncs.
func (db *DB) Sync() error { return db.bolt.Sync() }

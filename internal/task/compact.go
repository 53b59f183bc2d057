package task

import (
	"errors"
	"fmt"
	"io/fs"

	"svc/internal/boltfile"
	"svc/internal/vfs"
)

const compactSuffix = ".compact"

// Compact writes the queue's file anew without the pages that deleted tasks
// left, and puts it in the place of the old one. Meanwhile readers go on;
// writers wait. Sizes are bytes of the file. After an error the queue goes on
// with the file it had.
func (q *Queue) Compact() (before, after int64, err error) {
	q.writing.Lock()
	defer q.writing.Unlock()
	if err := q.writable(); err != nil {
		return 0, 0, err
	}
	old := q.db
	var fresh *boltfile.DB
	err = boltfile.Guard(q.file, func() error {
		// What is damaged in it must not become sound by being left out.
		if err := boltfile.Check(q.file); err != nil {
			return err
		}
		if boltfile.LastTx(old) != q.roster.txid {
			return boltfile.RootLost(q.file)
		}
		fresh, err = q.copyFile()
		return err
	})
	if err == nil {
		before, after = fileBytes(old), fileBytes(fresh)
		err = q.unread(func() (err error) {
			fresh, err = q.takeName(fresh)
			return err
		}, func() { q.db, q.roster.txid = fresh, boltfile.LastTx(fresh) })
	}
	if err != nil {
		return 0, 0, errors.Join(fmt.Errorf("cannot compact %s: %w", q.file, err), removeIfThere(q.file+compactSuffix))
	}
	// Closing waits for those who still read there. The file has lost its name already: what goes wrong here loses nothing.
	if err := old.Close(); err != nil {
		q.log.Warn("the task queue's file from before its compaction cannot be closed", "error", err)
	}
	// Until its directory is durable a power failure would bring the old file back without what is stored from now on, so
	// that nothing is.
	q.unsynced, q.lone = true, true
	if err := q.writable(); err != nil {
		q.log.Error("the task queue takes no tasks until its directory is synced", "error", err)
	}
	return before, after, nil
}

// copyFile copies the queue's file and syncs the copy.
func (q *Queue) copyFile() (*boltfile.DB, error) {
	temporary := q.file + compactSuffix
	if err := removeIfThere(temporary); err != nil {
		return nil, err
	}
	fresh, err := openCopy(temporary)
	if err != nil {
		return nil, err
	}
	err = q.db.View(func(tx *boltfile.Tx) error { return copyBuckets(fresh, tx) })
	if err == nil {
		err = fresh.Sync()
	}
	if err = errors.Join(err, fresh.Close()); err != nil {
		return nil, err
	}
	return boltfile.Open(temporary, fileOptions(q.log, q.o.noSync))
}

// takeName puts a copy in the place of the file, and returns it, opened. After an error fresh is closed, and the queue goes on
// with what has the name. Where no open file can be replaced the roster is locked, and nobody reads.
func (q *Queue) takeName(fresh *boltfile.DB) (*boltfile.DB, error) {
	if vfs.ReplacesOpen {
		err := vfs.OS.Rename(q.file+compactSuffix, q.file)
		if err != nil {
			err = errors.Join(err, fresh.Close())
		}
		return fresh, err
	}
	reopen := func() (*boltfile.DB, error) { return boltfile.Open(q.file, fileOptions(q.log, q.o.noSync)) }
	db, err := boltfile.Supplant(q.db, fresh, q.file, reopen)
	if err == nil {
		return db, nil
	}
	// It is closed, whichever of the two it is. What cannot be opened now is neither read nor written until the next start.
	db, e := reopen()
	if e == nil {
		q.db, q.roster.txid = db, boltfile.LastTx(db)
	}
	return nil, errors.Join(err, e)
}

func removeIfThere(name string) error {
	if err := vfs.OS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fileBytes is the size of an open file.
func fileBytes(db *boltfile.DB) (size int64) {
	if err := db.View(func(tx *boltfile.Tx) error { size = tx.Size(); return nil }); err != nil {
		return 0 // closed
	}
	return size
}

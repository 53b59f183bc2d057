package task

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"svc/internal/boltfile"
)

const (
	compactSuffix = ".compact"
	compactStep   = 4 << 20 // bytes copied in a transaction
)

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
	name := fileName(old)
	fresh, err := q.copyFile(old, name)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot compact %s: %w", name, err)
	}
	before, after = fileBytes(old), fileBytes(fresh)

	q.roster.mu.Lock()
	q.db, q.roster.txid = fresh, boltfile.LastTx(fresh)
	q.roster.mu.Unlock()
	// Closing waits for those who still read there. The file has lost its name already: what goes wrong here loses nothing.
	if err := old.Close(); err != nil {
		q.log.Warn("the task queue's file from before its compaction cannot be closed", "error", err)
	}
	return before, after, nil
}

// copyFile copies the queue's file and renames the copy over it.
func (q *Queue) copyFile(old *bbolt.DB, name string) (fresh *bbolt.DB, err error) {
	temporary := name + compactSuffix
	if err := removeIfThere(temporary); err != nil {
		return nil, err
	}
	if fresh, err = openCopy(temporary); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, fresh.Close(), os.Remove(temporary))
		}
	}()
	if err := bbolt.Compact(fresh, old, compactStep); err != nil {
		return nil, err
	}
	if err := fresh.Sync(); err != nil {
		return nil, err
	}
	fresh.NoSync, fresh.NoGrowSync = old.NoSync, old.NoGrowSync
	if err := os.Rename(temporary, name); err != nil {
		return nil, err
	}
	// From here on the copy is the file. Until its directory is durable a power failure would bring the old
	// file back without what is stored from now on, so that nothing is.
	q.unsynced = true
	if err := q.writable(); err != nil {
		q.log.Error("the task queue takes no tasks until its directory is synced", "error", err)
	}
	return fresh, nil
}

func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// fileBytes is the size of an open file.
func fileBytes(db *bbolt.DB) (size int64) {
	if err := db.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil }); err != nil {
		return 0 // closed
	}
	return size
}

package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"svc/internal/boltfile"
	"svc/internal/pace"
	"svc/internal/vfs"
)

const compactSuffix = ".compact"

// shrinkFrom is how many bytes of the file have to be free, and half of it, for an automatic compaction, as after the deletion of
// many tasks.
const shrinkFrom = 8 << 20

// A compaction catches up with concurrent writes until few tasks are left, or a number of times. Then writers wait for the
// rest.
const (
	fewChanges  = 512
	maxCatchUps = 8
)

// shrinkSoon has the file compacted in the background if that is worth it.
func (q *Queue) shrinkSoon() {
	select {
	case q.shrinking <- struct{}{}:
	default:
	}
}

// shrink compacts the file in the background when much of it is free. It yields to searches.
func (q *Queue) shrink() {
	defer q.done.Done()
	var worker *pace.Worker
	if q.o.Catalog != nil {
		worker = pace.Of(pace.Beside(q.ctx, q.o.Catalog.Searches()))
	}
	for {
		select {
		case <-q.shrinking:
		case <-q.ctx.Done():
			return
		}
		if !q.sparse() {
			continue
		}
		before, after, err := q.compact(func() error {
			worker.Yield()
			return context.Cause(q.ctx)
		})
		switch {
		case err == nil:
			q.log.Info("the task queue file was compacted", "before", FormatSize(before), "after", FormatSize(after))
		case q.ctx.Err() == nil:
			q.log.Warn("cannot compact the task queue file; svc retries when tasks are deleted, and with POST /tasks/compact", "error", err)
		}
	}
}

// sparse reports whether the file is to be compacted.
func (q *Queue) sparse() bool {
	q.roster.mu.RLock()
	defer q.roster.mu.RUnlock()
	from := int64(shrinkFrom)
	if q.o.shrinkFrom > 0 {
		from = q.o.shrinkFrom
	}
	free := q.db.FreeBytes()
	return free >= from && 2*free >= fileBytes(q.db)
}

// Compact rewrites the queue file without free pages, and replaces the old file. Readers and writers continue meanwhile;
// writers wait only for the last changes. Sizes are bytes of the file. After an error the queue continues with its old
// file.
func (q *Queue) Compact() (before, after int64, err error) {
	return q.compact(func() error { return nil })
}

// compact is Compact, which calls each now and then; its error ends the compaction.
func (q *Queue) compact(each func() error) (before, after int64, err error) {
	q.compacting.Lock()
	defer q.compacting.Unlock()
	old, copied, err := q.beginCopy()
	if err == nil {
		before, after, err = q.replaceFile(old, copied, each)
		err = errors.Join(err, copied.Close())
	}
	if err != nil {
		return 0, 0, fmt.Errorf("cannot compact %s: %w", q.file, err)
	}
	// Close waits for the remaining readers. The file has no name any more, so an error loses nothing.
	if err := old.Close(); err != nil {
		q.log.Warn("cannot close the task queue file from before its compaction", "error", err)
	}
	return before, after, nil
}

// beginCopy begins the copy of the file that is to replace it, and returns both.
func (q *Queue) beginCopy() (*boltfile.DB, *boltfile.Copy, error) {
	q.writing.Lock()
	defer q.writing.Unlock()
	if err := q.replaceable(q.db); err != nil {
		return nil, nil, err
	}
	if err := removeIfThere(q.file + compactSuffix); err != nil {
		return nil, nil, err
	}
	copied, err := boltfile.BeginCopy(q.db, q.file+compactSuffix, fileOptions(q.log, q.o.noSync))
	return q.db, copied, err
}

// replaceable returns the reason why a copy cannot replace the file that is open as db, or nil. writing is held.
func (q *Queue) replaceable(db *boltfile.DB) error {
	if err := q.writable(); err != nil {
		return err
	}
	switch {
	case q.db != db:
		return errors.New("a change failed meanwhile and was reverted; try again")
	case boltfile.LastTx(db) != q.roster.txid:
		return boltfile.RootLost(q.file)
	}
	return nil
}

// replaceFile completes the copy and replaces the file, which is open as old, with it.
func (q *Queue) replaceFile(old *boltfile.DB, copied *boltfile.Copy, each func() error) (before, after int64, err error) {
	if err := copied.Run(each); err != nil {
		return 0, 0, err
	}
	for range maxCatchUps {
		n, err := copied.CatchUp()
		if err == nil {
			err = each()
		}
		if err != nil {
			return 0, 0, err
		}
		if n <= fewChanges {
			break
		}
	}
	q.writing.Lock()
	defer q.writing.Unlock()
	if err := q.replaceable(old); err != nil {
		return 0, 0, err
	}
	if _, err := copied.CatchUp(); err != nil {
		return 0, 0, err
	}
	fresh := copied.Take()
	before, after = fileBytes(old), fileBytes(fresh)
	err = q.unread(func() (err error) {
		fresh, err = q.takeName(fresh)
		return err
	}, func() { q.db, q.roster.txid = fresh, boltfile.LastTx(fresh) })
	if err != nil {
		return 0, 0, errors.Join(err, removeIfThere(q.file+compactSuffix))
	}
	// A power failure before the directory is synced would bring back the old file without anything stored later. So nothing is
	// stored before that.
	q.unsynced, q.lone = true, true
	if err := q.writable(); err != nil {
		q.log.Error("the task queue accepts no tasks until its directory is synced", "error", err)
	}
	return before, after, nil
}

// takeName replaces the queue file by a copy, and returns the copy, opened. After an error fresh is closed, and the queue
// continues with the file of that name. On systems where open files cannot be replaced, the roster is locked, so nothing
// reads.
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
	// The file of this name may be the old or the new one, and it is closed. If it cannot be opened now, the queue neither reads nor
	// writes it until the next start.
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

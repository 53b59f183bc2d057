package index

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"syscall"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// damagedIndex is a quarantined index: the catalog names it, but it could not be opened. Its uid stays taken, it can be
// deleted, and its files stay unchanged for repair.
type damagedIndex struct {
	dir string
	err error
	// The last batch in the manifest, if readable: it must not be applied again.
	nextBatch uint64
	results   []result
}

// readBatch reads what the manifest says of the last batch.
func (d *damagedIndex) readBatch(fsys vfs.FS) {
	if m, err := readManifest(fsys, d.dir); err == nil {
		d.nextBatch, d.results = m.NextBatch, m.Results
	}
}

func (d damagedIndex) asError(uid string) *apierr.Error {
	if another := new(unknownFormat); errors.As(d.err, &another) {
		return apierr.New("invalid_store_file", "The index `%s` was not opened and is unchanged: another version of svc wrote to its directory, %s. (%v)", uid, d.dir, another)
	}
	return apierr.New("invalid_store_file", "The index `%s` is damaged and was not opened: its directory is %s. Restore the directory and restart the server, or delete the index. (%v)", uid, d.dir, d.err)
}

// lacking reports whether an index could not be opened because the process lacks something that all indexes need. Then the index does
// not count as damaged.
func lacking(err error) bool { return isOneOf(err, noFiles) || isOneOf(err, noMemory) }

func isOneOf(err error, errnos []syscall.Errno) bool {
	return slices.ContainsFunc(errnos, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}

// lasting reports whether the files themselves keep an index from being opened. Other causes may pass: a failing disk, a
// read-only file system, a missing right.
func lasting(err error) bool {
	return apierr.IsCorruption(err) || errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*unknownFormat))
}

// quarantine quarantines an index that could not be opened, and logs it.
func (c *Catalog) quarantine(uid, dir string, err error) {
	c.open.damaged[uid] = c.asDamaged(uid, dir, err)
}

// asDamaged logs that an index could not be opened, and returns what is known of it.
func (c *Catalog) asDamaged(uid, dir string, err error) damagedIndex {
	d := damagedIndex{dir: dir, err: err}
	d.readBatch(c.options.FS)
	c.met.Store(true)
	c.options.Logger.Error("an index cannot be opened and is quarantined; the others continue. Restore its directory and restart, or delete the index",
		slog.String("index", uid), slog.String("directory", dir), slog.Any("error", err))
	return d
}

// passing returns the uids of quarantined indexes whose cause may be gone.
func (c *Catalog) passing() (uids []string) {
	c.open.RLock()
	defer c.open.RUnlock()
	for uid, d := range c.open.damaged {
		if !lasting(d.err) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// Missing returns the error of an index that Get does not return: invalid_store_file if it could not be opened, else index_not_found.
func (c *Catalog) Missing(uid string) *apierr.Error {
	c.open.RLock()
	d, damaged := c.open.damaged[uid]
	c.open.RUnlock()
	if damaged {
		return d.asError(uid)
	}
	return apierr.New("index_not_found", "There is no index `%s`. Create it, or add documents to it.", uid)
}

// Reopen tries to open a quarantined index, which may have been repaired. It returns nil if there is none, or if it is still damaged.
func (c *Catalog) Reopen(uid string) *Index {
	if ix := c.Get(uid); ix != nil || !c.Damaged(uid) {
		return ix
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	if !c.Damaged(uid) || c.changing.closed {
		return c.Get(uid)
	}
	return c.reopenLocked(uid)
}

// reopenLocked is Reopen for an index that is quarantined. changing is held.
func (c *Catalog) reopenLocked(uid string) *Index {
	ix, err := c.openIndex(path.Join(c.dir, directoryName(c.changing.content.indexes[uid])), uid)
	if err != nil && lasting(err) { // the reason for its quarantine may be over
		c.open.RLock()
		d := c.open.damaged[uid]
		c.open.RUnlock()
		d.err = err
		d.readBatch(c.options.FS)
		c.open.Lock()
		c.open.damaged[uid] = d
		c.open.Unlock()
	}
	if err != nil {
		return nil
	}
	c.open.Lock()
	delete(c.open.damaged, uid)
	c.open.indexes[uid] = ix
	c.open.Unlock()
	c.options.Logger.Info("an index that was damaged is open again", slog.String("index", uid))
	return ix
}

// AppliedBefore is Apply for a quarantined index, as far as possible: ErrApplied with the results if its manifest has the
// batch, else the error of Missing.
func (c *Catalog) AppliedBefore(uid string, number uint64) ([]OpResult, error) {
	c.open.RLock()
	d, damaged := c.open.damaged[uid]
	c.open.RUnlock()
	switch {
	case damaged && number+1 == d.nextBatch:
		return decodeResults(d.results), ErrApplied
	case damaged && number < d.nextBatch:
		return nil, ErrApplied
	}
	return nil, c.Missing(uid)
}

// Damaged reports whether there is an index of this uid that could not be opened.
func (c *Catalog) Damaged(uid string) bool {
	c.open.RLock()
	defer c.open.RUnlock()
	_, damaged := c.open.damaged[uid]
	return damaged
}

// AnyDamaged returns the error of one damaged index, or nil.
func (c *Catalog) AnyDamaged() error {
	c.open.RLock()
	var uid string
	for other := range c.open.damaged {
		if uid == "" || other < uid {
			uid = other
		}
	}
	c.open.RUnlock()
	if uid == "" {
		return nil
	}
	return c.Missing(uid)
}

// deleteDamaged forgets a damaged index and removes its files. c.changing is held.
func (c *Catalog) deleteDamaged(uid string, next *catalogDraft) error {
	number, _ := next.directory(uid)
	directory := directoryName(number)
	next.remove(uid)
	next.dropAliases(uid)
	if err := c.write(next); err != nil {
		return fmt.Errorf("cannot delete index %s: %w", uid, err)
	}
	c.open.Lock()
	delete(c.open.damaged, uid)
	c.open.Unlock()
	if err := c.options.FS.RemoveAll(path.Join(c.dir, directory)); err != nil {
		// The next start removes it: no catalog names it.
		c.options.Logger.Warn("the files of a deleted index cannot be removed", slog.String("index", uid), slog.Any("error", err))
	}
	return nil
}

package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/mapped"
	"svc/internal/settings"
	"svc/internal/vfs"
	"svc/segment"
)

// Files of columns are derived from documents, so their damage loses nothing: they are rebuilt. The rebuilt file replaces the damaged
// one under the same name, and no manifest changes. A crash leaves one of them.

// errColumns says that columns of an index have to be rebuilt before it can be opened.
var errColumns = errors.New("columns beside a segment must be rebuilt")

// isColumns reports whether a file is a file of columns, by its name.
func isColumns(name string) bool { return path.Ext(name) == colSuffix }

// attachAllColumns opens the column files of a segment, and rebuilds damaged or missing ones. All columns that fields need
// and the segment lacks go to the first file. If again is false, such files fail it with errColumns.
func (f *file) attachAllColumns(numbers []uint64, fields *settings.Fields, again bool) error {
	var lost []uint64
	var why error
	for _, n := range numbers {
		c, err := f.openColumns(n)
		switch {
		case err == nil:
			f.attachColumns(c)
		case !lasting(err):
			return err
		default:
			lost, why = append(lost, n), err
		}
	}
	if len(lost) == 0 {
		return nil
	}
	if !again {
		return fmt.Errorf("%w: %w", errColumns, why)
	}
	began := time.Now()
	for _, n := range lost {
		r := &rebuilding{file: f, live: f.live(nil)}
		err := mapped.Guard(func() error {
			var all []segment.FieldID
			for i := range fields.Len() {
				if id := segment.FieldID(i); fields.Info(id).Column {
					all = append(all, id)
				}
			}
			r.lack(all)
			return nil
		})
		if err == nil {
			err = f.rebuildColumns(f.ix.catalog.compactor.ctx, r, n, fields)
		}
		if err != nil {
			return fmt.Errorf("%w (%v)", err, why)
		}
		c, err := f.openColumns(n)
		if err != nil {
			return misread(err)
		}
		f.attachColumns(c)
	}
	f.logRebuilt(why, began)
	return nil
}

func (f *file) logRebuilt(damage error, began time.Time) {
	f.ix.options.Logger.Warn("columns beside a segment were damaged; svc rebuilt them from its documents", slog.String("index", f.ix.UID()),
		slog.Duration("took", time.Since(began).Round(time.Millisecond)), slog.Any("error", damage))
}

// rebuildColumns replaces a file of columns by those that r wants. The name is not synced: a power failure may bring back the damaged file,
// which is rebuilt again.
func (f *file) rebuildColumns(ctx context.Context, r *rebuilding, number uint64, fields *settings.Fields) error {
	ix := f.ix
	k := &columnCollector{ctx: ctx, b: &batch{ix: ix}, fields: fields, progress: func(int) {}, share: max(min(ix.options.MaxIndexingMemory/2, maxBuilderBytes), 1)}
	name := path.Join(ix.dir, columnsName(number)+vfs.TempSuffix) // after a crash the next open removes it
	err := mapped.Guard(func() error { return r.write(k, name) })
	if err == nil {
		if err = ix.options.FS.Rename(name, path.Join(ix.dir, columnsName(number))); err != nil {
			_ = ix.options.FS.Remove(name)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot rebuild columns of index %s: %w", ix.UID(), err)
	}
	return nil
}

// rebuildPause is the pause before svc retries columns that it could not rebuild.
const rebuildPause = 10 * time.Minute

// rebuildColumns rebuilds columns of an open index, and reopens the index with them while searches continue. It returns false on
// failure. It ends with ctx.
func (c *Catalog) rebuildColumns(ctx context.Context, s suspect) bool {
	name := fileOf(s.damage)
	v, err := s.ix.take()
	if err != nil {
		return false
	}
	var f *file
	var damaged *columnFile
	for i, beside := range v.beside {
		if at := slices.IndexFunc(beside, func(c *columnFile) bool { return c.Name() == name }); at >= 0 {
			f, damaged = v.files[i], beside[at]
		}
	}
	if f == nil || !f.isDamaged() { // it was replaced or rebuilt
		v.Release()
		return true
	}
	if since := f.damage.failed.Load(); since != 0 && c.loaded.clock()-since < int64(rebuildPause) {
		v.Release()
		return false
	}
	began := time.Now()
	r := &rebuilding{file: f, live: f.live(nil), rows: roaring.New()}
	err = mapped.Guard(func() error {
		r.wanted = damaged.ColumnFields()
		for _, id := range r.wanted {
			r.rows.Or(f.Present(id))
		}
		return nil
	})
	if err == nil {
		err = f.rebuildColumns(ctx, r, damaged.number, v.Fields)
	}
	more := slices.ContainsFunc(v.files, func(f *file) bool { return f.isDamagedBut(name) })
	v.Release()
	if err != nil {
		f.damage.failed.Store(max(c.loaded.clock(), 1))
		c.options.Logger.Error("columns beside a segment are damaged and cannot be rebuilt now; searches that need them fail", slog.String("index", s.ix.UID()),
			slog.Any("error", err))
		return false
	}
	for !s.ix.reopen() {
		select {
		case <-ctx.Done():
			return true
		case <-time.After(20 * time.Millisecond):
		}
	}
	f.logRebuilt(s.damage, began)
	if more { // the reopened files do not know of it
		_ = s.ix.inspect(ctx, &rate{perSecond: s.ix.options.inspectRate()})
	}
	return true
}

// reopen makes the next caller open the segments again. Views in use stay. It returns false while the index is written or
// merged.
func (ix *Index) reopen() bool {
	if !ix.writing.TryLock() {
		return false
	}
	defer ix.writing.Unlock()
	ix.committing.Lock()
	defer ix.committing.Unlock()
	v := ix.current.Load()
	if v.evicted || ix.committing.closed {
		return true
	}
	if ix.merges.count() > 0 || ix.unsure.Load() {
		return false
	}
	ix.evictLocked(v)
	v.Release()
	return true
}

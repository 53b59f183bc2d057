package index

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/commit"
	"svc/internal/invariant"
	"svc/internal/vfs"
	"svc/segment"
)

// change is a proposed commit. It was made from base. Others may have committed since: the compactor during a batch, or a
// batch during a merge.
type change struct {
	base   *View                     // held by the proposer
	add    []*file                   // new segments; commit takes over their references
	merge  []*file                   // segments of base that add replaces, row by row
	recast map[*file]int             // of add: how many documents the batch changes in a segment that it recasts
	beside map[*file]*columnFile     // new columns of segments of base that stay; commit takes them over
	clear  bool                      // all segments but add go
	gone   map[*file]*roaring.Bitmap // rows of base's segments that are deleted
	edit   func(*View)               // changes other parts than segments; may be nil
}

// discard removes the files of a change that will not be committed.
func (c *change) discard(ix *Index) {
	for _, f := range c.add {
		f.discard()
	}
	for _, b := range c.beside {
		ix.discardColumns(b, true)
	}
	c.add, c.beside = nil, nil
}

// errStale says that an input of a merge is no longer part of the index.
var errStale = errors.New("the segments of the merge are gone")

// commit makes the change the next state of the index, on disk and in memory, or leaves both as they are. Afterwards the files of add
// belong to the view, or are removed.
func (ix *Index) commit(c *change) (err error) {
	ix.committing.Lock()
	defer ix.committing.Unlock()
	var made *settingsFile
	defer func() {
		if err != nil && ix.unsure.Load() {
			ix.leave(c, made)
		}
		if made != nil {
			made.unnamed.Store(!ix.unsure.Load() && (err != nil || made != ix.current.Load().kept))
			made.release()
		}
		for _, f := range c.add {
			f.unnamed.Store(!ix.unsure.Load() && (err != nil || !slices.Contains(ix.current.Load().files, f)))
			f.release()
		}
		for _, b := range c.beside {
			ix.discardColumns(b, !ix.unsure.Load())
		}
	}()
	if ix.committing.because != nil {
		return fmt.Errorf("cannot commit to index %s: %w", ix.UID(), ix.committing.because)
	}
	if ix.committing.closed {
		return apierr.New("index_not_found", "Index `%s` not found: it was deleted or is being closed.", ix.UID())
	}
	if ix.catalog.follows.Load() {
		return fmt.Errorf("cannot commit to index %s: %w", ix.UID(), errFollows)
	}
	for _, f := range c.add {
		if err := f.spoiled(); err != nil {
			return fmt.Errorf("cannot commit to index %s: %w", ix.UID(), err)
		}
	}
	if err := ix.openLocked(true); err != nil { // a merge has its inputs still, while the index was evicted
		return fmt.Errorf("cannot commit to index %s: %w", ix.UID(), err)
	}
	cur := ix.current.Load()
	files, lives, err := c.segments(cur)
	if err != nil {
		return err
	}
	next := cur.successor()
	if c.edit != nil {
		c.edit(next)
	}
	next.show(ix.catalog.results, files, lives)
	next.inherit(cur)
	for i, f := range files {
		if b := c.beside[f]; b != nil {
			next.beside[i] = append(slices.Clip(next.beside[i]), b)
			next.size.SegmentBytes += b.Info().Bytes
		}
	}
	if made, err = ix.keepSettings(cur, next); err != nil {
		next.Release()
		return fmt.Errorf("cannot commit to index %s: %w", cur.UID, err)
	}
	if err = ix.rename(c); err == nil {
		err = ix.write(next)
	}
	if err != nil {
		next.Release()
		return fmt.Errorf("cannot commit to index %s: %w", cur.UID, err)
	}
	for _, f := range files {
		if b := c.beside[f]; b != nil { // before the view is shared; in other views it has no effect
			f.attachColumns(b)
			delete(c.beside, f)
		}
	}
	for _, f := range c.add {
		f.setNamed()
	}
	cur.unnameBut(next)
	ix.current.Store(next)
	cur.Release()
	ix.catalog.work.count(c)
	return nil
}

// leave notes the files of a failed commit, which stay until it is known that the manifest on disk does not name them. committing is
// held.
func (ix *Index) leave(c *change, made *settingsFile) {
	left := &ix.committing.left
	for _, f := range c.add {
		*left = append(*left, f.path())
		for _, b := range f.columnFiles() {
			*left = append(*left, b.Name())
		}
	}
	for _, b := range c.beside {
		*left = append(*left, b.Name())
	}
	if made != nil {
		*left = append(*left, made.Name())
	}
}

// removeLeft removes the files that failed commits have left: the manifest on disk is that of a view. committing is held.
func (ix *Index) removeLeft() {
	for _, name := range ix.committing.left {
		if err := ix.options.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			ix.options.Logger.Warn("cannot remove an unused file; the next start will", "file", name, "error", err)
		}
	}
	ix.committing.left = nil
}

// rename renames the files of a change to their own names if they were created before a failed write of a manifest. The sync of the
// directory may have failed, and the next one says nothing about older names: those of a merge, say, that ran during a batch whose
// commit fails. committing is held.
func (ix *Index) rename(c *change) error {
	var names []string
	for _, f := range c.add {
		if f.number < ix.committing.doubted {
			names = append(names, f.path())
		}
	}
	for _, b := range c.beside {
		if b.number < ix.committing.doubted {
			names = append(names, b.Name())
		}
	}
	for _, name := range names {
		if err := vfs.Rename(ix.options.FS, name); err != nil {
			return err
		}
	}
	return nil
}

// write replaces the manifest. While the index is unsure of it, no file that either names may be removed.
func (ix *Index) write(next *View) (err error) {
	was := ix.committing.tombstones
	stones, made, err := ix.tombstonesOf(next)
	defer func() {
		switch {
		case ix.unsure.Load():
			for _, n := range made {
				ix.committing.left = append(ix.committing.left, path.Join(ix.dir, tombstonesName(n)))
			}
		case err != nil:
			ix.removeTombstones(made)
		default:
			ix.removeTombstones(replacedTombstones(was, stones))
		}
	}()
	if err != nil {
		return err
	}
	m := next.manifest(ix.nextSegment.Load(), stones)
	b, err := m.encode()
	if err != nil {
		return err
	}
	fsys, name := ix.options.FS, path.Join(ix.dir, manifestName)
	staged, placed, unsure := commit.Ahead(fsys, ix.options.Logger, func() error { return vfs.Stage(fsys, name, b) }), false, false
	defer func() { // also when Do panics
		if staged() == nil && !placed { // the log has not taken it up
			vfs.Unstage(fsys, name)
		}
	}()
	err = commit.Do(fsys, func() (commit.Change, error) {
		return m.change(ix.dir, b), nil
	}, func() error {
		err := staged()
		if err == nil {
			placed = true
			unsure, err = vfs.Place(fsys, name, func() ([]byte, error) {
				return ix.current.Load().manifest(ix.nextSegment.Load(), was).encode()
			})
		}
		return err
	})
	if unsure || err == nil { // an error before the rename leaves things as they are
		if was := ix.unsure.Swap(unsure); unsure && !was {
			ix.catalog.doubts.Add(1)
		} else if was && !unsure {
			ix.catalog.doubts.Add(-1)
		}
	}
	if err == nil {
		ix.committing.tombstones = stones
		ix.removeLeft()
	} else {
		ix.committing.doubted = ix.nextSegment.Load()
	}
	return err
}

// settle makes sure that the manifest on disk is that of the current view.
func (ix *Index) settle() error {
	if !ix.unsure.Load() {
		return nil
	}
	ix.committing.Lock()
	defer ix.committing.Unlock()
	if cur := ix.current.Load(); ix.unsure.Load() && !ix.committing.closed {
		if err := ix.write(cur); err != nil {
			return fmt.Errorf("cannot write to index %s: %w", cur.UID, err)
		}
	}
	return nil
}

// segments returns the segments after the change, with their deleted rows.
func (c *change) segments(cur *View) (files []*file, lives []segment.Live, err error) {
	keep := func(f *file, deleted *roaring.Bitmap) {
		l := f.live(deleted)
		if liveCount(l) > 0 {
			files, lives = append(files, f), append(lives, l)
		}
	}
	if !c.clear {
		deleted := make(map[*file]*roaring.Bitmap, len(cur.files))
		for i, f := range cur.files {
			deleted[f] = cur.Segments[i].Deleted
		}
		for _, f := range c.merge {
			if _, ok := deleted[f]; !ok {
				return nil, nil, errStale
			}
		}
		for f := range c.beside {
			if _, ok := deleted[f]; !ok {
				return nil, nil, errStale
			}
		}
		c.deleteFrom(deleted)
		for _, f := range cur.files {
			if !slices.Contains(c.merge, f) {
				keep(f, deleted[f])
			}
		}
	}
	late := c.lateRows(cur)
	for _, f := range c.add {
		keep(f, rowsOf(f, late))
	}
	if invariant.Enabled {
		checkDisjoint(files, lives)
	}
	return files, lives, nil
}

// deleteFrom adds the rows of gone to the deleted rows of the current segments. If a segment was merged since base, its rows are
// found again by their DocIDs.
func (c *change) deleteFrom(deleted map[*file]*roaring.Bitmap) {
	var moved []segment.DocID
	for f, rows := range c.gone {
		if _, ok := deleted[f]; ok {
			deleted[f] = union(deleted[f], rows)
			continue
		}
		for it := rows.Iterator(); it.HasNext(); {
			moved = append(moved, f.DocID(segment.Row(it.Next())))
		}
	}
	if len(moved) == 0 {
		return
	}
	for f := range deleted {
		if !slices.Contains(c.base.files, f) { // where they moved to
			deleted[f] = union(deleted[f], rowsOf(f, moved))
		}
	}
}

// lateRows returns the documents of merged segments that were deleted after the merge had started.
func (c *change) lateRows(cur *View) []segment.DocID {
	var late []segment.DocID
	for i, f := range cur.files {
		if !slices.Contains(c.merge, f) || cur.Segments[i].Deleted == nil {
			continue
		}
		rows := cur.Segments[i].Deleted
		for j, b := range c.base.files {
			if b == f && c.base.Segments[j].Deleted != nil {
				rows = roaring.AndNot(rows, c.base.Segments[j].Deleted)
			}
		}
		for it := rows.Iterator(); it.HasNext(); {
			late = append(late, f.DocID(segment.Row(it.Next())))
		}
	}
	return late
}

// rowsOf returns the rows of f that hold the documents; nil when it has none of them.
func rowsOf(f *file, ids []segment.DocID) *roaring.Bitmap {
	var rows *roaring.Bitmap
	for _, id := range ids {
		if row, ok := f.RowOf(id); ok {
			if rows == nil {
				rows = roaring.New()
			}
			rows.Add(uint32(row))
		}
	}
	return rows
}

// union returns a bitmap of its own, as compact as it can be; nil is an empty set.
func union(a, b *roaring.Bitmap) *roaring.Bitmap {
	if b == nil || b.IsEmpty() {
		return a
	}
	u := b.Clone()
	if a != nil {
		u.Or(a)
	}
	u.RunOptimize()
	return u
}

// checkDisjoint fails when two segments show the same document.
func checkDisjoint(files []*file, lives []segment.Live) {
	seen := roaring.New()
	for i, l := range lives {
		for it := l.LiveRows().Iterator(); it.HasNext(); {
			if id := l.DocID(segment.Row(it.Next())); !seen.CheckedAdd(uint32(id)) {
				invariant.Fail("document %d of %s is in two segments", id, files[i].path())
			}
		}
	}
}

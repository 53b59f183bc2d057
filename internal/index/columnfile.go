package index

import (
	"context"
	"fmt"
	"path"
	"slices"

	"svc/internal/pace"
	"svc/internal/settings"
	"svc/segment"
)

// columnFile is an open file of columns for a segment. Once committed, it belongs to the segment's file, which closes and removes it.
// It describes rows, which never change, so all views of the segment share it.
type columnFile struct {
	*segment.Reader
	number uint64
}

// maxColumnFiles is the maximum number of files of columns per segment. Each needs a mapping and at least one block of the file
// system. A settings change that needs another one rewrites the segment with all its columns.
const maxColumnFiles = 8

// openColumns opens a file of columns of f's rows.
func (f *file) openColumns(number uint64) (*columnFile, error) {
	r, err := f.OpenColumns(f.ix.options.FS, path.Join(f.ix.dir, columnsName(number)))
	if err != nil {
		return nil, fmt.Errorf("cannot open columns of index %s: %w", f.ix.UID(), err)
	}
	return &columnFile{r, number}, nil
}

// attachColumns gives f columns that a manifest names. committing is held, or f is not shared yet.
func (f *file) attachColumns(c *columnFile) {
	all := append(slices.Clip(f.columnFiles()), c)
	f.AttachColumns(c.Reader)
	f.beside.Store(&all)
}

func (f *file) columnFiles() []*columnFile {
	if all := f.beside.Load(); all != nil {
		return *all
	}
	return nil
}

// has reports whether a name is that of the segment or of one of its side files.
func (f *file) has(name string) bool {
	return f.path() == name || slices.ContainsFunc(f.columnFiles(), func(c *columnFile) bool { return c.Name() == name })
}

// discardColumns closes columns that no segment owns, and removes their file unless a manifest may name it.
func (ix *Index) discardColumns(c *columnFile, remove bool) {
	if err := c.Close(); err != nil {
		ix.options.Logger.Error("cannot close columns", "file", c.Name(), "error", err)
	}
	if remove {
		_ = ix.options.FS.Remove(c.Name()) // or the next open does it
	}
}

// writeColumns writes the columns that a segment lacks to a file beside it.
func (b *batch) writeColumns(ctx context.Context, r *rebuilding, fields *settings.Fields, share int64, p *pace.Worker, progress func(int)) (*columnFile, error) {
	k := newColumnCollector(ctx, b, fields, p, progress)
	k.share = share
	number := b.ix.nextSegment.Add(1) - 1
	name := path.Join(b.ix.dir, columnsName(number))
	if err := r.write(k, name); err != nil {
		return nil, fmt.Errorf("cannot write columns of index %s: %w", b.base.UID, err)
	}
	c, err := r.file.openColumns(number)
	if err != nil {
		_ = b.ix.options.FS.Remove(name) // or the next open does it
	}
	return c, err
}

// write writes the columns that the segment lacks to a new file. After an error no file remains.
func (r *rebuilding) write(k *columnCollector, name string) (err error) {
	w, err := r.file.CreateColumns(r.file.ix.options.FS, name, func(id segment.FieldID) bool { return k.fields.Info(id).Infix },
		func(int) error { k.pace.Yield(); return k.ctx.Err() })
	if err != nil {
		return err
	}
	ended := false
	defer func() { // also when a page of the segment cannot be read, which panics
		if !ended {
			err = w.Abort(err)
		}
	}()
	for wanted := r.wanted; len(wanted) > 0; {
		columns, n, err := k.collect(r, r.file.Rows(), wanted)
		if err == nil {
			err = w.Add(columns)
		}
		if err != nil {
			return err
		}
		wanted = wanted[n:]
	}
	ended = true
	return w.Finish()
}

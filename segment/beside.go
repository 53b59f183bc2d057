package segment

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// A file of columns belongs to a segment that was written without them. It covers all rows of the segment, including those deleted
// since. It has the same format, with few kinds of sections.

// host is the segment that a file of columns belongs to.
type host struct {
	rows  int
	table uint64 // checksum of its section table, which has those of all sections
}

const hostBytes = 24

// ColumnsWriter writes a file of columns. One goroutine uses it, and ends with Finish or Abort.
type ColumnsWriter struct {
	f       *fileWriter
	columns *columnWriter
	last    int // field that was written last; -1: none
}

// CreateColumns starts a file of columns for r's rows. It calls throttle before it writes and while it sorts columns; an error of
// throttle ends the writing; nil: none. Columns for which infix returns true get an infix index; nil: none.
func (r *Reader) CreateColumns(fs vfs.FS, name string, infix func(FieldID) bool, throttle func(bytes int) error) (*ColumnsWriter, error) {
	f, err := createFile(fs, name, throttle)
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint64(nil, r.footer.tableChecksum)
	b = binary.LittleEndian.AppendUint32(b, uint32(r.rows))
	f.add(tagHost, 0, append(b, make([]byte, hostBytes-len(b))...))
	return &ColumnsWriter{f: f, columns: newColumnWriter(f, tagColumns, r.rows, infix), last: -1}, nil
}

// Add writes columns. Their fields must be above those of all previous calls.
func (w *ColumnsWriter) Add(set *ColumnSet) error {
	if set.rows != w.columns.rows {
		return fmt.Errorf("cannot write columns to %s: they are of %d rows, the segment has %d", w.f.name, set.rows, w.columns.rows)
	}
	for _, field := range set.fields() {
		if int(field) <= w.last {
			return fmt.Errorf("cannot write columns to %s: field %d follows field %d", w.f.name, field, w.last)
		}
		w.last = int(field)
		if w.columns.encode(field, set.columns[field]); w.f.err != nil {
			return w.f.err
		}
	}
	return nil
}

// Finish syncs and closes the file. The caller makes its name durable. On an error no file is left.
func (w *ColumnsWriter) Finish() error {
	w.columns.finish(tagColumnDir)
	w.f.writeSums()
	_, err := w.f.finish()
	return err
}

// Abort removes the file. It returns the error that was met while it was written, or else the one that is given.
func (w *ColumnsWriter) Abort(err error) error { return w.f.abort(err) }

// OpenColumns opens a file of columns of r's rows. A file of another segment's rows, and one with a column that r has already, is
// an *apierr.Corruption. Until AttachColumns the caller closes it.
func (r *Reader) OpenColumns(fs vfs.FS, name string) (*Reader, error) {
	b, err := openFile(fs, name, false)
	if err != nil {
		return nil, err
	}
	b.blocks.derived = true
	if err := r.fits(b); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// fits checks that the file of columns b belongs to this very segment, and that no field gets a second
// column. The checksum of the section table stands for the content of the segment, because the table has the
// checksums of all sections.
func (r *Reader) fits(b *Reader) error {
	damaged := func(format string, args ...any) error {
		return &apierr.Corruption{File: b.name, Section: tagHost.String(), Offset: -1, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case !b.ofColumns():
		return damaged("the file is a segment, and columns that stand beside one are expected")
	case b.host.table != r.footer.tableChecksum || b.host.rows != r.rows:
		return damaged("its columns belong to another segment than %s", r.name)
	}
	for _, f := range b.ownColumns.fields {
		if r.columns.Load().of[f] != nil {
			return damaged("field %d has a column in or beside %s already", f, r.name)
		}
	}
	return nil
}

// AttachColumns has r answer for the columns of b, which OpenColumns returned, and own it: also to those that have r already. One
// goroutine at a time calls it.
func (r *Reader) AttachColumns(b *Reader) {
	b.blocks.tell.Store(r.blocks.tell.Load())
	was := r.columns.Load()
	all := &columnTable{fields: slices.Concat(was.fields, b.ownColumns.fields), of: maps.Clone(was.of)}
	slices.Sort(all.fields)
	maps.Copy(all.of, b.ownColumns.of)
	files := append(slices.Clip(r.columnFiles()), b)
	r.beside.Store(&files)
	r.columns.Store(all)
}

// columnFiles returns the segment's files of columns.
func (r *Reader) columnFiles() []*Reader {
	if files := r.beside.Load(); files != nil {
		return *files
	}
	return nil
}

// Name returns the name that the file was opened by.
func (r *Reader) Name() string { return r.name }

// ofColumns reports whether the file is one of columns.
func (r *Reader) ofColumns() bool { return r.section(tagHost) != nil }

// mayHave reports whether a kind of section has a place in the file.
func (r *Reader) mayHave(k *sectionKind) bool {
	if r.ofColumns() {
		return k.stands(inColumns)
	}
	return k.stands(inSegments)
}

func (r *Reader) openHost() error {
	b := r.section(tagHost)
	if len(b) < hostBytes || binary.LittleEndian.Uint32(b[8:]) > maxRows {
		return r.damaged(tagHost, "%d bytes", len(b))
	}
	r.host = host{rows: int(binary.LittleEndian.Uint32(b[8:])), table: binary.LittleEndian.Uint64(b)}
	r.rows = r.host.rows
	return nil
}

// verifyHost checks that a file of columns has no other sections, which would never be read.
func (r *Reader) verifyHost() error {
	if n := len(r.section(tagHost)); n != hostBytes {
		return r.damaged(tagHost, "%d bytes", n)
	}
	for _, s := range r.sections {
		if k := kindOf(s.tag); k != nil && !k.stands(inColumns) {
			return r.damaged(s.tag, "it has no place beside a segment")
		}
	}
	return nil
}

func (i *inspector) host() {
	i.field(8, "checksum of the section table of the segment: %016x", i.u64())
	i.field(4, "%d rows", i.u32())
	i.field(len(i.p), "reserved")
}

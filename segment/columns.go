package segment

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"svc/internal/invariant"
)

// Column returns the column of a field, from the segment or a file of columns, or nil.
func (r *Reader) Column(f FieldID) *Column {
	if invariant.Enabled {
		r.checkOpen()
	}
	if c := r.columns.Load().of[f]; c != nil {
		return c.open(f, tagColumns, r.rows)
	}
	return nil
}

// columnTable says where columns are.
type columnTable struct {
	fields []FieldID // in the order of their directories
	of     map[FieldID]*storedColumn
}

// storedColumn is where a column is.
type storedColumn struct {
	in       *Reader // of the file that has it
	flags    uint32
	data     []byte
	checksum uint64
	column   lazy[Column]
}

// open returns the column of a field with the given number of rows.
func (c *storedColumn) open(f FieldID, t tag, rows int) *Column {
	return c.column.get(func() *Column {
		column, err := openColumn(&c.in.blocks, c.data, c.checksum, rows)
		if err != nil {
			c.in.broken(t, "field %d: %v", f, err)
		}
		if t == tagColumns {
			column.infix = c.in.openInfix(f, c.checksum)
		}
		return column
	})
}

// forget marks the column as not verified, also for callers that have it already.
func (c *storedColumn) forget() {
	if column := c.column.made.Load(); column != nil {
		column.right.Store(0)
	}
	c.column.forget()
}

// RoundedColumns returns the fields, ascending, whose column was written when numbers were rounded to float64, and has numbers so
// large that integers may have been changed. The caller must read the values of such a field from the documents again.
func (r *Reader) RoundedColumns() []FieldID {
	var fields []FieldID
	for _, f := range r.ColumnFields() {
		if r.columns.Load().of[f].flags&exactColumn == 0 && r.Column(f).Large() {
			fields = append(fields, f)
		}
	}
	return fields
}

// ColumnFields returns the fields that have a column, ascending.
func (r *Reader) ColumnFields() []FieldID { return r.columns.Load().fields }

func buildColumns(_ context.Context, b *Builder, f *fileWriter) error {
	w := newColumnWriter(f, tagColumns, len(b.docIDs), b.options.Infix)
	for _, field := range b.columns.fields() {
		if c := b.columns.columns[field]; c.inElements != nil {
			w.f.limit(int(c.inElements.table.arena.size), "strings in memory")
			w.write(field, c.dataByRow(w.rows, b.elements.rows, f.worked))
		} else {
			w.encode(field, c)
		}
	}
	w.finish(tagColumnDir)
	return nil
}

// openColumns reads the directory of columns.
func (r *Reader) openColumns() error {
	own, err := r.columnsIn(tagColumnDir, tagColumns)
	if err != nil {
		return err
	}
	r.ownColumns = own
	r.columns.Store(own)
	return nil
}

// columnsIn reads a directory of columns.
func (r *Reader) columnsIn(dir, columns tag) (*columnTable, error) {
	directory, section := r.section(dir), r.section(columns)
	le := binary.LittleEndian
	own := &columnTable{of: map[FieldID]*storedColumn{}}
	if len(directory) < 8 || (len(directory)-8)/columnEntryBytes != int(le.Uint32(directory)) {
		return nil, r.damaged(dir, "%d bytes", len(directory))
	}
	for e := directory[8:]; len(e) >= columnEntryBytes; e = e[columnEntryBytes:] {
		field := FieldID(le.Uint32(e))
		from, n := le.Uint64(e[8:]), le.Uint64(e[16:])
		if from > uint64(len(section)) || n > uint64(len(section))-from {
			return nil, r.damaged(dir, "the column of field %d is not inside its section", field)
		}
		if own.of[field] != nil {
			return nil, r.damaged(dir, "field %d has two columns", field)
		}
		own.of[field] = &storedColumn{in: r, flags: le.Uint32(e[4:]), data: section[from : from+n : from+n], checksum: le.Uint64(e[24:])}
		own.fields = append(own.fields, field)
	}
	return own, nil
}

// verifyColumns checks that both ways of each column say the same.
func (r *Reader) verifyColumns() error {
	if err := r.verifyColumnsIn(r.ownColumns, tagColumnDir, tagColumns, r.Column); err != nil {
		return err
	}
	return r.verifyInfix()
}

// verifyColumnsIn verifies the columns of a table: ascending fields, the checksum in the directory, and the
// content of each column. dir and columns name the two sections in errors.
func (r *Reader) verifyColumnsIn(table *columnTable, dir, columns tag, column func(FieldID) *Column) error {
	fields := table.fields
	for i, f := range fields {
		if i > 0 && fields[i-1] >= f {
			return r.damaged(dir, "field %d follows field %d", f, fields[i-1])
		}
		c := column(f)
		if xxhash.Sum64(c.data) != c.checksum {
			return r.damaged(columns, "the checksum of field %d in the directory is another", f)
		}
		if err := c.verify(); err != nil {
			return r.damaged(columns, "field %d: %v", f, err)
		}
	}
	return nil
}

func (i *inspector) columnDir() {
	i.field(4, "%d columns", i.u32())
	i.field(4, "reserved")
	i.t.List((len(i.p)-8)/columnEntryBytes, inspectItems, func(int) {
		e := i.p[i.at:]
		le := binary.LittleEndian
		i.field(columnEntryBytes, "field %d: flags %d, at %d, %d bytes, checksum %016x", le.Uint32(e), le.Uint32(e[4:]), le.Uint64(e[8:]), le.Uint64(e[16:]), le.Uint64(e[24:]))
	})
}

func (i *inspector) columns() { i.columnsOf(i.r.ownColumns, i.r.Column) }

func (i *inspector) columnsOf(table *columnTable, column func(FieldID) *Column) {
	end := 0
	fields := table.fields
	i.t.List(len(fields), inspectItems, func(n int) {
		f := fields[n]
		c := column(f)
		i.at = (end + columnAlign - 1) / columnAlign * columnAlign
		begin := i.at
		end = begin + len(c.data)
		i.t.Node(func() { i.column(c, begin) }, "field %d", f)
	})
}

// infixed reports whether the column of a field gets an infix index.
func (m *merger) infixed(f FieldID) bool {
	if m.o.Infix != nil {
		return m.o.Infix(f)
	}
	return slices.ContainsFunc(m.in, func(l Live) bool {
		c := l.Column(f)
		return c != nil && c.Infixed()
	})
}

// mergeColumns writes the columns that stay, including those in files beside the inputs, and those that are added.
func (m *merger) mergeColumns() error {
	w := newColumnWriter(m.f, tagColumns, len(m.origins), m.infixed)
	fields := m.unionFields(func(l Live) []FieldID {
		return slices.DeleteFunc(slices.Clone(l.ColumnFields()), func(f FieldID) bool { return !m.o.keeps(f) })
	})
	if m.o.Columns != nil {
		fields = append(fields, m.o.Columns.fields()...)
		slices.Sort(fields)
	}
	for _, f := range fields {
		if err := m.check(); err != nil {
			return err
		}
		switch {
		case m.o.Columns != nil && m.o.Columns.has(f):
			w.encode(f, m.o.Columns.columns[f])
		case len(m.in) == 1 && m.intact[0]:
			c := m.in[0].columns.Load().of[f]
			w.copy(f, c.flags, c.data, c.checksum)
			column := m.in[0].Column(f)
			w.infix.add(m.f, f, c.checksum, column.Strings(), column.String)
		default:
			w.write(f, m.mergeColumn(func(r *Reader) (*Column, uint32) {
				if c := r.Column(f); c != nil {
					return c, r.columns.Load().of[f].flags
				}
				return nil, 0
			}))
		}
	}
	w.finish(tagColumnDir)
	return nil
}

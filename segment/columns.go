package segment

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Column returns the column of a field, or nil when the segment has none.
func (r *Reader) Column(f FieldID) *Column {
	c := r.columns[f]
	if c == nil {
		return nil
	}
	return c.column.get(func() *Column {
		column, err := openColumn(&r.blocks, c.data, c.checksum, r.rows)
		if err != nil {
			r.broken(tagColumns, "field %d: %v", f, err)
		}
		return column
	})
}

// storedColumn is where a column is.
type storedColumn struct {
	data     []byte
	checksum uint64
	column   lazy[Column]
}

// forget makes the next call of Column look at all of it again, and those who have it already.
func (c *storedColumn) forget() {
	if column := c.column.made.Load(); column != nil {
		column.right.Store(0)
	}
	c.column.forget()
}

// ColumnFields returns the fields that have a column, ascending.
func (r *Reader) ColumnFields() []FieldID { return r.columnFields }

func buildColumns(_ context.Context, b *Builder, f *fileWriter) error {
	w := newColumnWriter(f, len(b.docIDs))
	for _, field := range b.columns.fields() {
		w.encode(field, b.columns.columns[field])
	}
	w.finish()
	return nil
}

// openColumns reads the directory of columns.
func (r *Reader) openColumns() error {
	directory, section := r.section(tagColumnDir), r.section(tagColumns)
	le := binary.LittleEndian
	r.columns = map[FieldID]*storedColumn{}
	if len(directory) < 8 || (len(directory)-8)/columnEntryBytes != int(le.Uint32(directory)) {
		return r.damaged(tagColumnDir, "%d bytes", len(directory))
	}
	for e := directory[8:]; len(e) >= columnEntryBytes; e = e[columnEntryBytes:] {
		field := FieldID(le.Uint32(e))
		from, n := le.Uint64(e[8:]), le.Uint64(e[16:])
		if from > uint64(len(section)) || n > uint64(len(section))-from {
			return r.damaged(tagColumnDir, "the column of field %d is not inside its section", field)
		}
		if r.columns[field] != nil {
			return r.damaged(tagColumnDir, "field %d has two columns", field)
		}
		r.columns[field] = &storedColumn{data: section[from : from+n : from+n], checksum: le.Uint64(e[24:])}
		r.columnFields = append(r.columnFields, field)
	}
	return nil
}

// verifyColumns checks that both ways of each column say the same.
func (r *Reader) verifyColumns() error {
	for i, f := range r.columnFields {
		if i > 0 && r.columnFields[i-1] >= f {
			return r.damaged(tagColumnDir, "field %d follows field %d", f, r.columnFields[i-1])
		}
		c := r.Column(f)
		if xxhash.Sum64(c.data) != c.checksum {
			return r.damaged(tagColumns, "the checksum of field %d in the directory is another", f)
		}
		if err := c.verify(); err != nil {
			return r.damaged(tagColumns, "field %d: %v", f, err)
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
		i.field(columnEntryBytes, "field %d: at %d, %d bytes, checksum %016x", le.Uint32(e), le.Uint64(e[8:]), le.Uint64(e[16:]), le.Uint64(e[24:]))
	})
}

func (i *inspector) columns() {
	end := 0
	i.t.List(len(i.r.columnFields), inspectItems, func(n int) {
		f := i.r.columnFields[n]
		c := i.r.Column(f)
		i.at = (end + columnAlign - 1) / columnAlign * columnAlign
		begin := i.at
		end = begin + len(c.data)
		i.t.Node(func() { i.column(c, begin) }, "field %d", f)
	})
}

// mergeColumns writes the columns that stay and those that are added.
func (m *merger) mergeColumns() error {
	w := newColumnWriter(m.f, len(m.origins))
	fields := m.unionFields(func(l Live) []FieldID {
		return slices.DeleteFunc(slices.Clone(l.columnFields), func(f FieldID) bool { return !m.o.keeps(f) })
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
		case m.o.Columns != nil && m.o.Columns.columns[f] != nil:
			w.encode(f, m.o.Columns.columns[f])
		case len(m.in) == 1 && m.intact[0]:
			c := m.in[0].columns[f]
			w.copy(f, c.data, c.checksum)
		default:
			w.write(f, m.mergeColumn(f))
		}
	}
	w.finish()
	return nil
}

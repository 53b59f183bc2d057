package segment

import (
	"context"
	"encoding/binary"
	"slices"
	"svc/internal/invariant"

	"github.com/cespare/xxhash/v2"
)

// Column returns the column of a field, be it in the segment or beside it, or nil when there is none.
func (r *Reader) Column(f FieldID) *Column {
	if invariant.Enabled {
		r.checkOpen()
	}
	c := r.columns.Load().of[f]
	if c == nil {
		return nil
	}
	return c.column.get(func() *Column {
		column, err := openColumn(&c.in.blocks, c.data, c.checksum, r.rows)
		if err != nil {
			c.in.broken(tagColumns, "field %d: %v", f, err)
		}
		return column
	})
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

// forget makes the next call of Column look at all of it again, and those who have it already.
func (c *storedColumn) forget() {
	if column := c.column.made.Load(); column != nil {
		column.right.Store(0)
	}
	c.column.forget()
}

// RoundedColumns returns the fields, ascending, whose column was written when numbers were rounded to float64, and has some so large that
// integers were lost by it. What documents say of such a field is to be read again.
func (r *Reader) RoundedColumns() []FieldID {
	var fields []FieldID
	for _, f := range r.ColumnFields() {
		if r.columns.Load().of[f].flags&exactColumn == 0 && r.Column(f).large() {
			fields = append(fields, f)
		}
	}
	return fields
}

// ColumnFields returns the fields that have a column, ascending.
func (r *Reader) ColumnFields() []FieldID { return r.columns.Load().fields }

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
	own := &columnTable{of: map[FieldID]*storedColumn{}}
	if len(directory) < 8 || (len(directory)-8)/columnEntryBytes != int(le.Uint32(directory)) {
		return r.damaged(tagColumnDir, "%d bytes", len(directory))
	}
	for e := directory[8:]; len(e) >= columnEntryBytes; e = e[columnEntryBytes:] {
		field := FieldID(le.Uint32(e))
		from, n := le.Uint64(e[8:]), le.Uint64(e[16:])
		if from > uint64(len(section)) || n > uint64(len(section))-from {
			return r.damaged(tagColumnDir, "the column of field %d is not inside its section", field)
		}
		if own.of[field] != nil {
			return r.damaged(tagColumnDir, "field %d has two columns", field)
		}
		own.of[field] = &storedColumn{in: r, flags: le.Uint32(e[4:]), data: section[from : from+n : from+n], checksum: le.Uint64(e[24:])}
		own.fields = append(own.fields, field)
	}
	r.ownColumns = own
	r.columns.Store(own)
	return nil
}

// verifyColumns checks that both ways of each column say the same.
func (r *Reader) verifyColumns() error {
	fields := r.ownColumns.fields
	for i, f := range fields {
		if i > 0 && fields[i-1] >= f {
			return r.damaged(tagColumnDir, "field %d follows field %d", f, fields[i-1])
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
		i.field(columnEntryBytes, "field %d: flags %d, at %d, %d bytes, checksum %016x", le.Uint32(e), le.Uint32(e[4:]), le.Uint64(e[8:]), le.Uint64(e[16:]), le.Uint64(e[24:]))
	})
}

func (i *inspector) columns() {
	end := 0
	fields := i.r.ownColumns.fields
	i.t.List(len(fields), inspectItems, func(n int) {
		f := fields[n]
		c := i.r.Column(f)
		i.at = (end + columnAlign - 1) / columnAlign * columnAlign
		begin := i.at
		end = begin + len(c.data)
		i.t.Node(func() { i.column(c, begin) }, "field %d", f)
	})
}

// mergeColumns writes the columns that stay, those that stood beside the inputs too, and those that are added.
func (m *merger) mergeColumns() error {
	w := newColumnWriter(m.f, len(m.origins))
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
		case m.o.Columns != nil && m.o.Columns.columns[f] != nil:
			w.encode(f, m.o.Columns.columns[f])
		case len(m.in) == 1 && m.intact[0]:
			c := m.in[0].columns.Load().of[f]
			w.copy(f, c.flags, c.data, c.checksum)
		default:
			w.write(f, m.mergeColumn(f))
		}
	}
	w.finish()
	return nil
}

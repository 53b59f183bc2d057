package segment

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/segment/rowlist"
)

// rowSet gathers ascending rows as runs, which costs 8 bytes for a field that every row has.
type rowSet struct {
	runs []rowRun
	n    int
	late []uint32 // rows that came after a higher one; possible for elements
}

// rowRun is the rows first…last, both included.
type rowRun struct{ first, last uint32 }

// add adds a row. Ascending rows extend the last run or begin a new one. A row below the last one goes to late.
func (s *rowSet) add(row uint32) {
	if i := len(s.runs) - 1; i >= 0 {
		switch last := &s.runs[i].last; row {
		case *last:
			return
		case *last + 1:
			*last = row
			s.n++
			return
		default:
			if row < *last {
				s.late = append(s.late, row)
				return
			}
		}
	}
	s.runs = append(s.runs, rowRun{row, row})
	s.n++
}

// addRun adds the rows first…last, which are above all others.
func (s *rowSet) addRun(first, last uint32) {
	s.n += int(last - first + 1)
	if i := len(s.runs) - 1; i >= 0 && s.runs[i].last+1 == first {
		s.runs[i].last = last
		return
	}
	s.runs = append(s.runs, rowRun{first, last})
}

// appendTo appends the rows, ascending and without repetition. Late ones are sorted in.
func (s *rowSet) appendTo(dst []uint32) []uint32 {
	dst = slices.Grow(dst, s.n+len(s.late))
	from := len(dst)
	for _, r := range s.runs {
		for row := r.first; ; row++ {
			dst = append(dst, row)
			if row == r.last {
				break
			}
		}
	}
	if len(s.late) > 0 {
		rows := append(dst[from:], s.late...)
		slices.Sort(rows)
		return dst[:from+len(slices.Compact(rows))]
	}
	return dst
}

func (s *rowSet) memoryBytes() int64 { return int64(cap(s.runs)*8 + cap(s.late)*4) }

const presenceEntryBytes = 16

// writePresence writes a section of rows by field, ascending, or none if there is no field:
//
//	u32 fields, u32 0
//	fields × { u16 field, u16 code, u32 count, u32 offset, u32 length }
//	row lists, at multiples of 8
func writePresence(f *fileWriter, t tag, aux uint32, sets []fieldValue[rowSet]) {
	fields := len(sets)
	if fields == 0 {
		return
	}
	head := make([]byte, 8, 8+fields*presenceEntryBytes)
	binary.LittleEndian.PutUint32(head, uint32(fields))
	base := cap(head)
	var lists []byte
	var rows []uint32
	for i := range sets {
		rows = sets[i].value.appendTo(rows[:0])
		for len(lists)%8 != 0 {
			lists = append(lists, 0)
		}
		at := len(lists)
		var code int
		lists, code = rowlist.Append(lists, rows)
		head = binary.LittleEndian.AppendUint16(head, uint16(sets[i].field))
		head = binary.LittleEndian.AppendUint16(head, uint16(code))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(rows)))
		head = binary.LittleEndian.AppendUint32(head, uint32(base+at))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(lists)-at))
	}
	f.limit(base+len(lists), "presence")
	f.begin(t, aux)
	f.Write(head)
	f.Write(lists)
	f.end()
}

// presenceReader finds the row lists of fields in a section that writePresence wrote.
type presenceReader struct {
	tag     tag
	blocks  *blocks
	section []byte
}

func buildPresence(_ context.Context, b *Builder, f *fileWriter) error {
	writePresence(f, tagPresence, 0, b.presence.sorted())
	return nil
}

func buildDottedKeys(_ context.Context, b *Builder, f *fileWriter) error {
	writePresence(f, tagDottedKeys, 0, b.dotted.sorted())
	return nil
}

func (r *Reader) openPresence() (err error) {
	r.presence, err = r.presenceIn(tagPresence, 0)
	return err
}

func (r *Reader) openDottedKeys() (err error) {
	r.dottedKeys, err = r.presenceIn(tagDottedKeys, 0)
	return err
}

// presenceIn finds a section; a missing one has no fields.
func (r *Reader) presenceIn(t tag, aux uint32) (presenceReader, error) {
	p := presenceReader{tag: t, blocks: &r.blocks, section: r.sectionOf(t, aux)}
	if n := len(p.section); n > 0 && n < 8 {
		return presenceReader{}, r.damaged(t, "%d bytes", n)
	}
	return p, nil
}

// fields returns the number of fields. All their entries are inside the section.
func (p *presenceReader) fields() int {
	if len(p.section) == 0 {
		return 0
	}
	p.blocks.touch(p.section[:8])
	n := int(binary.LittleEndian.Uint32(p.section))
	if n > 1<<16 || len(p.section) < 8+n*presenceEntryBytes {
		panic(&apierr.Corruption{File: p.blocks.name, Section: p.tag.String(), Offset: -1, Reason: "its directory is cut"})
	}
	p.blocks.touch(p.section[:8+n*presenceEntryBytes])
	return n
}

func (p *presenceReader) field(i int) FieldID {
	return FieldID(binary.LittleEndian.Uint16(p.section[8+i*presenceEntryBytes:]))
}

// rows returns the row list of field i of the section, after verifying its blocks; false if its entry leaves
// the section.
func (p *presenceReader) rows(i int) (rowlist.List, bool) {
	e := p.section[8+i*presenceEntryBytes:]
	l := rowlist.List{Code: int(binary.LittleEndian.Uint16(e[2:])), Count: int(binary.LittleEndian.Uint32(e[4:]))}
	from, n := uint64(binary.LittleEndian.Uint32(e[8:])), uint64(binary.LittleEndian.Uint32(e[12:]))
	if from+n > uint64(len(p.section)) || l.Code == rowlist.Delta && uint64(l.Count) > n || l.Code > rowlist.Roaring {
		return rowlist.List{}, false
	}
	l.P = p.section[from : from+n : from+n]
	p.blocks.touch(l.P)
	return l, true
}

// find returns the row list of a field, if it has one that lies inside.
func (p *presenceReader) find(f FieldID) (rowlist.List, bool) {
	n := p.fields()
	i := sort.Search(n, func(i int) bool { return p.field(i) >= f })
	if i == n || p.field(i) != f {
		return rowlist.List{}, false
	}
	return p.rows(i)
}

func (p *presenceReader) bitmap(f FieldID) *roaring.Bitmap {
	if l, ok := p.find(f); ok {
		return l.Bitmap()
	}
	return roaring.New()
}

// Present returns the rows whose document has the field, never nil. The bitmap is shared, must not be modified, and may use mapped
// memory.
func (r *Reader) Present(f FieldID) *roaring.Bitmap { return r.presence.bitmap(f) }

// DottedKey returns the rows of Present whose document has the whole path, which contains a dot, as one first-level key. The bitmap
// is like that of Present.
func (r *Reader) DottedKey(f FieldID) *roaring.Bitmap { return r.dottedKeys.bitmap(f) }

func (m *merger) mergePresence() error {
	m.mergeRowsByField(tagPresence, func(r *Reader) *presenceReader { return &r.presence }, m.o.Present)
	return nil
}

func (m *merger) copyPresence() error {
	if len(m.o.Present) > 0 {
		return m.mergePresence()
	}
	return m.copySections(tagPresence)
}

func (m *merger) mergeDottedKeys() error {
	m.mergeRowsByField(tagDottedKeys, func(r *Reader) *presenceReader { return &r.dottedKeys }, nil)
	return nil
}

// mergeRowsByField writes a section of rows by field; of says where an input has its own. replaced has other rows, of the output.
func (m *merger) mergeRowsByField(t tag, of func(*Reader) *presenceReader, replaced map[FieldID]*roaring.Bitmap) {
	fields := m.unionFields(func(l Live) []FieldID {
		p := of(l.Reader)
		all := make([]FieldID, p.fields())
		for i := range all {
			all[i] = p.field(i)
		}
		return all
	})
	for f := range replaced {
		fields = append(fields, f)
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	have := newRowBits(len(m.origins))
	sets := make([]fieldValue[rowSet], 0, len(fields))
	var old []uint32
	for _, f := range fields {
		if rows := replaced[f]; rows != nil {
			var set rowSet
			for it := rows.Iterator(); it.HasNext(); {
				set.add(it.Next())
			}
			if set.n > 0 {
				sets = append(sets, fieldValue[rowSet]{f, set})
			}
			continue
		}
		for i, l := range m.in {
			if list, ok := of(l.Reader).find(f); ok {
				old = list.AppendTo(old[:0])
				have.addMapped(old, m.rows[i])
			}
		}
		if set := have.take(); set.n > 0 { // else all its rows are deleted
			sets = append(sets, fieldValue[rowSet]{f, set})
		}
	}
	writePresence(m.f, t, 0, sets)
}

func (r *Reader) verifyPresence() error { return r.verifyRowsByField(&r.presence, r.rows) }

// verifyDottedKeys checks that rows with a dotted key also have the field.
func (r *Reader) verifyDottedKeys() error {
	if err := r.verifyRowsByField(&r.dottedKeys, r.rows); err != nil {
		return err
	}
	for i := range r.dottedKeys.fields() {
		f := r.dottedKeys.field(i)
		rows := r.DottedKey(f)
		if n, in := rows.GetCardinality(), rows.AndCardinality(r.Present(f)); in != n {
			return r.damaged(tagDottedKeys, "field %d is a key of %d rows, of which %d have it", f, n, in)
		}
	}
	return nil
}

// verifyRowsByField checks a section of the form of pres: ascending fields, each with a valid list of rows
// below rows.
func (r *Reader) verifyRowsByField(p *presenceReader, rows int) error {
	for i := range p.fields() {
		if i > 0 && p.field(i-1) >= p.field(i) {
			return r.damaged(p.tag, "field %d follows field %d", p.field(i), p.field(i-1))
		}
		l, ok := p.rows(i)
		if !ok {
			return r.damaged(p.tag, "the rows of field %d are not inside", p.field(i))
		}
		if _, err := r.verifyRows(p.tag, l, rows); err != nil {
			return fmt.Errorf("field %d: %w", p.field(i), err)
		}
	}
	return nil
}

func fieldName(f FieldID) string { return fmt.Sprintf("field %d", f) }

func (i *inspector) presence()   { i.rowsByField(&i.r.presence, fieldName) }
func (i *inspector) dottedKeys() { i.rowsByField(&i.r.dottedKeys, fieldName) }

// rowsByField prints the row lists of a section; name says what one of them is of.
func (i *inspector) rowsByField(p *presenceReader, name func(FieldID) string) {
	i.field(4, "%d row lists", p.fields())
	i.field(4, "reserved")
	i.t.List(p.fields(), inspectItems, func(n int) {
		l, _ := p.rows(n)
		i.field(presenceEntryBytes, "%s: %d rows, %s", name(p.field(n)), l.Count, codeName(l.Code))
	})
	i.t.List(p.fields(), inspectItems, func(n int) {
		if l, ok := p.rows(n); ok {
			i.at = int(binary.LittleEndian.Uint32(i.p[8+n*presenceEntryBytes+8:]))
			i.rows(l)
		}
	})
}

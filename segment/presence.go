package segment

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"
)

// rowSet gathers ascending rows as runs, which costs 8 bytes for a field that every row has.
type rowSet struct {
	runs []rowRun
	n    int
}

type rowRun struct{ first, last uint32 }

func (s *rowSet) add(row uint32) {
	if i := len(s.runs) - 1; i >= 0 {
		switch last := &s.runs[i].last; row {
		case *last:
			return
		case *last + 1:
			*last = row
			s.n++
			return
		}
	}
	s.runs = append(s.runs, rowRun{row, row})
	s.n++
}

func (s *rowSet) appendTo(dst []uint32) []uint32 {
	dst = slices.Grow(dst, s.n)
	for _, r := range s.runs {
		for row := r.first; ; row++ {
			dst = append(dst, row)
			if row == r.last {
				break
			}
		}
	}
	return dst
}

const presenceEntryBytes = 16

// writePresence writes a section of rows by field, ascending; none when there is no field:
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
		lists, code = appendRowList(lists, rows)
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
	section []byte
	fields  int
}

// openPresence reads the directory of a section; a missing one has no fields.
func (r *Reader) openPresence(t tag, aux uint32) (presenceReader, error) {
	p := presenceReader{tag: t, section: r.sectionOf(t, aux)}
	if len(p.section) == 0 {
		return p, nil
	}
	if len(p.section) >= 8 {
		p.fields = int(binary.LittleEndian.Uint32(p.section))
	}
	if len(p.section) < 8 || p.fields > 1<<16 || len(p.section) < 8+p.fields*presenceEntryBytes {
		return presenceReader{}, r.damaged(t, "its directory is cut")
	}
	return p, nil
}

func (p *presenceReader) field(i int) FieldID {
	return FieldID(binary.LittleEndian.Uint16(p.section[8+i*presenceEntryBytes:]))
}

func (p *presenceReader) rows(i int) (rowList, bool) {
	e := p.section[8+i*presenceEntryBytes:]
	l := rowList{code: int(binary.LittleEndian.Uint16(e[2:])), count: int(binary.LittleEndian.Uint32(e[4:]))}
	from, n := uint64(binary.LittleEndian.Uint32(e[8:])), uint64(binary.LittleEndian.Uint32(e[12:]))
	if from+n > uint64(len(p.section)) || l.code == rowsDelta && uint64(l.count) > n || l.code > rowsRoaring {
		return rowList{}, false
	}
	l.p = p.section[from : from+n : from+n]
	return l, true
}

// find returns the row list of a field, if it has one that lies inside.
func (p *presenceReader) find(f FieldID) (rowList, bool) {
	i := sort.Search(p.fields, func(i int) bool { return p.field(i) >= f })
	if i == p.fields || p.field(i) != f {
		return rowList{}, false
	}
	return p.rows(i)
}

func (p *presenceReader) bitmap(f FieldID) *roaring.Bitmap {
	if l, ok := p.find(f); ok {
		return l.bitmap()
	}
	return roaring.New()
}

// Present returns the rows whose document has the field; never nil. It is
// shared, not to be modified, and may use mapped memory.
func (r *Reader) Present(f FieldID) *roaring.Bitmap { return r.presence.bitmap(f) }

// DottedKey returns those rows of Present whose document has the whole path, which has a
// dot, as one first-level key. The same holds for the bitmap.
func (r *Reader) DottedKey(f FieldID) *roaring.Bitmap { return r.dottedKeys.bitmap(f) }

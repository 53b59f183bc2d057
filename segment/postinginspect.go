package segment

import (
	"fmt"

	"svc/segment/rowlist"
)

// posting prints the posting at an offset of the section.
func (i *inspector) posting(name string, offset uint64) {
	p, ok := readPosting(nil, i.p, offset)
	if !ok {
		i.t.Note("%s: no posting at %d", name, offset)
		return
	}
	i.t.Node(func() {
		i.at = int(offset)
		s := scanOf(nil, i.p, i.at)
		h := s.uvarint()
		i.field(s.at-i.at, "%d fields, union %v", p.fields, h&1 != 0)
		if h&1 != 0 {
			i.rowsBefore("union", p.union, func(s *scan) { s.uvarint() })
		}
		if p.fields >= directoryFields {
			i.field(4*p.fields, "offsets of the fields")
		}
		i.t.List(p.fields, inspectItems, func(n int) {
			f, end := p.readField(i.at)
			if f.rows.Count == 0 {
				i.t.Note("damaged")
				return
			}
			i.t.Node(func() {
				if _, h := peekUvarint(i.p, i.at); h&1 != 0 {
					s := scanOf(nil, i.p, i.at)
					s.uvarint()
					i.field(s.at-i.at, "field %d, one row", f.id)
					i.field(len(f.rows.P), "row %d", f.rows.AppendTo(nil)[0])
				} else {
					i.rowsBefore(fmt.Sprintf("field %d", f.id), f.rows, func(s *scan) {
						s.uvarint()
						s.uvarint()
						s.uvarint()
					})
				}
				if f.skips > 0 {
					i.field(f.skips, "skip table of %d blocks", f.skips/4+1)
				}
				rows := f.rows.AppendTo(nil)
				positions := f.positions[f.skips:]
				at := 0
				i.t.List(len(rows), inspectItems, func(n int) {
					list, next := decodePositions(nil, positions, at)
					i.field(next-at, "row %d: positions %v", rows[n], list)
					at = next
				})
				i.at = end
			}, "field %d", f.id)
		})
	}, "%s", name)
}

func peekUvarint(p []byte, at int) (int, uint64) {
	s := scanOf(nil, p, at)
	v := s.uvarint()
	return s.at - at, v
}

// rowsBefore prints the head before a row list, and the list.
func (i *inspector) rowsBefore(name string, l rowlist.List, head func(*scan)) {
	s := scanOf(nil, i.p, i.at)
	head(&s)
	i.field(s.at-i.at, "%s: %d rows", name, l.Count)
	n, _ := peekUvarint(i.p, i.at)
	i.field(n, "%d bytes, %s", len(l.P), codeName(l.Code))
	if l.Code == rowlist.Roaring {
		if pad := -i.at & (postingAlign - 1); pad > 0 {
			i.field(pad, "padding")
		}
	}
	i.rows(l)
}

func codeName(code int) string {
	if code == rowlist.Roaring {
		return "roaring"
	}
	return "deltas"
}

// rows prints a row list.
func (i *inspector) rows(l rowlist.List) {
	rows := l.AppendTo(nil)
	if len(rows) > inspectItems {
		i.field(len(l.P), "rows %d… of %d", rows[:inspectItems], len(rows))
		return
	}
	i.field(len(l.P), "rows %d", rows)
}

package segment

import (
	"encoding/binary"

	"svc/segment/rowlist"
)

// fieldRows is what a posting holds of one field, before it is written:
// ascending rows, and their coded positions one after another.
type fieldRows struct {
	id        FieldID
	rows      []uint32
	positions []byte
	copied    *copiedPositions // instead of positions, when they are many; else nil
}

// positionBytes returns how long the positions are.
func (f *fieldRows) positionBytes() int {
	if f.copied != nil {
		return f.copied.size
	}
	return len(f.positions)
}

// postingWriter writes postings to the open section of a file.
type postingWriter struct {
	w     *fileWriter
	buf   []byte
	code  []byte
	union rowUnion

	cuts  []cut // of the posting that is written
	apart int   // bytes of positions that go there
}

// cut is a place in the code of a posting where positions go that are written from where they are.
type cut struct {
	at     int
	copied *copiedPositions
}

// write writes the posting of fields, ascending by id and none of them
// empty, and returns its offset in the section.
func (w *postingWriter) write(fields []fieldRows) uint64 {
	offset := w.w.at()
	base := int(offset % postingAlign)
	n := len(fields)
	total := 0
	for _, f := range fields {
		total += len(f.rows)
	}
	hasUnion := n > 1 && total >= unionRows
	h := uint64(n) << 1
	if hasUnion {
		h |= 1
	}
	// buf begins with base bytes that are not written, so that alignment in it is that in the section.
	b := append(w.buf[:0], zeros[:base]...)
	w.cuts, w.apart = w.cuts[:0], 0
	b = binary.AppendUvarint(b, h)
	if hasUnion {
		rows := w.union.of(fields)
		b = binary.AppendUvarint(b, uint64(len(rows)))
		b = w.appendRows(b, rows)
	}
	directory := len(b)
	if n >= directoryFields {
		b = append(b, make([]byte, 4*n)...)
	}
	for i, f := range fields {
		if n >= directoryFields {
			binary.LittleEndian.PutUint32(b[directory+4*i:], uint32(len(b)+w.apart-base))
		}
		if len(f.rows) == 1 {
			b = binary.AppendUvarint(b, uint64(f.id)<<1|1)
			b = binary.AppendUvarint(b, uint64(f.rows[0]))
			b = w.appendPositions(b, &f)
			continue
		}
		b = binary.AppendUvarint(b, uint64(f.id)<<1)
		b = binary.AppendUvarint(b, uint64(len(f.rows)))
		b = binary.AppendUvarint(b, uint64(f.positionBytes()+skipBytes(len(f.rows))))
		b = w.appendRows(b, f.rows)
		if f.copied != nil {
			b = append(b, f.copied.skips...)
		} else {
			b = appendSkips(b, f.positions, len(f.rows))
		}
		b = w.appendPositions(b, &f)
	}
	w.buf = b
	w.w.limit(len(b)+w.apart, "one posting")
	from := base
	for _, c := range w.cuts {
		w.w.Write(b[from:c.at])
		c.copied.writeTo(w.w)
		from = c.at
	}
	w.w.Write(b[from:])
	return uint64(offset)
}

// appendPositions appends the positions, or notes that they come here.
func (w *postingWriter) appendPositions(b []byte, f *fieldRows) []byte {
	if f.copied == nil {
		return append(b, f.positions...)
	}
	w.cuts = append(w.cuts, cut{len(b), f.copied})
	w.apart += f.copied.size
	return b
}

// appendRows appends a row list part. A Roaring list begins at a multiple of postingAlign in the section, so
// that a reader uses it in place; b begins at a multiple of that plus apart.
func (w *postingWriter) appendRows(b []byte, rows []uint32) []byte {
	var code int
	w.code, code = rowlist.Append(w.code[:0], rows)
	b = binary.AppendUvarint(b, uint64(len(w.code))<<1|uint64(code))
	if code == rowlist.Roaring {
		for (len(b)+w.apart)%postingAlign != 0 {
			b = append(b, 0)
		}
	}
	return append(b, w.code...)
}

package segment

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"svc/segment/rowlist"
)

// The parts of a column, in this order; a part that is not needed is empty.
const (
	partNull = iota
	partEmpty
	partNumbers    // values
	partNumberRows // ordinal → rows
	partRowNumbers // row → ordinals
	partStrings
	partOriginals
	partStringRows
	partRowStrings
	partRests // of numbers
	columnParts

	columnHeaderBytes = 56 // 3 counts, columnParts + 1 offsets
	columnAlign       = 8
	columnEntryBytes  = 32

	// exactColumn is the flag, in the directory, of a column with the exact numbers of the documents. Up to format 3 they were
	// rounded to float64.
	exactColumn = 1

	// heavyRows is the number of rows from which the rows of an ordinal are a Roaring bitmap instead of a range of the common array.
	// The bitmap is then at most as large, and is used without decoding.
	heavyRows = 1024
)

// Kinds of row → ordinals tables.
const (
	forwardSingle = 1 // an ordinal a row of the segment
	forwardMulti  = 2 // offsets of every row of the segment, then ordinals
	forwardSparse = 3 // the rows that have any, their offsets, then ordinals
	forwardPlanes = 4 // planes of an ordinal a row of the segment
)

// sparseShare: when less than this part of the rows has a value they are
// looked up by binary search, which is slower than an array of all rows but smaller.
const sparseShare = 8

// noOrdinal marks a row without a value in a forwardSingle table; it is cut to the table's width.
const noOrdinal = math.MaxUint32

// encodeColumn appends the code of a column.
func encodeColumn(dst []byte, d *columnData) []byte {
	le := binary.LittleEndian
	start := len(dst)
	dst = append(dst, make([]byte, columnHeaderBytes)...)
	le.PutUint32(dst[start:], uint32(d.rows))
	le.PutUint32(dst[start+4:], uint32(d.numbers.len()))
	le.PutUint32(dst[start+8:], uint32(d.stringCount))
	part := 0
	begin := func() {
		if d.worked != nil {
			d.worked(d.rows + d.stringCount)
		}
		for (len(dst)-start)%columnAlign != 0 {
			dst = append(dst, 0)
		}
		le.PutUint32(dst[start+12+4*part:], uint32(len(dst)-start))
		part++
	}
	begin()
	dst = appendCountedRows(dst, start, d.null)
	begin()
	dst = appendCountedRows(dst, start, d.empty)
	begin()
	for _, x := range d.numbers.floats {
		dst = le.AppendUint64(dst, math.Float64bits(x))
	}
	begin()
	planes := d.planesOf(d.numbers.len(), d.numberPairs)
	dst = appendInverse(dst, start, d.rows, d.numbers.len(), planes, d.numberPairs)
	begin()
	dst = appendForward(dst, d.rows, d.numbers.len(), planes, d.numberPairs)
	begin()
	dst = appendStrings(dst, d.stringCount, d.strings)
	begin()
	for ord := range d.stringCount {
		if len(d.originals(ord)) > 0 {
			dst = appendStrings(dst, d.stringCount, d.originals)
			break
		}
	}
	begin()
	planes = d.planesOf(d.stringCount, d.stringPairs)
	dst = appendInverse(dst, start, d.rows, d.stringCount, planes, d.stringPairs)
	begin()
	dst = appendForward(dst, d.rows, d.stringCount, planes, d.stringPairs)
	begin()
	for _, rest := range d.numbers.rests {
		dst = le.AppendUint16(dst, uint16(rest))
	}
	begin()
	return dst
}

// appendCountedRows appends "u32 count, u32 length << 1 | code, row list", or nothing for no rows.
func appendCountedRows(dst []byte, start int, rows []uint32) []byte {
	if len(rows) == 0 {
		return dst
	}
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(rows)))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst, code := rowlist.Append(dst, rows)
	binary.LittleEndian.PutUint32(dst[at+4:], uint32(len(dst)-at-8)<<1|uint32(code))
	return dst
}

// appendStrings appends n + 1 offsets of 4 bytes, then the strings.
func appendStrings(dst []byte, n int, s func(ord int) []byte) []byte {
	if n == 0 {
		return dst
	}
	end := uint32(0)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	for ord := range n {
		end += uint32(len(s(ord)))
		dst = binary.LittleEndian.AppendUint32(dst, end)
	}
	for ord := range n {
		dst = append(dst, s(ord)...)
	}
	return dst
}

// width returns how many bytes hold numbers up to n, leaving the largest of them free.
func width(n int) int {
	switch {
	case n < 0xff:
		return 1
	case n < 0xffff:
		return 2
	}
	return 4
}

func appendUint(dst []byte, w int, v uint32) []byte {
	switch w {
	case 1:
		return append(dst, byte(v))
	case 2:
		return binary.LittleEndian.AppendUint16(dst, uint16(v))
	}
	return binary.LittleEndian.AppendUint32(dst, v)
}

// planesOf returns how many bits the ordinals of rows have, if they are written as planes, else 0.
func (d *columnData) planesOf(ords int, pairs []rowOrdinal) int {
	n := planesFor(ords)
	if have, single := holders(pairs); !d.planes || ords == 0 || n > maxPlanes || !single || sparseShare*have < d.rows {
		return 0
	}
	return n
}

// holders returns how many rows have an ordinal, and whether none has two.
func holders(pairs []rowOrdinal) (have int, single bool) {
	single = true
	for i, p := range pairs {
		if i > 0 && pairs[i-1].row == p.row {
			single = false
		} else {
			have++
		}
	}
	return have, single
}

// heavyLimit returns the number of rows from which an ordinal has a bitmap. A bitmap takes 2 bytes per row, 8 bytes for each 65,536
// rows of the segment in which it has a row, and its entry. Ranges of ordinals read bitmaps more slowly than lists, unless there are
// planes.
func heavyLimit(rows, width, planes int) int {
	if planes == 0 || width < 4 {
		return heavyRows
	}
	return min(heavyRows, max(planeListRows, 8*(rows>>16)))
}

// appendInverse appends the rows of each ordinal. planes is the number of bits per ordinal in planes, or 0 if there are none.
func appendInverse(dst []byte, start, rows, ords, planes int, pairs []rowOrdinal) []byte {
	if ords == 0 {
		return dst
	}
	le := binary.LittleEndian
	counts := make([]uint32, ords+1) // then: first place of each ordinal
	for _, p := range pairs {
		counts[p.ord]++
	}
	type list struct {
		ord, count uint32
		rows       []uint32 // nil: planes have them
	}
	var heavy []list
	var lists []uint32 // by ordinal: number in heavy + 1, 0 for none
	w := width(rows)
	light, limit := uint32(0), heavyLimit(rows, w, planes)
	listed := false // rows of one of them: planes do not have all
	for ord, n := range counts[:ords] {
		counts[ord] = light
		inPlanes := planes > 0 && int(n)*planeShare >= rows
		listed = listed || !inPlanes
		if int(n) < limit && !inPlanes {
			light += n
			continue
		}
		if lists == nil {
			lists = make([]uint32, ords)
		}
		l := list{ord: uint32(ord), count: n}
		if !inPlanes {
			l.rows = make([]uint32, 0, n)
		}
		heavy = append(heavy, l)
		lists[ord] = uint32(len(heavy))
	}
	counts[ords] = light
	dst = le.AppendUint32(dst, uint32(len(heavy)))
	dst = le.AppendUint32(dst, uint32(w))
	for _, at := range counts {
		dst = le.AppendUint32(dst, at)
	}
	table := len(dst)
	dst = append(dst, make([]byte, 16*len(heavy))...)

	place := make([]uint32, light)
	next := counts
	if !listed {
		pairs = nil
	}
	for _, p := range pairs {
		if lists != nil && lists[p.ord] > 0 {
			if l := &heavy[lists[p.ord]-1]; l.rows != nil {
				l.rows = append(l.rows, p.row)
			}
			continue
		}
		place[next[p.ord]] = p.row
		next[p.ord]++
	}
	for _, row := range place {
		dst = appendUint(dst, w, row)
	}
	for i, l := range heavy {
		e := dst[table+16*i:]
		le.PutUint32(e, l.ord)
		le.PutUint32(e[4:], l.count)
		if l.rows == nil {
			continue
		}
		for (len(dst)-start)%columnAlign != 0 {
			dst = append(dst, 0)
		}
		at := len(dst)
		dst = rowlist.AppendRoaring(dst, l.rows)
		e = dst[table+16*i:]
		le.PutUint32(e[8:], uint32(at-start))
		le.PutUint32(e[12:], uint32(len(dst)-at))
	}
	return dst
}

// appendForward appends the ordinals of each row.
func appendForward(dst []byte, rows, ords, planes int, pairs []rowOrdinal) []byte {
	if ords == 0 {
		return dst
	}
	have, single := holders(pairs)
	w := width(ords)
	kind := forwardMulti
	switch {
	case planes > 0:
		kind, w = forwardPlanes, planes
	case sparseShare*have < rows:
		kind = forwardSparse
	case single:
		kind = forwardSingle
	}
	le := binary.LittleEndian
	dst = append(dst, byte(kind), byte(w), 0, 0)
	dst = le.AppendUint32(dst, uint32(have))
	switch kind {
	case forwardPlanes:
		return appendPlanes(dst, rows, planes, pairs)
	case forwardSingle:
		i := 0
		for row := range uint32(rows) {
			ord := uint32(noOrdinal)
			if i < len(pairs) && pairs[i].row == row {
				ord = pairs[i].ord
				i++
			}
			dst = appendUint(dst, w, ord)
		}
		return dst
	case forwardMulti:
		i := 0
		for row := range uint32(rows) {
			dst = le.AppendUint32(dst, uint32(i))
			for i < len(pairs) && pairs[i].row == row {
				i++
			}
		}
	default:
		for i, p := range pairs {
			if i == 0 || pairs[i-1].row != p.row {
				dst = le.AppendUint32(dst, p.row)
			}
		}
		for i, p := range pairs {
			if i == 0 || pairs[i-1].row != p.row {
				dst = le.AppendUint32(dst, uint32(i))
			}
		}
	}
	dst = le.AppendUint32(dst, uint32(len(pairs)))
	for _, p := range pairs {
		dst = appendUint(dst, w, p.ord)
	}
	return dst
}

// columnWriter writes the columns section and gathers its directory.
type columnWriter struct {
	f         *fileWriter
	rows      int // of the segment
	planes    bool
	count     uint32
	directory []byte
	buf       []byte
	infix     infixWriter
}

// newColumnWriter begins a section. Columns for which infix holds get an infix index; nil: none.
func newColumnWriter(f *fileWriter, t tag, rows int, infix func(FieldID) bool) *columnWriter {
	f.begin(t, 0)
	return &columnWriter{f: f, rows: rows, planes: t == tagElementColumns, directory: make([]byte, 8), infix: infixWriter{wanted: infix}}
}

// encode writes the column that a builder gathered; fields ascend.
func (w *columnWriter) encode(field FieldID, c *columnBuilder) {
	w.f.limit(int(c.table.arena.size), "strings in memory")
	w.write(field, c.data(w.rows, w.f.worked))
}

// write writes a column; fields ascend.
func (w *columnWriter) write(field FieldID, d *columnData) {
	d.planes = w.planes
	w.buf = encodeColumn(w.buf[:0], d)
	w.f.limit(len(w.buf), fmt.Sprintf("the column of field %d", field))
	flags := uint32(exactColumn)
	if d.rounded {
		flags = 0
	}
	checksum := xxhash.Sum64(w.buf)
	w.copy(field, flags, w.buf, checksum)
	w.infix.add(w.f, field, checksum, d.stringCount, d.strings)
}

// copy writes a column that is encoded already, with the flags of its entry in the directory.
func (w *columnWriter) copy(field FieldID, flags uint32, column []byte, checksum uint64) {
	if n := w.f.at() % columnAlign; n > 0 {
		w.f.Write(zeros[:columnAlign-n])
	}
	le := binary.LittleEndian
	w.directory = le.AppendUint32(w.directory, uint32(field))
	w.directory = le.AppendUint32(w.directory, flags)
	w.directory = le.AppendUint64(w.directory, uint64(w.f.at()))
	w.directory = le.AppendUint64(w.directory, uint64(len(column)))
	w.directory = le.AppendUint64(w.directory, checksum)
	w.count++
	w.f.Write(column)
}

// finish ends the section and writes its directory, and the infix indexes.
func (w *columnWriter) finish(dir tag) {
	w.f.end()
	binary.LittleEndian.PutUint32(w.directory, w.count)
	w.f.add(dir, 0, w.directory)
	w.infix.finish(w.f)
}

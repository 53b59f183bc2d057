package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment/rowlist"
)

// maxWordCount is kept for every field with more than 30 words.
const maxWordCount = 31

// fieldCounts are the word counts of a field: ascending rows, and the count of each.
type fieldCounts struct {
	rows   []uint32
	counts []byte
}

// add sets the count of a row. If a row is set several times, the last count is used. Rows ascend. A count of 0 leaves no entry.
func (c *fieldCounts) add(row uint32, n int) {
	if n <= 0 {
		return
	}
	n = min(n, maxWordCount)
	if i := len(c.rows) - 1; i >= 0 && c.rows[i] == row {
		c.counts[i] = byte(n)
		return
	}
	c.rows = append(c.rows, row)
	c.counts = append(c.counts, byte(n))
}

const wordCountEntryBytes = 16

// Kinds of word counts.
const (
	countsDense  = 0 // a byte per row of the segment, 0: no words
	countsSparse = 1 // rows of 4 bytes, then a byte each
)

// countedField is a field with words, and in how many rows.
type countedField struct {
	id   FieldID
	rows int
}

// writeWordCounts writes for each field, ascending:
//
//	u32 fields, u32 0
//	fields × { u16 field, u16 kind, u32 count, u64 offset }
//	the counts, at multiples of 4
//
// It requests the counts field by field.
func writeWordCounts(f *fileWriter, rows int, fields []countedField, counts func(i int) *fieldCounts) {
	head := make([]byte, 8, 8+len(fields)*wordCountEntryBytes)
	binary.LittleEndian.PutUint32(head, uint32(len(fields)))
	kindOf := func(c countedField) (kind, size int) {
		if 5*c.rows < rows {
			return countsSparse, 5 * c.rows
		}
		return countsDense, rows
	}
	at := cap(head)
	for _, c := range fields {
		at += -(at - cap(head)) & 3
		kind, size := kindOf(c)
		head = binary.LittleEndian.AppendUint16(head, uint16(c.id))
		head = binary.LittleEndian.AppendUint16(head, uint16(kind))
		head = binary.LittleEndian.AppendUint32(head, uint32(c.rows))
		head = binary.LittleEndian.AppendUint64(head, uint64(at))
		at += size
	}
	f.begin(tagWordCounts, 0)
	f.Write(head)
	var dense []byte
	written := 0
	for i, field := range fields {
		c := counts(i)
		f.Write(zeros[:-written&3])
		written += -written & 3
		kind, size := kindOf(field)
		if kind == countsSparse {
			f.writeUint32s(len(c.rows), func(i int) uint32 { return c.rows[i] })
			f.Write(c.counts)
		} else {
			dense = slices.Grow(dense[:0], rows)[:rows]
			clear(dense)
			for i, r := range c.rows {
				dense[r] = c.counts[i]
			}
			f.Write(dense)
		}
		written += size
	}
	f.end()
}

// countReader reads the word counts of one field.
type countReader struct {
	rows   []byte // nil when dense
	counts []byte
}

// readWordCounts reads the directory into a table by field.
func readWordCounts(section []byte, rows int) (map[FieldID]countReader, bool) {
	if len(section) == 0 {
		return nil, true
	}
	if len(section) < 8 {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint32(section))
	if n > 1<<16 || len(section) < 8+n*wordCountEntryBytes {
		return nil, false
	}
	fields := make(map[FieldID]countReader, n)
	for i := range n {
		e := section[8+i*wordCountEntryBytes:]
		count := uint64(binary.LittleEndian.Uint32(e[4:]))
		from := binary.LittleEndian.Uint64(e[8:])
		var c countReader
		size := uint64(rows)
		sparse := binary.LittleEndian.Uint16(e[2:]) == countsSparse
		if sparse {
			size = 5 * count
		}
		if from > uint64(len(section)) || size > uint64(len(section))-from {
			return nil, false
		}
		if c.counts = section[from : from+size]; sparse {
			c.rows, c.counts = c.counts[:4*count], c.counts[4*count:]
		}
		fields[FieldID(binary.LittleEndian.Uint16(e))] = c
	}
	return fields, true
}

// get returns the number of words in a row, 0 if it has none: an index access in a dense list, a binary
// search in a sparse one.
func (c *countReader) get(row Row) int {
	if c.rows == nil {
		if int(row) >= len(c.counts) {
			return 0
		}
		return int(c.counts[row])
	}
	n := len(c.counts)
	i := sort.Search(n, func(i int) bool { return binary.LittleEndian.Uint32(c.rows[4*i:]) >= uint32(row) })
	if i < n && binary.LittleEndian.Uint32(c.rows[4*i:]) == uint32(row) {
		return int(c.counts[i])
	}
	return 0
}

// each calls f with the rows that have words, ascending, and their counts.
func (c *countReader) each(f func(row uint32, n byte)) {
	next := uint32(0)
	for i, n := range c.counts {
		row := uint32(i)
		if c.rows != nil {
			row = binary.LittleEndian.Uint32(c.rows[4*i:])
		}
		if n > 0 && row >= next { // a row that does not ascend is nonsense
			f(row, n)
			next = row + 1
		}
	}
}

// WordFields returns the fields that have words, in no order.
func (r *Reader) WordFields() []FieldID {
	counts := r.allWordCounts()
	fields := make([]FieldID, 0, len(counts))
	for f := range counts {
		fields = append(fields, f)
	}
	return fields
}

// WordCount returns min(words of the field in the row, 31); 0 when the field has none.
func (r *Reader) WordCount(f FieldID, row Row) int {
	c, ok := r.allWordCounts()[f]
	if !ok {
		return 0
	}
	return c.get(row)
}

// AppendOfCount appends the rows in which the field has the given number of words; 31 means more than 30.
func (r *Reader) AppendOfCount(dst, rows []uint32, f FieldID, words int) []uint32 {
	c, ok := r.allWordCounts()[f]
	switch {
	case words == 0: // rows may be left out
	case !ok:
		return dst
	case c.rows == nil:
		r.blocks.gatherItems(c.counts, 1, rows)
		for _, row := range rows {
			if int(row) < len(c.counts) && int(c.counts[row]) == words {
				dst = append(dst, row)
			}
		}
		return dst
	}
	for _, row := range rows {
		if c.get(Row(row)) == words {
			dst = append(dst, row)
		}
	}
	return dst
}

// RowsOfCount returns all rows in which the field has the given number of words, at least one; 31 means more than 30.
func (r *Reader) RowsOfCount(f FieldID, words int) *roaring.Bitmap {
	c := r.allWordCounts()[f]
	r.blocks.touch(c.rows)
	r.blocks.touch(c.counts)
	if c.rows == nil {
		marked := rowlist.TakeBits((len(c.counts) + 63) / 64)
		defer marked.Release()
		markEqual(marked.Words, c.counts, byte(words))
		return rowlist.FromBits(marked.Words)
	}
	var rows []uint32
	for i, counts := 0, c.counts; ; i++ {
		n := bytes.IndexByte(counts[i:], byte(words))
		if n < 0 {
			return rowlist.SetOf(rows, r.rows)
		}
		i += n
		if row := binary.LittleEndian.Uint32(c.rows[4*i:]); int(row) < r.rows {
			rows = append(rows, row)
		}
	}
}

// markEqual sets the bits of the bytes that have a value, 64 a word. It compares eight bytes at once: the highest bit of a byte of the sum
// is set unless the lower seven are the same.
func markEqual(marks []uint64, p []byte, value byte) {
	const low = 0x7f * lowBits
	var last [64]byte
	for i := range marks {
		part := p[64*i:]
		if len(part) < len(last) {
			n := copy(last[:], part)
			for j := range last[n:] {
				last[n+j] = ^value
			}
			part = last[:]
		}
		var found uint64
		for at := 0; at < 64; at += 8 {
			other := binary.LittleEndian.Uint64(part[at:]) ^ lowBits*uint64(value)
			same := ^((other&low + low) | other) &^ low
			found |= same >> 7 * gatherLow >> 56 << at
		}
		marks[i] = found
	}
}

func buildWordCounts(_ context.Context, b *Builder, f *fileWriter) error {
	counts := b.counts.sorted()
	fields := make([]countedField, len(counts))
	for i, c := range counts {
		fields[i] = countedField{c.field, len(c.value.rows)}
	}
	writeWordCounts(f, len(b.docIDs), fields, func(i int) *fieldCounts { return &counts[i].value })
	return nil
}

// openWordCounts leaves it all to the first call of allWordCounts.
func (r *Reader) openWordCounts() error { return nil }

// allWordCounts returns the word counts of all fields that have any.
func (r *Reader) allWordCounts() map[FieldID]countReader {
	return *r.wordCounts.get(func() *map[FieldID]countReader {
		p := r.section(tagWordCounts)
		r.blocks.touch(p)
		counts, ok := readWordCounts(p, r.rows)
		if !ok {
			r.broken(tagWordCounts, "its directory points outside")
		}
		return &counts
	})
}

// mergeWordCounts merges field by field, through one array with a byte for each row of the output. Rows are
// counted first, because the form of a list depends on their number.
func (m *merger) mergeWordCounts() error {
	fields := m.unionFields(func(l Live) []FieldID {
		var all []FieldID
		for f := range l.allWordCounts() {
			all = append(all, f)
		}
		return all
	})
	each := func(f FieldID, visit func(row uint32, n byte)) {
		for i, l := range m.in {
			c := l.allWordCounts()[f]
			rows, counts := run{blocks: &l.blocks, section: c.rows}, run{blocks: &l.blocks, section: c.counts}
			at := 0 // in counts
			c.each(func(row uint32, n byte) {
				if c.rows == nil {
					at = int(row)
				}
				rows.reach(4 * at)
				counts.reach(at)
				at++
				if int(row) < l.rows && m.rows[i][row] != noRow {
					visit(m.rows[i][row], n)
				}
			})
		}
	}
	var counted []countedField
	for _, f := range fields {
		rows := 0
		each(f, func(uint32, byte) { rows++ })
		if rows > 0 {
			counted = append(counted, countedField{f, rows})
		}
	}
	counts := make([]byte, len(m.origins))
	var c fieldCounts
	writeWordCounts(m.f, len(m.origins), counted, func(i int) *fieldCounts {
		each(counted[i].id, func(row uint32, n byte) { counts[row] = n })
		c.rows, c.counts = c.rows[:0], c.counts[:0]
		for row, n := range counts {
			if n > 0 {
				c.add(uint32(row), int(n))
				counts[row] = 0
			}
		}
		return &c
	})
	return nil
}

// verifyWordCounts checks that rows ascend inside the segment, and that counts are within their range.
func (r *Reader) verifyWordCounts() error {
	for f, c := range r.allWordCounts() {
		last := int64(-1)
		for i, n := range c.counts {
			row := int64(i)
			if c.rows != nil {
				row = int64(binary.LittleEndian.Uint32(c.rows[4*i:]))
			}
			if n > maxWordCount || n == 0 && c.rows != nil || row <= last || row >= int64(r.rows) {
				return r.damaged(tagWordCounts, "field %d counts %d words in row %d", f, n, row)
			}
			last = row
		}
	}
	return nil
}

func (i *inspector) wordCounts() {
	n := int(i.u32())
	i.field(4, "%d fields", n)
	i.field(4, "reserved")
	i.t.List(n, inspectItems, func(int) {
		e := i.p[i.at:]
		field := FieldID(binary.LittleEndian.Uint16(e))
		kind := [...]string{"dense", "sparse"}[binary.LittleEndian.Uint16(e[2:])&1]
		i.field(wordCountEntryBytes, "field %d: %s, %d rows, at %d", field, kind, binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint64(e[8:]))
		c := i.r.allWordCounts()[field]
		var all fieldCounts
		c.each(func(row uint32, n byte) { all.add(row, int(n)) })
		i.t.Node(func() {
			i.t.List(len(all.rows), inspectItems, func(j int) { i.t.Note("row %d: %d words", all.rows[j], all.counts[j]) })
		}, "counts")
	})
}

package segment

import (
	"context"
	"encoding/binary"
	"sort"
)

// maxWordCount is kept for every field with more than 30 words.
const maxWordCount = 31

// fieldCounts are the word counts of a field: ascending rows, and the count of each.
type fieldCounts struct {
	rows   []uint32
	counts []byte
}

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
	countsDense  = 0 // a byte a row of the segment, 0 where there is none
	countsSparse = 1 // rows of 4 bytes, then a byte each
)

// writeWordCounts writes for each field, ascending:
//
//	u32 fields, u32 0
//	fields × { u16 field, u16 kind, u32 count, u64 offset }
//	the counts, at multiples of 4
func writeWordCounts(f *fileWriter, rows, fields int, next func() (FieldID, *fieldCounts)) {
	head := make([]byte, 8, 8+fields*wordCountEntryBytes)
	binary.LittleEndian.PutUint32(head, uint32(fields))
	base := cap(head)
	var body []byte
	for range fields {
		id, c := next()
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		at := len(body)
		kind := countsDense
		if 5*len(c.rows) < rows {
			kind = countsSparse
			for _, r := range c.rows {
				body = binary.LittleEndian.AppendUint32(body, r)
			}
			body = append(body, c.counts...)
		} else {
			body = append(body, make([]byte, rows)...)
			for i, r := range c.rows {
				body[at+int(r)] = c.counts[i]
			}
		}
		head = binary.LittleEndian.AppendUint16(head, uint16(id))
		head = binary.LittleEndian.AppendUint16(head, uint16(kind))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(c.rows)))
		head = binary.LittleEndian.AppendUint64(head, uint64(base+at))
	}
	f.begin(tagWordCounts, 0)
	f.Write(head)
	f.Write(body)
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

// all returns the rows that have words, ascending, with their counts.
func (c *countReader) all() fieldCounts {
	var all fieldCounts
	if c.rows == nil {
		for row, n := range c.counts {
			all.add(uint32(row), int(n))
		}
		return all
	}
	for i, n := range c.counts {
		all.add(binary.LittleEndian.Uint32(c.rows[4*i:]), int(n))
	}
	return all
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

func buildWordCounts(_ context.Context, b *Builder, f *fileWriter) error {
	counts := b.counts.sorted()
	writeWordCounts(f, len(b.docIDs), len(counts), func() (FieldID, *fieldCounts) {
		c := &counts[0]
		counts = counts[1:]
		return c.field, &c.value
	})
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

func (m *merger) mergeWordCounts() error {
	fields := m.unionFields(func(l Live) []FieldID {
		var all []FieldID
		for f := range l.allWordCounts() {
			all = append(all, f)
		}
		return all
	})
	counts := make([]byte, len(m.origins))
	merged := make([]fieldCounts, 0, len(fields))
	kept := fields[:0]
	for _, f := range fields {
		for i, l := range m.in {
			c := l.allWordCounts()[f]
			all := c.all()
			for j, row := range all.rows {
				if int(row) < l.rows && m.rows[i][row] != noRow {
					counts[m.rows[i][row]] = all.counts[j]
				}
			}
		}
		var c fieldCounts
		for row, n := range counts {
			if n > 0 {
				c.add(uint32(row), int(n))
				counts[row] = 0
			}
		}
		if len(c.rows) > 0 {
			merged = append(merged, c)
			kept = append(kept, f)
		}
	}
	at := 0
	writeWordCounts(m.f, len(m.origins), len(kept), func() (FieldID, *fieldCounts) {
		at++
		return kept[at-1], &merged[at-1]
	})
	return nil
}

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
		all := c.all()
		i.t.Node(func() {
			i.t.List(len(all.rows), inspectItems, func(j int) { i.t.Note("row %d: %d words", all.rows[j], all.counts[j]) })
		}, "counts")
	})
}

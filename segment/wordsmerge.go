package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"svc/segment/fst"
)

// fieldSource is the part of a word in a field of one input: encoded or decoded rows, and the encoded positions.
type fieldSource struct {
	in        int
	rows      []uint32 // of the input
	positions []byte

	next int // in rows
	at   int // in positions
}

// head returns the row of the output of the next live row, after passing deleted ones.
func (s *fieldSource) head(to *rowMap) uint32 {
	for ; s.next < len(s.rows); s.next++ {
		if row := to.of(s.rows[s.next]); row != noRow {
			return row
		}
		s.at = skipRows(s.positions, s.at, 1)
	}
	return noRow
}

// wordMerger merges the fields of one word from several inputs.
type wordMerger struct {
	m       *merger
	fields  []FieldID
	sources [][]fieldSource // by place in fields
	buffers [][]uint32      // spare, for rows
	lent    [][]uint32

	rows []uint32
	pos  []byte
	out  []fieldRows
}

func (w *wordMerger) reset() {
	w.fields = w.fields[:0]
	w.sources = w.sources[:0]
	w.buffers = append(w.buffers, w.lent...)
	w.lent = w.lent[:0]
}

// add records that an input has the current word in field f. Fields ascend; the sources of a field are in the order of the inputs.
// Slices of earlier words are reused.
func (w *wordMerger) add(f FieldID, s fieldSource) {
	i, ok := slices.BinarySearch(w.fields, f)
	if !ok {
		w.fields = slices.Insert(w.fields, i, f)
		if n := len(w.sources); n < cap(w.sources) {
			spare := w.sources[:n+1][n][:0]
			w.sources = slices.Insert(w.sources, i, spare)
		} else {
			w.sources = slices.Insert(w.sources, i, nil)
		}
	}
	w.sources[i] = append(w.sources[i], s)
}

// addPosting adds the fields of a posting of an input.
func (w *wordMerger) addPosting(in int, p Posting) error {
	at := p.first
	if p.fields >= directoryFields {
		at += 4 * p.fields
	}
	last := -1
	for range p.fields {
		var f FieldPosting
		f, at = p.readField(at)
		if int(f.id) <= last {
			return w.m.in[in].damaged(tagPostings, "field %d of a word follows field %d", f.id, last)
		}
		last = int(f.id)
		var buf []uint32
		if n := len(w.buffers); n > 0 {
			buf, w.buffers = w.buffers[n-1][:0], w.buffers[:n-1]
		}
		rows := f.rows.AppendTo(buf)
		w.lent = append(w.lent, rows)
		if len(rows) == 0 || len(rows) != f.rows.Count {
			return w.m.in[in].damaged(tagPostings, "%d rows where %d are counted", len(rows), f.rows.Count)
		}
		w.add(f.id, fieldSource{in: in, rows: rows, positions: f.positions[f.skips:]})
	}
	return nil
}

// merge returns the fields with their rows in the output, valid until the next call. It omits a field whose rows are all deleted.
func (w *wordMerger) merge() ([]fieldRows, error) {
	type span struct {
		r0, r1, p0, p1 int
		copied         *copiedPositions
	}
	var few [16]span
	spans := few[:0]
	w.rows, w.pos, w.out = w.rows[:0], w.pos[:0], w.out[:0]
	for i := range w.fields {
		s := span{r0: len(w.rows), p0: len(w.pos)}
		var err error
		if s.copied, err = w.mergeField(w.sources[i]); err != nil {
			return nil, err
		}
		s.r1, s.p1 = len(w.rows), len(w.pos)
		spans = append(spans, s)
	}
	for i, f := range w.fields {
		if s := spans[i]; s.r1 > s.r0 {
			w.out = append(w.out, fieldRows{id: f, rows: w.rows[s.r0:s.r1], positions: w.pos[s.p0:s.p1], copied: s.copied})
		}
	}
	w.m.f.worked(wordWork + len(w.rows))
	return w.out, nil
}

// copyFrom is the number of position bytes of a field of a word from which they are copied from the inputs to the file instead of
// being merged in memory. The positions of a short prefix in a large segment would fill the memory.
var copyFrom = 1 << 20

// copiedPositions are positions that stay in the inputs until they are written.
type copiedPositions struct {
	w       *wordMerger
	sources []fieldSource
	size    int
	skips   []byte // the skip table
}

// writeTo writes them.
func (c *copiedPositions) writeTo(f *fileWriter) {
	for i := range c.sources {
		c.sources[i].next, c.sources[i].at = 0, 0
	}
	err := c.w.eachStretch(c.sources, func(_ *fieldSource, _ []uint32, positions []byte) error {
		_, err := f.Write(positions)
		return err
	})
	if err != nil {
		f.fail(err)
	}
}

// add records the skips of the rows with some positions. n is the number of the first row.
func (c *copiedPositions) add(n, rows int, positions []byte) {
	at, row := 0, n
	for block := max((n+blockRows-1)/blockRows, 1) * blockRows; block < n+rows; block += blockRows {
		at = skipRows(positions, at, block-row)
		row = block
		c.skips = binary.LittleEndian.AppendUint32(c.skips, uint32(c.size+at))
	}
	c.size += len(positions)
}

// mergeField appends the rows and positions of one field. If the positions are many, it returns where they are instead.
func (w *wordMerger) mergeField(sources []fieldSource) (copied *copiedPositions, err error) {
	size := 0
	for i := range sources {
		size += len(sources[i].positions)
	}
	if size >= copyFrom {
		copied = &copiedPositions{w: w, sources: sources}
	}
	first := len(w.rows)
	err = w.eachStretch(sources, func(s *fieldSource, rows []uint32, positions []byte) error {
		n := len(w.rows) - first
		to := &w.m.maps[s.in]
		for _, r := range rows {
			row := to.of(r)
			if n := len(w.rows); n > first && w.rows[n-1] >= row {
				return w.m.in[s.in].damaged(tagPostings, "row %d of a word follows a higher one", r)
			}
			w.rows = append(w.rows, row)
		}
		if copied != nil {
			copied.add(n, len(rows), positions)
		} else {
			w.pos = append(w.pos, positions...)
		}
		return nil
	})
	return copied, err
}

// eachStretch calls f with the live rows of the sources in the order of the output, and with their positions, in stretches that
// no row of another input and no deleted row interrupts.
func (w *wordMerger) eachStretch(sources []fieldSource, f func(s *fieldSource, rows []uint32, positions []byte) error) error {
	for {
		var best *fieldSource
		lowest, second := uint32(noRow), uint32(noRow)
		for i := range sources {
			s := &sources[i]
			switch h := s.head(&w.m.maps[s.in]); {
			case h == noRow:
			case h < lowest:
				lowest, second = h, lowest
				best = s
			case h < second:
				second = h
			}
		}
		if best == nil {
			break
		}
		to := &w.m.maps[best.in]
		begin := best.next
		for best.next < len(best.rows) && to.of(best.rows[best.next]) < second { // a deleted one is not
			best.next++
		}
		end := len(best.positions)
		if best.next < len(best.rows) {
			end = skipRows(best.positions, best.at, best.next-begin)
		}
		if err := f(best, best.rows[begin:best.next], best.positions[best.at:end]); err != nil {
			return err
		}
		best.at = end
	}
	for i := range sources {
		if s := &sources[i]; s.at != len(s.positions) {
			return w.m.in[s.in].damaged(tagPostings, "positions of fewer rows than a word has")
		}
	}
	return nil
}

// streamedWords is the largest number of input words for which a merge makes the filter while it writes. It does not know yet how
// many words the inputs share. With more words, it makes the filter from the finished dictionary. This takes time, but needs memory
// only for the words of the output. (A variable, so that tests can lower it.)
var streamedWords = 1 << 20

// mergeWords writes postings and dictionary, and notes which prefixes have enough words.
func (m *merger) mergeWords() error {
	words := 0
	for _, l := range m.in {
		words += l.Words()
	}
	d := newDictionaryWriter(m.f, words, newFrequentWords(len(m.origins), false))
	if words <= streamedWords {
		d.filter = fst.NewFilterWriter(words)
	}
	its := make([]*TermIterator, 0, len(m.in))
	ins := make([]int, 0, len(m.in))
	advance := func(i int) error {
		if its[i].Next() {
			return nil
		}
		if err := its[i].Err(); err != nil {
			return err
		}
		its = slices.Delete(its, i, i+1)
		ins = slices.Delete(ins, i, i+1)
		return nil
	}
	runs := make([]run, 0, len(m.in))
	for i, l := range m.in {
		its = append(its, l.Terms(nil, nil, nil))
		ins = append(ins, i)
		runs = append(runs, run{blocks: &l.blocks, section: l.postings})
	}
	for i := len(its) - 1; i >= 0; i-- {
		if err := advance(i); err != nil {
			return err
		}
	}
	var counter prefixCounter
	w := wordMerger{m: m}
	var word []byte
	for n := 0; len(its) > 0; n++ {
		if n%256 == 0 {
			if err := m.check(); err != nil {
				return err
			}
		}
		word = append(word[:0], its[0].Word()...)
		for _, it := range its[1:] {
			if bytes.Compare(it.Word(), word) < 0 {
				word = append(word[:0], it.Word()...)
			}
		}
		w.reset()
		for i := len(its) - 1; i >= 0; i-- {
			if !bytes.Equal(its[i].Word(), word) {
				continue
			}
			runs[ins[i]].reach(int(min(its[i].walk.Value(), uint64(len(runs[ins[i]].section)))))
			p, ok := readPosting(&m.in[ins[i]].blocks, m.in[ins[i]].postings, its[i].walk.Value())
			if !ok {
				return m.in[ins[i]].damaged(tagPostings, "no posting of %q at offset %d", word, its[i].walk.Value())
			}
			if err := w.addPosting(ins[i], p); err != nil {
				return err
			}
			if err := advance(i); err != nil {
				return err
			}
		}
		fields, err := w.merge()
		if err != nil {
			return err
		}
		if len(fields) == 0 {
			continue // in deleted rows only
		}
		counter.word(word)
		if err := d.add(word, fields); err != nil {
			return fmt.Errorf("cannot add %q to the dictionary: %w", word, err)
		}
	}
	if err := d.finish(); err != nil {
		return err
	}
	m.prefixes, m.frequent = counter.finish(), d.frequent
	return nil
}

package segment

import (
	"bytes"
	"cmp"
	"slices"

	"svc/segment/fst"
)

// runCursor goes through the lists of a run.
type runCursor struct {
	wordOrder
	all  []byte
	at   int // of what follows the current list
	end  int
	word []byte
	list int // where the current one is in all
	runList
}

// next goes to the next list. It returns false at the end.
func (c *runCursor) next() bool {
	if c.at == c.end {
		return false
	}
	same := c.uvarint()
	n := c.uvarint()
	c.word = append(c.word[:same], c.all[c.at:c.at+n]...)
	c.at += n
	c.field, c.size = uint16(c.uvarint()), uint16(len(c.word))
	c.head, _ = wordHead(c.word)
	c.list = c.at
	c.runList, c.at = readList(c.all, c.at)
	return true
}

func (c *runCursor) uvarint() int {
	v, shift := 0, 0
	for {
		b := c.all[c.at]
		c.at++
		if v |= int(b&0x7f) << shift; b < 0x80 {
			return v
		}
		shift += 7
	}
}

// compare orders the current lists of two runs by word, then field.
func (c *runCursor) compare(d *runCursor) int {
	if c.head != d.head {
		return cmp.Compare(c.head, d.head)
	}
	return cmp.Or(bytes.Compare(c.word, d.word), cmp.Compare(c.wordOrder.field, d.wordOrder.field))
}

// runMerger merges the runs of a builder.
type runMerger struct {
	cursors []*runCursor // those that are not at their end, in the order of their runs
	due     []*runCursor // those with the lowest word and field
	lists   runLists
	keep    bool // lists get the parts

	rows      []uint32
	positions []byte
}

// seek finds the lists with the lowest word and field. It returns false at the end.
func (m *runMerger) seek() bool {
	m.due = m.due[:0]
	for _, c := range m.cursors {
		order := -1
		if len(m.due) > 0 {
			order = c.compare(m.due[0])
		}
		switch {
		case order < 0:
			m.due = append(m.due[:0], c)
		case order == 0:
			m.due = append(m.due, c)
		}
	}
	return len(m.due) > 0
}

// take merges the lists that seek found, and passes them. The result is valid until rows and positions are emptied.
func (m *runMerger) take() (order wordOrder, fr fieldRows) {
	order = m.due[0].wordOrder
	order.number = uint32(len(m.lists.parts))
	fr.id = FieldID(order.field)
	from, fromPositions := len(m.rows), len(m.positions)
	for i, c := range m.due {
		if m.keep {
			part := uint64(c.list)
			if i == len(m.due)-1 {
				part |= lastPart
			}
			m.lists.parts = append(m.lists.parts, part)
		}
		m.rows = c.appendRows(slices.Grow(m.rows, c.rows))
		if len(m.due) > 1 {
			m.positions = append(m.positions, c.runList.positions...)
		}
		m.lists.read += len(c.runList.list) + len(c.runList.positions)
	}
	fr.rows, fr.positions = m.rows[from:], m.positions[fromPositions:]
	if len(m.due) == 1 {
		fr.positions = m.due[0].runList.positions
	}
	for _, c := range m.due {
		if !c.next() {
			i := slices.Index(m.cursors, c)
			m.cursors = slices.Delete(m.cursors, i, i+1)
		}
	}
	return order, fr
}

// buildWordsOfRuns is buildWords for a builder whose words are in runs.
func buildWordsOfRuns(b *Builder, f *fileWriter) error {
	all, err := b.runs.spool.Bytes()
	if err != nil {
		return err
	}
	m := runMerger{keep: b.options.Prefixes, lists: runLists{spool: b.runs.spool, all: all}}
	for _, run := range b.runs.runs {
		c := &runCursor{all: all, at: int(run.from), end: int(run.to)}
		if c.next() {
			m.cursors = append(m.cursors, c)
		}
	}
	b.frequent = newFrequentWords(len(b.docIDs), true)
	b.frequent.apart = &spooled{place: f.newSpool}
	d := newDictionaryWriter(f, b.runs.entries, b.frequent)
	if b.runs.entries <= streamedWords {
		d.filter = fst.NewFilterWriter(b.runs.entries)
	}
	var counter prefixCounter
	var order []wordOrder
	var fields []fieldRows
	var word []byte
	for more := m.seek(); more; {
		word = append(word[:0], m.due[0].word...)
		m.rows, m.positions, fields = m.rows[:0], m.positions[:0], fields[:0]
		for more && bytes.Equal(m.due[0].word, word) {
			o, fr := m.take()
			fields = append(fields, fr)
			if b.options.Prefixes {
				order = append(order, o)
			}
			f.worked(wordWork + len(fr.rows))
			more = m.seek()
		}
		counter.word(word)
		if err := d.add(word, fields); err != nil {
			return err
		}
		if f.err != nil {
			return f.err
		}
		m.lists.forget()
	}
	if err := d.finish(); err != nil {
		return err
	}
	b.order, b.prefixes, b.lists = order, counter.finish(), &m.lists
	return nil
}

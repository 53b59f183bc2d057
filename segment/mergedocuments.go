package segment

import (
	"bytes"
	"encoding/binary"
)

const (
	// maxDictionaries bounds how many dictionaries a merge keeps: each costs
	// its bytes in the file and several times as much in every decoder.
	maxDictionaries = 4

	// A block is copied as it is when at least copyNum/copyDen of its documents live.
	copyNum, copyDen = 3, 4
)

// mergedDocuments is what the index of documents says after a merge wrote the blocks.
type mergedDocuments struct {
	refs    []uint32
	offsets []uint64
	dicts   [][]byte
	bytes   int64
}

func (d *mergedDocuments) writeIndex(f *fileWriter) {
	f.add(tagDicts, 0, appendDictionaries(nil, d.dicts))
	f.begin(tagDocIndex, 0)
	writeDocIndex(f, d.refs, d.offsets)
	f.end()
}

// mergeDocuments writes the document blocks to the open section: those that
// are mostly alive as they are, the documents of the others compressed again.
func (m *merger) mergeDocuments() (*mergedDocuments, error) {
	d := &mergedDocuments{refs: make([]uint32, len(m.origins))}
	// The inputs whose dictionary stays keep their blocks. One without a dictionary is small: its
	// documents gain by being compressed again.
	copies := make([]bool, len(m.in))
	for {
		best := -1
		for i, l := range m.in {
			if !copies[i] && len(l.docs.dicts) > 0 && d.fits(l.docs.dicts) &&
				(best < 0 || l.meta.documentBytes > m.in[best].meta.documentBytes) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		copies[best] = true
		d.keep(m.in[best].docs.dicts)
	}
	again := make([]bool, len(m.origins)) // rows to compress again
	var buf []byte
	for i, l := range m.in {
		// Documents by block and slot, to know which blocks to copy.
		blocks := len(l.docs.offsets)/8 - 1
		alive := make([]uint32, blocks)
		for row := range l.rows {
			if m.rows[i][row] == noRow {
				continue
			}
			n := binary.LittleEndian.Uint32(l.docs.refs[4*row:]) >> slotBits
			if int(n) >= blocks {
				return nil, l.damaged(tagDocIndex, "row %d is in block %d of %d", row, n, blocks)
			}
			alive[n]++
		}
		target := make([]uint32, blocks) // block of the output + 1
		for n := range blocks {
			if err := m.check(); err != nil {
				return nil, err
			}
			b, err := l.docs.block(uint32(n))
			if err != nil {
				return nil, err
			}
			if !copies[i] || copyDen*int(alive[n]) < copyNum*b.count {
				continue
			}
			from := binary.LittleEndian.Uint64(l.docs.offsets[8*n:])
			to := binary.LittleEndian.Uint64(l.docs.offsets[8*n+8:])
			d.offsets = append(d.offsets, uint64(m.f.at()))
			target[n] = uint32(len(d.offsets))
			m.f.Write(l.docs.blocks[from:to])
		}
		for row := range l.rows {
			to := m.rows[i][row]
			if to == noRow {
				continue
			}
			ref := binary.LittleEndian.Uint32(l.docs.refs[4*row:])
			b, err := l.docs.block(ref >> slotBits)
			if err != nil {
				return nil, err
			}
			slot := int(ref & (blockSlots - 1))
			if slot >= b.count {
				return nil, l.damaged(tagDocIndex, "row %d is in slot %d of a block of %d", row, slot, b.count)
			}
			from, end := b.slot(slot)
			d.bytes += int64(end - from)
			if t := target[ref>>slotBits]; t > 0 {
				d.refs[to] = (t-1)<<slotBits | uint32(slot)
			} else {
				again[to] = true
			}
		}
	}
	w := documentWriter{dicts: d.dicts}
	if len(d.dicts) > 0 {
		w.trained, w.encoder = true, newEncoder(d.dicts)
	}
	var rows []uint32 // compressed again, in order
	settle := func() {
		for i, ref := range w.refs {
			d.refs[rows[i]] = ref + uint32(len(d.offsets))<<slotBits
		}
		for _, o := range w.offsets {
			d.offsets = append(d.offsets, o+uint64(m.f.at()))
		}
		m.f.Write(w.blocks)
		rows = append(rows[:0], rows[len(w.refs):]...)
		w.refs, w.offsets, w.blocks = w.refs[:0], w.offsets[:0], w.blocks[:0]
	}
	for row, o := range m.origins {
		if !again[row] {
			continue
		}
		var err error
		if buf, err = m.in[o.in].AppendDocument(buf[:0], Row(o.row)); err != nil {
			return nil, err
		}
		rows = append(rows, uint32(row))
		w.add(buf)
		if len(w.blocks) >= writeBufferBytes {
			settle()
			if err := m.check(); err != nil {
				return nil, err
			}
		}
	}
	w.finish()
	settle()
	d.dicts = w.dicts
	d.offsets = append(d.offsets, uint64(m.f.at()))
	m.f.end()
	return d, nil
}

// fits reports whether dictionaries may join those that are kept.
func (d *mergedDocuments) fits(dicts [][]byte) bool {
	n := len(d.dicts)
	for _, x := range dicts {
		if !d.has(x) {
			n++
		}
	}
	return n <= maxDictionaries
}

func (d *mergedDocuments) has(x []byte) bool {
	for _, y := range d.dicts {
		if bytes.Equal(x, y) {
			return true
		}
	}
	return false
}

func (d *mergedDocuments) keep(dicts [][]byte) {
	for _, x := range dicts {
		if !d.has(x) {
			d.dicts = append(d.dicts, x)
		}
	}
}

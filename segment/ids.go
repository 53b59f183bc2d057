package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sort"

	"github.com/cespare/xxhash/v2"

	"svc/internal/binfmt"
	"svc/internal/invariant"
)

// writeDocIDs writes the DocIDs of n rows, which ascend.
func writeDocIDs(f *fileWriter, n int, id func(row int) DocID) {
	f.begin(tagDocIDs, 0)
	f.writeUint32s(n, func(row int) uint32 { return uint32(id(row)) })
	f.end()
}

// DocID returns the id of a row's document; 0 for a row that does not exist.
func (r *Reader) DocID(row Row) DocID {
	if invariant.Enabled {
		r.checkOpen()
	}
	if int(row) >= r.rows {
		return 0
	}
	if r.late.Load() {
		r.touchLate(r.docIDs[4*row : 4*row+4])
	}
	return DocID(binary.LittleEndian.Uint32(r.docIDs[4*row:]))
}

// RowOf finds the row of a DocID.
func (r *Reader) RowOf(id DocID) (Row, bool) {
	n := r.rows
	if n == 0 {
		return 0, false
	}
	// Most segments hold ids without gaps.
	if first := r.DocID(0); id >= first && int64(id-first) < int64(n) && r.DocID(Row(id-first)) == id {
		return Row(id - first), true
	}
	i := sort.Search(n, func(i int) bool { return r.DocID(Row(i)) >= id })
	return Row(i), i < n && r.DocID(Row(i)) == id
}

// externalIDs gathers ids, laid end to end, before they are written.
type externalIDs struct {
	ends []uint32 // by row, of its id in text
	text []byte
}

func (x *externalIDs) add(id []byte) {
	x.text = append(x.text, id...)
	x.ends = append(x.ends, uint32(len(x.text)))
}

func (x *externalIDs) get(row int) []byte {
	from := uint32(0)
	if row > 0 {
		from = x.ends[row-1]
	}
	return x.text[from:x.ends[row]]
}

// idSlots returns the size of the hash table for a number of rows: 4/3 of it, so that a search takes two or three steps.
func idSlots(rows int) int { return rows + (rows+2)/3 }

// idSlot maps a hash to a slot without a division.
func idSlot(hash uint64, slots int) int {
	hi, _ := bits.Mul64(hash, uint64(slots))
	return int(hi)
}

// writeExternalIDs writes the ids of n rows, and the hash table of rows, in which 0 is an empty slot and others are row + 1.
func writeExternalIDs(f *fileWriter, n int, id func(row int) []byte) {
	f.begin(tagExternalIDs, 0)
	end := uint64(0)
	f.writeUint32s(n+1, func(row int) uint32 {
		begin := end
		if row < n {
			end += uint64(len(id(row)))
		}
		return uint32(begin)
	})
	f.limit(int(end), "document ids")
	for row := range n {
		f.Write(id(row))
	}
	f.end()
	slots := idSlots(n)
	table := make([]uint32, slots)
	for row := range n {
		f.worked(1)
		i := idSlot(xxhash.Sum64(id(row)), slots)
		for table[i] != 0 {
			if i++; i == slots {
				i = 0
			}
		}
		table[i] = uint32(row) + 1
	}
	f.begin(tagIDHash, 0)
	f.writeUint32s(slots, func(i int) uint32 { return table[i] })
	f.end()
}

// ExternalID returns the external id of a row; nil for a row that does not exist.
func (r *Reader) ExternalID(row Row) []byte {
	if int(row) >= r.rows {
		return nil
	}
	r.blocks.touch(r.externalIDs[4*row : 4*row+8])
	from := binary.LittleEndian.Uint32(r.externalIDs[4*row:])
	to := binary.LittleEndian.Uint32(r.externalIDs[4*row+4:])
	text := r.externalIDs[4*(r.rows+1):]
	if from > to || uint64(to) > uint64(len(text)) {
		return nil
	}
	id := text[from:to:to]
	r.blocks.touch(id)
	return id
}

// idAt returns the offset of the external id of a row in the text of all ids. In a damaged file, it may be outside the text.
func (r *Reader) idAt(row uint32) int { return int(binary.LittleEndian.Uint32(r.externalIDs[4*row:])) }

// Lookup finds the row of an external id.
func (r *Reader) Lookup(externalID []byte) (Row, bool) {
	slots := len(r.idHash) / 4
	if slots == 0 {
		return 0, false
	}
	i := idSlot(xxhash.Sum64(externalID), slots)
	for range slots {
		slot := r.idHash[4*i : 4*i+4]
		r.blocks.touch(slot)
		v := binary.LittleEndian.Uint32(slot)
		if v == 0 {
			return 0, false
		}
		if row := Row(v - 1); int(row) < r.rows && bytes.Equal(r.ExternalID(row), externalID) {
			return row, true
		}
		if i++; i == slots {
			i = 0
		}
	}
	return 0, false
}

func buildDocIDs(_ context.Context, b *Builder, f *fileWriter) error {
	for row := 1; row < len(b.docIDs); row++ {
		if b.docIDs[row-1] >= b.docIDs[row] { // the segment could be neither merged nor searched by id
			return fmt.Errorf("document %d stands behind document %d", b.docIDs[row], b.docIDs[row-1])
		}
	}
	writeDocIDs(f, len(b.docIDs), func(row int) DocID { return b.docIDs[row] })
	return nil
}

func buildExternalIDs(_ context.Context, b *Builder, f *fileWriter) error {
	writeExternalIDs(f, len(b.docIDs), b.ids.get)
	return nil
}

func (r *Reader) openDocIDs() error {
	if r.docIDs = r.section(tagDocIDs); len(r.docIDs) != 4*r.rows {
		return r.damaged(tagDocIDs, "%d bytes for %d rows", len(r.docIDs), r.rows)
	}
	return nil
}

func (r *Reader) openExternalIDs() error {
	if r.externalIDs = r.section(tagExternalIDs); len(r.externalIDs) < 4*(r.rows+1) {
		return r.damaged(tagExternalIDs, "%d bytes for %d rows", len(r.externalIDs), r.rows)
	}
	if r.idHash = r.section(tagIDHash); len(r.idHash) != 4*idSlots(r.rows) {
		return r.damaged(tagIDHash, "%d bytes for %d rows", len(r.idHash), r.rows)
	}
	return nil
}

func (m *merger) mergeDocIDs() error {
	runs := make([]run, 0, len(m.in))
	for _, l := range m.in {
		runs = append(runs, run{blocks: &l.blocks, section: l.docIDs})
	}
	writeDocIDs(m.f, len(m.origins), func(row int) DocID {
		o := m.origins[row]
		runs[o.in].reach(4 * int(o.row))
		return m.in[o.in].DocID(Row(o.row))
	})
	return nil
}

func (m *merger) mergeExternalIDs() error {
	ends, texts := make([]run, 0, len(m.in)), make([]run, 0, len(m.in))
	for _, l := range m.in {
		ends = append(ends, run{blocks: &l.blocks, section: l.externalIDs[:4*(l.rows+1)]})
		texts = append(texts, run{blocks: &l.blocks, section: l.externalIDs[4*(l.rows+1):]})
	}
	reached := -1 // row that was asked for last: writeExternalIDs goes through all rows more than once
	writeExternalIDs(m.f, len(m.origins), func(row int) []byte {
		o := m.origins[row]
		if row < reached {
			for i := range m.in {
				ends[i].asked, texts[i].asked = 0, 0
			}
		}
		reached = row
		ends[o.in].reach(4 * int(o.row))
		texts[o.in].reach(m.in[o.in].idAt(o.row))
		return m.in[o.in].ExternalID(Row(o.row))
	})
	return nil
}

func (r *Reader) verifyDocIDs() error {
	for row := 1; row < r.rows; row++ {
		if a, b := r.DocID(Row(row-1)), r.DocID(Row(row)); a >= b {
			return r.damaged(tagDocIDs, "row %d has id %d after %d", row, b, a)
		}
	}
	return nil
}

// verifyExternalIDs looks every id up and expects its row. Equal numbers of rows and used slots then show
// that no slot leads elsewhere.
func (r *Reader) verifyExternalIDs() error {
	text := uint64(len(r.externalIDs) - 4*(r.rows+1))
	for row := range r.rows {
		from, to := binary.LittleEndian.Uint32(r.externalIDs[4*row:]), binary.LittleEndian.Uint32(r.externalIDs[4*row+4:])
		if from > to || uint64(to) > text {
			return r.damaged(tagExternalIDs, "the id of row %d is not inside", row)
		}
		if got, ok := r.Lookup(r.ExternalID(Row(row))); !ok || got != Row(row) {
			return r.damaged(tagIDHash, "the id of row %d leads to row %d (%v)", row, got, ok)
		}
	}
	if first, end := binary.LittleEndian.Uint32(r.externalIDs), binary.LittleEndian.Uint32(r.externalIDs[4*r.rows:]); first != 0 || uint64(end) != text {
		return r.damaged(tagExternalIDs, "%d bytes of ids, counted are %d to %d", text, first, end)
	}
	used := 0
	for i := 0; i < len(r.idHash); i += 4 {
		if v := binary.LittleEndian.Uint32(r.idHash[i:]); v > uint32(r.rows) {
			return r.damaged(tagIDHash, "slot %d has row %d of %d", i/4, v-1, r.rows)
		} else if v > 0 {
			used++
		}
	}
	if used != r.rows {
		return r.damaged(tagIDHash, "%d slots are used for %d rows", used, r.rows)
	}
	return nil
}

func (i *inspector) docIDs() {
	i.t.List(i.r.rows, inspectItems, func(row int) { i.field(4, "row %d: document %d", row, i.u32()) })
}

func (i *inspector) externalIDs() {
	i.t.List(i.r.rows+1, inspectItems, func(row int) { i.field(4, "ids of rows before %d end at %d", row, i.u32()) })
	i.at = 4 * (i.r.rows + 1)
	i.t.List(i.r.rows, inspectItems, func(row int) {
		id := i.r.ExternalID(Row(row))
		i.field(len(id), "row %d: %s", row, binfmt.Text(id, 60))
	})
}

func (i *inspector) idHash() {
	i.t.List(len(i.p)/4, inspectItems, func(slot int) {
		if v := i.u32(); v == 0 {
			i.field(4, "slot %d: empty", slot)
		} else {
			i.field(4, "slot %d: row %d", slot, v-1)
		}
	})
}

package segment

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// writeDocIDs writes the DocIDs of n rows, which ascend.
func writeDocIDs(f *fileWriter, n int, id func(row int) DocID) {
	f.begin(tagDocIDs, 0)
	f.writeUint32s(n, func(row int) uint32 { return uint32(id(row)) })
	f.end()
}

// DocID returns the id of a row's document; 0 for a row that does not exist.
func (r *Reader) DocID(row Row) DocID {
	if int(row) >= r.rows {
		return 0
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

// idSlots returns the size of the hash table for so many rows: 4/3 of them,
// so that a search ends after two or three steps.
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
	from := binary.LittleEndian.Uint32(r.externalIDs[4*row:])
	to := binary.LittleEndian.Uint32(r.externalIDs[4*row+4:])
	text := r.externalIDs[4*(r.rows+1):]
	if from > to || uint64(to) > uint64(len(text)) {
		return nil
	}
	return text[from:to:to]
}

// Lookup finds the row of an external id.
func (r *Reader) Lookup(externalID []byte) (Row, bool) {
	slots := len(r.idHash) / 4
	if slots == 0 {
		return 0, false
	}
	i := idSlot(xxhash.Sum64(externalID), slots)
	for range slots {
		v := binary.LittleEndian.Uint32(r.idHash[4*i:])
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

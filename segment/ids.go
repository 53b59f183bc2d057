package segment

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// writeDocIDs writes the DocIDs of the rows, which ascend.
func writeDocIDs(f *fileWriter, ids []DocID) {
	f.begin(tagDocIDs, 0)
	b := make([]byte, 0, 4<<10)
	for i, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
		if len(b) == cap(b) || i == len(ids)-1 {
			f.Write(b)
			b = b[:0]
		}
	}
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

// write writes the ids and the hash table of rows, in which 0 is an empty slot and others are row + 1.
func (x *externalIDs) write(f *fileWriter) {
	n := len(x.ends)
	b := make([]byte, 0, 4*(n+1))
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, e := range x.ends {
		b = binary.LittleEndian.AppendUint32(b, e)
	}
	f.begin(tagExternalIDs, 0)
	f.Write(b)
	f.Write(x.text)
	f.end()
	slots := idSlots(n)
	b = append(b[:0], make([]byte, 4*slots)...)
	for row := range n {
		i := idSlot(xxhash.Sum64(x.get(row)), slots)
		for binary.LittleEndian.Uint32(b[4*i:]) != 0 {
			if i++; i == slots {
				i = 0
			}
		}
		binary.LittleEndian.PutUint32(b[4*i:], uint32(row)+1)
	}
	f.add(tagIDHash, 0, b)
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

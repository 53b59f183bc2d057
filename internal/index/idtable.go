package index

import "github.com/cespare/xxhash/v2"

// idTable numbers external ids from 0 in the order in which they come. It is a
// hash table with open addressing over chunks with all ids: about 12 bytes
// beside the id itself, where a Go map of strings takes five times that.
type idTable struct {
	slots []uint32 // number + 1; 0 is free
	ids   [][]byte // of idChunk ids each
	ends  chunked[uint32]
}

// idChunk is how many ids are in one piece of memory.
const idChunk = 1 << 10

// id returns the id with a number. It is valid as long as the table.
func (t *idTable) id(n int) []byte {
	start := uint32(0)
	if n%idChunk > 0 {
		start = *t.ends.at(n - 1)
	}
	end := *t.ends.at(n)
	return t.ids[n/idChunk][start:end:end]
}

// find returns the number of an id, adding it when it is new.
func (t *idTable) find(id []byte) (n int, added bool) {
	number := t.ends.len()
	if 4*(number+1) > 3*len(t.slots) {
		t.grow()
	}
	slot := t.slot(id)
	if s := t.slots[slot]; s != 0 {
		return int(s - 1), false
	}
	if number%idChunk == 0 {
		t.ids = append(t.ids, nil)
	}
	chunk := &t.ids[number/idChunk]
	*chunk = append(*chunk, id...)
	t.ends.add(uint32(len(*chunk)))
	t.slots[slot] = uint32(number + 1)
	return number, true
}

// slot returns the slot of the id, or the free slot for it.
func (t *idTable) slot(id []byte) int {
	mask := len(t.slots) - 1
	i := int(xxhash.Sum64(id)) & mask
	for t.slots[i] != 0 && string(t.id(int(t.slots[i]-1))) != string(id) {
		i = (i + 1) & mask
	}
	return i
}

// grow doubles the slots, and finds each id its slot again.
func (t *idTable) grow() {
	t.slots = make([]uint32, max(64, 2*len(t.slots)))
	for n := range t.ends.len() {
		t.slots[t.slot(t.id(n))] = uint32(n + 1)
	}
}

// close ends find. Ids stay.
func (t *idTable) close() { t.slots = nil }

func (t *idTable) reset() { *t = idTable{} }

package index

import "github.com/cespare/xxhash/v2"

// idTable numbers external ids from 0 in order of arrival. It is a hash table with open addressing over chunks with all ids. It takes
// about 16 bytes per id besides the id itself; a Go map of strings takes four times as much.
type idTable struct {
	slots []idSlot // a power of two, at most ¾ full
	ids   [][]byte // of idChunk ids each
	ends  chunked[uint32]
}

// idSlot is an id. A look-up compares hashes before it touches the id, which is elsewhere in memory.
type idSlot struct {
	hash   uint32 // the upper half of the hash; the lower half chooses the slot
	number uint32 // of the id + 1; 0: the slot is free
}

const idSlotBytes = 8 // of an idSlot

// idChunk is how many ids are in one piece of memory.
const idChunk = 1 << 10

// minIDSlots is the least size of a table.
const minIDSlots = 64

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
	t.reserve(1)
	hash := xxhash.Sum64(id)
	slot := t.slot(id, hash)
	if s := slot.number; s != 0 {
		return int(s - 1), false
	}
	if number%idChunk == 0 {
		size := 0 // most tables have few ids
		if number > 0 {
			size = len(t.ids[number/idChunk-1]) * 9 / 8
		}
		t.ids = append(t.ids, make([]byte, 0, size))
	}
	chunk := &t.ids[number/idChunk]
	*chunk = append(*chunk, id...)
	t.ends.add(uint32(len(*chunk)))
	*slot = idSlot{uint32(hash >> 32), uint32(number + 1)}
	return number, true
}

// slot returns the slot of the id, or the free slot for it.
func (t *idTable) slot(id []byte, hash uint64) *idSlot {
	mask := len(t.slots) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.number == 0 || s.hash == uint32(hash>>32) && string(t.id(int(s.number-1))) == string(id) {
			return s
		}
	}
}

// reserve makes room for n more ids, and finds all others their slots again if there was none.
func (t *idTable) reserve(n int) {
	need := t.ends.len() + n
	if 4*need <= 3*len(t.slots) {
		return
	}
	size := max(minIDSlots, len(t.slots))
	for 4*need > 3*size {
		size *= 2
	}
	t.slots = make([]idSlot, size)
	mask := size - 1
	for n := range t.ends.len() {
		hash := xxhash.Sum64(t.id(n))
		i := int(hash) & mask
		for t.slots[i].number != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = idSlot{uint32(hash >> 32), uint32(n + 1)}
	}
}

// close ends find. Ids stay.
func (t *idTable) close() { t.slots = nil }

func (t *idTable) reset() { *t = idTable{} }

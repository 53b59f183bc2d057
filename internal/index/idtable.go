package index

import "github.com/cespare/xxhash/v2"

// idTable numbers external ids from 0 in the order in which they come. It is a
// hash table with open addressing over one buffer with all ids: about 16 bytes
// beside the id itself, where a Go map of strings takes five times that.
type idTable struct {
	slots []uint32 // number + 1; 0 is free
	ids   []byte
	ends  []int // of each id in ids
}

// id returns the id with a number. It is valid as long as the table.
func (t *idTable) id(n int) []byte {
	start := 0
	if n > 0 {
		start = t.ends[n-1]
	}
	return t.ids[start:t.ends[n]:t.ends[n]]
}

// find returns the number of an id, adding it when it is new.
func (t *idTable) find(id []byte) (n int, added bool) {
	if 4*(len(t.ends)+1) > 3*len(t.slots) {
		t.grow()
	}
	slot := t.slot(id)
	if s := t.slots[slot]; s != 0 {
		return int(s - 1), false
	}
	t.ids = append(t.ids, id...)
	t.ends = append(t.ends, len(t.ids))
	t.slots[slot] = uint32(len(t.ends))
	return len(t.ends) - 1, true
}

// slot returns where the id stands or would stand.
func (t *idTable) slot(id []byte) int {
	mask := len(t.slots) - 1
	i := int(xxhash.Sum64(id)) & mask
	for t.slots[i] != 0 && string(t.id(int(t.slots[i]-1))) != string(id) {
		i = (i + 1) & mask
	}
	return i
}

func (t *idTable) grow() {
	t.slots = make([]uint32, max(64, 2*len(t.slots)))
	for n := range t.ends {
		t.slots[t.slot(t.id(n))] = uint32(n + 1)
	}
}

func (t *idTable) reset() { *t = idTable{} }

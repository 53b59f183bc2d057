package segment

import (
	"bytes"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// arenaChunk is the maximum size of a chunk of an arena. An address has the number of the chunk in its upper 16 bits and the offset
// in the chunk in its lower 16 bits.
const (
	arenaChunk      = 1 << 16
	arenaFirstChunk = 1 << 10
	maxArenaChunks  = 1 << 16
)

// arena hands out bytes that stay where they are. It can hold 4 GiB. The first
// chunks are small: most arenas of a segment of few documents hold little.
type arena struct {
	chunks [][]byte
	used   int   // of the last chunk
	size   int64 // of all chunks
}

// alloc returns the address of n ≤ arenaChunk fresh zero bytes.
func (a *arena) alloc(n int) uint32 {
	if len(a.chunks) == 0 || a.used+n > len(a.chunks[len(a.chunks)-1]) {
		if len(a.chunks) == maxArenaChunks {
			a.size, a.used = 1<<40, 0 // what comes overwrites the last chunk; writing a segment fails for the size
			return uint32(len(a.chunks)-1) << 16
		}
		size := max(n, min(arenaChunk, arenaFirstChunk<<(2*min(len(a.chunks), 8))))
		a.chunks = append(a.chunks, make([]byte, size))
		a.used, a.size = 0, a.size+int64(size)
	}
	at := uint32(len(a.chunks)-1)<<16 | uint32(a.used)
	a.used += n
	return at
}

// bytes returns the n bytes at an address.
func (a *arena) bytes(at uint32, n int) []byte {
	return a.chunks[at>>16][at&0xffff:][:n:n]
}

func (a *arena) memoryBytes() int64 { return a.size }

// byteTable numbers distinct pairs of a key (bytes) and a small number from 0 in the
// order they come. Open addressing over an arena: no allocation a key.
type byteTable struct {
	arena   arena
	entries []tableEntry
	slots   []uint32 // entry + 1, or 0; a power of two, at most ⅔ full
}

// tableEntry is a key. Its number is its place in entries.
type tableEntry struct {
	hash  uint32
	key   uint32 // address
	size  uint16 // of the key
	extra uint16
}

const (
	tableEntryBytes = 12
	minTableSlots   = 64
)

// index returns the number of (key, extra) and whether it is new. len(key) ≤ 65,535.
func (t *byteTable) index(key []byte, extra uint16) (int, bool) {
	if 3*len(t.entries) >= 2*len(t.slots) {
		t.grow()
	}
	hash := uint32(xxhash.Sum64(key)>>32) ^ uint32(extra)*0x9e3779b1
	mask := uint32(len(t.slots) - 1)
	i := hash & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		e := &t.entries[t.slots[i]-1]
		if e.hash == hash && e.extra == extra && int(e.size) == len(key) && bytes.Equal(t.arena.bytes(e.key, len(key)), key) {
			return int(t.slots[i] - 1), false
		}
	}
	n := len(t.entries)
	at := t.arena.alloc(len(key))
	copy(t.arena.bytes(at, len(key)), key)
	t.entries = append(t.entries, tableEntry{hash: hash, key: at, size: uint16(len(key)), extra: extra})
	t.slots[i] = uint32(n) + 1
	return n, true
}

// grow doubles the slots and inserts all entries again by their hashes. Keys stay where they are in the
// arena.
func (t *byteTable) grow() {
	t.slots = make([]uint32, max(minTableSlots, 2*len(t.slots)))
	mask := uint32(len(t.slots) - 1)
	for n, e := range t.entries {
		i := e.hash & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = uint32(n) + 1
	}
}

// clone returns a copy that shares nothing.
func (t *byteTable) clone() byteTable {
	c := byteTable{arena: t.arena, entries: slices.Clone(t.entries), slots: slices.Clone(t.slots)}
	c.arena.chunks = make([][]byte, len(t.arena.chunks))
	for i, chunk := range t.arena.chunks {
		c.arena.chunks[i] = bytes.Clone(chunk)
	}
	return c
}

func (t *byteTable) len() int         { return len(t.entries) }
func (t *byteTable) key(n int) []byte { return t.arena.bytes(t.entries[n].key, int(t.entries[n].size)) }

func (t *byteTable) memoryBytes() int64 {
	return t.arena.memoryBytes() + int64(cap(t.entries)*tableEntryBytes+cap(t.slots)*4)
}

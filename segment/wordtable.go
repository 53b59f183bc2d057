package segment

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
)

// wordTable numbers distinct pairs of word and field from 0 in the order in which they come. It has the rows and positions of
// each. A look-up reads a slot and the entry, which is a line of the caches of the processor and has words of up to entryWord bytes.
type wordTable struct {
	chunks [][]wordEntry
	count  int
	slots  []uint32 // a power of two, at most ⅔ full; the lower bits are an entry + 1, the upper ones are of its hash; 0: free
	arena  arena    // longer words
}

// wordEntry is what the builder has of one word in one field. It takes wordEntryBytes.
type wordEntry struct {
	head     uint64 // first 8 bytes of the word, zero-padded, big-endian
	more     uint32 // next 4 bytes, likewise
	key      uint32 // address of the word if it is longer
	hash     uint32
	size     uint16 // of the word
	field    uint16
	wordList // 40 bytes
}

const (
	wordEntryBytes = 64
	entryWord      = 12

	// wordChunk is how many entries are in one piece of memory; only the first one grows to it.
	wordChunk     = 1 << wordChunkBits
	wordChunkBits = 11
)

// Random seeds make hashes differ between processes, so that nobody can construct words that share their slots. Each factor of the
// product has its own seed, because otherwise a document could choose the other factor. The third seed is for the bytes after the
// first entryWord.
var (
	headSeed = rand.Uint64()
	moreSeed = rand.Uint64()
	tailSeed = maphash.MakeSeed()
)

// wordHead returns the first bytes of a word, as wordEntry has them.
func wordHead(word []byte) (head uint64, more uint32) {
	if n := len(word); n > 0 && cap(word) >= entryWord { // the processor cannot predict lengths, so no branch depends on it
		w := word[:entryWord]
		head = binary.BigEndian.Uint64(w) & (math.MaxUint64 << (8 * uint(8-min(n, 8)) & 63))
		more = uint32(uint64(binary.BigEndian.Uint32(w[8:])) & (math.MaxUint64 << (8 * uint(entryWord-min(max(n, 8), entryWord)) & 63)))
		return head, more
	}
	switch n := len(word); {
	case n >= entryWord:
		return binary.BigEndian.Uint64(word), binary.BigEndian.Uint32(word[8:])
	case n >= 8:
		return binary.BigEndian.Uint64(word), uint32(uint64(binary.BigEndian.Uint32(word[n-4:])) << (8 * (entryWord - n)))
	case n >= 4:
		return uint64(binary.BigEndian.Uint32(word))<<32 | uint64(binary.BigEndian.Uint32(word[n-4:]))<<(8*(8-n)), 0
	}
	for i, b := range word {
		head |= uint64(b) << (56 - 8*i)
	}
	return head, 0
}

// at returns an entry. It stays where it is, unless entry adds to the first chunk.
func (t *wordTable) at(n int) *wordEntry { return &t.chunks[n>>wordChunkBits][n%wordChunk] }

// wordKey is a word in a field, as the table looks it up: all of it up to entryWord bytes.
type wordKey struct {
	head  uint64
	more  uint32
	hash  uint32
	size  uint16
	field uint16
}

// set makes k the key of a word of up to 65,535 bytes in a field. It stores the members one by one: a copy of a key that was just made
// would wait for its stores, because it loads more bytes at once than they stored.
func (k *wordKey) set(word []byte, field uint16) {
	head, more := wordHead(word)
	high, low := bits.Mul64(head^headSeed, (uint64(more)<<32|uint64(len(word))<<16|uint64(field))^moreSeed)
	if len(word) > entryWord {
		high ^= maphash.Bytes(tailSeed, word[entryWord:])
	}
	k.head = head
	k.more = more
	k.hash = uint32(high ^ low ^ (high^low)>>32)
	k.size = uint16(len(word))
	k.field = field
}

// is reports whether an entry may be of a word: it compares the part of the word that is in the key.
func (e *wordEntry) is(k *wordKey) bool {
	return e.head == k.head && e.more == k.more && e.field == k.field && e.size == k.size
}

// hasRest reports whether the word of an entry ends with rest behind the first entryWord bytes. Its size is right.
func (t *wordTable) hasRest(e *wordEntry, rest []byte) bool {
	return len(rest) == 0 || bytes.Equal(t.arena.bytes(e.key, len(rest)+entryWord)[entryWord:], rest)
}

// seek looks words up in the first slot of each, where most are. It sets their entries. Loads do not depend on each other, so the processor
// does them side by side.
func (t *wordTable) seek(words []waitingWord) {
	if len(t.slots) == 0 {
		t.grow()
	}
	mask := uint32(len(t.slots) - 1)
	for i := range words {
		o := &words[i]
		o.entry = -1
		if slot := t.slots[o.hash&mask]; slot != 0 && (slot^o.hash)&^mask == 0 {
			o.entry = int(slot&mask) - 1
		}
	}
	for i := range words {
		if o := &words[i]; o.entry >= 0 && !t.at(o.entry).is(&o.wordKey) {
			o.entry = -1
		}
	}
}

// entry returns the entry of a word and whether it is new. rest has the bytes after the first entryWord. The entry is valid until the
// next call.
func (t *wordTable) entry(k *wordKey, rest []byte) (e *wordEntry, fresh bool) {
	if 3*t.count >= 2*len(t.slots) {
		t.grow()
	}
	mask := uint32(len(t.slots) - 1)
	i := k.hash & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		if (t.slots[i]^k.hash)&^mask != 0 {
			continue
		}
		if e := t.at(int(t.slots[i]&mask) - 1); e.is(k) && t.hasRest(e, rest) {
			return e, false
		}
	}
	e = t.add()
	e.head, e.more, e.hash, e.size, e.field = k.head, k.more, k.hash, k.size, k.field
	if len(rest) > 0 {
		e.key = t.arena.alloc(int(k.size))
		text := t.arena.bytes(e.key, int(k.size))
		binary.BigEndian.PutUint64(text, k.head)
		binary.BigEndian.PutUint32(text[8:], k.more)
		copy(text[entryWord:], rest)
	}
	t.slots[i] = k.hash&^mask | uint32(t.count)
	return e, true
}

// add adds an empty entry.
func (t *wordTable) add() *wordEntry {
	last := t.count >> wordChunkBits
	switch {
	case last == len(t.chunks) && last == 0:
		t.chunks = append(t.chunks, nil)
	case last == len(t.chunks):
		t.chunks = append(t.chunks, make([]wordEntry, 0, wordChunk))
	}
	t.chunks[last] = append(t.chunks[last], wordEntry{})
	t.count++
	return t.at(t.count - 1)
}

// grow doubles the slots and inserts all entries again.
func (t *wordTable) grow() {
	t.slots = make([]uint32, max(minTableSlots, 2*len(t.slots)))
	mask := uint32(len(t.slots) - 1)
	n := uint32(0)
	for _, chunk := range t.chunks {
		for j := range chunk {
			hash := chunk[j].hash
			i := hash & mask
			for t.slots[i] != 0 {
				i = (i + 1) & mask
			}
			n++
			t.slots[i] = hash&^mask | n
		}
	}
}

// word returns the word of an entry, in scratch if it is short.
func (t *wordTable) word(n int, scratch *[entryWord]byte) []byte {
	e := t.at(n)
	if e.size > entryWord {
		return t.arena.bytes(e.key, int(e.size))
	}
	binary.BigEndian.PutUint64(scratch[:], e.head)
	binary.BigEndian.PutUint32(scratch[8:], e.more)
	return scratch[:e.size]
}

// compareRests compares two words of more than 8 bytes, which begin with the same 8.
func (t *wordTable) compareRests(a, b int) int {
	x, y := t.at(a), t.at(b)
	switch {
	case x.more != y.more:
		if x.more < y.more {
			return -1
		}
		return 1
	case x.size <= entryWord || y.size <= entryWord: // as far as the shorter one goes, they are equal
		return int(x.size) - int(y.size)
	}
	return bytes.Compare(t.arena.bytes(x.key, int(x.size)), t.arena.bytes(y.key, int(y.size)))
}

func (t *wordTable) memoryBytes() int64 {
	n := t.arena.memoryBytes() + int64(cap(t.slots))*4
	for i := range min(2, len(t.chunks)) { // all but the first have one size
		n += int64(cap(t.chunks[i])) * wordEntryBytes * int64(1+i*max(0, len(t.chunks)-2))
	}
	return n
}

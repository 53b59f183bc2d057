package segment

import (
	"bytes"
	"math/rand/v2"
	"sync/atomic"
)

// Searches show some documents again and again, and decompressing the 20 of a
// page is a good part of a quick search. documentCache keeps those that were read twice.
const (
	cacheBytes       = 8 << 20 // bound of the documents kept, all segments of the process together
	cacheMaxDocument = 128 << 10
	cacheWays        = 3 // slots that a document may be in
	cacheSets        = 1 << 13
)

type documentCache struct {
	sets  [cacheSets]documentSet
	bytes atomic.Int64
	hand  atomic.Uint32 // next slot to empty when there are too many bytes
}

// documentSet has what is known of the documents with one hash. It takes 32 bytes, which are in one line of a processor's cache: most
// lookups of a first search miss that.
type documentSet struct {
	missed atomic.Uint64 // the key last asked for in vain
	slots  [cacheWays]atomic.Pointer[cachedDocument]
}

// cachedDocument is never changed once it is in a slot.
type cachedDocument struct {
	key uint64
	doc []byte
}

var documents documentCache

// readers numbers the readers of the process, so that keys are never used again.
var readers atomic.Uint32

func cacheKey(reader uint32, row uint32) uint64 { return uint64(reader)<<32 | uint64(row) }

func (c *documentCache) set(key uint64) *documentSet { return &c.sets[key*0x9e3779b97f4a7c15>>51] }

// expect loads what lookups of some rows of a reader will read into the processor's cache, for all rows at once.
func (c *documentCache) expect(reader uint32, rows []Row) {
	for _, row := range rows {
		c.set(cacheKey(reader, uint32(row))).missed.Load()
	}
}

// get returns the document of a key, or nil.
func (c *documentCache) get(key uint64) []byte {
	set := c.set(key)
	for i := range set.slots {
		if d := set.slots[i].Load(); d != nil && d.key == key {
			return d.doc
		}
	}
	return nil
}

// put stores a copy of a document that was not found, when the document is requested for the second time.
func (c *documentCache) put(key uint64, doc []byte) {
	set := c.set(key)
	if len(doc) > cacheMaxDocument || set.missed.Swap(key) != key {
		return
	}
	slot := &set.slots[rand.Uint32N(cacheWays)]
	for i := range set.slots {
		if set.slots[i].Load() == nil {
			slot = &set.slots[i]
			break
		}
	}
	d := &cachedDocument{key: key, doc: bytes.Clone(doc)}
	c.bytes.Add(int64(len(d.doc)))
	c.drop(slot, d)
	const slots = cacheSets * cacheWays
	for tries := 0; c.bytes.Load() > cacheBytes && tries < slots; tries++ {
		at := c.hand.Add(1) % slots
		c.drop(&c.sets[at/cacheWays].slots[at%cacheWays], nil)
	}
}

// drop replaces the content of a slot by d.
func (c *documentCache) drop(slot *atomic.Pointer[cachedDocument], d *cachedDocument) {
	if old := slot.Swap(d); old != nil {
		c.bytes.Add(-int64(len(old.doc)))
	}
}

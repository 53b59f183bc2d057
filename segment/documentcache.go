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
	cacheWays        = 4 // slots that a document may be in
	cacheSets        = 1 << 12
)

type documentCache struct {
	slots  [cacheSets * cacheWays]atomic.Pointer[cachedDocument]
	missed [cacheSets]atomic.Uint64 // the key last asked for in vain
	bytes  atomic.Int64
	hand   atomic.Uint32 // next slot to empty when there are too many bytes
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

func cacheSet(key uint64) int { return int(key * 0x9e3779b97f4a7c15 >> 52) }

// get returns the document of a key, or nil.
func (c *documentCache) get(key uint64) []byte {
	set := cacheSet(key) * cacheWays
	for i := range cacheWays {
		if d := c.slots[set+i].Load(); d != nil && d.key == key {
			return d.doc
		}
	}
	return nil
}

// put stores a copy of a document that was not found, when the document is requested for the second time.
func (c *documentCache) put(key uint64, doc []byte) {
	set := cacheSet(key)
	if len(doc) > cacheMaxDocument || c.missed[set].Swap(key) != key {
		return
	}
	slot := set*cacheWays + int(rand.Uint32N(cacheWays))
	for i := range cacheWays {
		if c.slots[set*cacheWays+i].Load() == nil {
			slot = set*cacheWays + i
			break
		}
	}
	d := &cachedDocument{key: key, doc: bytes.Clone(doc)}
	c.bytes.Add(int64(len(d.doc)))
	c.drop(slot, d)
	for tries := 0; c.bytes.Load() > cacheBytes && tries < len(c.slots); tries++ {
		c.drop(int(c.hand.Add(1)%uint32(len(c.slots))), nil)
	}
}

// drop replaces the content of a slot by d.
func (c *documentCache) drop(slot int, d *cachedDocument) {
	if old := c.slots[slot].Swap(d); old != nil {
		c.bytes.Add(-int64(len(old.doc)))
	}
}

package query

import (
	"hash/maphash"
	"sync"
)

const (
	cacheBytes = 32 << 20 // bounds what a Cache keeps, by estimate
	wishes     = 1 << 14  // keys of which it is remembered that they were missed
)

// Cache keeps what was derived of words for one set of segments, the latest used
// of it. It may be used by several goroutines.
type Cache struct {
	once     sync.Once
	prepared prepared

	mu      sync.Mutex
	entries map[string]*cached
	latest  cached // ring: next is the one used last, previous the one to drop
	bytes   int
	wished  []uint32 // fingerprints of keys that were missed, by hash; made when needed
	seed    maphash.Seed
}

type cached struct {
	key            string
	value          any
	size           int
	next, previous *cached
}

func NewCache() *Cache {
	c := &Cache{entries: map[string]*cached{}, seed: maphash.MakeSeed()}
	c.latest.next, c.latest.previous = &c.latest, &c.latest
	return c
}

// Get returns what was put under a key, or nil.
func (c *Cache) Get(key []byte) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[string(key)]
	if e == nil {
		return nil
	}
	if c.latest.next != e {
		e.unlink()
		c.push(e)
	}
	return e.value
}

// Again reports whether it was asked about a key before, of late. What is dear to
// make, and can be done without, is made for keys that come again.
func (c *Cache) Again(key []byte) bool {
	h := maphash.Bytes(c.seed, key)
	slot, print := h%wishes, uint32(h>>32)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wished == nil {
		c.wished = make([]uint32, wishes)
	}
	was := c.wished[slot]
	c.wished[slot] = print
	return was == print
}

// Put keeps a value of about so many bytes, which nobody modifies any more.
// The first byte of a key tells its kind.
func (c *Cache) Put(key []byte, value any, bytes int) {
	e := &cached{key: string(key), value: value, size: bytes + 2*len(key) + 200}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[e.key] != nil || e.size > cacheBytes/4 {
		return
	}
	c.entries[e.key] = e
	c.push(e)
	c.bytes += e.size
	for c.bytes > cacheBytes {
		old := c.latest.previous
		old.unlink()
		delete(c.entries, old.key)
		c.bytes -= old.size
	}
}

func (c *Cache) push(e *cached) {
	e.next, e.previous = c.latest.next, &c.latest
	e.next.previous = e
	c.latest.next = e
}

func (e *cached) unlink() {
	e.previous.next, e.next.previous = e.next, e.previous
}

package query

import "sync"

// cacheBytes bounds what a Cache keeps, by estimate.
const cacheBytes = 32 << 20

// Cache keeps what was derived of words for one set of segments, the latest used
// of it. It may be used by several goroutines.
type Cache struct {
	once     sync.Once
	prepared prepared

	mu      sync.Mutex
	entries map[string]*cached
	latest  cached // ring: next is the one used last, previous the one to drop
	bytes   int
}

type cached struct {
	key            string
	value          any
	size           int
	next, previous *cached
}

func NewCache() *Cache {
	c := &Cache{entries: map[string]*cached{}}
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

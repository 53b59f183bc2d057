package embed

import (
	"container/list"
	"sync"
)

// maxCachedText is the longest query that is remembered, in bytes.
const maxCachedText = 2000

// cache remembers the vectors of the queries that were asked last.
type cache struct {
	size  int
	mu    sync.Mutex
	order *list.List // of cached, the latest first
	index map[string]*list.Element
}

type cached struct {
	key    string
	vector []float32
}

func newCache(size int) *cache {
	return &cache{size: size, order: list.New(), index: map[string]*list.Element{}}
}

// key returns the cache key of a query to an embedder, or "" if it is not cached.
func (c *cache) key(identity, text string) string {
	if c.size <= 0 || len(text) > maxCachedText {
		return ""
	}
	return identity + "\x00" + text // there is no such byte in JSON
}

// get returns a vector, and makes it the last one to be removed.
func (c *cache) get(key string) ([]float32, bool) {
	if key == "" {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.index[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(cached).vector, true
}

// put stores a vector. Beyond the size, it evicts the least recently used one.
func (c *cache) put(key string, vector []float32) {
	if key == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.index[key]; ok {
		e.Value = cached{key, vector}
		c.order.MoveToFront(e)
		return
	}
	c.index[key] = c.order.PushFront(cached{key, vector})
	if len(c.index) > c.size {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.index, last.Value.(cached).key)
	}
}

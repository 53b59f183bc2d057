// Package resultcache keeps what searches have computed, for all indexes of a process within one bound of memory. A
// result belongs to its owner: a segment file, which never changes, or a view. What was used longest ago goes first, of results of about
// the same size; large ones go earlier than small ones (see worth).
package resultcache

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	shards = 64      // each with a lock of its own, so that cores seldom wait for each other
	wishes = 1 << 10 // keys of a shard of which it is remembered that they were missed

	entryBytes = 240 // of an entry beside its key and value: itself, and its places in two maps and two lists
)

// Cache is the memory of all shelves.
type Cache struct {
	seed   maphash.Seed
	owners atomic.Uint64
	shards [shards]shard
}

// shard holds the entries whose keys have one of the hashes.
type shard struct {
	mu      sync.Mutex
	entries map[place]*entry
	owners  map[uint64]*entry // one of each owner's entries; the others follow in a ring
	latest  [sizes]entry      // by size, rings: next is the one used last, previous the one to drop
	clock   uint64            // the latest due of an entry that was dropped to make room
	bytes   int
	most    int
	hits    uint64
	misses  uint64
	wished  []uint32 // fingerprints of keys that were missed, by hash; made when needed
	_       [64]byte // no two locks in one cache line
}

type place struct {
	owner uint64
	key   string
}

type entry struct {
	place
	value          any
	bytes          int
	due            uint64 // the clock when it was used last, and its worth: the entry with the least is dropped first
	next, previous *entry // of about the same size, by use
	after, before  *entry // of the same owner
}

// sizes is how many classes of sizes there are: entries below 1 KiB, 2 KiB, 4 KiB and so on.
const sizes = 12

// size returns the class of an entry.
func (e *entry) size() int { return min(bits.Len(uint(e.bytes)>>10), sizes-1) }

// worth is how long entries of a size stay, as the clock counts. The page of a query takes a kibibyte and costs a whole search to find
// again; the bitmap of a filter takes a hundred of them, and costs no more. Where queries come round that find more than there is room
// for, what was used longest ago is always the next to be used: then those stay of which many find room. (After the GreedyDual-Size of
// Cao and Irani, 1997: costs are a constant and a share that grows with the size.)
func worth(size int) uint64 { return 16 + 256>>size }

// New returns a cache that keeps about so many bytes, by the estimates of those who put results there.
func New(bytes int64) *Cache {
	c := &Cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		s := &c.shards[i]
		s.most = int(bytes / shards)
		for k := range s.latest {
			l := &s.latest[k]
			l.next, l.previous = l, l
		}
	}
	return c
}

// Shelf returns a place for the results of a new owner.
func (c *Cache) Shelf() *Shelf { return &Shelf{cache: c, owner: c.owners.Add(1)} }

// Bytes returns how much the cache holds, by the estimates.
func (c *Cache) Bytes() int64 {
	var n int64
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += int64(s.bytes)
		s.mu.Unlock()
	}
	return n
}

// Counts returns how often, since the start, something was found and was not.
func (c *Cache) Counts() (hits, misses uint64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		hits, misses = hits+s.hits, misses+s.misses
		s.mu.Unlock()
	}
	return hits, misses
}

// Shelf is where the results of one owner are kept. Several goroutines may use it.
type Shelf struct {
	cache *Cache
	owner uint64
	used  atomic.Bool // something was put there

	mu     sync.Mutex
	stamps map[string]uint32
}

// Owner returns a number that no other owner of the process has, nor had before.
func (f *Shelf) Owner() uint64 { return f.owner }

func (f *Shelf) shard(key []byte) (*shard, uint64) {
	h := maphash.Bytes(f.cache.seed, key) ^ f.owner*0x9e3779b97f4a7c15
	return &f.cache.shards[h%shards], h / shards
}

// Get returns what was put under a key, or nil.
func (f *Shelf) Get(key []byte) any {
	s, _ := f.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[place{f.owner, string(key)}]
	if e == nil {
		s.misses++
		return nil
	}
	s.hits++
	e.unlink()
	s.push(e)
	return e.value
}

// Again reports whether it was asked about a key before, of late. What is dear to make, and can be done without,
// is made for keys that come again.
func (f *Shelf) Again(key []byte) bool {
	s, h := f.shard(key)
	slot, print := h%wishes, uint32(h>>32)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wished == nil {
		s.wished = make([]uint32, wishes)
	}
	was := s.wished[slot]
	s.wished[slot] = print
	return was == print
}

// Put keeps a value of about so many bytes on the heap, which nobody modifies any more, in the place of what the key had.
// The first byte of a key tells its kind.
func (f *Shelf) Put(key []byte, value any, bytes int) {
	e := &entry{place: place{f.owner, string(key)}, value: value, bytes: bytes + len(key) + entryBytes}
	s, _ := f.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.bytes > s.most/2 {
		return
	}
	if old := s.entries[e.place]; old != nil {
		s.drop(old)
	}
	if s.entries == nil {
		s.entries, s.owners = map[place]*entry{}, map[uint64]*entry{}
	}
	f.used.Store(true)
	s.entries[e.place] = e
	s.push(e)
	if first := s.owners[e.owner]; first == nil {
		e.after, e.before = e, e
		s.owners[e.owner] = e
	} else {
		e.after, e.before = first, first.before
		e.before.after, first.before = e, e
	}
	s.bytes += e.bytes
	for s.bytes > s.most {
		least := s.least(e)
		s.clock = max(s.clock, least.due)
		s.drop(least)
	}
}

// Stamp returns a number that stands for some content in the keys of a shelf. Unlike results, stamps stay as long as the
// owner: they tell results apart that were made under different settings.
func (f *Shelf) Stamp(content []byte) uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.stamps[string(content)]
	if !ok {
		if f.stamps == nil {
			f.stamps = map[string]uint32{}
		}
		n = uint32(len(f.stamps))
		f.stamps[string(content)] = n
	}
	return n
}

// Close drops all that the owner has. Nobody may use the shelf any more.
func (f *Shelf) Close() {
	if !f.used.Load() {
		return
	}
	for i := range f.cache.shards {
		s := &f.cache.shards[i]
		s.mu.Lock()
		for e := s.owners[f.owner]; e != nil; e = s.owners[f.owner] {
			s.drop(e)
		}
		s.mu.Unlock()
	}
}

// least returns the entry to drop first, other than one; there are others.
func (s *shard) least(other *entry) *entry {
	var least *entry
	for k := range s.latest {
		if e := s.latest[k].previous; e != &s.latest[k] && e != other && (least == nil || e.due < least.due) {
			least = e
		}
	}
	return least
}

func (s *shard) push(e *entry) {
	k := e.size()
	e.due = s.clock + worth(k)
	latest := &s.latest[k]
	e.next, e.previous = latest.next, latest
	e.next.previous = e
	latest.next = e
}

func (e *entry) unlink() {
	e.previous.next, e.next.previous = e.next, e.previous
}

func (s *shard) drop(e *entry) {
	e.unlink()
	delete(s.entries, e.place)
	s.bytes -= e.bytes
	switch {
	case e.after == e:
		delete(s.owners, e.owner)
	default:
		e.before.after, e.after.before = e.after, e.before
		if s.owners[e.owner] == e {
			s.owners[e.owner] = e.after
		}
	}
}

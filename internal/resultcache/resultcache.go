// Package resultcache caches what searches compute, for all indexes of a process within one byte budget.
//
// A result belongs to a scope: that of a segment file, which never changes, or that of a view. A closed scope drops its results.
// Within a scope, a result has a kind and a key (kind.go). The kind fixes the type of the value; the key has to contain everything
// else that the result depends on.
// else that the result depends on.
//
// Eviction is GreedyDual-Size (Cao and Irani, 1997). Entries fall into classes by size, each with a list in the order of use. An
// entry gets a due time when it is used: the clock of its shard, plus a benefit that falls with the size. To make room, the cache
// evicts the entry with the least due time among the oldest of all classes, and sets the clock to that time. So of entries of about
// the same size the least recently used goes first, and large ones go earlier than small ones.
//
// Results that can quickly be recomputed from other results share a quarter of the budget (PutSpare). A result that takes more than
// half of a shard is not cached. Optional results use second-hit admission (Admit).
//
// A shard is found by the hash of owner, kind and key, and has a lock of its own. Its entries lie in a slab (slab.go) and refer to
// each other by number, so that the garbage collector has few pointers to follow.
//
// Caveats:
//   - Values are shared and must not be modified after Put.
//   - Sizes are estimates of the callers. The budget applies to the sum of the estimates.
//   - A result may disappear at any time. Callers compute it again.
//   - Values that refer to mapped memory must belong to the scope of that segment, or of a view that holds it.
package resultcache

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	// shards is the number of parts of the cache, each with its own lock, so that cores seldom wait for each other. A result takes at
	// most half of a part, so there are few parts: a set of ten million rows takes 1.2 MiB.
	shards     = 16
	missedKeys = 1 << 12 // slots of a shard for fingerprints of missed keys, for second-hit admission

	// entryBytes is the overhead of an entry besides its value and a long key: the entry and its places in two maps.
	entryBytes = 176
)

// Cache holds the results of all scopes.
type Cache struct {
	seed   maphash.Seed
	owners atomic.Uint64
	shards [shards]shard
}

// shard holds the entries whose hashes lead to it.
type shard struct {
	mu     sync.Mutex
	slab   slab
	places map[uint64]ref  // by hash: the first of the entries that have it
	owners map[uint64]ref  // by owner: one of its entries; the others follow in a ring
	byUse  [sizes + 1]ends // lists by use: one per class of sizes, and one of spare entries
	clock  uint64          // the latest due time of an evicted entry
	bytes  int
	spare  int // bytes of spare entries
	most   int
	hits   uint64
	misses uint64
	missed []uint32 // fingerprints of missed keys, by hash; nil until needed
	_      [64]byte // no two locks in one cache line
}

// ends are the first and the last entry of a list.
type ends struct{ latest, oldest ref }

// sizes is the number of size classes: entries below 1 KiB, 2 KiB, 4 KiB and so on.
const sizes = 12

// sizeOf returns the size class of an entry of the given number of bytes.
func sizeOf(bytes int) int { return min(bits.Len(uint(bytes)>>10), sizes-1) }

// list returns the index of an entry's list in byUse.
func (e *entry) list() int {
	if e.spare {
		return sizes
	}
	return sizeOf(e.bytes)
}

// spareShare is the divisor of the budget that gives the share of spare entries.
const spareShare = 4

// benefit is how long an unused entry of a size class stays, in ticks of the clock. The page of a query takes 1 KiB, and computing it
// again takes a whole search. The bitmap of a filter takes a hundred times as much, and costs no more to compute. If queries repeat
// in a cycle that exceeds the budget, pure LRU evicts each result just before it is used. With this rule, small entries stay, because
// many fit.
func benefit(size int) uint64 { return 16 + 256>>size }

// New returns a cache with a budget in bytes. The sizes of values are estimates of the callers.
func New(bytes int64) *Cache {
	c := &Cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		s := &c.shards[i]
		s.most = int(bytes / shards)
	}
	return c
}

// Scope returns an empty scope for a new owner.
func (c *Cache) Scope() *Scope { return &Scope{cache: c, owner: c.owners.Add(1)} }

// Bytes returns the estimated size of all entries.
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

// Counts returns the number of hits and misses since the start.
func (c *Cache) Counts() (hits, misses uint64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		hits, misses = hits+s.hits, misses+s.misses
		s.mu.Unlock()
	}
	return hits, misses
}

// Scope is the part of a cache that belongs to one owner: a segment file, or a view. Several goroutines may use it.
type Scope struct {
	cache *Cache
	owner uint64
	used  atomic.Bool // something was put there

	mu     sync.Mutex
	stamps map[string]uint32
}

// Owner returns the number of the scope, unique in the life of the process.
func (f *Scope) Owner() uint64 { return f.owner }

// hashBits masks hashes. Tests lower it to force collisions.
var hashBits uint64 = math.MaxUint64

// shard returns the shard of a key, and the hash of the key.
func (f *Scope) shard(kind uint8, key []byte) (*shard, uint64) {
	h := (maphash.Bytes(f.cache.seed, key) ^ (f.owner<<8|uint64(kind))*0x9e3779b97f4a7c15) & hashBits
	return &f.cache.shards[h%shards], h
}

// find returns the entry of a key, or none.
func (s *shard) find(owner, hash uint64, kind uint8, key []byte) ref {
	for r := s.places[hash]; r != none; {
		e := s.slab.at(r)
		if e.owner == owner && e.kind == kind && e.has(key) {
			return r
		}
		r = e.chain
	}
	return none
}

// get returns the value of a key, or nil.
func (f *Scope) get(kind uint8, key []byte) any {
	s, h := f.shard(kind, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(f.owner, h, kind, key)
	if r == none {
		s.misses++
		return nil
	}
	s.hits++
	e := s.slab.at(r)
	s.unlink(e)
	s.push(r, e)
	return e.value
}

// admit reports whether the key was asked for recently, and records it.
func (f *Scope) admit(kind uint8, key []byte) bool {
	s, h := f.shard(kind, key)
	slot, print := h/shards%missedKeys, uint32(h>>32)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missed == nil {
		s.missed = make([]uint32, missedKeys)
	}
	was := s.missed[slot]
	s.missed[slot] = print
	return was == print
}

func (f *Scope) put(kind uint8, key []byte, value any, bytes int, spare bool) {
	bytes += entryBytes
	if len(key) > shortKey {
		bytes += len(key)
	}
	s, h := f.shard(kind, key)
	if bytes > s.most/2 || spare && bytes > s.most/spareShare {
		return
	}
	long := longKey(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.slab.isFull() {
		// An allocation may have to assist the garbage collector first, so it is made without the lock.
		s.mu.Unlock()
		p := new(slabPart)
		s.mu.Lock()
		if s.slab.isFull() { // or another goroutine made room meanwhile
			s.slab.add(p)
		}
	}
	if old := s.find(f.owner, h, kind, key); old != none {
		s.drop(old)
	}
	if s.places == nil {
		s.places, s.owners = map[uint64]ref{}, map[uint64]ref{}
	}
	f.used.Store(true)
	r := s.slab.take()
	e := s.slab.at(r)
	e.owner, e.hash, e.kind, e.value, e.bytes, e.spare, e.chain = f.owner, h, kind, value, bytes, spare, s.places[h]
	e.name(key, long)
	s.places[h] = r
	s.push(r, e)
	if first := s.owners[e.owner]; first == none {
		e.after, e.before = r, r
		s.owners[e.owner] = r
	} else {
		next := s.slab.at(first)
		e.after, e.before = first, next.before
		s.slab.at(e.before).after, next.before = r, r
	}
	s.bytes += bytes
	if spare {
		s.spare += bytes
	}
	for s.bytes > s.most || s.spare > s.most/spareShare {
		least := s.byUse[sizes].oldest
		if s.spare <= s.most/spareShare {
			least = s.least(r)
			s.clock = max(s.clock, s.slab.at(least).due)
		}
		if s.drop(least); r > s.slab.last() {
			r = least
		}
	}
}

// Fits reports whether n results of the given size each take at most half of the budget, so that they can be cached together.
func (f *Scope) Fits(n, bytes int) bool {
	most := f.cache.shards[0].most
	bytes += entryBytes
	return bytes <= most/2 && n <= most*shards/2/bytes
}

// Stamp returns a number that replaces some content in the keys of the scope, such as the settings that a result depends on. Equal content
// has equal stamps. Unlike results, stamps are never evicted.
func (f *Scope) Stamp(content []byte) uint32 {
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

// Close drops all results of the scope. The scope must not be used afterwards.
func (f *Scope) Close() {
	if !f.used.Load() {
		return
	}
	for i := range f.cache.shards {
		s := &f.cache.shards[i]
		s.mu.Lock()
		for r := s.owners[f.owner]; r != none; r = s.owners[f.owner] {
			s.drop(r)
		}
		s.mu.Unlock()
	}
}

// least returns the entry to evict next, except other. There must be one.
func (s *shard) least(other ref) (least ref) {
	due := uint64(math.MaxUint64)
	for k := range s.byUse {
		if r := s.byUse[k].oldest; r != none && r != other {
			if d := s.slab.at(r).due; d < due {
				least, due = r, d
			}
		}
	}
	return least
}

// push makes an entry the most recently used of its list, and renews its due time.
func (s *shard) push(r ref, e *entry) {
	e.due = s.clock + benefit(sizeOf(e.bytes))
	l := &s.byUse[e.list()]
	e.older, e.newer = l.latest, none
	if l.latest == none {
		l.oldest = r
	} else {
		s.slab.at(l.latest).newer = r
	}
	l.latest = r
}

// unlink removes an entry from its list.
func (s *shard) unlink(e *entry) {
	l := &s.byUse[e.list()]
	if e.older == none {
		l.oldest = e.newer
	} else {
		s.slab.at(e.older).newer = e.newer
	}
	if e.newer == none {
		l.latest = e.older
	} else {
		s.slab.at(e.newer).older = e.older
	}
}

// drop removes an entry. The last entry of the slab moves to its place, so that the slab has no gaps.
func (s *shard) drop(r ref) {
	e := s.slab.at(r)
	s.unlink(e)
	s.bytes -= e.bytes
	if e.spare {
		s.spare -= e.bytes
	}
	switch at := s.link(r, e); {
	case at != nil:
		*at = e.chain
	case e.chain != none:
		s.places[e.hash] = e.chain
	default:
		delete(s.places, e.hash)
	}
	if e.after == r {
		delete(s.owners, e.owner)
	} else {
		s.slab.at(e.before).after, s.slab.at(e.after).before = e.after, e.before
		if s.owners[e.owner] == r {
			s.owners[e.owner] = e.after
		}
	}
	if last := s.slab.last(); r != last {
		s.move(last, r)
	}
	s.slab.giveLast()
}

// move moves an entry to a free place, and mends all references to it.
func (s *shard) move(from, to ref) {
	e := s.slab.at(to)
	*e = *s.slab.at(from)
	l := &s.byUse[e.list()]
	if e.older == none {
		l.oldest = to
	} else {
		s.slab.at(e.older).newer = to
	}
	if e.newer == none {
		l.latest = to
	} else {
		s.slab.at(e.newer).older = to
	}
	if at := s.link(from, e); at != nil {
		*at = to
	} else {
		s.places[e.hash] = to
	}
	if e.after == from {
		e.after, e.before = to, to
	} else {
		s.slab.at(e.before).after, s.slab.at(e.after).before = to, to
	}
	if s.owners[e.owner] == from {
		s.owners[e.owner] = to
	}
}

// link returns the reference to an entry in the chain of its hash, or nil if the entry is the first.
func (s *shard) link(r ref, e *entry) *ref {
	first := s.places[e.hash]
	if first == r {
		return nil
	}
	at := &s.slab.at(first).chain
	for *at != r {
		at = &s.slab.at(*at).chain
	}
	return at
}

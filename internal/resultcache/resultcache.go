// Package resultcache caches what searches compute, for all indexes of a process within one byte budget.
//
// A result belongs to a scope: that of a segment file, which never changes, or that of a view. A scope that is closed drops its results.
// Within a scope, a result has a kind and a key (kind.go). The kind fixes the type of the value; the key has to name all else that the
// result depends on.
//
// Eviction is GreedyDual-Size (Cao and Irani, 1997): of results of about the same size the least recently used goes first, and large
// results go earlier than small ones (see worth). Results that are quickly computed again from others share a quarter of the budget
// (PutSpare). A result that takes more than half of a shard is not cached.
//
// Caveats:
//   - Values are shared. Nobody modifies a value after Put.
//   - Sizes are estimates of the callers. The budget holds for the sum of the estimates.
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
	shards = 64      // each with a lock of its own, so that cores seldom wait for each other
	wishes = 1 << 10 // keys of a shard of which it is remembered that they were missed

	// entryBytes is what an entry takes beside its value and a long key: itself, and its places in two maps.
	entryBytes = 176
)

// Cache holds the results of all scopes.
type Cache struct {
	seed   maphash.Seed
	owners atomic.Uint64
	shards [shards]shard
}

// shard holds the entries whose keys have one of the hashes.
type shard struct {
	mu     sync.Mutex
	slab   slab
	places map[uint64]ref  // by hash: the first of the entries that have it
	owners map[uint64]ref  // one of each owner's entries; the others follow in a ring
	byUse  [sizes + 1]ends // of the entries of a size, and behind them of the spare ones
	clock  uint64          // the latest due of an entry that was dropped to make room
	bytes  int
	spare  int // bytes of spare entries
	most   int
	hits   uint64
	misses uint64
	wished []uint32 // fingerprints of keys that were missed, by hash; made when needed
	_      [64]byte // no two locks in one cache line
}

// ends are the first and the last entry of a list.
type ends struct{ latest, oldest ref }

// sizes is how many classes of sizes there are: entries below 1 KiB, 2 KiB, 4 KiB and so on.
const sizes = 12

// sizeOf returns the class of an entry of so many bytes.
func sizeOf(bytes int) int { return min(bits.Len(uint(bytes)>>10), sizes-1) }

// list returns in which of byUse an entry is.
func (e *entry) list() int {
	if e.spare {
		return sizes
	}
	return sizeOf(e.bytes)
}

// spareShare: spare entries take one byte in so many.
const spareShare = 4

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
	}
	return c
}

// Scope returns an empty scope for a new owner.
func (c *Cache) Scope() *Scope { return &Scope{cache: c, owner: c.owners.Add(1)} }

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

// Scope is the part of a cache that belongs to one owner: a segment file, or a view. Several goroutines may use it.
type Scope struct {
	cache *Cache
	owner uint64
	used  atomic.Bool // something was put there

	mu     sync.Mutex
	stamps map[string]uint32
}

// Owner returns a number that no other owner of the process has, nor had before.
func (f *Scope) Owner() uint64 { return f.owner }

// hashBits are the bits of a hash that count. (A variable, so that tests can have keys meet.)
var hashBits uint64 = math.MaxUint64

// shard returns where a key belongs, and its hash.
func (f *Scope) shard(kind uint8, key []byte) (*shard, uint64) {
	h := (maphash.Bytes(f.cache.seed, key) ^ (f.owner<<8|uint64(kind))*0x9e3779b97f4a7c15) & hashBits
	return &f.cache.shards[h%shards], h
}

// find returns the entry of a key; none where there is none.
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

// get returns what was put under a key, or nil.
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

// admit reports whether it was asked about a key before, of late.
func (f *Scope) admit(kind uint8, key []byte) bool {
	s, h := f.shard(kind, key)
	slot, print := h/shards%wishes, uint32(h>>32)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wished == nil {
		s.wished = make([]uint32, wishes)
	}
	was := s.wished[slot]
	s.wished[slot] = print
	return was == print
}

func (f *Scope) put(kind uint8, key []byte, value any, bytes int, spare bool) {
	bytes += entryBytes
	if len(key) > shortKey {
		bytes += len(key)
	}
	s, h := f.shard(kind, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes > s.most/2 || spare && bytes > s.most/spareShare {
		return
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
	e.name(key)
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

// Stamp returns a number that stands for some content in the keys of the scope. Unlike results, stamps are never dropped: they tell results
// apart that were computed under different settings.
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

// Close drops all results of the scope, which nobody may use any more.
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

// least returns the entry to drop first, other than one; there are others.
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

// push makes an entry the one of its size that was used last.
func (s *shard) push(r ref, e *entry) {
	e.due = s.clock + worth(sizeOf(e.bytes))
	l := &s.byUse[e.list()]
	e.older, e.newer = l.latest, none
	if l.latest == none {
		l.oldest = r
	} else {
		s.slab.at(l.latest).newer = r
	}
	l.latest = r
}

// unlink takes an entry out of the list of its size.
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

// drop forgets an entry. The last one of the slab takes its place.
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

// move puts an entry in another place, where none is.
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

// link returns where the chain of an entry's hash leads to it; nil if it is the first.
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

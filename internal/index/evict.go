package index

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"svc/internal/mapped"
)

// An index without recent use is evicted: its segments are unmapped, and its cached results dropped. Its outline stays,
// and the next caller that needs the segments opens them again. Views in use are never evicted.

const (
	// keptLoaded is the number of most recently used indexes that stay open however long they are unused, unless memory runs short.
	// So a search after a quiet night is as fast as one before. An eighth of them stay open even then.
	keptLoaded = 64
	// idleTime is how long an index beyond keptLoaded must be unused before it is evicted.
	idleTime = 5 * time.Minute
	// mostLoaded is how many indexes are open at once, not counting those in use and short excesses. Each takes some 10 KB of heap,
	// and a mapping per segment.
	mostLoaded = 1024
	// evictEvery is how often unused indexes are looked for.
	evictEvery = 15 * time.Second
	// shortTime is how long an index has been unused when it may be evicted because memory runs short.
	shortTime = time.Second
)

// loadedSet is the set of indexes whose segments are open.
type loadedSet struct {
	began time.Time
	kick  chan struct{} // holds one: evictions are due

	kept, most int // keptLoaded and mostLoaded, but in tests

	mu      sync.Mutex
	indexes map[*Index]struct{}
}

// init prepares the set. Tests pass other limits than the constants.
func (s *loadedSet) init(kept, most int) {
	s.began, s.kick, s.kept, s.most = time.Now(), make(chan struct{}, 1), kept, most
	s.indexes = make(map[*Index]struct{})
}

// clock returns the time in nanoseconds since the set was made.
func (s *loadedSet) clock() int64 { return int64(time.Since(s.began)) }

// add takes up an index, and has others evicted soon if too many are open.
func (s *loadedSet) add(ix *Index) {
	s.mu.Lock()
	s.indexes[ix] = struct{}{}
	n := len(s.indexes)
	s.mu.Unlock()
	if n > s.most || mapped.Scarce() {
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
}

func (s *loadedSet) remove(ix *Index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.indexes, ix)
}

// byUse returns the indexes of the set, that which was used longest ago first.
func (s *loadedSet) byUse() []*Index {
	type use struct {
		ix *Index
		at int64
	}
	s.mu.Lock()
	uses := make([]use, 0, len(s.indexes))
	for ix := range s.indexes {
		uses = append(uses, use{ix, ix.used.Load()})
	}
	s.mu.Unlock()
	slices.SortFunc(uses, func(a, b use) int { return cmp.Compare(a.at, b.at) })
	indexes := make([]*Index, len(uses))
	for i, u := range uses {
		indexes[i] = u.ix
	}
	return indexes
}

// evictions evicts indexes when they are idle or too many. It ends with ctx.
func (c *Catalog) evictions(ctx context.Context) {
	t := time.NewTicker(evictEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			c.evictIdle(c.loaded.clock(), c.short())
		case <-c.loaded.kick:
			c.evictIdle(c.loaded.clock(), false)
		}
	}
}

// short reports whether memory runs short, as far as the options say.
func (c *Catalog) short() bool { return c.options.MemoryShort != nil && c.options.MemoryShort() }

// evictIdle evicts the indexes beyond keptLoaded that were unused for long, and those above the maximum. If memory is short, it
// evicts an eighth of all unused indexes. Their memory is free only after a garbage collection, so the next round decides about the
// next eighth.
func (c *Catalog) evictIdle(now int64, short bool) {
	s := &c.loaded
	indexes := s.byUse()
	excess := 0
	if n := len(indexes); n > s.most || mapped.Scarce() {
		excess = n - min(n, s.most)*7/8 // so that it is not due again at once
	}
	share := 0
	if short {
		share = (len(indexes) + 7) / 8
	}
	for i, ix := range indexes {
		idle := time.Duration(now - ix.used.Load())
		later := len(indexes) - i - 1 // were used later
		switch {
		case excess > 0:
		case later >= s.kept && idle > idleTime:
		case share > 0 && later >= max(s.kept/8, 1) && idle > shortTime:
		default:
			return
		}
		if ix.evict() {
			excess--
			share--
		}
	}
}

// evictSome evicts as many indexes as possible, because the process gets no more memory or mappings. It reports whether it evicted
// any.
func (c *Catalog) evictSome() (some bool) {
	indexes := c.loaded.byUse()
	for _, ix := range indexes[:(len(indexes)+3)/4] {
		some = ix.evict() || some
	}
	return some
}

// visit records whether an index is open, for background work that must leave it so. The returned function evicts the
// index if it was closed before and nothing else has used it since.
func (ix *Index) visit() (leave func()) {
	if !ix.current.Load().evicted {
		return func() {}
	}
	used := ix.used.Load()
	return func() {
		if ix.used.Load() == used {
			ix.evict()
		}
	}
}

// evict closes the segments of an unused index. It returns false if the index is in use, or must stay open to keep
// reporting known damage.
func (ix *Index) evict() bool {
	if !ix.writing.TryLock() {
		return false
	}
	defer ix.writing.Unlock()
	if ix.merges.count() > 0 {
		return false
	}
	if !ix.committing.TryLock() {
		return false
	}
	defer ix.committing.Unlock()
	v := ix.current.Load()
	if v.evicted || ix.committing.closed || ix.unsure.Load() || slices.ContainsFunc(v.files, (*file).isDamaged) {
		return false
	}
	// From here until the next view, or until the count is back to one, this view cannot be taken.
	if !v.refs.CompareAndSwap(1, 0) {
		return false
	}
	if v.expiring != nil {
		v.expiring.drop()
	}
	if slices.ContainsFunc(v.files, func(f *file) bool { return f.refs.Load() > 1 }) { // an inspection reads it
		v.refs.Store(1)
		return false
	}
	ix.evictLocked(v)
	v.end()
	return true
}

// evictLocked closes the index, except for its last view, which the caller releases. writing and committing are held.
func (ix *Index) evictLocked(v *View) {
	ix.current.Store(&View{Outline: v.Outline, evicted: true})
	ix.committing.tombstones, ix.writing.ids = nil, nil
	ix.catalog.loaded.remove(ix)
}

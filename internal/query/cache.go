package query

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/segment"
)

// Cache holds results of searches on one set of segments. A result that depends on one segment alone, whichever of its rows are
// deleted, is cached with the segment and serves later sets, too. A result that needs all segments is cached with the set.
type Cache struct {
	prepared  atomic.Pointer[prepared]
	preparing sync.Mutex

	memory   *resultcache.Cache
	own      *resultcache.Scope
	segments []*resultcache.Scope
}

// NewCache returns the cache of a set of segments. segments are the scopes of these in their order. A segment without one gets one that
// ends with the set.
func NewCache(memory *resultcache.Cache, segments ...*resultcache.Scope) *Cache {
	return &Cache{memory: memory, own: memory.Scope(), segments: slices.Clip(segments)}
}

// Own is the scope of results that take all segments together.
func (c *Cache) Own() *resultcache.Scope { return c.own }

// OfFile returns the scope of the i-th segment for results that do not depend on settings, or nil.
func (c *Cache) OfFile(i int) *resultcache.Scope {
	if i >= len(c.segments) {
		return nil
	}
	return c.segments[i]
}

// Close drops the results that need all segments. The cache must not be used afterwards.
func (c *Cache) Close() { c.own.Close() }

// scopes adds the scopes that segments lack. If none lacks one, it changes nothing, so that OfFile may read them at the same time.
func (c *Cache) scopes(n int) {
	for len(c.segments) < n {
		c.segments = append(c.segments, c.memory.Scope())
	}
}

// SegmentCache caches the results of one segment under the settings of the set.
type SegmentCache struct {
	*resultcache.Scope
	stamp uint32
}

// Key begins a key of the segment. It distinguishes the settings that affect results.
func (c SegmentCache) Key(buf []byte) []byte {
	return binary.LittleEndian.AppendUint32(buf[:0], c.stamp)
}

// OfSegment returns where results of a segment are kept.
func (ix *Index) OfSegment(i int) SegmentCache {
	p := ix.prepared()
	return SegmentCache{ix.Cache.segments[i], p.stamps[i]}
}

// stamp encodes the settings that the results of a segment depend on, apart from what their keys contain.
func (ix *Index) stamp(p *prepared, s segment.Live) []byte {
	content := []byte{flagsOf(p.numbers, p.all == nil, p.exact == nil, ix.Settings.ProximityPrecision == settings.ByAttribute)}
	fields := s.WordFields()
	slices.SortFunc(fields, cmp.Compare[segment.FieldID])
	for _, f := range fields {
		content = binary.LittleEndian.AppendUint16(content, uint16(f))
		content = binary.LittleEndian.AppendUint32(content, uint32(p.weights[f]))
		content = append(content, flagsOf(p.exact != nil && p.exact[f], p.infix != nil && p.infix[f]))
	}
	return content
}

// flagsOf returns a bit for each.
func flagsOf(set ...bool) (flags byte) {
	for i, on := range set {
		if on {
			flags |= 1 << i
		}
	}
	return flags
}

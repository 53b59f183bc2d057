package index

import (
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/shard"
	"svc/segment"
)

// SetShards says into which shards the documents of all indexes fall; nil: into none. Filters know these shards.
func (c *Catalog) SetShards(r *shard.Ring) { c.shards.Store(r) }

// Shards returns what SetShards was given last.
func (v *View) Shards() *shard.Ring { return v.shardsOf.shards.Load() }

// Shard returns a function that finds the documents of a shard in a segment of the view, or nil if the ring, which may be nil, has no
// such shard. The bitmaps that it returns are shared, and may include deleted rows.
func (v *View) Shard(r *shard.Ring, name string) func(segment.Live) *roaring.Bitmap {
	if r == nil {
		return nil
	}
	i, ok := slices.BinarySearch(r.Names(), name)
	if !ok {
		return nil
	}
	return func(s segment.Live) *roaring.Bitmap {
		for _, f := range v.files {
			if f.Reader == s.Reader {
				return f.shards(r)[i]
			}
		}
		return roaring.New()
	}
}

// keptRings is how many rings a segment remembers its rows of: that before a change of the network and that after it.
const keptRings = 2

// shardRows remembers which rows of a segment fall into which shard. That never changes, so it is worked out once.
type shardRows struct {
	mu    sync.Mutex
	rings []shardedRows // the latest last
}

// shardedRows are the rows of a segment by shard, for one set of shards.
type shardedRows struct {
	ring *shard.Ring
	rows []*roaring.Bitmap // by shard
}

// shards returns the rows of each shard of a ring.
func (f *file) shards(r *shard.Ring) []*roaring.Bitmap {
	f.sharded.mu.Lock()
	defer f.sharded.mu.Unlock()
	for _, known := range f.sharded.rings {
		if known.ring == r || slices.Equal(known.ring.Names(), r.Names()) {
			return known.rows
		}
	}
	rows := make([]*roaring.Bitmap, len(r.Names()))
	for i := range rows {
		rows[i] = roaring.New()
	}
	for row := range f.Rows() {
		rows[r.Owner(f.ExternalID(segment.Row(row)))].Add(uint32(row))
	}
	for i := range rows {
		rows[i].RunOptimize()
	}
	if len(f.sharded.rings) == keptRings {
		f.sharded.rings = f.sharded.rings[1:]
	}
	f.sharded.rings = append(slices.Clone(f.sharded.rings), shardedRows{r, rows})
	return rows
}

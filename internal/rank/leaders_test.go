package rank

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/resultcache"
)

// TestPagesAreRememberedAcrossViews asks the same in views that come one after another: each has lost a document of a page that was
// shown, and most have another small segment. What comes is what a view finds that remembers nothing.
func TestPagesAreRememberedAcrossViews(t *testing.T) {
	defer func(rows, hits int) { leadRows, leadHits = rows, hits }(leadRows, leadHits)
	leadRows, leadHits = 6, 6
	for seed := range uint64(3) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 3))}
		m.vocabulary()
		docs := m.documents(300)
		m.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		parts := [][]*document{docs[:150], docs[150:250]}
		for rest := docs[250:]; len(rest) > 0; rest = rest[5:] {
			parts = append(parts, rest[:5])
		}
		c := build(t, parseSettings(t, `{"searchableAttributes":["title","body","tags"]}`), parts, nil)
		memory := resultcache.New(16 << 20)
		shelves := make([]*resultcache.Shelf, len(c.Segments))
		for i := range shelves {
			shelves[i] = memory.Shelf()
		}
		var requests []*Request
		for range 40 {
			r := &Request{Query: m.query(), Strategy: query.Strategy(m.IntN(3)), MaxTotal: 1000, Limit: 1 + m.IntN(7), Exhaustive: m.chance(20)}
			r.Scores = m.chance(10)
			requests = append(requests, r)
		}
		for round := range 14 {
			n := max(2, min(round-4, len(c.Segments))) // at first without small ones
			view := *c
			view.Segments = c.Segments[:n:n]
			fresh := view
			view.Cache, fresh.Cache = query.NewCache(memory, shelves[:n]...), query.NewCache(resultcache.New(16<<20))
			var shown []Hit
			for _, r := range requests {
				got, err := Search(context.Background(), &view, r)
				if err != nil {
					t.Fatal(err)
				}
				want, err := Search(context.Background(), &fresh, r)
				if err != nil {
					t.Fatal(err)
				}
				if a, b := fmt.Sprint(found(got), got.Total), fmt.Sprint(found(want), want.Total); a != b {
					t.Fatalf("seed %d, %d segments, %q, limit %d: %s, want %s", seed, n, r.Query, r.Limit, a, b)
				}
				shown = append(shown, got.Hits...)
			}
			view.Cache.Close()
			if len(shown) > 0 {
				h := shown[m.IntN(len(shown))]
				s := &c.Segments[h.Segment]
				gone := roaring.New()
				if s.Deleted != nil {
					gone = s.Deleted.Clone()
				}
				gone.Add(uint32(h.Row))
				s.Deleted = gone
			}
		}
	}
}

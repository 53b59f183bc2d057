package query

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
)

// TestUnion compares unions with the library's.
func TestUnion(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		rows := 1 + r.IntN(200_000)
		set := func() *roaring.Bitmap {
			b := roaring.New()
			for range r.IntN(3) {
				from := r.IntN(rows)
				b.AddRange(uint64(from), uint64(min(rows, from+r.IntN(3000))))
			}
			for range r.IntN(1000) {
				b.Add(uint32(r.IntN(rows)))
			}
			if r.IntN(2) == 0 {
				b.RunOptimize()
			}
			return b
		}
		a, b := set(), set()
		before := a.Clone()
		if got, want := Union(a, b, rows), roaring.Or(a, b); !got.Equals(want) {
			t.Fatalf("%d rows of %d and %d, want %d", got.GetCardinality(), a.GetCardinality(), b.GetCardinality(), want.GetCardinality())
		}
		if !a.Equals(before) {
			t.Fatal("an operand was modified")
		}
	}
}

// TestDenseRows compares rows collected in bits with rows collected in sets.
func TestDenseRows(t *testing.T) {
	defer func(share, grown int) { denseShare, rowsGrown = share, grown }(denseShare, rowsGrown)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	variations := [][2]int{{0, 64}, {0, 1}, {0, 1 << 30}, {1 << 30, 64}, {1 << 30, 1}} // of denseShare and rowsGrown
	for _, name := range slices.Sorted(maps.Keys(denseSettings)) {
		t.Run(name, func(t *testing.T) {
			docs, words := denseDocs(rnd, 300)
			whole := fieldsIndex(t, denseSettings[name], docs)
			for range 10 {
				q := words[rnd.IntN(len(words))] + " " + words[rnd.IntN(len(words))]
				fields := denseFields(rnd)
				var first *Graph
				for _, v := range variations {
					denseShare, rowsGrown = v[0], v[1]
					ix := *whole
					ix.Cache = NewCache(resultcache.New(64 << 20))
					g, err := ix.Build(context.Background(), ix.read(q), fields, never)
					if err != nil {
						t.Fatal(err)
					}
					if first == nil {
						first = g
					}
					for n := range g.Nodes {
						if what := different(&ix, &first.Nodes[n], &g.Nodes[n]); what != "" {
							t.Fatalf("%s in %v, %v: node %d: %s", q, fields, v, n, what)
						}
						for _, s := range g.Nodes[n].Segments {
							if s.At[0].Intersects(s.At[1]) || s.At[0].Intersects(s.At[2]) || s.At[1].Intersects(s.At[2]) ||
								!roaring.FastOr(s.At[0], s.At[1], s.At[2]).Equals(s.Any) {
								t.Fatalf("%s in %v, %v: node %d: the levels are not a partition of its rows", q, fields, v, n)
							}
						}
					}
				}
			}
		})
	}
}

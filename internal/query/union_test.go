package query

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestUnion compares with the library's union.
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

// TestDenseRows compares rows that are made with a bit for each with such as are made of sets.
func TestDenseRows(t *testing.T) {
	defer func(n int) { rowsGrown = n }(rowsGrown)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	docs := make([]string, 400)
	for i := range docs {
		for range 5 {
			for range 2 + rnd.IntN(4) {
				docs[i] += "abcd"[rnd.IntN(4):][:1]
			}
			docs[i] += " "
		}
	}
	const update = `{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":2,"twoTypos":4}}}`
	words := strings.Fields(strings.Join(docs, " "))
	for range 20 {
		q := words[rnd.IntN(len(words))] + " " + words[rnd.IntN(len(words))]
		var graphs [2]*Graph
		var ix *Index
		for k, n := range []int{1, 1 << 30} {
			rowsGrown = n
			ix = testIndex(t, update, docs)
			g, err := ix.Build(context.Background(), ix.read(q), nil, never)
			if err != nil {
				t.Fatal(err)
			}
			graphs[k] = g
		}
		for n := range graphs[0].Nodes {
			if what := different(ix, &graphs[0].Nodes[n], &graphs[1].Nodes[n]); what != "" {
				t.Fatalf("%s: node %d: %s", q, n, what)
			}
			for _, g := range graphs {
				for _, s := range g.Nodes[n].Segments {
					if s.At[0].Intersects(s.At[1]) || s.At[0].Intersects(s.At[2]) || s.At[1].Intersects(s.At[2]) ||
						!roaring.FastOr(s.At[0], s.At[1], s.At[2]).Equals(s.Any) {
						t.Fatalf("%s: node %d: levels are not all of its rows, each at one", q, n)
					}
				}
			}
		}
	}
}

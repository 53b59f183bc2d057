package query

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestInvariantsAreChecked violates each invariant once.
func TestInvariantsAreChecked(t *testing.T) {
	ix := testIndex(t, `{}`, []string{"rain over london", "rains", "train", "london rain"})
	graph := func() *Graph {
		t.Helper()
		g, err := ix.Build(context.Background(), ix.read("rain london"), nil, never)
		if err != nil {
			t.Fatal(err)
		}
		g.Terms, g.Nodes = slices.Clone(g.Terms), slices.Clone(g.Nodes)
		for k := range g.Nodes { // matches are shared
			m := *g.Nodes[k].Match
			m.Segments = slices.Clone(m.Segments)
			g.Nodes[k].Match = &m
		}
		return g
	}
	checkGraph(graph())
	first := func(g *Graph) *SegmentRows { return &g.Nodes[0].Segments[0] }
	for want, breach := range map[string]func(g *Graph){
		"a graph has 11 terms":                     func(g *Graph) { g.Terms = make([]Term, MaxTerms+1) },
		"term 1 stands from 0":                     func(g *Graph) { g.Terms[1].Start = 0 },
		"node 0 covers terms 0 to 3 of 2":          func(g *Graph) { g.Nodes[0].Len = 3 },
		"node 1 covers terms from 0, comes behind": func(g *Graph) { g.Nodes[0], g.Nodes[1] = g.Nodes[1], g.Nodes[0] },
		"matches in 1 segments of 2":               func(g *Graph) { g.Nodes[0].Segments = g.Nodes[0].Segments[:1] },
		"at level 0, which nobody looked for":      func(g *Graph) { g.Nodes[0].Sought = 0 },
		"has rows of segment 0 at two levels":      func(g *Graph) { first(g).At[1] = first(g).At[0] },
		"rows of segment 0, and 0 at its levels":   func(g *Graph) { first(g).At = [Levels]*roaring.Bitmap{noRows, noRows, noRows} },
		"has a row of segment 0, which has 2":      func(g *Graph) { first(g).Word = roaring.BitmapOf(2) },
		"has rows of segment 0 without a number":   func(g *Graph) { g.Nodes[0].Segments[0].Piece = 0 },
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			}()
			g := graph()
			breach(g)
			checkGraph(g)
		}()
	}
}

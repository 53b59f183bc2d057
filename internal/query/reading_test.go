package query

import (
	"context"
	"strings"
	"testing"

	"svc/internal/text"
)

// TestNodesOfReadingsAreBounded checks that readings of more than maxGram terms get nodes of their own, at most maxJoined in a graph.
func TestNodesOfReadingsAreBounded(t *testing.T) {
	query := "a b c d e f g h i j"
	ix := testIndex(t, `{"prefixSearch":"disabled"}`, []string{"as it was", query})
	ix.Older = []*text.Analyzer{ix.Analyzer}
	for most := range MaxTerms {
		terms := ix.read(query)
		for i := range terms.Terms {
			for n := maxGram + 1; i+n <= len(terms.Terms) && len(terms.readings) < most; n++ {
				terms.readings = append(terms.readings, reading{i, n, []string{"as", "it", "was"}})
			}
		}
		g, err := ix.Build(context.Background(), terms, nil, never)
		if err != nil {
			t.Fatal(err)
		}
		checkGraph(g)
		joined := 0
		for k := range g.Nodes {
			v := &g.Nodes[k]
			if v.Len <= maxGram {
				continue
			}
			joined++
			if !v.Segments[0].At[0].Contains(0) {
				t.Errorf("terms %d to %d are not found as %q", v.Term, v.Term+v.Len-1, strings.Join(terms.readings[0].words, " "))
			}
		}
		if want := min(most, maxJoined); joined != want || len(g.Nodes) != MaxNodes-maxJoined+want {
			t.Errorf("with %d readings there are %d nodes, %d of more than %d terms, want %d", most, len(g.Nodes), joined, maxGram, want)
		}
	}
}

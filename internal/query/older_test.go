package query

import (
	"context"
	"strings"
	"testing"

	"svc/internal/text"
)

// Older readings of more than maxGram terms have nodes of their own, of which a graph has room for maxOlder, beside all others.
func TestNodesOfOlderReadingsAreBounded(t *testing.T) {
	query := "a b c d e f g h i j"
	ix := testIndex(t, `{"prefixSearch":"disabled"}`, []string{"as it was", query})
	ix.Older = []*text.Analyzer{ix.Analyzer}
	for most := range MaxTerms {
		terms := ix.read(query)
		for i := range terms.Terms {
			for n := maxGram + 1; i+n <= len(terms.Terms) && len(terms.older) < most; n++ {
				terms.older = append(terms.older, olderReading{i, n, []string{"as", "it", "was"}})
			}
		}
		g, err := ix.Build(context.Background(), terms, nil, never)
		if err != nil {
			t.Fatal(err)
		}
		checkGraph(g)
		older := 0
		for k := range g.Nodes {
			v := &g.Nodes[k]
			if v.Len <= maxGram {
				continue
			}
			older++
			if !v.Segments[0].At[0].Contains(0) {
				t.Errorf("terms %d to %d are not found as %q", v.Term, v.Term+v.Len-1, strings.Join(terms.older[0].words, " "))
			}
		}
		if want := min(most, maxOlder); older != want || len(g.Nodes) != MaxNodes-maxOlder+want {
			t.Errorf("with %d older readings there are %d nodes, %d of more than %d terms, want %d", most, len(g.Nodes), older, maxGram, want)
		}
	}
}

package query

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the scripts of testdata/scripts: queries, and the graphs that they become. With -rewrite the scripts get what the
// queries become.
//
//	index
//	the settings, on a line
//	texts, a line each; the second half of them is another segment
//
//	graph
//	the query; nodes are shown with the rows of each segment at each level
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var ix *Index
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "index":
				settings, texts, _ := strings.Cut(d.Input, "\n")
				ix = testIndex(t, settings, strings.Split(texts, "\n"))
				return fmt.Sprintf("%d segments\n", len(ix.Segments))
			case "graph":
				return scriptGraph(t, ix, d.Input)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func scriptGraph(t *testing.T, ix *Index, query string) string {
	terms := ix.read(query)
	g, err := ix.Build(context.Background(), terms, nil, never)
	if err != nil {
		t.Fatal(err)
	}
	checkGraph(g)
	var b strings.Builder
	for i := range g.Terms {
		term := &g.Terms[i]
		fmt.Fprintf(&b, "term %d: %q", i, term.Word)
		if term.IsPhrase() {
			fmt.Fprintf(&b, " phrase %q", term.Phrase)
		}
		if term.Prefix {
			b.WriteString(" prefix")
		}
		fmt.Fprintf(&b, " at %d-%d\n", term.Start, term.End)
	}
	for k := range g.Nodes {
		v := &g.Nodes[k]
		fmt.Fprintf(&b, "terms %d-%d:", v.Term, v.Term+v.Len-1)
		for level := range Levels {
			var found []string
			for seg := range v.Segments {
				for _, row := range v.Segments[seg].At[level].ToArray() {
					found = append(found, fmt.Sprintf("%d.%d", seg, row))
				}
			}
			if found != nil {
				fmt.Fprintf(&b, " level %d %s", level, strings.Join(found, " "))
			}
		}
		b.WriteString("\n")
	}
	for _, w := range terms.NegativeWords {
		fmt.Fprintf(&b, "without %q\n", w)
	}
	for _, p := range terms.NegativePhrases {
		fmt.Fprintf(&b, "without phrase %q\n", p)
	}
	for seg, x := range g.Excluded {
		if !x.IsEmpty() {
			fmt.Fprintf(&b, "excluded %d: %d\n", seg, x.ToArray())
		}
	}
	return b.String()
}

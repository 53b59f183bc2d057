package rank

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the scripts of testdata/scripts: what a search is, the access paths that it takes, and its hits. With -rewrite the
// scripts get what the searches give.
//
//	index [copies=1] [segments=1]
//	the settings, on a line
//	documents, a line each; of several copies, the first copies of all come first
//
//	search [limit=3] [offset=0] [sort=field:asc] [distinct=field] [scores] [hits-only] [times=1]
//	the query; of several times, the last one is shown
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var ix *Index
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "index":
				ix = scriptIndex(t, d)
				return fmt.Sprintf("%d segments\n", len(ix.Segments))
			case "search":
				return scriptSearch(t, ix, d)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func scriptIndex(t *testing.T, d *datadriven.TestData) *Index {
	copies, segments := 1, 1
	d.MaybeScanArgs(t, "copies", &copies)
	d.MaybeScanArgs(t, "segments", &segments)
	settings, lines, _ := strings.Cut(d.Input, "\n")
	var docs []*document
	for range copies {
		for line := range strings.Lines(lines) {
			var values map[string]any
			if err := json.Unmarshal([]byte(line), &values); err != nil {
				d.Fatalf(t, "%s: %v", line, err)
			}
			var pairs []any
			for _, f := range slices.Sorted(maps.Keys(values)) {
				all, several := values[f].([]any)
				if !several {
					all = []any{values[f]}
				}
				for _, v := range all {
					if x, ok := v.(float64); ok {
						v = int(x)
					}
					pairs = append(pairs, f, v)
				}
			}
			docs = append(docs, doc(len(docs), pairs...))
		}
	}
	each := (len(docs) + segments - 1) / segments
	return build(t, parseSettings(t, settings), slices.Collect(slices.Chunk(docs, each)), nil)
}

func scriptSearch(t *testing.T, ix *Index, d *datadriven.TestData) string {
	r := &Request{Query: d.Input, Limit: 3, MaxTotal: 1000, Scores: d.HasArg("scores"), HitsOnly: d.HasArg("hits-only")}
	d.MaybeScanArgs(t, "limit", &r.Limit)
	d.MaybeScanArgs(t, "offset", &r.Offset)
	d.MaybeScanArgs(t, "distinct", &r.Distinct)
	var sort string
	if d.MaybeScanArgs(t, "sort", &sort) {
		field, order, _ := strings.Cut(sort, ":")
		r.Sort = []SortKey{{Field: field, Desc: order == "desc"}}
	}
	times := 1
	d.MaybeScanArgs(t, "times", &times)
	var result *Result
	for range times {
		r.Plan = new(Plan)
		var err error
		if result, err = Search(context.Background(), ix, r); err != nil {
			return err.Error() + "\n"
		}
	}
	var b strings.Builder
	for _, s := range r.Plan.Steps {
		fmt.Fprintf(&b, "%-15s %s: %d of %d\n", s.Rule, s.Path, s.Out, s.In)
	}
	fmt.Fprintf(&b, "%d hits of %d:", len(result.Hits), result.Total)
	for _, h := range result.Hits {
		fmt.Fprintf(&b, " %d", h.ID)
		if r.Scores {
			fmt.Fprintf(&b, " (%.4f)", h.Score)
		}
	}
	return b.String() + "\n"
}

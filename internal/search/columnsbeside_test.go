package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// grown is an index that counts its batches.
type grown struct {
	t     *testing.T
	fs    vfs.FS
	ix    *index.Index
	batch uint64
}

func newGrown(t *testing.T) *grown {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("payloads"); err != nil {
		t.Fatal(err)
	}
	catalog, err := index.OpenCatalog("indexes", index.Options{FS: fs, MaxIndexingThreads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { catalog.Close() })
	ix, err := catalog.Create("grown", "id", 0)
	if err != nil {
		t.Fatal(err)
	}
	return &grown{t, fs, ix, 0}
}

func (g *grown) apply(op index.Op) {
	g.t.Helper()
	g.batch++
	results, err := g.ix.Apply(context.Background(), g.batch, []index.Op{op}, nil)
	if err == nil && results[0].Err != nil {
		err = results[0].Err
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *grown) set(filterable, sortable []string) {
	g.t.Helper()
	body, err := json.Marshal(map[string]any{"filterableAttributes": filterable, "sortableAttributes": sortable})
	if err != nil {
		g.t.Fatal(err)
	}
	u, err := settings.ParseUpdate(body, settings.Features{})
	if err != nil {
		g.t.Fatal(err)
	}
	g.apply(index.UpdateSettings{Update: u})
}

func (g *grown) add(docs []map[string]any) {
	g.t.Helper()
	var lines bytes.Buffer
	for _, doc := range docs {
		raw, err := json.Marshal(doc)
		if err != nil {
			g.t.Fatal(err)
		}
		lines.Write(append(raw, '\n'))
	}
	name := fmt.Sprint("payloads/", g.batch+1)
	if err := vfs.WriteFile(g.fs, name, lines.Bytes()); err != nil {
		g.t.Fatal(err)
	}
	g.apply(index.AddDocuments{Payload: name, Documents: len(docs)})
}

var times = regexp.MustCompile(`"processingTimeMs":\d+`)

func (g *grown) ask(r *Request) string {
	g.t.Helper()
	v := held(g.ix.View())
	defer v.Release()
	return g.answer(v, r)
}

// answer is ask for a view.
func (g *grown) answer(v *index.View, r *Request) string {
	g.t.Helper()
	resp, err := Search(context.Background(), v, r)
	if err != nil {
		g.t.Fatal(err)
	}
	body, err := resp.AppendJSON(context.Background(), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return times.ReplaceAllString(string(body), "")
}

// TestAttributesAddedLater compares an index whose filterable and sortable attributes are added by settings changes, between changes and
// merges of documents, with an index that has had them from the start.
func TestAttributesAddedLater(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	a, b := "a", "b"
	faceted := 0 // rounds
	for round := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, round))
		grew, had := newGrown(t), newGrown(t)
		all := []string{"a", "b", "id"}
		had.set(all, all)
		for step := range 14 {
			do := r.IntN(6)
			if step == 13 { // some documents exist
				do = 5
			}
			switch do {
			case 0, 1:
				some := func() []string { return all[:r.IntN(4)] }
				r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				grew.set(some(), some())
			case 2:
				grew.batch++
				if _, _, err := grew.ix.Compact(context.Background(), grew.batch, nil); err != nil {
					t.Fatal(err)
				}
			case 3:
				ids := []string{fmt.Sprint(r.IntN(80)), fmt.Sprint(r.IntN(80)), fmt.Sprint(r.IntN(80))}
				grew.apply(index.DeleteDocuments{IDs: ids})
				had.apply(index.DeleteDocuments{IDs: ids})
			default:
				var docs []map[string]any
				for range 1 + r.IntN(40) {
					docs = append(docs, randomDocument(r))
				}
				grew.add(docs)
				had.add(docs)
			}
		}
		grew.set(all, all)
		for _, where := range []string{"", "a = lyon", "a > 1 OR b < 1", "b IN [oslo, 0, 10] AND a != true", "a IS NULL", "b IS EMPTY OR a EXISTS", "id >= 40", "a STARTS WITH l"} {
			var e *filter.Expr
			if where != "" {
				var err error
				if e, err = filter.Parse(where); err != nil {
					t.Fatal(err)
				}
			}
			for _, more := range []Request{
				{Facets: []string{"*"}}, {Sort: []string{"a:asc", "b:desc"}}, {Sort: []string{"id:desc"}, Facets: []string{"b"}}, {Distinct: &a, Facets: []string{"a"}}, {Distinct: &b, Sort: []string{"b:asc"}},
			} {
				more.Filter, more.Limit = e, 100
				got, want := grew.ask(&more), had.ask(&more)
				if got != want {
					t.Fatalf("round %d, %q, facets %v, sort %v, distinct %v:\ngot  %s\nwant %s", round, where, more.Facets, more.Sort, more.Distinct != nil, got, want)
				}
			}
		}
		if strings.Contains(had.ask(&Request{Facets: []string{"a"}, Limit: 1}), `"a":{`) { // few documents may all lack the facet
			faceted++
		}
	}
	if faceted < 6 {
		t.Errorf("only %d rounds have facets", faceted)
	}
}

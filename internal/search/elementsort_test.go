package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/scroll"
	"svc/internal/settings"
)

// modelSorted is the sort key of a document: numbers come before texts, texts before missing values.
type modelSorted struct {
	class  int
	number int
	text   string
}

func (v modelSorted) compare(o modelSorted, desc bool) int {
	c := cmp.Or(cmp.Compare(v.number, o.number), cmp.Compare(v.text, o.text))
	if desc {
		c = -c
	}
	return cmp.Or(cmp.Compare(v.class, o.class), c)
}

// modelElementSort returns the sort key of a document: the first value at a path of the objects at scope that pass the test.
func modelElementSort(doc map[string]any, scope, path string, test modelTest, desc bool) modelSorted {
	first := modelSorted{class: 2}
	for _, o := range objectsAt(doc, "", scope) {
		if !test(o) {
			continue
		}
		values, _ := valuesAt(o, "", path, false)
		for _, v := range values {
			is := modelSorted{class: 2}
			switch x := v.value.(type) {
			case int:
				is = modelSorted{class: 0, number: x}
			case string:
				if x != "" {
					is = modelSorted{class: 1, text: strings.ToLower(x)}
				}
			}
			if is.compare(first, desc) < 0 {
				first = is
			}
		}
	}
	return first
}

// TestSortByObjects compares the order of random documents with the order of the values of their objects that pass a random filter.
func TestSortByObjects(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	sorted, nothing := 0, 0
	for round := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, round))
		g := newGrown(t)
		u, err := settings.ParseUpdate([]byte(elementRules), settings.Features{})
		if err != nil {
			t.Fatal(err)
		}
		g.apply(index.UpdateSettings{Update: u})
		halves := []*grown{newGrown(t), newGrown(t)} // documents of even and odd ids, as on two machines
		for _, h := range halves {
			h.apply(index.UpdateSettings{Update: u})
		}
		docs := map[int]map[string]any{99: everyElementField}
		g.add([]map[string]any{everyElementField})
		halves[1].add([]map[string]any{everyElementField})
		for range 5 {
			var batch []map[string]any
			var parts [2][]map[string]any
			for range 1 + r.IntN(15) {
				doc := randomElements(r, r.IntN(40))
				id := doc["id"].(int)
				docs[id] = doc
				batch, parts[id%2] = append(batch, doc), append(parts[id%2], doc)
			}
			g.add(batch)
			for i, part := range parts {
				if len(part) > 0 {
					halves[i].add(part)
				}
			}
		}
		places := scroll.NewStore([]byte("x"), time.Now)
		f := &elementFilters{r: r, geo: true}
		for range 40 {
			scope := []string{"v", "v", "v.s"}[r.IntN(3)]
			text, test := f.inside(scope, 3)
			paths := []string{"c", "n"}
			if scope == "v" {
				paths = []string{"c", "n", "s.n", "s.c", "d.e"}
			}
			path, desc := paths[r.IntN(len(paths))], r.IntN(2) == 0
			sort := scope + ".{" + text + "}." + path + map[bool]string{false: ":asc", true: ":desc"}[desc]
			var want []modelSorted
			for _, doc := range docs {
				want = append(want, modelElementSort(doc, scope, path, test, desc))
			}
			slices.SortFunc(want, func(a, b modelSorted) int { return a.compare(b, desc) })
			check := func(what string, body []byte) {
				var answer struct{ Hits, Results []struct{ ID int } }
				if err := json.Unmarshal(body, &answer); err != nil {
					t.Fatalf("%v: %s", err, body)
				}
				var got []modelSorted
				for _, h := range append(answer.Hits, answer.Results...) {
					got = append(got, modelElementSort(docs[h.ID], scope, path, test, desc))
				}
				if !slices.Equal(got, want) {
					t.Fatalf("round %d, %s by %s:\ngot  %v\nwant %v\n%s", round, what, sort, got, want, body)
				}
			}
			v := held(g.ix.View())
			func() {
				defer v.Release()
				ctx := context.Background()
				check("search", got(got(Search(ctx, v, &Request{Sort: []string{sort}, Limit: 100, Contains: true})).AppendJSON(ctx, nil)))
				check("fetch", got(Fetch(ctx, nil, v, &FetchRequest{Sort: []string{sort}, Limit: 100, Contains: true})))
				one := FederatedQuery{View: v, Request: &Request{Sort: []string{sort}, Contains: true}, Weight: 1}
				two := one
				two.Position = 1
				check("two queries", got(got(Federate(ctx, &FederatedRequest{Limit: 100, Queries: []FederatedQuery{one, two}}, oneByOne)).AppendJSON(ctx, nil)))

				for _, fetches := range []bool{false, true} {
					var all struct{ Hits []json.RawMessage }
					for cursor := new(string); cursor != nil; {
						at, limit := &Cursor{Text: *cursor, Places: places}, 1+r.IntN(12)
						var page struct {
							Hits, Results []json.RawMessage
							NextCursor    *string
						}
						var body []byte
						if fetches {
							body = got(Fetch(ctx, nil, v, &FetchRequest{Sort: []string{sort}, Limit: limit, Contains: true, Cursor: at}))
						} else {
							body = got(got(Search(ctx, v, &Request{Sort: []string{sort}, Limit: limit, Contains: true, Cursor: at})).AppendJSON(ctx, nil))
						}
						if err := json.Unmarshal(body, &page); err != nil {
							t.Fatalf("%v: %s", err, body)
						}
						all.Hits = append(append(all.Hits, page.Hits...), page.Results...)
						cursor = page.NextCursor
					}
					check(fmt.Sprintf("cursors, fetches %v", fetches), got(json.Marshal(all)))
				}

				// One machine queries the other.
				var queries [2][]FederatedQuery
				for i, h := range halves {
					half := held(h.ix.View())
					defer half.Release()
					queries[i] = []FederatedQuery{{View: half, Request: one.Request, Weight: 1, Position: 10 * i}}
				}
				network := FederatedRequest{Limit: 100, Networked: true, Self: "0", Queries: queries[0]}
				network.Remotes = func(context.Context) []*RemoteAnswer {
					asked := network.Asked(nil, 1, false)
					peer := FederatedRequest{Limit: 100, Proxy: true, Networked: true, Queries: queries[1]}
					return []*RemoteAnswer{got(ParsePeer("1", got(got(Federate(ctx, &peer, oneByOne)).AppendPeer(ctx, nil)), &asked, new(Reading)))}
				}
				check("two machines", got(got(Federate(ctx, &network, oneByOne)).AppendJSON(ctx, nil)))
			}()
			for _, w := range want {
				if w.class == 2 {
					nothing++
				} else {
					sorted++
				}
			}
		}
	}
	if sorted == 0 || nothing == 0 {
		t.Errorf("%d documents with values, %d without", sorted, nothing)
	}
}

// TestWrongSortsByObjects checks the errors of invalid sorts.
func TestWrongSortsByObjects(t *testing.T) {
	g := newGrown(t)
	u, err := settings.ParseUpdate([]byte(elementRules), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	g.apply(index.UpdateSettings{Update: u})
	g.add([]map[string]any{everyElementField, {"id": 1, "w": []any{map[string]any{"n": 1}}}})
	v := held(g.ix.View())
	defer v.Release()
	for _, tt := range []struct{ sort, says string }{
		{"w.{n = 1}.n:asc", "elements"},
		{"v.{n = 1}:asc", "no attribute behind the braces"},
		{"v.{n = 1}.:asc", "no attribute behind the braces"},
		{"v.{n = }.n:asc", "1:8: Expected a value"},
		{"v.{n = 1.n:asc", "no attribute behind the braces"},
		{"v.{n = 1} OR id = 1 AND v.{n = 1}.n:asc", "A path and braces are needed"},
		{"id = 1 AND v.{n = 1}.n:desc", "A path and braces are needed"},
		{".{n = 1}.n:asc", "needs an attribute before it"},
		{"v.{n = 1}.n", "`:asc` or `:desc`"},
	} {
		_, err := parseSort(t.Context(), v, []string{tt.sort}, false, "invalid_search_sort")
		if e := apierr.From(err); err == nil || e.Code != "invalid_search_sort" || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: %s", tt.sort, fmt.Sprint(err))
		}
	}
}

// TestSortManyByObjects sorts more documents than fit into a list.
func TestSortManyByObjects(t *testing.T) {
	l := newLibrary(t)
	var docs []string
	for id := range 3000 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"v":[{"c":"red","n":%d},{"c":"blue","n":-1}]}`, id, id*7%3000))
	}
	l.put("a", elementRules, docs...)
	v := held(l.c.Get("a").View())
	defer v.Release()
	var answer struct {
		Hits []struct{ V []struct{ N int } }
	}
	body := got(got(Search(t.Context(), v, &Request{Sort: []string{"v.{c = red}.n:desc"}, Limit: 5, Offset: 2})).AppendJSON(t.Context(), nil))
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Hits) != 5 {
		t.Fatalf("%v: %s", err, body)
	}
	for i, h := range answer.Hits {
		if h.V[0].N != 2997-i {
			t.Errorf("hit %d has %d: %s", i, h.V[0].N, body)
		}
	}
}

// TestSortByObjectsWhoseFieldComesLater sorts before and after the first document with a field is added. In between, the top hits of many
// documents are cached.
func TestSortByObjectsWhoseFieldComesLater(t *testing.T) {
	g := newGrown(t)
	g.apply(index.UpdateSettings{Update: got(settings.ParseUpdate([]byte(elementRules), settings.Features{}))})
	var docs []map[string]any
	for id := range 4000 {
		docs = append(docs, map[string]any{"id": id, "t": "shoe", "v": []any{map[string]any{"p": 5000 - id}}})
	}
	g.add(docs)
	check := func(want ...int) {
		t.Helper()
		for range 4 { // first result, computed for the cache, cached
			v := held(g.ix.View())
			ctx := context.Background()
			body := got(got(Search(ctx, v, &Request{Query: "shoe", Sort: []string{"v.{c != 1}.p:asc"}, Limit: 3})).AppendJSON(ctx, nil))
			v.Release()
			var answer struct{ Hits []struct{ ID int } }
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Fatal(err)
			}
			var ids []int
			for _, h := range answer.Hits {
				ids = append(ids, h.ID)
			}
			if !slices.Equal(ids, want) {
				t.Fatalf("got %v, want %v", ids, want)
			}
		}
	}
	check(0, 1, 2) // != matches no object if no document has the field
	g.add([]map[string]any{{"id": 5000, "t": "shoe", "v": []any{map[string]any{"p": 1, "c": 2}}}})
	check(5000, 3999, 3998)
}

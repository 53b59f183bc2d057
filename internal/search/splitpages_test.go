package search

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"svc/internal/index"
	"svc/internal/query"
)

// splitLibrary puts the same documents into two indexes: one gets them at once, and the other in batches, with former versions of some
// documents and with documents that are deleted in the end.
func splitLibrary(t *testing.T, r *rand.Rand, most int) *library {
	l := newLibrary(t)
	words := []string{"red", "hat", "shop", "hats", "rad", "shoe", "redhat", "réd"}
	text := func(n int) string {
		var list []string
		for range 1 + r.IntN(n) {
			list = append(list, words[r.IntN(len(words))])
		}
		return strings.Join(list, []string{" ", ", "}[r.IntN(2)])
	}
	document := func(id int) string {
		doc := map[string]any{"id": id, "t": text(4), "u": text(2), "group": r.IntN(9), "kind": fmt.Sprint("k", r.IntN(3)),
			"tags": []int{r.IntN(20), r.IntN(20)}, "_vectors": map[string]any{"e": []float32{float32(r.IntN(5)) - 2, 1}}}
		if r.IntN(4) > 0 {
			doc["n"] = r.IntN(6)
		}
		if r.IntN(4) > 0 {
			doc["_geo"] = map[string]any{"lat": r.IntN(3), "lng": r.IntN(3)}
		}
		if r.IntN(5) == 0 {
			delete(doc, "group")
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	change := `{"pagination":{"maxTotalHits":` + fmt.Sprint(most) + `},"filterableAttributes":["kind","group","tags","n"],"sortableAttributes":["n","_geo"],"searchableAttributes":["t","u"],
		"embedders":{"e":{"source":"userProvided","dimensions":2}},"synonyms":{"shop":["red hat"]}}`
	l.put("one", change)
	l.put("many", change)
	var final []string
	for id := range 60 {
		final = append(final, document(id))
	}
	l.put("one", "", final...)
	var first, second []string
	for id := range 36 {
		if r.IntN(4) == 0 {
			first, second = append(first, document(id)), append(second, final[id])
		} else {
			first = append(first, final[id])
		}
	}
	l.put("many", "", first...)
	l.put("many", "", append(second, final[36:54]...)...)
	l.put("many", "", append(slices.Clone(final[54:]), document(60), document(61))...)
	l.remove("many", "60", "61")
	v := held(l.c.Get("many").View())
	defer v.Release()
	if len(v.Segments) < 3 {
		t.Fatalf("%d segments", len(v.Segments))
	}
	return l
}

// remove deletes documents.
func (l *library) remove(uid string, ids ...string) {
	l.t.Helper()
	l.batch++
	results := got(l.c.Get(uid).Apply(context.Background(), l.batch, []index.Op{index.DeleteDocuments{IDs: ids}}, nil))
	for _, r := range results {
		if r.Err != nil {
			l.t.Fatal(r.Err)
		}
	}
}

// splitRequest makes a random search.
func splitRequest(t *testing.T, r *rand.Rand) Request {
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	q := Request{Limit: 1000, ShowRankingScore: r.IntN(2) == 0, Facets: []string{"kind", "group"}, HighlightPreTag: "<", HighlightPostTag: ">",
		Query: one("", "", "red", "red hat", "hat shop red", "re", "shop", `"red hat"`, "red -shoe", `red "hat`, "hast", "rehat hat", "hat hat red shop shoe hats rad redhat red hat sho")}
	q.Strategy = []query.Strategy{query.Last, query.All, query.Frequency}[r.IntN(3)]
	if r.IntN(3) == 0 {
		field := one("group", "tags", "kind", "n")
		q.Distinct = &field
	}
	if r.IntN(3) == 0 {
		q.Sort = [][]string{{"n:desc"}, {"n:asc"}, {"_geoPoint(1,1):asc"}, {"_geoPoint(1,1):desc"}, {"n:asc", "_geoPoint(0,1):asc"}}[r.IntN(5)]
	}
	if r.IntN(4) == 0 {
		q.RankingScoreThreshold = threshold(r.Float64())
	}
	if r.IntN(4) == 0 {
		q.Filter = parseFilter(t, one("kind = k1", "n > 2", "NOT tags = 3", "n NOT EXISTS", "group < 6 AND kind != k0"))
	}
	if r.IntN(4) == 0 {
		q.SearchOn = []string{one("t", "u")}
	}
	if r.IntN(3) == 0 {
		ratio := []float64{0.2, 0.5, 0.8, 1}[r.IntN(4)]
		q.Hybrid, q.Vector = &Hybrid{Embedder: "e", Ratio: &ratio}, []float32{r.Float32()*4 - 2, 1}
	}
	if r.IntN(5) == 0 {
		q.GroupBy = &GroupBy{Attribute: one("group", "tags", "kind"), Hits: 1 + r.IntN(3)}
		if r.IntN(3) == 0 {
			q.GroupBy.Sort = []string{"n:desc"}
		}
	}
	var rules []string
	if r.IntN(4) == 0 {
		var pins []pinnedHit[int]
		at := 0
		for range 1 + r.IntN(3) {
			pins = append(pins, pinnedHit[int]{at, r.IntN(70)})
			at += r.IntN(7)
		}
		rules = append(rules, pinning(pins...))
	}
	if r.IntN(5) == 0 {
		rules = append(rules, scaling(`"filter":"`+one("kind = k1", "n > 2", "tags < 5")+`"`, []float64{0.5, 3, 0}[r.IntN(3)]))
	}
	if rules != nil {
		q.Rules = rulesOf(t, rules...)
	}
	return q
}

// splitPage draws a page: its first hit and its size, and for one search in three its number and its size as the search has them.
func splitPage(r *rand.Rand) (offset, limit int, number, size *int) {
	if r.IntN(3) > 0 {
		return r.IntN(12), r.IntN(9), nil, nil
	}
	n, per := 1+r.IntN(4), 1+r.IntN(6)
	return (n - 1) * per, per, &n, &per
}

// splitAnswer has the members of an answer that are compared.
type splitAnswer struct {
	Hits      []map[string]any
	Groups    []map[string]any
	Estimated int                       `json:"estimatedTotalHits"`
	Total     *int                      `json:"totalHits"`
	Facets    map[string]map[string]int `json:"facetDistribution"`
}

// list shows the hits, or the groups.
func (a *splitAnswer) list() (all []string) {
	show := func(h map[string]any) string { return fmt.Sprint(h["id"], " ", h["_rankingScore"]) }
	for _, h := range a.Hits {
		all = append(all, show(h))
	}
	for _, g := range a.Groups {
		s := fmt.Sprint(g["key"], ":", g["count"])
		for _, h := range g["hits"].([]any) {
			s += " " + show(h.(map[string]any))
		}
		all = append(all, s)
	}
	return all
}

func (a *splitAnswer) total() int {
	if a.Total != nil {
		return *a.Total
	}
	return a.Estimated
}

// describeSplit shows a search.
func describeSplit(q *Request) string {
	s := describe(q)
	if q.Distinct != nil {
		s += " distinct " + *q.Distinct
	}
	if q.RankingScoreThreshold != nil {
		s += fmt.Sprint(" threshold ", *q.RankingScoreThreshold)
	}
	if q.GroupBy != nil {
		s += fmt.Sprintf(" group %+v", *q.GroupBy)
	}
	if q.Hybrid != nil {
		s += fmt.Sprint(" ratio ", *q.Hybrid.Ratio, " kind ", q.kind())
	}
	return s + fmt.Sprint(" on ", q.SearchOn, " strategy ", q.Strategy, " filter ", q.Filter)
}

// whole returns the whole answer to a search.
func (l *library) whole(uid string, r Request) string {
	l.t.Helper()
	v := held(l.c.Get(uid).View())
	defer v.Release()
	response, err := Search(context.Background(), v, &r)
	if err != nil {
		l.t.Fatal(err, describeSplit(&r))
	}
	b, err := response.AppendJSON(context.Background(), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(b)
}

// scales reports whether rules scale the scores of some documents.
func (l *library) scales(uid string, q Request) bool {
	v := held(l.c.Get(uid).View())
	defer v.Release()
	k, err := newRanking(context.Background(), v, &q, nil)
	return err == nil && k.parts != nil
}

// TestSplitPages compares pages of random searches with parts of the whole list. An index of one segment and one of several have the
// same answers.
func TestSplitPages(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 3))
	failures, scaledApart := 0, 0
	for n := range 6 {
		most := []int{1000, 25}[n%2]
		l := splitLibrary(t, r, most)
		for range 300 {
			q := splitRequest(t, r)
			ask := func(uid string, q Request) (a splitAnswer) {
				if err := json.Unmarshal([]byte(l.whole(uid, q)), &a); err != nil {
					t.Fatal(err)
				}
				return a
			}
			if q.Rules != nil && q.Distinct != nil && l.scales("one", q) {
				scaledApart++
			}
			all := ask("one", q)
			list := all.list()
			fail := func(kind string, got any, want any) {
				if failures++; failures < 6 {
					t.Errorf("%s: %s\n got %v\nwant %v", kind, describeSplit(&q), got, want)
				}
			}
			estimated := q.Distinct != nil && most < 60
			if !estimated && all.total() != len(list) {
				fail("total", all.total(), len(list))
			}
			many := ask("many", q)
			if !reflect.DeepEqual(many, all) {
				fail("segments", many, all)
			}
			plain := q
			plain.AttributesToHighlight, plain.ShowMatchesPosition, plain.ShowRankingScoreDetails = []string{"*"}, true, true
			plain.ShowRankingScore = q.ShowRankingScore
			if got := ask("many", plain); !slices.Equal(got.list(), list) || got.total() != all.total() || !reflect.DeepEqual(got.Facets, all.Facets) {
				fail("shown", got.list(), list)
			}
			for range 6 {
				page := q
				page.Offset, page.Limit, page.Page, page.HitsPerPage = splitPage(r)
				exhaustive := page.Page != nil
				uid := []string{"one", "many"}[r.IntN(2)]
				facets := r.IntN(2) == 0
				if !facets {
					page.Facets = nil
				}
				want := list[min(page.Offset, len(list)):min(page.Offset+page.Limit, len(list))]
				if page.Limit == 0 && q.Distinct != nil && !exhaustive {
					continue // counts all duplicates
				}
				got := ask(uid, page)
				what := fmt.Sprintf("offset %d limit %d paged %v %s", page.Offset, page.Limit, exhaustive, uid)
				if !slices.Equal(got.list(), want) {
					fail("page", fmt.Sprint(what, got.list()), want)
				}
				if !estimated && got.total() != all.total() {
					fail("page total", fmt.Sprint(what, " ", got.total()), all.total())
				}
				if !estimated && facets && !reflect.DeepEqual(got.Facets, all.Facets) {
					fail("page facets", fmt.Sprint(what, got.Facets), all.Facets)
				}
			}
		}
	}
	if scaledApart < 20 {
		t.Errorf("only %d searches left out duplicates and scaled scores", scaledApart)
	}
}

// TestSplitFederatedPages compares pages of merged searches with parts of the whole list.
func TestSplitFederatedPages(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 3))
	failures, several := 0, 0
	for n := range 6 {
		most := []int{1000, 25}[n%2]
		l := splitLibrary(t, r, most)
		for range 300 {
			var queries []asked
			first := splitRequest(t, r)
			for n := range 1 + r.IntN(3) {
				q := splitRequest(t, r)
				q.GroupBy, q.Facets, q.Sort = nil, nil, first.Sort
				if n > 0 && r.IntN(2) == 0 {
					q.Distinct = queries[0].Distinct
				}
				queries = append(queries, asked{uid: []string{"one", "many"}[r.IntN(2)], weight: []float64{1, 0.5, 2}[r.IntN(3)], Request: q})
			}
			var f FederatedRequest
			if r.IntN(2) == 0 {
				field := []string{"group", "tags", "kind", "n"}[r.IntN(4)]
				f.Distinct = &field
			}
			federate := func(f FederatedRequest) (federatedAnswer, error) {
				facets := map[string][]string{"one": {"kind"}, "many": {"kind", "tags"}}
				a, _, err := l.federate(&f, facets, slices.Clone(queries)...)
				return a, err
			}
			f.Limit = 1000
			all, err := federate(f)
			if err != nil {
				continue // the queries have no common order
			}
			fail := func(kind string, got any, want any) {
				if failures++; failures < 6 {
					var what []string
					for i := range queries {
						what = append(what, fmt.Sprint(queries[i].uid, " ", queries[i].weight, " ", describeSplit(&queries[i].Request)))
					}
					d := ""
					if f.Distinct != nil {
						d = *f.Distinct
					}
					t.Errorf("%s: distinct %s %s\n got %v\nwant %v", kind, d, strings.Join(what, "\n  "), got, want)
				}
			}
			if l.meetsAll(f, queries) {
				several++
			}
			drops := f.Distinct != nil || slices.ContainsFunc(queries, func(q asked) bool { return q.Distinct != nil })
			for range 6 {
				page := f
				page.Offset, page.Limit, page.Page, page.HitsPerPage = splitPage(r)
				exhaustive := page.Page != nil
				if page.Limit == 0 && drops && !exhaustive {
					continue // counts all duplicates
				}
				got, err := federate(page)
				if err != nil {
					t.Fatal(err)
				}
				want := all.Hits[min(page.Offset, len(all.Hits)):min(page.Offset+page.Limit, len(all.Hits))]
				what := fmt.Sprintf("offset %d limit %d paged %v ", page.Offset, page.Limit, exhaustive)
				if fmt.Sprint(splitIDs(got)) != fmt.Sprint(splitIDs(federatedAnswer{Hits: want})) {
					fail("page", fmt.Sprint(what, splitIDs(got)), splitIDs(federatedAnswer{Hits: want}))
				}
				estimated := drops && most < 60
				if n := cmpOr(got.EstimatedTotalHits, got.TotalHits); !estimated && n != *all.EstimatedTotalHits {
					fail("page total", fmt.Sprint(what, n), *all.EstimatedTotalHits)
				}
				if !estimated && !reflect.DeepEqual(got.FacetsByIndex, all.FacetsByIndex) {
					fail("page facets", fmt.Sprintf("%s %s", what, got.FacetsByIndex), fmt.Sprintf("%s", all.FacetsByIndex))
				}
			}
		}
	}
	if several < 20 {
		t.Errorf("only %d searches ranked all hits because documents have several values", several)
	}
}

// meetsAll reports whether a page of ten hits ranks all of them only because documents have several distinct values.
func (l *library) meetsAll(f FederatedRequest, queries []asked) bool {
	f.Limit = 10
	views := l.c.Views()
	defer views.Release()
	resp := &FederatedResponse{request: &f, queries: make([]federated, len(queries))}
	for i := range queries {
		q := &queries[i]
		f.Queries = append(f.Queries, FederatedQuery{View: views.Get(q.uid), Request: &q.Request, Weight: q.weight, Position: i})
		if err := resp.prepare(context.Background(), i); err != nil {
			l.t.Fatal(err)
		}
	}
	p := resp.plan()
	return p.wholeLists() && !p.steadyTotals
}

// splitIDs shows the hits of a merged search.
func splitIDs(a federatedAnswer) (list []string) {
	for _, h := range a.Hits {
		list = append(list, fmt.Sprint(h.Federation.IndexUID, h.ID, ":", h.Federation.QueriesPosition, " ", h.Federation.Weighted))
	}
	return list
}

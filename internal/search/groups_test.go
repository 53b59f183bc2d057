package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/aggregate"
	"svc/internal/filter"
	"svc/internal/rank"
	"svc/internal/text"
)

// naiveGroup is a group of the reference implementation.
type naiveGroup struct {
	key   any
	hits  []float64 // ids
	count int
}

// naiveGroups groups documents, which are in the order of the hits.
func naiveGroups(hits []map[string]any, attribute string) []*naiveGroup {
	var groups []*naiveGroup
	for _, h := range hits {
		numbers, texts := valuesOf(h, strings.Split(attribute, "."))
		slices.SortFunc(texts, func(a, b string) int {
			return cmp.Compare(string(text.FacetKey(nil, []byte(a))), string(text.FacetKey(nil, []byte(b))))
		})
		var keys []any
		for _, x := range numbers {
			keys = append(keys, x)
		}
		for _, s := range texts {
			keys = append(keys, s)
		}
		if keys == nil {
			keys = []any{nil}
		}
		for _, key := range keys {
			i := slices.IndexFunc(groups, func(g *naiveGroup) bool { return g.key == key })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &naiveGroup{key: key})
			}
			groups[i].hits = append(groups[i].hits, h["id"].(float64))
			groups[i].count++
		}
	}
	return groups
}

// TestGroupsAgainstModel compares groups of hits with naiveGroups: several segments with updates and deletions, several rounds, filters,
// thresholds, distinct, pins, vectors, pages and separate orders in groups.
func TestGroupsAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	r := rand.New(rand.NewPCG(seed, 1))
	defer func(first, fill, noted int) { hitsPerGroup, fillHits, maxByOrd = first, fill, noted }(hitsPerGroup, fillHits, maxByOrd)
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["price","brand","sizes.user","same","none","ms"],"sortableAttributes":["price","ms"],"searchableAttributes":["t"],
		"embedders":{"e":{"source":"userProvided","dimensions":2}}}`)
	words := []string{"red", "reds", "read", "hat", "cat", "red hat", "hat red"}
	id := 0
	docs := map[float64]map[string]any{}
	for _, size := range []int{50, 20, 5} {
		var texts []string
		for range size {
			id++
			one := randomAggregated(r, id)
			if r.IntN(4) == 0 {
				for old := range docs { // an update of an older one, which is deleted in its segment
					one["id"] = old
					break
				}
			}
			one["t"], one["same"] = words[r.IntN(len(words))]+" "+words[r.IntN(len(words))], "x"
			one["_vectors"] = map[string]any{"e": []float64{r.Float64() + .1, r.Float64()}}
			if _, several := one["price"].([]any); several && r.IntN(2) == 0 {
				delete(one, "price")
			}
			docs[one["id"].(float64)] = one
			body, err := json.Marshal(one)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(body))
		}
		l.put("a", "", texts...)
	}
	v := held(l.c.Get("a").View())
	released := false
	defer func() {
		if !released {
			v.Release()
		}
	}()
	if len(v.Segments) < 2 {
		t.Fatalf("%d segments", len(v.Segments))
	}
	ctx := context.Background()
	var rounds, pinned, empty, pulled int
	for n := range 100 {
		hitsPerGroup, fillHits, maxByOrd = 1+r.IntN(4), 1+r.IntN(64), 20*r.IntN(2)
		request := Request{Query: []string{"", "red", "hat", "red hat", "rad"}[r.IntN(5)], Limit: r.IntN(8), Offset: r.IntN(3),
			AttributesToRetrieve: []string{"id", "price", "brand", "sizes", "same"}, ShowRankingScore: true}
		if r.IntN(3) == 0 {
			only, err := filter.Parse("ms > 1700000000000")
			if err != nil {
				t.Fatal(err)
			}
			request.Filter = only
		}
		switch r.IntN(6) {
		case 0:
			threshold := r.Float64()
			request.RankingScoreThreshold = &threshold
		case 1:
			distinct := []string{"brand", "price"}[r.IntN(2)]
			request.Distinct = &distinct
		}
		if r.IntN(4) == 0 {
			request.Sort = []string{"price:desc"}
		}
		if r.IntN(4) == 0 {
			request.Hybrid, request.Vector = &Hybrid{Embedder: "e"}, []float32{1, .5}
			if r.IntN(2) == 0 {
				ratio := 1.0
				request.Hybrid.Ratio = &ratio
			}
		}
		by := &GroupBy{Attribute: []string{"brand", "price", "sizes.user", "same", "none"}[r.IntN(5)], Hits: 1 + r.IntN(4)}
		long := n%10 == 0 // several rounds for each seed
		if long {
			hitsPerGroup, fillHits = 1, 1
			request.Query, request.Limit, request.Offset, request.Filter, request.RankingScoreThreshold, request.Distinct = "", 7, 0, nil, nil, nil
			by = &GroupBy{Attribute: "brand", Hits: 4}
		}

		all := request
		all.Offset, all.Limit = 0, 1000
		var answer struct{ Hits []map[string]any }
		if err := json.Unmarshal(got(got(Search(ctx, v, &all)).AppendJSON(ctx, nil)), &answer); err != nil {
			t.Fatal(err)
		}
		order := answer.Hits
		scores := map[float64]any{}
		for _, h := range order {
			scores[h["id"].(float64)] = h["_rankingScore"]
		}
		want := naiveGroups(order, by.Attribute)
		pin := float64(0)
		if request.RankingScoreThreshold == nil && request.Distinct == nil && r.IntN(4) == 0 && len(order) > 0 {
			pin = order[r.IntN(len(order))]["id"].(float64)
			at := r.IntN(4)
			request.Rules = rulesOf(t, pinning(pinnedHit[int]{at, int(pin)}))
			rest, first := order[:0:0], map[string]any(nil)
			for _, h := range order {
				if h["id"] == pin {
					first = h
				} else {
					rest = append(rest, h)
				}
			}
			led := naiveGroups([]map[string]any{first}, by.Attribute)
			isLed := func(g *naiveGroup) bool {
				return slices.ContainsFunc(led, func(o *naiveGroup) bool { return o.key == g.key })
			}
			want = slices.DeleteFunc(naiveGroups(append([]map[string]any{first}, rest...), by.Attribute), isLed)
			at = min(at, len(want))
			want = slices.Insert(want, at, naiveGroups(append([]map[string]any{first}, rest...), by.Attribute)[:len(led)]...)
			scores[pin] = 1.0
			pinned++
		}
		if r.IntN(4) == 0 {
			by.Sort = []string{"ms:desc"}
			for _, g := range want {
				slices.SortFunc(g.hits, func(a, b float64) int {
					return cmp.Or(cmp.Compare(docs[b]["ms"].(float64), docs[a]["ms"].(float64)), cmp.Compare(a, b)) // ids ascend like DocIDs
				})
			}
		}
		grouped := request
		grouped.GroupBy, grouped.Facets, grouped.ExplainPlan = by, []string{"same"}, true
		asked, err := aggregate.Parse([]byte(`{"n":{"terms":"same"}}`), "aggregations", searchAggregations)
		if err != nil {
			t.Fatal(err)
		}
		grouped.Aggregations = asked
		if !long && r.IntN(3) == 0 && grouped.Limit > 0 {
			page, size := 1+r.IntN(2), grouped.Limit
			grouped.Page, grouped.HitsPerPage = &page, &size
			grouped.Offset = (page - 1) * size
		}
		var got1 struct {
			Hits   []any
			Groups []struct {
				Key   any
				Count int
				Hits  []map[string]any
			}
			EstimatedTotalHits, TotalHits, TotalPages int
			FacetDistribution                         map[string]map[string]int
			Aggregations                              map[string]any
		}
		response := got(Search(ctx, v, &grouped))
		if slices.ContainsFunc(response.plan.Steps, func(s rank.Step) bool { return s.Path == "documents of open groups" }) {
			pulled++
		}
		body := got(response.AppendJSON(ctx, nil))
		if err := json.Unmarshal(body, &got1); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		what := fmt.Sprintf("q %q, by %+v, limit %d, offset %d, sort %v, distinct %v, threshold %v, hybrid %v, filter %v, pin %v", request.Query, *by, grouped.Limit,
			grouped.Offset, request.Sort, request.Distinct != nil, request.RankingScoreThreshold != nil, request.Hybrid != nil, request.Filter != nil, pin)
		total := got1.EstimatedTotalHits
		if grouped.Page != nil {
			total = got1.TotalHits
			if want := pages(len(want), grouped.Limit); got1.TotalPages != want {
				t.Fatalf("%s: %d pages, want %d", what, got1.TotalPages, want)
			}
		}
		if total != len(want) || len(got1.Hits) > 0 || got1.Groups == nil {
			t.Fatalf("%s: %d groups, want %d\n%s", what, total, len(want), body)
		}
		if n := got1.FacetDistribution["same"]["x"]; n != len(order) {
			t.Fatalf("%s: a facet of %d documents, want %d", what, n, len(order))
		}
		if buckets := got1.Aggregations["n"].(map[string]any)["buckets"].([]any); len(order) > 0 && buckets[0].(map[string]any)["count"] != float64(len(order)) {
			t.Fatalf("%s: aggregations %v of %d documents", what, buckets, len(order))
		}
		page := want[min(grouped.Offset, len(want)):]
		page = page[:min(grouped.Limit, len(page))]
		if len(page) != len(got1.Groups) {
			t.Fatalf("%s: %d groups on the page, want %d", what, len(got1.Groups), len(page))
		}
		if len(page) == 0 {
			empty++
		}
		if long && len(page) > 2 {
			rounds++
		}
		for i, g := range got1.Groups {
			var ids []float64
			for _, h := range g.Hits {
				id := h["id"].(float64)
				ids = append(ids, id)
				if h["_rankingScore"] != scores[id] {
					t.Fatalf("%s: %v has the score %v, want %v", what, id, h["_rankingScore"], scores[id])
				}
			}
			if g.Key != page[i].key || g.Count != page[i].count || !slices.Equal(ids, page[i].hits[:min(by.Hits, len(page[i].hits))]) {
				t.Fatalf("%s: group %d is %v with %d documents %v, want %v with %d %v", what, i, g.Key, g.Count, ids, page[i].key, page[i].count, page[i].hits)
			}
		}
	}
	v.Release()
	released = true
	if rounds == 0 || pinned == 0 || empty == 0 || pulled == 0 {
		t.Errorf("%d long pages in short rounds, %d pins, %d empty pages, %d pulled", rounds, pinned, empty, pulled)
	}
}

// TestAnyNumberOfGroups asks for more groups than there can be hits, where groups are found in rounds.
func TestAnyNumberOfGroups(t *testing.T) {
	l := newLibrary(t)
	l.put("a", fmt.Sprintf(`{"filterableAttributes":["kind"],"embedders":{"e":{"source":"userProvided","dimensions":2}},"pagination":{"maxTotalHits":%d}}`, math.MaxInt),
		`{"id":1,"kind":"a","_vectors":{"e":[1,1]}}`, `{"id":2,"kind":"b","_vectors":{"e":[1,2]}}`, `{"id":3,"kind":"a","_vectors":{"e":[1,3]}}`)
	v := held(l.c.Get("a").View())
	defer v.Release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ratio := 1.0
	for bits := range 63 {
		r := &Request{Vector: []float32{1, 1}, Hybrid: &Hybrid{Embedder: "e", Ratio: &ratio}, Limit: 1<<bits + 1, GroupBy: &GroupBy{Attribute: "kind", Hits: 2}}
		if found, err := Search(ctx, v, r); err != nil || len(found.groups) != 2 || len(found.groups[0].hits) != 2 || len(found.groups[1].hits) != 1 {
			t.Fatalf("limit 1<<%d + 1: %v", bits, err)
		}
		r.Limit = 1 << bits
		if found, err := Search(ctx, v, r); err != nil || len(found.groups) != min(r.Limit, 2) {
			t.Fatalf("limit 1<<%d: %v", bits, err)
		}
	}
}

// TestHitsOfGroupsAreSharedWithTheAnswer checks that hits are not copied if the groups of a page have all hits that were found.
func TestHitsOfGroupsAreSharedWithTheAnswer(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["kind"]}`, `{"id":1,"t":"red","kind":"a"}`, `{"id":2,"t":"red","kind":"b"}`, `{"id":3,"t":"red","kind":"a"}`, `{"id":4,"t":"red","kind":"c"}`)
	v := held(l.c.Get("a").View())
	defer v.Release()
	for _, c := range []struct {
		offset, hits int
		shared       bool
	}{{0, 2, true}, {0, 1, true}, {1, 2, false}} {
		found, err := Search(context.Background(), v, &Request{Query: "red", Offset: c.offset, Limit: 20, GroupBy: &GroupBy{Attribute: "kind", Hits: c.hits}})
		if err != nil {
			t.Fatal(err)
		}
		var want []rank.Hit
		for _, one := range found.groups {
			want = append(want, one.hits...)
		}
		got := found.result.Hits
		if !slices.EqualFunc(got, want, func(a, b rank.Hit) bool { return a.ID == b.ID }) || len(got) == 0 {
			t.Fatalf("%+v: the answer has the hits %v, its groups %v", c, got, want)
		}
		if shared := &got[0] == &found.groups[0].hits[0]; shared != c.shared {
			t.Errorf("%+v: shared: %v", c, shared)
		}
	}
}

// TestScoresOfSortedGroups ranks the hits of groups that sort them. Their scores are those of a search without groups, whatever the page:
// a document with two words joined to one adds ranks to the rule of typos.
func TestScoresOfSortedGroups(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"filterableAttributes": ["kind"], "sortableAttributes": ["n"]}`, `{"id": 1, "t": "red hat", "kind": "a", "n": 1}`, `{"id": 2, "t": "redhat", "kind": "b", "n": 2}`,
		`{"id": 3, "t": "red big hat", "kind": "a", "n": 3}`, `{"id": 4, "t": "hat", "kind": "c", "n": 4}`, `{"id": 5, "t": "red", "kind": "c", "n": 5}`)
	score := map[int]float64{}
	for _, h := range l.answer("i", Request{Query: "red hat", Limit: 20, ShowRankingScore: true}).Hits {
		score[h.ID] = h.Score
	}
	hits := 0
	for offset := range 3 {
		for limit := range 3 {
			r := Request{Query: "red hat", Offset: offset, Limit: limit + 1, ShowRankingScore: true, GroupBy: &GroupBy{Attribute: "kind", Hits: 2, Sort: []string{"n:desc"}}}
			var a struct {
				Groups []struct {
					Hits []struct {
						ID    int     `json:"id"`
						Score float64 `json:"_rankingScore"`
					}
				}
			}
			if err := json.Unmarshal([]byte(l.whole("i", r)), &a); err != nil {
				t.Fatal(err)
			}
			for _, g := range a.Groups {
				for _, h := range g.Hits {
					if hits++; h.Score != score[h.ID] {
						t.Errorf("offset %d, limit %d: document %d has score %v, want %v", offset, limit+1, h.ID, h.Score, score[h.ID])
					}
				}
			}
		}
	}
	if hits < 12 {
		t.Errorf("only %d hits", hits)
	}
}

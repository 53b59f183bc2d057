package search

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// oneAndThree returns one machine with all documents of the indexes a and b, and three machines with 20 documents of each index. The three
// search parts of the same queries. document makes a document of a unique id below 200.
func oneAndThree(t *testing.T, r *rand.Rand, settings string, document func(id int) string) (one, three machines) {
	one = machines{t: t, all: []*library{newLibrary(t)}}
	three = machines{t: t, all: []*library{newLibrary(t), newLibrary(t), newLibrary(t)}, parts: true}
	ids := r.Perm(200)
	for _, uid := range []string{"a", "b"} {
		var all []string
		for _, l := range three.all {
			var its []string
			for _, id := range ids[:20] {
				its = append(its, document(id))
			}
			ids = ids[20:]
			l.put(uid, settings, its...)
			all = append(all, its...)
		}
		one.all[0].put(uid, settings, all...)
	}
	return one, three
}

// TestHybridSearchesOfSeveralMachines compares the hits and groups of hybrid queries at three machines with those of one machine with
// all documents.
func TestHybridSearchesOfSeveralMachines(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	r := rand.New(rand.NewPCG(seed, 1))
	const embedded = `"filterableAttributes":["g"],"sortableAttributes":["n"],"embedders":{"e":{"source":"userProvided","dimensions":2}}`
	settings := `{"rankingRules":["words","typo","attribute","exactness","n:asc"],` + embedded + `}`
	words := []string{"red", "lamp", "shoe", "hat", "reds"}
	one, three := oneAndThree(t, r, settings, func(id int) string {
		return fmt.Sprintf(`{"id":%d,"n":%d,"g":%d,"t":"%s %s","_vectors":{"e":[%v,%v]}}`, id, id, r.IntN(8),
			words[r.IntN(len(words))], words[r.IntN(len(words))], r.Float32()-.5, r.Float32()-.5)
	})
	var mixed, grouped int // pages with hits of both kinds, pages with groups
	for round := range 200 {
		queries := make([]asked, 1+r.IntN(2))
		for i := range queries {
			ratio := .05 + .9*r.Float64()
			queries[i] = asked{uid: []string{"a", "b"}[i], weight: []float64{1, .5, 2}[r.IntN(3)]}
			queries[i].Query, queries[i].ShowRankingScoreDetails = words[r.IntN(len(words))]+" "+words[r.IntN(len(words))], true
			if i == 0 || r.IntN(2) == 0 {
				queries[i].Hybrid, queries[i].Vector = &Hybrid{Embedder: "e", Ratio: &ratio}, []float32{r.Float32() - .5, r.Float32() - .5}
			}
			if r.IntN(4) == 0 {
				queries[i].Filter = parseFilter(t, "g < 5")
			}
		}
		f := FederatedRequest{Limit: 1000}
		if len(queries) == 1 { // parts of several queries may lack hits of the merged list
			f.Offset, f.Limit = r.IntN(20), 1+r.IntN(20)
			if r.IntN(3) == 0 {
				f.GroupBy, f.Offset = &GroupBy{Attribute: "g", Hits: 1 + r.IntN(4)}, 0
				if r.IntN(3) == 0 {
					f.GroupBy.Sort = []string{"n:desc"}
				}
				grouped++
			}
		}
		show := func(a groupedAnswer) (list []string) {
			for _, h := range a.Hits {
				list = append(list, fmt.Sprint(h["id"]))
			}
			for _, g := range a.Groups {
				list = append(list, fmt.Sprint("group ", g.Key, " ", g.Count))
				for _, h := range g.Hits {
					list = append(list, fmt.Sprint(h["id"]))
				}
			}
			return list
		}
		want, _ := one.search(1, f, queries, -1)
		got, body := three.search(3, f, queries, -1)
		if !slices.Equal(show(got), show(want)) || got.EstimatedTotalHits != want.EstimatedTotalHits {
			t.Fatalf("round %d: %v of %d, want %v of %d\n%+v\n%s", round, show(got), got.EstimatedTotalHits, show(want), want.EstimatedTotalHits, queries, body)
		}
		kinds := map[bool]bool{}
		for _, h := range got.Hits {
			_, similar := h["_rankingScoreDetails"].(map[string]any)["vectorSort"]
			kinds[similar] = true
		}
		if len(kinds) == 2 {
			mixed++
		}
	}
	if mixed < 20 || grouped < 5 {
		t.Errorf("%d pages with hits of words and of vectors, %d with groups", mixed, grouped)
	}
}

// TestDistinctHitsOfSeveralMachines compares distinct hits of queries at three machines with those of one machine.
func TestDistinctHitsOfSeveralMachines(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	r := rand.New(rand.NewPCG(seed, 1))
	words := []string{"red", "lamp", "shoe"}
	const settings = `{"rankingRules":["words","n:asc"],"filterableAttributes":["g","h"],"displayedAttributes":["id","h"]}`
	one, three := oneAndThree(t, r, settings, func(id int) string {
		return fmt.Sprintf(`{"id":%d,"n":%d,"g":%d,"h":"%c%d","t":"%s %s"}`, id, id, r.IntN(12), "xX"[r.IntN(2)], r.IntN(12), words[r.IntN(3)], words[r.IntN(3)])
	})
	dropped := 0
	for round := range 200 {
		f := FederatedRequest{Offset: r.IntN(4), Limit: 1 + r.IntN(20)}
		queries := make([]asked, 1+r.IntN(3))
		fields := map[string]*string{"a": new([]string{"g", "h"}[r.IntN(2)]), "b": new([]string{"g", "h"}[r.IntN(2)])}
		if r.IntN(4) == 0 {
			fields["b"] = nil
		}
		for i := range queries {
			queries[i] = asked{uid: []string{"a", "b"}[r.IntN(2)], weight: []float64{1, .5, 2}[r.IntN(3)]}
			queries[i].Query, queries[i].Distinct = words[r.IntN(3)]+" "+words[r.IntN(3)], fields[queries[i].uid]
		}
		if r.IntN(3) == 0 {
			f.Distinct = fields["a"]
			for i := range queries {
				queries[i].Distinct = nil
			}
		}
		show := func(a groupedAnswer) (list []string) {
			for _, h := range a.Hits {
				list = append(list, fmt.Sprint(h["id"]))
			}
			return list
		}
		want, _ := one.search(1, f, queries, -1)
		got, body := three.search(3, f, queries, -1)
		if !slices.Equal(show(got), show(want)) {
			t.Fatalf("round %d: %v, want %v\n%+v\n%s", round, show(got), show(want), queries, body)
		}
		f.Distinct = nil
		for i := range queries {
			queries[i].Distinct = nil
		}
		if all, _ := three.search(3, f, queries, -1); !slices.Equal(show(all), show(got)) {
			dropped++
		}
	}
	if dropped < 100 {
		t.Errorf("only %d of 200 pages dropped duplicates of different machines", dropped)
	}
}

// TestFacetsOfSeveralMachines compares the most frequent values at three machines with those of one machine.
func TestFacetsOfSeveralMachines(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, order := range []string{"count", "alpha"} {
		settings := fmt.Sprintf(`{"filterableAttributes":["g"],"faceting":{"maxValuesPerFacet":3,"sortFacetValuesBy":{"*":%q}}}`, order)
		one, three := oneAndThree(t, r, settings, func(id int) string {
			return fmt.Sprintf(`{"id":%d,"t":%q,"g":"v%d"}`, id, []string{"red", "lamp", "red lamp"}[r.IntN(3)], r.IntN(20))
		})
		one.facets, three.facets = []string{"g"}, []string{"g"}
		for _, query := range []string{"", "red", "lamp"} {
			queries := []asked{{uid: "a", weight: 1, Request: Request{Query: query}}}
			want, _ := one.search(1, FederatedRequest{}, queries, -1)
			got, _ := three.search(3, FederatedRequest{}, queries, -1)
			if len(want.FacetDistribution["g"]) != 3 {
				t.Errorf("one machine has %v", want.FacetDistribution)
			}
			if !reflect.DeepEqual(got.FacetDistribution, want.FacetDistribution) {
				t.Errorf("%s, %q: %v, want %v", order, query, got.FacetDistribution, want.FacetDistribution)
			}
		}
	}
}

// TestPartsOfHybridQueries checks which queries count as parts of one query, at the instance that receives them and at one
// that it queries.
func TestPartsOfHybridQueries(t *testing.T) {
	half, most := .5, .9
	query := func(q string, ratio *float64, filter string) *Request {
		r := &Request{Query: q, Hybrid: &Hybrid{Embedder: "e", Ratio: ratio}, Vector: []float32{1, 0}}
		if filter != "" {
			r.Filter = parseFilter(t, filter)
		}
		return r
	}
	add := func(r *FederatedRequest) map[int]hybridPart {
		for i, q := range []*Request{query("red", &half, "g = 1"), query("red", &half, "g = 2"), query("red", &most, ""), query("", &half, ""), query("hat", &half, "g = 1"), query("red", &half, "")} {
			r.AddPart(i, 10+i, "a", q, 1)
		}
		r.AddPart(6, 16, "b", query("red", &half, ""), 1)
		r.AddPart(7, 17, "a", query("red", &half, ""), 2)
		return r.parts.hybrids
	}
	asked := map[int]hybridPart{10: {0, .5}, 11: {0, .5}, 12: {2, .9}, 14: {4, .5}, 15: {0, .5}, 16: {6, .5}, 17: {7, .5}}
	if got := add(&FederatedRequest{Proxy: true}); !maps.Equal(got, asked) {
		t.Errorf("parts at another instance: %v, want %v", got, asked)
	}
	own := map[int]hybridPart{10: {0, .5}, 11: {1, .5}, 12: {2, .9}, 14: {4, .5}, 15: {5, .5}, 16: {6, .5}, 17: {7, .5}}
	if got := add(&FederatedRequest{Networked: true}); !maps.Equal(got, own) {
		t.Errorf("parts here: %v, want %v", got, own)
	}
}

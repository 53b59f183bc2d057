package search

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// scaling makes a rule that scales selected documents.
func scaling(selector string, factor float64) string {
	return fmt.Sprintf(`"actions":[{"selector":{%s},"action":{"type":"scale","factor":%g}}]`, selector, factor)
}

func TestScale(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"filterableAttributes": ["brand", "price"], "sortableAttributes": ["price"]}`,
		`{"id": 1, "t": "red hat", "brand": "a", "price": 3}`, `{"id": 2, "t": "red", "brand": "b", "price": 2}`, `{"id": 3, "t": "big red hat", "brand": "b", "price": 1}`)
	l.put("i", "", `{"id": 4, "t": "shoe", "brand": "c", "price": 4}`)
	brand := "brand"
	for _, tt := range []struct {
		what  string
		rules []string
		r     Request
		want  string
		total int
	}{
		{"nothing", nil, Request{Query: "red hat"}, "1 3 2", 3},
		{"boosted by filter", []string{scaling(`"filter":"brand = b"`, 10)}, Request{Query: "red hat"}, "3 2 1", 3},
		{"demoted by id", []string{scaling(`"id":"1"`, 0.01)}, Request{Query: "red hat"}, "3 2 1", 3},
		{"hidden", []string{scaling(`"filter":["brand = a", "price > 2"]`, 0)}, Request{Query: "red hat", Facets: []string{"brand"}}, "3 2", 2},
		{"all hidden", []string{scaling(``, 0)}, Request{Query: "red hat"}, "", 0},
		{"by filter and id", []string{scaling(`"filter":"brand = b", "id":"1"`, 0)}, Request{Query: "red hat"}, "1 3 2", 3},
		{"in another index", []string{scaling(`"indexUid":"j"`, 0)}, Request{Query: "red hat"}, "1 3 2", 3},
		{"of this index", []string{scaling(`"indexUid":"i", "id":"3"`, 0)}, Request{Query: "red hat"}, "1 2", 2},
		{"no such document", []string{scaling(`"id":"77"`, 0)}, Request{Query: "red hat"}, "1 3 2", 3},
		{"not filterable here", []string{scaling(`"filter":"nothing = 1"`, 0)}, Request{Query: "red hat"}, "1 3 2", 3},
		{"factors are multiplied", []string{scaling(`"filter":"brand = b"`, 10), scaling(`"id":"2"`, 0.01)}, Request{Query: "red hat"}, "3 1 2", 3},
		{"hidden, but pinned", []string{scaling(`"id":"1"`, 0), pinning(pinnedHit[int]{1, 1})}, Request{Query: "red hat"}, "3 1 2", 3},
		{"hidden, and filtered out", []string{scaling(`"id":"1"`, 5)}, Request{Query: "red hat", Filter: parseFilter(t, "brand = b")}, "3 2", 2},
		{"threshold of scaled scores", []string{scaling(`"id":"1"`, 0.5)}, Request{Query: "red hat", RankingScoreThreshold: threshold(0.9)}, "3", 1},
		{"threshold reached by a boost", []string{scaling(`"id":"2"`, 3)}, Request{Query: "red hat", RankingScoreThreshold: threshold(0.999)}, "2 1", 2},
		{"without a query", []string{scaling(`"id":"4"`, 2), scaling(`"id":"1"`, 0.5)}, Request{}, "4 2 3 1", 4},
		{"a sort comes first", []string{scaling(`"id":"4"`, 2)}, Request{Sort: []string{"price:asc"}}, "3 2 1 4", 4},
		{"distinct", []string{scaling(`"id":"2"`, 3)}, Request{Query: "red hat", Distinct: &brand}, "2 1", 2},
		{"distinct in pages", []string{scaling(`"id":"2"`, 3)}, Request{Query: "red hat", Distinct: &brand, Page: number(1), HitsPerPage: number(1)}, "2", 2},
		{"by ids", []string{`"conditions":{},"actions":{"scale":[{"weight":0,"ids":["1","77"]}]}`}, Request{Query: "red hat"}, "3 2", 2},
		{"by ids and filter", []string{`"conditions":{},"actions":{"scale":[{"weight":0,"ids":["1","2"],"filter":"brand = a"}],"pin":[{"id":"2","position":0}]}`}, Request{Query: "red hat"}, "2 3", 2},
		{"by no ids", []string{`"conditions":{},"actions":{"scale":[{"weight":0,"ids":[]}]}`}, Request{Query: "red hat"}, "1 3 2", 3},
		{"by words", []string{`"conditions":{"query":{"words":"hat"}},"actions":{"scale":[{"weight":0,"ids":["1"]}]}`}, Request{Query: "red hat"}, "3 2", 2},
		{"by other words", []string{`"conditions":{"query":{"words":"hats"}},"actions":{"scale":[{"weight":0,"ids":["1"]}]}`}, Request{Query: "red hat"}, "1 3 2", 3},
		{"a page", []string{scaling(`"filter":"brand = b"`, 10)}, Request{Query: "red hat", Offset: 1, Limit: 1}, "2", 3},
	} {
		r := tt.r
		if r.Limit == 0 {
			r.Limit = 20
		}
		if tt.rules != nil {
			r.Rules = rulesOf(t, tt.rules...)
		}
		if got := l.answer("i", r); ids(got) != tt.want || totalOf(got) != tt.total {
			t.Errorf("%s: %s of %d, want %s of %d", tt.what, ids(got), totalOf(got), tt.want, tt.total)
		}
	}
	r := Request{Query: "red hat", Limit: 1, ShowRankingScore: true, ShowRankingScoreDetails: true, AttributesToRetrieve: []string{"id"}, Rules: rulesOf(t, scaling(`"id":"1"`, 2.5))}
	if got := l.body("i", r); !strings.Contains(got, `"_rankingScore":2.5,`) || !strings.HasSuffix(got, `,"scale":{"order":6,"factor":2.5,"rules":["a"]}}}]`) {
		t.Errorf("shown: %s", got)
	}
	r = Request{Limit: 1, ShowRankingScoreDetails: true, AttributesToRetrieve: []string{"id"}, Rules: rulesOf(t, scaling(`"id":"4"`, 2))}
	if got, want := l.body("i", r), `"hits":[{"id":4,"_rankingScoreDetails":{"scale":{"order":0,"factor":2.0,"rules":["a"]}}}]`; !strings.HasSuffix(got, want) {
		t.Errorf("shown: %s, want %s", got, want)
	}
}

// TestScaleStaysFinite multiplies factors and weights that overflow and underflow.
func TestScaleStaysFinite(t *testing.T) {
	for _, tt := range []struct{ x, y, want float64 }{{1e308, 1e308, math.MaxFloat64}, {-1e308, 1e308, -math.MaxFloat64}, {1e-308, 1e-308, math.SmallestNonzeroFloat64},
		{math.MaxFloat64, 0, 0}, {0.5, 0.5, 0.25}, {0x1p1000, 0x1p-1000, 1}} {
		if got := product(tt.x, tt.y); got != tt.want {
			t.Errorf("%g times %g is %g, want %g", tt.x, tt.y, got, tt.want)
		}
	}
	l := newLibrary(t)
	l.put("i", ``, `{"id": 1, "t": "red"}`, `{"id": 2, "t": "red"}`)
	r := Request{Query: "red", Limit: 20, ShowRankingScore: true, Rules: rulesOf(t, scaling(`"id":"2"`, 1e308), scaling(`"id":"2"`, 1e308), scaling(`"id":"1"`, 1e-308), scaling(`"id":"1"`, 1e-308))}
	if got := l.answer("i", r); ids(got) != "2 1" {
		t.Errorf("factors of 1e308 and 1e-308: %s", ids(got))
	}
	if got := l.body("i", r); !strings.Contains(got, `"_rankingScore":1.79`) || !strings.Contains(got, `"_rankingScore":5e-324`) {
		t.Errorf("shown: %s", got)
	}
	r.Rules = rulesOf(t, scaling(`"id":"2"`, 1e308), scaling(`"id":"2"`, 1e308), scaling(`"id":"2"`, 0))
	if got := l.answer("i", r); ids(got) != "1" {
		t.Errorf("a hidden document with other factors: %s", ids(got))
	}
}

// TestScaleAgreesWithSortingAllScores compares pages with all hits, sorted by scores that are multiplied one by one.
func TestScaleAgreesWithSortingAllScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	words := []string{"red", "hat", "fox", "moon", "rad", "hot", "redhat", "moonred"} // n-grams, too
	type doc struct{ brand, size int }
	for range 12 {
		l := newLibrary(t)
		l.put("i", `{"filterableAttributes": ["brand", "size"]}`)
		all := map[int]doc{}
		for range 3 {
			var docs []string
			for range rng.IntN(30) + 1 {
				id, d := len(all), doc{rng.IntN(4), rng.IntN(6)}
				all[id] = d
				docs = append(docs, fmt.Sprintf(`{"id": %d, "t": "%s %s %s", "brand": %d, "size": %d}`, id, words[rng.IntN(len(words))], words[rng.IntN(len(words))], words[rng.IntN(len(words))], d.brand, d.size))
			}
			l.put("i", "", docs...)
		}
		for range 25 {
			r := Request{Query: []string{"red hat", "fox", "moon red fox", ""}[rng.IntN(4)], Limit: 1000, ShowRankingScore: true}
			if rng.IntN(3) == 0 {
				r.Filter = parseFilter(t, fmt.Sprintf("size > %d", rng.IntN(3)))
			}
			whole := l.answer("i", r)
			var rules []string
			var scales []func(id int, d doc) float64
			for range 1 + rng.IntN(4) {
				factor := []float64{0, 0.25, 0.5, 2, 3}[rng.IntN(5)]
				n := rng.IntN(6)
				switch rng.IntN(3) {
				case 0:
					rules = append(rules, scaling(fmt.Sprintf(`"id":"%d"`, n), factor))
					scales = append(scales, func(id int, _ doc) float64 { return pick(id == n, factor) })
				case 1:
					rules = append(rules, scaling(fmt.Sprintf(`"filter":"brand = %d"`, n), factor))
					scales = append(scales, func(_ int, d doc) float64 { return pick(d.brand == n, factor) })
				case 2:
					rules = append(rules, scaling(fmt.Sprintf(`"filter":"size < %d"`, n), factor))
					scales = append(scales, func(_ int, d doc) float64 { return pick(d.size < n, factor) })
				}
			}
			type hit struct {
				id    int
				score float64
			}
			var want []hit
			for _, h := range whole.Hits {
				s := h.Score
				for _, f := range scales {
					s *= f(h.ID, all[h.ID])
				}
				if s > 0 {
					want = append(want, hit{h.ID, s})
				}
			}
			found := len(want)
			var limit *float64
			if rng.IntN(3) == 0 && r.Query != "" {
				limit = threshold(0.3)
				want = slices.DeleteFunc(want, func(h hit) bool { return h.score < *limit })
			}
			slices.SortStableFunc(want, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
			r.Rules, r.RankingScoreThreshold = rulesOf(t, rules...), limit
			r.Offset, r.Limit = rng.IntN(5), 1+rng.IntN(40)
			got := l.answer("i", r)
			page := want[min(r.Offset, len(want)):min(r.Offset+r.Limit, len(want))]
			var list []hit
			for _, h := range got.Hits {
				list = append(list, hit{h.ID, h.Score})
			}
			if !slices.Equal(list, page) || limit == nil && got.Estimated != found {
				t.Fatalf("%q, %s:\n%v of %d, want\n%v of %d", r.Query, rules, list, got.Estimated, page, found)
			}
		}
	}
}

func pick(selected bool, factor float64) float64 {
	if selected {
		return factor
	}
	return 1
}

// TestThresholdOfRoundedProducts scales a score of 0.3 by 3, which is a little less than 0.9, and thresholds near products.
func TestThresholdOfRoundedProducts(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"rankingRules": ["words"]}`, `{"id": 1, "t": "a b c"}`, `{"id": 2, "t": "a b c d"}`)
	r := Request{Query: "a b c d e f g h i j", Limit: 20, Rules: rulesOf(t, scaling("", 3)), RankingScoreThreshold: threshold(0.9)}
	if got := l.answer("i", r); ids(got) != "2" {
		t.Errorf("hits %s, want only 2", ids(got))
	}
	rng := rand.New(rand.NewPCG(1, 3))
	moved := 0
	for range 10000 {
		least, factor := rng.Float64(), rng.Float64()*4
		s := unscaled(least, factor)
		if product(s, factor) < least || product(math.Nextafter(s, 0), factor) >= least {
			t.Fatalf("%v times %v is %v, and should just reach %v", s, factor, product(s, factor), least)
		}
		if s != least/factor {
			moved++
		}
	}
	if moved < 100 {
		t.Errorf("only %d quotients were moved by rounding", moved)
	}
	for _, tt := range [][2]float64{{0, 2}, {1, 0x1p-1074}, {0.5, 1e308}, {0x1p-1074, 0x1p-1074}} { // these only have to end
		unscaled(tt[0], tt[1])
	}
}

// TestManyScales has more rules than the maximum number of parts.
func TestManyScales(t *testing.T) {
	l := newLibrary(t)
	var docs, rules []string
	for i := range 60 {
		docs = append(docs, fmt.Sprintf(`{"id": %d, "t": "red"}`, i))
	}
	for i := range 26 {
		rules = append(rules, fmt.Sprintf(`"priority":%d,`, i)+scaling(fmt.Sprintf(`"id":"%d"`, i), float64(i+2)))
	}
	l.put("i", "", docs...)
	got := l.answer("i", Request{Query: "red", Limit: 3, Rules: rulesOf(t, rules...)})
	if ids(got) != "25 24 23" || got.Estimated != 60 {
		t.Errorf("%s of %d", ids(got), got.Estimated)
	}
	var actions []string
	for i := range 60 {
		actions = append(actions, fmt.Sprintf(`{"selector":{"id":"%d"},"action":{"type":"scale","factor":%d}}`, i, i+2))
	}
	got = l.answer("i", Request{Query: "red", Limit: 3, Rules: rulesOf(t, `"actions":[`+strings.Join(actions, ",")+`]`)})
	if ids(got) != "30 29 28" || got.Estimated != 60 { // 31 factors other than 1
		t.Errorf("%s of %d", ids(got), got.Estimated)
	}
}

// TestScaledFederation scales the scores of one query.
func TestScaledFederation(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"filterableAttributes": ["k"]}`, `{"id": 1, "t": "red", "k": 1}`, `{"id": 2, "t": "red hat", "k": 2}`)
	l.put("j", "", `{"id": 3, "t": "red"}`)
	rules := rulesOf(t, scaling(`"filter":"k = 2"`, 4), scaling(`"indexUid":"j"`, 0.5))
	got, body, err := l.federate(&FederatedRequest{Limit: 20}, nil, asked{"i", 1, Request{Query: "red", Rules: rules, ShowRankingScore: true}}, asked{"j", 3, Request{Query: "red", Rules: rules}})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, h := range got.Hits {
		list = append(list, fmt.Sprintf("%d:%.1f", h.ID, h.Federation.Weighted))
	}
	if s := strings.Join(list, " "); s != "2:3.9 3:1.5 1:1.0" {
		t.Errorf("%s: %s", s, body)
	}
}

// TestScaledHybrid demotes keyword hits below hits of the vector only.
func TestScaledHybrid(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"embedders": {"e": {"source": "userProvided", "dimensions": 2}}}`, `{"id": 1, "t": "red hat", "_vectors": {"e": [0, 1]}}`,
		`{"id": 2, "t": "shoe", "_vectors": {"e": [1, 0]}}`, `{"id": 3, "t": "sock", "_vectors": {"e": [1, 1]}}`)
	half, one := 0.5, 1.0
	for _, tt := range []struct {
		ratio *float64
		rules []string
		want  string
	}{
		{&half, nil, "2 1 3"}, {&half, []string{scaling(`"id":"2"`, 0.1)}, "1 3 2"}, {&half, []string{scaling(`"id":"1"`, 0)}, "2 3"},
		{&one, nil, "2 3 1"}, {&one, []string{scaling(`"id":"1"`, 9)}, "1 2 3"}, {&one, []string{scaling(`"id":"2"`, 0)}, "3 1"},
	} {
		r := Request{Query: "red hat", Limit: 20, Vector: []float32{1, 0}, Hybrid: &Hybrid{Embedder: "e", Ratio: tt.ratio}}
		if tt.rules != nil {
			r.Rules = rulesOf(t, tt.rules...)
		}
		if got := l.answer("i", r); ids(got) != tt.want {
			t.Errorf("%g, %s: %s, want %s", *tt.ratio, tt.rules, ids(got), tt.want)
		}
	}
}

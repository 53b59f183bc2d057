package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/rank"
	"svc/segment"
)

func TestKind(t *testing.T) {
	ratio := func(x float64) *float64 { return &x }
	for name, c := range map[string]struct {
		r    Request
		want kind
	}{
		"words":                        {Request{Query: "a"}, keyword},
		"a vector needs hybrid":        {Request{Vector: []float32{1}}, keyword},
		"the default ratio":            {Request{Query: "a", Hybrid: &Hybrid{}}, hybrid},
		"ratio 0":                      {Request{Query: "a", Hybrid: &Hybrid{Ratio: ratio(0)}, Vector: []float32{1}}, keyword},
		"ratio 1":                      {Request{Query: "a", Hybrid: &Hybrid{Ratio: ratio(1)}}, semantic},
		"a blank query":                {Request{Query: " ", Hybrid: &Hybrid{Ratio: ratio(1)}}, keyword},
		"no query":                     {Request{Hybrid: &Hybrid{}}, keyword},
		"a vector alone":               {Request{Hybrid: &Hybrid{}, Vector: []float32{1}}, semantic},
		"a vector alone, ratio 0":      {Request{Hybrid: &Hybrid{Ratio: ratio(0)}, Vector: []float32{}}, semantic},
		"media alone":                  {Request{Query: "\t", Hybrid: &Hybrid{}, Media: json.RawMessage(`{}`)}, semantic},
		"a vector and words":           {Request{Query: "a", Hybrid: &Hybrid{Ratio: ratio(.1)}, Vector: []float32{1}}, hybrid},
		"a vector and words, semantic": {Request{Query: "a", Hybrid: &Hybrid{Ratio: ratio(1)}, Vector: []float32{1}}, semantic},
	} {
		if got := c.r.kind(); got != c.want {
			t.Errorf("%s: kind %d, want %d", name, got, c.want)
		}
	}
}

func TestInvalidCombinations(t *testing.T) {
	vector, media := []float32{}, json.RawMessage(`{}`)
	for _, c := range []struct {
		r    Request
		want apierr.Code
	}{
		{Request{Vector: vector, Media: media}, "invalid_search_media_and_vector"},
		{Request{Vector: vector, Media: media, Hybrid: &Hybrid{}}, "invalid_search_media_and_vector"},
		{Request{Vector: vector}, "missing_search_hybrid"},
		{Request{Media: media}, "missing_search_hybrid"},
		{Request{Media: media, Hybrid: &Hybrid{}}, ""},
		{Request{}, ""},
	} {
		got := apierr.Code("")
		if err := c.r.Check(); err != nil {
			got = apierr.From(err).Code
		}
		if got != c.want {
			t.Errorf("vector %v, media %v, hybrid %v: %q, want %q", c.r.Vector != nil, c.r.Media != nil, c.r.Hybrid != nil, got, c.want)
		}
	}
}

func TestCompareHybrid(t *testing.T) {
	score := func(x float64) rank.ScoreValue { return rank.ScoreValue{Kind: rank.ByRelevance, Score: x} }
	near := func(x float64) rank.ScoreValue { return rank.ScoreValue{Kind: rank.BySimilarity, Score: x} }
	price := func(x float64, desc bool) rank.ScoreValue {
		return rank.ScoreValue{Kind: rank.ByField, Sort: rank.SortValue{Class: rank.OfNumber, Number: x}, Desc: desc}
	}
	type values = []rank.ScoreValue
	for _, c := range []struct {
		name           string
		words, meaning values
		ratio          float64
		want           int // negative: the keyword hit comes first
	}{
		{"the larger score", values{score(.6)}, values{near(.5)}, .5, -1},
		{"the larger score by weight", values{score(.6)}, values{near(.5)}, .6, 1},
		{"equal", values{score(.6)}, values{near(.6)}, .5, 0},
		{"as good as equal", values{score(.6)}, values{near(.6 + 1e-16)}, .5, 0},
		{"the next decides", values{score(.6), price(3, false)}, values{near(.6), price(2, false)}, .5, 1},
		{"downwards", values{price(3, true), score(0)}, values{price(2, true), near(1)}, .5, -1},
		{"equal prices", values{price(3, true), score(0)}, values{price(3, true), near(1)}, .5, 1},
		{"no price", values{{Kind: rank.ByField, Sort: rank.SortValue{Class: rank.OfNothing}}}, values{price(3, false)}, .5, 1},
		{"a score wins against a price", values{score(.1)}, values{price(3, true)}, .5, -1},
		{"but not 0", values{score(0)}, values{price(3, true)}, .5, 1},
		{"a similarity wins against a price", values{price(3, true)}, values{near(.1)}, .5, 1},
		{"what ends first loses", values{score(.5)}, values{near(.5), price(1, true)}, .5, 1},
		{"what ends last wins", values{score(.5), price(1, true)}, values{near(.5)}, .5, -1},
		{"nothing to compare", nil, nil, .5, 0},
	} {
		if got := compareHybrid(c.words, c.meaning, c.ratio); cmp.Compare(got, 0) != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestMergeHybrid(t *testing.T) {
	hits := func(kind rank.ScoreKind, pairs ...float64) (list []rank.Hit) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, rank.Hit{ID: segment.DocID(pairs[i]), Score: pairs[i+1], Values: []rank.ScoreValue{{Kind: kind, Score: pairs[i+1]}}})
		}
		return list
	}
	words := hits(rank.ByRelevance, 1, 1, 4, .9)
	meaning := hits(rank.BySimilarity, 1, 1, 4, .8, 2, .7, 5, .6, 3, .5)
	for _, c := range []struct {
		ratio         float64
		offset, limit int
		want          string
		semanticHits  int
	}{
		{.1, 0, 20, "1w 4w 2m 5m 3m", 3},
		{.5, 0, 20, "1m 4w 2m 5m 3m", 4},
		{.9, 0, 20, "1m 4m 2m 5m 3m", 5},
		{.5, 0, 2, "1m 4w", 1},
		{.5, 1, 2, "4w 2m", 1},
		{.5, 4, 9, "3m", 1},
		{.5, 5, 9, "", 0},
	} {
		page, n := mergeHybrid(words, meaning, c.ratio, nil, c.offset, c.limit, false)
		var got []string
		for _, h := range page {
			from := "w"
			if h.Values[0].Kind == rank.BySimilarity {
				from = "m"
			}
			got = append(got, fmt.Sprint(h.ID, from))
		}
		if s := strings.Join(got, " "); s != c.want || n != c.semanticHits {
			t.Errorf("ratio %v, offset %d, limit %d: %q with %d semantic hits, want %q with %d", c.ratio, c.offset, c.limit, s, n, c.want, c.semanticHits)
		}
	}
}

// answerOf has the members of an answer that tests read.
type answerOf struct {
	Hits []struct {
		ID      int     `json:"id"`
		Score   float64 `json:"_rankingScore"`
		Details map[string]struct {
			Order      int
			Similarity *float64
			Value      *float64
		} `json:"_rankingScoreDetails"`
		Vectors   json.RawMessage `json:"_vectors"`
		Formatted map[string]any  `json:"_formatted"`
	}
	Estimated    int  `json:"estimatedTotalHits"`
	Total        *int `json:"totalHits"`
	SemanticHits *int `json:"semanticHitCount"`
	QueryVector  []float32
	Facets       map[string]map[string]int `json:"facetDistribution"`
}

func (l *library) answer(uid string, r Request) answerOf {
	l.t.Helper()
	return l.answerIn(context.Background(), uid, r)
}

func (l *library) answerIn(ctx context.Context, uid string, r Request) (a answerOf) {
	l.t.Helper()
	v := held(l.c.Get(uid).View())
	defer v.Release()
	response, err := Search(ctx, v, &r)
	if err != nil {
		l.t.Fatal(err)
	}
	body, err := response.AppendJSON(ctx, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := json.Unmarshal(body, &a); err != nil {
		l.t.Fatalf("%v: %s", err, body)
	}
	return a
}

// semanticDoc is a document of the random test.
type semanticDoc struct {
	ID      int                    `json:"id"`
	Title   string                 `json:"title"`
	Price   *int                   `json:"price,omitempty"`
	Kind    []string               `json:"kind,omitempty"`
	Vectors map[string][][]float32 `json:"_vectors"`
}

// TestHybridAgreesWithMergingSearches compares pages of hybrid searches with merged complete results of a keyword search and of a scan
// of all vectors.
func TestHybridAgreesWithMergingSearches(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 12 {
		l := newLibrary(t)
		sortFirst := rng.IntN(2) == 0
		kinds := [][]int{{0, 1, 1}, {0, 1, 2, 3}}[rng.IntN(2)] // vectors per document
		rules := `["words","typo","proximity","sort"]`
		if sortFirst {
			rules = `["sort","words","typo"]`
		}
		l.put("i", `{"rankingRules": `+rules+`, "sortableAttributes": ["price"], "filterableAttributes": ["kind", "price"],
			"searchableAttributes": ["title"], "embedders": {"e": {"source": "userProvided", "dimensions": 3}}}`)
		docs := map[int]*semanticDoc{}
		words := []string{"red", "reed", "green", "sea", "apple"}
		for range 1 + rng.IntN(3) {
			var lines []string
			for range 20 + rng.IntN(30) {
				d := &semanticDoc{ID: rng.IntN(120), Vectors: map[string][][]float32{"e": {}}}
				for range 1 + rng.IntN(3) {
					d.Title += words[rng.IntN(len(words))] + " "
				}
				if rng.IntN(4) > 0 {
					price := rng.IntN(3)
					d.Price = &price
				}
				for range kinds[rng.IntN(len(kinds))] {
					d.Kind = append(d.Kind, string(rune('a'+rng.IntN(8))))
				}
				for range rng.IntN(3) {
					d.Vectors["e"] = append(d.Vectors["e"], []float32{float32(rng.IntN(5) - 2), float32(rng.IntN(5) - 2), 1})
				}
				if docs[d.ID] != nil && slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf(`{"id":%d,`, d.ID)) }) {
					continue // once per batch
				}
				docs[d.ID] = d
				line, err := json.Marshal(d)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, string(line))
			}
			l.put("i", "", lines...)
		}
		for range 12 {
			checkHybrid(t, l, rng, docs, sortFirst)
		}
	}
}

func checkHybrid(t *testing.T, l *library, rng *rand.Rand, docs map[int]*semanticDoc, sortFirst bool) {
	t.Helper()
	ratio := []float64{.1, .3, .5, .7, .9, 1}[rng.IntN(6)]
	r := Request{Query: []string{"red", "green sea", "apple red"}[rng.IntN(3)], Vector: []float32{float32(rng.IntN(5) - 2), 1, float32(rng.IntN(3))},
		Hybrid: &Hybrid{Embedder: "e", Ratio: &ratio}, ShowRankingScore: true, ShowRankingScoreDetails: true, RetrieveVectors: rng.IntN(2) == 0}
	if rng.IntN(2) == 0 {
		r.Sort = []string{[]string{"price:asc", "price:desc"}[rng.IntN(2)]}
	}
	if rng.IntN(3) == 0 {
		kind := "kind"
		r.Distinct = &kind
	}
	if rng.IntN(3) == 0 {
		threshold := rng.Float64()
		r.RankingScoreThreshold = &threshold
	}
	all := r
	all.Limit = 1000
	one := 1.0
	all.Hybrid = &Hybrid{Embedder: "e", Ratio: &one}
	byMeaning := l.answer("i", all)
	all.Hybrid, all.Vector = nil, nil
	byWords := l.answer("i", all)
	checkSemantic(t, docs, &r, byMeaning, sortFirst)

	w, m := byWords.Hits, byMeaning.Hits
	if ratio == 1 {
		w = nil
	}
	type hit struct {
		id       int
		score    float64
		semantic bool
	}
	var want []hit
	kinds, ids := map[string]bool{}, map[int]bool{}
	facets := map[string]int{}
	for len(w)+len(m) > 0 {
		wordsFirst := len(m) == 0
		if len(w) > 0 && len(m) > 0 {
			c := 0
			if sortFirst && r.Sort != nil {
				c = comparePrices(docs[w[0].ID].Price, docs[m[0].ID].Price, r.Sort[0] == "price:desc")
			}
			if c == 0 {
				c = cmp.Compare(m[0].Score*ratio, w[0].Score*(1-ratio))
				if math.Abs(m[0].Score*ratio-w[0].Score*(1-ratio)) <= 0x1p-52 {
					c = 0
				}
			}
			if c == 0 && !sortFirst && r.Sort != nil {
				c = comparePrices(docs[w[0].ID].Price, docs[m[0].ID].Price, r.Sort[0] == "price:desc")
			}
			wordsFirst = c < 0
		}
		h := hit{semantic: !wordsFirst}
		if wordsFirst {
			h.id, h.score, w = w[0].ID, w[0].Score, w[1:]
		} else {
			h.id, h.score, m = m[0].ID, m[0].Score, m[1:]
		}
		d := docs[h.id]
		if ids[h.id] || r.Distinct != nil && slices.ContainsFunc(d.Kind, func(k string) bool { return kinds[k] }) {
			continue
		}
		ids[h.id] = true
		for _, k := range d.Kind {
			kinds[k] = true
		}
		if d.Price != nil {
			facets[fmt.Sprint(*d.Price)]++
		}
		want = append(want, h)
	}

	// Every page must be a slice of the whole list, with the same total.
	for range 4 {
		r.Offset, r.Limit, r.Page, r.HitsPerPage, r.Facets = rng.IntN(30), rng.IntN(25), nil, nil, nil
		if rng.IntN(8) == 0 {
			r.Limit = 1000
		}
		if rng.IntN(3) == 0 {
			page, size := 1+rng.IntN(5), 1+rng.IntN(12)
			r.Page, r.HitsPerPage, r.Offset, r.Limit = &page, &size, (page-1)*size, size
		}
		if rng.IntN(3) == 0 {
			r.Facets = []string{"price"}
		}
		got := l.answer("i", r)
		page := want[min(r.Offset, len(want)):]
		page = page[:min(r.Limit, len(page))]
		semanticHits := 0
		for _, h := range page {
			if h.semantic {
				semanticHits++
			}
		}
		say := func() string {
			return fmt.Sprintf("q %q, vector %v, ratio %v, offset %d, limit %d, paged %v, sort %v (first %v), distinct %v, threshold %v",
				r.Query, r.Vector, ratio, r.Offset, r.Limit, r.Page != nil, r.Sort, sortFirst, r.Distinct != nil, r.RankingScoreThreshold)
		}
		if len(got.Hits) != len(page) {
			t.Fatalf("%s: %d hits, want %d", say(), len(got.Hits), len(page))
		}
		for i, h := range got.Hits {
			_, semantic := h.Details["vectorSort"]
			if h.ID != page[i].id || h.Score != page[i].score || semantic != page[i].semantic {
				t.Fatalf("%s: hit %d is %+v, want %+v", say(), i, h, page[i])
			}
			if r.RetrieveVectors {
				checkVectors(t, docs[h.ID], h.Vectors)
			} else if h.Vectors != nil {
				t.Fatalf("%s: vectors that were not requested", say())
			}
		}
		if got.SemanticHits == nil || *got.SemanticHits != semanticHits {
			t.Fatalf("%s: semanticHitCount %v, want %d", say(), got.SemanticHits, semanticHits)
		}
		if r.RetrieveVectors != slices.Equal(got.QueryVector, r.Vector) {
			t.Fatalf("%s: queryVector %v", say(), got.QueryVector)
		}
		total := got.Estimated
		if r.Page != nil {
			total = *got.Total
		}
		if total != len(want) {
			t.Fatalf("%s: total %d, want %d", say(), total, len(want))
		}
		if r.Facets != nil && !maps.Equal(got.Facets["price"], facets) {
			t.Fatalf("%s: facets %v, want %v", say(), got.Facets, facets)
		}
	}
}

// checkSemantic compares a whole semantic search with a scan of all vectors.
func checkSemantic(t *testing.T, docs map[int]*semanticDoc, r *Request, got answerOf, sortFirst bool) {
	t.Helper()
	order := func(a, b *semanticDoc) int {
		if r.Sort == nil {
			return 0
		}
		return comparePrices(a.Price, b.Price, r.Sort[0] == "price:desc")
	}
	similarity := func(d *semanticDoc) float64 {
		best := 0.0
		for _, v := range d.Vectors["e"] {
			dot, vv, qq := 0.0, 0.0, 0.0
			for i := range v {
				dot, vv, qq = dot+float64(v[i]*r.Vector[i]), vv+float64(v[i]*v[i]), qq+float64(r.Vector[i]*r.Vector[i])
			}
			best = max(best, (1+dot/math.Sqrt(vv*qq))/2)
		}
		return best
	}
	if r.Distinct == nil && r.RankingScoreThreshold == nil && len(got.Hits) != len(docs) {
		t.Fatalf("%d hits of %d documents", len(got.Hits), len(docs))
	}
	for i, h := range got.Hits {
		d := docs[h.ID]
		if s := h.Details["vectorSort"].Similarity; math.Abs(h.Score-similarity(d)) > 1e-6 || (s == nil) != (len(d.Vectors["e"]) == 0) || s != nil && *s != h.Score {
			t.Fatalf("document %d scores %v, want %v", h.ID, h.Score, similarity(d))
		}
		if i == 0 {
			continue
		}
		before := got.Hits[i-1]
		byScore, byPrice := cmp.Compare(h.Score, before.Score), order(docs[before.ID], d)
		first, second := byScore, byPrice
		if sortFirst {
			first, second = byPrice, byScore
		}
		if first > 0 || first == 0 && second > 0 {
			t.Fatalf("document %d, score %v, comes after %d, score %v", h.ID, h.Score, before.ID, before.Score)
		}
	}
}

func comparePrices(a, b *int, desc bool) int {
	switch {
	case a == nil || b == nil:
		return cmp.Compare(btoi(a == nil), btoi(b == nil))
	case desc:
		return cmp.Compare(*b, *a)
	}
	return cmp.Compare(*a, *b)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// checkVectors compares the vectors of a hit with those of its document.
func checkVectors(t *testing.T, d *semanticDoc, shown json.RawMessage) {
	t.Helper()
	var got map[string]struct {
		Embeddings [][]float32
		Regenerate *bool
	}
	if err := json.Unmarshal(shown, &got); err != nil {
		t.Fatalf("%v: %s", err, shown)
	}
	e, ok := got["e"]
	if !ok || len(got) != 1 || e.Regenerate == nil || *e.Regenerate || e.Embeddings == nil ||
		!slices.EqualFunc(e.Embeddings, d.Vectors["e"], slices.Equal[[]float32]) {
		t.Fatalf("vectors of %d are shown as %s, want %v", d.ID, shown, d.Vectors)
	}
}

// TestPagesOfAGraphSearch pages through the results of a graph search, which misses some vectors: each document is on one page at most.
func TestPagesOfAGraphSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	vector := func() []float32 {
		v := make([]float32, 48)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	l := newLibrary(t)
	lines := make([]string, 5000)
	for i := range lines {
		v, err := json.Marshal(vector())
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = fmt.Sprintf(`{"id": %d, "t": "%s", "_vectors": {"e": %s}}`, i, []string{"lamp", "desk"}[i%2], v)
	}
	l.put("i", `{"embedders": {"e": {"source": "userProvided", "dimensions": 48}}}`, lines...)
	v := held(l.c.Get("i").View())
	defer v.Release()
	e, _ := v.Embedder("e")
	if !slices.ContainsFunc(v.Segments, func(s segment.Live) bool { return s.Vectors(e.ID) != nil && s.Vectors(e.ID).Linked() }) {
		t.Fatal("no segment has a graph")
	}
	for round := range 24 {
		ratio := []float64{.3, .5, .8, 1}[round%4]
		r := Request{Query: "lamp", Limit: 5 + rng.IntN(30), Vector: vector(), Hybrid: &Hybrid{Embedder: "e", Ratio: &ratio}}
		similar := round%8 == 7
		seen := map[int]int{}
		for page := range 5 {
			r.Offset = page * r.Limit
			a := answerOf{}
			if similar {
				body, err := Similar(context.Background(), nil, v, &SimilarRequest{ID: fmt.Sprint(round), Embedder: "e", Offset: r.Offset, Limit: r.Limit})
				if err != nil || json.Unmarshal(body, &a) != nil {
					t.Fatal(err, string(body))
				}
			} else {
				a = l.answer("i", r)
			}
			if len(a.Hits) != r.Limit || a.Estimated < 1000 {
				t.Fatalf("page %d has %d hits of %d", page, len(a.Hits), a.Estimated)
			}
			for _, h := range a.Hits {
				if before, ok := seen[h.ID]; ok {
					t.Fatalf("round %d, %d hits a page, ratio %v, similar %v: document %d is on the pages %d and %d", round, r.Limit, ratio, similar, h.ID, before, page)
				}
				seen[h.ID] = page
			}
		}
	}
}

// TestVectorsOfOtherDimensions changes the dimensions of an embedder: documents with vectors keep and show them, but searches treat them
// as documents without vectors.
func TestVectorsOfOtherDimensions(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"embedders": {"e": {"source": "userProvided", "dimensions": 2}}}`,
		`{"id": 1, "t": "red", "_vectors": {"e": [1, 0]}}`, `{"id": 2, "t": "red sea", "_vectors": {"e": [0, 1]}}`, `{"id": 3, "t": "blue", "_vectors": {"e": null}}`)
	l.put("i", `{"embedders": {"e": {"dimensions": 3}}}`)
	l.put("i", "", `{"id": 4, "t": "green", "_vectors": {"e": [0, 0, 1]}}`)
	l.put("i", "", `{"id": 2, "t": "red lake"}`) // written again
	one, half := 1.0, 0.5
	for _, r := range []Request{
		{Query: "red", Limit: 9, Hybrid: &Hybrid{Embedder: "e", Ratio: &one}},
		{Query: "red", Limit: 9, Hybrid: &Hybrid{Embedder: "e", Ratio: &half}},
	} {
		r.Vector, r.RetrieveVectors, r.ShowRankingScore, r.ShowRankingScoreDetails = []float32{0, 0, 1}, true, true, true
		a := l.answer("i", r)
		shown := map[int]string{}
		for _, h := range a.Hits {
			shown[h.ID] = string(h.Vectors)
			if v, ok := h.Details["vectorSort"]; ok && (v.Similarity != nil) != (h.ID == 4) {
				t.Errorf("ratio %v: document %d is found by its vectors: %+v", *r.Hybrid.Ratio, h.ID, h)
			}
		}
		want := map[int]string{1: `{"e":{"embeddings":[[1.0,0.0]],"regenerate":false}}`, 2: `{"e":{"embeddings":[[0.0,1.0]],"regenerate":false}}`,
			3: `{"e":{"embeddings":[],"regenerate":false}}`, 4: `{"e":{"embeddings":[[0.0,0.0,1.0]],"regenerate":false}}`}
		if !maps.Equal(shown, want) || a.Estimated != 4 {
			t.Errorf("ratio %v: %v of %d, want %v", *r.Hybrid.Ratio, shown, a.Estimated, want)
		}
	}
	v := held(l.c.Get("i").View())
	defer v.Release()
	if vectors, documents := v.Embeddings(); vectors != 3 || documents != 3 {
		t.Errorf("%d vectors of %d documents", vectors, documents)
	}
	for f, want := range map[string]int{`_vectors EXISTS`: 3, `_vectors.e EXISTS`: 3, `_vectors.e NOT EXISTS`: 1, `_vectors.e.userProvided EXISTS`: 4} {
		if got := l.answer("i", Request{Limit: 9, Filter: parseFilter(t, f)}); got.Estimated != want {
			t.Errorf("%s: %d documents, want %d", f, got.Estimated, want)
		}
	}
	l.put("i", "", `{"id": 5, "t": "white", "_vectors": {"e": [0, 1, 1]}}`)
	later := held(l.c.Get("i").View())
	defer later.Release()
	for _, test := range []struct {
		view        *index.View
		id          string
		hits, total int
	}{
		{v, "1", 0, 0}, // its vectors have other dimensions than all others
		{v, "4", 0, 1}, // totals count documents without vectors, here document 3
		{later, "1", 0, 0}, {later, "4", 1, 2}, {later, "5", 1, 2}, {later, "3", 0, 2},
	} {
		var a answerOf
		body, err := Similar(context.Background(), nil, test.view, &SimilarRequest{ID: test.id, Embedder: "e", Limit: 9, RetrieveVectors: true})
		if err != nil || json.Unmarshal(body, &a) != nil || len(a.Hits) != test.hits || a.Estimated != test.total {
			t.Errorf("similar to %s: %v %s, want %d of %d", test.id, err, body, test.hits, test.total)
		}
	}
}

package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/scroll"
)

// scrolled is the parsed answer to a search or to a request for documents.
type scrolled struct {
	Hits, Results      []map[string]any
	Offset             int
	EstimatedTotalHits int
	Total              int
	NextCursor         *string
	FacetDistribution  map[string]map[string]int
	Aggregations       map[string]any
}

// scroller is an index of random documents that are read by cursor.
type scroller struct {
	*library
	r      *rand.Rand
	places *scroll.Store
	docs   map[float64]map[string]any
	id     int
}

func newScroller(t *testing.T, r *rand.Rand) *scroller {
	s := &scroller{library: newLibrary(t), r: r, places: scroll.NewStore([]byte("x"), time.Now), docs: map[float64]map[string]any{}}
	s.put("a", `{"filterableAttributes":["price","brand","same","ms"],"sortableAttributes":["price","ms","_geo"],"searchableAttributes":["t"],
		"embedders":{"e":{"source":"userProvided","dimensions":2}}}`)
	for _, n := range []int{40, 15, 5} {
		s.write(n)
	}
	return s
}

var scrolledWords = []string{"red", "reds", "read", "hat", "cat", "red hat", "hat red", "redhat"}

// write adds documents, some of which replace others.
func (s *scroller) write(n int) {
	var texts []string
	for range n {
		s.id++
		one := randomAggregated(s.r, s.id)
		if s.r.IntN(4) == 0 {
			one["id"] = s.any()
		}
		word := func() string { return scrolledWords[s.r.IntN(len(scrolledWords))] }
		one["t"], one["same"] = word()+" "+word(), "x"
		one["_vectors"] = map[string]any{"e": []float64{s.r.Float64() + .1, s.r.Float64()}}
		if s.r.IntN(5) > 0 {
			one["_geo"] = map[string]any{"lat": s.r.Float64() / 100, "lng": s.r.Float64() / 100}
		}
		s.docs[one["id"].(float64)] = one
		body, err := json.Marshal(one)
		if err != nil {
			s.t.Fatal(err)
		}
		texts = append(texts, string(body))
	}
	s.put("a", "", texts...)
}

// any returns the id of a random document; if there is none, an unused id.
func (s *scroller) any() float64 {
	ids := slices.Sorted(maps.Keys(s.docs))
	if len(ids) == 0 {
		return 1
	}
	return ids[s.r.IntN(len(ids))]
}

// remove deletes a document.
func (s *scroller) remove(id float64) {
	s.batch++
	delete(s.docs, id)
	if _, err := s.c.Get("a").Apply(context.Background(), s.batch, []index.Op{index.DeleteDocuments{IDs: []string{fmt.Sprint(id)}}}, nil); err != nil {
		s.t.Fatal(err)
	}
}

// ask searches with or without a cursor.
func (s *scroller) ask(r Request, cursor *string) scrolled {
	s.t.Helper()
	v := held(s.c.Get("a").View())
	defer v.Release()
	if cursor != nil {
		r.Cursor = &Cursor{Text: *cursor, Places: s.places}
		if r.Filter != nil {
			r.Cursor.Filter = r.Filter
		}
	}
	found, err := Search(context.Background(), v, &r)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.parse(got(found.AppendJSON(context.Background(), nil)))
}

// fetch requests documents with or without a cursor.
func (s *scroller) fetch(r FetchRequest, cursor *string) scrolled {
	s.t.Helper()
	v := held(s.c.Get("a").View())
	defer v.Release()
	if cursor != nil {
		r.Cursor = &Cursor{Text: *cursor, Places: s.places, Filter: r.Filter}
	}
	return s.parse(got(Fetch(context.Background(), nil, v, &r)))
}

func (s *scroller) parse(body []byte) (a scrolled) {
	if err := json.Unmarshal(body, &a); err != nil {
		s.t.Fatalf("%v: %s", err, body)
	}
	if a.Hits == nil {
		a.Hits = a.Results
	}
	return a
}

// request makes a random search.
func (s *scroller) request() Request {
	r := s.r
	request := Request{Query: []string{"", "red", "hat", "red hat", "rad"}[r.IntN(5)], AttributesToRetrieve: []string{"id", "brand", "price"}, ShowRankingScore: true}
	if r.IntN(3) == 0 {
		only, err := filter.Parse("ms > 1700000000000")
		if err != nil {
			s.t.Fatal(err)
		}
		request.Filter = only
	}
	switch r.IntN(5) {
	case 0:
		threshold := r.Float64()
		request.RankingScoreThreshold = &threshold
	case 1, 2:
		distinct := []string{"brand", "price"}[r.IntN(2)]
		request.Distinct = &distinct
	}
	switch r.IntN(6) {
	case 0:
		request.Sort = []string{"price:desc"}
	case 1:
		request.Sort = []string{"price:asc", "ms:desc"}
	case 2:
		request.Sort = []string{"_geoPoint(0.005, 0.005):asc"}
	}
	if r.IntN(4) == 0 {
		request.Hybrid, request.Vector = &Hybrid{Embedder: "e"}, []float32{1, .5}
		if r.IntN(2) == 0 {
			ratio := 1.0
			request.Hybrid.Ratio = &ratio
		}
	}
	if request.RankingScoreThreshold == nil && r.IntN(5) == 0 {
		request.Rules = rulesOf(s.t.(*testing.T), pinning(pinnedHit[int]{r.IntN(6), 1 + r.IntN(s.id)}, pinnedHit[int]{6 + r.IntN(20), 1 + r.IntN(s.id)}))
	} else if request.Distinct == nil && r.IntN(8) == 0 { // with scaled scores, which duplicates are dropped depends on the page
		request.Rules = rulesOf(s.t.(*testing.T), scaling(`"filter":"brand = Acme"`, 3))
	}
	return request
}

func idsOfHits(hits []map[string]any) (ids []any) {
	for _, h := range hits {
		ids = append(ids, h["id"])
	}
	return ids
}

func describe(r *Request) string {
	return fmt.Sprintf("q %q, sort %v, distinct %v, threshold %v, hybrid %v, filter %v, rules %v", r.Query, r.Sort, r.Distinct, r.RankingScoreThreshold, r.Hybrid, r.Filter, r.Rules != nil)
}

func randomSeed(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 2))
}

// TestPagesByCursorAgreeWithOnePage reads searches page by page, some pages twice, and compares the hits with those of one long page.
func TestPagesByCursorAgreeWithOnePage(t *testing.T) {
	r := randomSeed(t)
	s := newScroller(t, r)
	aggregations, err := aggregate.Parse([]byte(`{"n":{"terms":"same"}}`), "aggregations", searchAggregations)
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		request := s.request()
		request.Limit = 1000
		all := s.ask(request, nil)
		if r.IntN(3) == 0 {
			request.Facets, request.Aggregations = []string{"same"}, aggregations
		}
		var hits []map[string]any
		cursor := new(string)
		for cursor != nil {
			request.Limit = 1 + r.IntN(20)
			page := s.ask(request, cursor)
			if page.Offset != len(hits) || len(page.Hits) > request.Limit {
				t.Fatalf("%s: %d hits at offset %d on a page of %d, after %d hits", describe(&request), len(page.Hits), page.Offset, request.Limit, len(hits))
			}
			if r.IntN(3) == 0 {
				if again := s.ask(request, cursor); fmt.Sprint(again.Hits) != fmt.Sprint(page.Hits) {
					t.Fatalf("%s: the page is %v, and %v when read again", describe(&request), page.Hits, again.Hits)
				} else {
					page = again
				}
			}
			if request.Distinct == nil && request.RankingScoreThreshold == nil && page.EstimatedTotalHits != len(all.Hits) {
				t.Fatalf("%s: a total of %d after %d hits, want %d", describe(&request), page.EstimatedTotalHits, len(hits), len(all.Hits))
			}
			if request.Facets != nil && request.Distinct == nil && request.RankingScoreThreshold == nil {
				buckets, _ := page.Aggregations["n"].(map[string]any)["buckets"].([]any)
				if n := page.FacetDistribution["same"]["x"]; n != len(all.Hits) || n > 0 && buckets[0].(map[string]any)["count"] != float64(n) {
					t.Fatalf("%s: a facet of %d documents and the buckets %v after %d hits, want %d", describe(&request), n, buckets, len(hits), len(all.Hits))
				}
			}
			if hits = append(hits, page.Hits...); len(hits) > len(s.docs) {
				break
			}
			if exact := request.Distinct == nil || request.Hybrid == nil && request.Rules == nil; exact && (page.NextCursor == nil) != (len(hits) == len(all.Hits)) {
				t.Fatalf("%s: the next cursor is %v after %d of %d hits", describe(&request), page.NextCursor, len(hits), len(all.Hits))
			}
			cursor = page.NextCursor
		}
		if len(request.Sort) > 0 && strings.HasPrefix(request.Sort[0], "_geo") { // the next page starts another group of about the same distance
			byID := func(a, b map[string]any) int { return cmp.Compare(a["id"].(float64), b["id"].(float64)) }
			slices.SortFunc(hits, byID)
			slices.SortFunc(all.Hits, byID)
			for _, h := range slices.Concat(hits, all.Hits) { // and counts only the documents that are left
				delete(h, "_rankingScore")
			}
		}
		if request.Hybrid != nil && request.Distinct != nil {
			// A long page drops duplicates in each list before it merges them. Pages also find documents that duplicate no hit.
			seen := map[any]bool{}
			for _, id := range idsOfHits(hits) {
				if seen[id] {
					t.Fatalf("%s: %v comes twice in %v", describe(&request), id, idsOfHits(hits))
				}
				seen[id] = true
			}
			continue
		}
		if fmt.Sprint(hits) != fmt.Sprint(all.Hits) {
			t.Fatalf("%s:\npages %v\nwant  %v", describe(&request), idsOfHits(hits), idsOfHits(all.Hits))
		}
	}
}

// TestPagesByCursorWhileDocumentsChange adds, replaces and deletes documents between pages. Documents that stay must be
// returned exactly once.
func TestPagesByCursorWhileDocumentsChange(t *testing.T) {
	r := randomSeed(t)
	s := newScroller(t, r)
	scrolls := 0
	for n := range 14 {
		request, fetched := s.request(), FetchRequest{Sort: [][]string{nil, {"price:asc"}}[r.IntN(2)]}
		request.RankingScoreThreshold, request.Distinct = nil, nil
		lists := n%3 == 0
		ask := func(limit int, cursor *string) scrolled {
			if request.Limit, fetched.Limit = limit, limit; lists {
				return s.fetch(fetched, cursor)
			}
			return s.ask(request, cursor)
		}
		count := func(into map[float64]int, hits []map[string]any) {
			for _, h := range hits {
				into[h["id"].(float64)]++
			}
		}
		stays, returned := map[float64]int{}, map[float64]int{}
		count(stays, ask(1000, nil).Hits)
		before := map[float64]string{}
		for id, doc := range s.docs {
			before[id] = fmt.Sprint(doc)
		}
		pages := 0
		for cursor := new(string); cursor != nil; pages++ {
			page := ask(1+r.IntN(12), cursor)
			count(returned, page.Hits)
			cursor = page.NextCursor
			switch r.IntN(4) {
			case 0:
				s.write(1 + r.IntN(3))
			case 1:
				s.remove(s.any())
			}
			if pages > 200 {
				t.Fatalf("%s: the cursor does not end", describe(&request))
			}
		}
		if pages > 1 {
			scrolls++
		}
		for id := range stays {
			if doc, ok := s.docs[id]; ok && fmt.Sprint(doc) == before[id] && returned[id] != 1 {
				t.Fatalf("%s: document %v stayed and was returned %d times", describe(&request), id, returned[id])
			}
		}
		for len(s.docs) < 50 {
			s.write(5)
		}
	}
	if scrolls < 4 {
		t.Errorf("only %d scrolls had several pages", scrolls)
	}
}

// TestDocumentsByCursor lists documents page by page, by id and in other orders.
func TestDocumentsByCursor(t *testing.T) {
	r := randomSeed(t)
	s := newScroller(t, r)
	for n := range 30 {
		var request FetchRequest
		if n%2 == 0 {
			request.Sort = []string{"price:desc"}
		}
		if r.IntN(2) == 0 {
			request.Filter = parseFilter(t, "ms > 1700000000000")
		}
		if r.IntN(4) == 0 {
			request.IDs = []string{"1", "5", "9", "10", "11", "77"}
		}
		request.Limit = 1000
		all := s.fetch(request, nil)
		var docs []map[string]any
		for cursor := new(string); cursor != nil; {
			request.Limit = 1 + r.IntN(20)
			page := s.fetch(request, cursor)
			if page.Offset != len(docs) || page.Total != len(all.Hits) {
				t.Fatalf("%+v: offset %d and total %d after %d documents of %d", request, page.Offset, page.Total, len(docs), len(all.Hits))
			}
			docs = append(docs, page.Hits...)
			if (page.NextCursor == nil) != (len(docs) == len(all.Hits)) {
				t.Fatalf("%+v: the next cursor is %v after %d of %d documents", request, page.NextCursor, len(docs), len(all.Hits))
			}
			cursor = page.NextCursor
		}
		if fmt.Sprint(docs) != fmt.Sprint(all.Hits) {
			t.Fatalf("%+v:\npages %v\nwant  %v", request, docs, all.Hits)
		}
		if places, _ := s.places.Places(); n == 1 && request.Sort == nil && places > 1 {
			t.Errorf("%d positions are cached for one list, want 1", places)
		}
	}
}

// TestCursorsOfOtherSearches sends cursors with requests that they do not belong to.
func TestCursorsOfOtherSearches(t *testing.T) {
	s := newScroller(t, rand.New(rand.NewPCG(3, 4)))
	code := func(r Request, cursor string) apierr.Code {
		v := held(s.c.Get("a").View())
		defer v.Release()
		r.Cursor, r.Limit = &Cursor{Text: cursor, Places: s.places, Filter: r.Filter}, 5
		err := r.Check()
		if err == nil {
			_, err = Search(context.Background(), v, &r)
		}
		if err == nil {
			return ""
		}
		return apierr.From(err).Code
	}
	page, ratio, brand := 1, .3, "brand"
	for _, own := range []Request{{}, {Query: "red"}} {
		own.Limit = 5
		first := s.ask(own, new(string))
		if first.NextCursor == nil {
			t.Fatal("there is only one page")
		}
		cursor := *first.NextCursor
		shown := own
		shown.ShowRankingScore, shown.AttributesToRetrieve, shown.Facets = true, []string{"t"}, []string{"brand"}
		if got := code(shown, cursor); got != "" {
			t.Errorf("another form of the hits: %s", got)
		}
		for what, other := range map[string]func(r *Request){
			"query":     func(r *Request) { r.Query += "x" },
			"filter":    func(r *Request) { r.Filter = parseFilter(t, "same = x") },
			"sort":      func(r *Request) { r.Sort = []string{"price:asc"} },
			"distinct":  func(r *Request) { r.Distinct = &brand },
			"searched":  func(r *Request) { r.SearchOn = []string{"t"} },
			"strategy":  func(r *Request) { r.Strategy++ },
			"threshold": func(r *Request) { r.RankingScoreThreshold = &ratio },
			"hybrid":    func(r *Request) { r.Hybrid, r.Vector = &Hybrid{Embedder: "e", Ratio: &ratio}, []float32{1, 0} },
			"offset":    func(r *Request) { r.Offset = 1 },
			"page":      func(r *Request) { r.Page = &page },
			"groups":    func(r *Request) { r.GroupBy = &GroupBy{Attribute: "brand", Hits: 1} },
		} {
			r := own
			other(&r)
			if got := code(r, cursor); got != "invalid_search_cursor" {
				t.Errorf("another %s: %q", what, got)
			}
		}
		for i := range cursor {
			for _, wrong := range []string{cursor[:i], cursor[:i] + "A" + cursor[i+1:], cursor[:i] + "-" + cursor[i:]} {
				if wrong != cursor && wrong != "" {
					if got := code(own, wrong); got != "invalid_search_cursor" {
						t.Fatalf("%s in place of %s: %q", wrong, cursor, got)
					}
				}
			}
		}
	}
	v := held(s.c.Get("a").View())
	defer v.Release()
	first := s.fetch(FetchRequest{Limit: 5}, new(string))
	_, err := Fetch(context.Background(), nil, v, &FetchRequest{Limit: 5, Sort: []string{"price:asc"}, Cursor: &Cursor{Text: *first.NextCursor, Places: s.places}})
	if err == nil || apierr.From(err).Code != "invalid_document_cursor" {
		t.Errorf("another order of documents: %v", err)
	}
	if err := (&FetchRequest{Offset: 1, Cursor: &Cursor{}}).CheckCursor(); err == nil || !strings.Contains(err.Error(), "offset") {
		t.Errorf("an offset: %v", err)
	}
}

// TestSmallPagesReuseRanking reads a few small pages. From the third one on, a page must rank only its own documents while neither index
// nor filter changes.
func TestSmallPagesReuseRanking(t *testing.T) {
	s := newScroller(t, randomSeed(t))
	request := Request{Query: "red", Sort: []string{"price:asc"}, Limit: 2}
	first := s.ask(request, new(string))
	second := s.ask(request, first.NextCursor)
	ranked := func(what string, token *filter.Expr, want int) {
		t.Helper()
		v := held(s.c.Get("a").View())
		defer v.Release()
		r := request
		r.Cursor, r.Filter = &Cursor{Text: *second.NextCursor, Places: s.places}, token
		page, err := r.openPage(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		defer page.Close()
		k, err := newRankingOf(t.Context(), v, &r, page, nil)
		if err != nil {
			t.Fatal(err)
		}
		if k.total >= 0 != (want > 0) || want > 0 && (cardinality(k.rows) != want || k.total != second.EstimatedTotalHits) {
			t.Errorf("%s: %d rows, total %d", what, cardinality(k.rows), k.total)
		}
	}
	ranked("the same", nil, 3)
	ranked("another filter", parseFilter(t, "same = x"), 0)
	s.write(1)
	ranked("after a write", nil, 0)
}

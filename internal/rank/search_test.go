package rank

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"

	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/segment"
)

func mustSearch(t testing.TB, ix *Index, r Request) *Result {
	t.Helper()
	if r.Limit == 0 {
		r.Limit = 20
	}
	if r.MaxTotal == 0 {
		r.MaxTotal = 1000
	}
	r.Universe = universe(ix)
	res, err := Search(context.Background(), ix, &r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestScoreOfWorkedExample(t *testing.T) {
	ix := build(t, parseSettings(t, `{"searchableAttributes":["title","body"]}`), [][]*document{{
		doc(0, "title", "dark chocolate cake"),
		doc(1, "title", "chocolate and dark cake"),
		doc(2, "title", "cake", "body", "with dark bitter chocolate"),
		doc(3, "title", "dark chocolat tart", "body", "cake"),
		doc(4, "title", "dark cake"),
		doc(5, "title", "black cake", "body", "dark"),
	}}, nil)
	res := mustSearch(t, ix, Request{Query: "dark chocolate cake", Scores: true, Details: true})
	want := []float64{1, 0.961546, 0.956708, 0.902170, 0.330808, 0.25}
	if got := found(res); got != "0 1 2 3 4 5" {
		t.Fatalf("order %s", got)
	}
	for i, h := range res.Hits {
		if d := h.Score - want[i]; d > 1e-6 || d < -1e-6 {
			t.Errorf("document %d: score %f, want %f: %s", h.ID, h.Score, want[i], h.Details)
		}
	}
}

func TestProximityOfTwoWords(t *testing.T) {
	ix := build(t, parseSettings(t, `{"rankingRules":["words","proximity"]}`), [][]*document{{
		doc(0, "t", "aaa bbb"), doc(1, "t", "aaa-bbb"), doc(2, "t", "aaa x bbb"), doc(3, "t", "bbb aaa"),
		doc(4, "t", "aaa x x bbb"), doc(5, "t", "bbb x aaa"), doc(6, "t", "aaa x x x bbb"), doc(7, "t", "aaa", "u", "bbb"),
		doc(8, "t", "aaa", "t", "bbb"), doc(9, "t", "aaa. bbb"),
	}}, nil)
	want := []float64{1, 1, .75, .75, .5, .5, .25, .25, .25, .25}
	for i, h := range mustSearch(t, ix, Request{Query: "aaa bbb", Scores: true, Strategy: query.All}).Hits {
		if h.Score != want[i] || int(h.ID) != i {
			t.Errorf("hit %d: document %d, score %v, want %v", i, h.ID, h.Score, want[i])
		}
	}
}

func TestQueriesFind(t *testing.T) {
	ix := build(t, parseSettings(t, `{"synonyms":{"nyc":["new york city"],"gallery":["state of art"]},"stopWords":["of"]}`), [][]*document{{
		doc(0, "t", "planets and stars"), doc(1, "t", "plamet"), doc(2, "t", "lanet"), doc(3, "t", "sun flower"),
		doc(4, "t", "sunflower seeds"), doc(5, "t", "new york city"), doc(6, "t", "state of art"), doc(7, "t", "state x art"),
	}, {
		doc(8, "t", "state x y art"), doc(9, "t", "apple red"), doc(10, "t", "apple green"), doc(11, "t", "newyork"),
	}}, nil)
	for _, c := range []struct{ query, want string }{
		{"planet", "0 1"}, {"planet ", "0 1"}, {"sunflower", "4 3"}, {"sun flower", "3 4"}, {"nyc", "5"}, {"gallery", "6"},
		{`"state of art"`, "6"}, {`"state art"`, ""}, {`"of art"`, "6"}, {`-"of art" state`, "7 8"}, {"of", "6"}, {"of ", "6"}, {"of of", "6"},
		{"-of state", "7 8"}, {`"of"`, "6"}, {"of state", "6 7 8"}, {"planet of", "0 1"}, {"apple -red", "10"}, {`apple -"apple red"`, "10"}, {"new york", "5 11"},
		{"pla", "0 1"}, {`"planet`, ""}, {"-red state", "6 7 8"},
	} {
		if got := found(mustSearch(t, ix, Request{Query: c.query})); got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
}

// TestStopWordIsAPrefix searches a stop word that texts have as such and as another word of the same form (à). The words that start with
// it are so many that they share a posting: as a prefix, it finds all of them.
func TestStopWordIsAPrefix(t *testing.T) {
	part := []*document{doc(0, "t", "a"), doc(1, "t", "à")}
	for id := 2; id < 42; id++ {
		part = append(part, doc(id, "t", fmt.Sprintf("a%c%c", 'b'+id/20, 'b'+id%20)))
	}
	ix := build(t, parseSettings(t, `{"stopWords":["a"]}`), [][]*document{part}, nil)
	if p, ok := ix.Segments[0].Prefix([]byte("a")); !ok || p.Most() < 40 {
		t.Fatal("the prefix has no posting")
	}
	if n := mustSearch(t, ix, Request{Query: "a", Limit: 100, MaxTotal: 100}).Total; n != 42 {
		t.Errorf("it finds %d documents, want 42", n)
	}
}

func TestDeadlineReturnsPartialResults(t *testing.T) {
	ix := build(t, parseSettings(t, `{}`), [][]*document{{doc(0, "t", "x aaa"), doc(1, "t", "aaa")}, {doc(2, "t", "aaa bbb"), doc(3, "t", "zzz")}}, nil)
	res := mustSearch(t, ix, Request{Query: "aaa bbb", Scores: true, Details: true, Deadline: time.Now().Add(-time.Second)})
	if got := found(res); got != "0 1 2" || !res.Degraded || res.Total != 3 {
		t.Fatalf("hits %s of %d, degraded %v", got, res.Total, res.Degraded)
	}
	for _, h := range res.Hits {
		if h.Score != 0 || string(h.Details) != `{"skipped":{"order":0}}` {
			t.Errorf("document %d: score %v %s", h.ID, h.Score, h.Details)
		}
	}
	one := 0.5
	if res := mustSearch(t, ix, Request{Query: "aaa bbb", Threshold: &one, Deadline: time.Now().Add(-time.Second)}); len(res.Hits) != 0 || res.Total != 0 {
		t.Errorf("with a threshold: %d hits of %d", len(res.Hits), res.Total)
	}
	if res := mustSearch(t, ix, Request{Query: "aaa bbb", Deadline: time.Now().Add(time.Hour)}); res.Degraded {
		t.Error("degraded before the deadline")
	}
}

// overAt is a context whose deadline has passed at one of the calls, but not later.
type overAt struct {
	context.Context
	left int
}

func (c *overAt) Err() error {
	if c.left--; c.left == 0 {
		return context.Canceled
	}
	return nil
}

// TestDeadlineOmitsDeletedDocuments passes the deadline at each call in turn: the rest of the documents is added without the deleted ones.
func TestDeadlineOmitsDeletedDocuments(t *testing.T) {
	ix := build(t, parseSettings(t, `{}`), [][]*document{
		{doc(0, "t", "aaa bbb"), doc(1, "t", "aaa"), doc(2, "t", "aaa bbb ccc"), doc(3, "t", "aaa")}, {doc(4, "t", "aaa"), doc(5, "t", "aaa bbb")},
	}, map[segment.DocID]bool{0: true, 3: true})
	degraded := 0
	for k := 1; ; k++ {
		ctx := &overAt{context.Background(), k}
		for _, offset := range []int{0, 4, 5} {
			ctx.left = k
			res, err := Search(ctx, ix, &Request{Query: "aaa bbb ccc", HitsOnly: true, Brief: true, Offset: offset, Limit: 20, MaxTotal: 1000})
			if err != nil { // the deadline passed at the end
				continue
			}
			want := max(0, 4-offset)
			if deleted := slices.ContainsFunc(res.Hits, func(h Hit) bool { return h.ID == 0 || h.ID == 3 }); deleted || len(res.Hits) != want || res.Total != 4 {
				t.Fatalf("over at %d: hits %s of %d", k, found(res), res.Total)
			}
			if res.Degraded {
				degraded++
			}
		}
		if ctx.left > 0 {
			break
		}
	}
	if degraded < 2 {
		t.Errorf("the deadline passed in %d searches", degraded)
	}
}

// TestDeadlineEndsDeduplication checks that duplicates are no longer searched once the page is full and the deadline has passed.
func TestDeadlineEndsDeduplication(t *testing.T) {
	defer func(n int) { clockRows = n }(clockRows)
	clockRows = 10
	var docs []*document
	for i := range 60 {
		docs = append(docs, doc(i, "group", i%15))
	}
	ix := build(t, parseSettings(t, `{"filterableAttributes":["group"]}`), [][]*document{docs}, nil)
	r := Request{Distinct: "group", Limit: 2}
	if res := mustSearch(t, ix, r); res.Total != 15 {
		t.Errorf("%d groups before the deadline, want 15", res.Total)
	}
	r.Deadline = time.Unix(1, 0)
	res := mustSearch(t, ix, r)
	if got := found(res); got != "0 1" || !res.Degraded || res.Total <= 15 || res.Total >= 60 {
		t.Errorf("hits %s of %d, degraded %v", got, res.Total, res.Degraded)
	}
}

func TestCanceledSearch(t *testing.T) {
	ix := build(t, parseSettings(t, `{}`), [][]*document{{doc(0, "t", "aaa")}}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Search(ctx, ix, &Request{Query: "aaa", Limit: 1, MaxTotal: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestErrorsOfRequests(t *testing.T) {
	ix := build(t, parseSettings(t, `{"searchableAttributes":["title","other","a.b"],"rankingRules":["words"]}`),
		[][]*document{{doc(0, "title", "aaa", "body", "bbb", "a.b", "aaa")}}, nil)
	for _, c := range []struct {
		r    Request
		code string
		hits int
	}{
		{Request{Query: "aaa", Sort: []SortKey{{Field: "title"}}}, "invalid_search_sort", 0},
		{Request{Query: "aaa", SearchOn: []string{"body"}}, "invalid_search_attributes_to_search_on", 0},
		{Request{Query: "aaa", SearchOn: []string{"*", "unknown"}}, "invalid_search_attributes_to_search_on", 0},
		{Request{Query: "aaa", SearchOn: []string{"a"}}, "invalid_search_attributes_to_search_on", 0},
		{Request{Query: "", SearchOn: []string{"unknown"}}, "invalid_search_attributes_to_search_on", 0},
		{Request{Query: "", SearchOn: []string{"title"}}, "", 1},
		{Request{Query: "aaa", SearchOn: []string{"other"}}, "", 0},
		{Request{Query: "aaa", SearchOn: []string{}}, "", 0},
		{Request{Query: "aaa", SearchOn: []string{"a.*"}}, "", 1},
		{Request{Query: "aaa", SearchOn: []string{"*.b"}}, "", 1},
		{Request{Query: "aaa", SearchOn: []string{"x*"}}, "", 0},
	} {
		c.r.Limit, c.r.MaxTotal = 10, 10
		res, err := Search(context.Background(), ix, &c.r)
		if err != nil {
			if e := apierr.From(err); string(e.Code) != c.code {
				t.Errorf("%v: %v", c.r, err)
			}
			continue
		}
		if c.code != "" || len(res.Hits) != c.hits {
			t.Errorf("%q on %v: %d hits, want %d or %s", c.r.Query, c.r.SearchOn, len(res.Hits), c.hits, c.code)
		}
	}
}

func TestSortByDistance(t *testing.T) {
	ix := build(t, parseSettings(t, `{}`), [][]*document{
		{doc(0, "t", "a", "_geo", point{10, 0}), doc(1, "t", "a", "_geo", point{1, 0}), doc(2, "t", "a")},
		{doc(3, "t", "a", "_geo", point{5, 0}), doc(4, "t", "a", "_geo", point{1.000001, 0})},
	}, nil)
	asc := mustSearch(t, ix, Request{Sort: []SortKey{{Geo: true}, {Field: "t"}}, Details: true})
	if got := found(asc); got != "1 4 3 0 2" {
		t.Errorf("ascending: %s", got)
	}
	const want = `{"_geoPoint(0, 0):asc":{"order":0,"value":{"lat":1.0,"lng":0.0},"distance":111194.927},"t:asc":{"order":1,"value":"a"}}`
	for _, h := range asc.Hits[:2] { // 11 cm apart: one group, with the distance of its first document
		if string(h.Details) != want {
			t.Errorf("document %d: %s, want %s", h.ID, h.Details, want)
		}
	}
	if got := string(asc.Hits[4].Details); got != `{"_geoPoint(0, 0):asc":{"order":0,"value":null,"distance":null},"t:asc":{"order":1,"value":"a"}}` {
		t.Errorf("without a point: %s", got)
	}
	if got := found(mustSearch(t, ix, Request{Sort: []SortKey{{Geo: true, Desc: true}}})); got != "0 3 1 4 2" {
		t.Errorf("descending: %s", got)
	}
}

func TestHiddenRule(t *testing.T) {
	ix := build(t, parseSettings(t, `{"displayedAttributes":["t"],"rankingRules":["n:asc","words"]}`), [][]*document{{doc(0, "t", "a", "n", 1)}}, nil)
	want := `{"<hidden-rule-0>":{"order":0,"value":"<hidden>"},"words":{"order":1,"matchingWords":1,"maxMatchingWords":1,"score":1.0}}`
	if got := string(mustSearch(t, ix, Request{Query: "a", Details: true}).Hits[0].Details); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestHighlights(t *testing.T) {
	ix := build(t, parseSettings(t, `{"synonyms":{"nyc":["new york city","apple"]}}`), [][]*document{{
		doc(0, "t", "planets plamet sun flower sunflower nyc"),
	}}, nil)
	print := func(q string) string {
		var b strings.Builder
		h := mustSearch(t, ix, Request{Query: q, Strategy: query.Frequency}).Highlights()
		for _, p := range h.Phrases {
			fmt.Fprintf(&b, "%q %d-%d; ", p.Words, p.First, p.Last)
		}
		for _, w := range h.Words {
			fmt.Fprintf(&b, "%q %q %d chars %d-%d; ", slices.Sorted(maps.Keys(w.Forms)), w.Prefixes, w.Chars, w.First, w.Last)
		}
		return strings.TrimSuffix(b.String(), "; ")
	}
	for _, c := range []struct{ query, want string }{
		{"planet", `[] ["plamet" "planets"] 6 chars 0-0`},
		{"p", `[] ["plamet" "planets"] 1 chars 0-0`},
		{"planet ", `["plamet" "planets"] [] 6 chars 0-0`},
		{"sunflower ", `["sun" "flower"] 0-0; ["sunflower"] [] 9 chars 0-0`},
		{"sun flower", `["sun"] [] 3 chars 0-0; [] ["sunflower"] 9 chars 0-1; [] ["flower"] 6 chars 1-1`},
		{"nyc ", `["apple"] 0-0; ["new" "york" "city"] 0-0; ["nyc"] [] 3 chars 0-0`},
		{`"sun flower" `, `["sun" "flower"] 0-1`},
		{"unknown", ""},
	} {
		got := print(c.query)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
}

func TestSearchesShareAView(t *testing.T) {
	c := smallIndex(t, `{"synonyms":{"aaa":["b c"]}}`)
	m := &maker{Rand: rand.New(rand.NewPCG(1, 2))}
	m.vocabulary()
	var requests []*Request
	var want []string
	for range 40 {
		r := m.request(true)
		r.Universe, r.SearchOn = universe(c), nil
		requests = append(requests, r)
		own := *c
		own.Cache = query.NewCache(resultcache.New(64 << 20))
		res, err := Search(context.Background(), &own, r)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, found(res))
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for i := range 3 * len(requests) {
				k := i % len(requests)
				res, err := Search(context.Background(), c, requests[k])
				if err != nil || found(res) != want[k] {
					t.Errorf("%q: %v, %s, want %s", requests[k].Query, err, found(res), want[k])
					return
				}
			}
		})
	}
	wait.Wait()
}

// TestRulesBeforeWordsListAll checks that a rule before words ranks documents that lack words by the words that they have, and drops none.
func TestRulesBeforeWordsListAll(t *testing.T) {
	docs := [][]*document{{
		doc(0, "t", "red", "n", 1), doc(1, "t", "x red green", "n", 1), doc(2, "t", "red green blue", "n", 1),
		doc(3, "u", "red x blue green", "n", 2), doc(4, "t", "green blue", "n", 1),
	}}
	for _, c := range []struct{ rules, want string }{
		{`["attributeRank"]`, "0 1 2 3"},
		{`["attributeRank","words"]`, "2 1 0 3"},
		{`["wordPosition","words"]`, "2 0 3 1"},
		{`["sort","attributeRank"]`, "3 0 1 2"},
		{`["attributeRank","typo"]`, "2 1 0 3"},
		{`["wordPosition","attributeRank","words","exactness"]`, "2 0 1 3"},
	} {
		ix := build(t, parseSettings(t, `{"searchableAttributes":["t","u"],"sortableAttributes":["n"],"rankingRules":`+c.rules+`}`), docs, nil)
		for _, scores := range []bool{false, true} {
			r := Request{Query: "red green blue", Scores: scores}
			if strings.Contains(c.rules, "sort") {
				r.Sort = []SortKey{{Field: "n", Desc: true}}
			}
			if res := mustSearch(t, ix, r); found(res) != c.want || res.Total != 4 {
				t.Errorf("%s: %s of %d, want %s", c.rules, found(res), res.Total, c.want)
			}
		}
	}
}

// TestRepeatedWordByAttribute checks that with the precision byAttribute a repeated word shares a field with itself.
func TestRepeatedWordByAttribute(t *testing.T) {
	ix := build(t, parseSettings(t, `{"proximityPrecision":"byAttribute","rankingRules":["words","proximity"]}`), [][]*document{{
		doc(0, "t", "fox uber"), doc(1, "t", "uber uber fox"), doc(2, "t", "uber", "u", "fox"),
	}}, nil)
	want := []float64{1, 1, 18. / 21}
	res := mustSearch(t, ix, Request{Query: "uber uber fox ", Scores: true})
	if got := found(res); got != "0 1 2" {
		t.Fatalf("order %s", got)
	}
	for i, h := range res.Hits {
		if h.Score != want[i] {
			t.Errorf("document %d: score %v, want %v", h.ID, h.Score, want[i])
		}
	}
	if got := found(mustSearch(t, ix, Request{Query: `"uber uber"`})); got != "0 1 2" {
		t.Errorf("the phrase finds %s", got)
	}
}

// TestSegmentCachesAcrossViews searches a series of views, with more and more deleted documents and other segments, and compares the
// results with those of a view without caches.
func TestSegmentCachesAcrossViews(t *testing.T) {
	defer func(c, l, lead int) { classRows, listRows, largeRows = c, l, lead }(classRows, listRows, largeRows)
	classRows, listRows, largeRows = 2, 3, 4
	const seed = 4
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 2))}
	m.vocabulary()
	for _, update := range []string{`{}`, `{"proximityPrecision":"byAttribute","typoTolerance":{"disableOnAttributes":["name"]}}`} {
		c := smallIndex(t, update)
		memory := resultcache.New(16 << 20)
		scopes := make([]*resultcache.Scope, len(c.Segments))
		for i := range scopes {
			scopes[i] = memory.Scope()
		}
		var requests []*Request
		for range 60 {
			r := m.request(true)
			r.Universe = nil
			requests = append(requests, r)
		}
		for round := range 8 {
			view := *c
			view.Segments = nil
			var kept []*resultcache.Scope
			for i := range c.Segments {
				s := &c.Segments[i]
				gone := roaring.New()
				if s.Deleted != nil {
					gone = s.Deleted.Clone()
				}
				if gone.Add(uint32(m.IntN(s.Rows()))); round > 0 {
					s.Deleted = gone
				}
				if m.IntN(4) > 0 {
					view.Segments = append(view.Segments, *s)
					kept = append(kept, scopes[i])
				}
			}
			fresh := view
			view.Cache, fresh.Cache = query.NewCache(memory, kept...), query.NewCache(resultcache.New(16<<20))
			for range 2 { // the second request fills the cache
				for _, r := range requests {
					got, err := Search(context.Background(), &view, r)
					if err != nil {
						t.Fatal(err)
					}
					want, err := Search(context.Background(), &fresh, r)
					if err != nil {
						t.Fatal(err)
					}
					if found(got) != found(want) {
						t.Fatalf("seed %d, round %d, %q: %s, want %s", seed, round, r.Query, found(got), found(want))
					}
				}
			}
			view.Cache.Close()
		}
	}
}

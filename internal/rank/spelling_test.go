package rank

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/segment"
)

// TestAccentsBreakTies checks that documents spelt like the query come first among those that are equal under all rules. The query with
// other accents comes first, and each query is repeated, since answers may be cached.
func TestAccentsBreakTies(t *testing.T) {
	defer func(rows int) { largeRows = rows }(largeRows)
	largeRows = 2
	parts := [][]*document{
		{doc(0, "title", "résumé", "body", "x", "price", 1), doc(1, "title", "resume", "body", "y", "price", 1), doc(2, "title", "resumé", "body", "résumé", "price", 2)},
		{doc(3, "title", "Résumé résumé", "price", 1), doc(4, "title", "RE\u0301SUME\u0301", "price", 2), doc(5, "title", "resume", "price", 2)},
	}
	const some = `{"sortableAttributes":["price"],"filterableAttributes":["price"],"rankingRules":["words","typo","sort"]}`
	for _, test := range []struct {
		settings string
		r        Request
		want     []segment.DocID
	}{
		{some, Request{Query: "resume"}, []segment.DocID{1, 5, 0, 2, 3, 4}},
		{some, Request{Query: "résumé"}, []segment.DocID{0, 2, 3, 4, 1, 5}},
		{some, Request{Query: "RESUMÉ"}, []segment.DocID{2, 0, 1, 3, 4, 5}},
		{some, Request{Query: "rèsume"}, []segment.DocID{0, 1, 2, 3, 4, 5}},
		{some, Request{Query: "res"}, []segment.DocID{0, 1, 2, 3, 4, 5}},
		{some, Request{Query: "rés"}, []segment.DocID{0, 2, 3, 4, 1, 5}},
		{some, Request{Query: "résumé "}, []segment.DocID{0, 2, 3, 4, 1, 5}},
		{some, Request{Query: `"résumé"`}, []segment.DocID{0, 2, 3, 4, 1, 5}},
		{some, Request{Query: `"résumé resume"`}, []segment.DocID{3}},
		{some, Request{Query: "résumé", SearchOn: []string{"title"}}, []segment.DocID{0, 3, 4, 1, 2, 5}},
		{some, Request{Query: "resume", SearchOn: []string{"title"}}, []segment.DocID{1, 5, 0, 2, 3, 4}},
		{some, Request{Query: "resume", Sort: []SortKey{{Field: "price", Desc: true}}}, []segment.DocID{5, 2, 4, 1, 0, 3}},
		{some, Request{Query: "resume", Distinct: "price"}, []segment.DocID{1, 5}},
		{some, Request{Query: "résumé", Distinct: "price"}, []segment.DocID{0, 2}},
		{some, Request{Query: "resume", Offset: 1, Limit: 3}, []segment.DocID{5, 0, 2}},
		{some, Request{Query: "resume x"}, []segment.DocID{0, 1, 5, 2, 3, 4}}, // documents with more words come first
		{`{"rankingRules":["price:desc"],"sortableAttributes":["price"]}`, Request{Query: "resume"}, []segment.DocID{5, 2, 4, 1, 0, 3}},
		{some, Request{}, []segment.DocID{0, 1, 2, 3, 4, 5}},
	} {
		ix := build(t, parseSettings(t, test.settings), parts, nil)
		memory := resultcache.New(1 << 20)
		ix.Cache = query.NewCache(memory, memory.Scope(), memory.Scope())
		swapped := strings.NewReplacer("é", "e", "e", "é").Replace(test.r.Query)
		for _, other := range []string{swapped, test.r.Query, test.r.Query, strings.ToUpper(test.r.Query)} {
			r := test.r
			if r.Limit == 0 {
				r.Limit = 20
			}
			r.MaxTotal, r.Query = 1000, other
			got, err := Search(context.Background(), ix, &r)
			if err != nil {
				t.Fatal(err)
			}
			if other != "" && other == swapped {
				continue
			}
			var ids []segment.DocID
			for _, h := range got.Hits {
				ids = append(ids, h.ID)
			}
			if !slices.Equal(ids, test.want) {
				t.Errorf("%+v: %v, want %v", r, ids, test.want)
			}
		}
	}
}

// TestSpellingsAreCachedWithSegments searches one view, and then another one of the same segments, which uses the first one's cache.
// Searches of some fields cache nothing.
func TestSpellingsAreCachedWithSegments(t *testing.T) {
	ix := build(t, parseSettings(t, `{"rankingRules":["words"]}`), [][]*document{{doc(0, "title", "café"), doc(1, "title", "cafe")}}, nil)
	memory := resultcache.New(1 << 20)
	scope := memory.Scope()
	ask := func(r Request) *spellingsIn {
		t.Helper()
		ix.Cache = query.NewCache(memory, scope)
		r.Limit, r.MaxTotal = 9, 9
		got, err := Search(context.Background(), ix, &r)
		if err != nil || len(got.Hits) != 2 || got.Hits[0].ID != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		kept, _ := segmentSpellings.Get(scope, (&writtenWord{form: "cafe", typed: "cafe"}).appendKey(ix.OfSegment(0).Key(nil)))
		return kept
	}
	if kept := ask(Request{Query: "cafe", SearchOn: []string{"title"}}); kept != nil {
		t.Error("a search of one field has cached rows")
	}
	first := ask(Request{Query: "cafe"})
	if again := ask(Request{Query: "cafe"}); first == nil || again != first {
		t.Errorf("cached at first: %v, then: %v", first, again)
	}

	// Spellings that do not distinguish documents are cached, too, which saves the walk.
	if _, err := Search(context.Background(), ix, &Request{Query: "cafè", Limit: 9, MaxTotal: 9}); err != nil {
		t.Fatal(err)
	}
	key := (&writtenWord{form: "cafe", typed: "cafè", prefix: true}).appendKey(ix.OfSegment(0).Key(nil))
	if none, ok := segmentSpellings.Get(scope, key); !ok || none != nil {
		t.Errorf("cached where nothing agrees: %v, %v", none, ok)
	}
	segmentSpellings.Put(scope, key, first, 1)
	if got, err := Search(context.Background(), ix, &Request{Query: "cafè", Limit: 9, MaxTotal: 9}); err != nil || got.Hits[0].ID != 0 {
		t.Errorf("the cache is not used: %v, %v", got, err)
	}
}

// TestSpellingsAreNotScored checks that accents do not affect scores and their details.
func TestSpellingsAreNotScored(t *testing.T) {
	ix := build(t, parseSettings(t, `{}`), [][]*document{{doc(0, "title", "café"), doc(1, "title", "cafe")}}, nil)
	got, err := Search(context.Background(), ix, &Request{Query: "cafe", Limit: 9, MaxTotal: 9, Scores: true, Details: true, Values: true})
	if err != nil {
		t.Fatal(err)
	}
	a, b := got.Hits[0], got.Hits[1]
	if a.ID != 1 || a.Score != b.Score || string(a.Details) != string(b.Details) || len(a.Values) != 1 || a.Spelling != 0 || b.Spelling != 1 {
		t.Errorf("%+v, %+v", a, b)
	}
	if strings.Contains(string(a.Details), "spelling") {
		t.Errorf("%s", a.Details)
	}
}

// TestSpellingsOfShortPrefixes checks that only the spellings of the word itself count if too many spellings start with a possibly
// unfinished word, and always if it is typed without accents.
func TestSpellingsOfShortPrefixes(t *testing.T) {
	docs := []*document{doc(0, "title", "abc")}
	for i := range 120 {
		docs = append(docs, doc(1+i, "title", fmt.Sprintf("á%c%c", 'a'+i%10, 'a'+i/10)))
	}
	docs = append(docs, doc(121, "title", "á"), doc(122, "title", "a"))
	ix := build(t, parseSettings(t, `{"rankingRules":["words"]}`), [][]*document{docs}, nil)
	for _, test := range []struct {
		query       string
		hits        int
		first, last segment.DocID
	}{{"a", 123, 0, 121}, {"á", 123, 121, 122}, {"ab", 13, 0, 112}, {"áb", 13, 2, 0}} {
		got, err := Search(context.Background(), ix, &Request{Query: test.query, Limit: 200, MaxTotal: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(got.Hits); n != test.hits || got.Hits[0].ID != test.first || got.Hits[n-1].ID != test.last {
			t.Errorf("%s: %d hits from %d to %d, want %d from %d to %d", test.query, n, got.Hits[0].ID, got.Hits[n-1].ID, test.hits, test.first, test.last)
		}
	}
}

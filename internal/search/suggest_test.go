package search

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/index"
	"svc/internal/query"
)

// TestSuggest requests suggestions for words that are misspelt, filtered out or hidden, and with similar queries of other clients.
func TestSuggest(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"filterableAttributes": ["tenant"], "searchableAttributes": ["t", "secret"], "displayedAttributes": ["id", "t"], "typoTolerance": {"enabled": false}, "suggestions": {"block": ["Silk"]}}`,
		`{"id": 1, "t": "leather boots", "tenant": 1, "secret": "saddle"}`, `{"id": 2, "t": "rubber boots", "tenant": 1}`,
		`{"id": 3, "t": "rubber books", "tenant": 2}`)
	l.put("i", ``, `{"id": 4, "t": "rubber boats", "tenant": 2}`, `{"id": 5, "t": "silk scarf", "tenant": 1}`)
	popular := func(q, source string) string {
		return fmt.Sprintf(`{"id": %q, "query": %q, "source": %q, "count": 9, "hits": 2}`, SuggestionID(q), q, source)
	}
	l.put("i_suggestions", ``, popular("rubber boots", FromQueries), popular("leather books", FromQueries), popular("rubber", FromWords), popular("silk scarf", FromQueries),
		`{"id": "x", "query": "boots", "source": "queries", "count": 9, "hits": 2}`)
	for _, tt := range []struct {
		q      string
		filter string
		own    bool // ignores queries of others
		r      Request
		want   string
	}{
		{"leather boots", "", false, Request{}, ""},                                                          // found as typed
		{"boost", "", true, Request{}, "boots 2,boats 1,books 1"},                                            // more documents first
		{"boost", "tenant = 2", true, Request{}, "boats 1,books 1"},                                          // only documents of the filter
		{"lether bots", "", true, Request{Strategy: query.All}, "leather boots 1"},                           // two words
		{"lether bots", "tenant = 2", true, Request{Strategy: query.All}, ""},                                // no such word in these documents
		{"leather", "tenant = 2", true, Request{}, ""},                                                       // not the word itself either
		{"sadle", "", true, Request{}, ""},                                                                   // hidden
		{"boost", "", true, Request{SearchOn: []string{"secret"}}, ""},                                       // not in a searched attribute
		{`rubber "boost" xyz`, "", true, Request{Strategy: query.All}, ""},                                   // phrases are not corrected
		{"lether -silk", "", true, Request{}, "leather -silk 1"},                                             // exclusions stay
		{"bo", "tenant = 3", true, Request{}, ""},                                                            // too short, and no documents
		{"rubber boot shoes", "", false, Request{Strategy: query.All}, ""},                                   // no such query of others
		{"rubbr bootes", "tenant = 2", false, Request{Strategy: query.All}, "rubber boats 1,rubber books 1"}, // queries of others find nothing with this filter
		{"leather bookz", "", false, Request{Strategy: query.All}, "leather boots 1"},                        // "leather books" is not found
		{"silk scarfs", "", false, Request{Strategy: query.All}, "silk scarf 1"},                             // blocked as a query, but found as words
		{"silk scarfs", "tenant = 1", true, Request{Strategy: query.All}, "silk scarf 1"},                    // the same
		{"rubbber", "", true, Request{}, "rubber 3"},                                                         // in both segments
		{"rubber  BOOTZ", "", true, Request{Strategy: query.All}, "rubber  boots 1,rubber  boats 1,rubber  books 1"},
		{strings.Repeat("a", maxSuggestible), "", true, Request{}, ""},
		{" ", "tenant = 3", true, Request{}, ""},
	} {
		r := tt.r
		r.Query, r.Suggest, r.Limit = tt.q, true, 20
		if tt.filter != "" {
			r.Filter = parseFilter(t, tt.filter)
		}
		asked := false
		if !tt.own {
			r.Popular = func(uid string) (*index.View, error) {
				asked = true
				return l.c.Get(uid).View()
			}
		}
		if got := l.suggested(r); got != tt.want {
			t.Errorf("%q, filter %q, own %v: %s, want %s", tt.q, tt.filter, tt.own, got, tt.want)
		}
		if asked != (!tt.own && tt.q != "leather boots") {
			t.Errorf("%q: queries of others: %v", tt.q, asked)
		}
	}
	// Among suggestions with equally few typos, queries of others come first.
	l.put("j", ``, popular("rubber books", FromQueries))
	if got := l.suggested(Request{Query: "rubber bookts", Suggest: true, Limit: 20, Strategy: query.All, Popular: func(string) (*index.View, error) { return l.c.Get("j").View() }}); got != "rubber books 1,rubber boots 1,rubber boats 1" {
		t.Errorf("with a query of others: %s", got)
	}
	if got := l.suggested(Request{Query: "rubber bookts", Suggest: true, Limit: 20, Strategy: query.All}); got != "rubber boots 1,rubber books 1,rubber boats 1" {
		t.Errorf("without: %s", got)
	}
	if got := l.suggested(Request{Query: "boost", Suggest: true, Limit: 20, Filter: parseFilter(t, "tenant = 3")}); got != "" {
		t.Errorf("not in any document: %s", got)
	}
}

// suggested returns the suggestions of a search in i with their hits. Each one is searched again with the filter of the search.
func (l *library) suggested(r Request) string {
	l.t.Helper()
	v := held(l.c.Get("i").View())
	defer v.Release()
	found, err := Search(context.Background(), v, &r)
	if err != nil {
		l.t.Fatal(err)
	}
	body, err := found.AppendJSON(context.Background(), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	var answer struct {
		Suggestions []struct {
			Query              string
			EstimatedTotalHits int
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Suggestions == nil {
		l.t.Fatalf("%v: %s", err, body)
	}
	var all []string
	for _, s := range answer.Suggestions {
		again := r
		again.Query, again.Suggest = s.Query, false
		if found, err := Search(context.Background(), v, &again); err != nil || found.Hits() != s.EstimatedTotalHits {
			l.t.Errorf("%q finds %d, %v", s.Query, found.Hits(), err)
		}
		all = append(all, fmt.Sprintf("%s %d", s.Query, s.EstimatedTotalHits))
	}
	return strings.Join(all, ",")
}

// TestSuggestCounts compares the hits of suggestions with searches for them, where the total depends on scores or duplicates.
func TestSuggestCounts(t *testing.T) {
	l := newLibrary(t)
	var docs []string
	for i := range 60 {
		docs = append(docs, fmt.Sprintf(`{"id": %d, "t": "%s boots", "brand": %d}`, i, strings.Repeat("filler ", i%20), i%7))
	}
	l.put("i", `{"filterableAttributes": ["brand"], "typoTolerance": {"enabled": false}}`, docs...)
	v := held(l.c.Get("i").View())
	defer v.Release()
	answer := func(r Request) (got struct {
		EstimatedTotalHits, TotalHits int
		Suggestions                   []struct {
			Query              string
			EstimatedTotalHits int
		}
	}) {
		found, err := Search(t.Context(), v, &r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := found.AppendJSON(t.Context(), nil)
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	brand, counts := "brand", map[int]bool{}
	for _, distinct := range []*string{nil, &brand} {
		for _, threshold := range []float64{-1, 0.5, 0.95, 0.99, 1} {
			for _, page := range []Request{{Limit: 20}, {Limit: 3}, {Limit: 3, Offset: 4}, {Limit: 5, Offset: 50}, {HitsPerPage: new(int)}, {Page: new(int)}} {
				r := page
				r.Query, r.Suggest, r.Distinct = "bootz", true, distinct
				if threshold >= 0 {
					r.RankingScoreThreshold = &threshold
				}
				suggested := answer(r).Suggestions
				r.Query, r.Suggest = "boots", false
				want := answer(r)
				n := want.EstimatedTotalHits + want.TotalHits
				if counts[n] = true; n == 0 && len(suggested) > 0 || n > 0 && (len(suggested) != 1 || suggested[0].EstimatedTotalHits != n) {
					t.Errorf("distinct %v, threshold %v, page %+v: %v, want %d", distinct != nil, threshold, page, suggested, n)
				}
			}
		}
	}
	if len(counts) < 3 {
		t.Errorf("too few different totals: %v", counts)
	}
}

// TestMisspeltOfSeveral merges the misspelt words of several instances.
func TestMisspeltOfSeveral(t *testing.T) {
	of := func(near ...query.Near) *Misspelt {
		return &Misspelt{query: "red bootz", words: []queriedWord{{word: "bootz", from: 4, to: 9, near: near}}}
	}
	for _, tt := range []struct {
		here, there *Misspelt
		want        string
	}{
		{of(), of(), "[]"},
		{of(query.Near{Word: "boots", Typos: 1, Documents: 3}), of(query.Near{Word: "booty", Typos: 1, Documents: 4}), "[red booty red boots]"},
		{of(query.Near{Word: "boots", Typos: 1, Documents: 3}), of(query.Near{Word: "boots", Typos: 1, Documents: 2}, query.Near{Word: "booty", Typos: 1, Documents: 4}), "[red boots red booty]"},
		{of(query.Near{Word: "boots", Typos: 1, Documents: 3}), &Misspelt{words: []queriedWord{{from: 4, to: 9, known: true}}}, "[]"},
		{of(query.Near{Word: "boots", Typos: 1, Documents: 3}), &Misspelt{words: []queriedWord{{from: 4, to: 8, known: true}, {from: 0, to: 200}}}, "[red boots]"}, // not a range of a word
		{of(), of(query.Near{Word: "boots", Typos: 1, Documents: 3}), "[red boots]"},
	} {
		m := *tt.here
		m.words = slices.Clone(m.words)
		m.Add(tt.there)
		if got := fmt.Sprint(m.Queries()); got != tt.want {
			t.Errorf("%v and %v: %s, want %s", tt.here.words, tt.there.words, got, tt.want)
		}
	}
	// An instance without a shard uses the data of the others.
	l := newLibrary(t)
	l.put("i", `{}`, `{"id": 1, "t": "boots"}`)
	v := held(l.c.Get("i").View())
	defer v.Release()
	r := &Request{Query: "red BOOTZ"}
	none, err := FindMisspelt(t.Context(), v, r, time.Now(), false)
	if err != nil || len(none.words) != 2 || len(none.Queries()) > 0 {
		t.Errorf("without a shard: %v, %v", none, err)
	}
	some, err := FindMisspelt(t.Context(), v, r, time.Now(), true)
	if err != nil {
		t.Fatal(err)
	}
	none.Add(some)
	none.Add(&Misspelt{words: []queriedWord{{from: 0, to: 3, known: true}}})
	if got := fmt.Sprint(none.Queries()); got != "[red boots]" {
		t.Errorf("with data of another instance: %s", got)
	}
	for _, q := range []string{"", strings.Repeat("a", maxSuggestible+1)} {
		if m, err := FindMisspelt(t.Context(), v, &Request{Query: q}, time.Now(), true); m != nil || err != nil {
			t.Errorf("of %q: %v, %v", q, m, err)
		}
	}
}

// TestSuggestEndsInTime has no time left for words with typos.
func TestSuggestEndsInTime(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"searchCutoffMs": 10, "typoTolerance": {"enabled": false}}`, `{"id": 1, "t": "boots"}`)
	v := held(l.c.Get("i").View())
	defer v.Release()
	r := &Response{view: v, request: &Request{Query: "boost", Suggest: true}, start: time.Now().Add(-time.Second)}
	if err := r.suggest(t.Context()); err != nil || len(r.suggestions) > 0 {
		t.Errorf("%v, %v", r.suggestions, err)
	}
	r.start = time.Now().Add(time.Hour)
	if err := r.suggest(t.Context()); err != nil || len(r.suggestions) != 1 {
		t.Errorf("%v, %v", r.suggestions, err)
	}
}

// TestSuggestionsOfAnIndex makes suggestions from queries, and from words and facets if no query fits.
func TestSuggestionsOfAnIndex(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"filterableAttributes": ["brand", "hidden"], "searchableAttributes": ["t"], "displayedAttributes": ["id", "t", "brand"], "suggestions": {"minCount": 3, "limit": 6, "block": ["damn", "cheap boots"]}}`,
		`{"id": 1, "t": "Leather boots 100 damn xy", "brand": "Acme Shoes", "hidden": "one"}`, `{"id": 2, "t": "leather boots 100 damn xy", "brand": "Acme Shoes", "hidden": "one"}`)
	l.put("i", ``, `{"id": 3, "t": "leather hat", "brand": "Other", "hidden": "one"}`, `{"id": 4, "t": "lonely", "brand": "damn"}`, `{"id": 5, "t": "", "brand": "Damn"}`)
	v := held(l.c.Get("i").View())
	defer v.Release()
	texts := func(queries ...Suggestion) string {
		t.Helper()
		all, err := Suggestions(t.Context(), v, queries, func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]Suggestion{}
		for _, s := range all {
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if again, own := ParseSuggestion(b); !own || again != s {
				t.Errorf("%s is read as %+v, %v", b, again, own)
			}
			s.ID = ""
			found[s.Query] = s
		}
		return fmt.Sprint(found)
	}
	for _, tt := range []struct {
		queries []Suggestion
		want    string
	}{
		{nil, `map[Acme Shoes:{ Acme Shoes facets 2 2} boots:{ boots words 2 2} leather:{ leather words 3 3}]`},
		{[]Suggestion{{Query: "boots", Count: 5}, {Query: "hat", Count: 2}, {Query: "gone", Count: 9}, {Query: "really cheap  Boots", Count: 9}, {Query: "leather", Count: 3}},
			`map[boots:{ boots queries 5 2} leather:{ leather queries 3 3}]`},
		{[]Suggestion{{Query: "gone", Count: 9}}, `map[Acme Shoes:{ Acme Shoes facets 2 2} boots:{ boots words 2 2} leather:{ leather words 3 3}]`},
	} {
		if got := texts(tt.queries...); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.queries, got, tt.want)
		}
	}
}

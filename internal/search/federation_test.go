package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/filter"
	"svc/internal/numeric"
	"svc/internal/query"
	"svc/internal/rank"
	"svc/internal/settings"
	"svc/internal/turns"
)

// oneByOne runs calls as on a machine with one processor.
func oneByOne(n int, run func(ctx context.Context, i int) error) error {
	for i := range n {
		turn := &callTurn{Context: context.Background()}
		err := run(turn, i)
		if turn.over = true; err != nil {
			return err
		}
	}
	return nil
}

// callTurn is the turn and context of one call of a spread. It must not be used after the call.
type callTurn struct {
	context.Context
	over bool
}

func (c *callTurn) Yield() error {
	c.use()
	return c.Context.Err()
}
func (c *callTurn) Pause()                   { c.use() }
func (c *callTurn) Resume()                  { c.use() }
func (c *callTurn) Account() *budget.Account { c.use(); return nil }

func (c *callTurn) use() {
	if c.over {
		panic("the turn of a call is used after the call")
	}
}

func (c *callTurn) Value(key any) any {
	if key == turns.Key {
		return c
	}
	return c.Context.Value(key)
}

// asked is a query for the tests.
type asked struct {
	uid    string
	weight float64
	Request
}

type federatedAnswer struct {
	Hits []struct {
		ID         int
		Score      *float64 `json:"_rankingScore"`
		Federation struct {
			IndexUID        string
			QueriesPosition int
			Weighted        float64 `json:"weightedRankingScore"`
		} `json:"_federation"`
	}
	Limit, Offset, EstimatedTotalHits        *int
	HitsPerPage, Page, TotalPages, TotalHits *int
	FacetsByIndex                            map[string]json.RawMessage
	FacetDistribution, FacetStats            json.RawMessage
	Metadata                                 []map[string]string
	PerformanceDetails                       map[string]string
}

// federate runs queries, with views and the defaults of requests filled in.
func (l *library) federate(f *FederatedRequest, facets map[string][]string, queries ...asked) (answer federatedAnswer, body string, err error) {
	l.t.Helper()
	views := l.c.Views()
	defer views.Release()
	for i := range queries {
		q := &queries[i]
		f.Queries = append(f.Queries, FederatedQuery{View: views.Get(q.uid), Request: &q.Request, Weight: q.weight, Position: i})
	}
	for _, uid := range l.c.UIDs() {
		if names, ok := facets[uid]; ok {
			f.Facets = append(f.Facets, IndexFacets{views.Get(uid), names})
		}
	}
	found, err := Federate(context.Background(), f, oneByOne)
	if err != nil {
		return answer, "", err
	}
	raw, err := found.AppendJSON(context.Background(), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		l.t.Fatalf("%v: %s", err, raw)
	}
	return answer, string(raw), nil
}

// merged is a hit of the reference implementation.
type merged struct {
	uid      string
	id       int
	position int
	score    float64 // as the separate search shows it
	sorted   []float64
	values   []string // values of the distinct field
}

// TestFederationAgreesWithMergingSearches compares federated searches with merged answers of the separate searches.
func TestFederationAgreesWithMergingSearches(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	words := []string{"red", "blue", "green", "winter", "train", "lagoon", "mood"}
	for round := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, round))
		l := newLibrary(t)
		rules := [][]string{{"words", "typo", "proximity", "attribute", "exactness", "sort"}, {"sort", "words", "typo"}, {"n:desc", "words"}}[r.IntN(3)]
		rulesJSON, _ := json.Marshal(rules)
		docs := map[string]map[int]map[string]any{}
		uids := []string{"a", "b", "c"}
		owns := map[string]bool{} // has a distinct attribute
		for _, uid := range uids {
			docs[uid] = map[int]map[string]any{}
			own := ""
			if r.IntN(3) == 0 {
				own = `, "distinctAttribute": "g"`
			}
			l.put(uid, `{"rankingRules": `+string(rulesJSON)+`, "filterableAttributes": ["g", "n"], "sortableAttributes": ["n"]`+own+`}`)
			owns[uid] = own != ""
			for range 1 + r.IntN(3) {
				var batch []string
				for range 1 + r.IntN(25) {
					doc := map[string]any{"id": r.IntN(60), "n": float64(r.IntN(4))}
					var text []string
					for range 1 + r.IntN(4) {
						text = append(text, words[r.IntN(len(words))])
					}
					doc["t"] = strings.Join(text, " ")
					switch r.IntN(4) {
					case 0:
						doc["g"] = []any{words[r.IntN(len(words))], words[r.IntN(len(words))]}
					case 1:
					default:
						doc["g"] = words[r.IntN(len(words))]
					}
					docs[uid][doc["id"].(int)] = doc
					raw, _ := json.Marshal(doc)
					batch = append(batch, string(raw))
				}
				l.put(uid, "", batch...)
			}
		}
		for range 20 {
			var sort []string
			if slices.Contains(rules, "sort") {
				sort = [][]string{nil, {"n:asc"}, {"n:desc"}}[r.IntN(3)]
			}
			all := r.IntN(2) == 0
			f := &FederatedRequest{Offset: r.IntN(8), Limit: r.IntN(12), ID: uuid.New()}
			if all {
				f.Offset, f.Limit = 0, 1000
			} else if r.IntN(2) == 0 {
				page, perPage := r.IntN(4), r.IntN(7)
				f.Page, f.HitsPerPage = &page, &perPage
			}
			if r.IntN(3) == 0 {
				distinct := "g"
				f.Distinct = &distinct
			}
			var queries []asked
			for range 1 + r.IntN(4) {
				q := asked{uid: uids[r.IntN(len(uids))], weight: []float64{1, 0.5, 0, 2.25}[r.IntN(4)]}
				q.Sort, q.ShowRankingScore = sort, r.IntN(2) == 0
				q.Strategy = []query.Strategy{query.Last, query.All}[r.IntN(2)]
				if r.IntN(4) == 0 && f.Distinct == nil {
					g := "g"
					q.Distinct = &g
				}
				least := 0
				if rules[0] == "words" && sort != nil { // a query without words starts with the sort, others do not
					least = 1
				}
				for range least + r.IntN(4) {
					q.Query += words[r.IntN(len(words))] + " "
				}
				queries = append(queries, q)
			}
			facets := map[string][]string{"a": {"g", "n"}, "c": {"g"}, "b": nil}
			what := fmt.Sprintf("round %d, rules %v, sort %v, page %d+%d %v, distinct %v, of indexes %v, queries %+v", round, rules, sort, f.Offset, f.Limit, f.Page, f.Distinct, owns, queries)
			got, body, err := l.federate(f, facets, queries...)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			offset, limit := f.Offset, f.Limit
			if f.Page != nil {
				// Totals are exact and equal on all pages. A query that alone has a distinct attribute counts its duplicates itself.
				all = f.Distinct != nil || slices.ContainsFunc(uids, func(uid string) bool {
					apart := 0
					for _, q := range queries {
						if q.uid == uid && (q.Distinct != nil || owns[uid]) {
							apart++
						}
					}
					return apart > 1
				})
				offset, limit = max(0, *f.Page-1)**f.HitsPerPage, *f.HitsPerPage
				if *f.Page == 0 {
					limit = 0
				}
			}
			want, dropped, found := l.mergeAlone(queries, f.Distinct, owns, docs, rules, sort)
			apart := f.Distinct != nil || slices.ContainsFunc(queries, func(q asked) bool { return q.Distinct != nil || owns[q.uid] })
			page := want[min(offset, len(want)):]
			page = page[:min(limit, len(page))]
			if len(page) != len(got.Hits) {
				t.Fatalf("%s: %d hits, want %d\n%s", what, len(got.Hits), len(page), body)
			}
			for i, h := range got.Hits {
				w := page[i]
				if h.Federation.IndexUID != w.uid || h.ID != w.id || h.Federation.QueriesPosition != w.position || h.Federation.Weighted != w.score*queries[w.position].weight {
					t.Fatalf("%s: hit %d is %+v, want %+v\n%s", what, i, h, w, body)
				}
				if shows := queries[w.position].ShowRankingScore; shows != (h.Score != nil) || shows && *h.Score != w.score {
					t.Fatalf("%s: hit %d shows score %v, want %v", what, i, h.Score, w.score)
				}
			}
			if apart && !all {
				continue // only duplicates among the merged hits are known
			}
			total := -dropped
			for _, ids := range found {
				total += len(ids)
			}
			if shown := cmpOr(got.EstimatedTotalHits, got.TotalHits); shown != total {
				t.Fatalf("%s: the total is %d, want %d", what, shown, total)
			}
			checkFacets(t, what, got, want, found, docs, apart)
		}
	}
}

func cmpOr(a, b *int) int {
	if a != nil {
		return *a
	}
	return *b
}

// mergeAlone runs the searches separately and merges their hits, best first. It also returns the ids that the searches on each index
// found, and how many hits were dropped as duplicates.
func (l *library) mergeAlone(queries []asked, distinct *string, owns map[string]bool, docs map[string]map[int]map[string]any, rules, sort []string) (out []merged, dropped int, found map[string]map[int]bool) {
	l.t.Helper()
	lists := make([][]merged, len(queries))
	found = map[string]map[int]bool{}
	for i, q := range queries {
		r := q.Request
		r.ShowRankingScore, r.Limit = true, 1000
		if distinct != nil {
			r.Distinct = distinct
		}
		v := held(l.c.Get(q.uid).View())
		resp, err := Search(context.Background(), v, &r)
		if err != nil {
			l.t.Fatal(err)
		}
		body, err := resp.AppendJSON(context.Background(), nil)
		if err != nil {
			l.t.Fatal(err)
		}
		v.Release()
		var answer federatedAnswer
		if err := json.Unmarshal(body, &answer); err != nil {
			l.t.Fatal(err)
		}
		if found[q.uid] == nil {
			found[q.uid] = map[int]bool{}
		}
		for _, h := range answer.Hits {
			found[q.uid][h.ID] = true
			doc := docs[q.uid][h.ID]
			m := merged{uid: q.uid, id: h.ID, position: i, score: *h.Score}
			if n := doc["n"].(float64); rules[0] == "n:desc" || slices.Equal(sort, []string{"n:desc"}) {
				m.sorted = []float64{-n}
			} else if sort != nil {
				m.sorted = []float64{n}
			}
			if r.Distinct != nil || owns[q.uid] {
				for _, text := range texts(doc["g"]) {
					if distinct == nil {
						text = q.uid + " " + text
					}
					m.values = append(m.values, text)
				}
			}
			lists[i] = append(lists[i], m)
		}
	}
	seen, values := map[string]bool{}, map[string]bool{}
	for {
		best := -1
		for i := range lists {
			if len(lists[i]) > 0 && (best < 0 || comesFirst(queries, &lists[i][0], &lists[best][0], rules)) {
				best = i
			}
		}
		if best < 0 {
			return out, dropped, found
		}
		m := lists[best][0]
		lists[best] = lists[best][1:]
		key := fmt.Sprint(m.uid, m.id)
		if seen[key] {
			continue
		}
		seen[key] = true
		if slices.ContainsFunc(m.values, func(v string) bool { return values[v] }) {
			dropped++
			continue
		}
		for _, v := range m.values {
			values[v] = true
		}
		out = append(out, m)
	}
}

func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, e.(string))
		}
		return all
	}
	return nil
}

// comesFirst reports whether a is strictly better than b.
func comesFirst(queries []asked, a, b *merged, rules []string) bool {
	sortFirst := rules[0] != "words"
	blank := func(m *merged) bool { // without scores
		q := &queries[m.position]
		return strings.TrimSpace(q.Query) == "" || q.Strategy == query.All && len(rules) == 2 // if all words match, only "words" would differ
	}
	x, y := a.score*queries[a.position].weight, b.score*queries[b.position].weight
	if sortFirst && len(a.sorted) > 0 && a.sorted[0] != b.sorted[0] {
		return a.sorted[0] < b.sorted[0]
	}
	switch {
	case blank(a) != blank(b):
		return blank(b)
	case !blank(a) && x != y && (x-y > 3e-16 || y-x > 3e-16):
		return x > y
	case !sortFirst && len(a.sorted) > 0 && a.sorted[0] != b.sorted[0]:
		return a.sorted[0] < b.sorted[0]
	}
	return false
}

// checkFacets counts the values of the found hits or, with distinct, of the remaining ones.
func checkFacets(t *testing.T, what string, got federatedAnswer, kept []merged, found map[string]map[int]bool, docs map[string]map[int]map[string]any, distinct bool) {
	t.Helper()
	want := map[string]map[string]map[string]int{}
	for uid, fields := range map[string][]string{"a": {"g", "n"}, "c": {"g"}} {
		if found[uid] == nil {
			continue
		}
		ids := found[uid]
		if distinct {
			ids = map[int]bool{}
			for _, m := range kept {
				if m.uid == uid {
					ids[m.id] = true
				}
			}
		}
		want[uid] = map[string]map[string]int{}
		for _, field := range fields {
			counts := map[string]int{}
			for id := range ids {
				values := texts(docs[uid][id][field])
				if n, ok := docs[uid][id][field].(float64); ok {
					values = []string{fmt.Sprint(n)}
				}
				slices.Sort(values)
				for _, v := range slices.Compact(values) {
					counts[v]++
				}
			}
			want[uid][field] = counts
		}
	}
	shown := map[string]map[string]map[string]int{}
	for uid, raw := range got.FacetsByIndex {
		var f struct{ Distribution map[string]map[string]int }
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatal(err)
		}
		shown[uid] = f.Distribution
		for field := range want[uid] {
			if shown[uid][field] == nil { // no document of the index ever had it
				shown[uid][field] = map[string]int{}
			}
		}
	}
	if !reflect.DeepEqual(shown, want) {
		t.Fatalf("%s: facets are\n%v, want\n%v", what, shown, want)
	}
}

// TestCompareValues compares each pair of kinds of values at the same position of two sequences.
func TestCompareValues(t *testing.T) {
	score := func(x float64) rank.ScoreValue { return rank.ScoreValue{Kind: rank.ByRelevance, Score: x} }
	near := func(x float64) rank.ScoreValue { return rank.ScoreValue{Kind: rank.BySimilarity, Score: x} }
	field := func(x float64, desc bool) rank.ScoreValue {
		return rank.ScoreValue{Kind: rank.ByField, Desc: desc, Sort: rank.SortValue{Class: rank.OfNumber, Number: x}}
	}
	place := func(x float64, desc bool) rank.ScoreValue {
		return rank.ScoreValue{Kind: rank.ByDistance, Desc: desc, Sort: rank.SortValue{Class: rank.OfPlace, Number: x}}
	}
	nothing := rank.ScoreValue{Kind: rank.ByField, Sort: rank.SortValue{Class: rank.OfNothing}}
	type values = []rank.ScoreValue
	for _, tt := range []struct {
		what           string
		a, b           values
		weightA        float64
		scoreA, scoreB float64 // of the whole sequence
		want           int
	}{
		{"larger score", values{score(.9)}, values{score(.8)}, 1, 0, 0, -1},
		{"weight", values{score(.9)}, values{score(.8)}, .5, 0, 0, 1},
		{"similarity is a score", values{near(.7)}, values{score(.8)}, 2, 0, 0, -1},
		{"equal within rounding", values{score(.3), score(.2)}, values{score(.3 + 1e-16), score(.1)}, 1, 0, 0, -1},
		{"ascending", values{field(1, false)}, values{field(2, false)}, 1, 0, 0, -1},
		{"descending", values{field(1, true)}, values{field(2, true)}, 1, 0, 0, 1},
		{"nothing is last", values{nothing}, values{field(2, false)}, 1, 0, 0, 1},
		{"equal values go on", values{field(1, true), score(.1)}, values{field(1, true), score(.2)}, 1, 0, 0, 1},
		{"opposite directions", values{field(1, true)}, values{field(2, false)}, 1, .5, .4, -1},
		{"opposite directions and equal scores", values{field(1, true)}, values{field(2, false)}, 1, .4, .4, 0},
		{"nearer first", values{place(10, false)}, values{place(20, false)}, 1, 0, 0, -1},
		{"farther first", values{place(10, true)}, values{place(20, true)}, 1, 0, 0, 1},
		{"more scores left", values{score(.1), field(1, true), score(.1)}, values{field(2, true), score(.9)}, 1, 0, 1, -1},
		{"as many scores left", values{score(.1), field(1, true)}, values{field(2, true), score(.9)}, 1, .1, .9, 1},
		{"distance against value", values{place(1, false)}, values{field(2, false)}, 1, .9, .1, -1},
		{"shorter", values{score(.5)}, values{score(.5), field(1, true)}, 1, 0, 0, 1},
		{"empty", nil, values{score(0)}, 1, 1, 0, 1},
		{"both empty", nil, nil, 1, 1, 0, 0},
	} {
		make := func(v values, score, weight float64) *head {
			return &head{values: v, score: score, weight: weight}
		}
		a, b := make(tt.a, tt.scoreA, tt.weightA), make(tt.b, tt.scoreB, 1)
		if got := compareValues(a, b); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.what, got, tt.want)
		}
		if got := compareValues(b, a); got != -tt.want {
			t.Errorf("%s, the other way round: %d, want %d", tt.what, got, -tt.want)
		}
	}
}

func TestRuleKinds(t *testing.T) {
	l := newLibrary(t)
	const rel, asc, desc, near, far = byRelevancy, byValueAsc, byValueDesc, byDistanceAsc, byDistanceDesc
	for _, tt := range []struct {
		rules, query string
		sort         []string
		strategy     query.Strategy
		kind         kind
		want         []ruleKind
	}{
		{`["words","typo","sort","exactness"]`, "q", nil, query.Last, keyword, []ruleKind{rel}},
		{`["words","typo","sort","exactness"]`, "q", []string{"n:asc"}, query.Last, keyword, []ruleKind{rel, asc, rel}},
		{`["words","typo","sort","exactness"]`, " ", []string{"n:asc"}, query.Last, keyword, []ruleKind{asc}},
		{`["sort","words","n:desc","m:desc"]`, "q", []string{"n:asc"}, query.Last, keyword, []ruleKind{asc, rel, desc}},
		{`["sort","words","n:desc"]`, "q", nil, query.Last, keyword, []ruleKind{rel, desc}},
		{`["sort","words"]`, "", []string{"_geoPoint(1,2):asc", "_geoPoint(1,2):desc", "n:desc"}, query.Last, keyword, []ruleKind{near, far, desc}},
		{`["words","n:asc","typo"]`, "q", nil, query.All, keyword, []ruleKind{asc, rel}},
		{`["words","n:asc","typo"]`, "q", nil, query.Frequency, keyword, []ruleKind{rel, asc, rel}},
		{`["words","n:asc","typo","m:asc"]`, "", nil, query.Last, semantic, []ruleKind{rel, asc}},
		{`["words","n:asc","typo","m:asc"]`, "q", nil, query.Last, hybrid, []ruleKind{rel, asc, rel, asc}},
		{`["words","random:7","random:7","n:desc"]`, "q", nil, query.Last, keyword, []ruleKind{rel, asc, desc}},
		{`[]`, "q", nil, query.Last, keyword, nil},
	} {
		l.put("a", `{"rankingRules":`+tt.rules+`,"sortableAttributes":["n","_geo"]}`)
		v := held(l.c.Get("a").View())
		sort, err := parseSort(t.Context(), v, tt.sort, false, "invalid_search_sort")
		if err != nil {
			t.Fatal(err)
		}
		got := ruleKinds(&ranking{view: v, request: &Request{Query: tt.query, Strategy: tt.strategy}, kind: tt.kind, sort: sort})
		v.Release()
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s, %q sorted by %v: %v, want %v", tt.rules, tt.query, tt.sort, got, tt.want)
		}
	}
}

// TestFederationErrors checks the errors of invalid requests.
func TestFederationErrors(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["g"],"sortableAttributes":["n"],"rankingRules":["sort","words"]}`, `{"id":1,"g":"x","n":1}`)
	l.put("b", `{"filterableAttributes":["g","k"],"sortableAttributes":["n"],"rankingRules":["words","n:asc"],"faceting":{"sortFacetValuesBy":{"g":"count"}}}`, `{"id":1,"g":"x","n":1}`)
	distinct := func(field string) *FederatedRequest { return &FederatedRequest{Distinct: &field} }
	plain := func(uid, q string, sort ...string) asked {
		return asked{uid: uid, weight: 1, Request: Request{Query: q, Sort: sort}}
	}
	none := -1
	for _, tt := range []struct {
		what    string
		f       *FederatedRequest
		facets  map[string][]string
		queries []asked
		code    apierr.Code
		query   int
	}{
		{"sort", &FederatedRequest{}, nil, []asked{plain("a", ""), plain("a", "", "g:asc")}, "invalid_search_sort", 1},
		{"distinct", distinct("k"), nil, []asked{plain("b", ""), plain("a", "")}, "invalid_search_distinct", 1},
		{"distinct that all have", distinct("g"), nil, []asked{plain("b", ""), plain("a", "")}, "", none},
		{"facets", &FederatedRequest{}, map[string][]string{"a": {"g", "k"}}, []asked{plain("b", "")}, "invalid_multi_search_facets", none},
		{"opposite sorts", &FederatedRequest{}, nil, []asked{plain("a", "", "n:asc"), plain("a", "", "n:desc")}, "invalid_multi_search_query_ranking_rules", 1},
		{"rules in another order", &FederatedRequest{}, nil, []asked{plain("a", "q", "n:asc"), plain("b", "q")}, "invalid_multi_search_query_ranking_rules", 1},
		{"nothing to compare", &FederatedRequest{}, nil, []asked{plain("a", ""), plain("b", "q")}, "", none},
		{"the longest counts", &FederatedRequest{}, nil, []asked{plain("a", ""), plain("b", "q"), plain("a", "", "n:asc")}, "invalid_multi_search_query_ranking_rules", 2},
		{"order of facets", &FederatedRequest{MergeFacets: &MergeFacets{}}, map[string][]string{"a": {"g"}, "b": {"g"}}, []asked{plain("a", "")}, "invalid_multi_search_facet_order", none},
		{"order of facets that are not merged", &FederatedRequest{}, map[string][]string{"a": {"g"}, "b": {"g"}}, []asked{plain("a", "")}, "", none},
	} {
		_, _, err := l.federate(tt.f, tt.facets, tt.queries...)
		var code apierr.Code
		at := none
		if err != nil {
			code = apierr.From(err).Code
			if q := (*QueryError)(nil); errors.As(err, &q) {
				at = q.Query
			}
		}
		if code != tt.code || at != tt.query {
			t.Errorf("%s: %q of query %d, want %q of %d (%v)", tt.what, code, at, tt.code, tt.query, err)
		}
	}
}

func TestMergeFacets(t *testing.T) {
	value := func(shown string, n int) facetValue {
		return facetValue{key: []byte(strings.ToLower(shown)), shown: []byte(shown), count: n}
	}
	number := func(x float64, n int) facetValue {
		v := facetValue{isNumber: true, number: numeric.Of(x), count: n}
		v.showNumber()
		return v
	}
	ends := func(low, high float64) *aggregate.Figures {
		var f facet
		f.fold(numeric.Of(low), numeric.Of(high))
		return f.stats
	}
	indexes := []indexFacets{
		{"a", []facet{{name: "g", values: []facetValue{value("Ulm", 1), value("ulna", 4)}}, {name: "n", stats: ends(1, 3), values: []facetValue{number(2, 3), number(11, 1)}}}},
		{"b", []facet{{name: "f", values: []facetValue{value("x", 1)}}, {name: "g", values: []facetValue{value("Oslo", 2), value("ulm", 2), value("ulna", 1)}}, {name: "n"}}},
		{"c", []facet{{name: "f", stats: ends(7, 7)}, {name: "n", stats: ends(-1, 2), values: []facetValue{number(1, 1), number(2, 4), value("1x", 1)}}}},
	}
	two := 2
	for _, tt := range []struct {
		order settings.FacetOrder
		max   *int
		want  string
	}{
		{settings.Alpha, nil, `,"facetDistribution":{"f":{"x":1},"g":{"Oslo":2,"Ulm":1,"ulm":2,"ulna":5},"n":{"1":1,"11":1,"1x":1,"2":7}},"facetStats":{"f":{"min":7.0,"max":7.0},"n":{"min":-1.0,"max":3.0}}`},
		{settings.Alpha, &two, `,"facetDistribution":{"f":{"x":1},"g":{"Oslo":2,"Ulm":1},"n":{"1":1,"11":1}},"facetStats":{"f":{"min":7.0,"max":7.0},"n":{"min":-1.0,"max":3.0}}`},
		{settings.Count, &two, `,"facetDistribution":{"f":{"x":1},"g":{"ulna":5,"Oslo":2},"n":{"2":7,"1":1}},"facetStats":{"f":{"min":7.0,"max":7.0},"n":{"min":-1.0,"max":3.0}}`},
	} {
		for i := range indexes {
			for k := range indexes[i].facets {
				indexes[i].facets[k].order = tt.order
			}
		}
		if got := string(appendDistribution(nil, mergeFacets(new(Reading), indexes, tt.max))); got != tt.want {
			t.Errorf("by %v, at most %v:\ngot  %s\nwant %s", tt.order, tt.max, got, tt.want)
		}
	}
}

// TestFederatedPages checks pages, including the last ones.
func TestFederatedPages(t *testing.T) {
	l := newLibrary(t)
	l.put("a", "", `{"id":1}`, `{"id":2}`, `{"id":3}`)
	l.put("b", `{"pagination":{"maxTotalHits":1}}`, `{"id":4}`, `{"id":5}`)
	huge := int(^uint(0) >> 1)
	n := func(n int) *int { return &n }
	for _, tt := range []struct {
		f    FederatedRequest
		ids  []int
		tail string
	}{
		{FederatedRequest{Limit: 20}, []int{1, 2, 3, 4}, `"limit":20,"offset":0,"estimatedTotalHits":5`},
		{FederatedRequest{Limit: 2, Offset: 2}, []int{3, 4}, `"limit":2,"offset":2,"estimatedTotalHits":5`},
		{FederatedRequest{Limit: huge, Offset: 1}, []int{2, 3, 4}, fmt.Sprintf(`"limit":%d,"offset":1,"estimatedTotalHits":5`, huge)},
		{FederatedRequest{Limit: 5, Offset: huge}, nil, fmt.Sprintf(`"limit":5,"offset":%d,"estimatedTotalHits":5`, huge)},
		{FederatedRequest{Page: n(2), HitsPerPage: n(3)}, []int{4}, `"hitsPerPage":3,"page":2,"totalPages":2,"totalHits":5`},
		{FederatedRequest{Page: n(1)}, []int{1, 2, 3, 4}, `"hitsPerPage":20,"page":1,"totalPages":1,"totalHits":5`},
		{FederatedRequest{HitsPerPage: n(1)}, []int{1}, `"hitsPerPage":1,"page":1,"totalPages":5,"totalHits":5`},
		{FederatedRequest{Page: n(0), HitsPerPage: n(3)}, nil, `"hitsPerPage":3,"page":0,"totalPages":2,"totalHits":5`},
		{FederatedRequest{HitsPerPage: n(0)}, nil, `"hitsPerPage":0,"page":1,"totalPages":0,"totalHits":5`},
		{FederatedRequest{Page: n(huge), HitsPerPage: n(7)}, nil, fmt.Sprintf(`"hitsPerPage":7,"page":%d,"totalPages":1,"totalHits":5`, huge)},
	} {
		got, body, err := l.federate(&tt.f, nil, asked{uid: "a", weight: 1}, asked{uid: "b", weight: 1})
		if err != nil {
			t.Fatal(err)
		}
		var ids []int
		for _, h := range got.Hits {
			ids = append(ids, h.ID)
		}
		if !slices.Equal(ids, tt.ids) || !strings.Contains(body, tt.tail) {
			t.Errorf("%+v:\ngot  %v %s\nwant %v %s", tt.f, ids, body, tt.ids, tt.tail)
		}
	}
}

// TestFederatedExtras requests everything except hits, and exact totals of documents that share a value.
func TestFederatedExtras(t *testing.T) {
	l := newLibrary(t)
	const open = `{"filterableAttributes":["g"]}`
	l.put("a", open, `{"id":1,"g":"x","t":"late"}`, `{"id":2,"g":"x","t":"early"}`)
	l.put("b", open, `{"id":3,"g":"x","t":"late"}`, `{"id":4,"g":"X","t":"early"}`, `{"id":5,"g":"y","t":"early"}`)
	distinct, perPage := "g", 5
	got, body, err := l.federate(&FederatedRequest{Distinct: &distinct, HitsPerPage: &perPage, ShowPerformanceDetails: true, Metadata: true},
		map[string][]string{"a": {"g"}, "b": {"g"}},
		asked{uid: "a", weight: 2, Request: Request{Query: "early"}}, asked{uid: "b", weight: 1, Request: Request{Query: "early"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"", " > tokenize query", " > evaluate filter", " > keyword ranking"} {
		for position := range 2 {
			if name := fmt.Sprintf("federating results > execute local search > queries[%d]%s", position, stage); !strings.Contains(body, `"`+name+`":"`) {
				t.Errorf("no %s in %s", name, got.PerformanceDetails)
			}
		}
	}
	if len(got.Hits) != 2 || got.Hits[0].ID != 2 || got.Hits[1].ID != 5 || *got.TotalHits != 2 {
		t.Errorf("hits: %s", body)
	}
	if f := string(got.FacetsByIndex["b"]); f != `{"distribution":{"g":{"y":1}},"stats":{}}` {
		t.Errorf("facets of b: %s", f)
	}
	if len(got.Metadata) != 2 || got.Metadata[0]["query"] != "early" || got.Metadata[1]["indexUid"] != "b" || got.Metadata[1]["primaryKey"] != "id" || len(got.PerformanceDetails) == 0 {
		t.Errorf("extras: %s", body)
	}
}

// TestFederatedFilters checks and evaluates the filter of each query in different calls of the spread. Filters of many parts
// check the deadline.
func TestFederatedFilters(t *testing.T) {
	l := newLibrary(t)
	for _, uid := range []string{"a", "b"} {
		var docs []string
		for id := range 40 {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"n":%d,"t":"early"}`, id, id))
		}
		l.put(uid, `{"filterableAttributes":["n"]}`, docs...)
	}
	var parts []string
	for n := range 20 {
		parts = append(parts, fmt.Sprintf("n = %d", 2*n))
	}
	even, err := filter.Parse(strings.Join(parts, " OR "))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the third search uses the second one's cache
		got, body, err := l.federate(&FederatedRequest{Limit: 100}, nil,
			asked{uid: "a", weight: 1, Request: Request{Query: "early", Filter: even}}, asked{uid: "b", weight: 1, Request: Request{Query: "early", Filter: even}})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Hits) != 40 {
			t.Errorf("got %s", body)
		}
		for _, h := range got.Hits {
			if h.ID%2 != 0 {
				t.Errorf("the filter let %d pass", h.ID)
			}
		}
	}
}

// TestFederatedVectors merges hits of semantic and keyword searches.
func TestFederatedVectors(t *testing.T) {
	l := newLibrary(t)
	l.put("pics", `{"embedders":{"e":{"source":"userProvided","dimensions":2}}}`,
		`{"id":1,"t":"sun","_vectors":{"e":[1,0]}}`, `{"id":2,"t":"full moon","_vectors":{"e":[0.8,0.6]}}`, `{"id":3,"t":"star","_vectors":{"e":[0,1]}}`)
	l.put("songs", "", `{"id":4,"t":"blue mood"}`, `{"id":5,"t":"moon"}`)
	one, half := 1.0, 0.5
	like := func(weight float64, ratio *float64, q string, v ...float32) asked {
		return asked{uid: "pics", weight: weight, Request: Request{Query: q, Vector: v, Hybrid: &Hybrid{Embedder: "e", Ratio: ratio}}}
	}
	withVector := like(1, &one, "", 1, 0)
	withVector.RetrieveVectors = true
	words := asked{uid: "songs", weight: 1, Request: Request{Query: "mood"}}
	for _, tt := range []struct {
		what    string
		queries []asked
		ids     []int
		want    string // part of the answer; "": no semanticHitCount
	}{
		{"meaning and words", []asked{like(1, &one, "", 1, 0), words}, []int{1, 4, 2, 3}, `"semanticHitCount":3`},
		{"two vectors", []asked{like(1, &one, "", 1, 0), like(.95, &one, "", 0, 1)}, []int{1, 3, 2}, `"semanticHitCount":3`},
		{"both in one query", []asked{like(1, &half, "moon", 0, 1)}, []int{3, 2, 1}, `"semanticHitCount":2`},
		{"vectors shown", []asked{words, withVector}, []int{1, 4, 2, 3}, `"queryVectors":{"1":[1.0,0.0]}`},
		{"words alone", []asked{words}, []int{4}, ""},
	} {
		got, body, err := l.federate(&FederatedRequest{Limit: 20}, nil, tt.queries...)
		if err != nil {
			t.Fatalf("%s: %v", tt.what, err)
		}
		var ids []int
		for _, h := range got.Hits {
			ids = append(ids, h.ID)
		}
		if !slices.Equal(ids, tt.ids) || !strings.Contains(body, tt.want) || strings.Contains(body, "semanticHitCount") != (tt.want != "") {
			t.Errorf("%s: %v, want %v and %s\n%s", tt.what, ids, tt.ids, tt.want, body)
		}
	}
	short := like(1, &one, "", 1)
	_, _, err := l.federate(&FederatedRequest{Limit: 20}, nil, words, short)
	if q := (*QueryError)(nil); !errors.As(err, &q) || q.Query != 1 || apierr.From(err).Code != "invalid_vector_dimensions" {
		t.Errorf("a vector of one number: %v", err)
	}
}

// TestPagesOfFederatedHybridSearches checks that pages of federated searches with hybrid queries are slices of the one long page, with its
// total and facets.
func TestPagesOfFederatedHybridSearches(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	l := newLibrary(t)
	for _, uid := range []string{"a", "b"} {
		var docs []string
		for i := range 30 {
			docs = append(docs, fmt.Sprintf(`{"id": %d, "t": "%s", "g": %d, "tags": ["%c", "%c"], "_vectors": {"e": [%d, %d]}}`, i,
				[]string{"red lamp", "lamp", "shoe", "red hat"}[rng.IntN(4)], rng.IntN(12), 'a'+rng.IntN(9), 'a'+rng.IntN(9), rng.IntN(9)-4, rng.IntN(8)+1))
		}
		l.put(uid, `{"filterableAttributes": ["g", "tags"], "embedders": {"e": {"source": "userProvided", "dimensions": 2}}}`, docs...)
	}
	for round := range 60 {
		ratio := []float64{0, .2, .5, .9, 1}[rng.IntN(5)]
		hybrid := asked{uid: "a", weight: 1, Request: Request{Query: "red lamp", Vector: []float32{1, .5}, Hybrid: &Hybrid{Embedder: "e", Ratio: &ratio}}}
		queries := []asked{hybrid, {uid: "b", weight: .9, Request: Request{Query: "lamp"}}}
		if rng.IntN(2) == 0 {
			other := hybrid
			other.Query, other.Vector = "lamp", []float32{-1, 1}
			queries = append(queries, other)
		}
		var threshold *float64
		if rng.IntN(3) == 0 {
			x := .3 + rng.Float64()/2
			threshold = &x
		}
		for i := range queries {
			queries[i].RankingScoreThreshold = threshold
		}
		var distinct *string
		if rng.IntN(2) == 0 {
			distinct = new([]string{"g", "tags"}[rng.IntN(2)])
		}
		facets := map[string][]string{"a": {"g"}, "b": {"g", "tags"}}
		ask := func(offset, limit int) federatedAnswer {
			a, _, err := l.federate(&FederatedRequest{Offset: offset, Limit: limit, Distinct: distinct}, facets, slices.Clone(queries)...)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		show := func(a federatedAnswer) (list []string) {
			for _, h := range a.Hits {
				list = append(list, fmt.Sprint(h.Federation.IndexUID, h.ID, "/", h.Federation.QueriesPosition))
			}
			return list
		}
		whole := ask(0, 1000)
		list := show(whole)
		if *whole.EstimatedTotalHits != len(list) {
			t.Fatalf("round %d: a total of %d for %d hits", round, *whole.EstimatedTotalHits, len(list))
		}
		for range 6 {
			offset, limit := rng.IntN(60), rng.IntN(12)
			got := ask(offset, limit)
			want := list[min(offset, len(list)):]
			want = want[:min(limit, len(want))]
			if !slices.Equal(show(got), want) || *got.EstimatedTotalHits != len(list) || !reflect.DeepEqual(got.FacetsByIndex, whole.FacetsByIndex) {
				t.Fatalf("round %d, ratio %v, distinct %v, threshold %v, %d from %d: %v of %d with %s, want %v of %d with %s", round, ratio, distinct, threshold, limit, offset,
					show(got), *got.EstimatedTotalHits, got.FacetsByIndex, want, len(list), whole.FacetsByIndex)
			}
		}
	}
}

// TestFederatedSpellings merges hits of several indexes and instances that differ only in accents: those spelt like the query come first.
func TestFederatedSpellings(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{}`, `{"id":1,"t":"Ängelholm"}`, `{"id":2,"t":"Angelholm"}`)
	l.put("b", `{}`, `{"id":3,"t":"Angelholm"}`, `{"id":4,"t":"Ängelholm"}`)
	l.put("plain", `{}`, `{"id":5,"t":"Angelholm"}`)
	for _, test := range []struct {
		query string
		want  []int
	}{
		{"angelholm", []int{2, 3, 5, 1, 4}}, {"ängelholm", []int{1, 4, 2, 3, 5}}, {"ange", []int{1, 2, 3, 4, 5}}, {"änge", []int{1, 4, 2, 3, 5}},
		{`"ängelholm"`, []int{1, 4, 2, 3, 5}}, {"Ångelholm", []int{1, 2, 3, 4, 5}},
	} {
		queries := []asked{{uid: "a", weight: 1, Request: Request{Query: test.query}}, {uid: "b", weight: 1, Request: Request{Query: test.query}},
			{uid: "plain", weight: 1, Request: Request{Query: test.query}}}
		got, body, err := l.federate(&FederatedRequest{Limit: 10}, nil, queries...)
		if err != nil {
			t.Fatal(err)
		}
		var ids []int
		for _, h := range got.Hits {
			ids = append(ids, h.ID)
		}
		if !slices.Equal(ids, test.want) || strings.Contains(body, `"spelling"`) {
			t.Errorf("%s: %v, want %v: %s", test.query, ids, test.want, body)
		}
	}
}

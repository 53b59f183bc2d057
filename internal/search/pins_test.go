package search

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/filter"
	"svc/internal/rule"
	"svc/internal/vfs"
)

// rulesOf makes a set of rules named a, b, …. Each argument has the members of a JSON object without the uid.
func rulesOf(t *testing.T, rules ...string) *rule.Set {
	t.Helper()
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("kept"); err != nil {
		t.Fatal(err)
	}
	for i, r := range rules {
		if err := vfs.WriteFile(fsys, fmt.Sprintf("kept/%d.json", i), fmt.Appendf(nil, `{"uid":"%c",%s}`, 'a'+i, r)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := rule.Open(rule.Options{FS: fsys, File: "rules.json", Kept: "kept", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Set().List()) != len(rules) {
		t.Fatalf("not all rules were parsed: %s", rules)
	}
	return s.Set()
}

// pinning makes a rule without conditions that pins documents of any index.
func pinning(pins ...pinnedHit[int]) string {
	var actions []string
	for _, p := range pins {
		actions = append(actions, fmt.Sprintf(`{"selector":{"id":"%d"},"action":{"type":"pin","position":%d}}`, p.hit, p.at))
	}
	return `"actions":[` + strings.Join(actions, ",") + `]`
}

func parseFilter(t *testing.T, f string) *filter.Expr {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	e, err := filter.FromJSON(b, "invalid_search_filter")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ids returns the ids of the hits of an answer, as text.
func ids(a answerOf) string {
	var list []string
	for _, h := range a.Hits {
		list = append(list, fmt.Sprint(h.ID))
	}
	return strings.Join(list, " ")
}

func number(n int) *int            { return &n }
func threshold(x float64) *float64 { return &x }
func totalOf(a answerOf) int {
	if a.Total != nil {
		return *a.Total
	}
	return a.Estimated
}

// TestPins combines pins with everything else that selects hits.
func TestPins(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"filterableAttributes": ["kind", "tenant"], "sortableAttributes": ["price"]}`,
		`{"id": 1, "t": "red hat", "kind": "a", "tenant": 1, "price": 5}`, `{"id": 2, "t": "red big hat", "kind": "b", "tenant": 1, "price": 4}`,
		`{"id": 3, "t": "red", "kind": "b", "tenant": 2, "price": 3}`)
	l.put("i", ``, `{"id": 4, "t": "hat", "kind": "c", "tenant": 2, "price": 2}`, `{"id": 5, "t": "shoe", "kind": "b", "tenant": 1, "price": 1}`,
		`{"id": 6, "t": "gone"}`)
	l.put("i", `{"rankingRules": ["words", "typo", "proximity", "attribute", "sort", "exactness"]}`, `{"id": 6, "t": "sock", "kind": "d", "tenant": 1, "price": 0}`)
	kind := "kind"
	type pin = pinnedHit[int]
	for _, tt := range []struct {
		what  string
		pins  []pin
		r     Request
		want  string
		total int
	}{
		{"nothing pinned", nil, Request{Query: "red hat"}, "1 2 3", 3},
		{"first", []pin{{0, 5}}, Request{Query: "red hat"}, "5 1 2 3", 4},
		{"behind the end", []pin{{50, 5}, {40, 6}}, Request{Query: "red hat"}, "1 2 3 6 5", 5},
		{"no such document", []pin{{0, 77}, {1, 5}}, Request{Query: "red hat"}, "1 5 2 3", 4},
		{"a hit of its own", []pin{{0, 3}}, Request{Query: "red hat"}, "3 1 2", 3},
		{"no hits", []pin{{3, 5}, {9, 6}}, Request{Query: "zzz"}, "5 6", 2},
		{"all documents", []pin{{3, 5}, {0, 6}}, Request{}, "6 1 2 5 3 4", 6},
		{"filtered out", []pin{{0, 5}, {0, 1}}, Request{Query: "red hat", Filter: parseFilter(t, "kind = a")}, "1", 1},
		{"hidden from the tenant", []pin{{0, 3}, {0, 4}, {2, 5}}, Request{Query: "red hat", Filter: filter.And(parseFilter(t, "kind != d"), parseFilter(t, "tenant = 1"))}, "1 2 5", 3},
		{"a word that excludes it", []pin{{0, 1}}, Request{Query: "red -hat"}, "1 3", 2},
		{"under the threshold", []pin{{1, 5}}, Request{Query: "red hat", RankingScoreThreshold: threshold(0.99)}, "1 5", 2},
		{"distinct", []pin{{0, 5}}, Request{Query: "red", Distinct: &kind}, "5 3 1", 3}, // the pin 5 does not drop 3 of the same kind
		{"distinct, twice", []pin{{0, 5}, {0, 3}}, Request{Query: "red", Distinct: &kind}, "5 3 1 2", 4},
		{"sorted", []pin{{1, 6}}, Request{Sort: []string{"price:desc"}}, "1 6 2 3 4 5", 6},

		{"a page", []pin{{1, 5}, {3, 6}}, Request{Query: "red hat", Limit: 2}, "1 5", 5},
		{"the next", []pin{{1, 5}, {3, 6}}, Request{Query: "red hat", Limit: 2, Offset: 2}, "2 6", 5},
		{"the last", []pin{{1, 5}, {3, 6}}, Request{Query: "red hat", Limit: 2, Offset: 4}, "3", 5},
		{"behind it", []pin{{1, 5}, {3, 6}}, Request{Query: "red hat", Limit: 2, Offset: 6}, "", 5},
		{"only pins are left", []pin{{9, 5}, {9, 6}}, Request{Query: "red hat", Limit: 2, Offset: 4}, "6", 5},
		{"none wanted", []pin{{0, 5}}, Request{Query: "red hat", Limit: -1}, "", 4},
		{"page mode", []pin{{1, 5}, {3, 6}}, Request{Query: "red hat", Page: number(2), HitsPerPage: number(2)}, "2 6", 5},
		{"page 0", []pin{{1, 5}}, Request{Query: "red hat", Page: number(0), HitsPerPage: number(2)}, "", 4},
		{"page mode, distinct", []pin{{0, 5}}, Request{Query: "red", Distinct: &kind, Page: number(1), HitsPerPage: number(9)}, "5 3 1", 3},
		{"page mode, threshold", []pin{{9, 5}}, Request{Query: "red hat", RankingScoreThreshold: threshold(0.99), Page: number(1)}, "1 5", 2},
	} {
		r := tt.r
		switch r.Limit {
		case 0:
			r.Limit = 20
		case -1:
			r.Limit = 0
		}
		if tt.pins != nil {
			r.Rules = rulesOf(t, pinning(tt.pins...))
		}
		if got := l.answer("i", r); ids(got) != tt.want || totalOf(got) != tt.total {
			t.Errorf("%s: %s of %d, want %s of %d", tt.what, ids(got), totalOf(got), tt.want, tt.total)
		}
	}
}

// TestPinsAndMaxTotalHits pins documents after the last reachable hit.
func TestPinsAndMaxTotalHits(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"pagination": {"maxTotalHits": 3}}`, `{"id": 1}`, `{"id": 2}`, `{"id": 3}`, `{"id": 4}`, `{"id": 5}`)
	rules := rulesOf(t, pinning(pinnedHit[int]{3, 5}, pinnedHit[int]{1, 4}))
	for r, want := range map[*Request]string{
		{Limit: 20}: "1 4 2", {Limit: 20, Offset: 2}: "2", {Limit: 20, Offset: 3}: "", {Page: number(2), HitsPerPage: number(2)}: "2",
	} {
		r.Rules = rules
		if got := l.answer("i", *r); ids(got) != want || totalOf(got) != 3 {
			t.Errorf("%+v: %s of %d, want %s of 3", r, ids(got), totalOf(got), want)
		}
	}
}

// body returns the answer to a search without the parts that differ between runs.
func (l *library) body(uid string, r Request) string {
	l.t.Helper()
	v := held(l.c.Get(uid).View())
	defer v.Release()
	response, err := Search(context.Background(), v, &r)
	if err != nil {
		l.t.Fatal(err)
	}
	b, err := response.AppendJSON(context.Background(), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	body, _, _ := strings.Cut(string(b), `,"query"`)
	return body
}

func TestPinShown(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"filterableAttributes": ["k"], "sortableAttributes": ["_geo"]}`, `{"id": 1, "t": "red hat", "k": "a"}`,
		`{"id": 2, "t": "blue hat", "k": "b", "_geo": {"lat": 1, "lng": 1}}`)
	r := Request{Query: "red", Limit: 20, Facets: []string{"k"}, Sort: []string{"_geoPoint(1, 1):asc"}, ShowRankingScore: true, ShowRankingScoreDetails: true,
		AttributesToRetrieve: []string{"id"}, AttributesToHighlight: []string{"t"}, HighlightPreTag: "<", HighlightPostTag: ">",
		Rules: rulesOf(t, pinning(pinnedHit[int]{7, 2}))}
	const pin = `{"id":2,"_formatted":{"id":"2","t":"blue hat"},"_rankingScore":1.0,"_rankingScoreDetails":{"pin":{"order":0,"position":7}}}]`
	if got := l.body("i", r); !strings.HasSuffix(got, pin) {
		t.Errorf("%s, want %s at its end", got, pin)
	}
	r.AttributesToRetrieve = nil
	if got := l.body("i", r); !strings.Contains(got, `"_geoDistance":0`) {
		t.Errorf("no distance in %s", got)
	}
}

// TestWeave compares weave with its specification: each index has the next pin whose position it has reached, or else the next hit, or
// else the next pin.
func TestWeave(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		var pins []pinnedHit[int]
		for i := range rng.IntN(5) {
			pins = append(pins, pinnedHit[int]{rng.IntN(9), 100 + i})
		}
		slices.SortStableFunc(pins, func(a, b pinnedHit[int]) int { return a.at - b.at })
		hits := rng.IntN(8)
		var whole []int
		for left, next := slices.Clone(pins), 0; len(left) > 0 || next < hits; {
			if len(left) > 0 && (left[0].at <= len(whole) || next == hits) {
				whole, left = append(whole, left[0].hit), left[1:]
			} else {
				whole, next = append(whole, next), next+1
			}
		}
		offset, limit := rng.IntN(6), rng.IntN(6)
		want := whole[min(offset, len(whole)):min(offset+limit, len(whole))]
		n := 0
		got := weave(pins, func() (int, bool) { n++; return n - 1, n <= hits }, offset, limit)
		if !slices.Equal(got, want) {
			t.Fatalf("%v among %d, %d from %d: %v, want %v", pins, hits, limit, offset, got, want)
		}
	}
}

// TestHybridPins compares pages of semantic and hybrid searches with pins with the whole result without pins.
func TestHybridPins(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	l := newLibrary(t)
	var docs []string
	for i := range 12 {
		docs = append(docs, fmt.Sprintf(`{"id": %d, "t": "%s", "_vectors": {"e": [%d, %d]}}`, i, []string{"red hat", "hat", "shoe"}[i%3], rng.IntN(9)-4, rng.IntN(8)+1))
	}
	l.put("i", `{"embedders": {"e": {"source": "userProvided", "dimensions": 2}}}`, docs...)
	for range 200 {
		ratio := []float64{0.2, 0.5, 0.9, 1}[rng.IntN(4)]
		r := Request{Query: "red hat", Limit: 100, Vector: []float32{1, 0.5}, Hybrid: &Hybrid{Embedder: "e", Ratio: &ratio}}
		var pins []pinnedHit[int]
		pinned := map[int]bool{}
		for range rng.IntN(4) {
			id := rng.IntN(12)
			if !pinned[id] {
				pinned[id] = true
				pins = append(pins, pinnedHit[int]{rng.IntN(14), id})
			}
		}
		whole := l.answer("i", r)
		var organic []int
		for _, h := range whole.Hits {
			if !pinned[h.ID] {
				organic = append(organic, h.ID)
			}
		}
		if len(pins) > 0 {
			r.Rules = rulesOf(t, pinning(pins...))
		}
		r.Offset, r.Limit = rng.IntN(6), 1+rng.IntN(9)
		slices.SortStableFunc(pins, func(a, b pinnedHit[int]) int { return a.at - b.at })
		want := weave(pins, func() (id int, ok bool) {
			if len(organic) == 0 {
				return 0, false
			}
			id, organic = organic[0], organic[1:]
			return id, true
		}, r.Offset, r.Limit)
		got := l.answer("i", r)
		var shown []int
		pinsShown := 0
		for _, h := range got.Hits {
			shown = append(shown, h.ID)
			if pinned[h.ID] {
				pinsShown++
			}
		}
		if !slices.Equal(shown, want) {
			t.Fatalf("ratio %g, pins %v, %d from %d: %v, want %v", ratio, pins, r.Limit, r.Offset, shown, want)
		}
		// Pins do not count as semantic hits.
		if n := len(shown) - pinsShown; ratio == 1 && *got.SemanticHits != n || *got.SemanticHits > n {
			t.Errorf("ratio %g: %d of %d hits with %d pins are semantic", ratio, *got.SemanticHits, len(shown), pinsShown)
		}
	}
}

// TestFederatedPins pins in queries of one index and of several.
func TestFederatedPins(t *testing.T) {
	l := newLibrary(t)
	for _, uid := range []string{"i", "j"} {
		l.put(uid, `{"filterableAttributes": ["k"]}`, `{"id": 1, "t": "red hat", "k": 1}`, `{"id": 2, "t": "red", "k": 2}`, `{"id": 3, "t": "shoe", "k": 2}`, `{"id": 4, "t": "red sock", "k": 1}`)
	}
	show := func(a federatedAnswer) string {
		var list []string
		for _, h := range a.Hits {
			list = append(list, fmt.Sprintf("%s%d/%d", h.Federation.IndexUID, h.ID, h.Federation.QueriesPosition))
		}
		return strings.Join(list, " ")
	}
	a := rulesOf(t, pinning(pinnedHit[int]{1, 3}))
	b := rulesOf(t, pinning(pinnedHit[int]{0, 2}, pinnedHit[int]{1, 3}))
	far := rulesOf(t, pinning(pinnedHit[int]{50, 1}, pinnedHit[int]{50, 2}))
	two := Request{Query: "red", Filter: parseFilter(t, "k = 2")}
	with := func(r Request, rules *rule.Set) Request { r.Rules = rules; return r }
	k := "k"
	for _, tt := range []struct {
		what    string
		f       FederatedRequest
		queries []asked
		want    string
		total   int
	}{
		{"two indexes", FederatedRequest{Limit: 20}, []asked{{"i", 1, with(Request{Query: "red hat"}, a)}, {"j", 1, with(Request{Query: "red hat"}, b)}},
			"j2/1 i3/0 j3/1 i1/0 j1/1 i2/0 i4/0 j4/1", 8},
		{"weights", FederatedRequest{Limit: 20}, []asked{{"i", 0, with(Request{Query: "red hat"}, a)}, {"j", 3, Request{Query: "shoe"}}}, "j3/1 i3/0 i1/0 i2/0 i4/0", 5},
		{"pinned twice", FederatedRequest{Limit: 20}, []asked{{"i", 1, with(Request{Query: "hat"}, a)}, {"i", 1, with(Request{Query: "shoe"}, b)}}, "i2/1 i3/0 i1/0", 3},
		{"pinned by one, found by the other", FederatedRequest{Limit: 20}, []asked{{"i", 1, with(two, b)}, {"i", 1, Request{Query: "red"}}}, "i2/0 i3/0 i1/1 i4/1", 4},
		{"pinned far away, found by the other", FederatedRequest{Limit: 2}, []asked{{"i", 1, with(Request{Query: "zzz"}, far)}, {"i", 1, Request{Query: "red"}}}, "i4/1 i1/0", 3},
		{"the second page of that", FederatedRequest{Limit: 2, Offset: 2}, []asked{{"i", 1, with(Request{Query: "zzz"}, far)}, {"i", 1, Request{Query: "red"}}}, "i2/0", 3},
		{"filtered out by one", FederatedRequest{Limit: 20}, []asked{{"i", 1, with(Request{Query: "sock", Filter: parseFilter(t, "k = 1")}, b)}, {"i", 1, Request{Query: "shoe"}}}, "i3/1 i4/0", 2},
		{"distinct", FederatedRequest{Limit: 20, Distinct: &k}, []asked{{"i", 1, with(Request{Query: "red"}, b)}, {"j", 1, Request{Query: "red"}}}, "i2/0 i3/0 j2/1 i1/0", 4},
		{"page mode", FederatedRequest{Page: number(2), HitsPerPage: number(2)}, []asked{{"i", 1, with(Request{Query: "hat"}, a)}, {"j", 1, with(Request{Query: "hat"}, b)}}, "j3/1 i1/0", 5},
	} {
		got, body, err := l.federate(&tt.f, map[string][]string{"i": {"k"}}, tt.queries...)
		if err != nil {
			t.Fatalf("%s: %v", tt.what, err)
		}
		n := total(got.EstimatedTotalHits, got.TotalHits)
		if show(got) != tt.want || n != tt.total {
			t.Errorf("%s: %s of %d, want %s of %d: %s", tt.what, show(got), n, tt.want, tt.total, body)
		}
		for _, h := range got.Hits {
			if strings.HasPrefix(tt.what, "weights") && h.Federation.IndexUID == "i" && h.Federation.Weighted != 0 {
				t.Errorf("weighted %g", h.Federation.Weighted)
			}
		}
	}
}

// TestRemotePins has documents on two instances with the same rules.
func TestRemotePins(t *testing.T) {
	here, there := newLibrary(t), newLibrary(t)
	here.put("i", "", `{"id": 1, "t": "red hat"}`, `{"id": 2, "t": "red"}`, `{"id": 3, "t": "shoe"}`)
	there.put("i", "", `{"id": 4, "t": "big red sock"}`, `{"id": 5, "t": "sock"}`, `{"id": 6, "t": "red"}`)
	rules := rulesOf(t, pinning(pinnedHit[int]{1, 3}, pinnedHit[int]{0, 5}, pinnedHit[int]{3, 2}))
	for _, tt := range []struct {
		f    FederatedRequest
		want string
	}{
		{FederatedRequest{Limit: 20}, "5 3 6 2 1 4"}, {FederatedRequest{Limit: 2, Offset: 1}, "3 6"}, {FederatedRequest{Page: number(2), HitsPerPage: number(2)}, "6 2"},
	} {
		offset, limit, paged := tt.f.page()
		query := asked{uid: "i", weight: 1, Request: Request{Query: "red", Rules: rules}}
		remote := FederatedRequest{Limit: offset + limit, Proxy: true, Networked: true}
		if paged {
			remote.HitsPerPage = number(offset + limit)
		}
		_, body, err := there.federate(&remote, nil, query)
		if err != nil || !strings.Contains(body, `"pinnedPosition":0`) {
			t.Fatalf("%v: no pin in %s", err, body)
		}
		answer, err := ParseRemote("there", []byte(body), everything, new(Reading))
		if err != nil {
			t.Fatal(err)
		}
		f := tt.f
		f.Networked, f.Remotes = true, func(context.Context) []*RemoteAnswer { return []*RemoteAnswer{answer} }
		got, body, err := here.federate(&f, nil, query)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, h := range got.Hits {
			list = append(list, fmt.Sprint(h.ID))
		}
		if s := strings.Join(list, " "); s != tt.want || total(got.EstimatedTotalHits, got.TotalHits) != 6 || strings.Contains(body, "pinnedPosition") {
			t.Errorf("%s, want %s of 6: %s", s, tt.want, body)
		}
	}
}

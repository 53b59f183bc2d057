package search

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestDistinctTotals compares pages of all sizes with the whole list, from which distinct leaves out duplicates: the page is a part of
// it, and totals and facets count it. Hits come from several indexes or from one.
func TestDistinctTotals(t *testing.T) {
	l := newLibrary(t)
	rng := rand.New(rand.NewPCG(7, 3))
	words := []string{"red", "hat", "shop", "hats", "rad", "shoe"}
	for _, uid := range []string{"i", "j"} {
		var docs []string
		for id := range 40 {
			text := words[rng.IntN(len(words))]
			for range rng.IntN(3) {
				text += " " + words[rng.IntN(len(words))]
			}
			docs = append(docs, fmt.Sprintf(`{"id": %d, "t": %q, "n": %d, "group": %d, "tags": [%d, %d], "kind": "k%d"}`,
				id, text, rng.IntN(30), rng.IntN(12), rng.IntN(20), rng.IntN(20), rng.IntN(3)))
		}
		l.put(uid, `{"filterableAttributes": ["kind", "group", "tags", "n"], "sortableAttributes": ["n"]}`, docs[:15]...)
		l.put(uid, ``, docs[15:]...)
	}
	for range 60 {
		field := []string{"group", "tags", "kind", "n"}[rng.IntN(4)]
		r := Request{Query: []string{"", "red", "red hat", "hat shop red"}[rng.IntN(4)], Limit: 1000, Facets: []string{"kind"}, Distinct: &field}
		if rng.IntN(2) == 0 {
			r.Sort = []string{"n:desc"}
		}
		if rng.IntN(3) == 0 {
			r.RankingScoreThreshold = threshold(rng.Float64())
		}
		all := l.answer("i", r)
		queries := []asked{{uid: "i", weight: 1, Request: r}, {uid: "j", weight: 1, Request: r}}
		federation := FederatedRequest{Limit: 1000}
		if rng.IntN(2) == 0 {
			federation.Distinct = &field
		}
		for n := range queries {
			queries[n].Facets = nil
			if federation.Distinct != nil {
				queries[n].Distinct = nil
			}
		}
		federate := func(offset, limit int) federatedAnswer {
			f := federation
			f.Offset, f.Limit = offset, limit
			answer, body, err := l.federate(&f, map[string][]string{"i": {"kind"}, "j": {"kind"}}, slices.Clone(queries)...)
			if err != nil {
				t.Fatal(err, body)
			}
			return answer
		}
		merged := federate(0, 1000)
		for range 8 {
			offset, limit := rng.IntN(10), 1+rng.IntN(10)
			what := fmt.Sprintf("q %q, sort %v, distinct %s, threshold %v, %d from %d", r.Query, r.Sort, field, r.RankingScoreThreshold, limit, offset)
			page := r
			page.Offset, page.Limit = offset, limit
			got := l.answer("i", page)
			first := min(offset, len(all.Hits))
			want := all
			want.Hits = all.Hits[first:min(first+limit, len(all.Hits))]
			if ids(got) != ids(want) || got.Estimated != len(all.Hits) || !maps.Equal(got.Facets["kind"], all.Facets["kind"]) {
				t.Fatalf("%s: %s of %d, facets %v, want %s of %d, facets %v", what, ids(got), got.Estimated, got.Facets, ids(want), len(all.Hits), all.Facets)
			}
			page.HitsPerPage, page.Page = number(limit), number(1)
			if got := l.answer("i", page); totalOf(got) != len(all.Hits) {
				t.Fatalf("%s: a total of %d on pages, want %d", what, totalOf(got), len(all.Hits))
			}

			part := federate(offset, limit)
			first = min(offset, len(merged.Hits))
			hits := merged.Hits[first:min(first+limit, len(merged.Hits))]
			if fmt.Sprint(part.Hits) != fmt.Sprint(hits) || *part.EstimatedTotalHits != len(merged.Hits) || !reflect.DeepEqual(part.FacetsByIndex, merged.FacetsByIndex) {
				t.Fatalf("%s, merged, distinct of all %v: %v of %d, %v, want %v of %d, %v", what, federation.Distinct != nil,
					part.Hits, *part.EstimatedTotalHits, part.FacetsByIndex, hits, len(merged.Hits), merged.FacetsByIndex)
			}
		}
	}
}

// TestOneHitDropsSeveral merges two lists whose hits drop two hits of the other list each, so that a page needs more hits of a list than
// it has. The lists are those of two queries, or the parts into which a rule that scales scores cuts a search.
func TestOneHitDropsSeveral(t *testing.T) {
	l := newLibrary(t)
	const change = `{"rankingRules":["sort"],"sortableAttributes":["n"],"filterableAttributes":["tags","kind"],"pagination":{"maxTotalHits":4}}`
	a := []string{`{"id":1,"n":1,"tags":[1,2]}`, `{"id":5,"n":5,"tags":5}`, `{"id":6,"n":6,"tags":6}`, `{"id":7,"n":7,"tags":7}`}
	b := []string{`{"id":2,"n":2,"tags":1,"kind":"b"}`, `{"id":3,"n":3,"tags":2,"kind":"b"}`, `{"id":4,"n":4,"tags":[5,6],"kind":"b"}`, `{"id":8,"n":8,"tags":8,"kind":"b"}`}
	l.put("a", change, a...)
	l.put("b", change, b...)
	l.put("all", change, append(a, b...)...)
	const want = "1 4 7"
	tags := "tags"
	r := Request{Sort: []string{"n:asc"}, Distinct: &tags, Limit: 3, Rules: rulesOf(t, scaling(`"filter":"kind = b"`, 2))}
	if got := l.answer("all", r); ids(got) != want {
		t.Errorf("scaled: %s, want %s", ids(got), want)
	}
	query := func(uid string) asked { return asked{uid: uid, weight: 1, Request: Request{Sort: []string{"n:asc"}}} }
	answer, body, err := l.federate(&FederatedRequest{Limit: 3, Distinct: &tags}, nil, query("a"), query("b"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, h := range answer.Hits {
		found = append(found, fmt.Sprint(h.ID))
	}
	if got := strings.Join(found, " "); got != want {
		t.Errorf("merged: %s, want %s: %s", got, want, body)
	}
}

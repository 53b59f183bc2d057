package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/settings"
	"svc/internal/text"
)

// searchEach is facet search that looks at every value: it folds it, compares it, and counts its documents.
func searchEach(v *index.View, r *FacetRequest, candidates []*roaring.Bitmap) []string {
	field, _ := v.Fields.ID(r.FacetName)
	var found []facetValue
	for i, s := range v.Segments {
		c := s.Column(field)
		if c == nil {
			continue
		}
		in := &facetRows{Live: s, column: c}
		if s.Deleted != nil {
			in.among = s.LiveRows()
		}
		for ord := range c.Strings() {
			rows := roaring.New()
			c.AddStringRows(rows, ord, ord+1)
			rows.And(candidates[i])
			if n := int(rows.GetCardinality()); n > 0 {
				found = append(found, facetValue{key: c.String(ord), shown: c.Original(ord), count: n, in: in, ord: ord, varies: c.Varies(ord)})
			}
		}
	}
	found = new(facetMemory).merge(found)
	found = slices.DeleteFunc(found, func(f facetValue) bool {
		if r.FacetQuery == nil {
			return false
		}
		folded, asked, t := text.FacetSearchKey(string(f.key), nil), text.FacetSearchKey(*r.FacetQuery, nil), v.Settings.TypoTolerance
		budget := 0
		switch {
		case slices.Contains(t.DisableOnWords, asked):
			return folded != asked
		case len(asked) >= int(t.TwoTypos):
			budget = 2
		case len(asked) >= int(t.OneTypo):
			budget = 1
		}
		return query.PrefixDistance([]rune(asked), folded, budget) > budget
	})
	for i := range found {
		if err := found[i].spell(facetField{name: r.FacetName}); err != nil {
			panic(err)
		}
	}
	if v.Settings.Faceting.Order(r.FacetName) == settings.Count {
		slices.SortFunc(found, func(a, b facetValue) int {
			return cmp.Or(cmp.Compare(b.count, a.count), bytes.Compare(b.shown, a.shown))
		})
	} else if r.FacetQuery != nil {
		sortByFold(found, nil)
	}
	hits := []string{}
	for _, f := range found[:min(len(found), v.Settings.Faceting.MaxValuesPerFacet)] {
		hits = append(hits, fmt.Sprintf("%s %d", f.shown, f.count))
	}
	return hits
}

// TestFacetSearchFindsWhatEveryValueSays compares facet search with one that looks at every value.
func TestFacetSearchFindsWhatEveryValueSays(t *testing.T) {
	defer func(few int) { fewCounted = few }(fewCounted)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	value := func() string {
		var b strings.Builder
		for range 1 + r.IntN(7) {
			b.WriteString(pick("a", "b", "c", "a", "b", "A", "ab", "é", "日", " ", "-"))
		}
		return b.String()
	}
	shown := 0
	for round := range 12 {
		fewCounted = []int{4096, 3}[r.IntN(2)]
		l := newLibrary(t)
		l.put("a", fmt.Sprintf(`{"filterableAttributes":["f","third"],"faceting":{"maxValuesPerFacet":%d,"sortFacetValuesBy":{"*":"%s"}},
			"typoTolerance":{"minWordSizeForTypos":{"oneTypo":%d,"twoTypos":%d},"disableOnWords":["abc"]}}`,
			1+r.IntN(40), pick("alpha", "count"), 2+r.IntN(3), 4+r.IntN(3)))
		for part := range 1 + r.IntN(4) {
			var docs []string
			for i := range 1 + r.IntN(120) {
				docs = append(docs, fmt.Sprintf(`{"id":%d,"f":[%q,%q],"third":%v}`, r.IntN(200)+part*50, value(), value(), i%3 == 0))
			}
			l.put("a", "", docs...)
		}
		third, err := filter.Parse("third = true")
		if err != nil {
			t.Fatal(err)
		}
		v := l.c.Get("a").View()
		t.Cleanup(v.Release) // before the library is closed
		for range 60 {
			request := FacetRequest{FacetName: "f"}
			if asked := value(); r.IntN(8) > 0 {
				request.FacetQuery = &asked
			}
			if r.IntN(3) == 0 {
				request.Search.Filter = third
			}
			candidates, err := universe(context.Background(), v, request.Search.Filter, "invalid_search_filter", false, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := FacetSearch(context.Background(), nil, v, &request)
			if err != nil {
				t.Fatal(err)
			}
			var answer struct {
				FacetHits []struct {
					Value string
					Count int
				}
			}
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, h := range answer.FacetHits {
				got = append(got, fmt.Sprintf("%s %d", h.Value, h.Count))
			}
			want := searchEach(v, &request, candidates)
			if shown += len(want); !slices.Equal(got, want) {
				asked := "nothing"
				if request.FacetQuery != nil {
					asked = fmt.Sprintf("%q", *request.FacetQuery)
				}
				t.Fatalf("round %d, %s, filtered %v, %+v:\ngot  %q\nwant %q", round, asked, request.Search.Filter != nil, v.Settings.Faceting, got, want)
			}
		}
	}
	if shown == 0 {
		t.Error("nothing was found")
	}
}

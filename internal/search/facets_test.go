package search

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/numeric"
)

// TestFacetOrder checks which values of a facet are shown, and their order.
func TestFacetOrder(t *testing.T) {
	l := newLibrary(t)
	const open = `"filterableAttributes": ["v"], "faceting": `
	l.put("a", `{`+open+`{}}`,
		`{"id":1,"v":[10,9,"b",-3.5]}`, `{"id":2,"v":["a",9,2e3,"10"]}`, `{"id":3,"v":["B","c",9]}`)
	l.put("a", "", `{"id":4,"v":["c",100,"é"]}`, `{"id":5,"v":[100,10,"10"]}`, `{"id":6,"v":"11"}`)
	few := fewCandidates
	defer func() { fewCandidates = few }()
	for _, tt := range []struct {
		few            int
		faceting, want string
	}{
		{5, `{}`, `{"-3.5":1,"9":3,"10":3,"100":2,"2000":1,"11":1,"a":1,"b":2,"c":2,"é":1}`},
		{5, `{"maxValuesPerFacet": 3}`, `{"-3.5":1,"9":3,"10":3}`},
		{5, `{"maxValuesPerFacet": 7}`, `{"-3.5":1,"9":3,"10":3,"100":2,"2000":1,"11":1,"a":1}`},
		{6, `{"maxValuesPerFacet": 7}`, `{"-3.5":1,"10":3,"100":2,"2000":1,"9":3,"11":1,"a":1}`},
		{6, `{"maxValuesPerFacet": 3}`, `{"-3.5":1,"10":3,"100":2}`},
		{6, `{"maxValuesPerFacet": 100, "sortFacetValuesBy": {"v": "count"}}`, `{"9":3,"10":3,"100":2,"b":2,"c":2,"-3.5":1,"2000":1,"11":1,"a":1,"é":1}`},
		{5, `{}`, `{"9":3,"10":3,"100":2,"b":2,"c":2,"-3.5":1,"2000":1,"11":1,"a":1,"é":1}`},
		{5, `{"maxValuesPerFacet": 4}`, `{"9":3,"10":3,"100":2,"b":2}`},
		{5, `{"maxValuesPerFacet": 8}`, `{"9":3,"10":3,"100":2,"b":2,"c":2,"-3.5":1,"2000":1,"11":1}`},
		{5, `{"maxValuesPerFacet": 0}`, `{}`},
	} {
		fewCandidates = tt.few
		l.put("a", `{`+open+tt.faceting+`}`)
		v := held(l.c.Get("a").View())
		found, err := Search(context.Background(), v, &Request{Facets: []string{"v"}})
		if err != nil {
			t.Fatal(err)
		}
		body, err := found.AppendJSON(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		v.Release()
		_, got, _ := strings.Cut(string(body), `"facetDistribution":{"v":`)
		if got, _, _ = strings.Cut(got, `},"facetStats"`); got != tt.want {
			t.Errorf("%s, few are %d:\ngot  %s\nwant %s", tt.faceting, tt.few, got, tt.want)
		}
	}
}

// TestMergeAndTopValues compares merged runs and the selection of the largest counts with sorting all values.
func TestMergeAndTopValues(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	less := func(a, b facetValue) int { return a.compare(&b) }
	name := func(v facetValue) string {
		v.showNumber()
		return fmt.Sprintf("%s %d", v.shown, v.count)
	}
	for range 300 {
		var all []facetValue
		for range rng.IntN(6) { // segments
			var run []facetValue
			for n := range rng.IntN(30) {
				v := facetValue{count: 1 + rng.IntN(4)}
				switch {
				case rng.IntN(3) == 0:
					continue
				case n < 10:
					v.isNumber, v.number = true, numeric.Of(float64(n))
				default:
					v.key = fmt.Appendf(nil, "v%02d", n)
					v.shown = v.key
				}
				run = append(run, v)
			}
			all = append(all, run...)
		}
		sorted := slices.Clone(all)
		slices.SortStableFunc(sorted, less)
		got := new(facetMemory).sortRuns(all)
		for i := range sorted {
			if name(got[i]) != name(sorted[i]) {
				t.Fatalf("place %d: %s, want %s", i, name(got[i]), name(sorted[i]))
			}
		}
		want := slices.Clone(got)
		slices.SortStableFunc(want, func(a, b facetValue) int { return cmp.Compare(b.count, a.count) })
		limit := rng.IntN(40)
		top := topValues(got, limit)
		if len(top) != min(limit, len(want)) {
			t.Fatalf("%d values, want %d of %d", len(top), limit, len(want))
		}
		for i := range top {
			if name(top[i]) != name(want[i]) {
				t.Fatalf("limit %d, place %d: %s, want %s", limit, i, name(top[i]), name(want[i]))
			}
		}
	}
}

// TestFacetPatterns requests facets by patterns with a star at an end.
func TestFacetPatterns(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"filterableAttributes": ["dogs", "dogs_old", "kind", "size"], "faceting": {"sortFacetValuesBy": {"dogs.color": "count"}}}`,
		`{"id": 1, "dogs": {"breed": "pug", "color": ["red", "tan"]}, "dogs_old": 1, "kind": "a"}`, `{"id": 2, "dogs": {"breed": "lab", "color": "tan"}, "cats": {"breed": "x"}, "size": 4}`)
	v := held(l.c.Get("i").View())
	defer v.Release()
	for names, want := range map[string]string{
		"dogs.*":       `"facetDistribution":{"dogs.breed":{"lab":1,"pug":1},"dogs.color":{"tan":2,"red":1}}`,
		"dogs*":        `"facetDistribution":{"dogs":{},"dogs.breed":{"lab":1,"pug":1},"dogs.color":{"tan":2,"red":1},"dogs_old":{"1":1}}`,
		"*.breed":      `"facetDistribution":{"dogs.breed":{"lab":1,"pug":1}}`,
		"*olo*":        `"facetDistribution":{"dogs.color":{"tan":2,"red":1}}`,
		"kind,*_old":   `"facetDistribution":{"dogs_old":{"1":1},"kind":{"a":1}}`,
		"none*":        `"facetDistribution":{},"facetStats":{}`,
		"cats.*":       `"facetDistribution":{},"facetStats":{}`,
		"kind,kin*,*i": `"facetDistribution":{"kind":{"a":1}}`,
	} {
		found, err := Search(context.Background(), v, &Request{Facets: strings.Split(names, ",")})
		if err != nil {
			t.Fatal(err)
		}
		if body, err := found.AppendJSON(context.Background(), nil); err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s, %v, want %s", names, body, err, want)
		}
	}
	for _, name := range []string{"cats", "do*gs", ""} {
		if _, err := Search(context.Background(), v, &Request{Facets: []string{name}}); err == nil {
			t.Errorf("%q is a facet", name)
		}
	}
	l.put("j", `{"filterableAttributes": ["dogs"]}`, `{"id": 1, "dogs": {"color": "tan"}}`)
	f := &FederatedRequest{Limit: 1, MergeFacets: &MergeFacets{}}
	if _, _, err := l.federate(f, map[string][]string{"i": {"dogs.*"}, "j": {"dogs.*"}}, asked{uid: "i", weight: 1}, asked{uid: "j", weight: 1}); err == nil || !strings.Contains(err.Error(), "dogs.color") {
		t.Errorf("different orders: %v", err)
	}
}

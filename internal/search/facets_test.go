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
)

// TestFacetOrder looks at which values of a facet are shown, and in which order.
func TestFacetOrder(t *testing.T) {
	l := newLibrary(t)
	const open = `"filterableAttributes": ["v"], "faceting": `
	l.put("a", `{`+open+`{}}`,
		`{"id":1,"v":[10,9,"b",-3.5]}`, `{"id":2,"v":["a",9,2e3,"10"]}`, `{"id":3,"v":["B","c",9]}`)
	l.put("a", "", `{"id":4,"v":["c",100,"é"]}`, `{"id":5,"v":[100,10]}`, `{"id":6,"v":"11"}`)
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
		{6, `{"maxValuesPerFacet": 100, "sortFacetValuesBy": {"v": "count"}}`, `{"10":3,"9":3,"100":2,"2000":1,"-3.5":1,"c":2,"b":2,"é":1,"a":1,"11":1}`},
		{5, `{}`, `{"10":3,"9":3,"100":2,"2000":1,"-3.5":1,"c":2,"b":2,"é":1,"a":1,"11":1}`},
		{5, `{"maxValuesPerFacet": 4}`, `{"10":3,"9":3,"100":2,"2000":1}`},
		{5, `{"maxValuesPerFacet": 8}`, `{"10":3,"9":3,"100":2,"2000":1,"-3.5":1,"c":2,"b":2,"é":1}`},
		{5, `{"maxValuesPerFacet": 0}`, `{}`},
	} {
		fewCandidates = tt.few
		l.put("a", `{`+open+tt.faceting+`}`)
		v := l.c.Get("a").View()
		found, err := Search(context.Background(), v, &Request{Facets: []string{"v"}})
		if err != nil {
			t.Fatal(err)
		}
		body, err := found.AppendJSON(nil)
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

// TestMergeAndTopValues compares merging runs, and the choice of the largest counts, with sorting all values.
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
					v.isNumber, v.number = true, float64(n)
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
		slices.Reverse(want)
		slices.SortStableFunc(want, func(a, b facetValue) int { return cmp.Compare(b.count, a.count) })
		limit := rng.IntN(40)
		top := topValues(got, limit, true)
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

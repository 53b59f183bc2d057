package search

import (
	"context"
	"strings"
	"testing"
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
		{6, `{"maxValuesPerFacet": 7}`, `{"-3.5":1,"10":3,"100":2,"11":1,"2000":1,"9":3,"a":1}`},
		{6, `{"maxValuesPerFacet": 3}`, `{"-3.5":1,"10":3,"100":2}`},
		{6, `{"maxValuesPerFacet": 100, "sortFacetValuesBy": {"v": "count"}}`, `{"9":3,"10":3,"c":2,"b":2,"100":2,"é":1,"a":1,"2000":1,"11":1,"-3.5":1}`},
		{5, `{}`, `{"10":3,"9":3,"c":2,"b":2,"100":2,"é":1,"a":1,"11":1,"2000":1,"-3.5":1}`},
		{5, `{"maxValuesPerFacet": 4}`, `{"10":3,"9":3,"c":2,"b":2}`},
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

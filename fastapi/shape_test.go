package fastapi

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"svc/internal/budget"
	"svc/internal/filter"
	"svc/internal/settings"
)

// TestBodiesAreChargedEnough parses bodies that are expensive for each parser, and compares the bytes allocated with those charged.
func TestBodiesAreChargedEnough(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates as well")
	}
	type reader struct {
		read     func(body string) // parses, ignoring errors
		settings bool
		share    int64 // 1/share of the allocations is live at once, and charged
	}
	update := func(body string) { settings.ParseUpdate([]byte(body), settings.Features{}) }
	readSettings, readEmbedders := reader{update, true, 1}, reader{update, true, 3} // embedders are checked one by one
	readFilter := reader{func(body string) { filter.FromJSON([]byte(body), "invalid_search_filter") }, false, 1}
	readSearch := reader{func(body string) {
		decode(&searchInput{}, value(body), searchBodyParams, object{code: "bad_request"})
	}, false, 1}
	readFetch := reader{func(body string) {
		decode(&fetchInput{}, value(body), fetchBodyParams, object{code: "bad_request"})
	}, false, 1}
	list := func(item string, n int) string { return "[" + repeated(item, n/(len(item)+1)) + "]" }
	named := func(value string, n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, `,"%x":%s`, i, value)
		}
		return "{" + b.String()[1:] + "}"
	}
	long := `"` + strings.Repeat("x", 128<<10) + `"`
	for _, test := range []struct {
		name string
		reader
		body func(n int) string
	}{
		{"numbers for stop words", readSettings, func(n int) string { return `{"stopWords":` + list("1", n) + "}" }},
		{"stop words", readSettings, func(n int) string { return `{"stopWords":` + list(`"a"`, n) + "}" }},
		{"empty stop words", readSettings, func(n int) string { return `{"stopWords":` + list(`""`, n) + "}" }},
		{"dictionary", readSettings, func(n int) string { return `{"dictionary":` + list(`"\n\n"`, n) + "}" }},
		{"synonyms", readSettings, func(n int) string { return `{"synonyms":` + named(`["a"]`, n) + "}" }},
		{"synonyms without any", readSettings, func(n int) string { return `{"synonyms":` + named(`[]`, n) + "}" }},
		{"synonyms of one word", readSettings, func(n int) string { return `{"synonyms":{"a":` + list(`"a"`, n) + "}}" }},
		{"synonyms of a long word", readSettings, func(n int) string { return `{"synonyms":{` + long + `:["a"]}}` }},
		{"a long name", readSettings, func(n int) string { return `{` + long + `:["a"]}` }},
		{"filterable attributes", readSettings, func(n int) string { return `{"filterableAttributes":` + list(`"a"`, n) + "}" }},
		{"filterable rules", readSettings, func(n int) string {
			return `{"filterableAttributes":` + list(`{"attributePatterns":["a"],"features":{}}`, n) + "}"
		}},
		{"ranking rules", readSettings, func(n int) string { return `{"rankingRules":` + list(`"a:asc"`, n) + "}" }},
		{"localized attributes", readSettings, func(n int) string {
			return `{"localizedAttributes":` + list(`{"attributePatterns":[],"locales":[]}`, n) + "}"
		}},
		{"embedders", readEmbedders, func(n int) string {
			return `{"embedders":` + named(`{"source":"userProvided","dimensions":3}`, n) + "}"
		}},
		{"a request", readSettings, func(n int) string {
			return `{"embedders":{"a":{"source":"rest","url":"http://a","request":` + list("[]", n) + `,"response":` + list("{}", n) + `}}}`
		}},
		{"facet orders", readSettings, func(n int) string { return `{"faceting":{"sortFacetValuesBy":` + named(`"count"`, n) + "}}" }},
		{"typos", readSettings, func(n int) string { return `{"typoTolerance":{"disableOnWords":` + list(`"a"`, n) + "}}" }},
		{"conditions", readFilter, func(n int) string { return `"` + strings.Repeat("a=1 OR ", min(n/7, 9000)) + `a=1"` }},
		{"many conditions", readFilter, func(n int) string { return `"` + strings.Repeat("a=1 OR ", n/7) + `a=1"` }},
		{"conditions in a list", readFilter, func(n int) string { return list(`"a=1"`, min(n, 60000)) }},
		{"conditions in lists", readFilter, func(n int) string { return list(`["a=1"]`, min(n, 60000)) }},
		{"values", readFilter, func(n int) string { return `"a IN [` + repeated("1", n/2) + `]"` }},
		{"texts", readFilter, func(n int) string { return `"a IN [` + repeated("ab", n/3) + `]"` }},
		{"parentheses", readFilter, func(n int) string { return `"` + strings.Repeat("(", n) + `"` }},
		{"negations", readFilter, func(n int) string { return `"` + strings.Repeat("NOT ", n/4) + `a=1"` }},
		{"attributes", readSearch, func(n int) string { return `{"attributesToRetrieve":` + list(`""`, n) + "}" }},
		{"a query", readSearch, func(n int) string { return `{"q":"` + strings.Repeat("ab ", n/3) + `"}` }},
		{"a vector", readSearch, func(n int) string { return `{"vector":` + list("1", n) + "}" }},
		{"the same member", readSearch, func(n int) string { return "{" + repeated(`"filter":"a=1"`, n/15) + "}" }},
		{"ids", readFetch, func(n int) string { return `{"ids":` + list("1", n) + "}" }},
		{"ids that are texts", readFetch, func(n int) string { return `{"ids":` + list(`"1"`, n) + "}" }},
		{"sort", readFetch, func(n int) string { return `{"sort":` + list(`"a:asc"`, n) + "}" }},
	} {
		for _, n := range []int{2 << 10, 100 << 10} {
			body := test.body(n)
			var shape budget.Shape
			shape.Add([]byte(body))
			r := bodyReader{account: budget.New(1<<40, nil).Open(0), settings: test.settings}
			if err := r.holdDecoded(&shape, 0); err != nil {
				t.Fatal(err)
			}
			const fixed = 8 << 10 // for an error and the tables of a parser
			charged := test.share*r.account.Held() + fixed
			took := int64(math.MaxInt64)
			for range 5 { // other goroutines allocate, too
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				test.read(body)
				runtime.ReadMemStats(&after)
				if took = min(took, int64(after.TotalAlloc-before.TotalAlloc)); took <= charged {
					break
				}
			}
			if took > charged {
				t.Errorf("%s: %d bytes allocate %d, charged %d", test.name, len(body), took, charged)
			}
		}
	}
}

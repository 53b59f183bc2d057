package fastapi

import (
	"strings"
	"testing"
)

// TestBadMembers sends invalid aggregations, groups, score functions, braces and features to each route that accepts them. Each route must
// answer with the code of its member.
func TestBadMembers(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("PATCH", "/indexes/i/settings", `{"filterableAttributes":["n","b",{"attributePatterns":["v.*"],"features":{"elements":true}}],
		"sortableAttributes":["n"],"rankingRules":["words","score"]}`))
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id":1,"n":0,"b":"x","v":[{"n":1}],"w":[{"n":1}]},{"id":2,"n":1000000,"b":"y","t":"z"}]`))
	const search, fetch, multi, settings = "/indexes/i/search", "/indexes/i/documents/fetch", "/multi-search", "/indexes/i/settings"
	type route struct{ path, before, after, code string }
	inQuery := func(code string) route { return route{multi, `{"queries":[{"indexUid":"i",`, `}]}`, code} }
	inFederation := func(code string) route {
		return route{multi, `{"queries":[{"indexUid":"i"}],"federation":{`, `}}`, code}
	}
	object := func(path, code string) route { return route{path, "{", "}", code} }
	aggregations := []route{object(search, "invalid_search_aggregations"), object(fetch, "invalid_document_aggregations"),
		inQuery("invalid_search_aggregations"), inFederation("invalid_multi_search_aggregations")}
	groups := []route{object(search, "invalid_search_group_by"), inQuery("invalid_search_group_by"), inFederation("invalid_multi_search_group_by")}
	functions := []route{object(search, "invalid_search_score_functions"), inQuery("invalid_search_score_functions")}
	filters := []route{object(search, "invalid_search_filter"), object(fetch, "invalid_document_filter"), inQuery("invalid_search_filter")}
	sorts := []route{object(search, "invalid_search_sort"), object(fetch, "invalid_document_sort"), inQuery("invalid_search_sort")}
	filterable := []route{object(settings, "invalid_settings_filterable_attributes")}
	deep := strings.Repeat(`{"a":{"terms":"b","aggregations":`, 4) + `{}` + strings.Repeat("}}", 4)
	for _, tt := range []struct {
		routes []route
		member string
		values []string
	}{
		{aggregations, "aggregations", []string{`1`, `[]`, `"n"`, `{"a":1}`, `{"a":{}}`, `{"a":{"median":"n"}}`, `{"a":{"stats":1}}`, `{"a":{"stats":"n","terms":"b"}}`,
			`{"a":{"stats":"unknown.t"}}`, `{"a":{"stats":"t"}}`, `{"a":{"stats":"n","limit":3}}`, `{"a":{"terms":"b","limit":-1}}`, `{"a":{"terms":"b","limit":1000000}}`,
			`{"a":{"terms":"b","limit":1e400}}`, `{"a":{"terms":"b","order":"price"}}`, `{"a":{"histogram":"n","interval":0}}`, `{"a":{"histogram":"n","interval":-1}}`,
			`{"a":{"histogram":"n","interval":1e999}}`, `{"a":{"histogram":"n","interval":"1"}}`, `{"a":{"histogram":"n","interval":1,"minCount":0}}`, // of 1,000,001 buckets
			`{"a":{"dateHistogram":"n","interval":"second","minCount":0}}`, `{"a":{"dateHistogram":"n","interval":0}}`, `{"a":{"dateHistogram":"n","interval":"day","timeZone":"Nowhere"}}`,
			`{"a":{"percentiles":"n","percents":[101]}}`, `{"a":{"percentiles":"n","percents":[]}}`, `{"a":{"range":"n","bands":[]}}`, `{"a":{"range":"n","bands":[{"from":2,"to":1}]}}`, deep}},
		{groups, "groupBy", []string{`1`, `"b"`, `[]`, `{}`, `{"attribute":1}`, `{"attribute":""}`, `{"attribute":"t"}`, `{"attribute":"b","hitsPerGroup":0}`,
			`{"attribute":"b","hitsPerGroup":101}`, `{"attribute":"b","hitsPerGroup":1e99}`, `{"attribute":"b","hitsPerGroup":"3"}`, `{"attribute":"b","sort":"n:asc"}`,
			`{"attribute":"b","sort":["b:asc"]}`, `{"attribute":"b","size":3}`}},
		{functions, "scoreFunctions", []string{`1`, `"log"`, `{"levels":1,"functions":[]}`, `{"levels":1001,"functions":[]}`, `[{"function":"log","attribute":"n","scale":1}]`,
			`[{"name":"a","function":"exp","attribute":"n","scale":1}]`, `[{"name":"a","function":"log","attribute":"n"}]`, `[{"name":"a","function":"log","attribute":"n","scale":0}]`,
			`[{"name":"a","function":"log","attribute":"n","scale":1e999}]`, `[{"name":"a","function":"log","attribute":"t","scale":1}]`,
			`[{"name":"a","function":"log","attribute":"n","scale":1,"weight":1e7}]`, `[{"name":"a","function":"decay","attribute":"n","scale":1,"origin":"soon"}]`,
			`[{"name":"a","function":"decay","attribute":"n","scale":1,"origin":0,"decay":1}]`, `[{"name":"a","function":"decay","attribute":"n","scale":1,"origin":0,"curve":"step"}]`,
			`[{"name":"a","function":"filter","filter":"t = 1"}]`, `[{"name":"a","function":"filter","filter":"n ="}]`}},
		{filters, "filter", []string{`"w.{n = 1}"`, `"v.{n = 1"`, `"v.{}"`, `"v.{n = }"`, `".{n = 1}"`, `"v.{_geoPolygon([1,1],[2,2],[3,1])}"`, `"v.{_vectors EXISTS}"`}},
		{sorts, "sort", []string{`["w.{n = 1}.n:asc"]`, `["v.{n = 1}:asc"]`, `["v.{n = }.n:asc"]`, `["v.{n = 1}.n"]`, `["v.{n = 1}.n:up"]`}},
		{filterable, "filterableAttributes", []string{`[{"attributePatterns":["n"],"features":{"infix":1}}]`, `[{"attributePatterns":["n"],"features":{"elements":"yes"}}]`,
			`[{"attributePatterns":["n"],"features":{"inside":true}}]`}},
		{[]route{object(settings, "invalid_settings_searchable_attributes")}, "searchableAttributes", []string{`[["t",["b"]]]`, `[[1]]`, `[{"t":1}]`}},
		{[]route{object(settings, "invalid_settings_score_functions")}, "scoreFunctions", []string{`1`, `[{"name":"a"}]`, `[{"name":"a","function":"filter","filter":"n ="}]`}},
	} {
		for _, value := range tt.values {
			for _, r := range tt.routes {
				method := "POST"
				if r.path == settings {
					method = "PATCH"
				}
				body := r.before + `"` + tt.member + `":` + value + r.after
				if got := c.json(method, r.path, body); got.status != 400 || got.code() != r.code {
					t.Errorf("%s %s: %d %s, want %s", r.path, body, got.status, got.body, r.code)
				}
			}
		}
	}
}

package settings

import (
	"reflect"
	"testing"

	"svc/segment"
)

// TestStale lists what a change of each setting may make stale.
func TestStale(t *testing.T) {
	want := map[string]stale{
		"displayedAttributes": nothing, "searchableAttributes": wordsOfNewFields, "filterableAttributes": columns,
		"sortableAttributes": columns, "foreignKeys": nothing, "rankingRules": columns, "stopWords": words,
		"nonSeparatorTokens": words, "separatorTokens": words, "dictionary": words, "synonyms": nothing,
		"distinctAttribute": columns, "proximityPrecision": nothing, "typoTolerance": nothing, "faceting": nothing,
		"pagination": nothing, "embedders": nothing, "searchCutoffMs": nothing, "localizedAttributes": wordsOfNewFields,
		"facetSearch": nothing, "prefixSearch": prefixes, "chat": nothing, "timeToLive": columns, "scoreFunctions": columns,
		"suggestions": nothing,
	}
	for _, row := range table {
		got, ok := want[row.key]
		if !ok || got != row.stale {
			t.Errorf("%s: stale is %d, want %d", row.key, row.stale, got)
		}
		delete(want, row.key)
	}
	if len(want) > 0 {
		t.Errorf("settings missing in the table: %v", want)
	}
}

func TestChanges(t *testing.T) {
	names := []string{"title", "body", "price", "body.de", "_geo"}
	ids := func(ids ...segment.FieldID) []segment.FieldID { return ids }
	tests := []struct {
		from, to string
		want     Rebuild
	}{
		{`{}`, `{}`, Rebuild{}},
		{`{}`, `{"displayedAttributes":["title"],"synonyms":{"a":["b"]},"typoTolerance":{"disableOnAttributes":["title"],"disableOnNumbers":true},` +
			`"faceting":{"maxValuesPerFacet":3},"pagination":{"maxTotalHits":1},"searchCutoffMs":1,"facetSearch":false,"proximityPrecision":"byAttribute"}`, Rebuild{}},
		{`{}`, `{"rankingRules":["words","typo"]}`, Rebuild{}},
		{`{}`, `{"rankingRules":["price:asc"]}`, Rebuild{AddColumns: ids(2)}},
		{`{"rankingRules":["price:asc"]}`, `{"rankingRules":["price:desc"]}`, Rebuild{}},
		{`{"rankingRules":["price:asc"]}`, `{"rankingRules":[],"sortableAttributes":["price"]}`, Rebuild{}},
		{`{}`, `{"sortableAttributes":["price"]}`, Rebuild{AddColumns: ids(2)}},
		{`{}`, `{"sortableAttributes":["body"]}`, Rebuild{AddColumns: ids(1, 3)}},
		{`{"sortableAttributes":["price"]}`, `{"filterableAttributes":["price","title"],"sortableAttributes":[]}`, Rebuild{AddColumns: ids(0)}},
		{`{"filterableAttributes":["price","title"]}`, `{"filterableAttributes":["title"]}`, Rebuild{DropColumns: ids(2)}},
		{`{"filterableAttributes":["price"]}`, `{"filterableAttributes":[{"attributePatterns":["price"]}]}`, Rebuild{}},
		{`{"filterableAttributes":["price"]}`, `{"filterableAttributes":[{"attributePatterns":["price"],"features":{"elements":true}}]}`, Rebuild{Words: true}},
		{`{"filterableAttributes":[{"attributePatterns":["price"],"features":{"elements":true}}]}`, `{"filterableAttributes":["price"]}`, Rebuild{}},
		{`{"filterableAttributes":["price"]}`, `{"filterableAttributes":[{"attributePatterns":["price"],"features":{"infix":true}}]}`, Rebuild{AddInfix: ids(2)}},
		{`{}`, `{"filterableAttributes":[{"attributePatterns":["price"],"features":{"infix":true}}]}`, Rebuild{AddColumns: ids(2), AddInfix: ids(2)}},
		{`{"filterableAttributes":[{"attributePatterns":["price"],"features":{"infix":true}}]}`, `{"filterableAttributes":["price"]}`, Rebuild{}},
		{`{}`, `{"distinctAttribute":"price"}`, Rebuild{AddColumns: ids(2)}},
		{`{}`, `{"timeToLive":{"attribute":"price"}}`, Rebuild{AddColumns: ids(2)}},
		{`{"timeToLive":{"attribute":"price"}}`, `{"timeToLive":{"attribute":"price","seconds":60}}`, Rebuild{}},
		{`{"timeToLive":{"attribute":"price"}}`, `{"timeToLive":null}`, Rebuild{DropColumns: ids(2)}},
		{`{"timeToLive":{"attribute":"body.de"}}`, `{"timeToLive":{"attribute":"body"}}`, Rebuild{AddColumns: ids(1), DropColumns: ids(3)}},
		{`{}`, `{"scoreFunctions":[{"name":"a","function":"log","attribute":"price","scale":9}]}`, Rebuild{AddColumns: ids(2)}},
		{`{"scoreFunctions":[{"name":"a","function":"log","attribute":"price","scale":9}]}`, `{"scoreFunctions":[{"name":"a","function":"sqrt","attribute":"price","scale":9}]}`, Rebuild{}},
		{`{"scoreFunctions":[{"name":"a","function":"log","attribute":"price","scale":9}]}`, `{"scoreFunctions":null}`, Rebuild{DropColumns: ids(2)}},
		{`{}`, `{"scoreFunctions":[{"name":"a","function":"decay","attribute":"_geo","origin":{"lat":1,"lng":2},"scale":9}]}`, Rebuild{AddColumns: ids(4), Geo: true}},
		{`{}`, `{"sortableAttributes":["_geo"]}`, Rebuild{AddColumns: ids(4), Geo: true}},
		{`{"filterableAttributes":["_geo"]}`, `{"sortableAttributes":["_geo"],"filterableAttributes":[]}`, Rebuild{}},
		{`{}`, `{"filterableAttributes":["_geojson"]}`, Rebuild{Geo: true}},
		{`{}`, `{"searchableAttributes":["title"]}`, Rebuild{}},
		{`{}`, `{"searchableAttributes":["price","body","title"]}`, Rebuild{}},
		{`{"searchableAttributes":["title","body"]}`, `{"searchableAttributes":["body","title"]}`, Rebuild{}},
		{`{"searchableAttributes":["title","body"]}`, `{"searchableAttributes":["body","none"]}`, Rebuild{}},
		{`{"searchableAttributes":["title","body"]}`, `{"searchableAttributes":[["body","title"]]}`, Rebuild{}},
		{`{"searchableAttributes":[["title","body"]]}`, `{"searchableAttributes":["body",["none","title"]]}`, Rebuild{}},
		{`{"searchableAttributes":["*"]}`, `{"searchableAttributes":[["body","title"]]}`, Rebuild{}},
		{`{"searchableAttributes":["title"]}`, `{"searchableAttributes":[["body","title"]]}`, Rebuild{Words: true}},
		{`{"searchableAttributes":["title","body.de"]}`, `{"searchableAttributes":["body"]}`, Rebuild{Words: true}},
		{`{"searchableAttributes":["title"]}`, `{"searchableAttributes":["*"]}`, Rebuild{Words: true}},
		{`{}`, `{"stopWords":["a"]}`, Rebuild{Words: true}},
		{`{"stopWords":["a","b"]}`, `{"stopWords":["b","a"]}`, Rebuild{}},
		{`{}`, `{"separatorTokens":["a"]}`, Rebuild{Words: true}},
		{`{}`, `{"nonSeparatorTokens":["a"]}`, Rebuild{Words: true}},
		{`{}`, `{"dictionary":["a"]}`, Rebuild{Words: true}},
		{`{}`, `{"localizedAttributes":[{"attributePatterns":["other"],"locales":["de"]}]}`, Rebuild{}},
		{`{}`, `{"localizedAttributes":[{"attributePatterns":["body.*"],"locales":["de"]}]}`, Rebuild{Words: true}},
		{`{"searchableAttributes":["title"]}`, `{"localizedAttributes":[{"attributePatterns":["body.*"],"locales":["de"]}]}`, Rebuild{}},
		{`{}`, `{"prefixSearch":"disabled"}`, Rebuild{Prefixes: true}},
	}
	for _, test := range tests {
		from := mustApply(t, Default(), test.from)
		to := mustApply(t, from, test.to)
		got := Changes(from, to, Resolve(names, from, "id"), Resolve(names, to, "id"))
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s → %s: got %+v, want %+v", test.from, test.to, got, test.want)
		}
		if got.None() != reflect.DeepEqual(test.want, Rebuild{}) {
			t.Errorf("%s → %s: None is %v", test.from, test.to, got.None())
		}
	}
}

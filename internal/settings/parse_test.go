package settings

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"svc/internal/apierr"
)

var allFeatures = Features{ForeignKeys: true, Chat: true, CompositeEmbedders: true, Multimodal: true}

func TestRefused(t *testing.T) {
	rest := `"source":"rest","url":"http://localhost:1","request":{"in":"{{text}}"},"response":{"out":"{{embedding}}"}`
	tests := []struct {
		route string // "": PATCH /settings
		body  string
		code  apierr.Code
	}{
		{"", ``, "missing_payload"},
		{"", ` `, "missing_payload"},
		{"", `{"stopWords":`, "malformed_payload"},
		{"", "{\"stopWords\":[\"\xff\"]}", "malformed_payload"},
		{"", `[]`, "bad_request"},
		{"", `"words"`, "bad_request"},
		{"", `null`, "bad_request"},
		{"", `{"stop_words":["a"]}`, "bad_request"},
		{"", `{"StopWords":["a"]}`, "bad_request"},
		{"", `{"exactAttributes":["a"]}`, "bad_request"},
		{"", `{"displayedAttributes":["a",4]}`, "invalid_settings_displayed_attributes"},
		{"", `{"searchableAttributes":12}`, "invalid_settings_searchable_attributes"},
		{"searchable-attributes", `["a",["b",["c"]]]`, "invalid_settings_searchable_attributes"},
		{"searchable-attributes", `["a",[]]`, "invalid_settings_searchable_attributes"},
		{"searchable-attributes", `["a",["b","b"]]`, "invalid_settings_searchable_attributes"},
		{"searchable-attributes", `["a",["b","a"]]`, "invalid_settings_searchable_attributes"},
		{"searchable-attributes", `["a","a",["b"]]`, "invalid_settings_searchable_attributes"},
		{"searchable-attributes", `["a",["b","*"]]`, "invalid_settings_searchable_attributes"},
		{"searchable-attributes", `["*",["b"]]`, "invalid_settings_searchable_attributes"},
		{"searchable-attributes", `["a",["b",null]]`, "invalid_settings_searchable_attributes"},
		{"searchable-attributes", `[{"a":"b"}]`, "invalid_settings_searchable_attributes"},
		{"", `{"rankingRules":["words",null]}`, "invalid_settings_ranking_rules"},
		{"", `{"chat":12}`, "invalid_settings_index_chat"},
		{"", `{"foreignKeys":12}`, "invalid_settings_foreign_keys"},
		{"", `{"chat":{"description":"x"}}`, "feature_not_enabled"},
		{"foreign-keys", `[{"foreignIndexUid":"a","fieldName":"b"}]`, "feature_not_enabled"},
		{"foreign-keys", `[{"foreignIndexUid":"a","fieldName":"b","as":"c"}]`, "invalid_settings_foreign_keys"},
		{"foreign-keys", `[{"foreignIndexUid":"a"}]`, "invalid_settings_foreign_keys"},
		{"stop-words", `"the"`, "invalid_settings_stop_words"},
		{"stop-words", `[["a"]]`, "invalid_settings_stop_words"},
		{"sortable-attributes", `[{"attributePatterns":["a"]}]`, "invalid_settings_sortable_attributes"},
		{"dictionary", `{"a":[]}`, "invalid_settings_dictionary"},
		{"separator-tokens", `[1]`, "invalid_settings_separator_tokens"},
		{"non-separator-tokens", `[false]`, "invalid_settings_non_separator_tokens"},
		{"synonyms", `{"a":"b"}`, "invalid_settings_synonyms"},
		{"synonyms", `{"a":null}`, "invalid_settings_synonyms"},
		{"distinct-attribute", `["sku"]`, "invalid_settings_distinct_attribute"},
		{"proximity-precision", `"byattribute"`, "invalid_settings_proximity_precision"},
		{"prefix-search", `"Disabled"`, "invalid_settings_prefix_search"},
		{"facet-search", `1`, "invalid_settings_facet_search"},
		{"search-cutoff-ms", `-1`, "invalid_settings_search_cutoff_ms"},
		{"search-cutoff-ms", `1.5`, "invalid_settings_search_cutoff_ms"},
		{"search-cutoff-ms", `1e2`, "invalid_settings_search_cutoff_ms"},
		{"search-cutoff-ms", `18446744073709551616`, "invalid_settings_search_cutoff_ms"},
		{"pagination", `{"maxTotalHits":0}`, "invalid_settings_pagination"},
		{"pagination", `{"maxHits":3}`, "invalid_settings_pagination"},
		{"faceting", `{"sortFacetValuesBy":{"a":"size"}}`, "invalid_settings_faceting"},
		{"faceting", `{"maxValuesPerFacet":"2"}`, "invalid_settings_faceting"},
		{"time-to-live", `60`, "invalid_settings_time_to_live"},
		{"time-to-live", `{}`, "invalid_settings_time_to_live"},
		{"time-to-live", `{"seconds":60}`, "invalid_settings_time_to_live"},
		{"time-to-live", `{"attribute":""}`, "invalid_settings_time_to_live"},
		{"time-to-live", `{"attribute":null}`, "invalid_settings_time_to_live"},
		{"time-to-live", `{"attribute":"_geo.lat"}`, "invalid_settings_time_to_live"},
		{"time-to-live", `{"attribute":"_vectors"}`, "invalid_settings_time_to_live"},
		{"time-to-live", `{"attribute":"end","seconds":-1}`, "invalid_settings_time_to_live"},
		{"time-to-live", `{"attribute":"end","seconds":0.5}`, "invalid_settings_time_to_live"},
		{"time-to-live", `{"attribute":"end","seconds":1000000000001}`, "invalid_settings_time_to_live"},
		{"time-to-live", `{"attribute":"end","second":1}`, "invalid_settings_time_to_live"},
		{"typo-tolerance", `{"on":true}`, "invalid_settings_typo_tolerance"},
		{"typo-tolerance", `{"minWordSizeForTypos":{"oneTypo":256}}`, "invalid_settings_typo_tolerance"},
		{"typo-tolerance", `{"minWordSizeForTypos":{"oneTypo":9,"twoTypos":3}}`, "invalid_settings_typo_tolerance"},
		{"filterable-attributes", `[{}]`, "invalid_settings_filterable_attributes"},
		{"filterable-attributes", `[{"attributePatterns":["a"],"features":{"filter":{"contains":true}}}]`, "invalid_settings_filterable_attributes"},
		{"ranking-rules", `["Words"]`, "invalid_settings_ranking_rules"},
		{"ranking-rules", `["price:up"]`, "invalid_settings_ranking_rules"},
		{"ranking-rules", `["_geoPoint(1,2):asc"]`, "invalid_settings_ranking_rules"},
		{"ranking-rules", `["_geoDistance:desc"]`, "invalid_settings_ranking_rules"},
		{"ranking-rules", `["wordPosition","words","attribute"]`, "invalid_settings_ranking_rules"},
		{"localized-attributes", `[{"attributePatterns":["a"],"locales":["xx"]}]`, "invalid_settings_localized_attributes"},
		{"localized-attributes", `[{"locales":["eng"]}]`, "invalid_settings_localized_attributes"},
		{"embedders", `{"e":{"source":"magic"}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{"source":"userProvided"}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{"source":"userProvided","dimensions":0}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{"source":"userProvided","dimensions":3,"apiKey":null}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{"source":"userProvided","dimensions":3,"distribution":{"mean":2,"sigma":1}}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{"source":"openAi","model":"other"}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{"source":"ollama","model":""}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{"source":"openAi","apiKey":["key"]}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{"source":"openAi","model":"text-embedding-ada-002","dimensions":4}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{"source":"composite"}}`, "feature_not_enabled"},
		{"embedders", `{"e":{` + rest + `,"searchFragments":{}}}`, "feature_not_enabled"},
		{"embedders", `{"e":{` + rest + `,"url":"not a url"}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{` + rest + `,"documentTemplate":"{{doc.t"}}`, "invalid_settings_embedders"},
		{"embedders", `{"e":{` + rest + `,"request":{"in":"x {{text}}"}}}`, "vector_embedding_error"},
		{"embedders", `{"e":{` + rest + `,"request":{"a":"{{text}}","b":"{{text}}"}}}`, "vector_embedding_error"},
		{"embedders", `{"e":{` + rest + `,"request":["{{text}}","{{..}}"]}}`, "vector_embedding_error"},
		{"embedders", `{"e":{` + rest + `,"request":["x","{{text}}","{{..}}"]}}`, "vector_embedding_error"},
		{"chat", `{"searchParameters":{"rankingScoreThreshold":3}}`, "invalid_settings_index_chat"},
		{"chat", `{"searchParameters":{"hybrid":{"semanticRatio":0.3}}}`, "invalid_settings_index_chat"},
	}
	for _, test := range tests {
		var err error
		if test.route == "" {
			_, err = ParseUpdate([]byte(test.body), Features{})
		} else {
			_, err = ParseOne(test.route, []byte(test.body), Features{})
		}
		if err == nil || apierr.From(err).Code != test.code {
			t.Errorf("%s %s: got %v, want code %s", test.route, test.body, err, test.code)
		}
	}
}

// TestEcho checks what tasks show of an update, and that Full loses nothing.
func TestEcho(t *testing.T) {
	tests := []struct{ body, want string }{
		{`{}`, `{}`},
		{`{"displayedAttributes":null,"searchableAttributes":["title","*"]}`, `{"displayedAttributes":["*"],"searchableAttributes":["title","*"]}`},
		{`{"searchableAttributes":["title",["b","a"]]}`, `{"searchableAttributes":["title",["b","a"]]}`},
		{`{"stopWords":["z","y","z"],"sortableAttributes":["q","b"]}`, `{"sortableAttributes":["b","q"],"stopWords":["y","z"]}`},
		{`{"typoTolerance":{"disableOnWords":["b","Acme"],"enabled":null}}`, `{"typoTolerance":{"disableOnWords":["Acme","b"],"enabled":null}}`},
		{`{"synonyms":{"b":["y","x"],"a":[]},"stopWords":null}`, `{"stopWords":null,"synonyms":{"b":["y","x"],"a":[]}}`},
		{`{"filterableAttributes":["b","a","b",{"attributePatterns":["x*"]}]}`,
			`{"filterableAttributes":["b","a","b",{"attributePatterns":["x*"],"features":{"facetSearch":false,"filter":{"equality":true,"comparison":false}}}]}`},
		{`{"filterableAttributes":[{"attributePatterns":["x*"],"features":{"elements":true}},{"attributePatterns":["y"],"features":{"elements":false}}]}`,
			`{"filterableAttributes":[{"attributePatterns":["x*"],"features":{"facetSearch":false,"filter":{"equality":true,"comparison":false},"elements":true}},{"attributePatterns":["y"],"features":{"facetSearch":false,"filter":{"equality":true,"comparison":false}}}]}`},
		{`{"filterableAttributes":[{"attributePatterns":["x*"],"features":{"infix":true}},{"attributePatterns":["y"],"features":{"infix":false}}]}`,
			`{"filterableAttributes":[{"attributePatterns":["x*"],"features":{"facetSearch":false,"filter":{"equality":true,"comparison":false},"infix":true}},{"attributePatterns":["y"],"features":{"facetSearch":false,"filter":{"equality":true,"comparison":false}}}]}`},
		{`{"localizedAttributes":[{"attributePatterns":["*_en"],"locales":["en"],"x":1}]}`, `{"localizedAttributes":[{"attributePatterns":["*_en"],"locales":["en"]}]}`},
		{`{"embedders":{"a":null,"b":{"apiKey":"a-very-long-secret-key"},"c":{"apiKey":"short"},"d":{"apiKey":null}}}`,
			`{"embedders":{"a":null,"b":{"apiKey":"a-vXXXXX..."},"c":{"apiKey":"XXX..."},"d":{"apiKey":null}}}`},
		{`{"embedders":{"c":{"searchEmbedder":{"source":"openAi","apiKey":"0123456789012345678901234567890123456789"}}}}`,
			`{"embedders":{"c":{"searchEmbedder":{"source":"openAi","apiKey":"01234XXXXXX..."}}}}`},
		{`{"chat":{"searchParameters":{"hybrid":{"embedder":"e"},"limit":3},"description":null}}`,
			`{"chat":{"searchParameters":{"hybrid":{"embedder":"e","semanticRatio":0.5},"limit":3},"description":null}}`},
		{`{"chat":{"searchParameters":{"hybrid":{"semanticRatio":null,"embedder":"e"}}}}`, `{"chat":{"searchParameters":{"hybrid":{"embedder":"e","semanticRatio":0.5}}}}`},
		{`{"chat":{"searchParameters":{"hybrid":null}}}`, `{"chat":{"searchParameters":{"hybrid":null}}}`},
		{`{"chat":{"searchParameters":null}}`, `{"chat":{"searchParameters":null}}`},
		{`{"chat":{"searchParameters":{"limit":null,"hybrid":{"embedder":"e","semanticRatio":0.30}}}}`,
			`{"chat":{"searchParameters":{"limit":null,"hybrid":{"embedder":"e","semanticRatio":0.30}}}}`},
		{`{"rankingRules":["a:b:desc",":asc","<&>:asc"]}`, `{"rankingRules":["a:b:desc",":asc","<&>:asc"]}`},
	}
	for _, test := range tests {
		u, err := ParseUpdate([]byte(test.body), allFeatures)
		if err != nil {
			t.Errorf("%s: %v", test.body, err)
			continue
		}
		again, err := UnmarshalUpdate(u.Full())
		if err != nil {
			t.Errorf("%s: %v", u.Full(), err)
			continue
		}
		for _, u := range []*Update{u, again} {
			if got, err := u.MarshalJSON(); err != nil || string(got) != test.want {
				t.Errorf("%s: got %s, %v, want %s", test.body, got, err, test.want)
			}
		}
	}
}

func TestResetAllEcho(t *testing.T) {
	got, _ := ResetAll().MarshalJSON()
	want := `{"displayedAttributes":["*"],"searchableAttributes":["*"],"filterableAttributes":null,"sortableAttributes":null,` +
		`"foreignKeys":null,"rankingRules":null,"stopWords":null,"nonSeparatorTokens":null,"separatorTokens":null,"dictionary":null,` +
		`"synonyms":null,"distinctAttribute":null,"proximityPrecision":null,"typoTolerance":null,"faceting":null,"pagination":null,` +
		`"embedders":null,"searchCutoffMs":null,"localizedAttributes":null,"facetSearch":null,"prefixSearch":null,"chat":null}`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestDefaultsShown(t *testing.T) {
	want := `{"displayedAttributes":["*"],"searchableAttributes":["*"],"filterableAttributes":[],"sortableAttributes":[],` +
		`"rankingRules":["words","typo","proximity","attributeRank","sort","wordPosition","exactness"],"stopWords":[],` +
		`"nonSeparatorTokens":[],"separatorTokens":[],"dictionary":[],"synonyms":{},"distinctAttribute":null,` +
		`"proximityPrecision":"byWord","typoTolerance":{"enabled":true,"minWordSizeForTypos":{"oneTypo":5,"twoTypos":9},` +
		`"disableOnWords":[],"disableOnAttributes":[],"disableOnNumbers":false},"faceting":{"maxValuesPerFacet":100,` +
		`"sortFacetValuesBy":{"*":"alpha"}},"pagination":{"maxTotalHits":1000},"embedders":{},"searchCutoffMs":null,` +
		`"localizedAttributes":null,"facetSearch":true,"prefixSearch":"indexingTime"}`
	got, err := Default().MarshalJSON()
	if err != nil || string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(Default().JSON(allFeatures), &all); err != nil {
		t.Fatal(err)
	}
	if string(all["foreignKeys"]) != "[]" || len(all["chat"]) == 0 {
		t.Errorf("open features show foreignKeys %s and chat %s", all["foreignKeys"], all["chat"])
	}
	for _, shape := range Shapes() {
		route := shape.Route
		one, err := Default().One(route)
		want := all[table[byRoute[route]].key]
		if table[byRoute[route]].own { // not part of all settings
			want = json.RawMessage("null")
		}
		if err != nil || !bytes.Equal(one, want) {
			t.Errorf("%s: got %s, %v, want %s", route, one, err, want)
		}
	}
}

// TestApply applies a chain of updates to settings: merging, replacing, resets by null, errors.
func TestApply(t *testing.T) {
	type step struct{ body, want string } // want: GET of the sub-route, or an error code
	tests := []struct {
		route string
		steps []step
	}{
		{"displayed-attributes", []step{{`["a","b"]`, `["a","b"]`}, {`["*","a"]`, `["*"]`}, {`[]`, `[]`}, {`null`, `["*"]`}}},
		{"searchable-attributes", []step{{`["b","a"]`, `["b","a"]`}, {`[]`, `[]`}, {`["a","*"]`, `["*"]`}}},
		{"stop-words", []step{{`["of","and","of"]`, `["and","of"]`}, {`["x"]`, `["x"]`}, {`null`, `[]`}}},
		{"ranking-rules", []step{{`["words","words","x:desc"]`, `["words","words","x:desc"]`}, {`[]`, `[]`}}},
		{"synonyms", []step{{`{"Canapé":["Sofa"],"b":[]}`, `{"Canapé":["Sofa"],"b":[]}`}, {`{"a":["y","x"]}`, `{"a":["y","x"]}`}}},
		{"typo-tolerance", []step{
			{`{"minWordSizeForTypos":{"oneTypo":4}}`, `{"enabled":true,"minWordSizeForTypos":{"oneTypo":4,"twoTypos":9},"disableOnWords":[],"disableOnAttributes":[],"disableOnNumbers":false}`},
			{`{"minWordSizeForTypos":{"twoTypos":12},"disableOnWords":["zulu","Acme"],"enabled":false}`, `{"enabled":false,"minWordSizeForTypos":{"oneTypo":4,"twoTypos":12},"disableOnWords":["acme","zulu"],"disableOnAttributes":[],"disableOnNumbers":false}`},
			{`{"minWordSizeForTypos":{"oneTypo":13}}`, "invalid_settings_typo_tolerance"},
			{`{"enabled":null,"disableOnWords":null,"minWordSizeForTypos":{"oneTypo":null}}`, `{"enabled":true,"minWordSizeForTypos":{"oneTypo":5,"twoTypos":12},"disableOnWords":[],"disableOnAttributes":[],"disableOnNumbers":false}`},
			{`{"minWordSizeForTypos":{"oneTypo":0,"twoTypos":255}}`, `{"enabled":true,"minWordSizeForTypos":{"oneTypo":0,"twoTypos":255},"disableOnWords":[],"disableOnAttributes":[],"disableOnNumbers":false}`},
		}},
		{"faceting", []step{
			{`{"maxValuesPerFacet":2}`, `{"maxValuesPerFacet":2,"sortFacetValuesBy":{"*":"alpha"}}`},
			{`{"sortFacetValuesBy":{"*":"count","maker":"alpha"}}`, `{"maxValuesPerFacet":2,"sortFacetValuesBy":{"*":"count","maker":"alpha"}}`},
			{`{"sortFacetValuesBy":{"year":"count"}}`, `{"maxValuesPerFacet":2,"sortFacetValuesBy":{"*":"alpha","year":"count"}}`},
			{`{"maxValuesPerFacet":null}`, `{"maxValuesPerFacet":100,"sortFacetValuesBy":{"*":"alpha","year":"count"}}`},
		}},
		{"pagination", []step{{`{"maxTotalHits":5}`, `{"maxTotalHits":5}`}, {`{}`, `{"maxTotalHits":5}`}, {`{"maxTotalHits":null}`, `{"maxTotalHits":1000}`}}},
		{"localized-attributes", []step{
			{`[{"attributePatterns":["*_en"],"locales":["en","fra"]}]`, `[{"attributePatterns":["*_en"],"locales":["eng","fra"]}]`},
			{`[]`, `[]`}, {`null`, `null`},
		}},
		{"search-cutoff-ms", []step{{`18446744073709551614`, `18446744073709551614`}, {`null`, `null`}}},
		{"distinct-attribute", []step{{`"sku"`, `"sku"`}, {`null`, `null`}}},
		{"prefix-search", []step{{`"disabled"`, `"disabled"`}}},
		{"embedders", []step{
			{`{"small":{"source":"userProvided","dimensions":2},"big":{"source":"userProvided","dimensions":3,"distribution":{"mean":0.70,"sigma":0.3}}}`,
				`{"big":{"source":"userProvided","dimensions":3,"distribution":{"mean":0.70,"sigma":0.3}},"small":{"source":"userProvided","dimensions":2}}`},
			{`{"small":null,"absent":null,"big":{"distribution":null}}`, `{"big":{"source":"userProvided","dimensions":3}}`},
			{`{"big":{"url":"http://localhost:1/"}}`, "invalid_settings_embedders"},
			{`{"big":{"halfPrecision":true}}`, `{"big":{"source":"userProvided","dimensions":3,"halfPrecision":true}}`},
			{`{"big":{"halfPrecision":1}}`, "invalid_settings_embedders"},
			{`{"big":{"halfPrecision":false}}`, `{"big":{"source":"userProvided","dimensions":3,"halfPrecision":false}}`},
			{`{"big":{"halfPrecision":null}}`, `{"big":{"source":"userProvided","dimensions":3}}`},
			{`{"big":{"binaryQuantized":true}}`, `{"big":{"source":"userProvided","dimensions":3,"binaryQuantized":true}}`},
			{`{"big":{"binaryQuantized":false}}`, "invalid_settings_embedders"},
			{`{"big":{"source":"rest","url":"http://localhost:1/","request":"{{text}}","response":"{{embedding}}","apiKey":"0123456789"}}`,
				`{"big":{"source":"rest","apiKey":"01XXXX...","documentTemplate":` + string(encode(defaultTemplate)) + `,"documentTemplateMaxBytes":400,"url":"http://localhost:1/","request":"{{text}}","response":"{{embedding}}","headers":{}}}`},
			{`{"big":{"documentTemplate":"{{doc.a}}","documentTemplateMaxBytes":0}}`, "invalid_settings_embedders"},
			{`{"big":{"documentTemplateMaxBytes":0}}`, "invalid_settings_embedders"},
			{`{"big":{"source":"ollama","model":"m","documentTemplate":"{{doc.a}}"}}`,
				`{"big":{"source":"ollama","model":"m","documentTemplate":"{{doc.a}}","documentTemplateMaxBytes":400}}`},
			{`{"big":{"documentTemplate":""}}`, `{"big":{"source":"ollama","model":"m","documentTemplate":"","documentTemplateMaxBytes":400}}`},
			{`{"big":{"documentTemplate":null}}`,
				`{"big":{"source":"ollama","model":"m","documentTemplate":` + string(encode(defaultTemplate)) + `,"documentTemplateMaxBytes":400}}`},
			{`{"big":{"documentTemplate":"{{doc.a}}"}}`, `{"big":{"source":"ollama","model":"m","documentTemplate":"{{doc.a}}","documentTemplateMaxBytes":400}}`},
			{`{"big":{"source":null}}`,
				`{"big":{"source":"openAi","model":"text-embedding-3-small","documentTemplate":"{{doc.a}}","documentTemplateMaxBytes":400}}`},
			{`null`, `{}`},
		}},
		{"chat", []step{
			{`{"searchParameters":{"limit":4,"sort":["price:asc"]}}`, `{"description":"","documentTemplate":` + string(encode(defaultTemplate)) + `,"documentTemplateMaxBytes":400,"searchParameters":{"limit":4,"sort":["price:asc"]}}`},
			{`{"documentTemplate":"{{ doc.name"}`, "invalid_chat_setting_document_template"},
			{`{"documentTemplateMaxBytes":0}`, "invalid_settings_embedders"},
			{`{"searchParameters":{"rankingScoreThreshold":0.5,"matchingStrategy":"all","attributesToSearchOn":[],"distinct":"x"},"description":"d"}`, `{"description":"d","documentTemplate":` + string(encode(defaultTemplate)) + `,"documentTemplateMaxBytes":400,"searchParameters":{"limit":4,"sort":["price:asc"],"distinct":"x","matchingStrategy":"all","attributesToSearchOn":[],"rankingScoreThreshold":0.5}}`},
			{`{"description":null,"searchParameters":{"rankingScoreThreshold":null,"matchingStrategy":null,"attributesToSearchOn":null,"distinct":null}}`, `{"description":"","documentTemplate":` + string(encode(defaultTemplate)) + `,"documentTemplateMaxBytes":400,"searchParameters":{"limit":4,"sort":["price:asc"]}}`},
			{`{"documentTemplate":"t","searchParameters":{"limit":null,"hybrid":{"embedder":"e"}}}`, `{"description":"","documentTemplate":"t","documentTemplateMaxBytes":400,"searchParameters":{"hybrid":{"semanticRatio":0.5,"embedder":"e"},"sort":["price:asc"]}}`},
		}},
	}
	for _, test := range tests {
		s := Default()
		for _, step := range test.steps {
			u, err := ParseOne(test.route, []byte(step.body), allFeatures)
			before := s.Encode()
			var next *Settings
			if err == nil {
				next, err = s.Apply(u)
			}
			if !bytes.Equal(s.Encode(), before) {
				t.Fatalf("%s %s: the old settings changed", test.route, step.body)
			}
			if err != nil {
				if string(apierr.From(err).Code) != step.want {
					t.Errorf("%s %s: %v, want %s", test.route, step.body, err, step.want)
				}
				continue
			}
			if got, _ := next.One(test.route); string(got) != step.want {
				t.Errorf("%s %s: got %s, want %s", test.route, step.body, got, step.want)
			}
			if s, err = Decode(next.Encode()); err != nil {
				t.Fatalf("%s %s: %v", test.route, step.body, err)
			}
			if !reflect.DeepEqual(s.object(allFeatures, true), next.object(allFeatures, true)) {
				t.Errorf("%s %s: decoded settings differ", test.route, step.body)
			}
		}
	}
}

// TestEmbedderFeatures checks what needs experimental features.
func TestEmbedderFeatures(t *testing.T) {
	rest := `"source":"rest","url":"http://localhost:1","response":{"out":"{{embedding}}"},"dimensions":4`
	fragments := `{` + rest + `,"request":{"in":"{{fragment}}"},"indexingFragments":{"x":{"value":{"a":["{{doc.x}}"]}}},"searchFragments":{"q":{"value":"{{q}}"}}}`
	part := `{"source":"ollama","model":"m","url":"http://localhost:1/api/embed"}`
	tests := []struct {
		body, want string // want: GET, or an error code, with "task " before it when only the merged settings show it
	}{
		{`{"e":` + fragments + `}`, `{"e":{"source":"rest","dimensions":4,"url":"http://localhost:1","request":{"in":"{{fragment}}"},"response":{"out":"{{embedding}}"},` +
			`"headers":{},"indexingFragments":{"x":{"value":{"a":["{{doc.x}}"]}}},"searchFragments":{"q":{"value":"{{q}}"}}}}`},
		{`{"e":{` + rest + `,"request":{"in":"{{text}}"},"indexingFragments":{"x":{"value":1}},"searchFragments":{"q":{"value":"{{q}}"}}}}`, "vector_embedding_error"},
		{`{"e":{` + rest + `,"request":{"in":"{{fragment}}"}}}`, "task vector_embedding_error"},
		{`{"e":{` + rest + `,"request":{"in":"{{fragment}}"},"indexingFragments":{"x":{"value":1}}}}`, "task vector_embedding_error"},
		{`{"e":{` + rest + `,"request":{"in":"{{fragment}}"},"indexingFragments":{"x":{"value":"{{doc.x"}}}}`, "vector_embedding_error"},
		{`{"e":{` + rest + `,"request":{"in":"{{fragment}}"},"indexingFragments":{"x":{"value":{"a":["{% if"]}}}}}`, "vector_embedding_error"},
		{`{"e":{` + rest + `,"request":{"in":"{{fragment}}"},"indexingFragments":{"x":{}}}}`, "invalid_settings_embedders"},
		{`{"e":{` + rest + `,"request":{"in":"{{fragment}}"},"indexingFragments":{"x":{"value":1,"y":2}}}}`, "invalid_settings_embedders"},
		{`{"e":{` + rest + `,"request":{"in":"{{fragment}}"},"indexingFragments":{"x":{"value":1}},"documentTemplate":"t"}}`, "vector_embedding_error"},
		{`{"e":{"source":"composite","searchEmbedder":` + part + `,"indexingEmbedder":` + part + `}}`,
			`{"e":{"source":"composite","searchEmbedder":{"source":"ollama","model":"m","url":"http://localhost:1/api/embed"},` +
				`"indexingEmbedder":{"source":"ollama","model":"m","documentTemplate":` + string(encode(defaultTemplate)) + `,"documentTemplateMaxBytes":400,"url":"http://localhost:1/api/embed"}}}`},
		// Each half has its own fragments or none.
		{`{"e":{"source":"composite","searchEmbedder":{` + rest + `,"request":{"in":"{{fragment}}"},"searchFragments":{"q":{"value":"{{q}}"}}},` +
			`"indexingEmbedder":{` + rest + `,"request":{"in":"{{fragment}}"},"indexingFragments":{"x":{"value":1}}}}}`,
			`{"e":{"source":"composite","searchEmbedder":{"source":"rest","dimensions":4,"url":"http://localhost:1","request":{"in":"{{fragment}}"},` +
				`"response":{"out":"{{embedding}}"},"headers":{},"searchFragments":{"q":{"value":"{{q}}"}}},` +
				`"indexingEmbedder":{"source":"rest","dimensions":4,"url":"http://localhost:1","request":{"in":"{{fragment}}"},` +
				`"response":{"out":"{{embedding}}"},"headers":{},"indexingFragments":{"x":{"value":1}}}}}`},
		{`{"e":{"source":"composite","searchEmbedder":` + part + `}}`, "invalid_settings_embedders"},
		{`{"e":{"source":"composite","searchEmbedder":` + part + `,"indexingEmbedder":{"model":"m"}}}`, "invalid_settings_embedders"},
		{`{"e":{"source":"composite","searchEmbedder":` + part + `,"indexingEmbedder":{"source":"userProvided","dimensions":2}}}`, "invalid_settings_embedders"},
		{`{"e":{"source":"composite","searchEmbedder":{"source":"openAi","documentTemplate":"t"},"indexingEmbedder":` + part + `}}`, "invalid_settings_embedders"},
		{`{"e":{"source":"composite","searchEmbedder":` + part + `,"indexingEmbedder":{"source":"openAi","binaryQuantized":true}}}`, "invalid_settings_embedders"},
		{`{"e":{"source":"composite","searchEmbedder":` + part + `,"indexingEmbedder":{"source":"openAi","halfPrecision":true}}}`, "invalid_settings_embedders"},
		{`{"e":{"source":"ollama","model":"m","url":"http://localhost:1/other"}}`, "task vector_embedding_error"},
		{`{"e":{"model":"text-embedding-3-large","dimensions":3073}}`, "task invalid_settings_embedders"},
		{`{"e":{"source":"huggingFace"}}`, `{"e":{"source":"huggingFace","model":"BAAI/bge-base-en-v1.5","revision":"617ca489d9e86b49b8167676d8220688b99db36e",` +
			`"pooling":"useModel","documentTemplate":` + string(encode(defaultTemplate)) + `,"documentTemplateMaxBytes":400}}`},
	}
	for _, test := range tests {
		where := ""
		u, err := ParseOne("embedders", []byte(test.body), allFeatures)
		var s *Settings
		if err == nil {
			where = "task "
			s, err = Default().Apply(u)
		}
		var got string
		if err != nil {
			got = where + string(apierr.From(err).Code)
		} else {
			b, _ := s.One("embedders")
			got = string(b)
			if decoded, err := Decode(s.Encode()); err != nil || !bytes.Equal(decoded.Encode(), s.Encode()) {
				t.Errorf("%s: encoded %s, %v", test.body, s.Encode(), err)
			}
		}
		if got != test.want {
			t.Errorf("%s: got %s (%v), want %s", test.body, got, err, test.want)
		}
	}
}

func TestResetOne(t *testing.T) {
	s := mustApply(t, Default(), `{"stopWords":["a"],"dictionary":["b"]}`)
	for _, shape := range Shapes() {
		if ResetOne(shape.Route).Empty() {
			t.Errorf("%s: there is no reset", shape.Route)
		}
	}
	next, err := s.Apply(ResetOne("stop-words"))
	if err != nil || len(next.StopWords) != 0 || len(next.Dictionary) != 1 {
		t.Errorf("got %v and %v, %v", next.StopWords, next.Dictionary, err)
	}
	next, err = s.Apply(ResetAll())
	if err != nil || !bytes.Equal(next.Encode(), Default().Encode()) {
		t.Errorf("got %s, %v", next.Encode(), err)
	}
}

func TestFacetOrder(t *testing.T) {
	f := mustApply(t, Default(), `{"faceting":{"sortFacetValuesBy":{"*":"count","a":"alpha"}}}`).Faceting
	if f.Order("a") != Alpha || f.Order("b") != Count || (&Default().Faceting).Order("a") != Alpha {
		t.Errorf("orders are %v and %v", f.Order("a"), f.Order("b"))
	}
}

// TestPatch checks that the update in dumps and exports restores the same settings.
func TestPatch(t *testing.T) {
	u, err := ParseUpdate([]byte(`{"embedders":{"e":{"source":"rest","url":"http://localhost:1/","apiKey":"secret","request":"{{text}}",`+
		`"response":"{{embedding}}","binaryQuantized":true,"halfPrecision":true}},"chat":{"description":"d"},"foreignKeys":[{"foreignIndexUid":"a","fieldName":"b"}],`+
		`"searchableAttributes":["a"],"filterableAttributes":["a",{"attributePatterns":["b*"]}],"localizedAttributes":[]}`), allFeatures)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Default().Apply(u)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(s.Patch(), []byte(`"apiKey":"secret"`)) || bytes.Contains(s.JSON(allFeatures), []byte("secret")) {
		t.Error("Patch must show secrets, and JSON must not")
	}
	u, err = ParseUpdate(s.Patch(), allFeatures)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Default().Apply(u)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Patch(), s.Patch()) {
		t.Errorf("got %s\nwant %s", again.Patch(), s.Patch())
	}
}

// TestSearchableAttributesRoundTrip checks that each form of the setting gives the bytes that were sent.
func TestSearchableAttributesRoundTrip(t *testing.T) {
	for sent, want := range map[string]string{
		`["title",["brand","category"],"description"]`: "",
		`[["b","a"]]`:             "",
		`[["a"],"b"]`:             "",
		`["b","a","b"]`:           "",
		`[]`:                      "",
		`[["a","*b","c*","d.e"]]`: "",
		`["a","*"]`:               `["*"]`,
		`null`:                    `["*"]`,
	} {
		if want == "" {
			want = sent
		}
		u, err := ParseOne("searchable-attributes", []byte(sent), Features{})
		if err != nil {
			t.Fatalf("%s: %v", sent, err)
		}
		s, err := Default().Apply(u)
		if err != nil {
			t.Fatalf("%s: %v", sent, err)
		}
		decoded, err := Decode(s.Encode())
		if err != nil {
			t.Fatalf("%s: %v", sent, err)
		}
		for _, s := range []*Settings{s, decoded, mustApply(t, Default(), string(s.Patch()))} {
			got, err := s.One("searchable-attributes")
			if err != nil || string(got) != want {
				t.Errorf("%s: got %s, %v, want %s", sent, got, err, want)
			}
			if all := `"searchableAttributes":` + want + `,"filterableAttributes"`; !strings.Contains(string(s.JSON(Features{})), all) {
				t.Errorf("%s: %s is not in %s", sent, all, s.JSON(Features{}))
			}
		}
	}
}

func TestSameSearchable(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{`["a","b","c"]`, `["c",["b","a"]]`, true},
		{`[["a","b"]]`, `["a"]`, false},
		{`["*"]`, `[]`, false},
		{`["*"]`, `["*"]`, true},
	} {
		s, other := mustApply(t, Default(), `{"searchableAttributes":`+test.a+`}`), mustApply(t, Default(), `{"searchableAttributes":`+test.b+`}`)
		if SameSearchable(s, other) != test.same {
			t.Errorf("%s and %s: want %v", test.a, test.b, test.same)
		}
	}
	s := mustApply(t, Default(), `{"searchableAttributes":["a",["b","c.d"]]}`)
	for name, want := range map[string]bool{"a": true, "b": true, "c.d": true, "c": false, "d": false} {
		if s.SearchesWhole(name) != want {
			t.Errorf("SearchesWhole(%q) is %v", name, !want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, b := range []string{``, `{}`, `{"version":2,"settings":{}}`, `{"version":1}`, `{"version":1,"settings":{"x":1}}`, `{"version":1,"settings":{"stopWords":3}}`} {
		if _, err := Decode([]byte(b)); err == nil {
			t.Errorf("%q was decoded", b)
		}
	}
}

func TestEncodeGolden(t *testing.T) {
	u, err := ParseUpdate([]byte(`{"stopWords":["b","a"],"embedders":{"e":{"source":"openAi","apiKey":"k"}},"synonyms":{"b":["<"],"a":[]}}`), allFeatures)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Default().Apply(u)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":1,"settings":{"displayedAttributes":["*"],"searchableAttributes":["*"],"filterableAttributes":[],"sortableAttributes":[],` +
		`"foreignKeys":[],"rankingRules":["words","typo","proximity","attributeRank","sort","wordPosition","exactness"],"stopWords":["a","b"],` +
		`"nonSeparatorTokens":[],"separatorTokens":[],"dictionary":[],"synonyms":{"a":[],"b":["<"]},"distinctAttribute":null,` +
		`"proximityPrecision":"byWord","typoTolerance":{"enabled":true,"minWordSizeForTypos":{"oneTypo":5,"twoTypos":9},"disableOnWords":[],` +
		`"disableOnAttributes":[],"disableOnNumbers":false},"faceting":{"maxValuesPerFacet":100,"sortFacetValuesBy":{"*":"alpha"}},` +
		`"pagination":{"maxTotalHits":1000},"embedders":{"e":{"source":"openAi","apiKey":"k"}},"searchCutoffMs":null,"localizedAttributes":null,` +
		`"facetSearch":true,"prefixSearch":"indexingTime","chat":{"description":"","documentTemplate":` + string(encode(defaultTemplate)) +
		`,"documentTemplateMaxBytes":400,"searchParameters":{}}}}`
	if got := string(s.Encode()); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestRedact(t *testing.T) {
	for secret, want := range map[string]string{
		"": "XXX...", "short": "XXX...", "123456789": "XXX...", "1234567890": "12XXXX...", "1é345678901": "1XXXX...",
		"12345678901234567890": "123XXXXX...", "123456789012345678901234567890": "12345XXXXXX...",
	} {
		if got := Redact(secret); got != want {
			t.Errorf("%q: got %q, want %q", secret, got, want)
		}
	}
}

// FuzzParseUpdate checks that any bytes give an update or an *apierr.Error, and that updates and settings survive encoding.
func FuzzParseUpdate(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"stopWords":["a",null]}`, `{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":3}}}`, `{"chat":{"searchParameters":{"hybrid":{"embedder":"e"}}}}`,
		`{"embedders":{"e":{"source":"rest","url":"http://x/","request":{"a":["{{text}}","{{..}}"]},"response":["{{embedding}}","{{..}}"]}}}`,
		`{"embedders":{"c":{"source":"composite","searchEmbedder":{"source":"openAi"},"indexingEmbedder":{"source":"openAi","apiKey":"é"}}}}`,
		`{"filterableAttributes":[{"attributePatterns":["*"],"features":{}}],"localizedAttributes":[{"attributePatterns":[],"locales":["en"]}]}`,
		`{"faceting":{"sortFacetValuesBy":{"a":"count"}},"synonyms":{"a":["b"]},"rankingRules":["x:asc"],"foreignKeys":[]}`, `[[[[`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		u, err := ParseUpdate(body, allFeatures)
		if err != nil {
			if _, ok := err.(*apierr.Error); !ok {
				t.Fatalf("not an error for users: %T %v", err, err)
			}
			return
		}
		if echo, _ := u.MarshalJSON(); !json.Valid(echo) {
			t.Fatalf("echo is not JSON: %s", echo)
		}
		again, err := UnmarshalUpdate(u.Full())
		if err != nil || !bytes.Equal(again.Full(), u.Full()) {
			t.Fatalf("got %s, %v, want %s", again.Full(), err, u.Full())
		}
		s, err := Default().Apply(u)
		if err != nil {
			return
		}
		decoded, err := Decode(s.Encode())
		if err != nil || !bytes.Equal(decoded.Encode(), s.Encode()) {
			t.Fatalf("%v: encoded %s", err, s.Encode())
		}
	})
}

func TestParseNamed(t *testing.T) {
	tests := []struct {
		body string
		want string // the update as tasks show it, or an error code
	}{
		{`{"proximityPrecision":"byAttribute"}`, `{"proximityPrecision":"byAttribute"}`},
		{`{"proximityPrecision":null}`, `{"proximityPrecision":null}`},
		{`{}`, `{}`},
		{`{"proximityPrecision":"byLetter"}`, "invalid_settings_proximity_precision"},
		{`{"stopWords":[]}`, "invalid_settings_proximity_precision"},
		{`"byWord"`, "invalid_settings_proximity_precision"},
		{`{"proximityPrecision":`, "malformed_payload"},
	}
	for _, test := range tests {
		u, err := ParseNamed("proximity-precision", []byte(test.body), Features{})
		var got string
		if err != nil {
			got = string(apierr.From(err).Code)
		} else {
			got = string(u.json(false))
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.body, got, test.want)
		}
	}
}

// TestNoCutoff checks that null disables the cutoff and a reset restores the default. GET shows null for both.
func TestNoCutoff(t *testing.T) {
	s := mustApply(t, Default(), `{"searchCutoffMs":null}`)
	if s.SearchCutoffMs == nil || *s.SearchCutoffMs != NoCutoff {
		t.Fatalf("null gives %v", s.SearchCutoffMs)
	}
	u, err := ParseOne("search-cutoff-ms", []byte(`null`), Features{})
	if err != nil {
		t.Fatal(err)
	}
	if echo, _ := u.MarshalJSON(); string(echo) != `{"searchCutoffMs":null}` {
		t.Errorf("the task shows %s", echo)
	}
	if again, err := UnmarshalUpdate(u.Full()); err != nil {
		t.Error(err)
	} else if s, err := Default().Apply(again); err != nil || *s.SearchCutoffMs != NoCutoff {
		t.Errorf("read again: %v, %v", s.SearchCutoffMs, err)
	}
	if one, err := s.One("search-cutoff-ms"); err != nil || string(one) != "null" {
		t.Errorf("shown as %s, %v", one, err)
	}
	if back, err := Decode(s.Encode()); err != nil || *back.SearchCutoffMs != NoCutoff {
		t.Errorf("stored and read: %v, %v", back.SearchCutoffMs, err)
	}
	if !bytes.Contains(s.Patch(), []byte(`"searchCutoffMs":18446744073709551615`)) || bytes.Contains(Default().Patch(), []byte("searchCutoffMs")) {
		t.Error("an export does not distinguish null from the default")
	}
	if s, err = s.Apply(ResetOne("search-cutoff-ms")); err != nil || s.SearchCutoffMs != nil {
		t.Errorf("reset: %v, %v", s.SearchCutoffMs, err)
	}
}

// TestFragmentsReplaceTemplate checks changes of an embedder between a template and fragments.
func TestFragmentsReplaceTemplate(t *testing.T) {
	const source, url = `"source":"rest","dimensions":4,`, `"url":"http://localhost:1"`
	const rest = source + url
	const response = `"response":{"out":"{{embedding}}"},"headers":{}`
	const fragments = `"indexingFragments":{"x":{"value":"{{doc.x}}"}},"searchFragments":{"q":{"value":"{{q}}"}}`
	const fragmented = `{"e":{` + rest + `,"request":{"in":"{{fragment}}"},` + response + `,` + fragments + `}}`
	s := Default()
	for _, step := range []struct{ body, want string }{
		{`{"e":{` + rest + `,"request":{"in":"{{text}}"},"response":{"out":"{{embedding}}"},"documentTemplate":"t","documentTemplateMaxBytes":9}}`,
			`{"e":{` + source + `"documentTemplate":"t","documentTemplateMaxBytes":9,` + url + `,"request":{"in":"{{text}}"},` + response + `}}`},
		{`{"e":{"request":{"in":"{{fragment}}"},` + fragments + `}}`, fragmented},
		{`{"e":{"documentTemplate":"u"}}`, "vector_embedding_error"},
		{`{"e":{"documentTemplate":null,"documentTemplateMaxBytes":5}}`, fragmented},
		{`{"e":{"request":{"in":"{{text}}"},"indexingFragments":null,"searchFragments":null,"documentTemplate":"u"}}`,
			`{"e":{` + source + `"documentTemplate":"u","documentTemplateMaxBytes":400,` + url + `,"request":{"in":"{{text}}"},` + response + `}}`},
	} {
		u, err := ParseOne("embedders", []byte(step.body), allFeatures)
		if err != nil {
			t.Fatalf("%s: %v", step.body, err)
		}
		next, err := s.Apply(u)
		if err != nil {
			if code := string(apierr.From(err).Code); code != step.want {
				t.Errorf("%s: %s, want %s", step.body, code, step.want)
			}
			continue
		}
		s = next
		got, _ := s.One("embedders")
		if string(got) != step.want {
			t.Errorf("%s: got %s, want %s", step.body, got, step.want)
		}
		if u, err = ParseOne("embedders", got, allFeatures); err == nil {
			_, err = Default().Apply(u)
		}
		if err != nil {
			t.Errorf("%s: what the settings show is refused: %v", step.body, err)
		}
	}
}

// TestNullFragmentsNeedNoFeature checks that null removes fragments, whether or not the feature is on.
func TestNullFragmentsNeedNoFeature(t *testing.T) {
	body := `{"embedders":{"e":{"source":"rest","url":"http://localhost:1","request":{"in":"{{text}}"},"response":{"out":"{{embedding}}"},"indexingFragments":null,"searchFragments":null}}}`
	if _, err := ParseUpdate([]byte(body), Features{}); err != nil {
		t.Error(err)
	}
}

// TestWithoutEmbedders checks settings of another engine with embedders that are invalid here: the valid ones must stay.
func TestWithoutEmbedders(t *testing.T) {
	read := func(body string) *Update {
		u, _, err := UnmarshalForeign([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	u, refused := read(`{"stopWords":["a"],"embedders":{"o":{"source":"ollama","url":"http://localhost:1/api/embed","model":""},"m":{"source":"userProvided","dimensions":2}}}`).WithoutEmbedders()
	if len(refused) != 1 || refused["o"] == nil {
		t.Errorf("refused: %v", refused)
	}
	s, err := Default().Apply(u)
	if err != nil || len(s.Embedders) != 1 || s.Embedders["m"] == nil || len(s.StopWords) != 1 {
		t.Errorf("the rest gives %v, %v", s, err)
	}
	for _, body := range []string{`{}`, `{"embedders":null}`, `{"embedders":{"m":{"source":"userProvided","dimensions":2}}}`} {
		if u := read(body); u != nil {
			if same, refused := u.WithoutEmbedders(); same != u || refused != nil {
				t.Errorf("%s: %v", body, refused)
			}
		}
	}
}

// TestUnknownNames checks that the error for an unknown name suggests the most similar name, or lists all.
func TestUnknownNames(t *testing.T) {
	for body, want := range map[string]string{
		`{"filterableAtributes":[]}`:                        `There is no setting "filterableAtributes". Did you mean "filterableAttributes"?`,
		`{"zzz":[]}`:                                        `There is no setting "zzz": the known ones are displayedAttributes, `,
		`{"` + strings.Repeat("z", 1000) + `":1}`:           `There is no setting "` + strings.Repeat("z", 80) + `": the known`,
		`{"typoTolerance":{"enable":true}}`:                 `has no member "enable". Did you mean "enabled"?`,
		`{"typoTolerance":{"zzz":true}}`:                    `has no member "zzz": the known ones are `,
		`{"embedders":{"e":{"sorce":"userProvided"}}}`:      `has no member "sorce". Did you mean "source"?`,
		`{"typoTolerance":{"minWordSizeForTypos":{"o":1}}}`: `has no member "o": the known ones are `,
	} {
		if _, err := ParseUpdate([]byte(body), Features{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", body, err, want)
		}
	}
}

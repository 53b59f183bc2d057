package fastapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"svc/internal/query"
)

// TestBodyErrors sends bodies that are refused before any index is looked up, one reason per line.
func TestBodyErrors(t *testing.T) {
	c := newClient(t, Options{})
	if err := c.server.features.change(map[int]bool{featureIndex("editDocumentsByFunction"): true}); err != nil {
		t.Fatal(err)
	}
	const (
		searchPath  = "POST /indexes/a/search"
		similarPath = "POST /indexes/a/similar"
		facet       = "POST /indexes/a/facet-search"
		fetch       = "POST /indexes/a/documents/fetch"
		remove      = "POST /indexes/a/documents/delete"
		batch       = "POST /indexes/a/documents/delete-batch"
		edit        = "POST /indexes/a/documents/edit"
		create      = "POST /indexes"
		update      = "PATCH /indexes/a"
		swap        = "POST /swap-indexes"
		fields      = "POST /indexes/a/fields"
		multi       = "POST /multi-search"
		features    = "PATCH /experimental-features"
	)
	for _, tt := range []struct{ route, body, code string }{
		{create, ``, "missing_payload"},
		{create, `{`, "malformed_payload"},
		{create, ` `, "malformed_payload"},
		{create, `nope`, "malformed_payload"},
		{create, `{"uid": "a"} x`, "malformed_payload"},
		{create, `{"uid": "a` + "\n" + `b"}`, "malformed_payload"},
		{create, `{"uid": "a` + "\xff" + `"}`, "malformed_payload"},
		{create, `{"uid": "\u12"}`, "malformed_payload"},
		{create, strings.Repeat("[", 100_000), "malformed_payload"},
		{create, `[]`, "bad_request"},
		{create, `"a"`, "bad_request"},
		{create, `12`, "bad_request"},
		{create, `null`, "bad_request"},
		{create, `true`, "bad_request"},
		{create, `{}`, "missing_index_uid"},
		{create, `{"primaryKey": "id"}`, "missing_index_uid"},
		{create, `{"uid": null}`, "invalid_index_uid"},
		{create, `{"uid": 5}`, "invalid_index_uid"},
		{create, `{"uid": "a b"}`, "invalid_index_uid"},
		{create, `{"uid": ""}`, "invalid_index_uid"},
		{create, `{"uid": "*"}`, "invalid_index_uid"},
		{create, `{"uid": "a", "primaryKey": 5}`, "invalid_index_primary_key"},
		{create, `{"uid": "a", "name": "n"}`, "bad_request"},
		{create, `{"UID": "a"}`, "bad_request"},
		{create, `{"\u0075id": "a b"}`, "invalid_index_uid"},

		{update, `{"createdAt": "2020"}`, "immutable_index_created_at"},
		{update, `{"updatedAt": null}`, "immutable_index_updated_at"},
		{update, `{"uid": "bad uid"}`, "invalid_index_uid"},
		{update, `{"primaryKey": ["id"]}`, "invalid_index_primary_key"},
		{update, `{"name": "n"}`, "bad_request"},
		{"PATCH /indexes/not%20valid", `{}`, "invalid_index_uid"},

		{swap, `{}`, "bad_request"},
		{swap, `[null]`, "bad_request"},
		{swap, `[["a", "b"]]`, "bad_request"},
		{swap, `[{}]`, "missing_swap_indexes"},
		{swap, `[{"indexes": null}]`, "invalid_swap_indexes"},
		{swap, `[{"indexes": ["a"]}]`, "invalid_swap_indexes"},
		{swap, `[{"indexes": ["a", 5]}]`, "invalid_swap_indexes"},
		{swap, `[{"indexes": ["a", "bad uid"]}]`, "invalid_swap_indexes"},
		{swap, `[{"indexes": ["a", "b"], "rename": "yes"}]`, "invalid_swap_rename"},
		{swap, `[{"indexes": ["a", "b"], "other": 1}]`, "bad_request"},
		{swap, `[{"indexes": ["a", "a"]}]`, "invalid_swap_duplicate_index_found"},
		{swap, `[{"indexes": ["a", "b"]}, {"indexes": ["b", "c"]}]`, "invalid_swap_duplicate_index_found"},

		{multi, `{}`, "bad_request"},
		{multi, `[]`, "bad_request"},
		{multi, `{"queries": null}`, "bad_request"},
		{multi, `{"queries": {"indexUid": "a"}}`, "bad_request"},
		{multi, `{"queries": [], "limit": 1}`, "bad_request"},
		{multi, `{"queries": [null]}`, "bad_request"},
		{multi, `{"queries": [[]]}`, "bad_request"},
		{multi, `{"queries": [{}]}`, "missing_index_uid"},
		{multi, `{"queries": [{"indexUid": null}]}`, "invalid_index_uid"},
		{multi, `{"queries": [{"indexUid": "a b"}]}`, "invalid_index_uid"},
		{multi, `{"queries": [{"indexUid": ""}]}`, "invalid_index_uid"},
		{multi, `{"queries": [{"indexUid": "a", "query": ""}]}`, "bad_request"},
		{multi, `{"queries": [{"indexUid": "a", "cropLength": null}]}`, "invalid_search_crop_length"},
		{multi, `{"queries": [{"indexUid": "a", "hybrid": {}}]}`, "invalid_search_hybrid_query"},
		{multi, `{"queries": [{"indexUid": "a", "limit": null}, {"indexUid": "a", "limit": -1}]}`, "invalid_search_limit"},
		{multi, `{"queries": [{"indexUid": "a", "federationOptions": {}}]}`, "invalid_multi_search_federation_options"},
		{multi, `{"queries": [{"indexUid": "a", "federationOptions": []}]}`, "bad_request"},
		{multi, `{"queries": [{"indexUid": "a", "federationOptions": {"weights": 1}}]}`, "bad_request"},
		{multi, `{"queries": [{"indexUid": "a", "federationOptions": {"weight": -0.1}}]}`, "invalid_multi_search_weight"},
		{multi, `{"queries": [{"indexUid": "a", "federationOptions": {"weight": null}}]}`, "invalid_multi_search_weight"},
		{multi, `{"queries": [{"indexUid": "a", "federationOptions": {"remote": 1}}]}`, "invalid_multi_search_remote"},
		{multi, `{"queries": [{"indexUid": "a", "federationOptions": {"queryPosition": 1.5}}]}`, "invalid_multi_search_query_position"},
		{multi, `{"queries": [], "federation": []}`, "bad_request"},
		{multi, `{"queries": [], "federation": {"sort": []}}`, "bad_request"},
		{multi, `{"queries": [], "federation": {"limit": null}}`, "invalid_search_limit"},
		{multi, `{"queries": [], "federation": {"offset": -1}}`, "invalid_search_offset"},
		{multi, `{"queries": [], "federation": {"page": "1"}}`, "invalid_search_page"},
		{multi, `{"queries": [], "federation": {"hitsPerPage": 1.5}}`, "invalid_search_hits_per_page"},
		{multi, `{"queries": [], "federation": {"distinct": ["a"]}}`, "invalid_search_distinct"},
		{multi, `{"queries": [], "federation": {"showPerformanceDetails": null}}`, "invalid_search_show_performance_details"},
		{multi, `{"queries": [], "federation": {"facetsByIndex": null}}`, "invalid_multi_search_facets_by_index"},
		{multi, `{"queries": [], "federation": {"facetsByIndex": {"a": ["b"], "a b": []}}}`, "invalid_multi_search_facets_by_index"},
		{multi, `{"queries": [], "federation": {"facetsByIndex": {"a": "b"}}}`, "invalid_multi_search_facets_by_index"},
		{multi, `{"queries": [], "federation": {"facetsByIndex": {"a": [1]}}}`, "invalid_multi_search_facets_by_index"},
		{multi, `{"queries": [], "federation": {"mergeFacets": []}}`, "invalid_multi_search_merge_facets"},
		{multi, `{"queries": [], "federation": {"mergeFacets": {"max": 1}}}`, "invalid_multi_search_merge_facets"},
		{multi, `{"queries": [], "federation": {"mergeFacets": {"maxValuesPerFacet": -1}}}`, "invalid_multi_search_max_values_per_facet"},
		{multi, `{"queries": [], "federation": {"personalize": "x"}}`, "invalid_search_personalize"},
		{multi, `{"queries": [], "federation": {"personalize": {}}}`, "invalid_search_personalize"},
		{multi, `{"queries": [], "federation": {"personalize": {"userContext": "x", "y": 1}}}`, "invalid_search_personalize"},
		{multi, `{"queries": [], "federation": {"personalize": {"userContext": 3}}}`, "invalid_search_personalize_user_context"},
		{multi, `{"queries": [], "federation": {"personalize": {"userContext": null}}}`, "invalid_search_personalize_user_context"},
		{multi, `{"queries": [], "federation": {"personalize": {"userContext": "x"}}}`, "feature_not_enabled"},
		{multi, `{"queries": [{"indexUid": "a", "page": 1}], "federation": {}}`, "invalid_multi_search_query_pagination"},
		{multi, `{"queries": [{"indexUid": "a", "limit": null, "facets": ["b"]}], "federation": {}}`, "invalid_multi_search_query_facets"},
		{multi, `{"queries": [{"indexUid": "a", "personalize": {"userContext": "x"}}], "federation": {}}`, "invalid_multi_search_query_personalization"},
		{multi, `{"queries": [{"indexUid": "a", "showPerformanceDetails": false}], "federation": {}}`, "invalid_multi_search_query_show_performance_details"},
		{multi, `{"queries": [{"indexUid": "a", "explainPlan": true}], "federation": {}}`, "invalid_search_explain_plan"},
		{multi, `{"queries": [{"indexUid": "a", "distinct": "b"}], "federation": {"distinct": "b"}}`, "invalid_multi_search_distinct"},
		{multi, `{"queries": [{"indexUid": "a", "federationOptions": {"remote": "r"}}], "federation": {}}`, "feature_not_enabled"},
		{multi, `{"queries": [{"indexUid": "a", "federationOptions": {"queryPosition": 1}}], "federation": {}}`, "feature_not_enabled"},
		{multi, `{"queries": [{"indexUid": "a", "useNetwork": true}], "federation": {}}`, "feature_not_enabled"},

		{fetch, `{"limit": "3"}`, "invalid_document_limit"},
		{fetch, `{"limit": -1}`, "invalid_document_limit"},
		{fetch, `{"limit": 1.5}`, "invalid_document_limit"},
		{fetch, `{"limit": null}`, "invalid_document_limit"},
		{fetch, `{"offset": "x"}`, "invalid_document_offset"},
		{fetch, `{"fields": [1]}`, "invalid_document_fields"},
		{fetch, `{"retrieveVectors": 1}`, "invalid_document_retrieve_vectors"},
		{fetch, `{"ids": ["not valid"]}`, "invalid_document_ids"},
		{fetch, `{"ids": [1.5]}`, "invalid_document_ids"},
		{fetch, `{"ids": [null]}`, "invalid_document_ids"},
		{fetch, `{"ids": 3}`, "invalid_document_ids"},
		{fetch, `{"sort": "year:asc"}`, "invalid_document_sort"},
		{fetch, `{"sort": [5]}`, "invalid_document_sort"},
		{fetch, `{"filter": 5}`, "invalid_document_filter"},
		{fetch, `{"filter": "a"}`, "invalid_document_filter"},
		{fetch, `{"filter": "a CONTAINS b"}`, "feature_not_enabled"},
		{fetch, `{"filter": "_shard = a"}`, "feature_not_enabled"},
		{fetch, `{"filter": "_shard EXISTS"}`, "feature_not_enabled"},
		{fetch, `{"ids": [18446744073709551616]}`, "invalid_document_ids"},
		{fetch, `{"ids": [1e3]}`, "invalid_document_ids"},
		{fetch, `{"ids": [-0]}`, "invalid_document_ids"},
		{fetch, `{"q": "x"}`, "bad_request"},

		{remove, `{}`, "missing_document_filter"},
		{remove, `{"filter": null}`, "invalid_document_filter"},
		{remove, `{"filter": ""}`, "invalid_document_filter"},
		{remove, `{"filter": [[]]}`, "invalid_document_filter"},
		{remove, `{"filter": true}`, "invalid_document_filter"},
		{remove, `{"filter": "n CONTAINS 1"}`, "feature_not_enabled"},
		{remove, `{"filter": "n = 1 OR _shard > 1"}`, "feature_not_enabled"},
		{remove, `{"filter": "n = 1", "ids": [1]}`, "bad_request"},
		{batch, `{"ids": [1]}`, "bad_request"},
		{batch, `null`, "bad_request"},

		{edit, `{}`, "missing_document_edition_function"},
		{edit, `{"function": null}`, "invalid_document_edition_function_filter"},
		{edit, `{"function": 5}`, "invalid_document_edition_function_filter"},
		{edit, `{"function": "x", "context": [1]}`, "invalid_document_edition_context"},
		{edit, `{"function": "x", "filter": ""}`, "invalid_document_filter"},
		{edit, `{"function": "x", "other": 1}`, "bad_request"},

		{fields, `{"limit": "x"}`, "invalid_index_limit"},
		{fields, `{"offset": 1.5}`, "invalid_index_offset"},
		{fields, `{"filter": 5}`, "invalid_index_fields_filter"},
		{fields, `{"filter": {"unknown": true}}`, "invalid_index_fields_filter"},
		{fields, `{"filter": {"displayed": "yes"}}`, "invalid_index_fields_filter_displayed"},
		{fields, `{"filter": {"rankingRule": 0}}`, "invalid_index_fields_filter_ranking_rule"},
		{fields, `{"filter": {"attributePatterns": [1]}}`, "invalid_index_fields_filter_attribute_patterns"},
		{fields, `{"unknown": 1}`, "bad_request"},

		{features, `{"Metrics": true}`, "bad_request"},
		{features, `{"metrics": 1}`, "bad_request"},
		{features, `{"metrics": true, "unknown": false}`, "bad_request"},
		{features, `[]`, "bad_request"},

		{searchPath, `{"q": 3}`, "invalid_search_q"},
		{searchPath, `{"limit": "3"}`, "invalid_search_limit"},
		{searchPath, `{"limit": null}`, "invalid_search_limit"},
		{searchPath, `{"limit": true}`, "invalid_search_limit"},
		{searchPath, `{"offset": {}}`, "invalid_search_offset"},
		{searchPath, `{"page": 0.5}`, "invalid_search_page"},
		{searchPath, `{"hitsPerPage": []}`, "invalid_search_hits_per_page"},
		{searchPath, `{"attributesToRetrieve": {"id": 1}}`, "invalid_search_attributes_to_retrieve"},
		{searchPath, `{"attributesToCrop": [{}]}`, "invalid_search_attributes_to_crop"},
		{searchPath, `{"cropLength": null}`, "invalid_search_crop_length"},
		{searchPath, `{"cropMarker": null}`, "invalid_search_crop_marker"},
		{searchPath, `{"attributesToHighlight": [null]}`, "invalid_search_attributes_to_highlight"},
		{searchPath, `{"highlightPreTag": 1}`, "invalid_search_highlight_pre_tag"},
		{searchPath, `{"highlightPostTag": null}`, "invalid_search_highlight_post_tag"},
		{searchPath, `{"showMatchesPosition": null}`, "invalid_search_show_matches_position"},
		{searchPath, `{"filter": [["kind = green", 2]]}`, "invalid_search_filter"},
		{searchPath, `{"filter": "name CONTAINS n"}`, "feature_not_enabled"},
		{searchPath, `{"filter": [["_shard STARTS WITH n"]]}`, "feature_not_enabled"},
		{searchPath, `{"sort": {"grams": "asc"}}`, "invalid_search_sort"},
		{searchPath, `{"distinct": ["kind"]}`, "invalid_search_distinct"},
		{searchPath, `{"facets": "kind"}`, "invalid_search_facets"},
		{searchPath, `{"matchingStrategy": "ALL"}`, "invalid_search_matching_strategy"},
		{searchPath, `{"matchingStrategy": null}`, "invalid_search_matching_strategy"},
		{searchPath, `{"attributesToSearchOn": [1]}`, "invalid_search_attributes_to_search_on"},
		{searchPath, `{"rankingScoreThreshold": "0.5"}`, "invalid_search_ranking_score_threshold"},
		{searchPath, `{"rankingScoreThreshold": 1.2}`, "invalid_search_ranking_score_threshold"},
		{searchPath, `{"rankingScoreThreshold": -0.1}`, "invalid_search_ranking_score_threshold"},
		{searchPath, `{"rankingScoreThreshold": true}`, "invalid_search_ranking_score_threshold"},
		{searchPath, `{"locales": ["eng", "xx"]}`, "invalid_search_locales"},
		{searchPath, `{"showRankingScore": 0}`, "invalid_search_show_ranking_score"},
		{searchPath, `{"showRankingScoreDetails": "true"}`, "invalid_search_show_ranking_score_details"},
		{searchPath, `{"showPerformanceDetails": "true"}`, "invalid_search_show_performance_details"},
		{searchPath, `{"suggest": 1}`, "invalid_search_suggest"},
		{searchPath, `{"suggest": true, "cursor": ""}`, "invalid_search_suggest"},
		{searchPath, `{"suggest": true, "groupBy": {"attribute": "brand"}}`, "invalid_search_suggest"},
		{multi, `{"federation": {}, "queries": [{"indexUid": "a", "suggest": true}]}`, "invalid_multi_search_query_suggest"},
		{searchPath, `{"explainPlan": 1}`, "invalid_search_explain_plan"},
		{searchPath, `{"retrieveVectors": null}`, "invalid_search_retrieve_vectors"},
		{searchPath, `{"useNetwork": 1}`, "invalid_search_use_network"},
		{searchPath, `{"useNetwork": true}`, "feature_not_enabled"},
		{searchPath, `{"useNetwork": false}`, "feature_not_enabled"},
		{searchPath, `{"vector": [1]}`, "missing_search_hybrid"},
		{searchPath, `{"vector": ["a"]}`, "invalid_search_vector"},
		{searchPath, `{"vector": "1,2"}`, "invalid_search_vector"},
		{searchPath, `{"vector": "AACAPw=="}`, "missing_search_hybrid"},
		{searchPath, `{"vector": "AACAfw=="}`, "invalid_search_vector"},
		{searchPath, `{"vector": [1, -1e39]}`, "invalid_search_vector"},
		{searchPath, `{"media": {}}`, "missing_search_hybrid"},
		{searchPath, `{"media": {}, "hybrid": {"embedder": "e"}}`, "feature_not_enabled"},
		{searchPath, `{"hybrid": "x"}`, "invalid_search_hybrid_query"},
		{searchPath, `{"hybrid": {"semanticRatio": 0.5}}`, "invalid_search_hybrid_query"},
		{searchPath, `{"hybrid": {"embedder": "e", "x": 1}}`, "invalid_search_hybrid_query"},
		{searchPath, `{"hybrid": {"embedder": 3}}`, "invalid_search_embedder"},
		{searchPath, `{"hybrid": {"embedder": "e", "semanticRatio": 2}}`, "invalid_search_semantic_ratio"},
		{searchPath, `{"vector": [1], "media": {}, "hybrid": {"embedder": "e"}}`, "invalid_search_media_and_vector"},
		{searchPath, `{"vector": [1], "media": {}}`, "invalid_search_media_and_vector"},
		{searchPath, `{"hybrid": {"embedder": ""}}`, "invalid_search_embedder"},
		{searchPath, `{"personalize": {}}`, "invalid_search_personalize"},
		{searchPath, `{"personalize": {"userContext": 3}}`, "invalid_search_personalize_user_context"},
		{searchPath, `{"personalize": {"userContext": "x"}}`, "feature_not_enabled"},
		{searchPath, `{"query": "golden"}`, "bad_request"},
		{searchPath, `{"q": "golden", "Limit": 3}`, "bad_request"},
		{searchPath, `[]`, "bad_request"},

		{similarPath, `{}`, "bad_request"},
		{similarPath, `{"id": 1}`, "bad_request"},
		{similarPath, `{"embedder": "e"}`, "bad_request"},
		{similarPath, `{"id": null, "embedder": "e"}`, "invalid_similar_id"},
		{similarPath, `{"id": [1], "embedder": "e"}`, "invalid_similar_id"},
		{similarPath, `{"id": 1.5, "embedder": "e"}`, "invalid_similar_id"},
		{similarPath, `{"id": 1e3, "embedder": "e"}`, "invalid_similar_id"},
		{similarPath, `{"id": -0, "embedder": "e"}`, "invalid_similar_id"},
		{similarPath, `{"id": 18446744073709551616, "embedder": "e"}`, "invalid_similar_id"},
		{similarPath, `{"id": -9223372036854775809, "embedder": "e"}`, "invalid_similar_id"},
		{similarPath, `{"id": "a b", "embedder": "e"}`, "invalid_similar_id"},
		{similarPath, `{"id": "", "embedder": "e"}`, "invalid_similar_id"},
		{similarPath, `{"id": 1, "embedder": null}`, "invalid_similar_embedder"},
		{similarPath, `{"id": 1, "embedder": ""}`, "invalid_similar_embedder"},
		{similarPath, `{"id": 1, "embedder": 3}`, "invalid_similar_embedder"},
		{similarPath, `{"id": 1, "embedder": "e", "offset": -1}`, "invalid_similar_offset"},
		{similarPath, `{"id": 1, "embedder": "e", "limit": null}`, "invalid_similar_limit"},
		{similarPath, `{"id": 1, "embedder": "e", "filter": 3}`, "invalid_similar_filter"},
		{similarPath, `{"id": 1, "embedder": "e", "filter": "cm >"}`, "invalid_similar_filter"},
		{similarPath, `{"id": 1, "embedder": "e", "filter": "_vectors EXISTS"}`, "feature_not_enabled"},
		{similarPath, `{"id": 1, "embedder": "e", "attributesToRetrieve": "id"}`, "invalid_similar_attributes_to_retrieve"},
		{similarPath, `{"id": 1, "embedder": "e", "retrieveVectors": 1}`, "invalid_similar_retrieve_vectors"},
		{similarPath, `{"id": 1, "embedder": "e", "showRankingScore": 1}`, "invalid_similar_show_ranking_score"},
		{similarPath, `{"id": 1, "embedder": "e", "showRankingScoreDetails": 1}`, "invalid_similar_show_ranking_score_details"},
		{similarPath, `{"id": 1, "embedder": "e", "showPerformanceDetails": 1}`, "invalid_similar_show_performance_details"},
		{similarPath, `{"id": 1, "embedder": "e", "rankingScoreThreshold": 1.1}`, "invalid_similar_ranking_score_threshold"},
		{similarPath, `{"id": 1, "embedder": "e", "q": "x"}`, "bad_request"},
		{similarPath, `[]`, "bad_request"},

		{facet, `{}`, "missing_facet_search_facet_name"},
		{facet, `{"facetName": null}`, "invalid_facet_search_facet_name"},
		{facet, `{"facetName": "f", "facetQuery": 3}`, "invalid_facet_search_query"},
		{facet, `{"facetName": "f", "exhaustiveFacetCount": "yes"}`, "invalid_facet_search_exhaustive_facet_count"},
		{facet, `{"facetName": "f", "q": 3}`, "invalid_search_q"},
		{facet, `{"facetName": "f", "locales": ["klingon"]}`, "invalid_search_locales"},
		{facet, `{"unknown": true}`, "missing_facet_search_facet_name"},

		{"PATCH /indexes/a/settings", `{"stopWord": []}`, "bad_request"},
		{"PATCH /indexes/a/settings", `[]`, "bad_request"},
		{"PUT /indexes/a/settings/stop-words", `[`, "malformed_payload"},
		{"PUT /indexes/a/settings/stop-words", `3`, "invalid_settings_stop_words"},
		{"PATCH /indexes/not%20valid/settings", `{}`, "invalid_index_uid"},
		{searchPath, `{"aggregations": 1}`, "invalid_search_aggregations"},
		{searchPath, `{"cursor": 3}`, "invalid_search_cursor"},
		{searchPath, `{"cursor": "", "offset": 1}`, "invalid_search_cursor"},
		{searchPath, `{"cursor": "", "page": 1}`, "invalid_search_cursor"},
		{searchPath, `{"cursor": "", "hitsPerPage": 1}`, "invalid_search_cursor"},
		{searchPath, `{"cursor": "", "groupBy": {"attribute": "brand"}}`, "invalid_search_cursor"},
		{multi, `{"federation": {}, "queries": [{"indexUid": "a", "cursor": ""}]}`, "invalid_multi_search_query_cursor"},
		{searchPath, `{"groupBy": "brand"}`, "invalid_search_group_by"},
		{searchPath, `{"groupBy": {"hitsPerGroup": 3}}`, "invalid_search_group_by"},
		{searchPath, `{"groupBy": {"attribute": "brand", "hitsPerGroup": 0}}`, "invalid_search_group_by"},
		{searchPath, `{"groupBy": {"attribute": "brand", "hitsPerGroup": 101}}`, "invalid_search_group_by"},
		{searchPath, `{"groupBy": {"attribute": "brand", "sort": "price"}}`, "invalid_search_group_by"},
		{searchPath, `{"groupBy": {"attribute": "brand", "limit": 3}}`, "invalid_search_group_by"},
		{multi, `{"queries": [{"indexUid": "a", "groupBy": []}]}`, "invalid_search_group_by"},
		{multi, `{"federation": {}, "queries": [{"indexUid": "a", "groupBy": {"attribute": "brand"}}]}`, "invalid_multi_search_query_group_by"},
		{multi, `{"queries": [], "federation": {"groupBy": "brand"}}`, "invalid_multi_search_group_by"},
		{multi, `{"queries": [], "federation": {"groupBy": {"attribute": ""}}}`, "invalid_multi_search_group_by"},
		{multi, `{"queries": [], "federation": {"groupBy": {"attribute": "brand", "hitsPerGroup": 101}}}`, "invalid_multi_search_group_by"},
		{multi, `{"queries": [], "federation": {"groupBy": {"attribute": "brand"}, "groupKeys": "AA=="}}`, "invalid_multi_search_group_by"},
		{multi, `{"queries": [], "federation": {"groupBy": {"attribute": "brand"}, "groupKeys": "Ag"}}`, "invalid_multi_search_group_by"},
		{multi, `{"queries": [], "federation": {"groupBy": {"attribute": "brand"}, "personalize": {"userContext": "x"}}}`, "invalid_multi_search_group_by"},
		{searchPath, `{"aggregations": {"a": {"histogram": "price", "interval": 0}}}`, "invalid_search_aggregations"},
		{multi, `{"queries": [{"indexUid": "a", "aggregations": []}]}`, "invalid_search_aggregations"},
		{multi, `{"federation": {"aggregations": {"a": {"sum": "price"}}}, "queries": []}`, "invalid_multi_search_aggregations"},
		{multi, `{"federation": {}, "queries": [{"indexUid": "a", "aggregations": {}}]}`, "invalid_multi_search_query_aggregations"},
		{fetch, `{"aggregations": {"a": {"terms": "brand", "limit": 1000000}}}`, "invalid_document_aggregations"},
	} {
		method, path, _ := strings.Cut(tt.route, " ")
		r := c.json(method, path, tt.body)
		if r.code() != tt.code || r.status != 400 {
			t.Errorf("%s %s: %d %s, want %s", tt.route, shorten([]byte(tt.body)), r.status, r.body, tt.code)
		}
	}
}

// TestQueryErrors does the same for query strings.
func TestQueryErrors(t *testing.T) {
	c := newClient(t, Options{})
	for _, tt := range []struct{ route, code string }{
		{"GET /indexes?limit=x", "invalid_index_limit"},
		{"GET /indexes?limit=", "invalid_index_limit"},
		{"GET /indexes?offset=-1", "invalid_index_offset"},
		{"GET /indexes?Limit=1", "bad_request"},
		{"GET /indexes?limit=1&page=2", "bad_request"},
		{"GET /indexes?limit=1&limit=x", "invalid_index_limit"}, // the last one counts
		{"GET /indexes/a/documents?limit=1.5", "invalid_document_limit"},
		{"GET /indexes/a/documents?offset=x", "invalid_document_offset"},
		{"GET /indexes/a/documents?retrieveVectors=2", "invalid_document_retrieve_vectors"},
		{"GET /indexes/a/documents?retrieveVectors=", "invalid_document_retrieve_vectors"},
		{"GET /indexes/a/documents?ids=a%20b", "invalid_document_ids"},
		{"GET /indexes/a/documents?filter=genre", "invalid_document_filter"},
		{"GET /indexes/a/documents?q=1", "bad_request"},
		{"GET /indexes/a/documents/1?field=id", "bad_request"},
		{"GET /indexes/a/documents/1?retrieveVectors=no", "invalid_document_retrieve_vectors"},
		{"DELETE /indexes/a/documents?force=true", "bad_request"},
		{"DELETE /indexes/a/documents/1?primaryKey=id", "bad_request"},
		{"POST /indexes/a/documents?primary=id", "bad_request"},
		{"POST /indexes/a/documents?skipCreation=1", "invalid_skip_creation"},
		{"POST /indexes/a/documents?csvDelimiter=", "invalid_document_csv_delimiter"},
		{"PUT /indexes/a/documents?csvDelimiter=%C3%A9", "invalid_document_csv_delimiter"},
		{"PUT /indexes/a/documents?csvDelimiter=;;", "invalid_document_csv_delimiter"},
		{"POST /indexes/a/documents/delete?a=b", "bad_request"},
		{"GET /indexes/a/search?limit=-1", "invalid_search_limit"},
		{"GET /indexes/a/search?hitsPerPage=1e2", "invalid_search_hits_per_page"},
		{"GET /indexes/a/search?showRankingScore=1", "invalid_search_show_ranking_score"},
		{"GET /indexes/a/search?filter=%FF", "invalid_search_filter"},
		{"GET /indexes/a/search?q=%FF", "invalid_search_q"},
		{"GET /indexes/a/search?matchingStrategy=some", "invalid_search_matching_strategy"},
		{"GET /indexes/a/search?rankingScoreThreshold=high", "invalid_search_ranking_score_threshold"},
		{"GET /indexes/a/search?rankingScoreThreshold=NaN", "invalid_search_ranking_score_threshold"},
		{"GET /indexes/a/search?rankingScoreThreshold=1.01", "invalid_search_ranking_score_threshold"},
		{"GET /indexes/a/search?locales=eng%2Czz", "invalid_search_locales"},
		{"GET /indexes/a/search?filter=kind+%3D", "invalid_search_filter"},
		{"GET /indexes/a/search?hybridSemanticRatio=0.5", "invalid_search_hybrid_query"},
		{"GET /indexes/a/search?vector=0.1%2C0.2", "missing_search_hybrid"},
		{"GET /indexes/a/search?vector=a", "invalid_search_vector"},
		{"GET /indexes/a/search?vector=1,1e39", "invalid_search_vector"},
		{"GET /indexes/a/search?vector=1&hybridEmbedder=", "invalid_search_embedder"},
		{"GET /indexes/a/search?hybridEmbedder=e&hybridSemanticRatio=x", "invalid_search_semantic_ratio"},
		{"GET /indexes/a/similar", "bad_request"},
		{"GET /indexes/a/similar?id=1", "bad_request"},
		{"GET /indexes/a/similar?embedder=e", "bad_request"},
		{"GET /indexes/a/similar?id=a+b&embedder=e", "invalid_similar_id"},
		{"GET /indexes/a/similar?id=1&embedder=e&filter=cm", "invalid_similar_filter"},
		{"GET /indexes/a/similar?id=1&embedder=e&limit=x", "invalid_similar_limit"},
		{"GET /indexes/a/similar?id=1&embedder=e&rankingScoreThreshold=9", "invalid_similar_ranking_score_threshold"},
		{"GET /indexes/a/similar?id=1&embedder=e&q=x", "bad_request"},
		{"GET /indexes/a/search?personalizeUserContext=x", "feature_not_enabled"},
		{"GET /indexes/a/search?hybrid=x", "bad_request"},
		{"GET /indexes/a/search?q=%FF", "invalid_search_q"},
		{"GET /tasks?uids=1,b", "invalid_task_uids"},
		{"GET /tasks?uids=-1", "invalid_task_uids"},
		{"GET /tasks?batchUids=y", "invalid_batch_uids"},
		{"GET /tasks?canceledBy=x", "invalid_task_canceled_by"},
		{"GET /tasks?statuses=done", "invalid_task_statuses"},
		{"GET /tasks?types=documentAddition,", "invalid_task_types"},
		{"GET /tasks?indexUids=not%20ok", "invalid_index_uid"},
		{"GET /tasks?beforeEnqueuedAt=yesterday", "invalid_task_before_enqueued_at"},
		{"GET /tasks?afterEnqueuedAt=2020-13-01", "invalid_task_after_enqueued_at"},
		{"GET /tasks?beforeStartedAt=2020", "invalid_task_before_started_at"},
		{"GET /tasks?afterStartedAt=1600000000", "invalid_task_after_started_at"},
		{"GET /tasks?beforeFinishedAt=2020-01-01T10:00:00", "invalid_task_before_finished_at"},
		{"GET /tasks?afterFinishedAt=", "invalid_task_after_finished_at"},
		{"GET /tasks?limit=-1", "invalid_task_limit"},
		{"GET /tasks?from=4294967296", "invalid_task_from"},
		{"GET /tasks?reverse=1", "invalid_task_reverse"},
		{"GET /tasks?offset=1", "bad_request"},
		{"GET /batches?reverse=x", "invalid_task_reverse"},
		{"POST /tasks/cancel", "missing_task_filters"},
		{"POST /tasks/cancel?limit=1", "bad_request"},
		{"DELETE /tasks", "missing_task_filters"},
		{"DELETE /tasks?from=1", "bad_request"},
		{"GET /tasks/1/documents", "feature_not_enabled"},
	} {
		method, path, _ := strings.Cut(tt.route, " ")
		if r := c.send(method, path, nil); r.code() != tt.code || r.status != 400 {
			t.Errorf("%s: %d %s, want %s", tt.route, r.status, r.body, tt.code)
		}
	}
}

// TestMessages fixes what messages contain: the name, the value, what is expected, and the probable intent.
func TestMessages(t *testing.T) {
	c := newClient(t, Options{})
	for _, tt := range []struct{ path, body, message string }{
		{"/indexes/a/search", `{"limit": "3"}`, "`limit` must be a whole number from 0, but it is a string: \"3\"."},
		{"/indexes/a/search", `{"atributesToRetrieve": []}`, "`atributesToRetrieve` is unknown. Did you mean `attributesToRetrieve`?"},
		{"/indexes/a/search", `{"hybrid": {"embeder": 1}}`, "`hybrid.embeder` is unknown. Did you mean `hybrid.embedder`?"},
		{"/indexes/a/documents/delete", `{"where": 1}`, "`where` is unknown. Use one of `filter`."},
		{"/swap-indexes", `[{"indexes": ["a", "b"], "rename": 1}]`, "`[0].rename` must be `true` or `false`, but it is 1."},
		{"/indexes", `{"uid": `, "The body is not valid JSON: unexpected end of JSON input, at byte 8."},
	} {
		r := c.json("POST", tt.path, tt.body)
		var e struct{ Message string }
		if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Message != tt.message {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.body, e.Message, tt.message)
		}
	}
}

func TestDecodeSearch(t *testing.T) {
	got := newSearchInput()
	body := value(`{ "q" : "tea \"x\" \u00e9", "offset":1 , "limit": 18446744073709551615, "page":2,"hitsPerPage":3,
		"attributesToRetrieve":["id", "a,b"], "filter": null, "sort":["grams:desc"],"facets":[],"distinct":"kind",
		"matchingStrategy":"all","locales":["en"],"rankingScoreThreshold":0.25,"cropMarker":"","showRankingScore":true, "q": "last" }`)
	if err := decode(&got, value(trim(body)), searchBodyParams, object{code: "bad_request"}); err != nil {
		t.Fatal(err)
	}
	want := newSearchInput()
	page, hits, distinct, threshold := 2, 3, "kind", 0.25
	r := &want.Search
	r.Query, r.Offset, r.Limit, r.Page, r.HitsPerPage = "last", 1, int(^uint(0)>>1), &page, &hits
	r.AttributesToRetrieve, r.Sort, r.Facets, r.Distinct = []string{"id", "a,b"}, []string{"grams:desc"}, []string{}, &distinct
	r.Strategy, r.Locales, r.RankingScoreThreshold, r.CropMarker, r.ShowRankingScore = query.All, []string{"eng"}, &threshold, "", true
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseSort(t *testing.T) {
	for s, want := range map[string][]string{
		"":                               {""},
		"a:asc":                          {"a:asc"},
		"a:asc, b:desc":                  {"a:asc", "b:desc"},
		"_geoPoint(1, 2):asc,b:desc":     {"_geoPoint(1, 2):asc", "b:desc"},
		"_geoPoint(1,2:asc,b:desc":       {"_geoPoint(1,2:asc,b:desc"},
		"a:asc,_geoPoint(0,0):desc,c:up": {"a:asc", "_geoPoint(0,0):desc", "c:up"},
	} {
		if got, err := parseSort(&arg{text: s}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q %v, want %q", s, got, err, want)
		}
	}
}

// TestWalkRandom compares the walk over objects and arrays with the decoder of the standard library.
func TestWalkRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		checkWalk(t, randomJSON(rnd, 4))
	}
}

// randomJSON writes a value with white space and escapes in all allowed places.
func randomJSON(rnd *rand.Rand, depth int) []byte {
	blank := func() string { return strings.Repeat(" ", rnd.IntN(2)) + strings.Repeat("\n\t", rnd.IntN(2)) }
	quoted := func() string {
		pieces := []string{"a", "é", `\"`, `\\`, `\u00e9`, `]`, `}`, `{`, `,`, `:`, ` `, `\/`, `😀`, `\ud83d\ude00`}
		s := ""
		for range rnd.IntN(5) {
			s += pieces[rnd.IntN(len(pieces))]
		}
		return `"` + s + `"`
	}
	kind := rnd.IntN(7)
	if depth == 0 {
		kind = rnd.IntN(5)
	}
	s := ""
	switch kind {
	case 0:
		s = []string{"null", "true", "false"}[rnd.IntN(3)]
	case 1:
		s = []string{"0", "-1", "12.5", "1e-3", "-0.0E+2"}[rnd.IntN(5)]
	case 2, 3, 4:
		s = quoted()
	case 5:
		var items []string
		for range rnd.IntN(4) {
			items = append(items, string(randomJSON(rnd, depth-1)))
		}
		s = "[" + blank() + strings.Join(items, ",") + "]"
	case 6:
		var items []string
		for range rnd.IntN(4) {
			items = append(items, blank()+quoted()+blank()+":"+string(randomJSON(rnd, depth-1)))
		}
		s = "{" + strings.Join(items, ",") + blank() + "}"
	}
	return []byte(blank() + s + blank())
}

// checkWalk walks valid JSON and compares every part with the result of encoding/json.
func checkWalk(t *testing.T, body []byte) {
	t.Helper()
	v := trim(body)
	same := func(part value, want any) {
		var got any
		if err := json.Unmarshal(part, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: part %q is %v (%v), want %v", body, part, got, err, want)
		}
	}
	switch {
	case v.object():
		want := map[string]json.RawMessage{}
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]value{}
		for name, member := range v.members() {
			s, ok := value(fmt.Appendf(nil, `"%s"`, name)).text()
			if !ok {
				t.Fatalf("%s: name %q", body, name)
			}
			got[s] = member
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d members, want %d", body, len(got), len(want))
		}
		for name, raw := range want {
			var x any
			if err := json.Unmarshal(raw, &x); err != nil {
				t.Fatal(err)
			}
			if got[name] == nil {
				t.Fatalf("%s: no member %q", body, name)
			}
			same(got[name], x)
			checkWalk(t, got[name])
		}
	case v.array():
		var want []any
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		i := 0
		for e := range v.elements() {
			if i == len(want) {
				t.Fatalf("%s: too many elements", body)
			}
			same(e, want[i])
			checkWalk(t, e)
			i++
		}
		if i != len(want) {
			t.Fatalf("%s: %d elements, want %d", body, i, len(want))
		}
	case v.kind() == "a string":
		var want string
		if err := json.Unmarshal(v, &want); err != nil {
			t.Fatal(err)
		}
		if got, ok := v.text(); !ok || got != want {
			t.Fatalf("%s: %q, want %q", v, got, want)
		}
	}
}

// FuzzDecode decodes any bytes as a search: it must not panic, and accepted bytes must be JSON.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"q":"a"}`, `{"filter":["a = 1",["b = 2"]]}`, `{"vector":[1,2.5]}`, `{"hybrid":{"embedder":"e"}}`, `[`, `{"q":"\ud800"}`, ` {} `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) || !utf8.Valid(body) {
			return
		}
		checkWalk(t, bytes.Clone(body))
		in := newSearchInput()
		_ = decode(&in, trim(body), searchBodyParams, object{code: "bad_request"})
	})
}

// TestDecodeAllocs bounds the allocations of decoding a search: the state of the iteration, and what the request keeps.
func TestDecodeAllocs(t *testing.T) {
	body := value(`{"q":"tea","limit":5,"attributesToRetrieve":["id","name"],"showRankingScore":true,"offset":0}`)
	in := newSearchInput()
	allocs := testing.AllocsPerRun(200, func() {
		in = newSearchInput()
		if err := decode(&in, body, searchBodyParams, object{code: "bad_request"}); err != nil {
			t.Fatal(err)
		}
	})
	// q; two attributes and their slice, which grows once; numbers are parsed from strings that do not escape.
	if allocs > 8 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkDecodeSearch(b *testing.B) {
	body := []byte(`{"q":"floral tea","offset":0,"limit":10,"attributesToRetrieve":["id","name","tags"],"sort":["grams:desc"],"showRankingScore":true}`)
	b.ReportAllocs()
	for b.Loop() {
		in := newSearchInput()
		if !json.Valid(body) || !utf8.Valid(body) {
			b.Fatal("not JSON")
		}
		if err := decode(&in, trim(body), searchBodyParams, object{code: "bad_request"}); err != nil {
			b.Fatal(err)
		}
	}
}

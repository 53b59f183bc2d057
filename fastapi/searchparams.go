package fastapi

import (
	"encoding/json"
	"fmt"
	"math"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/query"
	"svc/internal/scroll"
	"svc/internal/search"
	"svc/internal/settings"
	"svc/internal/text"
)

// searchInput has the parameters of a search or a facet search.
type searchInput struct {
	search.FacetRequest
	facetNamed bool

	hybrid      search.Hybrid
	personalize bool // given
	userContext string
	network     *bool // useNetwork; nil: not given
	sentFilter  []byte
}

// newSearchInput has the defaults of all parameters.
func newSearchInput() searchInput {
	return searchInput{FacetRequest: search.FacetRequest{Search: search.Request{
		Limit:            defaultLimit,
		CropLength:       10,
		CropMarker:       "…",
		HighlightPreTag:  "<em>",
		HighlightPostTag: "</em>",
	}}}
}

// narrowing are the parameters that select documents; a facet search has them, too.
var narrowing = []param[searchInput]{
	{name: "q", code: "invalid_search_q", kind: textual, most: unlimited, null: true, set: func(r *searchInput, a *arg) error {
		r.Search.Query = a.text
		return nil
	}},
	{name: "filter", code: "invalid_search_filter", kind: raw, null: true, shape: filterShape, set: func(r *searchInput, a *arg) error {
		var err error
		if r.sentFilter = a.json; a.json == nil {
			r.sentFilter = []byte(a.text)
		}
		r.Search.Filter, err = parseFilter(a)
		return err
	}},
	{name: "matchingStrategy", code: "invalid_search_matching_strategy", kind: textual, shape: oneOf("last", "all", "frequency"), set: func(r *searchInput, a *arg) error {
		switch a.text {
		case "last":
			r.Search.Strategy = query.Last
		case "all":
			r.Search.Strategy = query.All
		case "frequency":
			r.Search.Strategy = query.Frequency
		default:
			return a.expected("`last`, `all` or `frequency`")
		}
		return nil
	}},
	{name: "attributesToSearchOn", code: "invalid_search_attributes_to_search_on", kind: list, null: true, set: func(r *searchInput, a *arg) error {
		r.Search.SearchOn = a.list
		return nil
	}},
	{name: "rankingScoreThreshold", code: "invalid_search_ranking_score_threshold", kind: number, null: true, shape: ratioShape, set: func(r *searchInput, a *arg) error {
		if a.number < 0 || a.number > 1 {
			return a.expected("a number from 0 to 1")
		}
		threshold := a.number
		r.Search.RankingScoreThreshold = &threshold
		return nil
	}},
	{name: "locales", code: "invalid_search_locales", kind: list, null: true, shape: listOf(schema{"type": "string"}), set: func(r *searchInput, a *arg) error {
		r.Search.Locales = text.Locales{}
		for _, code := range a.list {
			locale, ok := text.Locale(code)
			if !ok {
				return a.expected("an array of language codes of two or three letters, such as `en` or `eng`")
			}
			r.Search.Locales = append(r.Search.Locales, locale)
		}
		return nil
	}},
	{name: "vector", code: "invalid_search_vector", kind: raw, null: true, shape: vectorShape, set: setVector},
}

// shaping are the parameters that only a search has, in a body as in a query string.
var shaping = []param[searchInput]{
	{name: "offset", code: "invalid_search_offset", kind: count, set: func(r *searchInput, a *arg) error { r.Search.Offset = a.count; return nil }},
	{name: "limit", code: "invalid_search_limit", kind: count, set: func(r *searchInput, a *arg) error { r.Search.Limit = a.count; return nil }},
	{name: "page", code: "invalid_search_page", kind: count, null: true, set: func(r *searchInput, a *arg) error {
		page := a.count
		r.Search.Page = &page
		return nil
	}},
	{name: "hitsPerPage", code: "invalid_search_hits_per_page", kind: count, null: true, set: func(r *searchInput, a *arg) error {
		hits := a.count
		r.Search.HitsPerPage = &hits
		return nil
	}},
	{name: "attributesToRetrieve", code: "invalid_search_attributes_to_retrieve", kind: list, null: true, set: func(r *searchInput, a *arg) error {
		r.Search.AttributesToRetrieve = a.list
		return nil
	}},
	{name: "attributesToHighlight", code: "invalid_search_attributes_to_highlight", kind: list, null: true, set: func(r *searchInput, a *arg) error {
		r.Search.AttributesToHighlight = a.list
		return nil
	}},
	{name: "attributesToCrop", code: "invalid_search_attributes_to_crop", kind: list, null: true, set: func(r *searchInput, a *arg) error {
		r.Search.AttributesToCrop = a.list
		return nil
	}},
	{name: "cropLength", code: "invalid_search_crop_length", kind: count, set: func(r *searchInput, a *arg) error { r.Search.CropLength = a.count; return nil }},
	{name: "cropMarker", code: "invalid_search_crop_marker", kind: textual, most: maxTagBytes, set: func(r *searchInput, a *arg) error { r.Search.CropMarker = a.text; return nil }},
	{name: "highlightPreTag", code: "invalid_search_highlight_pre_tag", kind: textual, most: maxTagBytes, set: func(r *searchInput, a *arg) error { r.Search.HighlightPreTag = a.text; return nil }},
	{name: "highlightPostTag", code: "invalid_search_highlight_post_tag", kind: textual, most: maxTagBytes, set: func(r *searchInput, a *arg) error { r.Search.HighlightPostTag = a.text; return nil }},
	{name: "sort", code: "invalid_search_sort", kind: raw, null: true, shape: sortShape, set: func(r *searchInput, a *arg) error {
		var err error
		r.Search.Sort, err = parseSort(a)
		return err
	}},
	{name: "facets", code: "invalid_search_facets", kind: list, null: true, set: func(r *searchInput, a *arg) error { r.Search.Facets = a.list; return nil }},
	{name: "distinct", code: "invalid_search_distinct", kind: textual, null: true, set: func(r *searchInput, a *arg) error {
		attribute := a.text
		r.Search.Distinct = &attribute
		return nil
	}},
	{name: "showMatchesPosition", code: "invalid_search_show_matches_position", kind: flag, set: func(r *searchInput, a *arg) error { r.Search.ShowMatchesPosition = a.flag; return nil }},
	{name: "showRankingScore", code: "invalid_search_show_ranking_score", kind: flag, set: func(r *searchInput, a *arg) error { r.Search.ShowRankingScore = a.flag; return nil }},
	{name: "showRankingScoreDetails", code: "invalid_search_show_ranking_score_details", kind: flag, set: func(r *searchInput, a *arg) error { r.Search.ShowRankingScoreDetails = a.flag; return nil }},
	{name: "showPerformanceDetails", code: "invalid_search_show_performance_details", kind: flag, set: func(r *searchInput, a *arg) error { r.Search.ShowPerformanceDetails = a.flag; return nil }},
	{name: "explainPlan", code: "invalid_search_explain_plan", kind: flag, set: func(r *searchInput, a *arg) error { r.Search.ExplainPlan = a.flag; return nil }},
	{name: "retrieveVectors", code: "invalid_search_retrieve_vectors", kind: flag, set: func(r *searchInput, a *arg) error { r.Search.RetrieveVectors = a.flag; return nil }},
	{name: "suggest", code: "invalid_search_suggest", kind: flag, set: func(r *searchInput, a *arg) error { r.Search.Suggest = a.flag; return nil }},
	{name: "cursor", code: "invalid_search_cursor", kind: textual, null: true, most: scroll.MaxCursorBytes, shape: cursorShape, set: func(r *searchInput, a *arg) error {
		r.Search.Cursor = &search.Cursor{Text: a.text}
		return nil
	}},
}

// spreading is the parameter that includes the other instances.
var spreading = []param[searchInput]{
	{name: "useNetwork", code: "invalid_search_use_network", kind: flag, null: true, set: func(r *searchInput, a *arg) error {
		use := a.flag
		r.network = &use
		return nil
	}},
}

// inBody are parameters of bodies only, inQuery those of query strings only.
var (
	inBody = []param[searchInput]{
		{name: "hybrid", code: "invalid_search_hybrid_query", kind: raw, null: true, shape: objectOf(hybridParams, "embedder"), set: func(r *searchInput, a *arg) error {
			if err := decode(r, a.json, hybridParams, object{path: a.path() + ".", code: a.code, notCode: a.code}); err != nil {
				return err
			}
			if r.hybrid.Embedder == "" {
				return apierr.New(a.code, "`%s.embedder` is missing: name the embedder to use.", a.path())
			}
			return nil
		}},
		{name: "media", code: "invalid_search_media", kind: raw, null: true, set: func(r *searchInput, a *arg) error {
			r.Search.Media = json.RawMessage(a.json)
			return nil
		}},
	}
	personalizing = []param[searchInput]{
		{name: "personalize", code: "invalid_search_personalize", kind: raw, null: true, shape: objectOf(personalizeParams, "userContext"), set: func(r *searchInput, a *arg) error {
			if err := decode(r, a.json, personalizeParams, object{path: a.path() + ".", code: a.code, notCode: a.code}); err != nil {
				return err
			}
			if !r.personalize {
				return noUserContext(a)
			}
			return nil
		}},
	}
	aggregating = []param[searchInput]{
		{name: "aggregations", code: "invalid_search_aggregations", kind: raw, null: true, shape: aggregationsShape, set: func(r *searchInput, a *arg) (err error) {
			r.Search.Aggregations, err = aggregate.Parse(a.json, a.path(), a.code)
			return err
		}},
	}
	grouping = []param[searchInput]{
		{name: "groupBy", code: "invalid_search_group_by", kind: raw, null: true, shape: objectOf(groupByParams("invalid_search_group_by"), "attribute"), set: func(r *searchInput, a *arg) (err error) {
			r.Search.GroupBy, err = parseGroupBy(a)
			return err
		}},
	}
	scoring = []param[searchInput]{
		{name: "scoreFunctions", code: "invalid_search_score_functions", kind: raw, null: true, shape: settings.ScoreShape(), set: func(r *searchInput, a *arg) (err error) {
			r.Search.ScoreFunctions, err = settings.ParseScoreFunctions(a.json, a.path(), a.code)
			return err
		}},
	}
	hybridParams = []param[searchInput]{
		{name: "embedder", code: "invalid_search_embedder", kind: textual, shape: nameShape, set: setEmbedder},
		{name: "semanticRatio", code: "invalid_search_semantic_ratio", kind: number, shape: ratioShape, set: setSemanticRatio},
	}
	personalizeParams = []param[searchInput]{
		{name: "userContext", code: "invalid_search_personalize_user_context", kind: textual, set: setUserContext},
	}
	inQuery = []param[searchInput]{
		{name: "hybridEmbedder", code: "invalid_search_embedder", kind: textual, shape: nameShape, set: setEmbedder},
		{name: "hybridSemanticRatio", code: "invalid_search_semantic_ratio", kind: number, shape: ratioShape, set: setSemanticRatio},
		{name: "personalizeUserContext", code: "invalid_search_personalize_user_context", kind: textual, set: setUserContext},
	}
)

// groupByParams are the members of groupBy, whose errors have a code.
func groupByParams(code apierr.Code) []param[search.GroupBy] {
	return []param[search.GroupBy]{
		{name: "attribute", code: code, kind: textual, shape: nameShape, set: func(b *search.GroupBy, a *arg) error {
			b.Attribute = a.text
			return nil
		}},
		{name: "hitsPerGroup", code: code, kind: count, null: true, shape: schema{"type": "integer", "minimum": 1, "maximum": search.MaxGroupHits}, set: func(b *search.GroupBy, a *arg) error {
			if a.count < 1 || a.count > search.MaxGroupHits {
				return a.expected(fmt.Sprintf("a number from 1 to %d", search.MaxGroupHits))
			}
			b.Hits = a.count
			return nil
		}},
		{name: "sort", code: code, kind: raw, null: true, shape: sortShape, set: func(b *search.GroupBy, a *arg) (err error) {
			b.Sort, err = parseSort(a)
			return err
		}},
	}
}

func parseGroupBy(a *arg) (*search.GroupBy, error) {
	by := &search.GroupBy{Hits: search.DefaultGroupHits}
	if err := decode(by, a.json, groupByParams(a.code), object{path: a.path() + ".", code: a.code, notCode: a.code}); err != nil {
		return nil, err
	}
	if by.Attribute == "" {
		return nil, apierr.New(a.code, "`%s.attribute` is missing: name the attribute whose values make the groups.", a.path())
	}
	return by, nil
}

var (
	searchBodyParams  = join(narrowing, shaping, spreading, inBody, personalizing, aggregating, grouping, scoring)
	searchQueryParams = join(narrowing, shaping, spreading, inQuery)
	facetSearchParams = join(narrowing, spreading, inBody, []param[searchInput]{
		{name: "facetName", code: "invalid_facet_search_facet_name", kind: textual, set: func(r *searchInput, a *arg) error {
			r.FacetName, r.facetNamed = a.text, true
			return nil
		}},
		{name: "facetQuery", code: "invalid_facet_search_query", kind: textual, null: true, set: func(r *searchInput, a *arg) error {
			facetQuery := a.text
			r.FacetQuery = &facetQuery
			return nil
		}},
		{name: "exhaustiveFacetCount", code: "invalid_facet_search_exhaustive_facet_count", kind: flag, null: true, set: func(r *searchInput, a *arg) error {
			r.Exhaustive = a.flag
			return nil
		}},
	})
)

func join[T any](tables ...[]param[T]) []param[T] {
	var all []param[T]
	for _, t := range tables {
		all = append(all, t...)
	}
	return all
}

func setEmbedder(r *searchInput, a *arg) error {
	if a.text == "" {
		return a.expected("the name of an embedder")
	}
	r.hybrid.Embedder = a.text
	return nil
}

func setSemanticRatio(r *searchInput, a *arg) error {
	if a.number < 0 || a.number > 1 {
		return a.expected("a number from 0 to 1")
	}
	ratio := a.number
	r.hybrid.Ratio = &ratio
	return nil
}

func setUserContext(r *searchInput, a *arg) error {
	r.personalize, r.userContext = true, a.text
	return nil
}

// setVector reads a vector: an array of numbers, base64 of little-endian float32, or in a query string a
// list.
func setVector(r *searchInput, a *arg) error {
	r.Search.Vector = []float32{}
	if a.json == nil {
		for _, piece := range splitList(a.text) {
			x := arg{text: piece}
			if !x.readText(number) || math.IsInf(float64(float32(x.number)), 0) {
				return a.expected("a list of numbers of 32 bits separated by commas")
			}
			r.Search.Vector = append(r.Search.Vector, float32(x.number))
		}
		return a.entries(len(r.Search.Vector), maxVectorNumbers)
	}
	var ok bool
	if r.Search.Vector, ok = document.AppendVector(r.Search.Vector, a.json, maxVectorNumbers); !ok {
		return a.expected("an array of numbers of 32 bits, or a string of base64 of such numbers, little-endian")
	}
	return a.entries(len(r.Search.Vector), maxVectorNumbers)
}

// maxVectorNumbers is more than any model has dimensions.
const maxVectorNumbers = 1 << 16

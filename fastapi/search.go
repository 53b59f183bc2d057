package fastapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/scroll"
	"svc/internal/search"
	"svc/internal/settings"
	"svc/internal/text"
)

// searchInput is what a search or a facet search is asked with.
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

// narrowing are the parameters that choose documents; a facet search has them too.
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

// spreading is the parameter that takes in the other instances.
var spreading = []param[searchInput]{
	{name: "useNetwork", code: "invalid_search_use_network", kind: flag, null: true, set: func(r *searchInput, a *arg) error {
		use := a.flag
		r.network = &use
		return nil
	}},
}

// inBody are parameters that only a body has, inQuery those of a query string.
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

// checkSearch refuses what the parameters together, or the features, do not allow.
func (s *Server) checkSearch(r *searchInput) error {
	switch {
	case r.hybrid.Embedder != "":
		r.Search.Hybrid = &r.hybrid
	case r.hybrid.Ratio != nil:
		return apierr.New("invalid_search_hybrid_query", "`hybridSemanticRatio` needs `hybridEmbedder`: name the embedder to use.")
	}
	if err := r.Search.Check(); err != nil {
		return err
	}
	if r.Search.GroupBy != nil && r.personalize {
		return apierr.New("invalid_search_group_by", "`groupBy` and `personalize` exclude each other: leave one of them out.")
	}
	if r.Search.Media != nil {
		if err := s.features.need("multimodal", "searching by `media`"); err != nil {
			return err
		}
	}
	if r.network != nil {
		if err := s.features.need("network", "`useNetwork`"); err != nil {
			return err
		}
	}
	if r.personalize {
		if err := s.needReranker(); err != nil {
			return err
		}
	}
	if err := s.checkScoreFunctions(r.Search.ScoreFunctions, "invalid_search_score_functions"); err != nil {
		return err
	}
	return s.checkFilter(r.Search.Filter)
}

// needReranker returns the error of a personalized search on a server without a reranker.
func (s *Server) needReranker() error {
	if s.reranker != nil {
		return nil
	}
	return apierr.New("feature_not_enabled", "Personalized search is not configured on this server. Start the server with `--experimental-personalization-api-key`, or remove `personalize`.")
}

// noUserContext is the error of a parameter personalize without its member.
func noUserContext(a *arg) error {
	return apierr.New(a.code, "`%s.userContext` is missing. It describes the user for whom hits are reordered.", a.path())
}

// searchState is what a search needs only while it is decoded and run.
type searchState struct {
	in   searchInput
	body []byte
	key  []byte // of its answer
}

var searchStates = sync.Pool{New: func() any { return new(searchState) }}

// Bodies up to this size are kept for the next search.
const keptBodyBytes = 64 << 10

func acquireSearch() *searchState {
	st := searchStates.Get().(*searchState)
	st.in = newSearchInput()
	return st
}

func (st *searchState) release() {
	st.in = searchInput{}
	if cap(st.body) <= keptBodyBytes {
		searchStates.Put(st)
	}
}

// searchBody answers POST. It looks for a cached answer before it decodes the body.
func (s *Server) searchBody(ctx *fasthttp.RequestCtx) error {
	st := acquireSearch()
	defer st.release()
	body, err := s.readJSON(ctx, &st.body)
	if err != nil {
		return err
	}
	key, done, err := s.answerKept(ctx, st, askedByBody, body)
	if done {
		return err
	}
	if err := decode(&st.in, body, searchBodyParams, object{code: "bad_request"}); err != nil {
		return err
	}
	return s.search(ctx, &st.in, key)
}

// searchQuery answers GET, as searchBody answers POST.
func (s *Server) searchQuery(ctx *fasthttp.RequestCtx) error {
	st := acquireSearch()
	defer st.release()
	key, done, err := s.answerKept(ctx, st, askedByQuery, ctx.URI().QueryString())
	if done {
		return err
	}
	if err := decodeQuery(&st.in, ctx.QueryArgs(), searchQueryParams); err != nil {
		return err
	}
	return s.search(ctx, &st.in, key)
}

// search answers a search. Where its answer may be kept, key is the name for it.
func (s *Server) search(ctx *fasthttp.RequestCtx, in *searchInput, key []byte) error {
	in.Search.ID = uuid.Must(uuid.NewV7())
	in.Search.Metadata = wantsMetadata(ctx)
	in.Search.RecordStages = s.slow.after > 0
	var found *search.Response
	defer func() { s.slow.tell(ctx, pathValue(ctx, "index_uid"), in, found) }()
	if s.useNetwork(in) {
		return s.searchNetwork(ctx, in)
	}
	err := s.runSearch(ctx, in, func(limited context.Context, v *index.View, dst []byte) (_ []byte, err error) {
		in.Search.Reorder = s.personal(limited, in)
		found, err = search.Search(limited, v, &in.Search)
		if err != nil {
			return nil, err
		}
		if found.Degraded() {
			s.metrics.degraded.Add(1)
		}
		begin := len(dst)
		if dst, err = found.AppendJSON(limited, dst); err == nil && key != nil && in.Search.Cursor == nil {
			found.Keep(key, dst[begin+len("{"):], s.analyticsNote(in, found))
		}
		return dst, err
	})
	if err == nil {
		s.countSearch(pathValue(ctx, "index_uid"), in, 0, found.None(), ctx.Time())
	}
	return err
}

// personal returns what puts hits in the order that suits the user of a search; nil when that is not asked for.
func (s *Server) personal(ctx context.Context, in *searchInput) search.Reorder {
	if !in.personalize {
		return nil
	}
	return s.reorder(ctx, in.userContext, in.Search.Query)
}

// reorder returns what puts the hits of a query in the order that suits a user.
func (s *Server) reorder(ctx context.Context, userContext, query string) search.Reorder {
	return func(deadline time.Time, hits [][]byte) ([]int, error) {
		s.metrics.personalized.Add(1)
		if !deadline.IsZero() {
			limited, cancel := context.WithDeadline(ctx, deadline)
			defer cancel()
			return s.reranker.Order(limited, userContext, query, hits)
		}
		return s.reranker.Order(ctx, userContext, query, hits)
	}
}

// searchNetwork answers a plain search that takes in the other instances.
func (s *Server) searchNetwork(ctx *fasthttp.RequestCtx, in *searchInput) error {
	uid, err := indexUID(ctx)
	if err != nil {
		return err
	}
	if err := s.prepare(ctx, uid, in); err != nil {
		return err
	}
	limited, waited, err := s.turn(ctx, in.hits())
	if err != nil {
		return err
	}
	defer limited.end()
	views := s.catalog.Views()
	defer views.Release()
	in.Search.Waited, in.Search.Foreign = waited, s.foreignAmong(ctx, views)
	found, err := s.networkSearch(limited, views, uid, in, limited.spread)
	if err != nil {
		return err
	}
	if err := answerWith(ctx, func(dst []byte) ([]byte, error) { return found.AppendJSON(limited, dst) }); err != nil {
		return err
	}
	s.countSearch(uid, in, 0, found.None(), ctx.Time())
	return nil
}

// facetSearch searches the values of a facet. Unknown members pass, because clients send whole search bodies
// along.
func (s *Server) facetSearch(ctx *fasthttp.RequestCtx) error {
	st := acquireSearch()
	defer st.release()
	body, err := s.readJSON(ctx, &st.body)
	if err != nil {
		return err
	}
	// Clients send whole search bodies along: unknown members pass.
	if err := decode(&st.in, body, facetSearchParams, object{}); err != nil {
		return err
	}
	if !st.in.facetNamed {
		return apierr.New("missing_facet_search_facet_name", "`facetName` is missing: name the facet whose values to search.")
	}
	defer s.slow.tell(ctx, pathValue(ctx, "index_uid"), &st.in, nil)
	spread := s.useNetwork(&st.in)
	return s.runSearch(ctx, &st.in, func(limited context.Context, v *index.View, dst []byte) ([]byte, error) {
		if spread {
			return s.facetNetwork(limited, dst, v, &st.in)
		}
		return search.FacetSearch(limited, dst, v, &st.in.FacetRequest)
	})
}

// prepare completes a search in an index by what the features allow and what the caller may see.
func (s *Server) prepare(ctx *fasthttp.RequestCtx, uid string, in *searchInput) error {
	if err := s.checkSearch(in); err != nil {
		return err
	}
	in.Search.Contains = s.features.on("containsFilter")
	in.Search.Log = s.log
	in.Search.Rules = s.activeRules()
	in.Search.Now = ctx.Time()
	rule, err := s.rule(ctx, uid)
	if err != nil {
		return err
	}
	if c := in.Search.Cursor; c != nil {
		c.Places, c.Filter = s.places, in.Search.Filter
	}
	if in.Search.Suggest && rule == nil {
		in.Search.Popular = s.suggestionsView
	}
	in.Search.Filter = filter.And(in.Search.Filter, rule)
	return nil
}

// suggestionsView returns the view of an index of suggestions; nil: there is none.
func (s *Server) suggestionsView(uid string) (*index.View, error) {
	ix := s.catalog.Get(uid)
	if ix == nil {
		return nil, nil
	}
	return ix.View()
}

// hits is how many hits the answer may have.
func (in *searchInput) hits() int {
	if n := in.Search.HitsPerPage; n != nil {
		return *n
	}
	return in.Search.Limit
}

// wantsMetadata reports whether the caller asks which index answered, with its primary key. To look at a header writes: the searches of
// one request may not ask at the same time.
func wantsMetadata(ctx *fasthttp.RequestCtx) bool {
	asked := headerIncludeMetadata.in(&ctx.Request.Header)
	return string(asked) == "1" || strings.EqualFold(string(asked), "true")
}

// runSearch waits for a slot, takes a view and answers with what run appends.
func (s *Server) runSearch(ctx *fasthttp.RequestCtx, in *searchInput, run func(context.Context, *index.View, []byte) ([]byte, error)) error {
	if err := s.prepare(ctx, pathValue(ctx, "index_uid"), in); err != nil {
		return err
	}
	in.Search.Foreign = s.foreign(ctx)
	defer in.Search.Foreign.Release()
	limited, waited, err := s.turn(ctx, in.hits())
	if err != nil {
		return err
	}
	defer limited.end()
	in.Search.Waited = waited
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	defer v.Release()
	return answerWith(ctx, func(dst []byte) ([]byte, error) { return run(limited, v, dst) })
}

package fastapi

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/search"
)

// checkSearch refuses combinations of parameters, and uses of disabled features.
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

// noUserContext is the error of a personalize parameter without its member.
func noUserContext(a *arg) error {
	return apierr.New(a.code, "`%s.userContext` is missing. It describes the user for whom hits are reordered.", a.path())
}

// searchState is the state of a search while it is decoded and run.
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

// search answers a search. If its answer may be cached, key is the cache key.
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
		s.countSearch(pathValue(ctx, "index_uid"), in, 0, found.None(), arrival(ctx))
	}
	return err
}

// personal returns the function that reorders hits for the user of a search, or nil if that is not requested.
func (s *Server) personal(ctx context.Context, in *searchInput) search.Reorder {
	if !in.personalize {
		return nil
	}
	return s.reorder(ctx, in.userContext, in.Search.Query)
}

// reorder returns the function that reorders the hits of a query for a user.
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

// searchNetwork answers a plain search that includes the other instances.
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
	s.countSearch(uid, in, 0, found.None(), arrival(ctx))
	return nil
}

// facetSearch searches the values of a facet. It ignores unknown members, because clients send whole search bodies along.
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
	in.Search.Now = arrival(ctx)
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

// suggestionsView returns the view of an index of suggestions, or nil if there is none.
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

// wantsMetadata reports whether the client asks which index answered, with its primary key. Looking up a header writes, so the
// searches of one request must not call it concurrently.
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

package fastapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/search"
	"svc/internal/turns"
)

// multiInput is the body of a multi-search.
type multiInput struct {
	queries    []queryInput     // nil: not given
	federation *federationInput // nil: none
	most       int              // queries that there may be
}

// queryInput is one query of a multi-search: a search and the index it is for.
type queryInput struct {
	searchInput
	sent      value  // the query as it came
	uid       string // "" when not given
	options   *federationOptions
	paginated string // the last given of the parameters that choose a page, "" for none
	timed     bool   // showPerformanceDetails was given
}

// federationOptions are the options of a query for its part in a federated search.
type federationOptions struct {
	weight   float64
	remote   *string
	position *int // shown and used for ties, instead of the query's own
}

var multiParams = []param[multiInput]{
	{name: "queries", code: "bad_request", kind: raw, shape: listOf(objectOf(queryParams, "indexUid")), set: setQueries},
	{name: "federation", code: "bad_request", kind: raw, null: true, shape: objectOf(federationParams), set: func(m *multiInput, a *arg) error {
		m.federation = newFederationInput()
		return decode(m.federation, a.json, federationParams, object{path: a.path() + ".", code: a.code})
	}},
}

// setQueries reads the queries one by one, so that an error names its query. It first counts them up to the limit.
func setQueries(m *multiInput, a *arg) error {
	if !a.json.array() {
		return a.expected("an array of queries")
	}
	n := 0
	for range a.json.elements() {
		if n++; n > m.most {
			break
		}
	}
	m.queries = make([]queryInput, 0, min(n, m.most))
	for e := range a.json.elements() {
		if len(m.queries) == m.most {
			return apierr.New(a.code, "`queries` has more than %d entries, the maximum. Send several requests, "+
				"or start the server with a larger `--max-multi-search-queries`.", m.most)
		}
		i := len(m.queries)
		m.queries = append(m.queries, queryInput{searchInput: newSearchInput(), sent: e})
		q := &m.queries[i]
		if err := decode(q, e, queryParams, object{path: "queries[" + strconv.Itoa(i) + "].", code: a.code}); err != nil {
			return err
		}
		if q.uid == "" {
			return apierr.New("missing_index_uid", "`queries[%d].indexUid` is missing: name the index to search.", i)
		}
	}
	return nil
}

var queryParams = join(querySearchParams(), []param[queryInput]{
	{name: "indexUid", code: "invalid_index_uid", kind: textual, shape: uidShape, set: func(q *queryInput, a *arg) error {
		if !validUID(a.text) {
			return a.expected(uidForm)
		}
		q.uid = a.text
		return nil
	}},
	{name: "federationOptions", code: "bad_request", kind: raw, null: true, shape: objectOf(federationOptionParams), set: func(q *queryInput, a *arg) error {
		q.options = &federationOptions{weight: 1}
		return decode(q.options, a.json, federationOptionParams, object{path: a.path() + ".", code: a.code})
	}},
})

// querySearchParams returns the parameters of a search. It also records which given parameters a federated search sets once for all
// of its queries. Unlike in a search of one index, null means that a parameter is absent.
func querySearchParams() []param[queryInput] {
	params := lift(searchBodyParams, func(q *queryInput) *searchInput { return &q.searchInput })
	for i := range params {
		p := &params[i]
		set := p.set
		switch p.name {
		case "limit", "offset", "page", "hitsPerPage":
			p.null = true
			p.set = func(q *queryInput, a *arg) error {
				q.paginated = p.name
				return set(q, a)
			}
		case "showPerformanceDetails":
			p.null = true
			p.set = func(q *queryInput, a *arg) error {
				q.timed = true
				return set(q, a)
			}
		}
	}
	return params
}

var federationOptionParams = []param[federationOptions]{
	{name: "weight", code: "invalid_multi_search_weight", kind: number, shape: schema{"type": "number", "minimum": 0}, set: func(o *federationOptions, a *arg) error {
		if a.number < 0 {
			return a.expected("a number from 0")
		}
		o.weight = a.number
		return nil
	}},
	{name: "remote", code: "invalid_multi_search_remote", kind: textual, null: true, set: func(o *federationOptions, a *arg) error {
		remote := a.text
		o.remote = &remote
		return nil
	}},
	{name: "queryPosition", code: "invalid_multi_search_query_position", kind: count, null: true, set: func(o *federationOptions, a *arg) error {
		position := a.count
		o.position = &position
		return nil
	}},
}

// multiSearch runs the queries separately, or merges them if the body has federation. Every query counts
// against the rate limit of the key.
func (s *Server) multiSearch(ctx *fasthttp.RequestCtx) error {
	m := multiInput{most: s.multiQueries}
	if err := readObject(s, ctx, &m, multiParams); err != nil {
		return err
	}
	if m.queries == nil {
		return apierr.New("bad_request", "`queries` is missing: send an array of searches, each with its `indexUid`.")
	}
	caller(ctx).Charge(len(m.queries)-1, arrival(ctx)) // in addition to the one counted for every search
	defer s.slow.tellMany(ctx, m.queries)
	for i := range m.queries {
		uid, err := reach(ctx, m.queries[i].uid)
		if err != nil {
			return insideQuery(i, err)
		}
		m.queries[i].uid = uid
	}
	if m.federation != nil {
		return s.federatedSearch(ctx, &m)
	}
	return s.separateSearches(ctx, m.queries)
}

// separateSearches answers with one result per query, in order.
func (s *Server) separateSearches(ctx *fasthttp.RequestCtx, queries []queryInput) error {
	limited, waited, err := s.turn(ctx, wantedHits(queries))
	if err != nil {
		return err
	}
	defer limited.end()
	views := s.catalog.Views()
	defer views.Release()
	id, metadata := uuid.Must(uuid.NewV7()), wantsMetadata(ctx)
	results := make([][]byte, len(queries))
	err = limited.spread(len(queries), func(work context.Context, i int) error {
		q := &queries[i]
		began := time.Now()
		if q.options != nil {
			return insideQuery(i, apierr.New("invalid_multi_search_federation_options",
				"`federationOptions` is for federated searches: send `federation` along, such as `{}`, or leave the options out."))
		}
		q.Search.ID, q.Search.Metadata, q.Search.Waited = id, metadata, waited
		head := append(appendString([]byte(`{"indexUid":`), q.uid), ',')
		if s.useNetwork(&q.searchInput) {
			if err := s.prepare(ctx, q.uid, &q.searchInput); err != nil {
				return insideQuery(i, err)
			}
			q.Search.Foreign = s.foreignAmong(ctx, views)
			found, err := s.networkSearch(work, views, q.uid, &q.searchInput, oneByOne(work))
			if err != nil {
				return insideQuery(i, err)
			}
			if results[i], err = found.AppendMembers(work, head); err != nil {
				return insideQuery(i, err)
			}
			s.countSearch(q.uid, &q.searchInput, i, found.None(), began)
			return nil
		}
		key := s.answerKey(ctx, nil, q.uid, askedByMany, q.sent, metadata)
		if v := views.Get(q.uid); v != nil && key != nil {
			if kept := search.Answer(v, key, arrival(ctx)); kept != nil {
				if err := turns.Of(work).Account().Answer(int64(kept.Len())); err != nil {
					return insideQuery(i, err)
				}
				results[i] = kept.AppendMembers(head, id)
				s.countKept(q.uid, kept, id, i, began)
				return nil
			}
		}
		v, err := s.prepareQuery(ctx, views, q)
		if err != nil {
			return insideQuery(i, err)
		}
		q.Search.Reorder = s.personal(work, &q.searchInput)
		found, err := search.Search(work, v, &q.Search)
		if err != nil {
			return insideQuery(i, err)
		}
		if found.Degraded() {
			s.metrics.degraded.Add(1)
		}
		if results[i], err = found.AppendMembers(work, head); err != nil {
			return insideQuery(i, err)
		}
		if key != nil && q.Search.Cursor == nil {
			found.Keep(key, results[i][len(head):], s.analyticsNote(&q.searchInput, found))
		}
		s.countSearch(q.uid, &q.searchInput, i, found.None(), began)
		return nil
	})
	if err != nil {
		return err
	}
	size := 0
	for _, r := range results {
		size += len(r) + 1
	}
	if err := requestOf(ctx).bytes().Hold(int64(size)); err != nil {
		return err
	}
	return answerWith(ctx, func(dst []byte) ([]byte, error) {
		dst = slices.Grow(dst, size+len(`{"results":[]}`))
		dst = append(dst, `{"results":[`...)
		for i, r := range results {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, r...)
		}
		return append(dst, "]}"...), nil
	})
}

// wantedHits returns how many hits all queries may return together. Each query counts as at least one.
func wantedHits(queries []queryInput) int {
	n := 0
	for i := range queries {
		n += max(min(queries[i].hits(), largeHits), 1)
	}
	return n
}

// prepareQuery prepares a query to run on the view of its index, which it returns.
func (s *Server) prepareQuery(ctx *fasthttp.RequestCtx, views *index.Views, q *queryInput) (*index.View, error) {
	if err := s.prepare(ctx, q.uid, &q.searchInput); err != nil {
		return nil, err
	}
	v, err := queriedView(views, q.uid)
	if err != nil {
		return nil, err
	}
	q.Search.Foreign = s.foreignAmong(ctx, views)
	return v, nil
}

// queriedView returns the view of the index that a body names, for a search.
func queriedView(views *index.Views, uid string) (*index.View, error) {
	if v := views.Get(uid); v != nil {
		return v, nil
	}
	return nil, missingQueried(views, uid)
}

// queriedPlain is queriedView for routes other than searches.
func queriedPlain(views *index.Views, uid string) (*index.View, error) {
	if v := views.Plain(uid); v != nil {
		return v, nil
	}
	return nil, missingQueried(views, uid)
}

// missingQueried returns the error of a missing index that a body names.
func missingQueried(views *index.Views, uid string) error {
	err := views.Missing(uid)
	if err.Code == "index_not_found" {
		err.HTTP = fasthttp.StatusBadRequest
	}
	return err
}

// insideQuery says in which query an error is.
func insideQuery(i int, err error) error {
	var e *apierr.Error
	if !errors.As(err, &e) {
		return err
	}
	in := *e
	in.Message = fmt.Sprintf("Inside `.queries[%d]`: %s", i, e.Message)
	return &in
}

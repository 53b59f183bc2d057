package search

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/rank"
	"svc/internal/turns"
)

// FederatedRequest is several searches whose hits are merged into one list.
type FederatedRequest struct {
	Queries                []FederatedQuery
	Offset, Limit          int
	Page, HitsPerPage      *int               // either given: page mode
	Facets                 []IndexFacets      // in the order of the uids; those of indexes without a query are only validated
	MergeFacets            *MergeFacets       // nil: facets are shown by index
	Aggregations           *aggregate.Request // of the results of all queries; nil: none
	GroupBy                *GroupBy           // nil: hits are not grouped
	Suggest                bool               // the answer has suggestions
	Distinct               *string            // nil: each query has its own, or that of its index
	ShowPerformanceDetails bool
	Waited                 time.Duration // for its turn
	ID                     uuid.UUID
	Metadata               bool

	// Of a search in a network.
	Networked bool          // other instances may take part, and the answer names those that failed
	Self      string        // name of this instance in the network; "" for none
	SelfErr   *apierr.Error // why local results may be incomplete; nil: they are complete
	Proxy     bool          // the answer is for another instance, which merges it with others
	Reorder   Reorder       // nil: hits stay in merged order
	AsSearch  *string       // the query of a plain search, whose form the answer takes; nil: the form of a federated one
	// Foreign and ForeignNetwork insert the documents of all instances instead of their ids in networked hits; nil: each instance
	// inserts its own. The views are held until the answer is written.
	Foreign        *Foreign
	ForeignNetwork ForeignNetwork
	Leaves         []string      // for an answer to another instance: the foreign indexes whose ids are left
	Errors         *RemoteErrors // of reads in addition to the search; nil: none
	// Remotes asks other instances, and returns when all of them have answered or failed; nil: none is asked.
	Remotes func(ctx context.Context) []*RemoteAnswer
	// RemoteHits asks them as a request says that has Least; nil: a page may lack hits that they were not asked for.
	RemoteHits func(ctx context.Context, r *FederatedRequest) []*RemoteAnswer
	Least      int // hits that each of them is asked for, if the page ends before
	// RemoteGroups asks them for the hits of some groups. It is set if Remotes and GroupBy are.
	RemoteGroups func(ctx context.Context, keys []rank.GroupKey) []*RemoteAnswer
	GroupKeys    []rank.GroupKey // of the groups that another instance asks for; nil: those of a page

	parts parts // of queries, in a network; see AddPart
}

// FederatedQuery is one query of a federated search.
type FederatedQuery struct {
	View     *index.View // queries of one index have the same
	Request  *Request    // without a page and facets of its own
	Weight   float64     // its scores are multiplied by this before comparison
	Position int         // shown in its hits; the lower one comes first among equals
	Shared   bool        // other instances are asked the same
}

// IndexFacets are the facets asked of one index.
type IndexFacets struct {
	View  *index.View
	Names []string // nil: none; empty: none, but the index is listed in the answer
}

// MergeFacets shows the facets of all indexes as one.
type MergeFacets struct {
	MaxValues *int // per facet; nil: all
}

// QueryError is an error of one of several queries.
type QueryError struct {
	Query int
	Err   error
}

func (e *QueryError) Error() string { return fmt.Sprintf("query %d: %v", e.Query, e.Err) }
func (e *QueryError) Unwrap() error { return e.Err }

// federated is a query of a federated search at work.
type federated struct {
	*Response // made for what a hit shows
	ranking   *ranking
	weight    float64
	position  int
}

// FederatedResponse is the answer to a federated search. It reads documents from the views of its queries,
// which must be held until AppendJSON has returned.
type FederatedResponse struct {
	request      *FederatedRequest
	queries      []federated
	remotes      []*RemoteAnswer
	hits         []federatedHit
	total        int
	cut          bool              // a list of hits that may go on ended before the page was full
	facets       []indexFacets     // of queried indexes for which some were requested
	aggregations *aggregate.Result // nil: not asked for
	suggestions  []suggested       // of a search that found nothing

	groupers []*grouper       // by query
	groups   []federatedGroup // of hits
	met      metHashes        // keys of groups, of an answer that another instance merges

	hydrations map[string]*networkHydration // by index

	start  time.Time
	stages *stages // nil: not requested
}

// federatedHit is a hit of one of the queries, or of another instance.
type federatedHit struct {
	query  *federated
	remote *RemoteAnswer // nil: the hit is one of query
	hit    int           // in the result of either, or among the pins of either
	pinned bool
}

// own returns a hit of a query.
func (h *federatedHit) own() *rank.Hit {
	if h.pinned {
		return &h.query.ranking.pins[h.hit].hit
	}
	return &h.query.result.Hits[h.hit]
}

// theirs returns a hit of another instance.
func (h *federatedHit) theirs() *remoteHit {
	if h.pinned {
		return &h.remote.pins[h.hit].hit
	}
	return &h.remote.hits[h.hit]
}

// queryPosition is the position of the query that found or pinned it.
func (h *federatedHit) queryPosition() int {
	if h.remote != nil {
		return h.theirs().position
	}
	return h.query.position
}

// Spread calls run for 0…n−1 in any order and concurrently, each with a context that has the turn of its goroutine and is not used
// after the call. It returns the error with the lowest number.
type Spread func(n int, run func(ctx context.Context, i int) error) error

// Federate runs the queries, by spread, and merges the results. Errors are *apierr.Error, in a *QueryError if one query caused it, or
// the context's.
func Federate(ctx context.Context, r *FederatedRequest, spread Spread) (*FederatedResponse, error) {
	resp, err := federate(ctx, r, spread, time.Now())
	if err != nil {
		return nil, err
	}
	return resp.further(ctx, spread)
}

// federate is Federate with the lists of hits that the request asks for.
func federate(ctx context.Context, r *FederatedRequest, spread Spread, start time.Time) (*FederatedResponse, error) {
	resp := &FederatedResponse{request: r, start: start, queries: make([]federated, len(r.Queries))}
	resp.stages = newStages(ctx, r.ShowPerformanceDetails, r.Waited)
	facets, err := r.facetFields()
	if err != nil {
		return nil, err
	}
	if err := r.checkAggregations(); err != nil {
		return nil, err
	}
	if err := r.checkGroupBy(ctx); err != nil {
		return nil, err
	}
	remotes, forget := r.askRemotes(ctx)
	defer forget()
	if err := spread(len(r.Queries), resp.prepare); err != nil {
		return nil, err
	}
	if err := checkComparable(resp.queries); err != nil {
		return nil, err
	}
	resp.stages.done("federating results > partition queries")
	p := resp.plan()
	if r.GroupBy != nil {
		err = resp.findGroups(ctx, p, spread)
	} else {
		err = resp.findHits(ctx, p, spread)
	}
	if err != nil {
		return nil, err
	}
	resp.stages.done("federating results > execute local search")
	sets := candidatesByIndex(resp.queries)
	if r.Aggregations != nil {
		if err := resp.aggregate(ctx, sets, spread); err != nil {
			return nil, err
		}
		resp.stages.done("federating results > aggregations")
	}
	counted := remotes != nil && (!p.drops || r.GroupBy != nil) // merging does not change local counts
	if counted {
		if err := resp.countFacets(facets, sets, spread); err != nil {
			return nil, err
		}
		if len(facets) > 0 {
			resp.stages.done("federating results > merge facets")
		}
	}
	if remotes != nil {
		if resp.remotes, err = r.await(ctx, remotes); err != nil {
			return nil, err
		}
		resp.stages.done("federating results > wait for remote results")
	}
	if r.GroupBy != nil {
		err = resp.mergeGroups(ctx, sets, spread)
	} else {
		err = resp.mergeHits(turns.Of(ctx), p, sets)
	}
	if err != nil {
		return nil, err
	}
	resp.stages.done("federating results > merge results")
	if !counted {
		if err := resp.countFacets(facets, sets, spread); err != nil {
			return nil, err
		}
	}
	if err := resp.addRemoteFacets(ctx, sets); err != nil {
		return nil, err
	}
	if err := resp.addRemoteAggregations(ctx); err != nil {
		return nil, err
	}
	if len(facets) > 0 {
		resp.stages.done("federating results > merge facets")
	}
	return resp, nil
}

// federationPlan says which hits the queries have to find, and how these become one list.
type federationPlan struct {
	offset, limit int
	paged         bool
	steadyTotals  bool // of one query, and so of all

	distinct      *string                   // of all queries; nil: none
	own           map[ownDistinct]*valueSet // of single queries
	drops         bool                      // hits are dropped because of either, or because of that of a part
	severalValues bool                      // a hit may have several distinct values, and so drop several hits of another query
}

// plan makes the plan of queries that are prepared.
func (r *FederatedResponse) plan() *federationPlan {
	p := &federationPlan{distinct: r.request.Distinct}
	p.offset, p.limit, p.paged = r.request.page()
	if p.distinct == nil {
		p.own = ownDistincts(r.queries, &r.request.parts)
	}
	p.drops = p.distinct != nil || len(p.own) > 0 || r.request.parts.distinct()
	p.steadyTotals = slices.ContainsFunc(r.queries, func(q federated) bool { return q.ranking.steadyTotals })
	p.severalValues = r.request.Least > 0 || p.offset+p.limit > 0 && slices.ContainsFunc(r.queries, func(q federated) bool { return !rank.SingleValued(rankIndex(q.view), q.ranking.distinct) })
	return p
}

// findHits makes each query find as many hits as the page ends with.
func (r *FederatedResponse) findHits(ctx context.Context, p *federationPlan, spread Spread) error {
	pinned := 0
	for i := range r.queries {
		pinned += len(r.queries[i].ranking.pins)
	}
	// The queries share the time limit of a search. If some wait for an embedder, which does not count, each has its own limit.
	waits := slices.ContainsFunc(r.queries, func(q federated) bool { return q.ranking.kind != keyword && q.ranking.request.Vector == nil })
	return spread(len(r.queries), func(ctx context.Context, i int) error {
		q := &r.queries[i]
		defer q.ranking.stages.timed("search")()
		q.ranking.steadyTotals = p.steadyTotals
		most := q.view.Settings.Pagination.MaxTotalHits
		// What others pin may be among its hits.
		w := window{limit: min(p.offset+p.limit+pinned, most), pageSize: p.limit + pinned, exhaustive: p.paged, values: true, apart: true, wholeIfFew: p.drops}
		if p.wholeLists() {
			w.limit, w.pageSize, w.exhaustive = most, most, false
		}
		if !waits {
			w.deadline = deadline(q.view, r.start)
		}
		var err error
		if q.result, err = q.ranking.run(ctx, w); err != nil {
			return &QueryError{i, err}
		}
		return turns.Of(ctx).Account().Hold(candidateBytes(q.result.Candidates))
	})
}

// mergeHits merges the hits of queries and remotes to a page, and adds up the total.
func (r *FederatedResponse) mergeHits(t turns.Turn, p *federationPlan, sets map[string]*indexSet) error {
	m := r.newMerger(t, p, sets)
	r.hits = weave(m.pins(federatedPins(r.queries, r.remotes)), m.next, p.offset, p.limit)
	r.cut = p.drops && m.cut
	more := func(q federated) bool { return !q.result.Whole && len(q.result.Hits) >= p.offset+p.limit }
	for left := p.wholeLists() || p.drops && !slices.ContainsFunc(r.queries, more); left; {
		_, left = m.next()
	}
	if m.err != nil {
		return m.err
	}
	r.hits = slices.DeleteFunc(r.hits, func(h federatedHit) bool { return h.spoilt() })
	for _, s := range sets {
		r.total += cardinality(s.candidates) - s.dropped
	}
	for _, a := range r.remotes {
		r.total = addSaturated(r.total, a.total)
	}
	return nil
}

// askRemotes starts to ask other instances. The channel gets their answers; it is nil if there are no instances to ask. forget stops
// waiting for the rest.
func (r *FederatedRequest) askRemotes(ctx context.Context) (answers chan []*RemoteAnswer, forget func()) {
	if r.Remotes == nil {
		return nil, func() {}
	}
	return r.ask(ctx, r.Remotes)
}

// ask has remotes answer at the same time as the local search. forget stops waiting for the rest.
func (r *FederatedRequest) ask(ctx context.Context, remotes func(context.Context) []*RemoteAnswer) (answers chan []*RemoteAnswer, forget func()) {
	ctx, forget = context.WithCancel(ctx)
	answers = make(chan []*RemoteAnswer, 1)
	go func() { answers <- remotes(ctx) }()
	return answers, forget
}

// await waits for other instances and meanwhile releases the turn. Otherwise instances that ask each other would wait for each
// other's searches.
func (r *FederatedRequest) await(ctx context.Context, answers chan []*RemoteAnswer) ([]*RemoteAnswer, error) {
	select {
	case a := <-answers:
		return a, firstRefusal(a)
	default:
	}
	t := turns.Of(ctx)
	t.Pause()
	defer t.Resume()
	select {
	case a := <-answers:
		return a, firstRefusal(a)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// firstRefusal returns the error of an answer for which this instance had no memory.
func firstRefusal(answers []*RemoteAnswer) error {
	for _, a := range answers {
		if a.Refused != nil {
			return a.Refused
		}
	}
	return nil
}

// prepare checks a query against its index.
func (r *FederatedResponse) prepare(ctx context.Context, i int) error {
	asked := &r.request.Queries[i]
	request := *asked.Request
	if d := r.request.Distinct; d != nil {
		request.Distinct = d
	}
	q := &r.queries[i]
	*q = federated{Response: &Response{view: asked.View, request: &request}, weight: asked.Weight, position: asked.Position}
	var recorded *stages
	if r.request.ShowPerformanceDetails && r.request.AsSearch == nil {
		recorded = new(stages)
	}
	defer recorded.timed("search")()
	var err error
	if q.ranking, err = newRanking(ctx, asked.View, &request, recorded); err != nil {
		return &QueryError{i, err}
	}
	switch {
	case r.request.Proxy:
		q.leaves = leaving(asked.View, r.request.Leaves)
	case asked.Shared && r.request.ForeignNetwork != nil:
		q.leaves = leaving(asked.View, r.request.Foreign.LeftIDs(asked.View))
	default:
		if q.hydrate, err = request.Foreign.hydration(asked.View); err != nil {
			return &QueryError{i, err}
		}
	}
	q.distanceFrom = firstPoint(q.ranking.sort)
	return nil
}

// maxRank limits offset and limit, so that their sum does not overflow.
const maxRank = math.MaxInt / 4

// page works out the window of ranks that is asked.
func (r *FederatedRequest) page() (offset, limit int, paged bool) {
	if r.Page == nil && r.HitsPerPage == nil {
		return min(r.Offset, maxRank), min(r.Limit, maxRank), false
	}
	page, perPage := r.paging()
	switch {
	case page == 0 || perPage == 0:
		return 0, 0, true
	case page-1 > maxRank/perPage:
		return maxRank, perPage, true
	}
	return (page - 1) * perPage, perPage, true
}

// paging returns the requested page in page mode, and the number of hits per page.
func (r *FederatedRequest) paging() (page, perPage int) {
	page, perPage = 1, defaultHitsPerPage
	if r.Page != nil {
		page = *r.Page
	}
	if r.HitsPerPage != nil {
		perPage = min(*r.HitsPerPage, maxRank)
	}
	return page, perPage
}

// indexSet is what all queries of one index together found.
type indexSet struct {
	view       *index.View
	candidates []*roaring.Bitmap // by segment: not modified
	less       []*roaring.Bitmap // by segment: candidates that the merge found to be duplicates; nil: none
	dropped    int               // duplicates that the merge found
}

// drop records that a hit is a duplicate of a hit of another query or index. The hit may not be a candidate: with exact totals,
// another document with the same value may represent it there.
func (s *indexSet) drop(segment int, row uint32) {
	s.dropped++
	if !s.candidates[segment].Contains(row) {
		return
	}
	if s.less == nil {
		s.less = make([]*roaring.Bitmap, len(s.candidates))
	}
	if s.less[segment] == nil {
		s.less[segment] = roaring.New()
	}
	s.less[segment].Add(row)
}

// candidatesByIndex unites the candidates of the queries of each index, by uid.
func candidatesByIndex(queries []federated) map[string]*indexSet {
	sets := make(map[string]*indexSet)
	for i := range queries {
		q := &queries[i]
		s := sets[q.view.UID]
		if s == nil {
			sets[q.view.UID] = &indexSet{view: q.view, candidates: q.result.Candidates}
			continue
		}
		united := make([]*roaring.Bitmap, len(s.candidates))
		for i := range united {
			united[i] = roaring.Or(s.candidates[i], q.result.Candidates[i])
		}
		s.candidates = united
	}
	return sets
}

// candidateBytes returns the memory of a query's documents until all are merged.
func candidateBytes(candidates []*roaring.Bitmap) int64 {
	n := int64(0)
	for _, rows := range candidates {
		if rows != nil {
			n += int64(rows.GetSizeInBytes())
		}
	}
	return n
}

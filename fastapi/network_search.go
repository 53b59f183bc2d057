package fastapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/network"
	"svc/internal/rank"
	"svc/internal/search"
	"svc/internal/shard"
)

// proxied reports whether another instance sends the search to merge the answer with others. It then gets values of hidden
// attributes, by which it sorts and deduplicates hits. So this needs the key of an instance.
func (s *Server) proxied(ctx *fasthttp.RequestCtx) (bool, error) {
	if string(headerProxySearch.in(&ctx.Request.Header)) != "true" {
		return false, nil
	}
	if err := s.features.need("network", "searches requested by another instance"); err != nil {
		return true, err
	}
	if !s.mayMerge(ctx) {
		return true, auth.Refuse("The header `%s` is reserved for other instances of the network. Their key must be the `searchApiKey` of this instance's own entry in the network, "+
			"or a key with the actions `%s` and `%s` on the indexes `*`. To let another instance search here, create such a key here (POST /keys), and give it there as `searchApiKey` of this remote (PATCH /network).",
			headerProxySearch, actionSearch, actionNetworkGet)
	}
	s.answersBy(ctx)
	return true, s.network.Behind()
}

// answersBy tells another instance which version of the network the answer uses.
func (s *Server) answersBy(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set(network.VersionHeader, s.network.AnswersBy(string(headerNetworkVersion.in(&ctx.Request.Header))))
}

// mayMerge reports whether the caller is another instance, or has the rights of one.
func (s *Server) mayMerge(ctx *fasthttp.RequestCtx) bool {
	return caller(ctx).MayOnAll(string(actionNetworkGet)) || s.network.IsSearchKey(credential(ctx))
}

// useNetwork reports whether a search includes the other instances.
func (s *Server) useNetwork(in *searchInput) bool {
	use, _ := s.readsNetwork(in.network) // checkSearch reports the error
	return use
}

// distribution is a federated search to be sent to the instances that take part.
type distribution struct {
	s       *Server
	request *search.FederatedRequest
	parts   []network.Part // of queries that use the network; see parts
	planned bool
	remotes map[string]*remoteQueries
	ring    *shard.Ring // of another instance that asks; nil: this one's
	of      []int       // by local query: the index of its query in the request
	foreign []string    // indexes whose documents are inserted into the merged hits
	reads   *networkRead
	now     time.Time // that all instances look at
}

// remoteQueries are the queries for one remote.
type remoteQueries struct {
	list    []network.RemoteQuery
	uids    []string // of their indexes
	vectors bool     // a query asks for vectors
}

func (s *Server) distribute(r *search.FederatedRequest) *distribution {
	r.Self = s.network.Searching().SelfName()
	return &distribution{s: s, request: r, remotes: map[string]*remoteQueries{}}
}

// plan returns the parts of a search in the network, the same for all queries of a request.
func (d *distribution) plan() []network.Part {
	if !d.planned {
		d.planned = true
		d.parts = d.s.network.Parts()
		d.request.Networked = d.request.Networked || len(d.parts) > 0
		if behind := d.s.network.Behind(); behind != nil && slices.ContainsFunc(d.parts, func(p network.Part) bool { return p.Local }) {
			d.request.SelfErr = apierr.From(behind)
		}
	}
	return d.parts
}

// share prepares a query for all instances: it resolves the foreign indexes of the filter, and foreign documents are inserted into
// the merged hits. Without a leader, each instance does so itself.
func (d *distribution) share(ctx context.Context, r *search.Request, view func() (*index.View, error)) error {
	if r.Foreign == nil {
		return nil
	}
	if d.reads == nil {
		d.reads = d.s.newNetworkRead()
	}
	if d.reads.ring == nil {
		return nil
	}
	v, err := view()
	if err != nil {
		return err
	}
	if d.request.ForeignNetwork == nil {
		d.request.Foreign, d.request.ForeignNetwork, d.request.Errors = r.Foreign, d.reads.foreign(), d.reads.errs
	}
	if r.Filter.HasForeign() { // other instances never see it, so report errors here
		if err := r.CheckIn(ctx, v); err != nil {
			return err
		}
	}
	if err := r.Foreign.Check(v); err != nil {
		return err
	}
	for _, uid := range r.Foreign.LeftIDs(v) {
		if !slices.Contains(d.foreign, uid) {
			d.foreign = append(d.foreign, uid)
		}
	}
	r.Filter, err = r.Foreign.Resolve(ctx, d.request.ForeignNetwork, v, r.Filter, "invalid_search_filter", r.Contains)
	return err
}

// add gives query i of the request to the instance of a part. view opens its index here.
func (d *distribution) add(p network.Part, i int, uid string, r *search.Request, weight float64, position int, view func() (*index.View, error)) error {
	if p.Shard != "" {
		sharded := *r
		sharded.Filter = filter.And(r.Filter, filter.InShard(p.Shard))
		r = &sharded
	}
	if p.Local {
		v, err := view()
		if err != nil {
			return err
		}
		d.request.Queries = append(d.request.Queries, search.FederatedQuery{View: v, Request: r, Weight: weight, Position: position, Shared: p.Shard != ""})
		d.of = append(d.of, i)
		return nil
	}
	q := d.remotes[p.Remote]
	if q == nil {
		q = &remoteQueries{}
		d.remotes[p.Remote] = q
	}
	body := r.AppendRemote(nil, uid, weight, position)
	if p.Shard != "" { // with a leader, it would search the network by default
		body = append([]byte(`{"useNetwork":false,`), body[1:]...)
	}
	q.list = append(q.list, network.RemoteQuery{Body: body, Shard: p.Shard})
	q.uids = append(q.uids, uid)
	q.vectors = q.vectors || r.RetrieveVectors
	return nil
}

// send has the remotes asked when the search runs.
func (d *distribution) send() {
	if len(d.remotes) == 0 {
		return
	}
	asked := d.asked(d.request)
	d.request.Remotes = func(ctx context.Context) []*search.RemoteAnswer { return d.s.network.Search(ctx, asked, d.s.beside) }
	d.request.RemoteHits = func(ctx context.Context, r *search.FederatedRequest) []*search.RemoteAnswer {
		return d.s.network.Search(ctx, d.asked(r), d.s.beside)
	}
	if d.request.GroupBy == nil {
		return
	}
	d.request.RemoteGroups = func(ctx context.Context, keys []rank.GroupKey) []*search.RemoteAnswer {
		r := *d.request
		r.GroupKeys = keys
		return d.s.network.Search(ctx, d.asked(&r), d.s.beside)
	}
}

// asked returns the request to the remotes.
func (d *distribution) asked(r *search.FederatedRequest) []network.RemoteSearch {
	var asked []network.RemoteSearch
	for name, q := range d.remotes {
		var facets []search.IndexFacets
		for _, f := range r.Facets {
			if f.Names != nil && slices.Contains(q.uids, f.View.UID) {
				facets = append(facets, f)
			}
		}
		asked = append(asked, network.RemoteSearch{Remote: name, Federation: r.AppendRemote(nil, facets), Queries: q.list, Foreign: d.foreign,
			Time: d.now, Asked: r.Asked(facets, len(q.list), q.vectors)})
	}
	slices.SortFunc(asked, func(a, b network.RemoteSearch) int { return cmp.Compare(a.Remote, b.Remote) })
	return asked
}

// networkSearch runs a plain search in the network. in is prepared.
func (s *Server) networkSearch(ctx context.Context, views *index.Views, uid string, in *searchInput, spread search.Spread) (*search.FederatedResponse, error) {
	q := &in.Search
	if q.Cursor != nil {
		return nil, apierr.New("invalid_search_cursor", "`cursor` cannot be used in a search of several instances. Send `\"useNetwork\": false` to read on at this one.")
	}
	start := time.Now()
	found, err := s.searchInstances(ctx, views, uid, in, spread)
	if err != nil {
		return nil, err
	}
	if found.Degraded() {
		s.metrics.degraded.Add(1)
	}
	if q.Suggest && found.None() {
		err = s.suggestNetwork(ctx, views, uid, in, spread, start, found)
	}
	return found, err
}

// searchInstances searches all instances once.
func (s *Server) searchInstances(ctx context.Context, views *index.Views, uid string, in *searchInput, spread search.Spread) (*search.FederatedResponse, error) {
	q := &in.Search
	r := &search.FederatedRequest{
		Offset: q.Offset, Limit: q.Limit, Page: q.Page, HitsPerPage: q.HitsPerPage, Distinct: q.Distinct, ShowPerformanceDetails: q.ShowPerformanceDetails,
		Waited: q.Waited, ID: q.ID, Metadata: q.Metadata, AsSearch: &q.Query, Reorder: s.personal(ctx, in), Aggregations: q.Aggregations, GroupBy: q.GroupBy, Suggest: q.Suggest,
	}
	d := s.distribute(r)
	d.now = q.Now
	single := *q
	single.Aggregations, single.GroupBy = nil, nil
	single.Page, single.HitsPerPage, single.Distinct, single.Facets, single.ShowPerformanceDetails, single.ExplainPlan = nil, nil, nil, nil, false, false
	view := func() (*index.View, error) { return queriedView(views, uid) }
	if q.Distinct == nil {
		r.Distinct = sharedDistinct(view)
	}
	if q.Facets != nil {
		v, err := view()
		if err != nil {
			return nil, err
		}
		r.Facets, r.MergeFacets = []search.IndexFacets{{View: v, Names: q.Facets}}, &search.MergeFacets{}
	}
	if err := d.share(ctx, &single, view); err != nil {
		return nil, err
	}
	for position, p := range d.plan() {
		r.AddPart(0, position, uid, &single, 1)
		if err := d.add(p, 0, uid, &single, 1, position, view); err != nil {
			return nil, err
		}
	}
	d.send()
	found, err := search.Federate(ctx, r, spread)
	if e := (*search.QueryError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return found, err
}

// sharedDistinct returns the distinctAttribute of an index that applies to the hits of all instances. It is nil if there is none, or
// if instances may not show its values to each other.
func sharedDistinct(view func() (*index.View, error)) *string {
	v, err := view()
	if err != nil {
		return nil
	}
	field := v.Settings.DistinctAttribute
	if info := v.Fields.InfoOf(field); field == "" || !info.Filters() {
		return nil
	}
	return &field
}

// oneByOne is search.Spread for work with only its own turn.
func oneByOne(ctx context.Context) search.Spread {
	return func(n int, run func(context.Context, int) error) error {
		for i := range n {
			if err := run(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
}

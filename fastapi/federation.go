package fastapi

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/network"
	"svc/internal/search"
)

// federationInput has the options of a multi-search for merging its hits into one list.
type federationInput struct {
	search.FederatedRequest
	facets      []facetsInput
	userContext *string // nil: the hits are not personalized
}

// facetsInput are the facets asked of one index.
type facetsInput struct {
	uid   string
	names []string // nil: null
}

const federatedGroupBy = "invalid_multi_search_group_by"

func newFederationInput() *federationInput {
	return &federationInput{FederatedRequest: search.FederatedRequest{Limit: defaultLimit}}
}

var federationParams = []param[federationInput]{
	{name: "offset", code: "invalid_search_offset", kind: count, set: func(f *federationInput, a *arg) error { f.Offset = a.count; return nil }},
	{name: "limit", code: "invalid_search_limit", kind: count, set: func(f *federationInput, a *arg) error { f.Limit = a.count; return nil }},
	{name: "page", code: "invalid_search_page", kind: count, null: true, set: func(f *federationInput, a *arg) error {
		page := a.count
		f.Page = &page
		return nil
	}},
	{name: "hitsPerPage", code: "invalid_search_hits_per_page", kind: count, null: true, set: func(f *federationInput, a *arg) error {
		hits := a.count
		f.HitsPerPage = &hits
		return nil
	}},
	{name: "facetsByIndex", code: "invalid_multi_search_facets_by_index", kind: raw, shape: mapOf(orNull(listOf(schema{"type": "string"}))), set: setFacetsByIndex},
	{name: "mergeFacets", code: "invalid_multi_search_merge_facets", kind: raw, null: true, shape: objectOf(mergeFacetsParams), set: func(f *federationInput, a *arg) error {
		f.MergeFacets = &search.MergeFacets{}
		return decode(f.MergeFacets, a.json, mergeFacetsParams, object{path: a.path() + ".", code: a.code, notCode: a.code})
	}},
	{name: "aggregations", code: "invalid_multi_search_aggregations", kind: raw, null: true, shape: aggregationsShape, set: func(f *federationInput, a *arg) (err error) {
		f.Aggregations, err = aggregate.Parse(a.json, a.path(), a.code)
		return err
	}},
	{name: "groupBy", code: federatedGroupBy, kind: raw, null: true, shape: objectOf(groupByParams(federatedGroupBy), "attribute"), set: func(f *federationInput, a *arg) (err error) {
		f.GroupBy, err = parseGroupBy(a)
		return err
	}},
	{name: "groupKeys", code: federatedGroupBy, kind: textual, null: true, most: unlimited, set: func(f *federationInput, a *arg) (err error) {
		if f.GroupKeys, err = search.ParseGroupKeys(a.text); err != nil {
			return a.expected("what another instance of a network sends")
		}
		return nil
	}},
	{name: "distinct", code: "invalid_search_distinct", kind: textual, null: true, set: func(f *federationInput, a *arg) error {
		attribute := a.text
		f.Distinct = &attribute
		return nil
	}},
	{name: "showPerformanceDetails", code: "invalid_search_show_performance_details", kind: flag, set: func(f *federationInput, a *arg) error {
		f.ShowPerformanceDetails = a.flag
		return nil
	}},
	{name: "personalize", code: "invalid_search_personalize", kind: raw, null: true, shape: objectOf(federationPersonalizeParams, "userContext"), set: func(f *federationInput, a *arg) error {
		f.userContext = nil
		if err := decode(f, a.json, federationPersonalizeParams, object{path: a.path() + ".", code: a.code, notCode: a.code}); err != nil {
			return err
		}
		if f.userContext == nil {
			return noUserContext(a)
		}
		return nil
	}},
}

var federationPersonalizeParams = []param[federationInput]{
	{name: "userContext", code: "invalid_search_personalize_user_context", kind: textual, set: func(f *federationInput, a *arg) error {
		text := a.text
		f.userContext = &text
		return nil
	}},
}

var mergeFacetsParams = []param[search.MergeFacets]{
	{name: "maxValuesPerFacet", code: "invalid_multi_search_max_values_per_facet", kind: count, null: true, set: func(m *search.MergeFacets, a *arg) error {
		values := a.count
		m.MaxValues = &values
		return nil
	}},
}

// setFacetsByIndex reads facetsByIndex: an object of lists, or null for an index without facets. If an index repeats, the last list
// counts.
func setFacetsByIndex(f *federationInput, a *arg) error {
	const form = "an object with an array of facets for each index uid"
	if !a.json.object() {
		return a.expected(form)
	}
	f.facets = nil
	for name, names := range a.json.members() {
		member := arg{json: names, in: a.path() + ".", name: string(name), code: a.code}
		uid, _ := value(slices.Concat([]byte{'"'}, name, []byte{'"'})).text()
		if !validUID(uid) {
			return apierr.New(a.code, "`%s` has a member `%s`, which must be %s.", a.path(), shorten(name), uidForm)
		}
		if err := a.entries(len(f.facets)+1, maxListEntries); err != nil {
			return err
		}
		if !names.null() && !member.readJSON(list) {
			return member.expected(wanted[list])
		}
		if err := member.fits(list, 0); err != nil {
			return err
		}
		f.facets = slices.DeleteFunc(f.facets, func(other facetsInput) bool { return other.uid == uid })
		f.facets = append(f.facets, facetsInput{uid, member.list})
	}
	slices.SortFunc(f.facets, func(a, b facetsInput) int { return strings.Compare(a.uid, b.uid) })
	return nil
}

// checkFederated refuses options of a query that belong to the federation.
func (s *Server) checkFederated(q *queryInput, f *federationInput) error {
	switch {
	case q.paginated != "":
		return apierr.New("invalid_multi_search_query_pagination", "`%s` cannot be set for one query of a federated search. Set it in `federation`, for all of them.", q.paginated)
	case len(q.Search.Facets) > 0:
		return apierr.New("invalid_multi_search_query_facets", "`facets` cannot be set for one query of a federated search. Use `federation.facetsByIndex.%s`.", q.uid)
	case q.Search.Aggregations != nil:
		return apierr.New("invalid_multi_search_query_aggregations", "`aggregations` cannot be set for one query of a federated search. Set it in `federation`, for all of them.")
	case q.Search.GroupBy != nil:
		return apierr.New("invalid_multi_search_query_group_by", "`groupBy` cannot be set for one query of a federated search. Set it in `federation`, for all of them.")
	case q.Search.Cursor != nil:
		return apierr.New("invalid_multi_search_query_cursor", "`cursor` cannot be given for one query of a federated search. Search its index alone to read on by cursor.")
	case q.Search.Suggest:
		return apierr.New("invalid_multi_search_query_suggest", "`suggest` cannot be set for one query of a federated search. To get suggestions, search the index alone.")
	case q.personalize:
		return apierr.New("invalid_multi_search_query_personalization", "`personalize` cannot be set for one query of a federated search. Set it in `federation`, for all of them.")
	case q.timed:
		return apierr.New("invalid_multi_search_query_show_performance_details", "`showPerformanceDetails` cannot be set for one query of a federated search. Set it in `federation`.")
	case q.Search.ExplainPlan:
		return apierr.New("invalid_search_explain_plan", "`explainPlan` cannot be set for one query of a federated search. To get the plan, search the index alone.")
	case q.Search.Distinct != nil && f.Distinct != nil:
		return apierr.New("invalid_multi_search_distinct", "`distinct` is set both for this query and in `federation`. Remove one of them.")
	case q.options != nil && q.options.remote != nil:
		if err := s.features.need("network", "`federationOptions.remote`"); err != nil {
			return err
		}
		if q.network != nil && *q.network {
			return apierr.New("invalid_multi_search_federation_options", "`federationOptions.remote` and `useNetwork` exclude each other. Remove one of them.")
		}
		if remote := *q.options.remote; s.network.Network().Remotes[remote] == nil {
			return apierr.New("invalid_multi_search_remote", "There is no remote `%s` in the network.", remote)
		}
	case q.options != nil && q.options.position != nil:
		return s.features.need("network", "`federationOptions.queryPosition`")
	}
	return nil
}

// federatedSearch answers with one list of hits.
func (s *Server) federatedSearch(ctx *fasthttp.RequestCtx, m *multiInput) error {
	proxied, err := s.proxied(ctx)
	if err != nil {
		return err
	}
	for i := range m.queries {
		if err := s.checkFederated(&m.queries[i], m.federation); err != nil {
			return insideQuery(i, err)
		}
	}
	switch f := m.federation; {
	case f.GroupBy != nil && f.userContext != nil:
		return apierr.New(federatedGroupBy, "`federation.groupBy` and `federation.personalize` exclude each other: leave one of them out.")
	case f.GroupKeys != nil && (!proxied || f.GroupBy == nil):
		return apierr.New(federatedGroupBy, "`federation.groupKeys` is reserved for other instances of a network: leave it out.")
	}
	limited, waited, err := s.turn(ctx, max(m.federation.Limit, len(m.queries)))
	if err != nil {
		return err
	}
	defer limited.end()
	m.federation.Waited = waited
	views := s.catalog.Views()
	defer views.Release()
	r := &m.federation.FederatedRequest
	r.ID, r.Metadata, r.Proxy = uuid.Must(uuid.NewV7()), wantsMetadata(ctx), proxied
	if m.federation.userContext != nil && !proxied { // the instance that the client asked personalizes the merged hits
		if err := s.needReranker(); err != nil {
			return err
		}
		r.Reorder = s.reorder(limited, *m.federation.userContext, m.joinedQueries())
	}
	if proxied {
		r.Leaves = splitList(string(headerProxyForeign.in(&ctx.Request.Header)))
	}
	d := s.distribute(r)
	d.now = sentTime(ctx, proxied)
	if proxied {
		d.ring = s.network.Ring(string(headerNetworkVersion.in(&ctx.Request.Header)))
	}
	for i := range m.queries {
		if err := s.addFederated(ctx, limited, d, views, &m.queries[i], i); err != nil {
			return insideQuery(i, err)
		}
	}
	if r.Facets, err = federatedFacets(ctx, views, m.federation.facets); err != nil {
		return err
	}
	d.send()
	found, err := search.Federate(limited, r, limited.spread)
	if err != nil {
		if q := (*search.QueryError)(nil); errors.As(err, &q) {
			return insideQuery(d.of[q.Query], q.Err)
		}
		return err
	}
	if found.Degraded() {
		s.metrics.degraded.Add(1)
	}
	if found.ForPeers() && acceptsPeers(headerAccept.in(&ctx.Request.Header)) {
		return answerAs(ctx, search.PeerType, func(dst []byte) ([]byte, error) { return found.AppendPeer(limited, dst) })
	}
	if err := answerWith(ctx, func(dst []byte) ([]byte, error) { return found.AppendJSON(limited, dst) }); err != nil {
		return err
	}
	for i := range m.queries {
		if !proxied { // the instance that the client asked counts
			s.countSearch(m.queries[i].uid, &m.queries[i].searchInput, i, found.None(), arrival(ctx))
		}
	}
	return nil
}

// joinedQueries returns the distinct texts of the queries, one per line.
func (m *multiInput) joinedQueries() string {
	var texts []string
	for i := range m.queries {
		if q := strings.TrimSpace(m.queries[i].Search.Query); q != "" && !slices.Contains(texts, q) {
			texts = append(texts, q)
		}
	}
	return strings.Join(texts, "\n")
}

// acceptsPeers reports whether the client accepts search.PeerType.
func acceptsPeers(accept []byte) bool {
	for item := range bytes.SplitSeq(accept, []byte{','}) {
		if name, weight := qualityOf(item); string(name) == search.PeerType && weight > 0 {
			return true
		}
	}
	return false
}

// addFederated adds a query to run here, or to send to the instances that run it.
func (s *Server) addFederated(ctx *fasthttp.RequestCtx, limited context.Context, d *distribution, views *index.Views, q *queryInput, i int) error {
	if err := s.prepare(ctx, q.uid, &q.searchInput); err != nil {
		return err
	}
	q.Search.Foreign = s.foreignAmong(ctx, views)
	q.Search.Facets, q.Search.Shards, q.Search.Now = nil, d.ring, d.now
	view := func() (*index.View, error) { return queriedView(views, q.uid) }
	weight, position := 1.0, i
	var remote *string
	if o := q.options; o != nil {
		weight, remote = o.weight, o.remote
		if o.position != nil {
			position = *o.position
		}
	}
	switch {
	case remote != nil:
		d.request.Networked = true
		return d.add(network.Part{Remote: *remote, Local: *remote == d.request.Self}, i, q.uid, &q.Search, weight, position, view)
	case !d.request.Proxy && s.useNetwork(&q.searchInput):
		if err := d.share(limited, &q.Search, view); err != nil {
			return err
		}
		parts := d.plan()
		if q.Search.Distinct == nil && d.request.Distinct == nil && len(parts) > 0 {
			q.Search.Distinct = sharedDistinct(view)
		}
		for _, p := range parts {
			d.request.AddPart(i, position, q.uid, &q.Search, weight)
			if err := d.add(p, i, q.uid, &q.Search, weight, position, view); err != nil {
				return err
			}
		}
		return nil
	case d.request.Proxy:
		d.request.AddPart(i, position, q.uid, &q.Search, weight)
	}
	return d.add(network.Part{Local: true}, i, q.uid, &q.Search, weight, position, view)
}

// federatedFacets resolves the indexes whose facets are requested. It skips indexes that the caller may not know: they have no query,
// or the request would have been refused.
func federatedFacets(ctx *fasthttp.RequestCtx, views *index.Views, asked []facetsInput) ([]search.IndexFacets, error) {
	var facets []search.IndexFacets
	for _, f := range asked {
		f.uid = aliasesOf(ctx).Index(f.uid)
		if !caller(ctx).Reaches(f.uid) {
			continue
		}
		v, err := queriedView(views, f.uid)
		if err != nil {
			e := *apierr.From(err)
			e.Message = "Inside `.federation.facetsByIndex`: " + e.Message
			return nil, &e
		}
		facets = append(facets, search.IndexFacets{View: v, Names: f.names})
	}
	return facets, nil
}

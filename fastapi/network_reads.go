package fastapi

import (
	"context"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/network"
	"svc/internal/search"
	"svc/internal/shard"
	"svc/internal/turns"
)

// Reads by other instances, one message of package network each. The answers are in the form of search.ReadType.

// readLimits limits lists in requests of other instances. A network may have any number of shards, and ask for any number of ids.
const readLimits = unlimited

// admitPeer refuses callers that are not instances of the network, and returns an error if this instance cannot answer for others.
// ring is the ring of shards that the caller uses.
func (s *Server) admitPeer(ctx *fasthttp.RequestCtx) (ring *shard.Ring, err error) {
	if err := s.needNetwork(); err != nil {
		return nil, err
	}
	if !s.mayMerge(ctx) {
		return nil, auth.Refuse("This route is reserved for other instances of the network. Their key must be the `searchApiKey` of this instance's own entry in the network, "+
			"or a key with the actions `%s` and `%s` on the indexes `*`.", actionSearch, actionNetworkGet)
	}
	s.answersBy(ctx)
	return s.peerRing(ctx), s.network.Behind()
}

// peerRing returns the ring of shards that another instance uses; nil: that of the catalog.
func (s *Server) peerRing(ctx *fasthttp.RequestCtx) *shard.Ring {
	return s.network.Ring(string(headerNetworkVersion.in(&ctx.Request.Header)))
}

// peerDocuments is a request of another instance for documents.
type peerDocuments struct {
	uid    string
	fetch  search.FetchRequest
	shards []peerShard
}

// peerShard is the part of a request for one shard.
type peerShard struct {
	name          string
	offset, limit int
	ids           []string // nil: not given
}

var peerDocumentsParams = join(peerIndex(func(p *peerDocuments) *string { return &p.uid }),
	lift(fetchShaping, func(p *peerDocuments) *search.FetchRequest { return &p.fetch }),
	lift(fetchAggregating, func(p *peerDocuments) *search.FetchRequest { return &p.fetch }),
	[]param[peerDocuments]{
		{name: "values", code: "bad_request", kind: flag, set: func(p *peerDocuments, a *arg) error { p.fetch.Values = a.flag; return nil }},
		{name: "bare", code: "bad_request", kind: flag, set: func(p *peerDocuments, a *arg) error { p.fetch.Bare = a.flag; return nil }},
		{name: "shards", code: "bad_request", kind: raw, shape: listOf(objectOf(peerShardParams)), set: func(p *peerDocuments, a *arg) error {
			if !a.json.array() {
				return a.expected("an array of objects")
			}
			for e := range a.json.elements() {
				var shard peerShard
				if err := decode(&shard, e, peerShardParams, object{path: "shards.", code: a.code}); err != nil {
					return err
				}
				p.shards = append(p.shards, shard)
			}
			return nil
		}},
	})

var peerShardParams = []param[peerShard]{
	{name: "name", code: "bad_request", kind: textual, set: func(s *peerShard, a *arg) error { s.name = a.text; return nil }},
	{name: "offset", code: "bad_request", kind: count, set: func(s *peerShard, a *arg) error { s.offset = a.count; return nil }},
	{name: "limit", code: "bad_request", kind: count, set: func(s *peerShard, a *arg) error { s.limit = a.count; return nil }},
	{name: "ids", code: "bad_request", kind: list, null: true, most: readLimits, set: func(s *peerShard, a *arg) error { s.ids = a.list; return nil }},
}

// peerIndex is the parameter with the index of a request from another instance.
func peerIndex[T any](at func(*T) *string) []param[T] {
	return []param[T]{{name: "indexUid", code: "invalid_index_uid", kind: textual, shape: uidShape, set: func(dst *T, a *arg) error {
		if !validUID(a.text) {
			return a.expected(uidForm)
		}
		*at(dst) = a.text
		return nil
	}}}
}

// networkDocuments sends documents to an instance that lists those of the network.
func (s *Server) networkDocuments(ctx *fasthttp.RequestCtx) error {
	if err := s.needNetwork(); err != nil {
		return err
	}
	if !caller(ctx).MayOnAll(string(actionDocumentsGet)) {
		return auth.Refuse("This route is reserved for other instances of the network. Their `writeApiKey` for this instance needs the action `%s` on the indexes `*`.", actionDocumentsGet)
	}
	if err := s.network.Behind(); err != nil {
		return err
	}
	var p peerDocuments
	if err := readObject(s, ctx, &p, peerDocumentsParams); err != nil {
		return err
	}
	if err := s.checkFilter(p.fetch.Filter); err != nil {
		return err
	}
	hits := 0
	for i := range p.shards {
		hits += min(p.shards[i].limit, largeHits)
	}
	limited, _, err := s.turn(ctx, hits)
	if err != nil {
		return err
	}
	defer limited.end()
	v, err := s.namedPlain(p.uid)
	if err != nil {
		return err
	}
	defer v.Release()
	p.fetch.Contains, p.fetch.Shards = s.features.on("containsFilter"), s.peerRing(ctx)
	return answerAs(ctx, search.ReadType, func(dst []byte) ([]byte, error) {
		for i := range p.shards {
			one := p.shards[i]
			p.fetch.Shard, p.fetch.Offset, p.fetch.Limit, p.fetch.IDs = one.name, one.offset, one.limit, one.ids
			if dst, err = search.AppendPeerDocuments(limited, dst, v, &p.fetch, search.ReadBytes/len(p.shards)); err != nil {
				return nil, err
			}
		}
		return dst, nil
	})
}

// peerFacets is a facet search as another instance asks it.
type peerFacets struct {
	searchInput
	uid    string
	shards []string
}

var peerFacetsParams = join(peerIndex(func(p *peerFacets) *string { return &p.uid }), peerShards(func(p *peerFacets) *[]string { return &p.shards }),
	[]param[peerFacets]{{name: "search", code: "bad_request", kind: raw, shape: objectOf(facetSearchParams, "facetName"), set: func(p *peerFacets, a *arg) error {
		return decode(&p.searchInput, a.json, facetSearchParams, object{path: "search.", code: "bad_request"})
	}}})

// peerShards is the parameter with the shards of a request from another instance.
func peerShards[T any](at func(*T) *[]string) []param[T] {
	return []param[T]{{name: "shards", code: "bad_request", kind: list, most: readLimits, set: func(dst *T, a *arg) error { *at(dst) = a.list; return nil }}}
}

// networkFacets sends values of a facet to an instance that merges those of the network.
func (s *Server) networkFacets(ctx *fasthttp.RequestCtx) error {
	ring, err := s.admitPeer(ctx)
	if err != nil {
		return err
	}
	p := peerFacets{searchInput: newSearchInput()}
	if err := readObject(s, ctx, &p, peerFacetsParams); err != nil {
		return err
	}
	if err := s.prepare(ctx, p.uid, &p.searchInput); err != nil {
		return err
	}
	limited, _, err := s.turn(ctx, p.hits())
	if err != nil {
		return err
	}
	defer limited.end()
	ix, err := s.named(p.uid)
	if err != nil {
		return err
	}
	v, err := ix.View()
	if err != nil {
		return err
	}
	defer v.Release()
	p.Search.Shards = ring
	p.inShards(p.shards)
	return answerAs(ctx, search.ReadType, func(dst []byte) ([]byte, error) {
		found, err := search.FindFacets(limited, v, &p.FacetRequest)
		if err != nil {
			return nil, err
		}
		return found.AppendPeer(limited, dst)
	})
}

// peerWords is the search of another instance about the words of its query.
type peerWords struct {
	searchInput
	uid    string
	shards []string
}

var peerWordsParams = join(peerIndex(func(p *peerWords) *string { return &p.uid }), peerShards(func(p *peerWords) *[]string { return &p.shards }),
	[]param[peerWords]{{name: "search", code: "bad_request", kind: raw, shape: objectOf(narrowing), set: func(p *peerWords, a *arg) error {
		return decode(&p.searchInput, a.json, narrowing, object{path: "search.", code: "bad_request"})
	}}})

// networkWords sends which words of a query the documents here contain, and which words the others may stand for.
func (s *Server) networkWords(ctx *fasthttp.RequestCtx) error {
	ring, err := s.admitPeer(ctx)
	if err != nil {
		return err
	}
	p := peerWords{searchInput: newSearchInput()}
	if err := readObject(s, ctx, &p, peerWordsParams); err != nil {
		return err
	}
	if err := s.prepare(ctx, p.uid, &p.searchInput); err != nil {
		return err
	}
	limited, _, err := s.turn(ctx, 1)
	if err != nil {
		return err
	}
	defer limited.end()
	ix, err := s.named(p.uid)
	if err != nil {
		return err
	}
	v, err := ix.View()
	if err != nil {
		return err
	}
	defer v.Release()
	p.Search.Shards = ring
	p.inShards(p.shards)
	found, err := search.FindMisspelt(limited, v, &p.Search, time.Now(), true)
	if err != nil {
		return err
	}
	return answerAs(ctx, search.ReadType, func(dst []byte) ([]byte, error) {
		if found == nil {
			return append(dst, 0), nil
		}
		return found.AppendPeer(dst), nil
	})
}

// inShards restricts a search to some shards; "" means all documents.
func (in *searchInput) inShards(names []string) {
	if len(names) > 0 && names[0] != "" {
		in.Search.Filter = filter.And(in.Search.Filter, filter.InShards(names))
	}
}

// peerForeign is a request of another instance about a foreign index: for the ids that a filter selects, or for documents by id.
type peerForeign struct {
	uid    string
	shards []string
	filter *filter.Expr
	ids    []string
}

var peerForeignParams = join(peerIndex(func(p *peerForeign) *string { return &p.uid }), peerShards(func(p *peerForeign) *[]string { return &p.shards }),
	[]param[peerForeign]{
		{name: "filter", code: "invalid_search_filter", kind: raw, null: true, shape: filterShape, set: func(p *peerForeign, a *arg) (err error) {
			p.filter, err = parseFilter(a)
			return err
		}},
		{name: "ids", code: "bad_request", kind: list, null: true, most: readLimits, set: func(p *peerForeign, a *arg) error { p.ids = a.list; return nil }},
	})

// networkForeign sends the local part of a foreign index to an instance that searches all of them.
func (s *Server) networkForeign(ctx *fasthttp.RequestCtx) error {
	ring, err := s.admitPeer(ctx)
	if err != nil {
		return err
	}
	var p peerForeign
	if err := readObject(s, ctx, &p, peerForeignParams); err != nil {
		return err
	}
	if err := s.features.need("foreignKeys", "documents of foreign indexes"); err != nil {
		return err
	}
	if err := s.checkFilter(p.filter); err != nil {
		return err
	}
	limited, _, err := s.turn(ctx, len(p.ids))
	if err != nil {
		return err
	}
	defer limited.end()
	v, err := s.namedPlain(p.uid)
	if err != nil {
		return err
	}
	defer v.Release()
	return answerAs(ctx, search.ReadType, func(dst []byte) ([]byte, error) {
		if p.filter != nil {
			ids, err := search.SelectForeign(limited, v, p.filter, s.features.on("containsFilter"), p.shards, ring)
			if err != nil {
				return nil, err
			}
			return search.AppendPeerIDs(dst, ids), nil
		}
		r := search.NewForeignReader(turns.Of(limited).Account(), v)
		for _, id := range p.ids {
			if err := limited.Yield(); err != nil {
				return nil, err
			}
			if dst, err = r.AppendPeer(dst, []byte(id)); err != nil {
				return nil, err
			}
		}
		return dst, nil
	})
}

// named returns the index that a body names.
func (s *Server) named(uid string) (*index.Index, error) {
	if ix := s.catalog.Get(uid); ix != nil {
		return ix, nil
	}
	return nil, s.catalog.Missing(uid)
}

// namedPlain returns the view of the index that a body names, for routes other than searches. The caller releases it.
func (s *Server) namedPlain(uid string) (*index.View, error) {
	ix, err := s.named(uid)
	if err != nil {
		return nil, err
	}
	return ix.ReadView()
}

// readsNetwork reports whether a request includes the other instances. use is its useNetwork, or nil.
func (s *Server) readsNetwork(use *bool) (bool, error) {
	if use == nil {
		return s.features.on("network") && s.network.Searching().Led(), nil
	}
	return *use, s.features.need("network", "`useNetwork`")
}

// networkRead is a request that reads from all instances of the network.
type networkRead struct {
	s    *Server
	ring *shard.Ring // nil: there is no leader
	// parts say which instance is asked for what: part i is for shard i of the ring.
	parts []network.Part
	errs  *search.RemoteErrors
}

// newNetworkRead begins a read of documents over the network, under one placement of shards. If this instance is behind the leader,
// that is recorded as its error, because its own part may be old.
func (s *Server) newNetworkRead() *networkRead {
	n := &networkRead{s: s, errs: new(search.RemoteErrors)}
	n.parts, n.ring = s.network.Placed()
	if behind := s.network.Behind(); behind != nil {
		for _, p := range n.parts {
			if p.Local {
				n.errs.Add(p.Remote, apierr.From(behind))
				break
			}
		}
	}
	return n
}

// shards returns the shards of all parts, in their order.
func (n *networkRead) shards() []string {
	names := make([]string, len(n.parts))
	for i, p := range n.parts {
		names[i] = p.Shard
	}
	return names
}

// split groups items by the instance that answers for their part: here, or a remote. parts has the part of each item.
func (n *networkRead) split(parts []int) (here []int, remotes map[string][]int) {
	remotes = map[string][]int{}
	for thing, part := range parts {
		if p := n.parts[part]; p.Local {
			here = append(here, thing)
		} else {
			remotes[p.Remote] = append(remotes[p.Remote], thing)
		}
	}
	return here, remotes
}

// read asks remotes while local works here, and passes each answer to use, which returns an error if the answer cannot be used.
// Meanwhile the turn is released.
func (n *networkRead) read(ctx context.Context, q *network.ReadRequest, remotes map[string][]int, local func() error, use func(a *network.ReadAnswer, reading *search.Reading) error) error {
	if len(remotes) == 0 {
		return local()
	}
	asked, cancel := context.WithCancel(ctx)
	answers := make(chan []*network.ReadAnswer, 1)
	var asking sync.WaitGroup
	asking.Go(func() { answers <- n.s.network.Read(asked, q, remotes) })
	defer asking.Wait() // it builds bodies from the caller's data, and charges the account of the request
	defer cancel()
	if err := local(); err != nil {
		return err
	}
	all, err := awaited(ctx, answers)
	if err != nil {
		return err
	}
	for _, a := range all {
		switch {
		case a.Refused != nil:
			return a.Refused
		case a.Err != nil:
			n.errs.Add(a.Remote, a.Err)
			continue
		}
		reading := readingIn(ctx)
		switch err := use(a, reading); {
		case reading.Ended() != nil:
			return reading.Ended()
		case err != nil:
			n.errs.Add(a.Remote, n.s.network.Spoil(ctx, a.Remote, err))
		}
	}
	return nil
}

// readingIn returns the limits for parsing an answer on the goroutine that has the turn.
func readingIn(ctx context.Context) *search.Reading {
	t := turns.Of(ctx)
	return &search.Reading{Hold: t.Account().Hold, Yield: t.Yield}
}

// awaited waits for answers while other requests work.
func awaited(ctx context.Context, answers chan []*network.ReadAnswer) ([]*network.ReadAnswer, error) {
	t := turns.Of(ctx)
	t.Pause()
	defer t.Resume()
	select {
	case all := <-answers:
		return all, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

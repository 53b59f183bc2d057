package fastapi

import (
	"context"
	"time"

	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/network"
	"svc/internal/search"
	"svc/internal/turns"
)

// facetNetwork appends the body of a facet search of all instances. in is prepared.
func (s *Server) facetNetwork(ctx context.Context, dst []byte, v *index.View, in *searchInput) ([]byte, error) {
	start := time.Now()
	n := s.newNetworkRead()
	r := &in.FacetRequest
	if err := search.CheckFacetSearch(ctx, v, r); err != nil {
		return nil, err
	}
	if n.ring != nil {
		var err error
		if r.Search.Filter, err = r.Search.Foreign.Resolve(ctx, n.foreign(), v, r.Search.Filter, "invalid_search_filter", r.Search.Contains); err != nil {
			return nil, err
		}
	}
	here, remotes := n.split(n.each())
	q := &network.ReadRequest{Message: network.Facets, Shards: n.shards(), Body: func(things []int) []byte {
		body := jsontext.AppendQuoted([]byte(`{"indexUid":`), v.UID)
		body = jsontext.AppendStrings(append(body, `,"shards":`...), n.names(things))
		return append(r.AppendRemote(append(body, `,"search":`...)), '}')
	}}
	var parts []*search.FacetValues
	local := func() error {
		if len(here) == 0 {
			return nil
		}
		own := *in
		own.inShards(n.names(here))
		found, err := search.FindFacets(ctx, v, &own.FacetRequest)
		parts = append(parts, found)
		return err
	}
	err := n.read(ctx, q, remotes, local, func(a *network.ReadAnswer, reading *search.Reading) error {
		found, err := search.ParseFacets(a.Body, search.MostFacetValues(v), reading)
		if err == nil {
			parts = append(parts, found)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return search.AppendFacetSearch(turns.Of(ctx).Account(), dst, v, r, parts, n.errs, start)
}

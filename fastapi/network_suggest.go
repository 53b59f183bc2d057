package fastapi

import (
	"context"
	"time"

	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/network"
	"svc/internal/search"
)

// suggestNetwork adds suggestions to the answer of a search without hits on any instance. Each of them is searched on all instances.
// Data of instances that do not answer is missing. The answer names such an instance only if it did not answer the search either.
func (s *Server) suggestNetwork(ctx context.Context, views *index.Views, uid string, in *searchInput, spread search.Spread, start time.Time, found *search.FederatedResponse) error {
	v, err := queriedView(views, uid)
	if err != nil {
		return err
	}
	words, err := s.misspelt(ctx, v, in, start)
	if words == nil || err != nil {
		return err
	}
	other := *in
	other.personalize = false
	q := &other.Search
	q.Suggest, q.Facets, q.Aggregations, q.GroupBy, q.ShowPerformanceDetails, q.ExplainPlan = false, nil, nil, nil, false, false
	q.AttributesToRetrieve, q.AttributesToHighlight, q.AttributesToCrop = []string{}, nil, nil
	q.ShowMatchesPosition, q.RetrieveVectors = false, false
	for _, text := range words.Queries() {
		if words.Late() {
			break
		}
		one := other
		one.Search.Query = text
		hits, err := s.searchInstances(ctx, views, uid, &one, spread)
		if err != nil {
			return err
		}
		if !found.Suggest(text, hits) {
			break
		}
	}
	return nil
}

// misspelt asks all instances for the words of a query. An instance that does not support the message has none.
func (s *Server) misspelt(ctx context.Context, v *index.View, in *searchInput, start time.Time) (words *search.Misspelt, err error) {
	n := s.newNetworkRead()
	own := *in
	if n.ring != nil {
		if own.Search.Filter, err = own.Search.Foreign.Resolve(ctx, n.foreign(), v, own.Search.Filter, "invalid_search_filter", own.Search.Contains); err != nil {
			return nil, err
		}
	}
	here, remotes := n.split(n.each())
	asked := own.Search.AppendRemoteWords(nil)
	q := &network.ReadRequest{Message: network.Words, Shards: n.shards(), Body: func(things []int) []byte {
		body := jsontext.AppendQuoted([]byte(`{"indexUid":`), v.UID)
		body = jsontext.AppendStrings(append(body, `,"shards":`...), n.names(things))
		return append(append(append(body, `,"search":`...), asked...), '}')
	}}
	var others []*search.Misspelt
	local := func() error {
		if len(here) > 0 {
			own.inShards(n.names(here))
		}
		words, err = search.FindMisspelt(ctx, v, &own.Search, start, len(here) > 0)
		return err
	}
	err = n.read(ctx, q, remotes, local, func(a *network.ReadAnswer, reading *search.Reading) error {
		found, err := search.ParseMisspelt(a.Body, reading)
		others = append(others, found)
		return err
	})
	if words == nil || err != nil {
		return nil, err
	}
	for _, o := range others {
		if o != nil {
			words.Add(o)
		}
	}
	return words, nil
}

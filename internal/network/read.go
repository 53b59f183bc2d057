package network

import (
	"context"
	"errors"
	"slices"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/search"
)

// A ReadRequest is a request to other instances that is not a search: for documents, values of facets, documents of foreign indexes,
// or words.
type ReadRequest struct {
	Message *Message // one of Documents, Facets, Foreign and Words
	// Shards are the shards of the things, by thing, or "" for whatever the requested remote has.
	Shards []string
	// Body makes the request for some of the things.
	Body func(things []int) []byte
}

// The messages of read requests.
var (
	Documents = documentsMessage
	Facets    = facetsMessage
	Foreign   = foreignMessage
	Words     = wordsMessage
)

// ReadAnswer is what a remote answered to a ReadRequest.
type ReadAnswer struct {
	Remote  string
	Things  []int         // that it was asked for, in the order of its answer
	Err     *apierr.Error // why there is no answer
	Refused error         // there is no room for the answer here, which fails the request
	Body    []byte        // of search.ReadType
}

// Read requests things from several remotes at once. asked has the things by remote. If a remote fails, its things are requested from
// other owners of the shards. Read returns when all have answered or failed, at the latest after the search timeout. If all owners of
// a shard fail, each of them has an answer with its error.
func (n *Node) Read(ctx context.Context, q *ReadRequest, asked map[string][]int) []*ReadAnswer {
	if len(asked) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.o.SearchTimeout)
	defer cancel()
	now := n.Searching()
	portions := make([]portion, 0, len(asked))
	for _, remote := range sortedNames(asked) {
		portions = append(portions, portion{remote, asked[remote]})
	}
	a := asking[*ReadAnswer]{
		node: n, now: now,
		shard:  func(thing int) string { return q.Shards[thing] },
		failed: func(a *ReadAnswer) bool { return a.Err != nil },
		ask:    func(ctx context.Context, p portion) *ReadAnswer { return n.readOne(ctx, now, q, p) },
	}
	return a.all(ctx, portions, nil)
}

// readOne requests things from one remote. A response with another version of the network is refused. Failures of the caller do not
// count against the remote.
func (n *Node) readOne(ctx context.Context, now *Network, q *ReadRequest, p portion) *ReadAnswer {
	failed := func(err *apierr.Error) *ReadAnswer {
		n.failed(ctx, now, p.remote, err)
		return &ReadAnswer{Remote: p.remote, Things: p.things, Err: err}
	}
	r := now.Remotes[p.remote]
	if r == nil {
		return failed(removed(p.remote))
	}
	if !slices.ContainsFunc(p.things, func(i int) bool { return q.Shards[i] == "" }) {
		if err := n.admit(ctx, p.remote, r); err != nil {
			return &ReadAnswer{Remote: p.remote, Things: p.things, Err: err}
		}
	}
	got, err := n.try(ctx, p.remote, r, &request{Message: q.Message, key: q.Message.key(r), contentType: "application/json", body: q.Body(p.things),
		headers: map[string]string{"Accept": search.ReadType, "Svc-Proxy-Search": "true", VersionHeader: now.Version.String()}})
	switch {
	case err != nil && err.Code == noRoom:
		return &ReadAnswer{Remote: p.remote, Things: p.things, Refused: budget.ErrFull}
	case err != nil:
		return failed(err)
	case got.header.Get("Content-Type") != search.ReadType:
		return failed(search.BadAnswer(p.remote, errReadForm))
	case n.outdated(now, got.header):
		return &ReadAnswer{Remote: p.remote, Things: p.things, Err: outdated(p.remote)}
	}
	reading := &search.Reading{Hold: budget.Of(ctx).Hold, Yield: ctx.Err}
	body, e := got.unzipped(q.Message.Most, reading)
	switch {
	case errors.Is(reading.Ended(), budget.ErrFull):
		return &ReadAnswer{Remote: p.remote, Things: p.things, Refused: budget.ErrFull}
	case reading.Ended() != nil:
		return failed(apierr.New("remote_timeout", "The answer of the remote `%s` could not be read in time.", p.remote))
	case e != nil:
		return failed(search.BadAnswer(p.remote, e))
	}
	n.answered(p.remote)
	return &ReadAnswer{Remote: p.remote, Things: p.things, Body: body}
}

var errReadForm = errors.New("its form is unknown")

// Spoil records that the response of a remote cannot be used, and returns the error for it.
func (n *Node) Spoil(ctx context.Context, remote string, err error) *apierr.Error {
	bad := search.BadAnswer(remote, err)
	n.failed(ctx, n.Searching(), remote, bad)
	return bad
}

package network

import (
	"context"
	"errors"
	"slices"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/search"
)

// A ReadRequest is what other instances are asked for that is no search: documents, values of facets, documents of foreign indexes, or
// words.
type ReadRequest struct {
	Message *Message // one of Documents, Facets, Foreign and Words
	// Shards are those that things are of, by thing; "": what the remote has that is asked.
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

// Read asks remotes for things, by the remote, at once. What one that fails was asked for goes to other owners of the shards. It returns
// when all have answered or failed, which takes no longer than the search timeout. Where all owners of a shard fail, each of them has an
// answer with its error.
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

// readOne asks one remote for documents. An answer by another version of the network is refused. Only trouble
// of the remote counts against it, not that of the caller.
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

// Spoil notes that what a remote answered cannot be used, and returns the error of that.
func (n *Node) Spoil(ctx context.Context, remote string, err error) *apierr.Error {
	bad := search.BadAnswer(remote, err)
	n.failed(ctx, n.Searching(), remote, bad)
	return bad
}

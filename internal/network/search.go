package network

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/search"
	"svc/internal/shard"
)

// RemoteSearch is what one remote is asked in a search.
type RemoteSearch struct {
	Remote     string
	Federation []byte // the object of POST /multi-search
	Queries    []RemoteQuery
	Asked      search.Asked
	Time       time.Time // that score functions look at; zero: that of the remote
	Foreign    []string  // the indexes whose documents are put in the place of their ids here
}

// Beside returns limits for parsing a response of this many bytes on another goroutine than that of the request. The caller must call
// end. A nil Beside charges the account of ctx and stops with ctx.
type Beside func(ctx context.Context, bytes int) (reading *search.Reading, end func())

func (b Beside) begin(ctx context.Context, bytes int) (reading *search.Reading, end func()) {
	if b != nil {
		return b(ctx, bytes)
	}
	return &search.Reading{Hold: budget.Of(ctx).Hold, Yield: ctx.Err}, func() {}
}

// RemoteQuery is a query of a search.
type RemoteQuery struct {
	Body  []byte // an object
	Shard string // the shard to search, which other owners have, too; "": all documents of the remote
}

// sharded reports whether the remote is asked because it owns shards, and not because the search names it.
func (s *RemoteSearch) sharded() bool {
	return len(s.Queries) > 0 && !slices.ContainsFunc(s.Queries, func(q RemoteQuery) bool { return q.Shard == "" })
}

// body returns the body of POST /multi-search.
func (s *RemoteSearch) body() []byte {
	size := len(s.Federation) + 32
	for i := range s.Queries {
		size += len(s.Queries[i].Body) + 1
	}
	body := append(append(append(make([]byte, 0, size), `{"federation":`...), s.Federation...), `,"queries":[`...)
	for i := range s.Queries {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, s.Queries[i].Body...)
	}
	return append(body, "]}"...)
}

// Search asks at least one remote, all at once. If one fails, other owners of its shards are asked. It returns when all have answered
// or failed, which takes no longer than the search timeout. If all owners of a shard fail, there is an answer with an error for each.
// A remote may have several answers, at most one of them an error.
func (n *Node) Search(ctx context.Context, asked []RemoteSearch, beside Beside) []*search.RemoteAnswer {
	ctx, cancel := context.WithTimeout(ctx, n.o.SearchTimeout)
	defer cancel()
	now := n.Searching()
	var queries []RemoteQuery // of all remotes
	var of []int              // by query: its place in asked
	portions := make([]portion, len(asked))
	for i := range asked {
		portions[i].remote = asked[i].Remote
		for _, q := range asked[i].Queries {
			portions[i].things = append(portions[i].things, len(queries))
			queries, of = append(queries, q), append(of, i)
		}
	}
	a := asking[*search.RemoteAnswer]{
		node: n, now: now,
		shard:  func(thing int) string { return queries[thing].Shard },
		failed: func(a *search.RemoteAnswer) bool { return a.Err != nil },
		ask: func(ctx context.Context, p portion) *search.RemoteAnswer {
			s := RemoteSearch{Remote: p.remote}
			if len(p.things) > 0 {
				whole := &asked[of[p.things[0]]]
				s.Federation, s.Asked, s.Time, s.Foreign = whole.Federation, whole.Asked, whole.Time, whole.Foreign
			} else if i := slices.IndexFunc(asked, func(s RemoteSearch) bool { return s.Remote == p.remote }); i >= 0 {
				s = asked[i]
			}
			for _, i := range p.things {
				s.Queries = append(s.Queries, queries[i])
			}
			return n.searchOne(ctx, now, &s, beside)
		},
	}
	answers := a.all(ctx, portions, nil)
	failed := map[string]bool{}
	return slices.DeleteFunc(answers, func(a *search.RemoteAnswer) bool {
		again := a.Err != nil && failed[a.Remote]
		failed[a.Remote] = failed[a.Remote] || a.Err != nil
		return again
	})
}

// searchOne sends one remote its part of a search, and reads the response while the caller works. Failures of the caller do not count
// against the remote.
func (n *Node) searchOne(ctx context.Context, now *Network, asked *RemoteSearch, beside Beside) *search.RemoteAnswer {
	failed := func(err *apierr.Error) *search.RemoteAnswer {
		n.failed(ctx, now, asked.Remote, err)
		return &search.RemoteAnswer{Remote: asked.Remote, Err: err}
	}
	r := now.Remotes[asked.Remote]
	if r == nil {
		return failed(removed(asked.Remote))
	}
	if asked.sharded() {
		if err := n.admit(ctx, asked.Remote, r); err != nil {
			return &search.RemoteAnswer{Remote: asked.Remote, Err: err}
		}
	}
	q := &request{Message: searchMessage, key: searchMessage.key(r), contentType: "application/json", body: asked.body(),
		headers: map[string]string{"Accept": search.PeerType + ", application/json", "Svc-Proxy-Search": "true", "Meili-Proxy-Search": "true", VersionHeader: now.Version.String()}}
	if asked.Asked.Metadata {
		q.headers["Svc-Include-Metadata"], q.headers["Meili-Include-Metadata"] = "true", "true"
	}
	if !asked.Time.IsZero() {
		q.headers["Svc-Proxy-Search-Time"] = strconv.FormatInt(asked.Time.Unix(), 10)
	}
	if len(asked.Foreign) > 0 {
		q.headers["Svc-Proxy-Foreign"] = strings.Join(asked.Foreign, ",")
	}
	got, err := n.try(ctx, asked.Remote, r, q)
	switch {
	case err != nil && err.Code == noRoom:
		return &search.RemoteAnswer{Remote: asked.Remote, Refused: budget.ErrFull}
	case err != nil:
		return failed(err)
	}
	if n.outdated(now, got.header) {
		return &search.RemoteAnswer{Remote: asked.Remote, Err: outdated(asked.Remote)}
	}
	reading, end := beside.begin(ctx, len(got.body))
	a, e := parseAnswer(asked, got, reading)
	end()
	switch {
	case errors.Is(reading.Ended(), context.DeadlineExceeded) && ctx.Err() != nil:
		return failed(apierr.New("remote_timeout", "The answer of the remote `%s` could not be read in time.", asked.Remote))
	case reading.Ended() != nil:
		return &search.RemoteAnswer{Remote: asked.Remote, Refused: reading.Ended()}
	case e != nil:
		return failed(search.BadAnswer(asked.Remote, e))
	}
	n.answered(asked.Remote)
	return a
}

// parseAnswer parses an answer in either form.
func parseAnswer(asked *RemoteSearch, got *reply, reading *search.Reading) (*search.RemoteAnswer, error) {
	body, err := got.unzipped(searchMessage.Most, reading)
	if err != nil {
		return nil, err
	}
	if got.header.Get("Content-Type") == search.PeerType {
		return search.ParsePeer(asked.Remote, body, &asked.Asked, reading)
	}
	return search.ParseRemote(asked.Remote, body, &asked.Asked, reading)
}

// Part is the part of a search that one instance of the network answers.
type Part struct {
	Remote string // "" for this instance, where it has no name
	Local  bool
	Shard  string // the shard to search; "": all
}

// Parts splits a search. Without a leader, each instance is a part, in the order of names. With a leader, each shard is a part and
// goes to one of its owners: this instance if possible, else an owner that has not failed, else any.
func (n *Node) Parts() (parts []Part) {
	now := n.Searching()
	if !now.Led() {
		for _, name := range sortedNames(now.Remotes) {
			parts = append(parts, Part{Remote: name, Local: name == now.SelfName()})
		}
		return parts
	}
	return n.shardParts(now)
}

// Placed returns the parts of a search in a network with a leader, and the ring of shards: part i is of shard i. Without a leader
// ring is nil, and the parts are those of Parts.
func (n *Node) Placed() (parts []Part, ring *shard.Ring) {
	v := n.view.Load()
	if !v.searching.Led() {
		return n.Parts(), nil
	}
	return n.shardParts(v.searching), v.rings[v.searching.Version]
}

package network

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/search"
)

const (
	searchAttempts = 4
	searchPause    = 10 * time.Millisecond // before the second attempt; each later one waits twice as long
)

// RemoteSearch is what one remote is asked in a search.
type RemoteSearch struct {
	Remote     string
	Federation []byte // the object of POST /multi-search
	Queries    []RemoteQuery
	Asked      search.Asked
}

// Beside returns what bounds the parsing of an answer of this many bytes by another goroutine than that of the request. The caller must
// call end. A nil Beside charges the account of ctx, and ends with ctx.
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
	Shard string // whose documents are wanted, which other owners have, too; "": those of the remote
}

// sharded reports whether the remote is asked because it owns shards, and not because the search names it.
func (s *RemoteSearch) sharded() bool {
	return len(s.Queries) > 0 && !slices.ContainsFunc(s.Queries, func(q RemoteQuery) bool { return q.Shard == "" })
}

// body is that of POST /multi-search.
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

// Search asks remotes, of which there is one at least, at once. What one that fails was asked for goes to other owners of its shards. It
// returns when all have answered or failed, which takes no longer than the search timeout. Where all owners of a shard fail, each of them
// has an answer with its error. Several answers may be of one remote; one of them at most is an error.
func (n *Node) Search(ctx context.Context, asked []RemoteSearch, beside Beside) []*search.RemoteAnswer {
	ctx, cancel := context.WithTimeout(ctx, n.o.SearchTimeout)
	defer cancel()
	answers := n.searchAll(ctx, n.Searching(), asked, nil, beside)
	failed := map[string]bool{}
	return slices.DeleteFunc(answers, func(a *search.RemoteAnswer) bool {
		again := a.Err != nil && failed[a.Remote]
		failed[a.Remote] = failed[a.Remote] || a.Err != nil
		return again
	})
}

// searchAll asks remotes at once. Those that have failed already are not asked instead of them.
func (n *Node) searchAll(ctx context.Context, now *Network, asked []RemoteSearch, failed []*search.RemoteAnswer, beside Beside) []*search.RemoteAnswer {
	answers := make([][]*search.RemoteAnswer, len(asked))
	var group sync.WaitGroup
	last := len(asked) - 1
	for i := range last {
		group.Go(func() { answers[i] = n.searchOwners(ctx, now, &asked[i], failed, beside) })
	}
	answers[last] = n.searchOwners(ctx, now, &asked[last], failed, beside) // by this goroutine
	group.Wait()
	return slices.Concat(answers...)
}

// searchOwners asks a remote, and other owners of the shards when it fails. While there are usable others it has half of the time that is
// left. failed are the answers of those that were asked for the same before.
func (n *Node) searchOwners(ctx context.Context, now *Network, asked *RemoteSearch, failed []*search.RemoteAnswer, beside Beside) []*search.RemoteAnswer {
	tried := []string{asked.Remote}
	for _, a := range failed {
		tried = append(tried, a.Remote)
	}
	first, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok && slices.ContainsFunc(asked.Queries, func(q RemoteQuery) bool { return n.another(now, q.Shard, tried, true) != "" }) {
		first, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	a := n.searchOne(first, now, asked, beside)
	cancel()
	if a.Err == nil {
		return []*search.RemoteAnswer{a}
	}
	failed = append(failed[:len(failed):len(failed)], a)
	if ctx.Err() != nil {
		return failed
	}
	var others []RemoteSearch
	alone := false // with some of what it was asked for
	for _, q := range asked.Queries {
		name := n.another(now, q.Shard, tried, false)
		if name == "" {
			alone = true
			continue
		}
		i := slices.IndexFunc(others, func(o RemoteSearch) bool { return o.Remote == name })
		if i < 0 {
			i = len(others)
			others = append(others, RemoteSearch{Remote: name, Federation: asked.Federation, Asked: asked.Asked})
		}
		others[i].Queries = append(others[i].Queries, q)
	}
	if len(others) == 0 {
		return failed
	}
	answers := n.searchAll(ctx, now, others, failed, beside)
	if alone {
		answers = append(answers, failed...)
	}
	return answers
}

// another returns an owner of a shard that was not tried, "" for none: a usable one, or, unless only such are wanted, one that admit
// decides about. It is always the same, so that queries for one shard stay together.
func (n *Node) another(now *Network, shard string, tried []string, usable bool) string {
	s := now.Shards[shard]
	if s == nil {
		return ""
	}
	left := ""
	for _, owner := range s.Remotes {
		if owner == now.SelfName() || slices.Contains(tried, owner) {
			continue
		}
		if n.usable(owner) {
			return owner
		}
		if left == "" && !usable {
			left = owner
		}
	}
	return left
}

func (n *Node) searchOne(ctx context.Context, now *Network, asked *RemoteSearch, beside Beside) *search.RemoteAnswer {
	failed := func(err *apierr.Error) *search.RemoteAnswer {
		// A search that was given up here says nothing of the remote.
		if len(now.Shards) > 0 && err.Code.Status() == 502 && !errors.Is(ctx.Err(), context.Canceled) && n.availability.fail(asked.Remote, err) {
			n.o.Logger.Warn("a remote failed in a search: searches leave it alone for a while where others have its shards", "remote", asked.Remote, "error", err)
		}
		return &search.RemoteAnswer{Remote: asked.Remote, Err: err}
	}
	r := now.Remotes[asked.Remote]
	if r == nil { // removed since the search was planned
		return failed(apierr.New("remote_could_not_send_request", "The remote `%s` is no part of the network any more.", asked.Remote))
	}
	if asked.sharded() {
		if err := n.admit(ctx, asked.Remote, r); err != nil {
			return &search.RemoteAnswer{Remote: asked.Remote, Err: err}
		}
	}
	q := &request{Message: searchMessage, key: r.SearchAPIKey, contentType: "application/json", body: asked.body(),
		headers: map[string]string{"Accept": search.PeerType + ", application/json", "Svc-Proxy-Search": "true", "Meili-Proxy-Search": "true", "Svc-Network-Version": now.Version.String()}}
	if asked.Asked.Metadata {
		q.headers["Svc-Include-Metadata"], q.headers["Meili-Include-Metadata"] = "true", "true"
	}
	for attempt, pause := 1, searchPause; ; attempt, pause = attempt+1, 2*pause {
		got, again, err := n.do(ctx, asked.Remote, r, q)
		if err == nil {
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
			if n.availability.succeed(asked.Remote) {
				n.o.Logger.Info("a remote that failed answers searches again", "remote", asked.Remote)
			}
			return a
		}
		if err.Code == noRoom {
			return &search.RemoteAnswer{Remote: asked.Remote, Refused: budget.ErrFull}
		}
		if !again || attempt == searchAttempts || ctx.Err() != nil || err.Code == "remote_timeout" {
			return failed(err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return failed(err)
		}
	}
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

// Part is a share of a search in the network: what one instance is asked.
type Part struct {
	Remote string // "" for this instance, where it has no name
	Local  bool
	Shard  string // what is searched there; "": all
}

// Parts splits a search: without a leader by instances, in the order of their names; with one by shards, each of which goes to one of
// its owners, this instance before all others, and those that have not failed before those that have.
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

package network

import (
	"context"
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
	Remote   string
	Body     []byte // of POST /multi-search
	Metadata bool   // which indexes answered is wanted
}

// Search asks remotes, of which there is one at least, at once. It returns when all have answered or failed, which takes no longer than
// the search timeout.
func (n *Node) Search(ctx context.Context, asked []RemoteSearch) []*search.RemoteAnswer {
	ctx, cancel := context.WithTimeout(ctx, n.o.SearchTimeout)
	defer cancel()
	now := n.Searching()
	answers := make([]*search.RemoteAnswer, len(asked))
	var group sync.WaitGroup
	last := len(asked) - 1
	for i := range last {
		group.Go(func() { answers[i] = n.searchOne(ctx, now, &asked[i]) })
	}
	answers[last] = n.searchOne(ctx, now, &asked[last]) // by this goroutine
	group.Wait()
	return answers
}

func (n *Node) searchOne(ctx context.Context, now *Network, asked *RemoteSearch) *search.RemoteAnswer {
	failed := func(err *apierr.Error) *search.RemoteAnswer {
		if len(now.Shards) > 0 && err.Code.Status() == 502 {
			n.availability.fail(asked.Remote)
		}
		return &search.RemoteAnswer{Remote: asked.Remote, Err: err}
	}
	r := now.Remotes[asked.Remote]
	if r == nil { // removed since the search was planned
		return failed(apierr.New("remote_could_not_send_request", "The remote `%s` is no part of the network any more.", asked.Remote))
	}
	q := &request{method: "POST", path: "/multi-search", key: r.SearchAPIKey, contentType: "application/json", body: asked.Body, search: true,
		headers: map[string]string{"Svc-Proxy-Search": "true", "Meili-Proxy-Search": "true", "Svc-Network-Version": now.Version.String()}}
	if asked.Metadata {
		q.headers["Svc-Include-Metadata"], q.headers["Meili-Include-Metadata"] = "true", "true"
	}
	for attempt, pause := 1, searchPause; ; attempt, pause = attempt+1, 2*pause {
		got, again, err := n.do(ctx, asked.Remote, r, q)
		if err == nil {
			a, e := search.ParseRemote(asked.Remote, got.body)
			if e != nil {
				return failed(apierr.New("remote_bad_response", "The answer of the remote `%s` cannot be used: %v.", asked.Remote, e))
			}
			if e := budget.Of(ctx).Hold(a.Overhead()); e != nil {
				return &search.RemoteAnswer{Remote: asked.Remote, Refused: e}
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

// Part is a share of a search in the network: what one instance is asked.
type Part struct {
	Remote string // "" for this instance, where it has no name
	Local  bool
	Shard  string // what is searched there; "": all
}

// Parts splits a search: without a leader by instances, in the order of their names; with one by shards, each of which goes to one of
// its owners, this instance before all others. skipped are the shards that no available instance owns.
func (n *Node) Parts() (parts []Part, skipped []string) {
	now := n.Searching()
	if !now.Led() {
		for _, name := range sortedNames(now.Remotes) {
			parts = append(parts, Part{Remote: name, Local: name == now.SelfName()})
		}
		return parts, nil
	}
	return n.shardParts(now)
}

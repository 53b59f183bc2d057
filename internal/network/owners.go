package network

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"svc/internal/apierr"
)

// A read of several shards asks one owner of each. This file finds another owner when one fails.

const (
	readAttempts = 4
	readPause    = 10 * time.Millisecond // before the second attempt; each later one waits twice as long
)

// portion is a request to one remote: the indexes of things, each of which belongs to a shard.
type portion struct {
	remote string
	things []int
}

// failure is the answer of a remote that failed.
type failure[A any] struct {
	remote string
	answer A
}

// asking asks remotes, and other owners of shards where they fail.
type asking[A any] struct {
	node   *Node
	now    *Network
	shard  func(thing int) string // whose owners have it; "": the remote alone
	failed func(answer A) bool
	ask    func(ctx context.Context, p portion) A
}

// all asks at least one remote, all at once. Remotes in failed are not asked again as substitutes.
func (s *asking[A]) all(ctx context.Context, asked []portion, failed []failure[A]) []A {
	answers := make([][]A, len(asked))
	var group sync.WaitGroup
	last := len(asked) - 1
	for i := range last {
		group.Go(func() { answers[i] = s.owners(ctx, asked[i], failed) })
	}
	answers[last] = s.owners(ctx, asked[last], failed) // by this goroutine
	group.Wait()
	return slices.Concat(answers...)
}

// owners asks a remote, and other owners of the shards if it fails. While other owners are usable, the remote gets half of the
// remaining time. failed has remotes that were asked for the same before. If no other owner is left, their answers are returned too.
func (s *asking[A]) owners(ctx context.Context, p portion, failed []failure[A]) []A {
	tried := []string{p.remote}
	for _, f := range failed {
		tried = append(tried, f.remote)
	}
	first, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok && slices.ContainsFunc(p.things, func(i int) bool { return s.node.another(s.now, s.shard(i), tried, true) != "" }) {
		first, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	a := s.ask(first, p)
	cancel()
	if !s.failed(a) {
		return []A{a}
	}
	failed = append(failed[:len(failed):len(failed)], failure[A]{p.remote, a})
	errors := func() []A {
		all := make([]A, len(failed))
		for i, f := range failed {
			all[i] = f.answer
		}
		return all
	}
	if ctx.Err() != nil {
		return errors()
	}
	var others []portion
	alone := false // the only owner of some of the things
	for _, thing := range p.things {
		name := s.node.another(s.now, s.shard(thing), tried, false)
		if name == "" {
			alone = true
			continue
		}
		i := slices.IndexFunc(others, func(o portion) bool { return o.remote == name })
		if i < 0 {
			i = len(others)
			others = append(others, portion{remote: name})
		}
		others[i].things = append(others[i].things, thing)
	}
	if len(others) == 0 {
		return errors()
	}
	answers := s.all(ctx, others, failed)
	if alone {
		answers = append(answers, errors()...)
	}
	return answers
}

// another returns an owner of a shard that was not tried yet, or "". It prefers a usable one. If usable is false, it may return one
// that admit has to check. It always returns the same owner, so that queries for one shard go to the same instance.
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

// try makes a quick request, again where that may help.
func (n *Node) try(ctx context.Context, remote string, r *Remote, q *request) (*reply, *apierr.Error) {
	for attempt, pause := 1, readPause; ; attempt, pause = attempt+1, 2*pause {
		got, again, err := n.do(ctx, remote, r, q)
		if err == nil {
			return got, nil
		}
		if !again || attempt == readAttempts || ctx.Err() != nil || err.Code == "remote_timeout" || err.Code == noRoom {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// failed records that a remote failed. Cancelled requests do not count against the remote.
func (n *Node) failed(ctx context.Context, now *Network, remote string, err *apierr.Error) {
	if len(now.Shards) > 0 && err.Code.Status() == 502 && !errors.Is(ctx.Err(), context.Canceled) && n.availability.fail(remote, err) {
		n.o.Logger.Warn("a remote failed in a search: searches avoid it for a while if others have its shards", "remote", remote, "error", err)
	}
}

// answered records that a remote answered.
func (n *Node) answered(remote string) {
	if n.availability.succeed(remote) {
		n.o.Logger.Info("a remote that failed answers searches again", "remote", remote)
	}
}

// removed is the error of a remote that is no longer part of the network since the request was planned.
func removed(remote string) *apierr.Error {
	return apierr.New("remote_could_not_send_request", "The remote `%s` is no longer part of the network.", remote)
}

// outdated is the error of a remote with a later network than this member of a group has received.
func outdated(remote string) *apierr.Error {
	return apierr.New("remote_remote_error", "The network has changed at the remote `%s`, and this server has not received the change yet. Try again, or ask the writer of its group.", remote)
}

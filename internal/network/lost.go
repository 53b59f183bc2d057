package network

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
)

// An instance that is away keeps its requests in the leader's outbox. When the outbox is full, and others have all that the instance
// owns, the leader drops these requests: the instance is lost. Once it answers again, it gets a copy of all that it owns, by a change
// to the same network in which it starts empty. If it is the only owner of a shard, its requests must not be dropped: the leader
// refuses writes until the instance returns or is removed.

// makeRoom returns an error if the outbox has no room for a write.
func (n *Node) makeRoom() error {
	if n.queue.Load() == nil || n.queue.Load().OutboxBytes() < n.o.OutboxLimit {
		return nil
	}
	n.patching.Lock()
	defer n.patching.Unlock()
	for _, remote := range n.queue.Load().Lacking() {
		s := n.snapshot()
		if !n.sender.late(remote) || s.Network.Remotes[remote] == nil {
			continue
		}
		alone := n.aloneWith(s.Network, remote)
		if alone == "" && s.uncommitted() { // it may be undone
			alone = n.aloneWith(s.Change.Before, remote)
		}
		if alone != "" {
			return apierr.New("no_space_left_on_device",
				"The remote `%s` is unavailable, is the only owner of the shard `%s`, and lacks the stored writes. Restart it, or remove the shard from it.", remote, alone)
		}
		n.o.Logger.Error("a remote was unavailable for too long: its stored writes are dropped, and it gets a copy of its documents when it is back", "remote", remote)
		why := apierr.New("remote_could_not_send_request", "The remote `%s` was unavailable for too long. It gets a copy of all documents when it is back.", remote)
		if err := n.forsake(remote, why); err != nil {
			return err
		}
	}
	return nil
}

// forsake drops the undelivered requests of a remote. It also abandons a change under way that the remote has not received, unless
// that is committed, because the remote cannot take part in it. patching is held.
func (n *Node) forsake(remote string, why *apierr.Error) error {
	undone := false
	err := n.update(func(s *stored) {
		s.lose(remote)
		if c := s.Change; c != nil && n.queue.Load().Lacks(remote, c.Task) {
			undone = s.undoUncommitted()
		}
	})
	if err != nil {
		return err
	}
	if undone {
		n.o.Logger.Warn("a change of the network is abandoned: an unavailable remote has not received it", "remote", remote)
		n.exports.drop()
	}
	return n.sender.abandon(remote, why)
}

// aloneWith returns a shard of the remote that no other usable remote has, or "" if there is none.
func (n *Node) aloneWith(now *Network, remote string) string {
	for _, shard := range now.owned(remote) {
		if !slices.ContainsFunc(now.Shards[shard].Remotes, func(o string) bool { return o != remote && (o == now.SelfName() || n.usable(o)) }) {
			return shard
		}
	}
	return ""
}

// goingOn is the network in which a remote that is the only owner of a shard continues.
type goingOn struct {
	shown uuid.UUID // its version here
	told  uuid.UUID // its version there: that of the next request to the remote
}

// lose records that a remote was restored from a snapshot, so that it gets a copy of what it owns from other owners. If there are
// none for some shard, lose does nothing and returns alone: the remote has to continue with its own data. A change under way is
// abandoned unless it is committed, because the remote may not know it any more, and others must not copy its old data.
func (n *Node) lose(remote string) (alone *goingOn, err error) {
	n.patching.Lock()
	defer n.patching.Unlock()
	s := n.snapshot()
	if c := s.Change; s.rebuilds(remote) {
		if n.queue.Load().Lacks(remote, c.Task) {
			return nil, nil
		}
		// It may have asked before it received this change, or it was restored again.
		st, err := n.changeAt(n.ctx, remote, s.Network.Remotes[remote], s.Network.Version)
		if err != nil || !st.SetBack {
			return nil, nil
		}
	} else if s.forgoes(remote) {
		return nil, nil
	}
	undone := false
	if s.Change != nil {
		if err := n.update(func(s *stored) { undone = s.undoUncommitted() }); err != nil {
			return nil, err
		}
	}
	if undone {
		n.o.Logger.Warn("a change of the network is abandoned: a remote was restored from a snapshot", "remote", remote)
		n.exports.drop()
	}
	now := n.Network()
	if shard := n.aloneWith(now, remote); shard != "" {
		if n.snapshot().Change != nil {
			return nil, nil // it asks again
		}
		// The remote accepts writes from before a change that it did not receive only under the version of that time. The shards are
		// the same, because such a change cannot have been committed.
		e, err := n.queue.Load().Next(remote)
		if err != nil {
			return nil, err
		}
		alone = &goingOn{now.Version, now.Version}
		if e != nil {
			if alone.told, err = uuid.Parse(e.Version); err != nil {
				return nil, fmt.Errorf("the request of task %d has no version of the network: %w", e.UID, err)
			}
		}
		if n.alone[remote] != now.Version { // it asks repeatedly until it continues
			n.alone[remote] = now.Version
			n.o.Logger.Error("a remote was restored from a snapshot and is the only owner of a shard: later writes to it are lost", "remote", remote, "shard", shard)
		}
		return alone, nil
	}
	n.o.Logger.Warn("a remote was restored from a snapshot: it gets a copy of its documents", "remote", remote)
	if err := n.update(func(s *stored) { s.lose(remote) }); err != nil {
		return nil, err
	}
	return nil, n.sender.abandon(remote, apierr.New("remote_could_not_send_request", "The remote `%s` was restored from a snapshot. It gets a copy of all documents.", remote))
}

// The interval between two requests to the leader, and the interval while something is lacking.
const (
	watchInterval = 2 * time.Second
	lagInterval   = 100 * time.Millisecond
)

// watch rebuilds lost remotes when they are back, and this instance after a snapshot, if this instance leads. Otherwise it asks the
// leader whether this instance lacks something.
func (n *Node) watch() {
	for {
		now := n.Network()
		switch {
		case !now.Led():
			n.lagging.Store(false)
		case now.Leads():
			n.reunite()
			n.lagging.Store(n.snapshot().Restored)
			n.rebuild()
		case now.Remotes[*now.Leader] != nil:
			// A leader that does not answer accepts no writes, so this instance is not known to lack anything. An instance that was
			// set back to a snapshot knows that there was more.
			restored := n.snapshot().Restored
			st, err := n.changeAt(n.ctx, *now.Leader, now.Remotes[*now.Leader], now.Version)
			if err == nil && st.Alone {
				restored, err = n.goOn(&st)
				switch {
				case !restored:
					n.o.Logger.Error("this instance was restored from a snapshot, and no other instance has all its documents: later writes are lost here")
				case err != nil && err.Error() != n.reuniting:
					n.reuniting = err.Error()
					n.o.Logger.Warn("this instance was restored from a snapshot, and cannot continue yet", "error", err)
				}
			}
			n.lagging.Store(restored || err == nil && st.Behind)
		}
		pause := watchInterval
		if n.lagging.Load() {
			pause = lagInterval
		}
		select {
		case <-time.After(pause):
		case <-n.ctx.Done():
			return
		}
	}
}

// rebuild announces the network again when a lost remote answers, leaving out those that do not.
func (n *Node) rebuild() {
	s := n.snapshot()
	if len(s.Lost) == 0 || s.Change != nil || s.Restored {
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, checkTimeout)
	defer cancel()
	answers := make([]bool, len(s.Lost))
	var group sync.WaitGroup
	for i, name := range s.Lost {
		if r := s.Network.Remotes[name]; r != nil {
			group.Go(func() {
				_, err := n.checkRemote(ctx, name, r)
				answers[i] = err == nil
			})
		}
	}
	group.Wait()
	var back, absent []string
	for i, name := range s.Lost {
		switch {
		case answers[i]:
			back = append(back, name)
		case s.Network.Remotes[name] != nil:
			absent = append(absent, name)
		}
	}
	if len(back) == 0 {
		return
	}
	if _, err := n.patch(n.ctx, &Patch{}, absent); err != nil {
		n.o.Logger.Warn("a remote that was unavailable cannot be rebuilt yet", "remotes", back, "error", err)
	}
}

// rebuildable returns the lost remotes that start empty in a change to a network. A remote that is the only one with some shard is no
// longer lost: it keeps its data and must be told of the change. A leader restored from a snapshot may not know that the remote was
// rebuilt since.
func (n *Node) rebuildable(lost, absent []string, now, to *Network) (rebuilt []string, err error) {
	var kept []string
	for _, name := range lost {
		alone := slices.ContainsFunc(now.owned(name), func(shard string) bool {
			return !slices.ContainsFunc(now.Shards[shard].Remotes, func(o string) bool { return !slices.Contains(lost, o) })
		})
		switch {
		case alone:
			kept = append(kept, name)
		case to.Remotes[name] != nil:
			rebuilt = append(rebuilt, name)
		}
	}
	for _, name := range absent {
		if !slices.Contains(rebuilt, name) {
			return nil, apierr.New("remote_could_not_send_request", "The remote `%s` is unavailable, and no other instance has all of one of its shards.", name)
		}
	}
	if len(kept) == 0 {
		return rebuilt, nil
	}
	n.o.Logger.Error("remotes whose writes were dropped are now the only owners of a shard: they continue with their documents", "remotes", kept)
	return rebuilt, n.update(func(s *stored) {
		s.Lost = slices.DeleteFunc(slices.Clone(s.Lost), func(name string) bool { return slices.Contains(kept, name) })
	})
}

// Behind is the error of searches that this instance cannot answer as a whole, nil for none.
func (n *Node) Behind() error {
	if !n.lagging.Load() {
		return nil
	}
	return &apierr.Error{Code: "remote_remote_error", HTTP: 503,
		Message: "This instance was unavailable, and has not yet received all writes since."}
}

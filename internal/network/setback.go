package network

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/settings"
	"svc/internal/task"
	"svc/internal/vfs"
)

// A leader restored from a snapshot does not know which writes it has accepted since, nor how it has changed the network since;
// others may. It delivers its outbox, which receivers recognise as repeated. It takes no writes until it has asked all others for the
// network and for how much they have received. Then it leads the network that they know, by a change in which every owner of a shard
// gets the data of the owner that has received most.

// SetBack records in the file of a network, if there is one, that the data directory was restored from a snapshot.
func SetBack(fsys vfs.FS, file string) error {
	s, err := read(fsys, file)
	if err != nil || !s.Network.Led() {
		return err
	}
	s.Restored = true
	if c := s.Change; c != nil { // after which it may have received what it lacks now
		c.Rebuilt = slices.DeleteFunc(c.Rebuilt, func(name string) bool { return name == s.Network.SelfName() })
	}
	return s.write(fsys, file)
}

func setBack() error {
	return apierr.New("unprocessed_network_task",
		"This leader was restored from a snapshot, and accepts no writes until it has the later writes of all others. Start the unavailable ones, or remove them from the network.")
}

// forgotten reports whether a change was made by this leader before it was restored from a snapshot that does not know it. Instances
// that wait for the change continue without it.
func (n *Node) forgotten(version uuid.UUID) bool {
	n.ordering.RLock() // or it is being stored
	defer n.ordering.RUnlock()
	s := n.snapshot()
	return s.Restored && s.Network.Leads() && newer(version, s.Network.Version)
}

// reunite has a leader that was set back to a snapshot lead again once all others answer.
func (n *Node) reunite() {
	s := n.snapshot()
	if !s.Restored || s.Change != nil {
		return
	}
	if len(s.Network.Others()) == 0 {
		if err := n.update(func(s *stored) { s.Restored = false }); err != nil {
			n.o.Logger.Error("cannot store that the leader is complete", "error", err)
		}
		return
	}
	_, err := n.Patch(n.ctx, &Patch{})
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said == n.reuniting {
		return // already told
	}
	n.reuniting = said
	if err != nil {
		n.o.Logger.Warn("this leader was restored from a snapshot, and accepts no writes until all others answer", "error", err)
	} else {
		n.o.Logger.Warn("this leader was restored from a snapshot: it gets the later writes of the others")
	}
}

// caughtUp is what a leader that was set back to a snapshot finds at the others.
type caughtUp struct {
	now      *Network       // as they know it by now, with the self of the leader
	previous *Network       // says which instance has which documents
	ages     map[string]int // not nil; see announced
}

// caughtUp asks the other remotes, except those that the patch removes.
func (n *Node) caughtUp(ctx context.Context, own *Network, p *Patch) (*caughtUp, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	// Where a patch says that one of them has moved, it is asked there.
	moved := own.clone()
	known := &Patch{ClearRemotes: p.ClearRemotes, Remotes: maps.Clone(p.Remotes)}
	maps.DeleteFunc(known.Remotes, func(name string, _ *RemotePatch) bool { return own.Remotes[name] == nil })
	if err := moved.applyRemotes(known); err != nil {
		return nil, err
	}
	self := own.SelfName()
	st, err := n.changeAt(ctx, self, moved.Remotes[self], uuid.Nil)
	if err == nil && st.Process != n.process {
		err = apierr.New("remote_bad_request", "The address of `%s` belongs to another instance. This one is a copy of it and must not lead.", self)
	}
	if err != nil {
		return nil, err
	}
	others := moved.Others()
	c := &caughtUp{ages: map[string]int{}}
	networks := make([]*Network, len(others))
	states := make([]ChangeState, len(others))
	errs := make([]error, len(others))
	lags := n.queue.Load().Lags()
	var group sync.WaitGroup
	for i, name := range others {
		group.Go(func() {
			r := moved.Remotes[name]
			networks[i], errs[i] = n.networkAt(ctx, name, r)
			if errs[i] == nil {
				states[i], errs[i] = n.changeAt(ctx, name, r, uuid.Nil)
			}
			if errs[i] == nil && lags[name].Requests > 0 {
				errs[i] = apierr.New("unprocessed_network_task", "The remote `%s` has not received all writes that the snapshot has for it.", name)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	last, agreed, err := latest(own, networks)
	if err != nil {
		return nil, err
	}
	if c.now, c.previous = last, last; !agreed { // it is unknown which instance has which documents: ask each for everything
		c.previous = &Network{Version: last.Version, Remotes: last.Remotes, Shards: map[string]*Shard{}}
	}
	told, _ := n.queue.Load().Positions()
	got := map[string]task.Position{self: told}
	for i, name := range others {
		got[name] = states[i].Got
	}
	positions := slices.SortedFunc(maps.Values(got), func(a, b task.Position) int { return b.Compare(a) })
	positions = slices.Compact(positions)
	for name, p := range got {
		if age := slices.Index(positions, p); age > 0 {
			c.ages[name] = age
		}
	}
	return c, nil
}

// latest returns the last of the networks that others know, with the self of the own one. agreed says that all have the same shards.
func latest(own *Network, known []*Network) (last *Network, agreed bool, err error) {
	last = own
	for i, other := range known {
		if i == 0 || newer(other.Version, last.Version) {
			last = other
		}
	}
	self := own.SelfName()
	switch {
	case textOf(last.Leader) != self:
		return nil, false, apierr.New("not_a_leader",
			"The others now have another leader, or none. `%s`, restored from a snapshot, does not lead them. Send it `{\"leader\": null}`.", self)
	case last.Remotes[self] == nil:
		return nil, false, apierr.New("invalid_network_remotes", "The network of the others has no remote `%s` any more.", self)
	}
	last = last.clone()
	last.Self, agreed = own.Self, true
	for _, other := range known {
		agreed = agreed && (!other.Led() || reflect.DeepEqual(other.Shards, last.Shards))
	}
	return last, agreed, nil
}

// networkAt asks an instance for the network.
func (n *Node) networkAt(ctx context.Context, name string, r *Remote) (*Network, error) {
	var now Network
	if err := n.ask(ctx, name, r, &request{Message: networkMessage, key: r.WriteAPIKey}, &now); err != nil {
		return nil, err
	}
	if err := now.check(); err != nil {
		return nil, apierr.New("remote_bad_response", "The network of the remote `%s` cannot be used: %v.", name, err)
	}
	// The response has masked secrets. Those that this instance does not know are lost: see unknownKeys.
	own := n.snapshot().Network
	for name, r := range now.Remotes {
		was := own.Remotes[name]
		if was == nil {
			was = new(Remote)
		}
		r.URL = settings.RestoreURL(r.URL, was.URL)
		r.SearchAPIKey, r.WriteAPIKey = unmasked(r.SearchAPIKey, was.SearchAPIKey), unmasked(r.WriteAPIKey, was.WriteAPIKey)
	}
	return &now, nil
}

// unmasked returns the key of a remote that another instance shows, masked or not. own is the key that this instance has. The result
// is unknownKey if the key has changed since and the instance shows only its mask.
func unmasked(shown, own *string) *string {
	switch {
	case sentBack(shown, own):
		return own
	case shown != nil && *shown == settings.Redact(*shown):
		return &unknownKey
	}
	return shown
}

// unknownKey stands for a key that no instance knows. No remote accepts it.
var unknownKey = settings.Redact("")

// unknownKeys lists the remotes with an unknown key, in byte order.
func (n *Network) unknownKeys() (remotes []string) {
	for _, name := range sortedNames(n.Remotes) {
		if r := n.Remotes[name]; textOf(r.SearchAPIKey) == unknownKey || textOf(r.WriteAPIKey) == unknownKey {
			remotes = append(remotes, name)
		}
	}
	return remotes
}

// goOn makes this instance continue alone, after a restore from a snapshot, because no other instance has what it lacks. It continues
// with its own data in the network that the leader named: see ChangeState. A change from the snapshot has to end first. restored says
// that it cannot continue yet.
func (n *Node) goOn(st *ChangeState) (restored bool, err error) {
	own := n.snapshot()
	leader := textOf(own.Network.Leader)
	r := own.Network.Remotes[leader]
	if own.Change != nil || r == nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(n.ctx, checkTimeout)
	defer cancel()
	now, err := n.networkAt(ctx, leader, r)
	shown := st.Version
	if st.Shown != nil {
		shown = *st.Shown
	}
	if err != nil || now.Version != shown || textOf(now.Leader) != leader {
		return true, err
	}
	if unknown := now.unknownKeys(); len(unknown) > 0 {
		n.o.Logger.Error("the keys of remotes changed after the snapshot, and this instance needs them from the leader: send PATCH /network with {} to the leader", "remotes", unknown)
	}
	now.Self, now.Version, restored = own.Network.Self, st.Version, true
	err = n.update(func(s *stored) {
		if s.Change == nil && s.Network.Led() && !newer(s.Network.Version, now.Version) {
			s.Network, s.Restored, restored = now, false, false
		}
	})
	return restored || err != nil, err
}

// newer reports whether version a belongs to a later change than b.
func newer(a, b uuid.UUID) bool { return a.String() > b.String() }

// trusted returns the previous network with only the best owners of each shard as sources: no owners that start empty and, of the
// others, those that have received most of the leader's writes.
func (r *changing) trusted() *Network {
	to := r.previous.clone()
	for name, s := range to.Shards {
		owners := slices.DeleteFunc(slices.Clone(s.Remotes), func(o string) bool { return slices.Contains(r.rebuilt, o) })
		if len(owners) > 0 {
			least := r.ages[slices.MinFunc(owners, func(a, b string) int { return cmp.Compare(r.ages[a], r.ages[b]) })]
			owners = slices.DeleteFunc(owners, func(o string) bool { return r.ages[o] > least })
		}
		to.Shards[name] = &Shard{owners}
	}
	return to
}

// catchUp gives an index the settings from an instance that has received more of the leader's writes.
func (r *changing) catchUp(ix *index.Index, name string, from *transferredIndex) error {
	if r.ages[r.network.SelfName()] <= r.ages[name] {
		return nil
	}
	return r.configure(ix, name, from)
}

// dropForgotten deletes empty indexes that no longer exist on an instance that has received more of the leader's writes.
func (r *changing) dropForgotten(sources []source) error {
	if r.ages[r.network.SelfName()] == 0 {
		return nil
	}
	i := slices.IndexFunc(sources, func(s source) bool { return r.ages[s.name] == 0 })
	if i < 0 {
		return nil
	}
	list, err := r.indexesOf(sources[i].name, sources[i].remote, &Transfer{Version: r.version, Remote: r.network.SelfName(), Shards: sources[i].shards})
	var refused *apierr.Error
	if errors.As(err, &refused) && passing(refused.Code) { // it has left, or is away: they do no harm
		return nil
	}
	if err != nil {
		return err
	}
	catalog := r.n.o.Catalog
	for _, uid := range catalog.UIDs() {
		ix := catalog.Get(uid)
		if ix == nil || slices.ContainsFunc(list, func(t transferredIndex) bool { return t.UID == uid }) {
			continue
		}
		if any, err := strangers(r.ctx, ix, func([]byte) bool { return false }); err != nil || len(any) > 0 {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := catalog.Delete(uid, catalog.LastBatch()); err != nil {
			return err
		}
	}
	return nil
}

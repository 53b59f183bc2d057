package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/task"
)

// Patch changes the network. With a leader, the change is a task, which it returns. Without one, the change is applied at once.
// Errors are *apierr.Error if the patch or a remote is the cause.
func (n *Node) Patch(ctx context.Context, p *Patch) (*task.Task, error) { return n.patch(ctx, p, nil) }

// patch is Patch in which lost remotes that are absent take no part.
func (n *Node) patch(ctx context.Context, p *Patch, absent []string) (*task.Task, error) {
	n.patching.Lock()
	defer n.patching.Unlock()
	before := n.snapshot()
	now, previous := before.Network, before.Network
	var ages map[string]int
	if before.Restored && now.Leads() && before.Change == nil && (!p.Leader.Given || p.Leader.Value != nil) {
		c, err := n.caughtUp(ctx, now, p)
		if err != nil {
			return nil, err
		}
		now, previous, ages = c.now, c.previous, c.ages
	}
	to, err := now.apply(p)
	if err != nil {
		return nil, err
	}
	if unknown := to.unknownKeys(); len(unknown) > 0 {
		return nil, apierr.New("unprocessed_network_task", "The keys of the remote `%s` are unknown: they changed after the snapshot from which this leader was restored, and other instances show them masked. "+
			"Set `searchApiKey` and `writeApiKey` of `remotes.%[1]s` with PATCH /network.", unknown[0])
	}
	to.Version = newVersion(before.Network.Version, now.Version)
	if !to.Led() {
		return nil, n.update(func(s *stored) {
			if c := s.Change; c != nil { // the network that was to be is given up
				s.record(s.Network.Version, c.Phase >= switched)
				s.Change = nil
			}
			s.Network, s.Restored, s.Lost = to, false, nil
		})
	}
	if before.Change != nil {
		return nil, unfinished()
	}
	known, err := n.checkRemotes(ctx, previous, to, absent)
	if err != nil {
		return nil, err
	}
	to.Version = newVersion(append(known, to.Version)...)
	a := &announced{Network: to, Previous: previous, Absent: absent, Ages: ages}
	if a.Rebuilt, err = n.rebuildable(before.Lost, absent, now, to); err != nil {
		return nil, err
	}
	return n.announce(a)
}

// announce has all instances change to a network. patching is held.
func (n *Node) announce(a *announced) (*task.Task, error) {
	to := a.Network
	f := &task.Forward{Version: to.Version.String(), Method: "PATCH", Path: "/network", ContentType: "application/json", Bodies: map[string][]byte{}}
	for name := range everybody(to, a.Previous) {
		if name != to.SelfName() && !slices.Contains(a.Absent, name) {
			f.Remotes = append(f.Remotes, name)
			f.Bodies[name] = announcement(a, name)
		}
	}
	n.ordering.Lock()
	defer n.ordering.Unlock()
	t, err := n.queue.Load().Enqueue(context.Background(), task.New{Content: task.ChangeTopology{State: encode(a)}, Forward: f})
	if err != nil {
		return nil, err
	}
	if err := n.install(t.UID, a); err != nil {
		n.o.Logger.Error("a change of the network is in progress, but its file cannot be written yet", "task", t.UID, "error", err)
	}
	return t, nil
}

func unfinished() error {
	return apierr.New("unprocessed_network_task", "A change of the network is in progress. Wait for the task of type `networkTopologyChange`, or cancel it.")
}

// everybody are the remotes of two networks.
func everybody(a, b *Network) map[string]*Remote {
	all := map[string]*Remote{}
	for name, r := range b.Remotes {
		all[name] = r
	}
	for name, r := range a.Remotes {
		all[name] = r
	}
	return all
}

// announcement is the body by which an instance learns of a change.
func announcement(a *announced, to string) []byte {
	var self *string
	if a.Network.Remotes[to] != nil {
		self = &to
	}
	return encode(struct {
		Self            *string            `json:"self"`
		Leader          *string            `json:"leader"`
		Remotes         map[string]*Remote `json:"remotes"`
		Shards          map[string]*Shard  `json:"shards"`
		PreviousRemotes map[string]*Remote `json:"previousRemotes"`
		PreviousShards  map[string]*Shard  `json:"previousShards"`
		PreviousLeader  *string            `json:"previousLeader"`
		Rebuilt         []string           `json:"rebuilt"`
		Absent          []string           `json:"absent,omitempty"`
		Ages            map[string]int     `json:"ages"`
	}{self, a.Network.Leader, a.Network.Remotes, a.Network.Shards, a.Previous.Remotes, a.Previous.Shards, a.Previous.Leader, a.Rebuilt, a.Absent, a.Ages})
}

// Announced takes up a change that the leader announces in the body of a request, as a task of its own.
func (n *Node) Announced(ctx context.Context, origin *task.Origin, body []byte) (*task.Task, error) {
	version, err := uuid.Parse(origin.Version)
	if err != nil {
		return nil, apierr.New("invalid_header_value", "The version of the network must be a UUID, but it is `%s`.", origin.Version)
	}
	var b struct {
		Self, Leader, PreviousLeader *string
		Remotes, PreviousRemotes     map[string]*Remote
		Shards, PreviousShards       map[string]*Shard
		Rebuilt, Absent              []string
		Ages                         map[string]int
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, apierr.New("bad_request", "The announced network cannot be read: %v.", err)
	}
	a := &announced{
		Network:  &Network{Self: b.Self, Leader: b.Leader, Version: version, Remotes: b.Remotes, Shards: b.Shards},
		Previous: &Network{Leader: b.PreviousLeader, Remotes: b.PreviousRemotes, Shards: b.PreviousShards},
		Rebuilt:  b.Rebuilt,
		Absent:   b.Absent,
		Ages:     b.Ages,
	}
	if err := a.Network.check(); err != nil || !a.Network.Led() {
		return nil, apierr.New("bad_request", "The announced network is not valid: %v.", err)
	}
	if err := a.Previous.check(); err != nil {
		return nil, apierr.New("bad_request", "The announced network is not valid: %v.", err)
	}
	if *a.Network.Leader != origin.Remote {
		return nil, apierr.New("not_a_leader", "`%s` announced the network, but its leader is `%s`. Only the leader may announce it.", origin.Remote, *a.Network.Leader)
	}
	n.patching.Lock()
	defer n.patching.Unlock()
	now := n.snapshot()
	if now.Change != nil && now.Network.Version != version {
		return nil, unfinished()
	}
	t, err := n.queue.Load().Enqueue(ctx, task.New{Content: task.ChangeTopology{State: encode(a)}, Origin: origin})
	if err != nil {
		return nil, err
	}
	return t, n.install(t.UID, a)
}

// install makes an announced network the visible one, while searches and older tasks use the previous one. It does so even if it
// fails to store that, because the task persists and later writes must use the new network. A repeated call has no effect.
func (n *Node) install(uid uint32, a *announced) error {
	return n.impose(func(s *stored) {
		if s.ended(a.Network.Version) != nil || s.Change != nil && s.Network.Version == a.Network.Version {
			return
		}
		s.Change = &change{Task: uid, Before: s.Network, Previous: a.Previous}
		s.Change.Rebuilt = slices.DeleteFunc(slices.Clone(a.Rebuilt), func(name string) bool { return slices.Contains(a.Absent, name) })
		s.Network = a.Network
	})
}

// adopt continues a change whose task was stored just before the process ended, and abandons a change whose task does not exist.
func (n *Node) adopt() {
	f := task.Filter{Kinds: []task.Kind{task.NetworkTopologyChange}, Statuses: []task.Status{task.Enqueued, task.Processing}, Reverse: true, Limit: 1}
	list, err := n.queue.Load().Tasks(f)
	if err != nil {
		n.o.Logger.Error("the changes of the network cannot be listed", "error", err)
		return
	}
	if list.From == nil {
		n.endChange()
		return
	}
	uid := *list.From
	t, err := n.queue.Load().Task(uid, nil)
	if err == nil {
		var a *announced
		if a, err = decodeAnnounced(t.Content.(task.ChangeTopology).State); err == nil {
			err = n.install(uid, a)
		}
	}
	if err != nil {
		n.o.Logger.Error("the change of the network cannot be resumed", "task", uid, "error", err)
	}
}

// endChange ends a change whose task does not exist or has ended without it.
func (n *Node) endChange() {
	now := n.snapshot()
	switch c := now.Change; {
	case c == nil:
	case c.Phase < moved || now.Network.Leads() && !c.Commit:
		n.giveUp(now.Network.Version)
	default:
		n.done.Go(func() { n.resolve(now.Network) })
	}
}

// resolve ends a change, as the leader has decided, if its task ended when this instance had already moved. Documents of other
// instances stay, hidden, until the next change.
func (n *Node) resolve(to *Network) {
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		if s := n.snapshot(); s.Change == nil || s.Network.Version != to.Version {
			return
		}
		st := n.state(to.Version)
		if !to.Leads() && !st.Committed {
			var err error
			if st, err = n.changeAt(n.ctx, *to.Leader, to.Remotes[*to.Leader], to.Version); err != nil {
				st = ChangeState{}
			}
		}
		switch {
		case st.Committed:
			err := n.update(func(s *stored) {
				if s.Change != nil && s.Network.Version == to.Version {
					s.Lost = slices.DeleteFunc(slices.Clone(s.Lost), func(name string) bool { return to.Remotes[name] == nil })
					s.Change = nil
					s.record(to.Version, true)
				}
			})
			if err == nil {
				return
			}
			n.o.Logger.Error("cannot store a committed change of the network", "error", err)
		case st.Canceled:
			n.giveUp(to.Version)
			return
		}
		select {
		case <-time.After(pause):
		case <-n.ctx.Done():
			return
		}
	}
}

const checkTimeout = 5 * time.Second

// checkRemotes asks every remote that is not absent whether it can take part in a change. Remotes that are being removed need not
// answer. It returns the versions of the network that remotes have.
func (n *Node) checkRemotes(ctx context.Context, before, to *Network, absent []string) ([]uuid.UUID, error) {
	all := everybody(to, before)
	maps.DeleteFunc(all, func(name string, _ *Remote) bool { return slices.Contains(absent, name) })
	names := sortedNames(all)
	versions, errs := make([]uuid.UUID, len(names)), make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, min(checkTimeout, n.o.AnswerTimeout))
			defer cancel()
			versions[i], errs[i] = n.checkRemote(ctx, name, all[name])
		})
	}
	group.Wait()
	for i, name := range names {
		if to.Remotes[name] != nil && errs[i] != nil {
			return nil, errs[i]
		}
	}
	return versions, nil
}

// checkRemote returns the version of the network that the remote has.
func (n *Node) checkRemote(ctx context.Context, name string, r *Remote) (version uuid.UUID, err error) {
	var features struct{ Network bool }
	if err := n.ask(ctx, name, r, &request{Message: featuresMessage, key: r.WriteAPIKey}, &features); err != nil {
		return version, err
	}
	if !features.Network {
		return version, apierr.New("feature_not_enabled", "The experimental feature `network` is disabled on the remote `%s`. Enable it there.", name)
	}
	var tasks struct{ Results []json.RawMessage }
	if err := n.ask(ctx, name, r, &request{Message: tasksMessage, key: r.WriteAPIKey}, &tasks); err != nil {
		return version, err
	}
	if len(tasks.Results) > 0 {
		return version, apierr.New("unprocessed_network_task", "The remote `%s` has not finished a change of the network. Wait for it, or cancel it there.", name)
	}
	var refused *apierr.Error
	st, err := n.changeAt(ctx, name, r, uuid.Nil)
	if errors.As(err, &refused) && refused.Code == "remote_bad_request" {
		return version, apierr.New("remote_bad_request", "The remote `%s` is not svc, or an older version. It can be a remote of searches, but not part of a network with a leader (%v).", name, err)
	}
	return st.Version, nil
}

// ask makes a request, again after a failure that may pass, and decodes the answer into v.
func (n *Node) ask(ctx context.Context, name string, r *Remote, q *request, v any) error {
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		got, again, err := n.do(ctx, name, r, q)
		if err == nil {
			if e := json.Unmarshal(got.body, v); e != nil {
				return apierr.New("remote_bad_response", "The answer of the remote `%s` to %s cannot be read: %v.", name, q.Path, e)
			}
			return nil
		}
		if !again || pause > time.Second/4 {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// address returns the remote of a name, even if it is being removed, or nil.
func (n *Node) address(name string) *Remote {
	s := n.snapshot()
	if r := s.Network.Remotes[name]; r != nil {
		return r
	}
	if s.Change != nil {
		return s.Change.Previous.Remotes[name]
	}
	return nil
}

// giveUp ends a change without a commit, if it is the one under way. Where that cannot be stored the next start does it again.
func (n *Node) giveUp(version uuid.UUID) {
	err := n.impose(func(s *stored) {
		if s.Change != nil && s.Network.Version == version {
			s.undo()
		}
	})
	if err != nil {
		n.o.Logger.Error("cannot store that a change of the network was abandoned", "error", err)
	}
	n.exports.drop()
}

// String is for logs: it has no keys.
func (r *Remote) String() string { return fmt.Sprintf("remote at %s", r.trimmed()) }

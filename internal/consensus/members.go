package consensus

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// Member is a member of the group.
type Member struct {
	ID, Addr string
	Votes    bool
}

// match is what a leader knows of the log of a member.
type match struct {
	term  uint64 // of the leader: in another one, entries behind the committed ones may have been replaced
	index uint64
	at    time.Time
}

// acked notes that a member has the log up to an entry, as it told the leader of a term.
func (n *Node) acked(id string, term, index uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch m := n.matched[id]; {
	case term < m.term: // it comes late
		return
	case term == m.term:
		index = max(index, m.index)
	}
	n.matched[id] = match{term, index, time.Now()}
}

// lacks returns up to which entry a member had the log in a term, if its last entry is before that now; else 0.
func (n *Node) lacks(id string, term, last uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.matched[id]; m.term == term && last < m.index {
		return m.index
	}
	return 0
}

// Matched returns up to which entry a member is known to have the log, and how long ago it answered last.
func (n *Node) Matched(id string) (index uint64, ago time.Duration, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m, ok := n.matched[id]
	return m.index, time.Since(m.at), ok
}

// Members returns the members, as far as the node knows.
func (n *Node) Members() []Member {
	r, err := n.current()
	if err != nil {
		return nil
	}
	f := r.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	var all []Member
	for _, s := range f.Configuration().Servers {
		all = append(all, Member{string(s.ID), string(s.Address), s.Suffrage == raft.Voter})
	}
	return all
}

// memberTime is how long a change of the members may wait until others are done.
const memberTime = 5 * time.Second

// Add adds a member, or changes its address, or has it vote. Only the leader can.
func (n *Node) Add(m Member) error {
	r, err := n.current()
	if err != nil {
		return err
	}
	if m.Votes {
		return r.AddVoter(raft.ServerID(m.ID), raft.ServerAddress(m.Addr), 0, memberTime).Error()
	}
	return r.AddNonvoter(raft.ServerID(m.ID), raft.ServerAddress(m.Addr), 0, memberTime).Error()
}

// Remove removes a member. Only the leader can.
func (n *Node) Remove(id string) error {
	r, err := n.current()
	if err != nil {
		return err
	}
	return r.RemoveServer(raft.ServerID(id), 0, memberTime).Error()
}

// Transfer has another member lead: the given one, or with "" the one that has most of the log.
func (n *Node) Transfer(id string) error {
	r, err := n.current()
	if err != nil {
		return err
	}
	if id == "" {
		return r.LeadershipTransfer().Error()
	}
	for _, m := range n.Members() {
		if m.ID == id {
			return r.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(m.Addr)).Error()
		}
	}
	return fmt.Errorf("the group has no member %s", id)
}

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

// match is what a leader knows about the log of a member.
type match struct {
	term  uint64 // of the leader; under another one, uncommitted entries may have been replaced
	index uint64
	at    time.Time
	reads uint64 // the value of Node.reads when the last message that it answered was sent
}

// acked records that a member told the leader of a term that its log has all entries up to index. reads is the value of Node.reads when
// the leader sent the message.
func (n *Node) acked(id string, term, index, reads uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch m := n.matched[id]; {
	case term < m.term: // a late message
		return
	case term == m.term:
		index, reads = max(index, m.index), max(reads, m.reads)
	}
	n.matched[id] = match{term, index, time.Now(), reads}
	if n.answered != nil {
		close(n.answered)
		n.answered = nil
	}
}

// confirmed reports whether a majority of the voters have answered messages that the leader of a term sent after a read began: no later
// leader was elected before that. If not, changed is closed at the next answer.
func (n *Node) confirmed(term, read uint64, all []Member) (yes bool, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answers, voters := 0, 0
	for _, m := range all {
		if !m.Votes {
			continue
		}
		voters++
		if x := n.matched[m.ID]; m.ID == n.o.ID || x.term == term && x.reads >= read {
			answers++
		}
	}
	if answers > voters/2 {
		return true, nil
	}
	if n.answered == nil {
		n.answered = make(chan struct{})
	}
	return false, n.answered
}

// lacks returns the index up to which a member had the log in a term if its last entry is now before it, else 0.
func (n *Node) lacks(id string, term, last uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.matched[id]; m.term == term && last < m.index {
		return m.index
	}
	return 0
}

// Matched returns the index up to which a member is known to have the log, and the time since its last response.
func (n *Node) Matched(id string) (index uint64, ago time.Duration, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m, ok := n.matched[id]
	return m.index, time.Since(m.at), ok
}

// Members returns the members that the node knows.
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

// memberTime is how long a membership change may wait for others to finish.
const memberTime = 5 * time.Second

// Add adds a member, changes its address, or makes it a voter. Only the leader can.
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

// Transfer hands leadership to a member, or with "" to the one with the longest log.
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

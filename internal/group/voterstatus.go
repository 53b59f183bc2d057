package group

import (
	"slices"

	"svc/internal/consensus"
)

// VoterStatus is how a voter stands.
type VoterStatus struct {
	Leader     string `json:"leader"`             // its address; "": the group has none now
	Leads      bool   `json:"leads"`              // this member takes the writes
	Votes      bool   `json:"votes"`              // this member does
	Committed  uint64 `json:"committed"`          // entries that the group has accepted, as far as this member knows
	Draining   bool   `json:"draining,omitempty"` // it stops: clients are to use another member
	Reigns     uint64 `json:"reigns"`             // how often this member became the leader since the program started
	Suppressed uint64 `json:"suppressed"`         // messages that were not sent because of a disk that stalls or fails
	// Staleness is the number of seconds since the data last equalled those of the leader, or null if unknown.
	Staleness *float64 `json:"stalenessSeconds"`
	Problem   string   `json:"problem,omitempty"`
}

// Votes reports whether this voter has a vote. It has none while it copies the data. Votes does not wait for the disk. While the log
// is reopened, it returns the last known state.
func (v *Voter) Votes() bool {
	node := v.current()
	var members []consensus.Member
	if node != nil {
		members = node.Members()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(members) > 0 {
		v.votes = slices.ContainsFunc(members, func(m consensus.Member) bool { return m.ID == v.id.Member && m.Votes })
	}
	return v.votes
}

// Status returns what the voter knows.
func (v *Voter) Status() *Status {
	node := v.current()
	staleness, known := v.Staleness()
	votes := v.Votes()
	v.mu.Lock()
	s := &Status{Name: v.id.Name, Group: v.id.Group, Member: v.id.Member, Role: RoleVoter, Term: v.id.Term, Position: v.pos.String(), Voter: &VoterStatus{}, Members: []MemberStatus{}}
	index, leads := v.pos.Index, v.reign != nil
	s.Voter.Leads, s.Voter.Votes, s.Voter.Reigns, s.Voter.Draining = leads, votes, v.reigns, v.draining
	if v.problem != nil {
		s.Voter.Problem = v.problem.Error()
	}
	at := v.pos
	if leads {
		s.Members = append(s.Members, v.readings()...)
	}
	v.mu.Unlock()
	if known {
		seconds := staleness.Seconds()
		s.Voter.Staleness = &seconds
	}
	if node == nil {
		return s
	}
	st, _ := node.State()
	leader, addr := node.Leader()
	s.Voter.Leader, s.Voter.Committed, s.Voter.Suppressed = addr, st.Committed, node.Suppressed()
	last := node.Last()
	for _, m := range node.Members() {
		x := MemberStatus{Member: m.ID, Address: m.Addr, State: StateFollows, Votes: m.Votes}
		if m.ID == leader {
			x.State = StateLeads
		}
		switch matched, ago, heard := node.Matched(m.ID); {
		case m.ID == s.Member:
			at.Index = index
			x.Position = at.String()
			lag := max(st.Committed, index) - index
			x.Lag = &lag
		case !leads:
		case !heard || ago > caughtTime:
			x.State = StateAway
		default:
			lag := max(last, matched) - matched
			at.Index, x.Lag = matched, &lag
			x.Position = at.String()
		}
		s.Members = append(s.Members, x)
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int {
		if a.Address < b.Address {
			return -1
		}
		return 1
	})
	return s
}

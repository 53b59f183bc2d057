package consensus

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestProposalsAreOfOneTerm checks that a member that has lost the lead and leads again appends no change that was proposed in the former
// term: neither if Propose knows the later term, nor if the lead is lost and won again after it has compared the terms.
func TestProposalsAreOfOneTerm(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		l := c.leader()
		c.must(l.propose("before"))
		was, _ := l.node.State()
		c.must(l.node.Transfer(""))
		c.must(c.leader(l).propose("between"))
		c.agree()
		c.must(c.leader(l).node.Transfer(l.id))
		c.until("it leads again", func() bool { s, _ := l.node.State(); return s.Leads })
		l.keep("former", "passed")
		if _, err := l.node.Propose(was.Term, []byte("former"), nil); !errors.Is(err, ErrNotLeader) {
			t.Errorf("a change of a former term is answered with %v", err)
		}
		r, err := l.node.current()
		c.must(err)
		_, id := l.node.proposals.add(was.Term)
		c.must(r.ApplyLog(raft.Log{Data: []byte("passed"), Extensions: id}, 0).Error())
		c.must(l.propose("after"))
		if all := c.agree(); !slices.Equal(all, []string{"before", "between", "after"}) {
			t.Errorf("the members have %q", all)
		}
	})
}

// TestAbandonedProposals checks that nothing is appended for a caller that no longer waits, and that Pending knows of what was appended
// before. The disk of the leader hangs, so raft takes a proposal late.
func TestAbandonedProposals(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		l := c.leader()
		c.must(l.propose("before"))
		c.agree()
		s, _ := l.node.State()
		stall := make(chan struct{})
		l.disk.set(false, stall)
		c.cut(l, true)
		over, answers := make(chan struct{}), make(chan error, 3)
		for _, data := range []string{"syncs", "waits", "late"} {
			l.keep(data)
			go func() {
				_, err := l.node.Propose(s.Term, []byte(data), over)
				answers <- err
			}()
			time.Sleep(time.Millisecond) // keeps the order
		}
		close(over)
		for range 3 {
			if err := <-answers; !errors.Is(err, ErrNotLeader) {
				t.Errorf("a caller that does not wait gets %v", err)
			}
		}
		if !l.node.Pending() {
			t.Error("no proposal is pending, and one is being synced")
		}
		l.disk.set(false, nil)
		close(stall)
		c.cut(l, false)
		c.until("nothing is pending", func() bool { return !l.node.Pending() })
		c.must(c.leader().propose("after"))
		if all := c.agree(); !slices.Equal(all, []string{"before", "syncs", "after"}) && !slices.Equal(all, []string{"before", "syncs", "waits", "after"}) {
			t.Errorf("the members have %q", all)
		}
	})
}

// TestLeadersHaveTheFiles checks that a leader appends no entry whose files it lacks: it could not send them to any member.
func TestLeadersHaveTheFiles(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		l := c.leader()
		if err := proposeNow(l.node, "without"); !errors.Is(err, ErrNotLeader) {
			t.Errorf("a change without its file is answered with %v", err)
		}
		c.must(l.propose("with"))
		if all := c.agree(); !slices.Equal(all, []string{"with"}) {
			t.Errorf("the members have %q", all)
		}
	})
}

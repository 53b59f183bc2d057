package consensus

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

var seeds = flag.Int("consensus-seeds", 3, "how many histories TestAcceptedEntriesStay runs")

// TestAcceptedEntriesStay checks that an accepted entry is in the log of every member once, in one order, whatever happens to the members.
func TestAcceptedEntriesStay(t *testing.T) {
	for range *seeds {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			run(t, 3, false, func(c *cluster) {
				var accepted []string
				for i := range 200 {
					m := c.all[r.IntN(3)]
					if l := c.leads(); l != nil && r.IntN(4) > 0 {
						m = l
					}
					switch n := r.IntN(40); {
					case m.node == nil:
						if n < 8 {
							m.open()
						}
					case n == 0 && c.running() == 3:
						m.close()
					case n == 1:
						c.cut(m, true)
					case n == 2:
						c.cut(m, false)
					case n == 3:
						m.disk.set(true, nil)
						time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
						m.disk.set(false, nil)
					case n == 4:
						m.mu.Lock()
						m.gone = !m.gone
						m.mu.Unlock()
					case n == 5:
						time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
					case n == 6:
						m.disk.fill(true)
						time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
						m.disk.fill(false)
					default:
						data := fmt.Sprint(i)
						if m.propose(data) == nil {
							accepted = append(accepted, data)
						}
					}
				}
				for _, m := range c.all {
					if m.node == nil {
						m.open()
					}
					c.cut(m, false)
				}
				c.until("an entry is accepted", func() bool {
					l := c.leads()
					return l != nil && l.propose("last") == nil
				})
				all := c.agree()
				for _, data := range accepted {
					if !slices.Contains(all, data) {
						t.Errorf("entry %s was accepted, and is lost", data)
					}
				}
				slices.Sort(all)
				if n := len(all); len(slices.Compact(all)) < n-1 { // the last one may be repeated
					t.Errorf("%d entries, some of them twice", n)
				}
			})
		})
	}
}

func (c *cluster) running() (n int) {
	for _, m := range c.all {
		if m.node != nil {
			n++
		}
	}
	return n
}

// TestStalledLeaderIsReplaced checks that a leader whose disk hangs sends nothing, so that another one is elected. Raft alone
// would keep it.
func TestStalledLeaderIsReplaced(t *testing.T) {
	for _, bare := range []bool{false, true} {
		run(t, 3, bare, func(c *cluster) {
			l := c.leader()
			stall := make(chan struct{})
			l.disk.set(false, stall)
			go l.propose("hangs")
			time.Sleep(20 * time.Second)
			if other := c.leads(l); (other != nil) == bare {
				t.Errorf("bare %v: another member leads: %v", bare, other != nil)
			}
			if n := l.node.Suppressed(); (n > 0) == bare {
				t.Errorf("bare %v: %d messages were not sent", bare, n)
			}
			l.disk.set(false, nil)
			close(stall)
			c.until("an entry is accepted", func() bool {
				m := c.leads()
				return m != nil && m.propose("goes on") == nil
			})
			c.agree()
		})
	}
}

// TestSickMemberIsNotElected checks that a member whose log cannot be written does not stand for election for some time.
func TestSickMemberIsNotElected(t *testing.T) {
	for _, bare := range []bool{false, true} {
		run(t, 3, bare, func(c *cluster) {
			l := c.leader()
			l.disk.set(true, nil)
			if l.propose("fails") == nil {
				t.Error("an entry is accepted that its leader cannot write")
			}
			c.leader(l)
			time.Sleep(5 * time.Second)
			l.disk.set(false, nil)
			// The others cannot reach each other, so that only this member could be elected.
			for _, m := range c.all {
				for _, o := range c.all {
					if m != l && o != l {
						m.carrier.mu.Lock()
						m.carrier.cut[raft.ServerAddress(o.id)] = true
						m.carrier.mu.Unlock()
					}
				}
			}
			stands := func() bool { return l.node.guard.stands() == nil }
			if stands() != bare {
				t.Errorf("bare %v: the sick member stands for election: %v", bare, stands())
			}
			time.Sleep(2 * sickTime)
			if !stands() {
				t.Error("the member does not stand for election after sickTime")
			}
		})
	}
}

// TestFailedAppendReopensRaft checks that raft is reopened when an append fails after a truncation: its last index is no longer
// that of the log.
func TestFailedAppendReopensRaft(t *testing.T) {
	for _, bare := range []bool{false, true} {
		run(t, 3, bare, func(c *cluster) {
			l := c.leader()
			c.must(l.propose("kept"))
			c.agree()
			// The leader has entries that no other member has, and is replaced.
			c.cut(l, true)
			for i := range 3 {
				go l.propose(fmt.Sprint("lost ", i))
			}
			other := c.leader(l)
			c.must(other.propose("taken"))
			l.disk.set(true, nil) // the truncation, or the append behind it, fails
			c.cut(l, false)
			time.Sleep(2 * time.Second)
			was, _ := l.node.current()
			l.disk.set(false, nil)
			time.Sleep(3 * time.Second)
			is, _ := l.node.current()
			if (was != is || was == nil) == bare {
				t.Errorf("bare %v: raft was opened again: %v", bare, was != is)
			}
			if bare {
				return
			}
			c.must(c.leader().propose("goes on"))
			if all := c.agree(); !slices.Equal(all, []string{"kept", "taken", "goes on"}) {
				t.Errorf("the log has %q", all)
			}
		})
	}
}

// TestFullDisk checks that a member whose disk is full waits before it takes a new term, also over restarts. Raft alone would panic.
func TestFullDisk(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		for round := range 3 {
			l := c.leader()
			c.must(l.propose(fmt.Sprint(round)))
			c.agree()
			full, other := c.all[(slices.Index(c.all, l)+1)%3], c.all[(slices.Index(c.all, l)+2)%3]
			full.disk.fill(true)
			c.cut(l, true)
			time.Sleep(10 * time.Second)
			if m := c.leads(l); m != nil {
				t.Errorf("round %d: %s leads, but the others cannot store the term", round, m.id)
			}
			if round == 1 {
				full.close()
				full.open()
				c.cut(l, true)
				time.Sleep(10 * time.Second)
			}
			if round == 2 {
				other.close()
				other.open()
				c.cut(l, true)
			}
			full.disk.fill(false)
			c.must(c.leader(l).propose(fmt.Sprint("more ", round)))
			c.cut(l, false)
			c.until("it follows", func() bool { s, _ := l.node.State(); return !s.Leads })
		}
		if all := c.agree(); len(all) != 6 {
			t.Errorf("the log has %q", all)
		}
	})
}

// TestReadIndex checks that only a leader that still leads answers, and that its index covers everything accepted before.
func TestReadIndex(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		l := c.leader()
		c.must(l.propose("a"))
		index, err := l.node.ReadIndex(context.Background())
		c.must(err)
		c.until("all have it", func() bool {
			return !slices.ContainsFunc(c.all, func(m *fellow) bool { return m.has() < index })
		})
		for _, m := range c.all {
			if !slices.Equal(m.data, []string{"a"}) {
				t.Errorf("%s has %q", m.id, m.data)
			}
			if m != l {
				if _, err := m.node.ReadIndex(context.Background()); !errors.Is(err, ErrNotLeader) {
					t.Errorf("a member that follows answers %v", err)
				}
			}
		}
		l.node.change(func(s *State) { s.Term-- }) // as if it had been elected again, and did not know yet what is committed
		if _, err := l.node.ReadIndex(context.Background()); !errors.Is(err, ErrNotLeader) {
			t.Errorf("a leader of an earlier term answers %v", err)
		}
		l.node.change(func(s *State) { s.Term++ })
		c.cut(l, true)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := l.node.ReadIndex(ctx); err == nil {
			t.Error("a leader that reaches no other member answers")
		}
	})
}

// TestFilesComeFirst checks that a member accepts no entry without its file, and copies the data if no member has the file any more.
func TestFilesComeFirst(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		l := c.leader()
		last := c.all[2]
		if last == l {
			last = c.all[1]
		}
		c.cut(last, true)
		for i := range 5 {
			c.must(l.propose(fmt.Sprint(i)))
		}
		for _, m := range c.all {
			m.mu.Lock()
			m.gone = true
			m.mu.Unlock()
		}
		shipped := last.shipped
		c.cut(last, false)
		if all := c.agree(); len(all) != 5 {
			t.Errorf("the members have %q", all)
		}
		if last.shipped != shipped {
			t.Error("files were sent that no member has")
		}
	})
}

// TestLogIsCut checks that entries which all members have applied leave the log, and that a member which was away copies the data.
func TestLogIsCut(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		l := c.leader()
		last := c.all[(slices.Index(c.all, l)+1)%3]
		last.close()
		for i := range 400 {
			c.must(l.propose(fmt.Sprint(i)))
		}
		time.Sleep(3 * snapshotInterval)
		for i := range 5 {
			c.must(l.propose(fmt.Sprint("more ", i)))
		}
		if first := l.node.log.First(); first < 100 {
			t.Errorf("the log begins at entry %d", first)
		}
		last.open()
		if all := c.agree(); len(all) != 405 {
			t.Errorf("the members have %d entries", len(all))
		}
		// A restarted member knows the other members.
		l.close()
		l.open()
		c.must(c.leader().propose("end"))
		c.agree()
		if n := len(l.node.Members()); n != 3 {
			t.Errorf("%d members", n)
		}
	})
}

// TestMembersChange changes the address of a member, removes one, and hands over the lead.
func TestMembersChange(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		l := c.leader()
		to := c.all[(slices.Index(c.all, l)+1)%3]
		c.must(l.node.Transfer(to.id))
		if now := c.leader(l); now != to {
			t.Errorf("%s leads, want %s", now.id, to.id)
		}
		if err := to.node.Transfer("nobody"); err == nil {
			t.Error("a hand-over to an unknown member has no error")
		}
		c.must(to.node.Remove(l.id))
		c.must(to.propose("after"))
		if n := len(to.node.Members()); n != 2 {
			t.Errorf("%d members", n)
		}
	})
}

package consensus

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// stalled proposes an entry to a leader whose disk hangs: it gets to the disk of only one other member. resume ends the stall.
func (c *cluster) stalled(l, other, last *fellow, data string) (index uint64, answer chan error, resume func()) {
	c.t.Helper()
	c.cut(last, true)
	stall := make(chan struct{})
	l.disk.set(false, stall)
	before := other.node.Last()
	answer = make(chan error, 1)
	go func() { answer <- l.propose(data) }()
	c.until("the other member has the entry", func() bool { return other.node.Last() > before })
	time.Sleep(100 * time.Millisecond) // long enough for several messages
	return before + 1, answer, func() {
		l.disk.set(false, nil)
		close(stall)
	}
}

// three returns the leader and the two others.
func (c *cluster) three() (l, other, last *fellow) {
	l = c.leader()
	i := slices.Index(c.all, l)
	return l, c.all[(i+1)%3], c.all[(i+2)%3]
}

// TestLeaderSendsWhileItSyncs checks that a leader sends an entry before the entry is durable on its own disk, but does not commit it
// before it is on the disks of a majority. The leader loses its power and then continues with the member that does not have the entry.
func TestLeaderSendsWhileItSyncs(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		c.must(c.leader().propose("first"))
		c.agree()
		l, other, last := c.three()
		_, answer, resume := c.stalled(l, other, last, "early")
		select {
		case err := <-answer:
			t.Errorf("an entry on one disk of three was answered: %v", err)
		default:
		}
		for _, m := range []*fellow{l, other} {
			if slices.Contains(m.data, "early") {
				t.Errorf("%s has applied an entry that is on one disk of three", m.id)
			}
		}
		c.cut(l, true)
		c.cut(other, true)
		if l.node.logs.inFlight() == nil {
			t.Error("the entry is durable at the leader, whose disk hangs")
		}
		left := l.disk.FS
		go func() {
			time.Sleep(time.Millisecond) // after the power is cut
			resume()
		}()
		c.crash(nil, l)
		if l.disk.FS == left {
			t.Fatal("the power was not cut")
		}
		l.open()
		if n := l.node.Last(); n >= other.node.Last() {
			t.Fatalf("the entry is on the disk of the leader: %d", n)
		}
		c.cut(l, true)
		c.join(l, last)
		c.must(c.leader(other).propose("later"))
		c.cut(other, false)
		if all := c.agree(); !slices.Equal(all, []string{"first", "later"}) {
			t.Errorf("the members have %q", all)
		}
	})
}

// TestEarlyEntriesAreCommitted sends an entry early, and then lets the disk recover, fail, or be overtaken by a request from
// another leader.
func TestEarlyEntriesAreCommitted(t *testing.T) {
	for _, what := range []string{"goes on", "fails", "asked"} {
		t.Run(what, func(t *testing.T) {
			run(t, 3, false, func(c *cluster) {
				c.must(c.leader().propose("first"))
				c.agree()
				l, other, last := c.three()
				index, answer, resume := c.stalled(l, other, last, "early")
				switch what {
				case "goes on":
					resume()
					c.must(<-answer)
				case "fails":
					l.disk.mu.Lock()
					l.disk.failing = true
					stall := l.disk.stall
					l.disk.stall = nil
					l.disk.mu.Unlock()
					close(stall)
					if <-answer == nil {
						t.Error("an entry was accepted that the leader could not sync")
					}
					time.Sleep(time.Second)
					l.disk.set(false, nil)
				case "asked": // another leader asks whether this member has the entry
					term := l.node.Term()
					args := &raft.AppendEntriesRequest{
						RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(other.id), Addr: []byte(other.id)},
						Term:      term + 1, PrevLogEntry: index, PrevLogTerm: term,
					}
					var resp raft.AppendEntriesResponse
					answered := make(chan error, 1)
					go func() {
						answered <- other.carrier.InmemTransport.AppendEntries(raft.ServerID(l.id), raft.ServerAddress(l.id), args, &resp)
					}()
					time.Sleep(500 * time.Millisecond)
					if len(answered) > 0 {
						t.Errorf("a member answers before its log is durable: %v, %+v", <-answered, resp)
					}
					resume()
				}
				c.cut(last, false)
				c.cut(l, false)
				c.until("an entry is accepted", func() bool { m := c.leads(); return m != nil && m.propose("last") == nil })
				all := slices.Compact(c.agree())
				if !slices.Equal(all, []string{"first", "early", "last"}) {
					t.Errorf("the members have %q", all)
				}
			})
		})
	}
}

// join reconnects two members.
func (c *cluster) join(a, b *fellow) {
	for _, x := range [2][2]*fellow{{a, b}, {b, a}} {
		x[0].carrier.mu.Lock()
		x[0].carrier.cut[raft.ServerAddress(x[1].id)] = false
		x[0].carrier.mu.Unlock()
	}
}

// TestPowerCutsLoseNothing cuts the power of members, alone or all at once, while leaders send entries before they sync them. Accepted
// entries must stay, and no member may have applied an entry that others do not have.
func TestPowerCutsLoseNothing(t *testing.T) {
	early := false
	for range *seeds {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			run(t, 3, false, func(c *cluster) {
				var accepted []string
				for _, m := range c.all {
					m.disk.slow(r.IntN(20))
				}
				for i := range 150 {
					l := c.leads()
					switch n := r.IntN(30); {
					case n == 0:
						c.cut(c.all[r.IntN(3)], r.IntN(2) == 0)
					case n <= 2: // one member, or all
						some := c.all
						if n == 1 {
							some = []*fellow{c.all[r.IntN(3)]}
						}
						for _, m := range some {
							c.cut(m, true)
						}
						for _, m := range some {
							early = early || m.node.logs.inFlight() != nil
						}
						c.crash(r, some...)
						for _, m := range some {
							m.disk.slow(r.IntN(20))
							m.open()
							c.cut(m, false)
						}
					case l == nil:
						time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
					default:
						data := fmt.Sprint(i)
						l.keep(data)
						done := make(chan error, 1)
						node := l.node
						go func() { done <- proposeNow(node, data) }()
						select {
						case err := <-done:
							if err == nil {
								accepted = append(accepted, data)
							}
						case <-time.After(time.Duration(r.IntN(40)) * time.Millisecond):
						}
					}
				}
				for _, m := range c.all {
					c.cut(m, false)
				}
				for _, m := range c.all {
					if m.lapsed {
						t.Fatalf("%s lacks what it had acknowledged", m.id)
					}
				}
				c.until("an entry is accepted", func() bool { l := c.leads(); return l != nil && l.propose("last") == nil })
				all := c.agree()
				for _, data := range accepted {
					if !slices.Contains(all, data) {
						t.Errorf("entry %s was accepted, and is lost", data)
					}
				}
			})
		})
	}
	if !early && *seeds > 20 {
		t.Error("no power cut hit an entry that was sent before it was durable")
	}
}

// TestOnlyChangesAreEarly checks that only data entries are sent early: the first entry of a leader and changes of members decide
// what is committed.
func TestOnlyChangesAreEarly(t *testing.T) {
	for _, x := range []struct {
		leads bool
		types []raft.LogType
		want  bool
	}{
		{true, []raft.LogType{raft.LogCommand}, true},
		{true, []raft.LogType{raft.LogCommand, raft.LogCommand}, true},
		{false, []raft.LogType{raft.LogCommand}, false},
		{true, []raft.LogType{raft.LogNoop}, false},
		{true, []raft.LogType{raft.LogCommand, raft.LogConfiguration}, false},
		{true, []raft.LogType{raft.LogBarrier, raft.LogCommand}, false},
	} {
		var all []*raft.Log
		for _, kind := range x.types {
			all = append(all, &raft.Log{Type: kind})
		}
		if got := (&logs{leads: func() bool { return x.leads }}).early(all); got != x.want {
			t.Errorf("leads %v, %v: %v", x.leads, x.types, got)
		}
	}
}

package consensus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"svc/internal/vfs"
)

// readIndex calls ReadIndex with a limit of ten seconds.
func (m *fellow) readIndex() (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return m.node.ReadIndex(ctx)
}

// TestReadsMissNothing checks that a member answers a read only if it knows everything accepted before the question. Raft alone answers
// with what the member has heard of: an isolated leader, a follower, and a leader elected a moment ago.
func TestReadsMissNothing(t *testing.T) {
	for _, bare := range []bool{false, true} {
		run(t, 3, bare, func(c *cluster) {
			l := c.leader()
			c.must(l.propose("before"))
			c.agree()
			// These members do not hear what another leader accepts.
			c.cut(l, true)
			other := c.leader(l)
			c.must(other.propose("after"))
			accepted, err := other.readIndex()
			c.must(err)
			stale := 0
			for _, m := range c.all {
				index, err := m.readIndex()
				if err == nil && index < accepted {
					stale++
				}
				if m == other && (err != nil || index < accepted) {
					t.Errorf("bare %v: the leader answers %d, %v; entry %d was accepted", bare, index, err, accepted)
				}
			}
			if (stale > 0) != bare {
				t.Errorf("bare %v: %d members answer what is older than what was accepted", bare, stale)
			}
			c.cut(l, false)
			c.agree()
		})
	}
}

// TestLargeChangesAreAccepted checks that a change too large for one message on a slow line travels as a file that its entry names. If it
// were an entry, raft would send it again and again, and accept nothing after it.
func TestLargeChangesAreAccepted(t *testing.T) {
	const speed, size = 64 << 10, 1 << 20 // 16 s
	for _, bare := range []bool{false, true} {
		run(t, 3, bare, func(c *cluster) {
			l := c.leader()
			c.must(l.propose("before"))
			c.agree()
			large := "names a file"
			if bare {
				large = strings.Repeat("x", size)
				c.slow(speed, 0)
			} else {
				c.slow(speed, size)
			}
			l.keep(large, "small")
			done := make(chan error, 2)
			for _, data := range []string{large, "small"} {
				go func() { done <- proposeNow(l.node, data) }()
				time.Sleep(time.Millisecond) // keeps the order
			}
			time.Sleep(time.Minute)
			if n := len(done); (n == 2) == bare {
				t.Errorf("bare %v: after a minute %d of 2 changes have ended", bare, n)
			}
			if !bare && c.leads() != l {
				t.Error("another member leads")
			}
			c.slow(0, 0)
			for range 2 {
				c.must(<-done)
			}
			if all := c.agree(); !slices.Equal(all, []string{"before", large, "small"}) {
				t.Errorf("the members have %d entries", len(all))
			}
		})
	}
}

// TestOlderFilesAreDetected checks that the leader detects a member whose files were replaced by older ones. It must not be treated as a
// member that is behind: it may have voted, and acknowledged entries that it now lacks.
func TestOlderFilesAreDetected(t *testing.T) {
	run(t, 3, false, func(c *cluster) {
		l := c.leader()
		c.must(l.propose("kept"))
		c.agree()
		m := c.all[(slices.Index(c.all, l)+1)%3]
		m.close()
		image, data, applied := m.disk.FS.(*vfs.MemFS).CrashClone(rand.New(rand.NewPCG(1, 2))), slices.Clone(m.data), m.applied
		m.open()
		for i := range 5 {
			c.must(l.propose(fmt.Sprint(i)))
		}
		c.agree()
		if m.lapsed {
			t.Error("a restarted member is reported as one with older files")
		}
		m.close()
		m.disk, m.data, m.applied = &disk{FS: image}, data, applied
		m.open()
		c.until("the leader has seen it", func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.lapsed
		})
		if c.leads() != l {
			t.Error("another member leads")
		}
		c.must(l.propose("goes on")) // accepted with the third member
		time.Sleep(time.Minute)
		if m.has() > applied {
			t.Errorf("the member has entry %d, and its files end at %d", m.has(), applied)
		}
		m.close()
	})
}

// TestHeartbeatsChangeNoTerm checks that a leader which hears of a leader with a later term appends nothing in that term. Raft alone does,
// where the other leader has another entry.
func TestHeartbeatsChangeNoTerm(t *testing.T) {
	for _, bare := range []bool{false, true} {
		run(t, 3, bare, func(c *cluster) {
			l := c.leader()
			c.must(l.propose("kept"))
			c.agree()
			s, _ := l.node.State()
			last := l.node.Last()
			c.cut(l, true) // no other member hears of what it appends
			beat := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, Addr: []byte("other"), ID: []byte("other")}, Term: s.Term + 1}
			var answer raft.AppendEntriesResponse
			c.must(c.beat(raft.ServerAddress(l.id), beat, &answer))
			if !answer.Success || answer.Term != beat.Term {
				t.Errorf("bare %v: it answers %+v", bare, answer)
			}
			if err := proposeNow(l.node, "late"); err == nil {
				t.Errorf("bare %v: it accepts an entry", bare)
			}
			late := 0
			c.must(l.node.log.Read(last+1, func(index uint64, b []byte) bool {
				var e raft.Log
				c.must(decodeLog(b, index, &e))
				if e.Term == beat.Term {
					late++
				}
				return true
			}))
			if (late > 0) != bare {
				t.Errorf("bare %v: it has %d entries in the term of the other leader", bare, late)
			}
		})
	}
}

// TestLostAnswersDelayNoCommit checks that a member learns that the last entry is committed although messages about it, or their answers,
// are lost. Nothing is proposed afterwards, and heartbeats do not carry the commit index. Raft alone waits before each retry, twice as
// long each time.
func TestLostAnswersDelayNoCommit(t *testing.T) {
	for _, lost := range []int{1, 2, 5} {
		for _, answers := range []bool{false, true} {
			run(t, 3, false, func(c *cluster) {
				l, m, _ := c.three()
				c.must(l.propose("first"))
				c.agree()
				left := lost
				l.carrier.mu.Lock()
				l.carrier.lose = func(to raft.ServerAddress, answer bool) bool {
					if to != raft.ServerAddress(m.id) || answer != answers || left == 0 {
						return false
					}
					left--
					return true
				}
				l.carrier.mu.Unlock()
				began := time.Now()
				c.must(l.propose("last"))
				c.agree()
				took := time.Since(began)
				if left == lost || left > 0 && !answers || took > 2*DefaultHeartbeat { // with only answers lost, the member has what it needs
					t.Errorf("after %d lost messages (answers: %v), of which %d were not sent, %s has the entry after %v", lost, answers, left, m.id, took)
				}
				if c.leads() != l {
					t.Error("another member leads")
				}
			})
		}
	}
}

// TestLateAnswersConfirmNoRead checks that a leader answers a read only after answers to messages that it sent since: earlier ones may
// arrive after their members have elected another leader. So may answers of a member that does not vote. Raft alone counts both.
func TestLateAnswersConfirmNoRead(t *testing.T) {
	for _, joins := range []bool{false, true} {
		run(t, 3, false, func(c *cluster) {
			l := c.leader()
			if joins {
				m := c.add(false)
				c.must(l.node.Add(Member{m.id, m.id, false}))
			}
			c.must(l.propose("before"))
			c.agree()
			l = c.leader()
			other, last := c.all[(slices.Index(c.all, l)+1)%3], c.all[(slices.Index(c.all, l)+2)%3]
			arrive := func() {}
			if joins {
				for _, m := range c.all {
					if m != other && m != last {
						c.cut(m, true) // none of them hears of the leader that the others elect
					}
				}
				l.carrier.reach(c.all[3], true)
				c.all[3].carrier.reach(l, true)
			} else {
				arrive = l.carrier.delay()
				time.Sleep(DefaultHeartbeat / 4) // each of the others has answered a heartbeat and an append
				other.carrier.reach(l, false)
				last.carrier.reach(l, false)
			}
			r, err := l.node.current()
			c.must(err)
			c.must(l.carrier.TimeoutNow(raft.ServerID(other.id), raft.ServerAddress(other.id), &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}, &raft.TimeoutNowResponse{}))
			c.until("another member leads", func() bool { s, _ := other.node.State(); return s.Leads })
			c.must(other.propose("after"))
			accepted, err := other.readIndex()
			c.must(err)
			if r.State() != raft.Leader {
				t.Fatal("the former leader has lost the lead before it was asked")
			}
			read := make(chan error, 1)
			go func() {
				index, err := l.readIndex()
				if err == nil && index < accepted {
					t.Errorf("joins %v: the former leader answers %d; entry %d was accepted", joins, index, accepted)
				}
				read <- err
			}()
			time.Sleep(time.Millisecond)
			arrive()
			if err := <-read; err == nil {
				t.Errorf("joins %v: a former leader answers a read", joins)
			}
			for _, m := range c.all {
				c.cut(m, false)
			}
			c.agree()
		})
	}
}

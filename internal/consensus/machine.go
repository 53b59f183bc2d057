package consensus

import (
	"errors"
	"io"

	"github.com/hashicorp/raft"
)

// newest returns a note of the current data directory, for a member that lacks entries.
func (n *Node) newest() *note {
	index := n.o.Applied()
	n.mu.Lock()
	config, at, log, committed := n.config, n.configA, n.log, n.state.Committed
	kept := n.notes.last()
	n.mu.Unlock()
	if kept == nil || index <= kept.Index || index > committed || at > index {
		return nil
	}
	var l raft.Log
	if (&logs{log: log}).GetLog(index, &l) != nil {
		return nil
	}
	return &note{index, l.Term, config, at}
}

// sendable reports whether a snapshot at an entry, or after it, can be sent to another member.
func (n *Node) sendable(index uint64) bool {
	all, err := n.notes.List()
	return err == nil && len(all) > 0 && all[0].Index >= index
}

// machine is the raft.FSM. It knows only positions.
type machine struct {
	n    *Node
	logs *logs
	last uint64 // index of the last entry that raft has applied
}

// Apply implements raft.FSM.
func (m *machine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM. The entries are committed but maybe not durable here: raft counts a leader's copy before
// that.
func (m *machine) ApplyBatch(all []*raft.Log) []any {
	m.last = all[len(all)-1].Index
	m.committed(m.last)
	for _, l := range all {
		if l.Type == raft.LogConfiguration {
			m.StoreConfiguration(l.Index, raft.DecodeConfiguration(l.Data))
		}
	}
	return make([]any, len(all))
}

// committed reports entries as committed once they are durable here. It does not wait on raft's goroutine: at a shutdown, raft would
// drop entries that it has not applied, and the proposals that wait for them.
func (m *machine) committed(index uint64) {
	if m.logs.durable(index) == index {
		m.n.committed(index)
		return
	}
	m.n.running.Go(func() {
		if m.logs.settled(index) == nil {
			m.n.committed(index)
		}
	})
}

// committed records that the entries up to index are committed and durable here.
func (n *Node) committed(index uint64) {
	n.change(func(s *State) { s.Committed = max(s.Committed, index) })
}

// StoreConfiguration implements raft.ConfigurationStore.
func (m *machine) StoreConfiguration(index uint64, c raft.Configuration) {
	m.n.mu.Lock()
	if index > m.n.configA {
		m.n.config, m.n.configA = c, index
	}
	m.n.mu.Unlock()
	m.n.change(func(s *State) { s.Committed = max(s.Committed, index) })
}

// errBehind is the error of a snapshot while the directory still lacks entries.
var errBehind = errors.New("the data directory does not have all entries yet")

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	s, _ := m.n.State()
	if m.n.o.Applied() < max(s.Committed, m.last) {
		return nil, errBehind
	}
	return noted{}, nil
}

// noted is a raft.FSMSnapshot.
type noted struct{}

func (noted) Persist(sink raft.SnapshotSink) error { return sink.Close() }
func (noted) Release()                             {}

// Restore implements raft.FSM: the data directory becomes that of another member.
func (m *machine) Restore(body io.ReadCloser) error {
	_, err := io.Copy(io.Discard, body)
	if err := errors.Join(err, body.Close()); err != nil {
		return err
	}
	pending := m.n.notes.take()
	if pending == nil {
		return nil // the directory has these entries
	}
	if err := m.n.o.Restore(pending.Index); err != nil {
		return err
	}
	if err := m.n.notes.keep(pending); err != nil {
		return err
	}
	m.StoreConfiguration(pending.ConfiguredAt, pending.Configuration)
	m.n.change(func(s *State) { s.Committed = max(s.Committed, pending.Index) })
	return nil
}

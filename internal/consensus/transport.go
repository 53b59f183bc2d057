package consensus

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// ErrGone is the error of a file that an entry names and that this member no longer has. A member that needs it copies the data
// directory.
var ErrGone = errors.New("a file that an entry names is gone")

// Carrier is the underlying transport: *raft.NetworkTransport, or that of tests.
type Carrier interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// transport sends the files of entries before the entries, and accepts no entry whose files are not here. An entry in the log of a
// member means that its files are on that member's disk, so raft's majorities and elections hold for the files, too.
type transport struct {
	Carrier
	guard *guard
	logs  *logs
	ship  func(id, addr string, entries []Entry) error
	check func(entries []Entry) error
	// forget is called with a member that did not accept entries, because it may have lost files that it had.
	forget func(id string)
	acked  func(id string, term, index, reads uint64)
	reads  *atomic.Uint64 // see Node.reads
	lacks  func(id string, term, last uint64) uint64
	lapsed func(id, addr string, term, index uint64)
	// sendable reports whether a snapshot at or after an entry can be sent.
	sendable func(index uint64) bool
	heard    func(index uint64) // is told up to where a leader says that entries are committed
	// follows reports whether raft follows in a term. nil: raft handles heartbeats alone.
	follows func(term uint64) bool

	rpcs   chan raft.RPC
	beats  chan raft.RPC // heartbeats that were answered, and of which raft is to learn
	done   chan struct{}
	close  func()
	closed sync.WaitGroup
}

func newTransport(c Carrier, g *guard, o *Options, l *logs, acked func(string, uint64, uint64, uint64), reads *atomic.Uint64, lacks func(string, uint64, uint64) uint64, sendable func(uint64) bool, heard func(uint64), follows func(uint64) bool) *transport {
	t := &transport{Carrier: c, guard: g, logs: l, ship: o.Ship, check: o.Check, forget: o.Forget, acked: acked, reads: reads, lacks: lacks, lapsed: o.Lapsed, sendable: sendable, heard: heard, follows: follows,
		rpcs: make(chan raft.RPC), beats: make(chan raft.RPC, 1), done: make(chan struct{})}
	t.close = sync.OnceFunc(func() { close(t.done) })
	t.closed.Go(t.relay)
	t.closed.Go(t.tell)
	return t
}

// relay forwards requests of other members, except entries without their files.
func (t *transport) relay() {
	for {
		var rpc raft.RPC
		select {
		case rpc = <-t.Carrier.Consumer():
		case <-t.done:
			return
		}
		if a, ok := rpc.Command.(*raft.AppendEntriesRequest); ok {
			t.heard(a.LeaderCommitIndex)
			if err := t.takes(a); err != nil {
				rpc.Respond(&raft.AppendEntriesResponse{}, err)
				continue
			}
		}
		select {
		case t.rpcs <- rpc:
		case <-t.done:
			return
		}
	}
}

// takes returns the reason not to forward a message of a leader, or nil. It waits until the log is durable, because the leader counts
// the entries that it finds there, and this member may have led before.
func (t *transport) takes(a *raft.AppendEntriesRequest) error {
	if a.PrevLogEntry > 0 {
		if err := t.logs.settled(everything); err != nil {
			return err
		}
	}
	if len(a.Entries) == 0 {
		return nil
	}
	return t.check(commands(a.Entries))
}

// commands returns the entries that are changes.
func commands(all []*raft.Log) []Entry {
	entries := make([]Entry, 0, len(all))
	for _, l := range all {
		if l.Type == raft.LogCommand {
			entries = append(entries, Entry{l.Index, l.Term, l.Data})
		}
	}
	return entries
}

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.rpcs }

// AppendEntriesPipeline implements raft.Transport.
func (t *transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries implements raft.Transport.
func (t *transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if err := t.guard.leads(); err != nil {
		return err
	}
	if entries := commands(args.Entries); len(entries) > 0 {
		err := t.ship(string(id), string(addr), entries)
		if errors.Is(err, ErrGone) && t.sendable(entries[0].Index) {
			// Answer as if the member had no log. Then raft goes back to before the first entry, which is in no log, and sends a
			// snapshot.
			*resp = raft.AppendEntriesResponse{Term: args.Term, NoRetryBackoff: true}
			return nil
		}
		if err != nil {
			return err
		}
	}
	sent := args
	if safe := t.logs.durable(args.LeaderCommitIndex); safe < args.LeaderCommitIndex {
		less := *args
		less.LeaderCommitIndex = safe
		sent = &less
	}
	reads := t.reads.Load()
	err := t.Carrier.AppendEntries(id, addr, sent, resp)
	switch {
	case err == nil && resp.Success:
		t.acked(string(id), args.Term, args.PrevLogEntry+uint64(len(args.Entries)), reads)
	case err == nil && resp.Term == args.Term:
		if index := t.lacks(string(id), args.Term, resp.LastLog); index > 0 {
			t.lapsed(string(id), string(addr), args.Term, index)
			return fmt.Errorf("the member %s lacks entries up to %d that it had: its files are older ones", id, index)
		}
	case err != nil && len(args.Entries) > 0:
		t.forget(string(id))
	}
	return err
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if err := t.guard.stands(); err != nil {
		return err
	}
	return t.Carrier.RequestVote(id, addr, args, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if err := t.guard.stands(); err != nil {
		return err
	}
	return t.Carrier.RequestPreVote(id, addr, args, resp)
}

// InstallSnapshot implements raft.Transport.
func (t *transport) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	reads := t.reads.Load()
	err := t.Carrier.InstallSnapshot(id, addr, args, resp, data)
	if err == nil && resp.Success {
		t.acked(string(id), args.Term, args.LastLogIndex, reads)
	}
	return err
}

// Close implements raft.WithClose. Raft calls it when it is shut down: the carrier stays, as the node may be opened again.
func (t *transport) Close() error { return nil }

// stop ends the relay. The carrier stays.
func (t *transport) stop() {
	t.close()
	t.closed.Wait()
}

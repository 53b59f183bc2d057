package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"svc/internal/logstore"
	"svc/internal/vfs"
)

// Options are the options of a node.
type Options struct {
	FS        vfs.FS
	Dir       string // directory of the node's files
	ID        string // of the member
	Carrier   Carrier
	Heartbeat time.Duration // time without a message from the leader after which another one is elected; 0: DefaultHeartbeat
	Logger    *slog.Logger

	// Ship makes sure that a member has the files of entries, synced. Its error is ErrGone if they no longer exist.
	Ship func(id, addr string, entries []Entry) error
	// Forget is called for a member that refused entries whose files it was sent.
	Forget func(id string)
	// Lapsed is called for a member that lost entries, up to one, that it had in its log in this term: its files are older ones.
	Lapsed func(id, addr string, term, index uint64)
	// Check returns an error if files of entries are missing here.
	Check func(entries []Entry) error
	// Applied returns the last entry that the data directory has durably.
	Applied func() uint64
	// Positions are stored in the log; nil: they are not.
	Positions *Positions
	// Restore replaces the data directory by that of another member, at an entry or after it. It returns once that is durable.
	Restore func(index uint64) error

	// Tests set these.
	fileSize  int64
	threshold uint64 // entries between two snapshots
	trailing  uint64 // entries that stay in the log after a snapshot
	stall     func() // called before an append to the log
	bare      bool   // raft alone, without the additions against stalling and failing disks, and for reads
}

// DefaultHeartbeat is the default of Options.Heartbeat.
const DefaultHeartbeat = 500 * time.Millisecond

const (
	commitTime       = 10 * time.Millisecond // time until the others learn that an entry is committed if no other entry follows
	maxAppend        = 16                    // entries per message
	snapshotInterval = 30 * time.Second
	defaultThreshold = 8192
	defaultTrailing  = 10240
)

// Positions say how much of the log a data directory has. The log stores them with later entries, so they become durable without a
// sync of their own.
type Positions struct {
	Made  func() uint64      // the current position; changes up to there are durable in the data directory
	Noted func(index uint64) // called when a position is durable in the log
	Keep  func() error       // makes all that was passed to Noted durable elsewhere
}

// Entry is a change in the log.
type Entry struct {
	Index, Term uint64
	Data        []byte
}

// ErrNotLeader is the error of a proposal to a member that does not lead, or lost the lead meanwhile. The entry may still be
// committed.
var ErrNotLeader = errors.New("this member does not lead the group")

var errWithdrawn = errors.New("it no longer leads in the term of the change, or lacks a file that the change names")

var errOpening = fmt.Errorf("%w: its log is being opened", ErrNotLeader)

// State is the state of a node.
type State struct {
	Leads     bool
	Term      uint64 // of the lead
	Committed uint64 // last entry known to be committed
}

// Node is one member's participation in the group.
type Node struct {
	o      Options
	log    *logstore.Log
	logs   *logs // of raft, over log
	stable *stable
	notes  *notes
	guard  *guard

	mu      sync.Mutex
	raft    *raft.Raft // nil: closed, or being reopened
	trans   *transport
	gone    chan struct{} // closed when raft is shut down
	state   State
	config  raft.Configuration // as committed
	configA uint64             // its index
	matched map[string]match   // by id: what is known about the logs of the others
	changed chan struct{}      // closed at the next change of the fields above
	closed  bool
	// answered is closed at the next answer of another member; nil: nobody waits for it.
	answered chan struct{}

	proposals proposals

	reads   atomic.Uint64 // counts calls of ReadIndex
	heard   atomic.Uint64 // last entry that a leader announced as committed
	broken  chan error
	opening chan struct{} // closed when the context of Open is done before Open returns
	done    chan struct{}
	running sync.WaitGroup
}

// Open opens a node. A directory without files is a member of no group: call Found first, or wait for a leader that has added the
// member. Open waits until the term can be written, or until ctx is done.
func Open(ctx context.Context, o Options) (*Node, error) {
	o.Dir = path.Clean(filepath.ToSlash(o.Dir))
	if o.Heartbeat == 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.threshold == 0 {
		o.threshold, o.trailing = defaultThreshold, defaultTrailing
	}
	n := &Node{o: o, guard: newGuard(o.bare), matched: map[string]match{}, changed: make(chan struct{}), broken: make(chan error, 1), opening: make(chan struct{}), done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { close(n.opening) })
	defer stop()
	if err := vfs.MakeDir(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("cannot open the log of the group: %w", err)
	}
	if err := n.start(); err != nil {
		return nil, fmt.Errorf("cannot open the log of the group: %w", err)
	}
	if err := n.stable.takes(); err != nil && ctx.Err() != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the log of the group: %w", err), n.Close())
	}
	n.running.Go(n.mend)
	return n, nil
}

// start opens the files and starts raft.
func (n *Node) start() (err error) {
	log, err := openLog(n.o.FS, n.o.Dir, n.o.fileSize)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, log.Close())
		}
	}()
	st, err := openStable(n.o.FS, path.Join(n.o.Dir, stateFile))
	if err != nil {
		return err
	}
	st.ended, st.done, st.opening, st.waits, st.fail = make(chan struct{}), n.done, n.opening, n.hold, n.fail
	kept, err := openNotes(n.o.FS, path.Join(n.o.Dir, snapshotFile))
	if err != nil {
		return err
	}
	n.mu.Lock() // the old files may still be in use
	n.log, n.stable, n.notes = log, st, kept
	n.mu.Unlock()
	n.notes.applied = n.o.Applied
	if kept := n.notes.last(); kept != nil && n.log.Next() <= kept.Index { // a copy of another member's data was noted, and then the process was killed
		if err := n.log.Reset(kept.Index + 1); err != nil {
			return err
		}
	}
	var started atomic.Pointer[raft.Raft]
	store := &logs{log: log, stable: st, guard: n.guard, applied: n.o.Applied, failed: n.fail, stall: n.o.stall, tag: tagOf(n.o.ID), at: n.o.Positions}
	var follows func(term uint64) bool
	if !n.o.bare {
		store.takes = n.takes
		store.leads = func() bool { r := started.Load(); return r != nil && r.State() == raft.Leader }
		follows = func(term uint64) bool { // read the term last: it may change when the member votes for another
			r := started.Load()
			return r != nil && r.State() == raft.Follower && r.CurrentTerm() == term
		}
	}
	n.mu.Lock()
	n.logs = store
	n.mu.Unlock()
	cache, err := store.cached()
	if err != nil {
		return err
	}
	leads := make(chan bool, 16)
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.o.ID)
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = n.o.Heartbeat, n.o.Heartbeat, n.o.Heartbeat*4/5
	c.CommitTimeout, c.MaxAppendEntries = commitTime, maxAppend
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = snapshotInterval, n.o.threshold, n.o.trailing
	c.NoSnapshotRestoreOnStart, c.NoLegacyTelemetry, c.ShutdownOnRemove = true, true, false
	c.NotifyCh = leads
	c.Logger = Quiet(n.o.Logger)
	trans := newTransport(n.o.Carrier, n.guard, &n.o, store, n.acked, &n.reads, n.lacks, n.sendable, n.hears, follows)
	if err := n.recall(); err != nil {
		trans.stop()
		return err
	}
	r, err := raft.NewRaft(c, &machine{n: n, logs: store}, cache, n.stable, n.notes, trans)
	if err != nil {
		trans.stop()
		return err
	}
	started.Store(r)
	n.notes.sendNewest(n.newest) // not earlier: raft starts with the kept note
	gone := make(chan struct{})
	n.mu.Lock()
	n.raft, n.trans, n.gone = r, trans, gone
	n.mu.Unlock()
	n.running.Go(func() { n.watch(r, leads, gone) })
	return nil
}

// recall restores the last known commit index and membership, from the data directory and the kept note.
func (n *Node) recall() error {
	kept := n.notes.last()
	if kept == nil {
		return nil
	}
	config, at := kept.Configuration, kept.ConfiguredAt
	var bad error
	applied := min(n.o.Applied(), n.log.Next()-1)
	if from := max(kept.Index+1, n.log.First()); from <= applied {
		err := n.log.Read(from, func(index uint64, b []byte) bool {
			var l raft.Log
			if bad = decodeLog(b, index, &l); bad == nil && l.Type == raft.LogConfiguration {
				config, at = raft.DecodeConfiguration(l.Data), index
			}
			return bad == nil && index < applied
		})
		if err := errors.Join(err, bad); err != nil {
			return err
		}
	}
	n.mu.Lock()
	n.config, n.configA = config, at
	n.mu.Unlock()
	n.change(func(s *State) { s.Committed = max(s.Committed, kept.Index, applied) })
	return nil
}

// stop undoes start.
func (n *Node) stop() error {
	n.mu.Lock()
	r, trans, gone, st, store := n.raft, n.trans, n.gone, n.stable, n.logs
	n.raft = nil
	n.mu.Unlock()
	if r == nil {
		return nil
	}
	trans.close() // first, so that requests that wait for raft get no response
	close(st.ended)
	err := r.Shutdown().Error()
	n.proposals.forget() // raft may drop some
	trans.stop()
	close(gone)
	n.change(func(s *State) { s.Leads = false })
	_ = store.settled(everything) // mend was told of errors
	return errors.Join(err, n.log.Close())
}

// watch records when the node begins and stops leading. It leads once it has everything that was committed before.
func (n *Node) watch(r *raft.Raft, leads <-chan bool, gone <-chan struct{}) {
	for {
		select {
		case <-gone:
			return
		case now := <-leads:
			if !now {
				n.change(func(s *State) { s.Leads = false })
				continue
			}
			term := r.CurrentTerm()
			if r.Barrier(0).Error() == nil && r.State() == raft.Leader && r.CurrentTerm() == term && len(leads) == 0 {
				n.change(func(s *State) { s.Leads, s.Term = true, term })
			}
		}
	}
}

// mend reopens the node after its log could not be written, because raft then does not know what the log contains.
func (n *Node) mend() {
	for {
		var err error
		select {
		case err = <-n.broken:
		case <-n.done:
			return
		}
		n.o.Logger.Error("the log of the group could not be written: it is opened again", "error", err)
		if err := n.stop(); err != nil {
			n.o.Logger.Warn("the log of the group could not be closed", "error", err)
		}
		select {
		case <-n.broken: // a second failure of the same incident
		default:
		}
		for {
			select {
			case <-n.done:
				return
			case <-time.After(time.Second):
			}
			if err = n.start(); err == nil {
				select {
				case <-n.done: // Close may have called stop before raft existed
					if err := n.stop(); err != nil {
						n.o.Logger.Warn("the log of the group could not be closed", "error", err)
					}
					return
				default:
				}
				break
			}
			n.o.Logger.Error("the log of the group cannot be opened: this is tried again", "error", err)
		}
	}
}

// fail makes mend reopen the node. It does not wait; failures that arrive together count as one.
func (n *Node) fail(err error) {
	if n.o.bare {
		return
	}
	select {
	case n.broken <- err:
	default:
	}
}

// hold is called when raft waits until the term can be written. The node meanwhile does not report itself as leader.
func (n *Node) hold(err error) {
	n.o.Logger.Error("this member takes no part in its group until its term can be written", "error", err)
	n.change(func(s *State) { s.Leads = false })
}

// change modifies the state under the lock.
func (n *Node) change(f func(*State)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.state)
	close(n.changed)
	n.changed = make(chan struct{})
}

// State returns the state, and a channel that is closed at its next change.
func (n *Node) State() (State, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state, n.changed
}

// current returns raft, or an error while there is none.
func (n *Node) current() (*raft.Raft, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.raft == nil {
		return nil, errOpening
	}
	return n.raft, nil
}

// Propose appends an entry to the log in a term that this member leads, and waits until it is committed, or until over is closed. It
// appends nothing in a later term, even if this member leads again, and nothing after it has returned: the change that the entry
// describes does not include what is committed meanwhile. After an error the entry may still be committed: see Pending.
func (n *Node) Propose(term uint64, data []byte, over <-chan struct{}) (index uint64, err error) {
	n.mu.Lock()
	r, store, s := n.raft, n.logs, n.state
	n.mu.Unlock()
	if r == nil {
		return 0, errOpening
	}
	if !s.Leads || s.Term != term {
		return 0, ErrNotLeader
	}
	id, extensions := n.proposals.add(term)
	var f raft.ApplyFuture
	done := make(chan error, 1)
	go func() { // raft may wait until it can write its term; a shutdown of raft ends this
		f = r.ApplyLog(raft.Log{Data: data, Extensions: extensions}, 0)
		err := f.Error()
		if err == nil {
			if err = store.settled(f.Index()); err == nil {
				n.committed(f.Index())
			}
		}
		if !n.proposals.end(id) && err == nil && !n.o.bare { // another entry was appended instead
			err = errWithdrawn
		}
		done <- err
	}()
	select {
	case err = <-done:
	case <-over:
		n.proposals.abandon(id)
		return 0, ErrNotLeader
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	return f.Index(), nil
}

// Pending reports whether entries that this member proposed are in its log, or about to be, and it is unknown whether they are committed.
func (n *Node) Pending() bool { return n.proposals.pending() }

// takes reports whether this member, which leads, may append a change: it is still wanted, and its files are here.
func (n *Node) takes(l *raft.Log) bool {
	if n.o.Check != nil && n.o.Check([]Entry{{l.Index, l.Term, l.Data}}) != nil {
		return false
	}
	return n.proposals.take(l)
}

// Begin records that a write of the data directory is in progress until end is called. A leader that hangs in it is replaced.
func (n *Node) Begin() (end func()) { return n.guard.begin() }

// Suppressed returns how many messages were suppressed because a disk stalled or failed.
func (n *Node) Suppressed() uint64 { return n.guard.suppressed() }

// ReadIndex returns the entry that a data directory has to have to show everything that was acknowledged before the call. Only the
// leader knows; it first makes sure that it still leads.
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) {
	r, err := n.current()
	if err != nil {
		return 0, err
	}
	// The state may be that of an earlier lead. Before the barrier of its term, a leader does not know what is committed.
	s, _ := n.State()
	index := r.CommitIndex()
	if n.o.bare {
		return index, nil
	}
	if !s.Leads || r.CurrentTerm() != s.Term {
		return 0, ErrNotLeader
	}
	// VerifyLeader has messages sent. It also counts answers to earlier messages, whose members may have elected another leader since,
	// and answers of members that do not vote.
	read := n.reads.Add(1)
	done := make(chan error, 1)
	go func() { done <- r.VerifyLeader().Error() }()
	select {
	case err := <-done:
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrNotLeader, err)
		}
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for {
		now, changed := n.State()
		if !now.Leads || now.Term != s.Term || r.CurrentTerm() != s.Term { // it may have lost the lead, and lead again
			return 0, ErrNotLeader
		}
		yes, answered := n.confirmed(s.Term, read, n.Members())
		if yes {
			return index, nil
		}
		select {
		case <-answered:
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Entries calls f with the entries from one index to another until f returns false. Entries that are no changes have no data.
func (n *Node) Entries(from, to uint64, f func(Entry) bool) error {
	n.mu.Lock()
	log := n.log
	n.mu.Unlock()
	var bad error
	err := log.Read(from, func(index uint64, b []byte) bool {
		var l raft.Log
		if bad = decodeLog(b, index, &l); bad != nil || index > to {
			return false
		}
		e := Entry{Index: index, Term: l.Term}
		if l.Type == raft.LogCommand {
			e.Data = l.Data
		}
		return f(e) && index < to
	})
	return errors.Join(err, bad)
}

// Last returns the index of the last entry in the log.
func (n *Node) Last() uint64 {
	n.mu.Lock()
	log := n.log
	n.mu.Unlock()
	return log.Next() - 1 // it may wait for the disk, which State does not
}

// Leader returns the id and the address of the leader, or "" if none is known.
func (n *Node) Leader() (id, addr string) {
	r, err := n.current()
	if err != nil {
		return "", ""
	}
	a, i := r.LeaderWithID()
	return string(i), string(a)
}

// Contact returns the time since the last message of the leader.
func (n *Node) Contact() (ago time.Duration, known bool) {
	r, err := n.current()
	if err != nil {
		return 0, false
	}
	at := r.LastContact()
	return time.Since(at), !at.IsZero()
}

// hears records the commit index that a leader announces.
func (n *Node) hears(index uint64) {
	for was := n.heard.Load(); was < index && !n.heard.CompareAndSwap(was, index); was = n.heard.Load() {
	}
}

// Heard returns the highest commit index that a leader has announced since the node was opened, or 0. The node may still lack these
// entries, and the last ones may contain no changes.
func (n *Node) Heard() uint64 { return n.heard.Load() }

// Term returns the current term of elections.
func (n *Node) Term() uint64 {
	r, err := n.current()
	if err != nil {
		return 0
	}
	return r.CurrentTerm()
}

// Close stops the node. The carrier stays open.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	n.mu.Unlock()
	close(n.done)
	err := n.stop()
	n.running.Wait()
	return errors.Join(err, n.stop()) // in case mend reopened it meanwhile
}

// Quiet returns a logger for raft that logs all its messages as details.
func Quiet(log *slog.Logger) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "raft", Level: hclog.Info, Output: &lines{log}, DisableTime: true})
}

type lines struct{ log *slog.Logger }

func (l *lines) Write(b []byte) (int, error) {
	l.log.Debug("raft", "line", string(b))
	return len(b), nil
}

// Tune configures a transport for a node.
func Tune(t *raft.NetworkTransport) *raft.NetworkTransport {
	t.TimeoutScale = 1 // see noteBody
	return t
}

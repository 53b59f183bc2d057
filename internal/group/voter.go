package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"svc/internal/commit"
	"svc/internal/consensus"
	"svc/internal/vfs"
)

// Voters are the members of a group that elect the writer. Any one of them may be lost: one leads and takes writes, and each change
// is on the disks of a majority before it is made. If the leader dies, the others elect one that has all changes.
//
// A voter follows the log as a reader does, with open stores, until it is elected. Then its stores lead, and package commit passes
// their changes to Do, which proposes them to the group and makes them in the order of the log. A voter that loses the lead closes
// its stores, because they may show changes that the group has not accepted. It opens them again and follows.

// Names below workDir of a voter.
const (
	ballotDir = workDir + "/ballot" // of package consensus
	spoolDir  = workDir + "/spool"
)

// VoterOptions are the options of a voter.
type VoterOptions struct {
	FS        vfs.FS
	Dir       string   // of the data
	Name      string   // of the group
	Addr      string   // where the others reach this one
	Join      []string // addresses of the first voters, this one's included, or of any members later
	MasterKey string
	TLS       Certificates
	Format    string // of the data directory
	Version   string // of the program
	Heartbeat time.Duration
	Logger    *slog.Logger

	// Init turns the directory of the first voter into that of a server without data, or checks the data that it has.
	Init func() error

	// Tests set these.
	now   func() time.Time // nil: time.Now
	level byte             // the newest level of entries that it reads and writes; 0: proposalVersion
}

// ErrLead is the error of Voter.Follow when this voter was elected, and its directory has all that was committed before.
var ErrLead = errors.New("this member leads the group from now on")

// Voter is a member of a group of voters. It is a commit.Log.
type Voter struct {
	o        VoterOptions
	key      secret
	own      *credentials
	node     *consensus.Node // nil before Enter
	carrier  *raft.NetworkTransport
	door     *door
	http     *http.Server
	peers    *http.Client
	spool    *spool
	sums     *sums
	position positions
	reader   *Reader // copies the data of other voters
	replaces chan *exchange
	lapsed   chan error // why this voter is not to take part any more
	done     chan struct{}
	drains   chan struct{} // closed when draining begins
	running  sync.WaitGroup
	asked    requests
	rounds   *rounds // of Latest

	turn    sync.Mutex    // held while a change is made in the directory
	made    atomic.Uint64 // index of pos
	durable atomic.Uint64 // index up to which position, or the log, has recorded durably what is applied

	unsynced unsynced

	saving sync.Mutex // of position
	kept   uint64     // index of its last record

	copying sync.Mutex // held while a copy of another voter's directory is made

	run string // an id of this process

	mu       sync.Mutex
	id       Identity
	data     bool // the directory has some, and belongs to no group
	pos      Position
	changed  chan struct{} // closed by the next change of pos
	reign    *reign        // nil: this voter does not lead
	pending  map[[16]byte]*pending
	named    map[string][]string   // files of manifests, by name of the manifest
	shipped  map[string]*shipments // by id
	stores   Stores                // open ones, for copies; nil: none are open
	feed     *VoterFeed            // of this reign; nil: this process does not follow it
	exchange *exchange             // that Replace ends
	damaged  bool
	problem  error
	troubled time.Time // since when there is a problem and no change was made; zero: no such time
	began    time.Time // when the node was opened
	fresh    time.Time
	readers  map[string]*reading
	levels   map[string]byte      // of other members, as they said last
	runs     map[string]string    // their processes, likewise
	states   map[string]time.Time // when members that were sent images last asked for them, or for their files
	caught   map[string]time.Time // since when a member that does not vote has nearly all of the log
	reigns   uint64               // so far
	draining bool
	votes    bool          // this voter is one of those that decide, as far as was known last
	rest     time.Duration // how long this voter does not lead after its stores could not
	rested   time.Time     // until when it does not
	closed   bool
}

// exchange is a wish to have the data directory replaced by a staged copy.
type exchange struct{ done chan error }

// OpenVoter turns the directory into that of a voter. It listens on l until Close.
func OpenVoter(o VoterOptions, l net.Listener) (_ *Voter, err error) {
	o.Dir = path.Clean(filepath.ToSlash(o.Dir))
	if o.now == nil {
		o.now = time.Now
	}
	if o.level == 0 {
		o.level = proposalVersion
	}
	v := &Voter{
		o: o, replaces: make(chan *exchange), lapsed: make(chan error, 1), done: make(chan struct{}), drains: make(chan struct{}), changed: make(chan struct{}), pending: map[[16]byte]*pending{},
		named: map[string][]string{}, shipped: map[string]*shipments{}, readers: map[string]*reading{}, caught: map[string]time.Time{}, levels: map[string]byte{}, runs: map[string]string{}, states: map[string]time.Time{}, sums: newSums(o.FS, o.Dir),
		run: newID(), asked: requests{log: o.Logger}, rounds: newRounds(),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	for _, dir := range []string{workDir, ballotDir} {
		if err := vfs.MakeDir(o.FS, v.path(dir)); err != nil {
			return nil, fmt.Errorf("cannot create the data directory: %w", err)
		}
	}
	if err := v.identify(); err != nil {
		return nil, err
	}
	if v.key, err = newSecret(o.MasterKey); err != nil {
		return nil, err
	}
	if v.own, err = newCredentials(o.TLS, o.Logger); err != nil {
		return nil, err
	}
	v.position = positions{fs: o.FS, name: v.path(positionFile)}
	v.reader = &Reader{o: ReaderOptions{FS: o.FS, Dir: o.Dir, Name: o.Name, Logger: o.Logger}, changed: make(chan struct{}), id: v.id, position: v.position}
	if err := v.reader.Replace(); err != nil {
		return nil, err
	}
	v.id = v.reader.id
	if _, err := v.recall(); err != nil {
		return nil, err
	}
	return v, v.serve(l)
}

func (v *Voter) path(name string) string { return path.Join(v.o.Dir, name) }

// identify reads or makes GROUP.
func (v *Voter) identify() error {
	id, err := identityOf(v.o.FS, v.o.Dir)
	switch {
	case err != nil:
		return err
	case id == nil:
		id = &Identity{Name: v.o.Name, Member: newID(), Role: RoleVoter, Term: 1}
		if err := id.write(v.o.FS, v.o.Dir); err != nil {
			return err
		}
	case id.Role != RoleVoter:
		return &RefusedError{refusedData, fmt.Sprintf("%s has the data of a %s of the group %q. A voter begins with an empty data directory, or with that of a server in no group", v.o.Dir, id.Role, id.Name)}
	case id.Name != v.o.Name:
		return &RefusedError{refusedGroup, fmt.Sprintf("%s belongs to a voter of the group %q, and --group-name says %q", v.o.Dir, id.Name, v.o.Name)}
	case id.Lapsed:
		return errLapsed(v.o.Dir)
	case id.Recovers:
		return &RefusedError{refusedData, fmt.Sprintf("svc group recover was interrupted in %s: run it again", v.o.Dir)}
	}
	v.id = *id
	if id.Rejoins && id.Group == "" { // Rejoin may have been cut off
		return id.forget(v.o.FS, v.o.Dir)
	}
	if id.Group == "" {
		names, err := v.o.FS.List(v.o.Dir)
		if err != nil {
			return err
		}
		v.data = slices.Contains(names, "indexes") || slices.Contains(names, "tasks")
	}
	return nil
}

// Enter turns the directory into that of a voter: the first one founds a group, the others ask to be added to one. It returns when
// that is done, or when ctx is.
func (v *Voter) Enter(ctx context.Context) error {
	founded, err := consensus.Founded(v.o.FS, v.path(ballotDir))
	if err != nil {
		return err
	}
	v.mu.Lock()
	id := v.id
	v.mu.Unlock()
	if id.Founds {
		if err := v.found(); err != nil {
			return err
		}
		return v.begin(ctx)
	}
	if founded || !v.Empty() {
		switch ok, err := consensus.Remembers(v.o.FS, v.path(ballotDir)); {
		case err != nil:
			return err
		case !ok:
			return errForgotten(v.o.Dir)
		}
	}
	if !founded {
		if err := v.meet(ctx); err != nil {
			return err
		}
	}
	return v.begin(ctx)
}

// begin opens the node, or ends with ctx.
func (v *Voter) begin(ctx context.Context) error {
	// The node takes part before Open returns. It may lead, or receive entries with files.
	s, err := openSpool(v.o.FS, v.path(spoolDir))
	if err != nil {
		return err
	}
	v.spool = s
	v.carrier = consensus.Tune(raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: &votes{v.door.votes, v}, MaxPool: 3, Timeout: raftTime, Logger: consensus.Quiet(v.o.Logger),
	}))
	node, err := consensus.Open(ctx, consensus.Options{
		FS: v.o.FS, Dir: v.path(ballotDir), ID: v.id.Member, Carrier: v.carrier, Heartbeat: v.o.Heartbeat, Logger: v.o.Logger,
		Ship: v.ship, Forget: v.unship, Lapsed: v.tellLapsed, Check: v.check, Applied: v.noted, Restore: v.restore,
		Positions: &consensus.Positions{Made: v.made.Load, Noted: v.isDurable, Keep: v.save},
	})
	if err != nil {
		return errors.Join(err, v.carrier.Close())
	}
	s.keep(max(node.Last(), v.Position().Index)) // tend, which begins below, sweeps
	v.mu.Lock()
	v.node, v.began = node, time.Now()
	v.mu.Unlock()
	v.running.Go(v.tend)
	return nil
}

// FS returns the file system that the stores of the directory use.
func (v *Voter) FS() vfs.FS { return commit.On(toldFS{v.o.FS, v}, v.o.Dir, v) }

// Serves sets the open stores of the directory, so that others may copy them; nil: there are none.
func (v *Voter) Serves(stores Stores) {
	v.turn.Lock() // who copies has ended
	defer v.turn.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stores = stores
}

// Close ends the voter's part in the group, and hands the lead over before if it has it.
func (v *Voter) Close() error {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return nil
	}
	v.closed = true
	node := v.node
	v.mu.Unlock()
	var err error
	v.asked.refuse()
	close(v.done)
	if node != nil {
		if s, _ := node.State(); s.Leads && len(node.Members()) > 1 {
			if e := node.Transfer(""); e != nil {
				v.o.Logger.Warn("no other member leads the group yet", "error", e)
			}
		}
		err = errors.Join(node.Close(), v.carrier.Close())
	}
	_ = v.http.Close() // its connections carry nothing that is not asked for again
	err = errors.Join(err, v.door.Close())
	v.running.Wait()
	v.asked.finish()
	v.peers.CloseIdleConnections()
	err = errors.Join(err, v.save())
	v.saving.Lock()
	defer v.saving.Unlock()
	return errors.Join(err, v.position.close())
}

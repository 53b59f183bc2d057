package group

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"svc/internal/apierr"
	"svc/internal/commit"
	"svc/internal/consensus"
	"svc/internal/index"
	"svc/internal/vfs"
)

// Voters are the members of a group of which any one may be lost: one of them leads and takes writes, and each change is on the disks of a
// majority before it is made. If the leader dies, the others elect one that has all of them.
//
// A voter follows the log as a reader does, with open stores, until it is elected. Then its stores lead, and package commit passes their
// changes to Do, which proposes them to the group and has them made in the order of the log. A voter that leads no longer closes its
// stores: they may believe in changes that the group has not accepted. It opens them again and follows.

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

	// Init makes the directory of the first voter that of a server without data, or checks the data that it has.
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
	durable atomic.Uint64 // index up to which position or the log has noted durably what is applied

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
	feed     *VoterFeed            // of this reign; nil: nobody follows in this process
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

// reign is a time in which a voter leads.
type reign struct {
	term  uint64
	since time.Time
	over  chan struct{}
	end   func(error)
	err   error // why it ended
	// asked is closed when it is to end in order: see Transfer.
	asked  chan struct{}
	resign *resignation // nil: nobody has asked; under the voter's mu
}

// pending is a change that this leader has proposed.
type pending struct {
	turn chan struct{} // its turn has come
	done chan error    // it was made
	gone chan struct{} // nobody waits for its turn any more
}

// exchange is a wish to have the data directory replaced by a staged copy.
type exchange struct{ done chan error }

// OpenVoter makes the directory that of a voter. It listens on l until Close.
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

// recall learns up to where the directory has the log: what position says, or the log of the group if that is more. ok is false when there
// is no position. It makes payloads whole whose contents the log has.
func (v *Voter) recall() (ok bool, err error) {
	at, ok, err := v.position.read()
	if err != nil || !ok {
		return false, err
	}
	if err := v.position.settle(); err != nil {
		return false, err
	}
	m, err := v.newMender()
	if err != nil {
		return false, fmt.Errorf("cannot list the payloads of tasks: %w", err)
	}
	noted, err := v.logged(m.entry)
	if err != nil {
		return false, fmt.Errorf("cannot read which position the log of the group notes: %w", err)
	}
	if err := v.settlePayloads(); err != nil {
		return false, fmt.Errorf("cannot make the payloads of tasks durable: %w", err)
	}
	written := at.Index
	at.Index = max(at.Index, noted)
	v.begins(at)
	v.position.unsynced = at.Index > written // the log may be cut, and former versions read only the file
	return true, nil
}

// logged returns the position that the log notes; 0: none. Bytes that cannot be read just now are damage to the log store, so damage is
// an error here, too. It calls each with the changes in the log.
func (v *Voter) logged(each func(consensus.Entry) error) (uint64, error) {
	founded, err := consensus.Founded(v.o.FS, v.path(ballotDir))
	if err != nil || !founded || v.id.Group == "" {
		return 0, err
	}
	return consensus.Noted(v.o.FS, v.path(ballotDir), v.id.Member, each)
}

// begins has the directory begin at a position, which is durable.
func (v *Voter) begins(at Position) {
	v.pos, v.kept = at, at.Index
	v.position.last, v.position.unsynced = at, false
	v.made.Store(at.Index)
	v.durable.Store(at.Index)
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

// Enter makes the directory that of a voter of a group: it founds one if it is the first, or asks to be added to one. It returns when that
// is done, or ctx.
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
	} else if !founded {
		if err := v.meet(ctx); err != nil {
			return err
		}
	}
	return v.begin(ctx)
}

// begin opens the node, or ends with ctx.
func (v *Voter) begin(ctx context.Context) error {
	// The node takes part before Open returns. It may lead, or be sent entries with files.
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

// noted returns up to which entry the directory has the log, durably.
func (v *Voter) noted() uint64 { return v.durable.Load() }

// isDurable notes that the directory is known durably to have the log up to an entry.
func (v *Voter) isDurable(index uint64) {
	for was := v.durable.Load(); was < index && !v.durable.CompareAndSwap(was, index); was = v.durable.Load() {
	}
}

// Position returns up to which entry the directory has the log.
func (v *Voter) Position() Position {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pos
}

// Empty reports whether the directory has no data yet.
func (v *Voter) Empty() bool { return v.Position().Term == 0 }

// reach notes that the directory has the log up to an entry.
func (v *Voter) reach(index uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if index > v.pos.Index {
		v.pos.Index = index
		v.troubled = time.Time{}
		v.made.Store(index)
		close(v.changed)
		v.changed = make(chan struct{})
	}
}

// keep records in position that the directory has the log up to index. The log notes it durably with its next entry, or settle does.
func (v *Voter) keep(index uint64) error {
	at := v.Position()
	at.Index = index
	v.saving.Lock()
	defer v.saving.Unlock()
	if err := v.position.write(at); err != nil {
		return err
	}
	v.kept = index
	return nil
}

// settle makes durable up to where the directory has the log. It comes before each change: at most one is made twice. Nothing is to be
// synced if an entry has been appended to the log since the last change.
func (v *Voter) settle() error {
	v.saving.Lock()
	defer v.saving.Unlock()
	if v.durable.Load() >= v.kept {
		return nil
	}
	if err := v.position.sync(); err != nil {
		return err
	}
	v.isDurable(v.kept)
	return nil
}

// save makes durable in the file up to where the directory has the log, whatever the log notes: entries may leave it, or this version be
// replaced by a former one, which does not read positions there. The same holds for payloads whose contents the log has.
func (v *Voter) save() error {
	if err := v.settlePayloads(); err != nil {
		return fmt.Errorf("cannot make the payloads of tasks durable: %w", err)
	}
	v.saving.Lock()
	defer v.saving.Unlock()
	if at := v.Position(); at.Index > v.kept { // the log may have noted a change for which keep is still to come
		if err := v.position.write(at); err != nil {
			return err
		}
		v.kept = at.Index
	}
	if err := v.position.sync(); err != nil {
		return err
	}
	v.isDurable(v.kept)
	return nil
}

// Wait waits until the directory has the log up to a position. Its error is that of ctx.
func (v *Voter) Wait(ctx context.Context, p Position) error {
	for {
		v.mu.Lock()
		at, changed := v.pos, v.changed
		v.mu.Unlock()
		if at.Compare(p) >= 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Staleness returns how long ago the directory had all that the leader had.
func (v *Voter) Staleness() (d time.Duration, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reign != nil {
		return 0, true
	}
	if v.fresh.IsZero() {
		return 0, false
	}
	return time.Since(v.fresh), true
}

// errLost is the error of changes of a leader that leads no longer.
var errLost = apierr.New("no_writer", "This server does not lead its group any more. Send the request again: nobody knows whether it was accepted.")

// Do proposes a change to the group and, when it is committed, makes it in the order of the log. An error says that this voter leads no
// longer: the group may have accepted the change all the same.
func (v *Voter) Do(c commit.Change, apply func() error) error {
	v.mu.Lock()
	r := v.reign
	v.mu.Unlock()
	if r == nil {
		return errLost
	}
	p, err := v.propose(r, &c)
	if err != nil {
		return fmt.Errorf("cannot propose a change of %s: %w", c.Name, err)
	}
	own := &pending{turn: make(chan struct{}), done: make(chan error, 1), gone: make(chan struct{})}
	v.mu.Lock()
	if v.reign != r {
		v.mu.Unlock()
		return errLost
	}
	v.pending[p.nonce] = own
	v.mu.Unlock()
	defer func() {
		close(own.gone)
		v.mu.Lock()
		delete(v.pending, p.nonce)
		v.mu.Unlock()
	}()
	index, err := v.node.Propose(p.encode(), r.over)
	if err != nil {
		r.end(err)
		return fmt.Errorf("%w (%v)", errLost, err)
	}
	for key := range p.keys() {
		v.spool.has(key, index) // it stays for the entry, which may be far behind the one that it was put there for
	}
	select {
	case <-own.turn:
	case <-r.over:
		return errLost
	}
	if err = apply(); err != nil {
		// The group has the change, and the stores take it for failed: what they would make of that must not follow it in the log.
		r.end(fmt.Errorf("a change that the group has accepted cannot be made: %w", err))
	} else {
		v.reach(index)
		v.manifestIs(&c)
	}
	own.done <- err
	return err
}

// propose makes the form of a change in which the group is told of it, and puts its files in the spool. Others get the files meanwhile.
func (v *Voter) propose(r *reign, c *commit.Change) (*proposal, error) {
	p, err := v.formed(c)
	if err != nil {
		return nil, err
	}
	p.level = v.level()
	index := v.node.Last() + 1
	added, err := v.spoolFiles(p, c.Data, index)
	if err != nil || !added {
		return p, err
	}
	v.push(r, p, index)
	return p, v.spool.sync(maps.Keys(p.keys()))
}

// formed returns a change in the form in which the group is told of it. Its files are durable then, or their contents are part of it.
func (v *Voter) formed(c *commit.Change) (*proposal, error) {
	p := &proposal{inline: map[int][]byte{}}
	rand.Read(p.nonce[:])
	names, err := v.fresher(c)
	if err != nil {
		return nil, err
	}
	kept, left := v.unsynced.proposed(names)
	files := make([]File, len(names))
	for i, name := range names {
		room := left
		if kept[name] {
			room = maxInlineFile // it is not part of left
		}
		content, size, ok, err := v.small(c, i, name, room)
		if err != nil {
			return nil, err
		}
		if ok {
			if !kept[name] {
				left -= len(content)
			}
			p.inline[i], files[i] = content, fileOf(name, content)
			continue
		}
		sum, err := SumOf(v.o.FS, v.path(name))
		if err != nil {
			return nil, err
		}
		files[i] = File{name, size, sum}
	}
	change := *c
	if len(c.Data) > maxData {
		f := fileOf("", c.Data)
		p.data, change.Data = &f, nil
	}
	p.entry = &Entry{At: time.Now().UnixNano(), Change: change, Files: files}
	return p, nil
}

// small returns the size of a file of a change and, if it may travel in the log, its content: ok. left bounds that.
func (v *Voter) small(c *commit.Change, i int, name string, left int) (content []byte, size int64, ok bool, err error) {
	most := int64(min(left, maxInlineFile))
	if i < min(len(c.Contents), len(c.Files)) && c.Files[i] == name && c.Contents[i] != nil {
		content = c.Contents[i]
		return content, int64(len(content)), int64(len(content)) <= most, nil
	}
	info, err := v.o.FS.Stat(v.path(name))
	if err != nil {
		return nil, 0, false, err
	}
	if size = info.Size(); size > most {
		return nil, size, false, nil
	}
	content, err = vfs.ReadFile(v.o.FS, v.path(name))
	return content, size, true, err
}

// spoolFiles puts the files of a proposal in the spool, and data if they are one of them. They stay for the entry with an index: before
// that is known, for the one behind the last.
func (v *Voter) spoolFiles(p *proposal, data []byte, index uint64) (added bool, err error) {
	for i, f := range p.entry.Files {
		if _, ok := p.inline[i]; ok {
			continue
		}
		if err := v.spool.link(v.path(f.Name), fileKey(f.Size, f.Sum), f.Size, index); err != nil {
			return false, err
		}
		added = true
	}
	if p.data != nil {
		if err := v.spool.put(fileKey(p.data.Size, p.data.Sum), data, index); err != nil {
			return false, err
		}
		added = true
	}
	return added, nil
}

// fresher returns the files of a change that the change before it of the same file did not name.
func (v *Voter) fresher(c *commit.Change) ([]string, error) {
	if c.Kind != commit.Manifest {
		return c.Files, nil
	}
	v.mu.Lock()
	known, ok := v.named[c.Name]
	v.mu.Unlock()
	if !ok {
		b, err := vfs.ReadFile(v.o.FS, v.path(c.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			files, err := index.FilesOf(c.Name, b)
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				known = append(known, path.Join(path.Dir(c.Name), f))
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(c.Files), func(name string) bool { return slices.Contains(known, name) }), nil
}

// manifestIs notes which files a manifest names now.
func (v *Voter) manifestIs(c *commit.Change) {
	if c.Kind != commit.Manifest {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.named[c.Name] = slices.Clone(c.Files)
}

// Lead has changes of this voter made in the order of the log, until it leads no longer, or ctx is done. The stores of the directory are
// to be closed then.
func (v *Voter) Lead(ctx context.Context) error {
	v.mu.Lock()
	r := v.reign
	v.mu.Unlock()
	if r == nil { // a change failed before this goroutine ran
		return nil
	}
	defer r.end(ctx.Err())
	v.o.Logger.Info("this server leads the group", "term", r.term)
	for {
		s, changed := v.node.State()
		if !s.Leads || s.Term != r.term {
			r.end(errors.New("another member was elected, or a majority cannot be reached"))
		}
		select {
		case <-r.over:
			v.o.Logger.Warn("this server leads the group no longer", "term", r.term, "because", r.err)
			return nil
		case <-ctx.Done():
			return nil
		default:
		}
		if err := v.turns(r, s.Committed); err != nil {
			r.end(err)
			continue
		}
		select {
		case <-changed:
		case <-r.over:
		case <-ctx.Done():
		}
	}
}

// turns has the changes up to an entry made.
func (v *Voter) turns(r *reign, to uint64) error {
	from := v.Position().Index + 1
	if from > to {
		return nil
	}
	var err error
	e := v.node.Entries(from, to, func(e consensus.Entry) bool {
		if e.Data == nil {
			v.reach(e.Index)
			return true
		}
		err = v.takeTurn(r, &e)
		return err == nil
	})
	return errors.Join(e, err)
}

// takeTurn lets the proposer of an entry make its change, with turn held, and waits for that. It fails if
// nobody waits for the entry: another leader may have proposed it, and this one must follow instead.
func (v *Voter) takeTurn(r *reign, e *consensus.Entry) error {
	var nonce [16]byte
	if len(e.Data) > 17 {
		copy(nonce[:], e.Data[1:])
	}
	v.mu.Lock()
	p := v.pending[nonce]
	v.mu.Unlock()
	if p == nil {
		return fmt.Errorf("nobody waits for entry %d", e.Index)
	}
	v.turn.Lock()
	defer v.turn.Unlock()
	defer v.node.Begin()() // not before: an image that is taken may take longer than a write
	if err := v.settle(); err != nil {
		return err
	}
	select {
	case p.turn <- struct{}{}:
	case <-p.gone:
		return fmt.Errorf("nobody waits for entry %d any more", e.Index)
	case <-r.over:
		return r.err
	}
	if <-p.done != nil {
		return r.err // Do has ended the reign
	}
	if err := v.keep(e.Index); err != nil {
		return err
	}
	if v.node.Last() > e.Index {
		v.settleAhead()
	}
	return nil
}

// settleAhead begins what settle does before the next change. An entry that was appended before the last change was made does not note it,
// so that settle has to sync. The group may not have accepted that entry yet: the sync runs meanwhile.
func (v *Voter) settleAhead() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed { // Close waits for what runs
		return
	}
	v.running.Go(func() { _ = v.settle() }) // before the next change it is called again, and reports an error
}

// crown begins the reign of this voter.
func (v *Voter) crown(term uint64) {
	r := &reign{term: term, since: time.Now(), over: make(chan struct{}), asked: make(chan struct{})}
	var once sync.Once
	r.end = func(err error) {
		once.Do(func() {
			r.err = err
			v.mu.Lock()
			v.reign = nil
			v.mu.Unlock()
			close(r.over)
		})
	}
	v.mu.Lock()
	v.reign = r
	v.unsynced.crowned()
	v.reigns++
	clear(v.named)
	v.mu.Unlock()
}

// Serves gives the open stores of the directory, of which others may take copies. nil: there are none.
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

// source returns a standby.Source of the files of an entry.
func (v *Voter) source(p *proposal) func(name string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		for i, f := range p.entry.Files {
			if f.Name != name {
				continue
			}
			if content, ok := p.inline[i]; ok {
				return io.NopCloser(newBytes(content)), nil
			}
			return v.spool.open(fileKey(f.Size, f.Sum))
		}
		return nil, fmt.Errorf("the change does not name %s", name)
	}
}

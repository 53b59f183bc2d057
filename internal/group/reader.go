package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/commit"
	"svc/internal/standby"
	"svc/internal/vfs"
)

// Applier makes changes of a log in a data directory, in order.
type Applier interface {
	Apply(c commit.Change, from standby.Source) error
}

// ErrReplace is the error of Follow when a data directory was staged that is to take the place of this one.
var ErrReplace = errors.New("the data directory will be replaced by a copy of that of the writer")

// ReaderOptions are the options of a reader.
type ReaderOptions struct {
	FS        vfs.FS
	Dir       string   // of the data
	Name      string   // of the group
	Join      []string // addresses of members, including the writer
	MasterKey string
	TLS       Certificates
	Format    string // of the data directory
	Version   string // of the program
	Logger    *slog.Logger

	// From, if not nil, has the directory in place of the members of a group. Name and Join are empty then.
	From Upstream
}

// State is what a reader does.
type State string

// The states.
const (
	StateJoins   State = "joins"   // it has no data yet
	StateCopies  State = "copies"  // it copies the data of the writer
	StateFollows State = "follows" // it follows the log
	StateAway    State = "away"    // it cannot reach the writer, or is refused
	StateLeads   State = "leads"   // of a voter: it takes the writes
)

// Reader is a member of a group whose data directory follows that of the writer.
type Reader struct {
	o        ReaderOptions
	client   *client // nil: there is an upstream
	source   source
	position positions
	unsynced atomic.Bool // see disbelieve

	mu      sync.Mutex
	id      Identity
	writer  hello         // of the last connection
	pos     Position      // up to which the directory has the log; Term 0: it has none
	changed chan struct{} // closed by the next change of pos
	damaged bool          // see Renew
	became  bool          // the writer: see Become
	prog    progress
}

// progress is how a reader stands to the writer.
type progress struct {
	state          State
	problem        error     // why it is away, or cannot apply
	copied, toCopy int64     // bytes
	end            Position  // of the writer, when it last answered
	fresh          time.Time // when the directory last was that of the writer; zero: never in this run
}

const (
	pollTime   = time.Second // of a request for entries that are not there yet: staleness is known as exactly
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// OpenReader turns an empty directory into that of a reader, or opens one. It continues an interrupted replacement.
func OpenReader(o ReaderOptions) (*Reader, error) {
	o.Dir = path.Clean(filepath.ToSlash(o.Dir))
	r := &Reader{o: o, changed: make(chan struct{})}
	r.prog.state = StateJoins
	r.position = positions{fs: o.FS, name: r.path(positionFile)}
	if err := vfs.MakeDir(o.FS, r.path(workDir)); err != nil {
		return nil, fmt.Errorf("cannot create the data directory: %w", err)
	}
	id, err := identityOf(o.FS, o.Dir)
	switch {
	case err != nil:
		return nil, err
	case id == nil:
		if err := r.checkEmpty(); err != nil {
			return nil, err
		}
		id = &Identity{Name: o.Name, Member: newID(), Role: RoleReader}
		if err := id.write(o.FS, o.Dir); err != nil {
			return nil, err
		}
	case id.Role == RoleWriter && id.Fenced && id.Successor != "" && id.Name == o.Name: // all that it had, its successor has
		id = &Identity{Group: id.Group, Name: id.Name, Member: id.Member, Role: RoleReader, Term: id.Term}
		if err := errors.Join(o.FS.RemoveAll(r.path(workDir)), vfs.MakeDir(o.FS, r.path(workDir)), id.write(o.FS, o.Dir)); err != nil {
			return nil, err
		}
	case id.Role != RoleReader:
		return nil, &RefusedError{refusedData, fmt.Sprintf("%s has the data of a writer of the group %q. Start a reader with an empty data directory", o.Dir, id.Name)}
	case id.Name != o.Name:
		return nil, &RefusedError{refusedGroup, fmt.Sprintf("%s %s, and this reader is to be one that %s. Begin with an empty data directory", o.Dir, follows(id.Name), follows(o.Name))}
	}
	r.id = *id
	if o.From != nil {
		r.source = &published{o.From, o.Format, r.found}
	} else {
		key, err := newSecret(o.MasterKey)
		if err != nil {
			return nil, err
		}
		own, err := newCredentials(o.TLS, o.Logger)
		if err != nil {
			return nil, err
		}
		r.client = newClient(o.Join, own, key, r.hello, r.heard)
		r.source = r.client
	}
	if err := r.Replace(); err != nil {
		return nil, err
	}
	at, ok, err := r.position.read()
	if err != nil {
		return nil, err
	}
	if ok && r.id.Group != "" {
		r.reach(at)
	}
	return r, nil
}

// follows says what a reader of a group does, or one that has an upstream.
func follows(name string) string {
	if name == "" {
		return "follows a publication"
	}
	return fmt.Sprintf("follows the group %q", name)
}

// checkEmpty makes sure that the directory has no data of its own.
func (r *Reader) checkEmpty() error {
	names, err := r.o.FS.List(r.o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		if name != "LOCK" && name != workDir && name != IdentityFile+vfs.TempSuffix {
			return &RefusedError{refusedData, fmt.Sprintf("%s is not empty: it has %s. Start a reader with an empty data directory", r.o.Dir, name)}
		}
	}
	return nil
}

func (r *Reader) hello() *hello {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &hello{Protocol: protocol, Format: r.o.Format, Version: r.o.Version, Group: r.id.Group, Name: r.id.Name, Member: r.id.Member, Role: RoleReader, Term: r.id.Term, Level: proposalVersion}
}

// heard notes who is on the other side.
func (r *Reader) heard(h *hello) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.became {
		return
	}
	r.writer = *h
	if r.id.Group == "" {
		r.id.Group = h.Group // in memory: it counts once there is data
	}
	voters := h.Role == RoleVoter
	if h.Term <= r.id.Term && voters == r.id.Voters {
		return
	}
	r.id.Term, r.id.Voters = max(h.Term, r.id.Term), voters
	if r.pos.Term == 0 {
		return
	}
	if err := r.id.write(r.o.FS, r.o.Dir); err != nil { // otherwise it would have to be told again
		r.o.Logger.Warn("cannot record the term of the writer", "error", err)
	}
}

// FollowsVoters reports whether the reader follows a group of voters.
func (r *Reader) FollowsVoters() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id.Voters
}

// found notes which directory an upstream has.
func (r *Reader) found(directory string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.id.Group == "" {
		r.id.Group = directory // in memory: it counts once there is data
	}
	if r.id.Group != directory {
		return &RefusedError{refusedGroup, fmt.Sprintf("%s has another data directory than the one that %s is a copy of. Begin with an empty data directory", r.o.From, r.o.Dir)}
	}
	return nil
}

// Empty reports whether the directory has no data yet: Join is to get it.
func (r *Reader) Empty() bool { return r.Position().Term == 0 }

// Position returns up to which entry the directory has the log.
func (r *Reader) Position() Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pos
}

// reach notes that the directory has the log up to an entry.
func (r *Reader) reach(at Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pos = at
	close(r.changed)
	r.changed = make(chan struct{})
}

// note changes the progress.
func (r *Reader) note(f func(*progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.prog)
}

// Wait waits until the directory has the log up to a position. It returns only errors of ctx.
func (r *Reader) Wait(ctx context.Context, p Position) error {
	for {
		r.mu.Lock()
		at, changed, became := r.pos, r.changed, r.became
		r.mu.Unlock()
		if became || at.Compare(p) >= 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Staleness returns how long ago the directory last equalled that of the writer. known is false if this has not happened since the
// program started.
func (r *Reader) Staleness() (d time.Duration, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.prog.fresh.IsZero() {
		return 0, false
	}
	return time.Since(r.prog.fresh), true
}

// Join copies the data of the writer to an empty directory. It tries until ctx is done or the writer refuses. All stores of the
// directory must be closed.
func (r *Reader) Join(ctx context.Context) error {
	for wait := minBackoff; r.Empty(); wait = min(2*wait, maxBackoff) {
		err := r.stage(ctx, Position{})
		if err == nil {
			return r.Replace()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		again, told := r.again(err)
		if told {
			wait = minBackoff
		}
		switch {
		case again:
		case r.o.From != nil:
			return fmt.Errorf("cannot follow %s: %w", r.o.From, err)
		default:
			return fmt.Errorf("cannot join the group %q: %w", r.o.Name, err)
		}
		r.o.Logger.Warn("cannot copy the data of the writer yet; svc retries", "error", err)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// again reports whether to retry after an error. The source then uses its next address. told is true if that is known to be the
// leader's, so that a short wait suffices.
func (r *Reader) again(err error) (again, told bool) {
	away, refused := new(awayError), new(RefusedError)
	switch {
	case errors.As(err, &refused):
		told = r.source.next()
		return (refused.Code == refusedTerm || refused.Code == refusedRole) && len(r.o.Join) > 1, told
	case errors.As(err, &away):
		return true, r.source.next()
	}
	return errors.Is(err, ErrCut) || errors.Is(err, errGone) || errors.Is(err, errSum), false
}

// sleep waits between half of d and one and a half times as long, so that members do not send requests at the same time.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Renew makes Follow try once to stage a copy of the writer's directory, because files of this one are damaged. Files whose checksums
// differ are copied.
func (r *Reader) Renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.damaged = true
}

// renews returns errDamaged once after Renew.
func (r *Reader) renews() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.damaged {
		return nil
	}
	r.damaged = false
	return errDamaged
}

// Follow applies the entries of the log to the directory until ctx is done; then it returns nil. If the log does not continue from
// the position of the directory, it stages a copy of the writer's directory and returns ErrReplace. It retries after all other
// errors.
func (r *Reader) Follow(ctx context.Context, a Applier) error {
	wait := minBackoff
	for {
		err := r.renews()
		if err == nil {
			err = r.step(ctx, a)
		}
		if errors.Is(err, ErrCut) || errors.Is(err, errGone) || errors.Is(err, errSum) || errors.Is(err, errDamaged) {
			r.o.Logger.Info("the log of the writer no longer has the next entry: what differs of its data is copied", "because", err)
			if err = r.stage(ctx, r.least(err)); err == nil {
				return ErrReplace
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			wait = minBackoff
			continue
		}
		r.failed(err)
		if _, told := r.again(err); told {
			wait = minBackoff
		}
		if sleep(ctx, wait) != nil {
			return nil
		}
		wait = min(2*wait, maxBackoff)
	}
}

// least returns the position that a copy made because of an error has to reach. The lists of an upstream may be old.
func (r *Reader) least(because error) Position {
	least := r.Position()
	switch {
	case r.o.From == nil && !r.FollowsVoters():
		return Position{}
	case r.o.From == nil: // another voter may have less
	case !errors.Is(because, errDamaged):
		least.Index++
	}
	return least
}

// failed notes why the directory does not follow now.
func (r *Reader) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.prog.problem == nil || r.prog.problem.Error() != err.Error() {
		r.o.Logger.Warn("cannot follow the log of the writer; svc retries", "error", err)
	}
	r.prog.state, r.prog.problem = StateAway, err
}

// step asks for entries once, and applies them.
func (r *Reader) step(ctx context.Context, a Applier) error {
	at := r.Position()
	wait := time.Duration(0) // until the directory is known to be that of the writer
	r.note(func(s *progress) {
		if s.state == StateFollows {
			wait = pollTime
		}
	})
	asked := time.Now()
	t, err := r.source.log(ctx, at, wait)
	if err != nil {
		return err
	}
	now := time.Now()
	if now.Sub(asked) > wait+pollTime { // the answer may have been on its way for most of this, during a partition
		now = asked
	}
	r.note(func(s *progress) {
		s.end = Position{at.Term, at.Run, t.End}
	})
	until, err := r.unsettled(t.Entries)
	if err != nil {
		return err
	}
	// Applying combined entries continues to the last one, unless this takes longer than quietTime.
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(quietTime, cancel) })()
	first, end := at.Index+1, uint64(0)
	for i, b := range t.Entries {
		using := ctx
		if at.Index < end {
			using = late
		}
		if last := first + uint64(until[i]); last > max(end, at.Index+1) {
			end = last
			if err := r.settling(Position{at.Term, at.Run, end}); err != nil {
				return err
			}
		}
		if using.Err() != nil {
			return nil
		}
		if err := r.apply(using, a, r.o.Dir, b); err != nil {
			return err
		}
		at.Index++
		if err := r.position.add(at); err != nil {
			return err
		}
		r.reach(at)
	}
	r.note(func(s *progress) {
		s.state, s.problem = StateFollows, nil
		if at.Index >= t.End {
			s.fresh = now
		}
	})
	return nil
}

// unsettled is Unsettled of entries of a publication. Others are not combined.
func (r *Reader) unsettled(entries [][]byte) ([]int, error) {
	if r.o.From != nil {
		return Unsettled(entries)
	}
	until := make([]int, len(entries))
	for i := range until {
		until[i] = i
	}
	return until, nil
}

// apply makes a change in a directory.
func (r *Reader) apply(ctx context.Context, a Applier, dir string, b []byte) error {
	e, inline, err := r.decode(ctx, b)
	if err != nil || e == nil {
		return err
	}
	err = a.Apply(e.Change, func(name string) (io.ReadCloser, error) {
		for i := range e.Files {
			if e.Files[i].Name == name {
				if content, ok := inline[i]; ok {
					return io.NopCloser(newBytes(content)), nil
				}
				return r.source.open(ctx, e.Files[i]), nil
			}
		}
		return nil, fmt.Errorf("the change does not name %s", name)
	})
	if err != nil {
		return err
	}
	for _, name := range e.Removed {
		if err := r.o.FS.Remove(path.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.o.Logger.Warn("cannot remove a payload that no task needs", "file", name, "error", err)
		}
	}
	return nil
}

// decode reads an entry and the contents that it has of its files, by index. The log of voters has proposals. It, and its
// publication, also have empty entries, which change nothing: for these decode returns neither an entry nor an error.
func (r *Reader) decode(ctx context.Context, b []byte) (*Entry, map[int][]byte, error) {
	if len(b) == 0 {
		return nil, nil, nil
	}
	if !r.FollowsVoters() {
		e, err := DecodeEntry(b)
		return e, nil, err
	}
	p, err := decodeProposal(b, proposalVersion)
	if err != nil {
		return nil, nil, err
	}
	if p.data != nil {
		in := r.source.open(ctx, *p.data)
		p.entry.Change.Data, err = io.ReadAll(in)
		if err = errors.Join(err, in.Close()); err != nil {
			return nil, nil, err
		}
	}
	return p.entry, p.inline, nil
}

// DialAPI connects to the API of the writer, to forward a request of a client. The reader has no upstream.
func (r *Reader) DialAPI(ctx context.Context) (net.Conn, error) {
	return r.client.dial(ctx, r.client.address(), forAPI)
}

// Close ends the connections.
func (r *Reader) Close() error {
	r.source.close()
	return r.position.close()
}

package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path"
	"path/filepath"
	"sync"
	"time"

	"svc/internal/commit"
	"svc/internal/logstore"
	"svc/internal/vfs"
)

// WriterOptions are the options of a writer.
type WriterOptions struct {
	FS        vfs.FS
	Dir       string // of the data
	Name      string // of the group; "": the directory keeps the name that it has
	MasterKey string
	TLS       Certificates
	Format    string // of the data directory
	Version   string // of the program
	Logger    *slog.Logger

	// LogBytes is how many bytes of entries the log keeps for readers that return; 0: 256 MiB. HoldTime is how long files stay for a
	// reader that makes no progress; 0: an hour. AwayTime is the time without a request after which a reader counts as away; 0: a
	// minute.
	LogBytes           int64
	HoldTime, AwayTime time.Duration

	standTime time.Duration // of tests; 0: standTime
}

const (
	defaultLogBytes = 256 << 20
	defaultHoldTime = time.Hour
	defaultAwayTime = time.Minute

	// maxEntry bounds an entry. A larger one ends the run of the log: readers take an image, which has no such bound.
	maxEntry = 128 << 20

	// retryTime is the time between a failure to begin a run and the next try.
	retryTime = time.Second
)

// Writer is the member of a group whose data directory the others follow. It is a commit.Log.
type Writer struct {
	o    WriterOptions
	fs   *holdFS
	key  secret
	own  *credentials
	log  *logstore.Log
	sums *sums

	mu       sync.Mutex
	id       Identity
	pos      Position // of the last entry
	broken   error    // why there is no log; nil: there is
	tried    time.Time
	removed  []string // payloads, since the last entry
	sizes    logSizes
	members  map[string]*member
	feeds    []*member     // those in this process
	appended chan struct{} // closed by the next entry, or when the log breaks
	fenced   chan struct{} // closed when another member has become the writer
	closed   bool
	changing int           // changes under way
	quiet    chan struct{} // closed when none remain; nil: nothing waits
	stand    *stand        // nil: it makes changes
	over     *time.Timer   // closes fenced; nil: no takeover yet

	serving *serving // nil: not yet
}

// member is a reader, as the writer knows it. Writer.mu guards it.
type member struct {
	id     string // stays as it is
	inside bool   // it is in the writer's process; stays as it is
	hello
	addr   string
	pos    Position // up to which it has applied the log
	copies bool     // it copies an image, which was taken at pos
	// stateMade says that there are copies of files for it.
	stateMade bool
	seen      time.Time
	moved     time.Time // when pos changed
	entryAt   int64     // when the next entry that it has to apply was appended, in nanoseconds of the Unix epoch; 0: unknown
}

// OpenWriter opens the directory as that of the writer of a group, creates the group if there is none, and starts a run of its log.
func OpenWriter(o WriterOptions) (*Writer, error) {
	o.Dir = path.Clean(filepath.ToSlash(o.Dir))
	if o.LogBytes == 0 {
		o.LogBytes = defaultLogBytes
	}
	if o.HoldTime == 0 {
		o.HoldTime = defaultHoldTime
	}
	if o.AwayTime == 0 {
		o.AwayTime = defaultAwayTime
	}
	if o.standTime == 0 {
		o.standTime = standTime
	}
	w := &Writer{o: o, members: map[string]*member{}, appended: make(chan struct{}), fenced: make(chan struct{})}
	id, err := identityOf(o.FS, o.Dir)
	switch {
	case err != nil:
		return nil, err
	case id == nil:
		id = &Identity{Group: newID(), Name: o.Name, Member: newID(), Role: RoleWriter, Term: 1}
	case id.Fenced:
		return nil, fmt.Errorf("another member of the group %q has become its writer, in term %d. Move %s away, and join that writer with --group-role reader and an empty data directory", id.Name, id.Term, o.Dir)
	case id.Role != RoleWriter:
		return nil, fmt.Errorf("%s belongs to a reader, which %s. Start it as one, or make it the writer: svc group promote --db-path %s", o.Dir, follows(id.Name), o.Dir)
	case id.Name == "":
		id.Name = o.Name // it was published, and in no group
	case o.Name != "" && id.Name != o.Name:
		return nil, fmt.Errorf("%s belongs to the group %q, and --group-name says %q", o.Dir, id.Name, o.Name)
	}
	w.id = *id
	if w.key, err = newSecret(o.MasterKey); err != nil {
		return nil, err
	}
	if w.own, err = newCredentials(o.TLS, o.Logger); err != nil {
		return nil, err
	}
	w.fs = newHoldFS(o.FS, o.Dir, w.last, w.forget)
	w.sums = newSums(o.FS, o.Dir)
	w.sums.load()
	// The files of an earlier run no longer count, because it is unknown whether they cover everything in this directory.
	for _, name := range []string{"log", "state"} {
		if err := o.FS.RemoveAll(path.Join(o.Dir, workDir, name)); err != nil {
			return nil, fmt.Errorf("cannot begin the log of the group: %w", err)
		}
	}
	if w.log, err = logstore.Open(logstore.Options{FS: unsyncedFS{o.FS}, Dir: path.Join(o.Dir, workDir, "log"), FileSize: o.LogBytes / 4}); err != nil {
		return nil, fmt.Errorf("cannot begin the log of the group: %w", err)
	}
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.log.Close())
	}
	return w, nil
}

// FS returns the file system that the stores of the directory are to use.
func (w *Writer) FS() vfs.FS { return commit.On(w.fs, w.o.Dir, w) }

// Position returns that of the last change.
func (w *Writer) Position() Position {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pos
}

// Wait waits until the log has the entry at a position. It returns only errors of ctx.
func (w *Writer) Wait(ctx context.Context, p Position) error {
	for {
		w.mu.Lock()
		at, appended := w.pos, w.appended
		w.mu.Unlock()
		if at.Compare(p) >= 0 {
			return nil
		}
		select {
		case <-appended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Staleness returns 0: the directory is the writer's.
func (w *Writer) Staleness() (time.Duration, bool) { return 0, true }

// Fenced is closed when another member has become the writer: nothing is written here any more.
func (w *Writer) Fenced() <-chan struct{} { return w.fenced }

// begin starts a run of the log. mu is held, or the writer is not shared yet.
func (w *Writer) begin() error {
	id := w.id
	id.Run++
	if err := id.write(w.o.FS, w.o.Dir); err != nil {
		return fmt.Errorf("cannot begin the log of the group: %w", err)
	}
	w.id = id
	if err := w.log.Reset(1); err != nil {
		return fmt.Errorf("cannot begin the log of the group: %w", err)
	}
	w.pos, w.broken, w.sizes = Position{Term: id.Term, Run: id.Run}, nil, logSizes{}
	return nil
}

// Do applies a change and appends it to the log. If the log cannot be written, the change is still applied. Then a new run begins,
// and readers take an image.
func (w *Writer) Do(c commit.Change, apply func() error) error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.leave()
	files := make([]File, len(c.Files))
	for i, name := range c.Files { // before apply: they may be deleted afterwards
		f, err := w.sums.of(name)
		if err != nil {
			return fmt.Errorf("cannot log a change of %s: %w", c.Name, err)
		}
		files[i] = f
	}
	if err := apply(); err != nil {
		return err
	}
	w.append(&Entry{At: time.Now().UnixNano(), Change: c, Files: files})
	return nil
}

// forget notes that a file or a directory is removed.
func (w *Writer) forget(name string) {
	w.sums.forget(name)
	if isPayload(name) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.removed = append(w.removed, name)
	}
}

// append appends an entry, or breaks the log.
func (w *Writer) append(e *Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.Removed, w.removed = w.removed, nil
	b := e.Encode()
	if w.broken == nil {
		if len(b) > maxEntry {
			w.broken = fmt.Errorf("an entry has %d bytes, and at most %d are allowed", len(b), maxEntry)
		} else {
			w.broken = w.log.Append(b)
		}
		if w.broken != nil {
			w.o.Logger.Error("cannot write the log of the group; readers will copy the state of the data directory again", "error", w.broken)
		}
	}
	if w.broken != nil {
		// The log has lost the change. Only a new run has all later changes.
		if now := time.Now(); now.Sub(w.tried) >= retryTime {
			w.tried = now
			if err := w.begin(); err != nil {
				w.broken = err
			}
		}
	} else {
		w.pos.Index++
		if cut := w.sizes.add(w.pos.Index, int64(len(b)), w.o.LogBytes); cut > 0 {
			if err := w.log.TruncateFront(cut); err != nil {
				w.o.Logger.Warn("cannot remove old entries of the log of the group", "error", err)
			}
		}
	}
	close(w.appended)
	w.appended = make(chan struct{})
}

// logSizes finds the first entry to keep so that the log does not exceed its maximum size.
type logSizes struct {
	bytes int64
	marks []logMark
}

// logMark says how many bytes of entries there were before an entry.
type logMark struct {
	index uint64
	bytes int64
}

// add counts an entry, and returns the first one that is to stay; 0: nothing changes.
func (s *logSizes) add(index uint64, bytes, most int64) (first uint64) {
	if n := len(s.marks); n == 0 || s.bytes-s.marks[n-1].bytes >= most/16 {
		s.marks = append(s.marks, logMark{index, s.bytes})
	}
	s.bytes += bytes
	for len(s.marks) > 1 && s.bytes-s.marks[1].bytes >= most {
		s.marks = s.marks[1:]
		first = s.marks[0].index
	}
	return first
}

// last returns the index of the last entry, and whether a present reader has not applied it.
func (w *Writer) last() (index uint64, behind bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pos.Index, w.applied(time.Now()) < w.pos.Index
}

// live reports whether the writer holds files for a reader. mu is held.
func (w *Writer) live(m *member, now time.Time) bool {
	return m.pos.SameLog(w.pos) && (m.inside || now.Sub(m.seen) < w.o.AwayTime) && now.Sub(m.moved) < w.o.HoldTime
}

// applied returns the index up to which all present readers have applied the log. mu is held.
func (w *Writer) applied(now time.Time) uint64 {
	least := uint64(math.MaxUint64)
	for _, m := range w.members {
		if w.live(m, now) {
			least = min(least, m.pos.Index)
		}
	}
	for _, m := range w.feeds {
		if w.live(m, now) {
			least = min(least, m.pos.Index)
		}
	}
	return least
}

// release makes the removals that were delayed for readers which have caught up or are away.
func (w *Writer) release() {
	w.mu.Lock()
	applied := w.applied(time.Now())
	w.mu.Unlock()
	if err := w.fs.release(applied); err != nil {
		w.o.Logger.Warn("cannot remove files that no reader needs; the next start removes them", "error", err)
	}
}

// fence notes, durably, that another member is the writer of a later term.
func (w *Writer) fence(term uint32) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if term <= w.id.Term {
		return nil
	}
	id := w.id
	id.Term, id.Fenced = term, true
	w.id = id
	if w.stand != nil {
		w.goOnLocked(w.stand)
	}
	w.o.Logger.Error("another member has become the writer of the group: this one stops", "term", term)
	return id.write(w.o.FS, w.o.Dir)
}

// tellFenced closes fenced if the writer is fenced. The member that took over has its answer by then.
func (w *Writer) tellFenced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.id.Fenced {
		return
	}
	select {
	case <-w.fenced:
	default:
		close(w.fenced)
	}
}

// Hang ends what the writer does for others. The stores of the directory are still open, and are closed next.
func (w *Writer) Hang() {
	w.mu.Lock()
	if w.stand != nil {
		w.goOnLocked(w.stand)
	}
	if w.over != nil {
		w.over.Stop()
	}
	w.mu.Unlock()
	if w.serving != nil {
		w.serving.close()
	}
}

// Close closes the log. The stores of the directory are closed.
func (w *Writer) Close() error {
	w.Hang()
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.mu.Unlock()
	err := w.fs.release(math.MaxUint64)
	return errors.Join(err, w.log.Close(), w.o.FS.RemoveAll(path.Join(w.o.Dir, workDir, "state")))
}

// unsyncedFS is a file system for files that need not outlive a crash of the machine: each run of a writer begins a log of its own.
type unsyncedFS struct{ vfs.FS }

// Create makes a file whose Sync does nothing.
func (u unsyncedFS) Create(name string) (vfs.File, error) {
	f, err := u.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

func (u unsyncedFS) SyncDir(string) error { return nil }

type unsyncedFile struct{ vfs.File }

func (unsyncedFile) Sync() error { return nil }

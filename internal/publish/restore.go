package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"svc/internal/boltfile"
	"svc/internal/commit"
	"svc/internal/group"
	"svc/internal/vfs"
)

// Target is the position to restore: Position, or the last position whose changes are all no later than Time, or the last one if both
// are zero.
type Target struct {
	Position group.Position
	Time     time.Time
}

// RestoreOptions say where a data directory is restored to.
type RestoreOptions struct {
	FS     vfs.FS
	Dir    string // has nothing yet, or is missing
	Target Target
	Index  string       // is restored alone, without tasks, keys and aliases; "": all of the directory
	Logger *slog.Logger // nil: none

	pause time.Duration // of tests: before a request is tried again; 0: minBackoff
}

// Restored is what a restore made.
type Restored struct {
	Position group.Position
	At       time.Time // of the last change
	Files    int
	Bytes    int64 // of files
}

// restoreSuffix ends the name of a directory while it is incomplete. An interrupted restore continues there. Beside it is a file that the
// running restore locks.
const (
	restoreSuffix = ".restoring"
	lockSuffix    = restoreSuffix + ".lock"
)

// Restore makes a data directory with the content of the published one at a position. Every file has the size and checksum that it
// had there. The directory gets its name once it is complete.
func (a *Archive) Restore(ctx context.Context, o RestoreOptions) (*Restored, error) {
	o.Dir = path.Clean(filepath.ToSlash(o.Dir))
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.pause == 0 {
		o.pause = minBackoff
	}
	unlock, err := lockTarget(o.FS, o.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if names, err := o.FS.List(o.Dir); err == nil && len(names) > 0 {
		return nil, fmt.Errorf("%s is not empty: it has %s. Restore to an empty directory", o.Dir, names[0])
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	h, err := a.history(ctx)
	if err != nil {
		return nil, err
	}
	p, err := a.planOf(ctx, h, &o.Target)
	if err != nil {
		return nil, err
	}
	if o.Target.Position == (group.Position{}) {
		limit := int64(math.MaxInt64)
		if !o.Target.Time.IsZero() {
			limit = o.Target.Time.UnixNano()
		}
		if l, why := h.unreached(p.to, limit); l != nil {
			o.Logger.Warn("later changes are not restored", "because", why, "restored", p.to.String(), "later", l.first.String(), "at", time.Unix(0, l.at).UTC())
		}
	}
	p, st, err := a.readable(ctx, h, p, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("cannot restore position %v: %w", p.to, err)
	}
	// The restored directory takes the place of an empty one in the end. Whether that is possible is known before anything is fetched.
	if err := o.FS.Remove(o.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot replace the empty directory %s: %w. If it is a mount point, restore to a new directory below it", o.Dir, err)
	}
	r := &restore{RestoreOptions: o, a: a, temp: o.Dir + restoreSuffix, have: map[string]bool{}}
	result, err := r.make(ctx, p, st)
	if err != nil {
		return nil, fmt.Errorf("cannot restore position %v: %w", p.to, err)
	}
	if _, err := vfs.Move(o.FS, r.temp, o.Dir); err != nil {
		return nil, fmt.Errorf("cannot give the restored directory its name: %w", err)
	}
	return result, nil
}

// lockTarget keeps other restores from writing to the same directory until unlock, which removes the file of the lock. If another restore
// opened that file before, Lock notices that it is gone.
func lockTarget(fsys vfs.FS, dir string) (unlock func(), err error) {
	locker, ok := fsys.(vfs.Locker)
	if !ok {
		return func() {}, nil
	}
	if err := vfs.MakeDir(fsys, path.Dir(dir)); err != nil {
		return nil, err
	}
	name := dir + lockSuffix
	lock, err := locker.Lock(name)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("another restore to %s is running. Wait until it ends, or restore to another directory", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write beside %s: %w", dir, err)
	}
	return func() {
		if vfs.ReplacesOpen {
			_ = fsys.Remove(name)
		}
		_ = lock.Close()
		if !vfs.ReplacesOpen {
			_ = fsys.Remove(name)
		}
	}, nil
}

// planOf returns how a target is restored.
func (a *Archive) planOf(ctx context.Context, h *history, t *Target) (*plan, error) {
	to, err := t.Position, error(nil)
	switch {
	case to != group.Position{}:
	case !t.Time.IsZero():
		to, err = a.positionAt(ctx, h, t.Time)
	default:
		to, err = h.latest()
	}
	if err != nil {
		return nil, err
	}
	p, err := h.planFor(to)
	if err == nil {
		err = a.settles(ctx, p)
	}
	return p, err
}

// readable returns a plan with its image. If the image is damaged, it tries the plan from the image before.
func (a *Archive) readable(ctx context.Context, h *history, p *plan, log *slog.Logger) (*plan, *group.Image, error) {
	for {
		st, err := readAgain(ctx, func() (*group.Image, error) { return a.image(ctx, &p.image) })
		if !broken(err) {
			return p, st, err
		}
		h.images = slices.DeleteFunc(h.images, func(s imageRef) bool { return s.name == p.image.name })
		older, none := h.planFor(p.to)
		if none == nil {
			none = a.settles(ctx, older)
		}
		if none != nil {
			return p, nil, err
		}
		log.Warn("an older image of the publication is used", "because", err)
		p = older
	}
}

// restore is a restore that runs.
type restore struct {
	RestoreOptions
	a     *Archive
	temp  string
	total int64 // bytes of files

	mu   sync.Mutex
	have map[string]bool // files that this try has made ready

	only    string // the directory of the index that is restored, and CATALOG with its base; "": all
	excerpt []byte // CATALOG of that index alone
}

const (
	fetchers   = 8         // files, or objects with entries, that are fetched at once
	copyBytes  = 256 << 10 // that are written at once
	fetchBytes = 64 << 20  // of objects with entries that are fetched at once, if there is more than one
)

// make makes a directory of an image and the entries after it: first as names (content), then as files.
func (r *restore) make(ctx context.Context, p *plan, st *group.Image) (_ *Restored, err error) {
	if r.Index != "" {
		if err := r.choose(ctx, p, st); err != nil {
			return nil, err
		}
	}
	c := contentOf(st)
	at, finish, err := r.change(ctx, p, c)
	var rest errgroup.Group
	rest.Go(finish) // beside what follows, which does not read those files
	defer func() { err = errors.Join(err, rest.Wait()) }()
	if err != nil {
		return nil, err
	}
	if _, base := c.catalog(); base != nil && c.made != nil {
		if err := r.ready(ctx, *base); err != nil {
			return nil, err
		}
	}
	if err := c.removeUnnamed(r.FS, r.temp); err != nil {
		return nil, err
	}
	files, err := r.fill(ctx, c)
	if err == nil && r.excerpt != nil {
		err = r.leaveOne()
	}
	return &Restored{Position: p.to, At: at, Files: files, Bytes: r.total}, err
}

func (r *restore) path(name string) string { return path.Join(r.temp, name) }

// change applies the entries of a plan: those for files of bbolt in the directory, the others in c. It returns after the last one.
// finish makes the files of bbolt durable, and closes them.
func (r *restore) change(ctx context.Context, p *plan, c *content) (at time.Time, finish func() error, err error) {
	g, inner := errgroup.WithContext(ctx)
	for _, f := range c.dbs {
		g.Go(func() error { return r.ready(inner, f) })
	}
	t := newTransactions(r.temp, boltfile.Options{Logger: r.Logger})
	if err := g.Wait(); err != nil {
		return at, t.close, err
	}
	at = time.Unix(0, p.image.at)
	err = r.entries(ctx, p, func(e *group.Entry) error {
		if e.Change.Kind == 0 {
			return nil
		}
		at = time.Unix(0, e.At)
		if !r.wanted(e.Change.Name) {
			return nil
		}
		if err := c.change(e); err != nil {
			return err
		}
		if k := e.Change.Kind; k != commit.Tasks && k != commit.Keys {
			return nil
		}
		if _, ok := c.dbs[e.Change.Name]; !ok {
			return fmt.Errorf("the image does not have %s", e.Change.Name)
		}
		return t.add(e)
	})
	if err != nil {
		return at, t.close, err
	}
	return at, func() error { return errors.Join(t.finish(), t.close()) }, nil
}

// ready fetches a file unless an earlier try has.
func (r *restore) ready(ctx context.Context, f group.File) error {
	if err := vfs.MakeDir(r.FS, path.Dir(r.path(f.Name))); err != nil {
		return err
	}
	whole, err := r.isWhole(f)
	if err == nil && !whole {
		err = r.fetch(ctx, &f)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.have[f.Name] = true
	return err
}

// isWhole reports whether the directory has a file.
func (r *restore) isWhole(f group.File) (bool, error) {
	info, err := r.FS.Stat(r.path(f.Name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() != f.Size {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sum, err := group.SumOf(r.FS, r.path(f.Name))
	if err != nil || sum != f.Sum {
		return false, err
	}
	return true, nil
}

// entries calls each for the entries behind the image of a plan, up to its position. Several objects are read at once.
func (r *restore) entries(ctx context.Context, p *plan, each func(*group.Entry) error) error {
	for logs := p.logs; len(logs) > 0; {
		n := together(logs, fetchBytes)
		if err := r.entriesOf(ctx, p, logs[:n], each); err != nil {
			return err
		}
		logs = logs[n:]
	}
	return nil
}

// together returns how many of the first objects are read at once: up to fetchers of up to limit bytes, and at least one.
func together(logs []logRef, limit int64) int {
	n, bytes := 1, logs[0].bytes
	for n < min(len(logs), fetchers) {
		if bytes += logs[n].bytes; bytes > limit {
			break
		}
		n++
	}
	return n
}

// entriesOf reads objects at once, and calls each for their entries in order.
func (r *restore) entriesOf(ctx context.Context, p *plan, logs []logRef, each func(*group.Entry) error) error {
	batches := make([]*group.Batch, len(logs))
	g, inner := errgroup.WithContext(ctx)
	for i := range logs {
		g.Go(func() error {
			return r.again(inner, func() (err error) {
				batches[i], err = r.a.batch(inner, &logs[i])
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, b := range batches {
		if err := p.each(&logs[i], b, each); err != nil {
			return err
		}
	}
	return nil
}

// each calls f for the entries of an object that a plan has.
func (p *plan) each(l *logRef, b *group.Batch, f func(*group.Entry) error) error {
	for n, raw := range b.Entries {
		if index := b.Run.Index + uint64(n); !p.has(index) || index < l.begin {
			continue
		}
		e, err := group.ReadEntry(raw)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", l.name, err)
		}
		if err := f(e); err != nil {
			return fmt.Errorf("cannot make the changes of %s: %w", l.name, err)
		}
	}
	return nil
}

// fill creates the files of c in the directory, except bbolt files, and returns how many immutable files it has. It keeps complete
// files of an earlier attempt and removes all others.
func (r *restore) fill(ctx context.Context, c *content) (files int, err error) {
	wanted, dirs := map[string]*group.File{}, map[string]bool{r.temp: true}
	if r.only == "" {
		dirs[r.path(payloadsDir)] = true
	}
	for _, all := range c.files {
		for _, f := range all {
			files++
			r.total += f.Size
			dirs[path.Dir(r.path(f.Name))] = true
			if !r.have[f.Name] {
				wanted[f.Name] = &f
			}
		}
	}
	for _, f := range c.dbs {
		files++
		r.total += f.Size
		dirs[path.Dir(r.path(f.Name))] = true
	}
	for name := range c.small {
		dirs[path.Dir(r.path(name))] = true
	}
	if err := r.keepWhole("", wanted); err != nil {
		return 0, err
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := vfs.MakeDir(r.FS, dir); err != nil {
			return 0, err
		}
	}
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(fetchers)
	for _, f := range wanted {
		g.Go(func() error { return r.fetch(inner, f) })
	}
	for name, content := range c.small {
		g.Go(func() error { return vfs.WriteFile(r.FS, r.path(name), content) })
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	var synced errgroup.Group
	synced.SetLimit(fetchers)
	for dir := range dirs {
		synced.Go(func() error { return r.FS.SyncDir(dir) })
	}
	return files, synced.Wait()
}

// keepWhole removes unwanted files of an earlier attempt, and takes complete ones out of wanted.
func (r *restore) keepWhole(dir string, wanted map[string]*group.File) error {
	names, err := r.FS.List(r.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, base := range names {
		name := path.Join(dir, base)
		info, err := r.FS.Stat(r.path(name))
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := r.keepWhole(name, wanted); err != nil {
				return err
			}
			continue
		}
		if r.have[name] {
			continue
		}
		if f := wanted[name]; f != nil {
			whole, err := r.isWhole(*f)
			if err != nil {
				return err
			}
			if whole {
				delete(wanted, name)
				continue
			}
		}
		if err := r.FS.Remove(r.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// fetch fetches a file, durably.
func (r *restore) fetch(ctx context.Context, f *group.File) error {
	if err := r.again(ctx, func() error { return r.fetchOnce(ctx, f) }); err != nil {
		return fmt.Errorf("cannot fetch %s: %w", f.Name, err)
	}
	return nil
}

// again does something a few times, until it succeeds.
func (r *restore) again(ctx context.Context, do func() error) error {
	const tries = 5
	for wait, try := r.pause, 1; ; wait, try = 2*wait, try+1 {
		err := do()
		if err == nil || try == tries || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// fetchOnce copies a file from the archive, comparing its checksum. It is synced before it gets its name.
func (r *restore) fetchOnce(ctx context.Context, f *group.File) error {
	in, err := r.a.file(ctx, *f)
	if err != nil {
		return err
	}
	defer in.Close()
	to := r.path(f.Name)
	out, err := r.FS.Create(to + vfs.TempSuffix)
	if err != nil {
		return err
	}
	if _, err = io.CopyBuffer(struct{ io.Writer }{out}, in, make([]byte, min(copyBytes, f.Size+1))); err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return r.FS.Rename(to+vfs.TempSuffix, to)
}

// ParseTarget reads a position, or a moment in the form of RFC 3339. An empty text is the last position.
func ParseTarget(text string) (Target, error) {
	if text == "" {
		return Target{}, nil
	}
	if p, err := group.ParsePosition(text); err == nil {
		return Target{Position: p}, nil
	}
	if t, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "T", 1)); err == nil {
		return Target{Time: t}, nil
	}
	return Target{}, fmt.Errorf("%q is neither a position such as 1.2.345 nor a time such as 2026-01-31T12:00:00Z", text)
}

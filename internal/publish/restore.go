package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"svc/internal/group"
	"svc/internal/standby"
	"svc/internal/vfs"
)

// Target is what is restored: Position, or the last position of which no change is later than Time, or the last one if both are zero.
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
	// Progress, when not nil, is told the bytes of files that were fetched, and those that there are, from time to time.
	Progress func(done, total int64)

	pause time.Duration // of tests: before a request is tried again; 0: minBackoff
}

// Restored is what a restore made.
type Restored struct {
	Position group.Position
	At       time.Time // of the last change
	Files    int
	Bytes    int64 // of files
}

// restoreSuffix ends the name of a directory until it is whole. A restore that was cut off goes on there.
const restoreSuffix = ".restoring"

// Restore makes a data directory that holds what the published one held at a position. Every file has the size and the checksum that it
// had there. The directory has its name once it is whole.
func (a *Archive) Restore(ctx context.Context, o RestoreOptions) (*Restored, error) {
	o.Dir = path.Clean(filepath.ToSlash(o.Dir))
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.pause == 0 {
		o.pause = minBackoff
	}
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
	p, st, err := a.readable(ctx, h, p, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("cannot restore position %v: %w", p.to, err)
	}
	r := &restore{RestoreOptions: o, a: a, temp: o.Dir + restoreSuffix}
	result, err := r.make(ctx, p, st)
	if err != nil {
		return nil, fmt.Errorf("cannot restore position %v: %w", p.to, err)
	}
	if err := o.FS.Remove(o.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if _, err := vfs.Move(o.FS, r.temp, o.Dir); err != nil {
		return nil, fmt.Errorf("cannot give the restored directory its name: %w", err)
	}
	return result, nil
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
	return h.planFor(to)
}

// readable returns a plan with its image. While the image is damaged, it goes on with the plan from the image before.
func (a *Archive) readable(ctx context.Context, h *history, p *plan, log *slog.Logger) (*plan, *group.Image, error) {
	for {
		st, err := readAgain(ctx, func() (*group.Image, error) { return a.image(ctx, &p.state) })
		if !broken(err) {
			return p, st, err
		}
		h.states = slices.DeleteFunc(h.states, func(s stateRef) bool { return s.name == p.state.name })
		older, none := h.planFor(p.to)
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
	done  atomic.Int64 // bytes
	total int64

	only    string // the directory of the index that is restored, and CATALOG with its base; "": all
	excerpt []byte // CATALOG of that index alone
}

// fetchers is how many files are fetched at once.
const fetchers = 8

func (r *restore) make(ctx context.Context, p *plan, st *group.Image) (_ *Restored, err error) {
	if r.Index != "" {
		if err := r.choose(ctx, p, st); err != nil {
			return nil, err
		}
	}
	if err := r.fill(ctx, st); err != nil {
		return nil, err
	}
	result := &Restored{Position: p.to, At: time.Unix(0, p.state.at), Files: len(st.Files), Bytes: r.total}
	d := standby.Open(standby.Options{FS: r.FS, Dir: r.temp, Logger: r.Logger})
	err = r.a.entries(ctx, p, func(e *group.Entry) error {
		result.At = time.Unix(0, e.At)
		if !r.wanted(e.Change.Name) {
			return nil
		}
		return r.again(ctx, func() error { return r.apply(ctx, d, e) })
	})
	if err == nil && r.excerpt != nil {
		err = r.leaveOne()
	}
	return result, errors.Join(err, d.Close())
}

func (r *restore) path(name string) string { return path.Join(r.temp, name) }

// entries calls each for the entries behind the image of a plan, up to its position.
func (a *Archive) entries(ctx context.Context, p *plan, each func(*group.Entry) error) error {
	for i := range p.logs {
		if err := a.entriesOf(ctx, p, &p.logs[i], each); err != nil {
			return err
		}
	}
	return nil
}

// entriesOf calls each for those of one object.
func (a *Archive) entriesOf(ctx context.Context, p *plan, l *logRef, each func(*group.Entry) error) error {
	b, err := a.batch(ctx, l)
	if err != nil {
		return err
	}
	for n, raw := range b.Entries {
		if !p.has(b.Run.Index + uint64(n)) {
			continue
		}
		e, err := group.DecodeEntry(raw)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", l.name, err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// apply makes the change of an entry.
func (r *restore) apply(ctx context.Context, d *standby.Directory, e *group.Entry) error {
	err := d.Apply(e.Change, func(name string) (io.ReadCloser, error) {
		for i := range e.Files {
			if e.Files[i].Name == name {
				return r.a.file(ctx, e.Files[i])
			}
		}
		return nil, fmt.Errorf("the change does not name %s", name)
	})
	if err != nil {
		return err
	}
	for _, name := range e.Removed {
		if err := r.FS.Remove(r.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// fill makes the directory what an image says. Files that an earlier try left are taken if they are whole; all else of it is removed.
func (r *restore) fill(ctx context.Context, st *group.Image) error {
	wanted, dirs := map[string]*group.File{}, map[string]bool{r.temp: true}
	if r.only == "" {
		dirs[r.path("tasks/payloads")] = true
	}
	for i := range st.Files {
		f := &st.Files[i].File
		wanted[f.Name] = f
		r.total += f.Size
		dirs[path.Dir(r.path(f.Name))] = true
	}
	for i := range st.Contents {
		dirs[path.Dir(r.path(st.Contents[i].Name))] = true
	}
	if err := r.keepWhole("", wanted); err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := vfs.MakeDir(r.FS, dir); err != nil {
			return err
		}
	}
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(fetchers)
	for _, f := range wanted {
		g.Go(func() error { return r.fetch(inner, f) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i := range st.Contents {
		c := &st.Contents[i]
		if err := vfs.WriteFile(r.FS, r.path(c.Name), c.Data); err != nil {
			return err
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := r.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// keepWhole removes what an earlier try left and is not wanted, and takes what it left whole off the wanted.
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
		at := r.path(name)
		info, err := r.FS.Stat(at)
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := r.keepWhole(name, wanted); err != nil {
				return err
			}
			continue
		}
		if f := wanted[name]; f != nil && info.Size() == f.Size {
			sum, err := group.SumOf(r.FS, at)
			if err != nil {
				return err
			}
			if sum == f.Sum {
				delete(wanted, name)
				r.fetched(f.Size)
				continue
			}
		}
		if err := r.FS.Remove(at); err != nil {
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
	r.fetched(f.Size)
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
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return r.FS.Rename(to+vfs.TempSuffix, to)
}

func (r *restore) fetched(n int64) {
	done := r.done.Add(n)
	if r.Progress != nil {
		r.Progress(done, r.total)
	}
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

package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/sio"

	"svc/internal/bucket"
	"svc/internal/group"
)

// Follower reads a publication for a reader that follows it: a group.Upstream. It uses only the store.
//
// Lists of the store may be stale. This delays a reader, but does not mislead it: entries are numbered, and an image is used only if
// the entries that complete it are listed.
type Follower struct {
	o FollowOptions

	mu      sync.Mutex
	archive *Archive // nil: not opened yet

	// These belong to the goroutine that asks for images and entries.
	listed  []logRef       // entries to be asked for next
	end     group.Position // of the last entries that were returned: the next object begins behind it
	asked   time.Time      // when entries were listed last
	pause   time.Duration  // until they are listed again
	stuck   time.Time      // since when there have been later entries or images, but not the next entry; zero: not so
	renewed time.Time      // when images were listed last
	early   bool           // the next list has entries from further before
	sought  time.Time      // when they were listed last from further before, which took seeking
	seeking time.Duration
}

// FollowOptions are the options of a follower.
type FollowOptions struct {
	Store     bucket.Store
	MasterKey string
	Interval  time.Duration // between two lists of entries, at least; 0: DefaultInterval
	Logger    *slog.Logger
}

const (
	// A list takes at most 1/followShare of the time: a directory with many objects is listed less often.
	followShare = 10

	// renewPolls is the number of lists without a new entry after which images are listed. stuckPolls is the number of lists for
	// which entries may be missing although there are later ones.
	renewPolls = 5
	stuckPolls = 10

	// Lists of entries from further before take at most 1/seekShare of the time.
	seekShare = 50

	// maxBatchEntries is more than an object can have: the writer puts at most 1 MiB of entries together.
	maxBatchEntries = 1 << 16
)

// NewFollower returns a follower. It does not ask the store for anything yet.
func NewFollower(o FollowOptions) *Follower {
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	return &Follower{o: o}
}

// String returns the address of the store.
func (f *Follower) String() string { return f.o.Store.String() }

// opened returns the archive.
func (f *Follower) opened(ctx context.Context) (*Archive, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.archive == nil {
		a, err := Open(ctx, f.o.Store, f.o.MasterKey)
		if final(err) {
			return nil, &group.RefusedError{Code: "publication", Message: err.Error()}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New(err.Error()) // hide fs.ErrNotExist: the file is not gone
		}
		if err != nil {
			return nil, err
		}
		f.archive = a
	}
	return f.archive, nil
}

// Directory returns the identity of the directory that is published.
func (f *Follower) Directory(ctx context.Context) (string, error) {
	a, err := f.opened(ctx)
	if err != nil {
		return "", err
	}
	return a.info.Directory, nil
}

// Image returns the newest image that is complete; see group.Upstream.
func (f *Follower) Image(ctx context.Context, least group.Position) (*group.Image, error) {
	a, err := f.opened(ctx)
	if err != nil {
		return nil, err
	}
	f.listed, f.end, f.stuck = nil, group.Position{}, time.Time{}
	images, err := a.images(ctx, "")
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(images) {
		s := &images[i]
		end, complete, err := a.reach(ctx, s)
		switch {
		case err != nil:
			return nil, err
		case !complete || end.Compare(least) < 0:
			continue
		}
		st, err := a.image(ctx, s)
		switch {
		case err == nil:
			return st, nil
		case final(err):
			f.o.Logger.Warn("an older image of the publication is used", "because", err)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s has nothing to go on with yet", f)
}

// Next returns entries behind a position; see group.Upstream.
func (f *Follower) Next(ctx context.Context, after group.Position, wait time.Duration) (*group.Batch, error) {
	a, err := f.opened(ctx)
	if err != nil {
		return nil, err
	}
	next := after
	next.Index++
	if after != f.end {
		f.listed, f.end, f.stuck = nil, after, time.Time{}
		f.pause, f.early = 0, false
		if err := f.list(ctx, a, next, maxBatchEntries); err != nil {
			return nil, err
		}
	}
	for f.skip(next); len(f.listed) == 0 || f.listed[0].first.Index > next.Index; f.skip(next) {
		if f.listed != nil || wait == 0 {
			break // listed just now
		}
		if err := f.rest(ctx, wait); err != nil {
			return nil, err
		}
		before := uint64(0)
		if f.early || !f.stuck.IsZero() { // another leader may have published the next entry with earlier ones
			before = maxBatchEntries
		}
		if err := f.list(ctx, a, next, before); err != nil {
			return nil, err
		}
		wait = 0
	}
	t := &group.Batch{Run: next, End: after.Index}
	if len(f.listed) == 0 || f.listed[0].first.Index > next.Index {
		gap := len(f.listed) > 0
		f.listed = nil // they are listed again
		return t, f.lost(ctx, a, after, gap)
	}
	f.stuck = time.Time{}
	l := f.listed[0]
	b, err := a.batch(ctx, &l)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it was removed since
		f.listed = nil
		return nil, fmt.Errorf("%w: %w", group.ErrCut, err)
	case errors.Is(err, errDamaged):
		if _, later, e := a.later(ctx, after); e == nil && later {
			err = fmt.Errorf("%w: %w", group.ErrCut, err)
		}
		return nil, err
	case err != nil:
		return nil, err
	}
	t.Entries = b.Entries[next.Index-l.first.Index:]
	t.End = f.listed[len(f.listed)-1].last
	f.listed = f.listed[1:]
	f.end.Index = l.last
	return t, nil
}

// skip drops listed entries before the next one.
func (f *Follower) skip(next group.Position) {
	for len(f.listed) > 0 && f.listed[0].last < next.Index {
		f.listed = f.listed[1:]
	}
	if len(f.listed) == 0 {
		f.listed = nil
	}
}

// rest waits until it is time to list entries again, at most for the longer of wait and the pause.
func (f *Follower) rest(ctx context.Context, wait time.Duration) error {
	return sleep(ctx, max(0, min(max(wait, f.pause), time.Until(f.asked.Add(max(f.pause, f.o.Interval))))))
}

// list lists entries of a run. The first object begins up to before entries earlier.
func (f *Follower) list(ctx context.Context, a *Archive, next group.Position, before uint64) error {
	start := time.Now()
	logs, err := a.logsFrom(ctx, next, before)
	if err != nil {
		return err
	}
	f.listed, f.asked = logs, time.Now()
	took := f.asked.Sub(start)
	if f.early && before > 0 {
		f.early, f.sought, f.seeking = false, f.asked, took
		return nil // wait as long as between lists
	}
	f.pause = max(f.o.Interval, followShare*took)
	return nil
}

// lost decides whether entries after a position will still arrive. If not, its error is group.ErrCut. gap says that there are later
// ones.
func (f *Follower) lost(ctx context.Context, a *Archive, after group.Position, gap bool) error {
	now := time.Now()
	if gap && f.stuck.IsZero() {
		f.stuck = now
	}
	if !gap && now.Sub(f.renewed) >= renewPolls*f.pause {
		f.renewed = now
		f.early = now.Sub(f.sought) >= seekShare*f.seeking
		end, later, err := a.later(ctx, after)
		switch {
		case err != nil:
			return err
		case later && !end.SameLog(after):
			return fmt.Errorf("%w: %s has a later run of the writer", group.ErrCut, f)
		case later && f.stuck.IsZero():
			f.stuck = now
		case !later:
			f.stuck = time.Time{}
		}
	}
	if !f.stuck.IsZero() && now.Sub(f.stuck) >= stuckPolls*f.o.Interval {
		f.stuck = time.Time{}
		return fmt.Errorf("%w: %s has entries after position %v, but not the next one", group.ErrCut, f, after)
	}
	return nil
}

// Open opens a file; see group.Upstream.
func (f *Follower) Open(ctx context.Context, file group.File) (io.ReadCloser, error) {
	a, err := f.opened(ctx)
	if err != nil {
		return nil, err
	}
	in, err := a.file(ctx, file)
	if err != nil {
		return nil, err
	}
	return &cutting{in}, nil
}

// cutting reads a file. If its object is damaged, the error is group.ErrCut: a later image may not need it.
type cutting struct{ io.ReadCloser }

// Read turns damage of an object into group.ErrCut: the reader copies an image instead of asking again.
func (c *cutting) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if errors.Is(err, errDamaged) {
		err = fmt.Errorf("%w: %w", group.ErrCut, err)
	}
	return n, err
}

// unsealed reads the content of a sealed object. The error is errDamaged if the object, or a part of it, is not what was sealed.
type unsealed struct{ io.Reader }

// Read distinguishes damage, an alteration in the store, from temporary errors of the store.
func (u unsealed) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if altered := new(sio.Error); errors.As(err, altered) || err == io.ErrUnexpectedEOF { // errors of the store are others
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return n, err
}

// images lists the images whose names are greater than after, by position.
func (a *Archive) images(ctx context.Context, after string) (images []imageRef, err error) {
	err = a.store.List(ctx, imagesPrefix, after, func(o bucket.Object) error {
		if p, whole, at, ok := parseRef(strings.TrimPrefix(o.Name, imagesPrefix)); ok && o.Name > after {
			images = append(images, imageRef{o.Name, p, whole, at})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", a.store, err)
	}
	slices.SortFunc(images, func(x, y imageRef) int { return x.from.Compare(y.from) })
	return images, nil
}

// logsFrom lists the entries of a run from one on, by position. The first object begins up to before entries earlier.
func (a *Archive) logsFrom(ctx context.Context, next group.Position, before uint64) (logs []logRef, err error) {
	run := fmt.Sprintf(logPrefix+"%08x%08x/", next.Term, next.Run)
	err = a.store.List(ctx, run, run+fmt.Sprintf("%016x", next.Index-min(before, next.Index)), func(o bucket.Object) error {
		if p, last, at, ok := parseRef(strings.TrimPrefix(o.Name, logPrefix)); ok && last >= next.Index {
			logs = append(logs, logRef{name: o.Name, first: p, last: last, at: at, bytes: o.Size})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", a.store, err)
	}
	sortLogs(logs)
	return logs, nil
}

// reach returns the last position that an image and the entries behind it reach, and whether they complete the image.
func (a *Archive) reach(ctx context.Context, s *imageRef) (end group.Position, complete bool, err error) {
	next := s.from
	next.Index++
	logs, err := a.logsFrom(ctx, next, maxBatchEntries)
	if err != nil {
		return end, false, err
	}
	end, complete = (&history{logs: logs}).end(s)
	return end, complete, nil
}

// later returns the position that the newest complete image leads to; ok is false when that is not behind p.
func (a *Archive) later(ctx context.Context, p group.Position) (end group.Position, ok bool, err error) {
	images, err := a.images(ctx, imageName(p, 0, 0))
	if err != nil {
		return end, false, err
	}
	for i := range slices.Backward(images) {
		end, complete, err := a.reach(ctx, &images[i])
		if err != nil || complete && end.Compare(p) > 0 {
			return end, err == nil, err
		}
	}
	return end, false, nil
}

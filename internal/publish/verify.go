package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"svc/internal/group"
)

// Damage is an object that is missing, or differs from what was published. If entries are missing, Object is the prefix of their
// names.
type Damage struct {
	Object   string
	File     string         // of the data directory; "" if the object is an image or has entries
	From, To group.Position // the first and the last image or entry that need it
	Err      error
}

// Verified is what Verify read.
type Verified struct {
	Objects int
	Bytes   int64 // of files
	Damaged int
}

// VerifyOptions select what Verify reads, and receive its findings.
type VerifyOptions struct {
	Target *Target // check only what is needed to restore it; nil: the whole archive
	// Damaged is called for each damaged object, by one goroutine at a time.
	Damaged func(Damage)
}

// needed is a file that images or entries need.
type needed struct {
	file     group.File
	from, to group.Position
	image    bool // an image is the last to need it, not an entry
}

// missed is an object that is missing: retention may have removed it while the others were read.
type missed struct {
	Damage
	image bool // as in needed
}

// verification is a running Verify.
type verification struct {
	archive *Archive
	report  func(Damage)
	plan    *plan              // of the target; nil: the whole archive is checked
	made    *content           // of the target, once its image is read
	files   map[string]*needed // by the name of the object

	mu     sync.Mutex // guards what follows, and calls of report
	result Verified   // Objects and Bytes are only counted by the goroutine of Verify
	gone   []missed
}

// Verify reads all objects and compares files with their checksums. It returns an error if it cannot continue; damage is not an
// error. The server may publish and remove objects meanwhile.
func (a *Archive) Verify(ctx context.Context, o VerifyOptions) (*Verified, error) {
	h, err := a.history(ctx)
	if err != nil {
		return nil, err
	}
	v := &verification{archive: a, report: o.Damaged, files: map[string]*needed{}}
	if o.Target != nil {
		if v.plan, err = a.planOf(ctx, h, o.Target); err != nil {
			return nil, err
		}
		h = &history{images: []imageRef{v.plan.image}, logs: v.plan.logs}
	}
	for _, d := range h.gaps() {
		v.damaged(d, false)
	}
	if err := v.readImages(ctx, h.images); err != nil {
		return nil, err
	}
	if err := v.readLogs(ctx, h.logs); err != nil {
		return nil, err
	}
	if v.made != nil { // entries may name files that later ones replace
		for _, f := range v.made.all() {
			v.need(&f, v.plan.to, true)
		}
	}
	if err := v.checkFiles(ctx); err != nil {
		return nil, err
	}
	return &v.result, v.settle(ctx)
}

// damaged reports an object that is damaged, and notes one that is missing. image is as in needed.
func (v *verification) damaged(d Damage, image bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if errors.Is(d.Err, fs.ErrNotExist) {
		v.gone = append(v.gone, missed{d, image})
		return
	}
	v.result.Damaged++
	v.report(d)
}

// need notes that the image or the entry at a position needs a file.
func (v *verification) need(f *group.File, at group.Position, image bool) {
	name := fileName(*f)
	n := v.files[name]
	if n == nil {
		n = &needed{file: *f, from: at, to: at, image: image}
		v.files[name] = n
	}
	switch c := at.Compare(n.to); {
	case c > 0:
		n.to, n.image = at, image
	case c == 0:
		n.image = n.image || image
	}
	n.from = minPosition(n.from, at)
}

// readImages reads images and notes the files that they need. Of a target, the image is where made begins.
func (v *verification) readImages(ctx context.Context, images []imageRef) error {
	for i := range images {
		s := &images[i]
		st, err := readAgain(ctx, func() (*group.Image, error) { return v.archive.image(ctx, s) })
		v.result.Objects++
		if broken(err) {
			v.damaged(Damage{Object: s.name, From: s.from, To: s.from, Err: err}, true)
			continue
		}
		if err != nil {
			return err
		}
		if v.plan != nil {
			v.made = contentOf(st)
			continue
		}
		for n := range st.Files {
			v.need(&st.Files[n].File, s.from, true)
		}
	}
	return nil
}

// readLogs reads entries and notes the files that they need. Of a target, the entries change made.
func (v *verification) readLogs(ctx context.Context, logs []logRef) error {
	for i := range logs {
		l := &logs[i]
		entries, err := readAgain(ctx, func() ([]*group.Entry, error) { return v.archive.decoded(ctx, l) })
		v.result.Objects++
		if broken(err) {
			to := l.first
			to.Index = l.last
			v.damaged(Damage{Object: l.name, From: l.first, To: to, Err: err}, false)
			continue
		}
		if err != nil {
			return err
		}
		at := l.first
		for _, e := range entries {
			for n := range e.Files {
				if v.plan == nil {
					v.need(&e.Files[n], at, false)
				}
			}
			if v.made != nil && v.plan.has(at.Index) && at.Index >= l.begin {
				if err := v.made.change(e); err != nil {
					return fmt.Errorf("cannot read %s: %w", l.name, err)
				}
			}
			at.Index++
		}
	}
	return nil
}

// checkFiles reads all files that are needed.
func (v *verification) checkFiles(ctx context.Context) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(fetchers)
	for name, n := range v.files {
		v.result.Objects++
		v.result.Bytes += n.file.Size
		g.Go(func() error {
			err := v.archive.check(inner, n.file)
			if broken(err) {
				v.damaged(Damage{Object: name, File: n.file.Name, From: n.from, To: n.to, Err: err}, n.image)
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

// settle reports missing objects, except those that retention has removed: these are not needed from the oldest image on.
func (v *verification) settle(ctx context.Context) error {
	if len(v.gone) == 0 {
		return nil
	}
	images, err := v.archive.images(ctx, "")
	if err != nil {
		return err
	}
	for i := range v.gone {
		m := &v.gone[i]
		removed := false
		if len(images) > 0 {
			c := m.To.Compare(images[0].from)
			removed = c < 0 || c == 0 && !m.image
		}
		switch {
		case !removed:
			v.result.Damaged++
			v.report(m.Damage)
		case v.plan != nil:
			return fmt.Errorf("position %v was removed while its objects were read: it is older than --publish-keep", v.plan.to)
		}
	}
	return nil
}

// check reads a file, and compares its size and checksum.
func (a *Archive) check(ctx context.Context, f group.File) error {
	_, err := readAgain(ctx, func() (int64, error) {
		in, err := a.file(ctx, f)
		if err != nil {
			return 0, err
		}
		defer in.Close()
		return io.Copy(io.Discard, in)
	})
	return err
}

// decoded reads entries with what each of them says.
func (a *Archive) decoded(ctx context.Context, l *logRef) ([]*group.Entry, error) {
	b, err := a.batch(ctx, l)
	if err != nil {
		return nil, err
	}
	entries := make([]*group.Entry, len(b.Entries))
	for i, raw := range b.Entries {
		if entries[i], err = group.ReadEntry(raw); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w: %w", l.name, errDamaged, err)
		}
	}
	return entries, nil
}

// readAgain repeats a failed read once, unless the object is missing.
func readAgain[T any](ctx context.Context, read func() (T, error)) (T, error) {
	v, err := read()
	if err == nil || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
		return v, err
	}
	return read()
}

// broken reports whether an error says that an object is missing or damaged. Other errors say that it could not be read.
func broken(err error) bool {
	return errors.Is(err, errDamaged) || errors.Is(err, fs.ErrNotExist)
}

// gaps returns the entries that are missing between others. If an image follows a gap, nothing is missing: the publisher may have started
// again.
func (h *history) gaps() (all []Damage) {
	var last uint64 // of the objects before, of the same log
	for i := range h.logs {
		l := &h.logs[i]
		if i == 0 || !h.logs[i-1].first.SameLog(l.first) {
			last = l.last
			continue
		}
		from, before := l.first, l.first
		from.Index, before.Index = last+1, l.first.Index-1
		last = max(last, l.last)
		if from.Index > before.Index {
			continue
		}
		if _, found := slices.BinarySearchFunc(h.images, before, func(s imageRef, p group.Position) int { return s.from.Compare(p) }); found {
			continue
		}
		all = append(all, Damage{Object: logPrefix, From: from, To: before, Err: fmt.Errorf("no object has these entries: %w", fs.ErrNotExist)})
	}
	return all
}

func minPosition(a, b group.Position) group.Position {
	if a.Compare(b) > 0 {
		return b
	}
	return a
}

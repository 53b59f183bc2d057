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

// Verify reads all objects and compares files with their checksums. It returns an error if it cannot continue; damage is not an
// error. The server may publish and remove objects meanwhile.
func (a *Archive) Verify(ctx context.Context, o VerifyOptions) (*Verified, error) {
	h, err := a.history(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var gone []missed
	v := new(Verified)
	damaged := func(d Damage, image bool) {
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(d.Err, fs.ErrNotExist) {
			gone = append(gone, missed{d, image})
			return
		}
		v.Damaged++
		o.Damaged(d)
	}
	var p *plan
	if o.Target != nil {
		if p, err = a.planOf(ctx, h, o.Target); err != nil {
			return nil, err
		}
		h = &history{images: []imageRef{p.image}, logs: p.logs}
	}
	var made *content // of the target
	files := map[string]*needed{}
	need := func(f *group.File, at group.Position, image bool) {
		name := fileName(*f)
		n := files[name]
		if n == nil {
			n = &needed{file: *f, from: at, to: at, image: image}
			files[name] = n
		}
		switch c := at.Compare(n.to); {
		case c > 0:
			n.to, n.image = at, image
		case c == 0:
			n.image = n.image || image
		}
		n.from = minPosition(n.from, at)
	}
	for _, d := range h.gaps() {
		damaged(d, false)
	}
	for i := range h.images {
		s := &h.images[i]
		st, err := readAgain(ctx, func() (*group.Image, error) { return a.image(ctx, s) })
		v.Objects++
		if broken(err) {
			damaged(Damage{Object: s.name, From: s.from, To: s.from, Err: err}, true)
			continue
		}
		if err != nil {
			return nil, err
		}
		if p != nil {
			made = contentOf(st)
			continue
		}
		for n := range st.Files {
			need(&st.Files[n].File, s.from, true)
		}
	}
	for i := range h.logs {
		l := &h.logs[i]
		entries, err := readAgain(ctx, func() ([]*group.Entry, error) { return a.decoded(ctx, l) })
		v.Objects++
		if broken(err) {
			to := l.first
			to.Index = l.last
			damaged(Damage{Object: l.name, From: l.first, To: to, Err: err}, false)
			continue
		}
		if err != nil {
			return nil, err
		}
		at := l.first
		for _, e := range entries {
			for n := range e.Files {
				if p == nil {
					need(&e.Files[n], at, false)
				}
			}
			if made != nil && p.has(at.Index) && at.Index >= l.begin {
				if err := made.change(e); err != nil {
					return nil, fmt.Errorf("cannot read %s: %w", l.name, err)
				}
			}
			at.Index++
		}
	}
	if made != nil { // entries may name files that later ones replace
		for _, f := range made.all() {
			need(&f, p.to, true)
		}
	}
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(fetchers)
	for name, n := range files {
		v.Objects++
		v.Bytes += n.file.Size
		g.Go(func() error {
			err := a.check(inner, n.file)
			if broken(err) {
				damaged(Damage{Object: name, File: n.file.Name, From: n.from, To: n.to, Err: err}, n.image)
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return v, a.settle(ctx, p, gone, func(d Damage) {
		v.Damaged++
		o.Damaged(d)
	})
}

// settle reports missing objects, except those that retention has removed: these are not needed from the oldest image on.
func (a *Archive) settle(ctx context.Context, p *plan, gone []missed, damaged func(Damage)) error {
	if len(gone) == 0 {
		return nil
	}
	images, err := a.images(ctx, "")
	if err != nil {
		return err
	}
	for i := range gone {
		m := &gone[i]
		removed := false
		if len(images) > 0 {
			c := m.To.Compare(images[0].from)
			removed = c < 0 || c == 0 && !m.image
		}
		switch {
		case !removed:
			damaged(m.Damage)
		case p != nil:
			return fmt.Errorf("position %v was removed while its objects were read: it is older than --publish-keep", p.to)
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

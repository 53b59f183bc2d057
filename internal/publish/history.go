package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"svc/internal/bucket"
	"svc/internal/group"
)

type imageRef struct {
	name  string
	from  group.Position // Run of the image
	whole uint64
	at    int64
}

// logRef names entries of a log.
type logRef struct {
	name  string
	first group.Position
	last  uint64
	at    int64
	bytes int64  // of the object
	begin uint64 // of history.after: the first entry that no object before has
}

const (
	imagesPrefix = "states/"
	logPrefix    = "log/"
	runsPrefix   = "runs/"
	filesPrefix  = "files/"

	refForm = "%08x%08x/%016x-%016x-%016x"
)

func imageName(from group.Position, whole uint64, at int64) string {
	return fmt.Sprintf(imagesPrefix+refForm, from.Term, from.Run, from.Index, whole, uint64(at))
}

func logName(first group.Position, last uint64, at int64) string {
	return fmt.Sprintf(logPrefix+refForm, first.Term, first.Run, first.Index, last, uint64(at))
}

// claimName returns the name of the object by which a publisher claims a run. A leader claims it for its reign.
func claimName(run group.Position, reign uint64) string {
	if reign == 0 {
		return runName(run)
	}
	return fmt.Sprintf("%s-%016x", runName(run), reign)
}

func runName(p group.Position) string { return fmt.Sprintf(runsPrefix+"%08x%08x", p.Term, p.Run) }

// parseRef reads what comes after the prefix of a name.
func parseRef(text string) (p group.Position, second uint64, at int64, ok bool) {
	var clock uint64
	if n, err := fmt.Sscanf(text, refForm, &p.Term, &p.Run, &p.Index, &second, &clock); n != 5 || err != nil {
		return p, 0, 0, false
	}
	at = int64(clock)
	return p, second, at, fmt.Sprintf(refForm, p.Term, p.Run, p.Index, second, clock) == text
}

// history lists the objects of an archive, except files.
type history struct {
	images []imageRef // by from
	logs   []logRef   // by first
}

// history lists images and entries, in order. It reads none of them.
func (a *Archive) history(ctx context.Context) (*history, error) {
	images, err := a.images(ctx, "")
	if err != nil {
		return nil, err
	}
	h := &history{images: images}
	err = a.store.List(ctx, logPrefix, "", func(o bucket.Object) error {
		if p, last, at, ok := parseRef(strings.TrimPrefix(o.Name, logPrefix)); ok {
			h.logs = append(h.logs, logRef{name: o.Name, first: p, last: last, at: at, bytes: o.Size})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", a.store, err)
	}
	sortLogs(h.logs)
	return h, nil
}

func sortLogs(logs []logRef) {
	slices.SortFunc(logs, func(x, y logRef) int { return cmp.Or(x.first.Compare(y.first), cmp.Compare(x.last, y.last)) })
}

// after returns the entries that follow an image without a gap, in order. Two leaders of a group may have published the same ones: those
// before logRef.begin are left out.
func (h *history) after(s *imageRef) []logRef { return slices.Collect(h.behind(s)) }

// behind walks what after returns.
func (h *history) behind(s *imageRef) iter.Seq[logRef] {
	return func(yield func(logRef) bool) {
		next := s.from
		next.Index++
		i, _ := slices.BinarySearchFunc(h.logs, next, func(l logRef, p group.Position) int { return l.first.Compare(p) })
		// Entries that an image was taken in the middle of began before it.
		for i > 0 && h.logs[i-1].first.SameLog(next) && h.logs[i-1].first.Index+maxBatchEntries > next.Index {
			i--
		}
		for ; i < len(h.logs); i++ {
			l := h.logs[i]
			if !l.first.SameLog(next) || l.first.Index > next.Index {
				return
			}
			if l.last < next.Index {
				continue
			}
			l.begin = next.Index
			next.Index = l.last + 1
			if !yield(l) {
				return
			}
		}
	}
}

// end returns the last position that an image and the entries after it reach; ok is false when they do not reach Whole.
func (h *history) end(s *imageRef) (p group.Position, ok bool) {
	p = s.from
	for l := range h.behind(s) {
		p.Index = l.last
	}
	return p, p.Index >= s.whole
}

// Range is a range of positions. Each of them can be restored.
type Range struct {
	From, To         group.Position // of one log, inclusive
	Begin, End       time.Time      // of the first and the last change
	Images, Segments int            // objects: images of the directory, and parts of the log
}

// Ranges returns what can be restored, the oldest first.
func (a *Archive) Ranges(ctx context.Context) ([]Range, error) {
	h, err := a.history(ctx)
	if err != nil {
		return nil, err
	}
	var ranges []Range
	for i := range h.images {
		s := &h.images[i]
		to, ok := h.end(s)
		if !ok {
			continue
		}
		logs := h.after(s)
		r := Range{From: s.from, To: to, Begin: time.Unix(0, s.at), End: time.Unix(0, s.at), Images: 1, Segments: len(logs)}
		r.From.Index = s.whole
		if len(logs) > 0 {
			r.End = time.Unix(0, logs[len(logs)-1].at)
		}
		if n := len(ranges); n > 0 && ranges[n-1].To == to {
			ranges[n-1].Images++
			continue
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// plan is how a position is restored: an image, and the entries after it up to the position.
type plan struct {
	image imageRef
	logs  []logRef
	to    group.Position
}

// has reports whether a plan applies an entry: it is after the image, and not after the position.
func (p *plan) has(index uint64) bool { return index > p.image.from.Index && index <= p.to.Index }

// planFor returns the plan of a position, from the newest image that it can be restored from.
func (h *history) planFor(to group.Position) (*plan, error) {
	for i := len(h.images) - 1; i >= 0; i-- {
		s := &h.images[i]
		if !s.from.SameLog(to) || s.whole > to.Index {
			continue
		}
		if end, ok := h.end(s); ok && end.Index >= to.Index {
			logs := h.after(s)
			n := slices.IndexFunc(logs, func(l logRef) bool { return l.begin > to.Index })
			if n < 0 {
				n = len(logs)
			}
			return &plan{*s, logs[:n], to}, nil
		}
	}
	return nil, fmt.Errorf("the archive does not have the position %v, or no longer has it. List with --list what can be restored", to)
}

// settles returns an error if a plan ends between entries that were combined: the directory would have a state that the writer never had.
func (a *Archive) settles(ctx context.Context, p *plan) error {
	n := len(p.logs)
	if n == 0 || p.logs[n-1].last == p.to.Index {
		return nil
	}
	b, err := readAgain(ctx, func() (*group.Batch, error) { return a.batch(ctx, &p.logs[n-1]) })
	if err != nil {
		return err
	}
	before, after, err := settled(b, p.logs[n-1].begin-1, p.to.Index)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w: %w", p.logs[n-1].name, errDamaged, err)
	}
	if before == p.to.Index {
		return nil
	}
	next := p.to
	next.Index = after
	message := fmt.Sprintf("position %v cannot be restored: it was combined with later changes. Restore %v", p.to, next)
	if next.Index = before; before >= p.image.whole {
		message += fmt.Sprintf(" or %v", next)
	}
	return errors.New(message)
}

// settled returns the consistent positions next to one, before and after it: see group.Unsettled. Both are the position itself if it is
// consistent. from is a consistent position before the entries.
func settled(b *group.Batch, from, at uint64) (before, after uint64, err error) {
	until, err := group.Unsettled(b.Entries)
	if err != nil {
		return 0, 0, err
	}
	before, after = max(from, b.Run.Index-1), at
	end := uint64(0) // up to which entry those so far were combined
	for i, n := range until {
		index := b.Run.Index + uint64(i)
		if index <= from {
			continue
		}
		end = max(end, b.Run.Index+uint64(n))
		switch {
		case index < end:
		case index <= at:
			before = index
		default:
			return before, index, nil
		}
		if before == at {
			break
		}
	}
	return before, after, nil
}

// latest returns the last position that can be restored.
func (h *history) latest() (group.Position, error) {
	for i := len(h.images) - 1; i >= 0; i-- {
		if p, ok := h.end(&h.images[i]); ok {
			return p, nil
		}
	}
	return group.Position{}, fmt.Errorf("the archive cannot be restored yet: the first upload has not finished")
}

// positionAt returns the last position whose changes are all no later than t.
func (a *Archive) positionAt(ctx context.Context, h *history, t time.Time) (group.Position, error) {
	limit := t.UnixNano()
	for i := len(h.images) - 1; i >= 0; i-- {
		s := &h.images[i]
		if _, ok := h.end(s); !ok || s.at > limit {
			continue
		}
		p := s.from
		for _, l := range h.after(s) {
			if l.at <= limit {
				p.Index = l.last
				continue
			}
			b, err := readAgain(ctx, func() (*group.Batch, error) { return a.batch(ctx, &l) })
			if err != nil {
				return p, err
			}
			for n, raw := range b.Entries {
				e, err := group.ReadEntry(raw)
				if err != nil {
					return p, fmt.Errorf("cannot read %s: %w", l.name, err)
				}
				if e.At > limit {
					break
				}
				p.Index = b.Run.Index + uint64(n)
			}
			if p.Index > s.from.Index {
				if p.Index, _, err = settled(b, l.begin-1, p.Index); err != nil {
					return p, fmt.Errorf("cannot read %s: %w", l.name, err)
				}
			}
			break
		}
		if p.Index = max(p.Index, s.from.Index); p.Index >= s.whole {
			return p, nil
		}
	}
	return group.Position{}, fmt.Errorf("the archive has no state before %s. List with --list what can be restored", t.Format(time.RFC3339))
}

// unreached returns the first entries that the archive has behind a position and that cannot be restored, with the reason. It returns nil
// if there are none from up to a time. The entries that are missing may be from after it.
func (h *history) unreached(to group.Position, limit int64) (first *logRef, why string) {
	for i := range h.logs {
		l := &h.logs[i]
		switch {
		case l.first.SameLog(to) && l.last <= to.Index || l.first.Compare(to) <= 0 && !l.first.SameLog(to):
		case l.first.SameLog(to) && l.first.Index <= to.Index+1:
			return nil, "" // the position is the one that was asked for
		case l.first.SameLog(to):
			return l, "changes between the restored position and later ones are missing in the publication"
		case l.at <= limit:
			return l, "the server started again after the restored position, and the upload of its first image did not finish"
		}
	}
	return nil, ""
}

// batch reads entries.
func (a *Archive) batch(ctx context.Context, l *logRef) (*group.Batch, error) {
	b, err := a.get(ctx, l.name)
	if err != nil {
		return nil, err
	}
	t, err := group.DecodeBatch(b)
	if err == nil && (t.Run != l.first || uint64(len(t.Entries)) != l.last-l.first.Index+1) {
		err = fmt.Errorf("it has %d entries from %v on", len(t.Entries), t.Run)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w: %w", l.name, errDamaged, err)
	}
	return t, nil
}

// image reads an image.
func (a *Archive) image(ctx context.Context, s *imageRef) (*group.Image, error) {
	b, err := a.get(ctx, s.name)
	if errors.Is(err, errDamaged) {
		return nil, &fatalError{err}
	}
	if err != nil {
		return nil, err
	}
	st, err := group.DecodeImage(b)
	if err == nil && (st.Run != s.from || st.Whole != s.whole) {
		err = fmt.Errorf("it is of position %v", st.Run)
	}
	if err != nil {
		return nil, fatal("cannot read %s: %w: %w", s.name, errDamaged, err)
	}
	return st, nil
}

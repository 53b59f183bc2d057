package publish

import (
	"context"
	"fmt"
	"strings"
	"time"

	"svc/internal/bucket"
	"svc/internal/group"
)

// clockMargin is the maximum lag of the store's clock behind the publisher's.
const clockMargin = time.Hour

// unfinishedTime is the age from which an unfinished object is one that a killed publisher left.
const unfinishedTime = 7 * 24 * time.Hour

// retain removes everything that no retained position needs: all before the newest image that is older than Options.Keep.
//
// That image, and the images and entries after it, need only its files and files that were sent after it was started: see objects. So
// retain reads nothing but that image, and a list that lacks the newest objects does no harm.
func (p *Publisher) retain(ctx context.Context) error {
	h, err := p.archive.history(ctx)
	if err != nil {
		return err
	}
	limit := p.o.Now().Add(-p.o.Keep).UnixNano()
	oldest := -1
	for i := range h.images {
		if _, ok := h.end(&h.images[i]); ok && h.images[i].at <= limit {
			oldest = i
		}
	}
	if oldest < 0 {
		return nil
	}
	s := &h.images[oldest]
	st, err := p.archive.image(ctx, s)
	if final(err) {
		p.o.Logger.Warn("cannot remove old objects from the bucket", "because", err)
		return nil
	}
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for i := range st.Files {
		needed[fileName(st.Files[i].File)] = true
	}
	// Images and entries are removed before the files that they refer to, oldest first, so that those that remain are complete at
	// every moment.
	for i := range h.images[:oldest] {
		if err := p.remove(ctx, h.images[i].name); err != nil {
			return err
		}
	}
	for i := range h.logs {
		l := &h.logs[i]
		if l.first.SameLog(s.from) && l.last > s.from.Index || l.first.Compare(s.from) > 0 {
			break
		}
		if err := p.remove(ctx, l.name); err != nil {
			return err
		}
	}
	unneeded, err := p.olderRuns(ctx, s.from)
	if err != nil {
		return err
	}
	for _, name := range unneeded {
		if err := p.remove(ctx, name); err != nil {
			return err
		}
	}
	unneeded = nil
	started := time.Unix(0, s.at).Add(-p.o.margin)
	err = p.o.Store.List(ctx, filesPrefix, "", func(o bucket.Object) error {
		if !needed[o.Name] && o.Modified.Before(started) {
			unneeded = append(unneeded, o.Name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot list %s: %w", p.o.Store, err)
	}
	if err := p.challenged(ctx); err != nil { // a later leader may need them
		return err
	}
	for _, name := range unneeded {
		if err := p.objects.remove(name, func() error { return p.remove(ctx, name) }); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes the unfinished objects of killed publishers.
func (p *Publisher) sweep(ctx context.Context) error {
	for _, prefix := range []string{filesPrefix, logPrefix, imagesPrefix, runsPrefix} {
		if err := p.o.Store.Sweep(ctx, prefix, p.o.Now().Add(-unfinishedTime)); err != nil {
			return fmt.Errorf("cannot remove unfinished objects from %s: %w", p.o.Store, err)
		}
	}
	return nil
}

// olderRuns returns the claims of runs before one, and of earlier leaders of the run that is published.
func (p *Publisher) olderRuns(ctx context.Context, run group.Position) (names []string, err error) {
	first, own := runName(run), p.claimed[:min(len(p.claimed), len(runName(run)))]
	err = p.o.Store.List(ctx, runsPrefix, "", func(o bucket.Object) error {
		if o.Name < first || o.Name < p.claimed && strings.HasPrefix(o.Name, own) {
			names = append(names, o.Name)
		}
		return nil
	})
	return names, err
}

func (p *Publisher) remove(ctx context.Context, name string) error {
	if err := p.o.Store.Remove(ctx, name); err != nil {
		return err
	}
	p.note(func(s *Status) { s.Removed++ })
	return nil
}

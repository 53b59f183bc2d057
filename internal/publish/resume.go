package publish

import (
	"context"
	"errors"
	"time"

	"svc/internal/bucket"
	"svc/internal/group"
)

// resume finds out what an earlier run, or an earlier leader, has published. If the log continues that, the publisher claims it
// first, so that the former leader no longer removes files that recall finds.
func (p *Publisher) resume(ctx context.Context) error {
	h, err := p.archive.history(ctx)
	if err == nil {
		err = p.goOn(ctx, h)
	}
	if err != nil {
		return err
	}
	return p.recall(ctx, h)
}

// recall finds the files that need not be sent again after a restart: those of the last image, and those that were sent after it.
func (p *Publisher) recall(ctx context.Context, h *history) error {
	p.objects.reset(map[string]bool{})
	known := map[string]bool{}
	var after time.Time
	last := map[string]bool{}
	if n := len(h.images); n > 0 {
		s := &h.images[n-1]
		st, err := p.archive.image(ctx, s)
		if final(err) {
			p.goesOn = nil
			p.o.Logger.Warn("all files are published again", "because", err)
			return nil
		}
		if err != nil {
			return err
		}
		for i := range st.Files {
			last[fileName(st.Files[i].File)] = true
		}
		after = time.Unix(0, s.at)
	}
	err := p.o.Store.List(ctx, filesPrefix, "", func(o bucket.Object) error {
		if p.archive.whole(&o) && (last[o.Name] || o.Modified.After(after)) {
			known[o.Name] = true
		}
		return nil
	})
	p.objects.reset(known)
	return err
}

// goneOn is where a publisher resumes: after the published entries, which follow an image.
type goneOn struct {
	image *group.Image
	at    group.Position
	bytes int64     // of the entries
	since time.Time // when the image was started
}

// goOn finds out whether the log continues what is published. Then the leader of a group continues where the former one ended.
func (p *Publisher) goOn(ctx context.Context, h *history) error {
	p.goesOn = nil
	if p.o.Feed.Reign() == 0 || len(h.images) == 0 {
		return nil // each run of a writer has a log of its own
	}
	s := &h.images[len(h.images)-1] // recall knows its files
	end, ok := h.end(s)
	if !ok {
		return nil
	}
	st, err := p.archive.image(ctx, s)
	if final(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p.o.Feed.Need(end)
	switch _, err := p.o.Feed.Next(ctx, end, 0); {
	case errors.Is(err, group.ErrCut):
		return nil
	case err != nil:
		return err
	}
	if err := p.claim(ctx, end); err != nil {
		return err
	}
	g := &goneOn{image: st, at: end, since: time.Unix(0, s.at)}
	for l := range h.behind(s) {
		g.bytes += l.bytes
	}
	p.goesOn = g
	p.o.Logger.Info("the publication goes on where the former leader ended", "position", end.String())
	return nil
}

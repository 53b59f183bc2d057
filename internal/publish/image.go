package publish

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"svc/internal/bucket"
	"svc/internal/group"
)

// publishRun publishes a run of the log from the present position on: an image, then entries and later images. It may continue what
// is published, once. It returns only with an error.
func (p *Publisher) publishRun(ctx context.Context) error {
	defer p.o.Feed.Release()
	from := p.goesOn
	p.goesOn = nil
	var started int64
	var st *group.Image
	if from == nil {
		var err error
		if started, st, err = p.takeImage(ctx); err != nil {
			return err
		}
		from = &goneOn{at: st.Run, since: p.o.Now()}
	}
	at := from.at
	p.o.Feed.Need(at)
	if err := p.claim(ctx, at); err != nil { // before anything of the run is published
		return err
	}
	p.mu.Lock()
	p.whole = nil
	if from.image != nil {
		p.whole = &at
	}
	p.mu.Unlock()
	due := make(chan struct{}, 1) // there are enough entries for another image
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.follow(ctx, from, due) })
	g.Go(func() error {
		for last := from.image; ; {
			if st != nil {
				if err := p.publishImage(ctx, started, st); err != nil {
					return err
				}
				last = st
			}
			err := p.awaitImage(ctx, last, due)
			if err != nil {
				return err
			}
			if started, st, err = p.takeImage(ctx); err != nil {
				return err
			}
			if !st.Run.SameLog(at) {
				return fmt.Errorf("%w: it started again", group.ErrCut)
			}
		}
	})
	return g.Wait()
}

// awaitImage waits until another image is due: after enough entries, or because objects are damaged.
func (p *Publisher) awaitImage(ctx context.Context, last *group.Image, due <-chan struct{}) error {
	again, err := p.scrub.image(ctx, last)
	for !again && err == nil {
		select {
		case <-due:
			return nil
		case <-p.scrub.due():
			again, err = p.scrub.wake(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

// takeImage takes an image of the directory and returns when it was started. From then on, the known objects are the files of the
// image and those uploaded since. Each try starts anew, because a restore to a later time than the start may use the image.
func (p *Publisher) takeImage(ctx context.Context) (started int64, st *group.Image, err error) {
	err = p.retry(ctx, func() (err error) {
		started = p.o.Now().UnixNano()
		p.objects.begin()
		st, err = p.o.Feed.Image(ctx, p.o.Stores)
		return err
	})
	return started, st, err
}

// publishImage publishes an image and then removes what is no longer needed.
func (p *Publisher) publishImage(ctx context.Context, started int64, st *group.Image) error {
	if err := p.claim(ctx, st.Run); err != nil {
		return err
	}
	files := make([]upload, len(st.Files))
	for i := range st.Files {
		files[i] = upload{file: st.Files[i].File, at: st.Files[i].At}
	}
	relied := p.objects.take(files)
	if err := p.send(ctx, append(files, relied...), &p.imageFiles); err != nil {
		return err
	}
	if err := p.claim(ctx, st.Run); err != nil { // another leader may have continued meanwhile
		return err
	}
	if err := p.create(ctx, imageName(st.Run, st.Whole, started), st.Encode()); err != nil {
		return err
	}
	p.objects.commit()
	p.o.Feed.Release()
	p.mu.Lock()
	if p.whole == nil {
		p.whole = &group.Position{Term: st.Run.Term, Run: st.Run.Run, Index: st.Whole}
	}
	p.mu.Unlock()
	if err := p.o.Feed.KeepSums(); err != nil {
		p.o.Logger.Warn("the next start computes the checksums of all files again", "error", err)
	}
	if err := p.retry(ctx, func() error { return p.retain(ctx) }); err != nil {
		return err
	}
	return p.retry(ctx, func() error { return p.sweep(ctx) })
}

// claim makes sure that this is the only publisher of the run, and that there is no later run. Among leaders of a group, the last one
// wins.
func (p *Publisher) claim(ctx context.Context, run group.Position) error {
	mine := claimName(run, p.o.Feed.Reign())
	if p.claimed != mine {
		if err := p.create(ctx, mine, []byte(p.token)); err != nil {
			return err
		}
		p.claimed = mine
	}
	return p.retry(ctx, func() error { return p.challenged(ctx) })
}

// challenged returns an error if there is a later claim than that of this publisher.
func (p *Publisher) challenged(ctx context.Context) error {
	run, _, _ := strings.Cut(p.claimed, "-")
	return p.o.Store.List(ctx, runsPrefix, "", func(o bucket.Object) error {
		switch {
		case o.Name <= p.claimed:
			return nil
		case p.archive.led && strings.HasPrefix(o.Name, run+"-"):
			return &fatalError{errSucceeded}
		}
		return p.archive.second()
	})
}

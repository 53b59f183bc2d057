package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"svc/internal/group"
)

// upload is a file to be sent, and the name that the feed opens it by.
type upload struct {
	file  group.File
	at    string
	there bool // the store has it: retention is to take it for a new one
}

// places bound how many files are sent at once. Large ones leave a place to others.
type places struct{ all, large chan struct{} }

// largeFile is the size of a file that counts as large: the upload may take long.
const largeFile = 4 << 20

func newPlaces() places {
	return places{make(chan struct{}, uploads), make(chan struct{}, uploads-1)}
}

// take waits for a place of a file. The result gives it back.
func (p *places) take(ctx context.Context, size int64) (back func(), err error) {
	needed := []chan struct{}{p.all}
	if size >= largeFile {
		needed = []chan struct{}{p.large, p.all}
	}
	for i, c := range needed {
		select {
		case c <- struct{}{}:
		case <-ctx.Done():
			for _, c := range needed[:i] {
				<-c
			}
			return nil, context.Cause(ctx)
		}
	}
	return func() {
		for _, c := range needed {
			<-c
		}
	}, nil
}

// send uploads files that are not known yet, small ones first. Each upload holds a place.
func (p *Publisher) send(ctx context.Context, files []upload, places *places) error {
	slices.SortStableFunc(files, func(a, b upload) int { return cmp.Compare(a.file.Size, b.file.Size) })
	g, ctx := errgroup.WithContext(ctx)
	for i := range files {
		name := fileName(files[i].file)
		turn, needed := p.objects.want(name, files[i])
		if !needed {
			continue
		}
		back, err := places.take(ctx, files[i].file.Size)
		if err != nil {
			p.objects.made(name, turn, false)
			return errors.Join(err, g.Wait())
		}
		g.Go(func() error {
			defer back()
			err := p.retry(ctx, func() error { return p.sendFile(ctx, name, &files[i]) })
			p.objects.made(name, turn, err == nil)
			return err
		})
	}
	return g.Wait()
}

// sendFile uploads a file under a name, and compares its checksum meanwhile. If the directory no longer has the file, the store may
// have it. Otherwise, the error is errGone.
func (p *Publisher) sendFile(ctx context.Context, name string, u *upload) error {
	in, err := p.o.Feed.Open(u.at)
	stored := u.there && errors.Is(err, fs.ErrNotExist)
	if stored {
		in, err = p.archive.file(ctx, u.file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", errGone, u.file.Name)
	}
	if err != nil {
		return fmt.Errorf("cannot publish %s: %w", u.file.Name, err)
	}
	defer in.Close()
	n, err := p.archive.put(ctx, name, newChecked(&paced{ctx, in, p.limit}, u.file), u.file.Size)
	if stored && errors.Is(err, errDamaged) {
		return fmt.Errorf("%w: %s: %w", errGone, u.file.Name, err)
	}
	if err != nil {
		return fmt.Errorf("cannot publish %s: %w", u.file.Name, err)
	}
	p.sent(n)
	return nil
}

// paced reads at most as fast as a limit allows.
type paced struct {
	ctx   context.Context
	in    io.Reader
	limit *rate.Limiter // nil: none
}

func (r *paced) Read(b []byte) (int, error) {
	if r.limit == nil {
		return r.in.Read(b)
	}
	n, err := r.in.Read(b[:min(len(b), rateBurst)])
	if n > 0 {
		if e := r.limit.WaitN(r.ctx, n); e != nil {
			return 0, e
		}
	}
	return n, err
}

package index

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"svc/internal/pace"
	"svc/segment"
)

const (
	// inspectBytesPerSecond is how fast the segments are read by an inspection. Opening one does not read all of
	// it: that would delay the first search.
	inspectBytesPerSecond = 64 << 20

	// inspectMemoryShare is the share of Options.MaxIndexingMemory, the memory of one batch, that is read per second at most. Pages
	// read by an inspection displace those of searches if memory is small: with 64 MiB a second, all pages of 512 MiB within 8
	// seconds.
	inspectMemoryShare = 40
)

// inspectRate returns how many bytes an inspection reads in a second.
func (o *Options) inspectRate() int64 {
	return max(min(inspectBytesPerSecond, o.MaxIndexingMemory/inspectMemoryShare), 1<<20)
}

// inspections scans all indexes that the start left closed. Then it inspects all segments, again and again, or once if InspectEvery is
// not positive. It ends with ctx.
func (c *Catalog) inspections(ctx context.Context) {
	var again sync.WaitGroup
	defer again.Wait()
	if left := c.startupScan(ctx); len(left) > 0 || len(c.passing()) > 0 {
		again.Go(func() { c.rescan(ctx, left, minRescanPause) })
	}
	segment.AwaitReadAhead(ctx) // else the disk would serve the first inspection before the first searches
	for {
		c.inspect(ctx, c.options.inspectRate())
		if c.options.InspectEvery <= 0 {
			return
		}
		t := time.NewTimer(c.options.InspectEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// The pause between two scans of indexes that cannot be opened now grows between these.
const (
	minRescanPause = 5 * time.Second
	maxRescanPause = 10 * time.Minute
)

// startupScan opens each closed index, one after the other, and closes it again. This reports damage soon after the start, removes
// remains of a crash, and starts merges that the last stop prevented. It yields to searches, and ends with ctx. It returns the
// indexes to retry, which cannot be opened now.
func (c *Catalog) startupScan(ctx context.Context) (left []*Index) {
	var closed []*Index
	for _, ix := range c.all() {
		if ix.current.Load().evicted {
			closed = append(closed, ix)
		}
	}
	lacks := 0
	var lack error // a lack of resources of the process, reported once
	left = c.scanSome(ctx, closed, func(ix *Index, err error) {
		if lacking(err) {
			lacks++
			lack = err
			return
		}
		c.options.Logger.Warn("an index cannot be opened now, so its damage is unknown; svc retries",
			slog.String("index", ix.UID()), slog.String("directory", ix.dir), slog.Any("error", err))
	})
	if lack != nil {
		c.options.Logger.Warn("indexes cannot be opened now, so their damage is unknown; svc retries",
			slog.Int("indexes", lacks), slog.Any("error", lack))
	}
	return left
}

// rescan scans indexes until each could be opened, or turned out to be damaged, and those whose manifests could not be read. It
// pauses before each round, for longer each time. It ends with ctx.
func (c *Catalog) rescan(ctx context.Context, left []*Index, pause time.Duration) {
	for ; len(left) > 0 || len(c.passing()) > 0; pause = min(2*pause, maxRescanPause) {
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		left = c.scanSome(ctx, left, func(*Index, error) {})
		for _, uid := range c.passing() {
			c.Reopen(uid)
		}
	}
}

// scanSome scans some indexes, calls tell for each, and returns those that cannot be opened now.
func (c *Catalog) scanSome(ctx context.Context, indexes []*Index, tell func(*Index, error)) (left []*Index) {
	worker := pace.Of(pace.Beside(ctx, &c.searches))
	for _, ix := range indexes {
		if ctx.Err() != nil {
			return nil
		}
		if err := c.scanOne(ctx, ix); err != nil {
			left = append(left, ix)
			tell(ix, err)
		}
		ix.fileBytes() // for statistics
		worker.Yield()
	}
	return left
}

// scanOne opens an index and closes it again. It fails if the index cannot be opened and is not quarantined for it.
func (c *Catalog) scanOne(ctx context.Context, ix *Index) error {
	defer ix.visit()()
	err := ix.open()
	if err != nil && lasting(err) {
		c.awaitQuarantine(ctx, suspect{ix, err})
		if c.Get(ix.UID()) != ix {
			return nil
		}
	}
	if err != nil {
		return err
	}
	v, err := ix.take()
	if err != nil {
		return err
	}
	defer v.Release()
	v.shortTally()
	if len(v.plan(c.compactor.plan)) > 0 {
		c.compactor.wake(ix)
	}
	return nil
}

// inspect verifies the checksums of all segments once, in the background. The segment files report damage. It ends with
// ctx.
func (c *Catalog) inspect(ctx context.Context, bytesPerSecond int64) {
	rate := rate{perSecond: bytesPerSecond}
	for _, ix := range c.all() {
		if ix.inspect(ctx, &rate) != nil {
			return
		}
	}
}

// inspect fails with ctx alone.
func (ix *Index) inspect(ctx context.Context, rate *rate) error {
	defer ix.visit()()
	v, err := ix.take()
	if err != nil {
		return nil // it is reported, and the index is quarantined if it is damaged
	}
	var numbers []uint64
	for _, f := range v.files {
		numbers = append(numbers, f.number)
	}
	ix.inspectSettings(v)
	v.Release() // a view that is held keeps what compaction replaces
	for _, number := range numbers {
		f := ix.hold(number)
		if f == nil {
			continue
		}
		_ = f.Inspect(func(n int) error { return rate.wait(ctx, n) }) // the file tells of it
		f.release()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// hold takes a reference to a segment of the current view, or returns nil if the view no longer has it.
func (ix *Index) hold(number uint64) *file {
	v, err := ix.take()
	if err != nil {
		return nil
	}
	defer v.Release()
	for _, f := range v.files {
		if f.number == number {
			f.refs.Add(1)
			return f
		}
	}
	return nil
}

// rate spreads the bytes of one reader over time.
type rate struct {
	perSecond int64     // 0: unlimited
	free      time.Time // when all bytes so far have been paid
}

// wait returns when n more bytes may be read.
func (p *rate) wait(ctx context.Context, n int) error {
	if p.perSecond <= 0 {
		return ctx.Err()
	}
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	delay := p.free.Sub(now)
	p.free = p.free.Add(time.Duration(float64(n) / float64(p.perSecond) * float64(time.Second)))
	if delay < time.Millisecond {
		return ctx.Err()
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

package index

import (
	"context"
	"time"

	"svc/internal/pace"
)

// inspectBytesPerSecond is how fast the segments are read by an inspection. What opening one and using it leaves out is too
// much to read ahead of the first search.
const inspectBytesPerSecond = 64 << 20

// inspections looks at all indexes that the start left closed, then inspects all segments, and that again and again. It ends with ctx.
func (c *Catalog) inspections(ctx context.Context) {
	c.look(ctx)
	for {
		c.inspect(ctx, inspectBytesPerSecond)
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

// look opens each index that is not open, one after the other, and closes it again: damage that shows then is told soon after
// the start, also where nobody asks; what a crash left is removed; segments are merged that an end of the program kept from it.
// It makes way for searches, and ends with ctx.
func (c *Catalog) look(ctx context.Context) {
	worker := pace.Of(pace.Beside(ctx, &c.searches))
	for _, ix := range c.all() {
		if ctx.Err() != nil {
			return
		}
		if ix.current.Load().evicted {
			c.lookAt(ctx, ix)
			worker.Yield()
		}
	}
}

func (c *Catalog) lookAt(ctx context.Context, ix *Index) {
	defer ix.visit()()
	err := ix.open()
	if err != nil && !lasting(err) {
		return // it is told when somebody needs the index
	}
	if err != nil {
		c.untilAside(ctx, suspect{ix, err})
		return
	}
	v, err := ix.take()
	if err != nil {
		return
	}
	defer v.Release()
	v.shortTally()
	if len(v.plan(c.compactor.plan)) > 0 {
		c.compactor.wake(ix)
	}
}

// inspect checks the checksums of all segments once, beside everything else. Their files tell of damage. It ends with ctx.
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
		return nil // it is told, and set aside if it is damaged
	}
	var numbers []uint64
	for _, f := range v.files {
		numbers = append(numbers, f.number)
	}
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

// hold takes a reference to a segment of the current view; nil when it is not there any more.
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

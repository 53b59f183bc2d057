package index

import (
	"context"
	"time"
)

// inspectBytesPerSecond is how fast the segments are read by an inspection. What opening one and using it leaves out is too
// much to read ahead of the first search.
const inspectBytesPerSecond = 64 << 20

// inspections inspects all segments soon after the start, and again and again. It ends with ctx.
func (c *Catalog) inspections(ctx context.Context) {
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

// inspect checks the checksums of all segments once, beside everything else. Their files tell of damage. It ends with ctx.
func (c *Catalog) inspect(ctx context.Context, bytesPerSecond int64) {
	rate := rate{perSecond: bytesPerSecond}
	for _, ix := range c.all() {
		v := ix.View()
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
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// hold takes a reference to a segment of the current view; nil when it is not there any more.
func (ix *Index) hold(number uint64) *file {
	v := ix.View()
	defer v.Release()
	for _, f := range v.files {
		if f.number == number {
			f.refs.Add(1)
			return f
		}
	}
	return nil
}

package index

import (
	"context"
	"log/slog"

	"svc/internal/apierr"
)

// inspectBytesPerSecond is how fast the segments are read that are there at the start. Opening one checks only what
// every call walks on; the rest is too much to read ahead of the first search.
const inspectBytesPerSecond = 64 << 20

// inspect checks the checksums of all segments once, beside everything else, and tells of damage. It ends with ctx.
func (c *Catalog) inspect(ctx context.Context, bytesPerSecond int64) {
	pace := pace{perSecond: bytesPerSecond}
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
			err := f.Inspect(func(n int) error { return pace.wait(ctx, n) })
			f.release()
			if ctx.Err() != nil {
				return
			}
			if apierr.IsCorruption(err) {
				c.options.Logger.Error("a segment is damaged: searches may answer wrongly, and dumps and snapshots fail. Bring the index back from a snapshot, or delete it and send its documents again",
					slog.String("index", ix.UID()), slog.Any("error", err))
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

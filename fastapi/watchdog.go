package fastapi

import (
	"bytes"
	"context"
	"log/slog"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"svc/internal/monotonic"
)

const (
	watchEvery = time.Second
	// stalledLooks is the number of checks without progress, while searches wait, after which they count as stalled. It counts checks
	// and not seconds, because a machine that was suspended has not stalled.
	stalledLooks = 10
	// stacksEvery is the least time between two logs of the stacks of all goroutines.
	stacksEvery = 10 * time.Minute
	// maxStacks bounds them, in bytes.
	maxStacks = 256 << 10
)

// watchdog reports when searches wait and none makes progress: a turn that is never released would block all others silently. It
// checks once a second and changes nothing.
type watchdog struct {
	slots *slots
	log   *slog.Logger

	moves  uint64    // of the slots, at the last look
	still  int       // looks without progress
	stacks time.Time // when they were last logged

	stalls  atomic.Int64 // since the start
	stalled atomic.Int64 // since when, by monotonic.Nanos; 0: searches make progress
}

// watch looks until ctx is done.
func (w *watchdog) watch(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			w.look(now)
		case <-ctx.Done():
			return
		}
	}
}

// look compares progress with the last check. After stalledLooks without any it reports a stall, once, with the stacks of all
// goroutines.
func (w *watchdog) look(now time.Time) {
	moves, running, waiting := w.slots.progress()
	if waiting == 0 || moves != w.moves {
		w.moves, w.still = moves, 0
		if since := w.stalled.Swap(0); since != 0 {
			w.log.Warn("searches make progress again", slog.Duration("stalled", time.Duration(monotonic.Nanos(now)-since)))
		}
		return
	}
	if w.still++; w.still < stalledLooks || w.stalled.Load() != 0 {
		return
	}
	w.stalls.Add(1)
	w.stalled.Store(monotonic.Nanos(now.Add(-stalledLooks * watchEvery)))
	attrs := []slog.Attr{slog.Int("running", running), slog.Int("waiting", waiting)}
	if w.stacks.IsZero() || now.Sub(w.stacks) >= stacksEvery {
		w.stacks = now
		attrs = append(attrs, slog.String("stacks", goroutineStacks()))
	}
	w.log.LogAttrs(context.Background(), slog.LevelError, "searches are stalled: please report this with the stacks, and restart the server", attrs...)
}

// since returns for how long searches have been stalled; 0: they make progress.
func (w *watchdog) since(now time.Time) time.Duration {
	since := w.stalled.Load()
	if since == 0 {
		return 0
	}
	return time.Duration(monotonic.Nanos(now) - since)
}

// goroutineStacks returns the stacks of all goroutines; equal ones appear once with their number.
func goroutineStacks() string {
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1) // a buffer takes it all
	b.Truncate(min(b.Len(), maxStacks))
	return b.String()
}

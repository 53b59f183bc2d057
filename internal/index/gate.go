package index

import (
	"context"
	"sync"
	"time"
)

// gate tracks the merges running on one index, so that no segment is in two of them and that a writer that needs all segments can
// stop them.
type gate struct {
	mu struct {
		sync.Mutex
		closed int // no merge may begin while it is above 0
		// These and idle are nil until the first merge: most indexes never merge.
		running map[*merge]struct{}
		busy    map[*file]struct{}
	}
	idle *sync.Cond // on mu: running became empty
}

// merge is one merge that runs.
type merge struct {
	inputs []*file
	began  time.Time
	cancel context.CancelFunc
}

// begin registers a merge, unless the gate is closed or another merge has one of
// the inputs. The context is cancelled when the gate closes.
func (g *gate) begin(ctx context.Context, inputs []*file) (context.Context, *merge, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed > 0 {
		return nil, nil, false
	}
	for _, f := range inputs {
		if _, ok := g.mu.busy[f]; ok {
			return nil, nil, false
		}
	}
	if g.mu.running == nil {
		g.mu.running = make(map[*merge]struct{})
		g.mu.busy = make(map[*file]struct{})
		g.idle = sync.NewCond(&g.mu)
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &merge{inputs, time.Now(), cancel}
	g.mu.running[m] = struct{}{}
	for _, f := range inputs {
		g.mu.busy[f] = struct{}{}
	}
	return ctx, m, true
}

// end unregisters a merge, and wakes stop if it was the last one.
func (g *gate) end(m *merge) {
	m.cancel()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.running, m)
	for _, f := range m.inputs {
		delete(g.mu.busy, f)
	}
	if len(g.mu.running) == 0 {
		g.idle.Broadcast()
	}
}

// isBusy reports whether a merge has the file.
func (g *gate) isBusy(f *file) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.mu.busy[f]
	return ok
}

// count returns how many merges run.
func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.mu.running)
}

// stop cancels all merges, waits for them to end and keeps others from beginning until resume.
func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed++
	for m := range g.mu.running {
		m.cancel()
	}
	for len(g.mu.running) > 0 {
		g.idle.Wait()
	}
}

// resume undoes one call of stop.
func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed--
}

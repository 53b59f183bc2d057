package consensus

import (
	"fmt"
	"sync"
	"time"
)

const (
	// stallTime is how long a write may take before a leader stops sending messages, so that the others elect one whose disk works.
	stallTime = 2 * time.Second
	// After a failed write of its log, a member requests no votes for sickTime. Each further failure doubles this time.
	sickTime    = 30 * time.Second
	maxSickTime = 10 * time.Minute
)

// guard tracks the health of a member's disk. hashicorp/raft by itself keeps a leader whose disk stalls, and elects a member whose
// disk fails again and again.
type guard struct {
	off    bool // allow everything
	mu     sync.Mutex
	next   uint64
	busy   map[uint64]time.Time // start of each write in progress
	sick   time.Time            // until then the member requests no votes
	pause  time.Duration        // length of the last such time
	silent uint64               // suppressed messages
}

func newGuard(off bool) *guard {
	return &guard{off: off, busy: map[uint64]time.Time{}}
}

// begin records that a write is in progress until end is called.
func (g *guard) begin() (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	id := g.next
	g.busy[id] = time.Now()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.busy, id)
	}
}

// fail records a failed write of the log.
func (g *guard) fail() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	switch since := now.Sub(g.sick); {
	case g.sick.IsZero() || since > maxSickTime:
		g.pause = sickTime
	case since >= 0: // healthy in between
		g.pause = min(2*g.pause, maxSickTime)
	}
	g.sick = now.Add(g.pause)
}

// leads returns an error if the member must not act as a leader now.
func (g *guard) leads() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, since := range g.busy {
		if d := time.Since(since); d > stallTime && !g.off {
			g.silent++
			return fmt.Errorf("a write has taken %v: the member sends nothing as leader until it ends", d.Round(time.Millisecond))
		}
	}
	return nil
}

// stands returns an error if the member must not request votes now.
func (g *guard) stands() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d := time.Until(g.sick); d > 0 && !g.off {
		g.silent++
		return fmt.Errorf("the log could not be written: the member asks for no votes for %v", d.Round(time.Second))
	}
	return nil
}

// suppressed returns how many messages were suppressed.
func (g *guard) suppressed() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.silent
}

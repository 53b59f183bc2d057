package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// gcPercent is how much the heap may grow beyond what was in use after a collection, half of Go's default:
	// dictionaries and caches are most of what is in use, and would have as much again beside them.
	gcPercent = 50

	// gcHeadroom is how much it may grow at least. Half of a heap that is small would be collected hundreds of times a second where
	// searches are many.
	gcHeadroom = 48 << 20
)

// gcPacer sets after each collection how much the heap may grow to the next one.
type gcPacer struct{ stopped atomic.Bool }

// paceGC starts a pacer.
func paceGC() *gcPacer {
	debug.SetGCPercent(gcPercent)
	p := new(gcPacer)
	p.watch()
	return p
}

func (p *gcPacer) stop() { p.stopped.Store(true) }

// watch has adjust called when the next collection has ended.
func (p *gcPacer) watch() {
	type mark struct{ _ [16]byte } // as large as gets a place of its own, and without pointers
	runtime.AddCleanup(new(mark), (*gcPacer).adjust, p)
}

func (p *gcPacer) adjust() {
	if p.stopped.Load() {
		return
	}
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	want, is := gcPercentOf(s[0].Value.Uint64()), s[1].Value.Uint64()
	if want < is || want > is*11/10 { // setting it stops the world for a moment
		debug.SetGCPercent(int(want))
	}
	p.watch()
}

// gcPercentOf returns what a heap with so many live bytes may grow by, in percent.
func gcPercentOf(live uint64) uint64 {
	return max(gcPercent, 100*gcHeadroom/max(live, 1<<20))
}

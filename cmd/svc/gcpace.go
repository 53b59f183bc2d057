package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"svc/internal/pace"
)

const (
	// gcPercent is how much the heap may grow beyond what was in use after a collection, half of Go's default:
	// dictionaries and caches are most of what is in use, and would have as much again beside them.
	gcPercent = 50

	// gcHeadroom is how much it may grow at least. Half of a heap that is small would be collected hundreds of times a second where
	// searches are many.
	gcHeadroom = 48 << 20

	// gcHeadroomBeside is that while work rests for searches, unless it would be more than a quarter of the memory for indexing:
	// a collection takes all processors for some 50 ms, and with one every two or three seconds searches would see it in their 99th
	// percentile.
	gcHeadroomBeside = 192 << 20
)

// roomBeside is a quarter of the memory for indexing, in bytes; 0 as long as that is not known.
var roomBeside atomic.Int64

// headroom is how much the heap may grow at least, at present.
func headroom() uint64 {
	if !pace.Resting() {
		return gcHeadroom
	}
	return max(gcHeadroom, uint64(min(gcHeadroomBeside, roomBeside.Load())))
}

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
	want, is := gcPercentOf(s[0].Value.Uint64(), headroom()), s[1].Value.Uint64()
	if want < is || want > is*11/10 { // setting it stops the world for a moment
		debug.SetGCPercent(int(want))
	}
	p.watch()
}

// gcPercentOf returns what a heap with so many live bytes may grow by, in percent, where it may by so many bytes in any case.
func gcPercentOf(live, headroom uint64) uint64 {
	return max(gcPercent, 100*headroom/max(live, 1<<20))
}

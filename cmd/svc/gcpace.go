package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"svc/internal/mapped"
	"svc/internal/pace"
)

const (
	// gcPercent is how much the heap may grow beyond the live data after a collection, half of Go's default: dictionaries and caches
	// are most of the live data, and would need as much again.
	gcPercent = 50

	// gcHeadroom is the minimum growth. Half of a small heap would be collected hundreds of times a second under many searches.
	gcHeadroom = 48 << 20

	// gcHeadroomTight plus the memory for indexing is the growth allowed if that is less than gcHeadroom. Live data varies during
	// indexing, and a percentage of a small value allows more than intended once the value has doubled.
	gcHeadroomTight = 16 << 20

	// gcHeadroomBeside is the headroom while work rests for searches, unless it is more than a quarter of the memory for indexing. A
	// collection takes all processors for some 50 ms. With one every two or three seconds, it would show in the 99th percentile of
	// searches. While mapped files do not fit into memory, their pages need the memory more.
	gcHeadroomBeside = 256 << 20

	// The heap may grow by a gcMappedShare of the mapped files. Searches of large indexes work in large sets, and cache more of them:
	// with ten million documents, collections took a quarter of their processor time.
	gcMappedShare = 16

	// gcMemoryShare is the share of the memory for indexing that this is at most: the pages of the files need the rest.
	gcMemoryShare = 32
)

// gcPacer sets after each collection how much the heap may grow to the next one.
type gcPacer struct {
	stopped atomic.Bool
	beside  atomic.Pointer[pacedBeside]
}

// pacedBeside are searches that work may rest for, and the memory for indexing, in bytes.
type pacedBeside struct {
	searches       *pace.Searches
	indexingMemory int64
}

// paceGC starts a pacer.
func paceGC() *gcPacer {
	debug.SetGCPercent(gcPercent)
	p := new(gcPacer)
	p.watch()
	return p
}

func (p *gcPacer) stop() { p.stopped.Store(true) }

// heed has the heap grow by more while work rests for searches. A nil pacer does nothing.
func (p *gcPacer) heed(searches *pace.Searches, indexingMemory int64) {
	if p == nil {
		return
	}
	p.beside.Store(&pacedBeside{searches, indexingMemory})
	searches.OnYield(p.set)
}

// headroom is how much the heap may grow at least, at present.
func (p *gcPacer) headroom() uint64 {
	b := p.beside.Load()
	if b == nil {
		return gcHeadroom
	}
	room := min(mappedBytes()/gcMappedShare, b.indexingMemory/gcMemoryShare)
	if b.searches.Yielding() && !crowded() {
		room = b.indexingMemory / 4
	}
	least := min(gcHeadroom, gcHeadroomTight+b.indexingMemory)
	return uint64(max(least, min(gcHeadroomBeside, room)))
}

// mappedBytes returns the total size of mapped files. (A variable, so that tests can set it.)
var mappedBytes = mapped.MappedBytes

// watch has adjust called when the next collection has ended.
func (p *gcPacer) watch() {
	type mark struct{ _ [16]byte } // as large as gets a place of its own, and without pointers
	runtime.AddCleanup(new(mark), (*gcPacer).adjust, p)
}

func (p *gcPacer) adjust() {
	if p.stopped.Load() {
		return
	}
	p.set()
	p.watch()
}

// set sets it.
func (p *gcPacer) set() {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	want, is := gcPercentOf(s[0].Value.Uint64(), p.headroom()), s[1].Value.Uint64()
	if want < is || want > is*11/10 { // setting it stops the world for a moment
		debug.SetGCPercent(int(want))
	}
}

// gcPercentOf returns by which percentage a heap with the given live bytes may grow if it may grow by headroom bytes in any case.
func gcPercentOf(live, headroom uint64) uint64 {
	return max(gcPercent, 100*headroom/max(live, gcLeastLive))
}

// gcLeastLive is what at least is taken to be in use. While the program starts, collections follow each other so quickly that not every one
// is seen: by a percentage of the little that the first one left, the heap would grow to more than 100 MiB.
const gcLeastLive = 4 << 20

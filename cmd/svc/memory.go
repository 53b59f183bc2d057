package main

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"svc/internal/mapped"
	"svc/internal/pace"
)

// goLimit is GOMEMLIMIT in bytes, math.MaxInt64 if it is not set.
var goLimit = debug.SetMemoryLimit(-1)

// memoryBytes returns how much memory the program may use: what the machine lets it, or less where GOMEMLIMIT says so.
func memoryBytes() int64 { return min(machineMemory(), goLimit) }

const (
	// keptFree is how much free memory the program may keep.
	keptFree = 64 << 20
	// lookEvery is how often it looks.
	lookEvery = 5 * time.Second
	// pauseFactor is how many times as long as giving memory back took nothing is given back: less than 2% of the time goes into it.
	// On processors with much other work it takes some tenths of a second.
	pauseFactor = 60
	// shortPause is for how long nothing is given back in any case: each time takes some 20 ms of all processors, which searches beside
	// lasting work would see in their 99th percentile.
	shortPause = 9 * time.Second
	// longPause is for how long nothing is given back after there was little to give, which may be since it is in use, and free soon after.
	longPause = 12 * time.Second
	// searchPause is for how long no memory is returned while there are searches.
	searchPause = time.Minute
)

// keepMemoryLow has the garbage collected more often before the memory ends, and gives the system back what a time of much work
// leaves behind, which the runtime would keep for minutes.
func keepMemoryLow() *memoryKeeper {
	k := &memoryKeeper{stop: make(chan struct{}), done: make(chan struct{})}
	k.follow(memoryBytes())
	go k.run()
	return k
}

// collectBelow has garbage collected more often before so much memory is used.
func collectBelow(limit int64) {
	if limit < math.MaxInt64/10 {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}

// memoryKeeper is a goroutine that ends with Close.
type memoryKeeper struct {
	stop, done chan struct{}
	searches   atomic.Pointer[pace.Searches]
	limit      int64 // the last one that collectBelow was told; of the goroutine
}

// follow tells collectBelow of a limit unless it is the last one.
func (k *memoryKeeper) follow(limit int64) {
	if limit != k.limit {
		k.limit = limit
		collectBelow(limit)
	}
}

// heed has memory given back when it is in the way of few searches.
func (k *memoryKeeper) heed(searches *pace.Searches) { k.searches.Store(searches) }

// waits reports whether memory is not given back yet that might have been for some time: work that rests for searches has use for it, and
// most of it goes by itself in the time that others are waited for. While the mapped files do not fit into memory, it does not wait: a page
// that has no room costs searches more.
func (k *memoryKeeper) waits(since time.Duration) bool {
	s := k.searches.Load()
	return s != nil && !crowded() && (s.Yielding() || s.Going() && since < searchPause)
}

// crowded reports whether mapped files do not fit into memory. (A variable, so that tests can set it.)
var crowded = mapped.Crowded

func (k *memoryKeeper) Close() error {
	close(k.stop)
	<-k.done
	return nil
}

// run returns memory to the system if much of it has been free for some time. This takes processor time, so it waits a multiple of
// the last duration, and longer if that one had no effect. It also sets how much memory mapped files may use, if the machine's memory
// is known, and checks for changes of the control group's limit.
func (k *memoryKeeper) run() {
	defer close(k.done)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	needed, before := occupied(), uint64(0)
	next, since := time.Now(), time.Now()
	fit := func(machine int64, has uint64) {
		if knowsMemory {
			mapped.FitIn(leftForFiles(machine, has)) // GOMEMLIMIT does not bound the system's cache of files
		}
	}
	fit(machineMemory(), needed)
	for {
		select {
		case <-k.stop:
			return
		case <-ticker.C:
		}
		began, has, machine := time.Now(), occupied(), machineMemory()
		k.follow(min(machine, goLimit))
		fit(machine, has)
		growing := has > before+keptFree
		before = has
		if has <= needed+keptFree {
			since = began
			continue
		}
		if growing || began.Before(next) || k.waits(began.Sub(since)) {
			continue
		}
		debug.FreeOSMemory()
		after := occupied()
		pause := max(pauseFactor*time.Since(began), shortPause)
		if after+keptFree/2 > has {
			pause = max(pause, longPause)
		}
		needed, before, since = min(needed, after), after, time.Now()
		next = since.Add(pause)
	}
}

// leftForFiles returns how much of a machine's memory the system may use for files: a quarter at least, as a
// program that has nearly all of it soon gives some back.
func leftForFiles(machine int64, has uint64) int64 { return max(machine-int64(has), machine/4) }

// memoryShort reports whether the program nears the memory from which on garbage is collected all the time.
func memoryShort() bool {
	return occupied() > uint64(memoryBytes()/10*8)
}

// occupied returns the bytes that the runtime has from the system.
func occupied() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

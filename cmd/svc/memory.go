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

// memoryBytes returns how much memory the program may use: the limit of the machine, or GOMEMLIMIT if that is lower.
func memoryBytes() int64 { return min(machineMemory(), goLimit) }

const (
	// keptFree is how much free memory the program may keep.
	keptFree = 64 << 20
	// lookEvery is how often it looks.
	lookEvery = 5 * time.Second
	// pauseFactor is the minimum pause between two returns of memory, in multiples of the time that the last one took. So they take
	// less than 2% of the time. Under heavy load from other work, a return takes some tenths of a second.
	pauseFactor = 60
	// shortPause is the minimum pause between two returns of memory. Each takes some 20 ms of all processors, which would show in the
	// 99th percentile of searches.
	shortPause = 9 * time.Second
	// longPause is the pause after a return of little memory. More may be in use now and free soon.
	longPause = 12 * time.Second
	// searchPause is for how long no memory is returned while there are searches.
	searchPause = time.Minute
)

// keepMemoryLow makes the garbage collector run more often before the memory ends. After phases with much work it returns memory to
// the system, which the runtime would keep for minutes.
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
	limit      int64 // the last limit passed to collectBelow; only for the goroutine
}

// follow calls collectBelow with a limit if it has changed.
func (k *memoryKeeper) follow(limit int64) {
	if limit != k.limit {
		k.limit = limit
		collectBelow(limit)
	}
}

// heed makes the keeper return memory when this disturbs few searches.
func (k *memoryKeeper) heed(searches *pace.Searches) { k.searches.Store(searches) }

// waits reports whether to delay the return of memory. Work that pauses for searches still needs it, and during such a wait the
// runtime returns most of it anyway. If the mapped files do not fit into memory, it does not wait, because missing pages cost
// searches more.
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

package vfs

import (
	"sync/atomic"
	"time"
)

// timeBounds are the upper bounds of the classes of times in Times, in seconds.
var timeBounds = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}

// Times counts the times of waiting for the disk. The zero Times is ready to use, and safe for concurrent use.
type Times struct {
	counts [len(timeBounds) + 1]atomic.Uint64 // by the first bound that is not below; the last for those above all
	nanos  atomic.Int64
}

// TimesRead is a Times as it was at a moment.
type TimesRead struct {
	Count   uint64
	Seconds float64
	Within  map[float64]uint64 // number of syncs that took no longer than so many seconds
}

// Since counts what began at start and ends now.
func (t *Times) Since(start time.Time) {
	took := time.Since(start)
	t.nanos.Add(int64(took))
	i := 0
	for i < len(timeBounds) && took.Seconds() > timeBounds[i] {
		i++
	}
	t.counts[i].Add(1)
}

// Read returns the counts.
func (t *Times) Read() TimesRead {
	r := TimesRead{Seconds: time.Duration(t.nanos.Load()).Seconds(), Within: make(map[float64]uint64, len(timeBounds))}
	for i := range t.counts {
		r.Count += t.counts[i].Load()
		if i < len(timeBounds) {
			r.Within[timeBounds[i]] = r.Count
		}
	}
	return r
}

var syncs Times

// Syncs returns the times of all syncs of files and directories by OS since the start. bbolt counts its own.
func Syncs() TimesRead { return syncs.Read() }

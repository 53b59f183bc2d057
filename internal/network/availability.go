package network

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A remote that failed is left alone for firstPeriod. When it fails again before that is over, the next period is twice as long.
const (
	firstPeriod = 30 * time.Second
	maxPeriod   = 5 * time.Minute
)

// availability says which remotes searches leave alone. It does not outlive the process.
type availability struct {
	now func() time.Time

	mu    sync.Mutex
	until map[string]period
	told  map[string]time.Time // when the log was last told of a failure, by remote
}

// tellPause is how long the log is not told of another failure of the same remote.
const tellPause = time.Minute

// worthTelling reports whether the log is to be told of a failure of a remote, of which there may be one a search.
func (a *availability) worthTelling(remote string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, ok := a.told[remote]; ok && a.now().Sub(last) < tellPause {
		return false
	}
	a.told[remote] = a.now()
	return true
}

type period struct {
	end   time.Time
	takes time.Duration
}

// fail notes that a remote failed.
func (a *availability) fail(remote string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	takes := firstPeriod
	if p, ok := a.until[remote]; ok && a.now().Before(p.end) {
		takes = min(2*p.takes, maxPeriod)
	}
	a.until[remote] = period{a.now().Add(takes), takes}
}

// available reports whether searches may ask a remote.
func (a *availability) available(remote string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.until[remote]
	if ok && !a.now().Before(p.end) {
		delete(a.until, remote)
		ok = false
	}
	return !ok
}

// shardParts chooses for each shard one of its owners.
func (n *Node) shardParts(now *Network) (parts []Part, skipped []string) {
	self := now.SelfName()
	for _, shard := range now.ShardNames() {
		owners := now.Shards[shard].Remotes
		own := self != "" && slices.Contains(owners, self)
		if own && n.usable(self) {
			parts = append(parts, Part{self, true, shard})
			continue
		}
		owners = slices.DeleteFunc(slices.Clone(owners), func(o string) bool { return !n.usable(o) })
		if len(owners) == 0 && own { // which lacks something, and says so: see Behind
			parts = append(parts, Part{self, true, shard})
			continue
		}
		if len(owners) == 0 {
			skipped = append(skipped, shard)
			continue
		}
		parts = append(parts, Part{owners[rand.IntN(len(owners))], false, shard})
	}
	return parts, skipped
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

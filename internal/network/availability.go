package network

import (
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"svc/internal/apierr"
)

// After a remote has failed, searches do not use it for firstPeriod, if they can ask another owner of its shards. If it fails again
// before the period ends, the next period is twice as long. A search that it answers ends the period.
const (
	firstPeriod = 30 * time.Second
	maxPeriod   = 5 * time.Minute
)

const (
	// probeTime is how long a remote has to answer a probe.
	probeTime = 2 * time.Second
	// probeStands is how long the result of a failed probe is valid.
	probeStands = 100 * time.Millisecond
)

// probePatience is how long after the start of a probe searches wait for it. They wait while they search locally. A later search does
// not wait, so a remote that never answers costs next to nothing. (A variable, so that tests can raise it.)
var probePatience = 250 * time.Millisecond

// availability says which remotes searches do not ask. It is lost when the process ends.
type availability struct {
	now func() time.Time

	mu      sync.Mutex
	outages map[string]*outage   // of the remotes that failed
	told    map[string]time.Time // when a failure was last logged, by remote
}

// tellPause is the least time between two log lines about failures of the same remote.
const tellPause = time.Minute

// mayLog reports whether a failure of a remote is logged. A remote that is away fails in every search, so most failures are not.
func (a *availability) mayLog(remote string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, ok := a.told[remote]; ok && a.now().Sub(last) < tellPause {
		return false
	}
	a.told[remote] = a.now()
	return true
}

// outage is the time that a remote is left alone for.
type outage struct {
	end   time.Time
	takes time.Duration
	err   *apierr.Error // of the search that failed last
	probe *probe        // the last one since then; nil: none
	trial time.Time     // until then another search waits for its answer; see admit
}

// probe asks a remote that failed whether it is back.
type probe struct {
	began time.Time
	done  chan struct{} // closed when the other fields are set
	ended time.Time
	alive bool
}

// fail notes that a remote failed in a search, and reports whether it was available before.
func (a *availability) fail(remote string, err *apierr.Error) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	takes, o := firstPeriod, a.outage(remote)
	if o != nil {
		takes = min(2*o.takes, maxPeriod)
	}
	a.outages[remote] = &outage{end: a.now().Add(takes), takes: takes, err: err}
	return o == nil
}

// succeed notes that a remote answered a search, and reports whether it was not available before.
func (a *availability) succeed(remote string) (back bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	back = a.outage(remote) != nil
	delete(a.outages, remote)
	return back
}

// available reports whether searches may ask a remote as they may ask any other.
func (a *availability) available(remote string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.outage(remote) == nil
}

// outage returns the outage of a remote, or nil if it is available. mu is held.
func (a *availability) outage(remote string) *outage {
	o := a.outages[remote]
	if o != nil && !a.now().Before(o.end) {
		delete(a.outages, remote)
		return nil
	}
	return o
}

// probe returns the probe of a remote that a search waits for; begin says that the caller is to make it. nil: the remote is available.
func (a *availability) probe(remote string) (p *probe, begin bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.outage(remote)
	if o == nil {
		return nil, false
	}
	if p = o.probe; p != nil && (p.ended.IsZero() || p.alive || a.now().Sub(p.ended) < probeStands) {
		return p, false
	}
	o.probe = &probe{began: a.now(), done: make(chan struct{})}
	return o.probe, true
}

// probed ends a probe.
func (a *availability) probed(p *probe, alive bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.ended, p.alive = a.now(), alive
	close(p.done)
}

// admit decides, by the result of a probe so far, whether a search may ask a remote that failed. If not, it returns the last failure.
// A remote that was too slow may still be too slow although it answers probes. So one search tries it, for up to the given time, and
// the others skip it meanwhile.
func (a *availability) admit(remote string, p *probe, time time.Duration) *apierr.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, now := a.outage(remote), a.now()
	switch {
	case o == nil:
		return nil
	case p != o.probe || !p.alive || now.Before(o.trial):
		return o.err
	case o.err.Code == "remote_timeout":
		o.trial = now.Add(time)
	}
	return nil
}

// admit decides whether a search asks a remote that has a shard. It returns an error that names the remote if it lacks writes, or if
// it failed recently and does not answer a probe either.
func (n *Node) admit(ctx context.Context, name string, r *Remote) *apierr.Error {
	if n.sender.behind(name) {
		return apierr.New("remote_remote_error", "The remote `%s` has not received all writes, and no other owner of its shards is available.", name)
	}
	p, begin := n.availability.probe(name)
	if p == nil {
		return nil
	}
	switch {
	case begin && n.ctx.Err() != nil:
		n.availability.probed(p, false)
	case begin:
		n.done.Go(func() { n.availability.probed(p, n.answers(name, r)) })
	}
	patience := time.NewTimer(probePatience - n.o.Now().Sub(p.began))
	defer patience.Stop()
	select {
	case <-p.done:
	case <-patience.C:
	case <-ctx.Done():
	}
	return n.availability.admit(name, p, n.o.SearchTimeout)
}

// answers reports whether a remote is healthy.
func (n *Node) answers(name string, r *Remote) bool {
	ctx, cancel := context.WithTimeout(n.ctx, probeTime)
	defer cancel()
	_, _, err := n.do(ctx, name, r, &request{Message: healthMessage, into: io.Discard})
	return err == nil
}

// shardParts chooses one owner for each shard. It chooses an unavailable one only if there is no other.
func (n *Node) shardParts(now *Network) (parts []Part) {
	self := now.SelfName()
	for _, shard := range now.ShardNames() {
		owners := now.Shards[shard].Remotes
		own := self != "" && slices.Contains(owners, self)
		if own && n.usable(self) {
			parts = append(parts, Part{self, true, shard})
			continue
		}
		usable := slices.DeleteFunc(slices.Clone(owners), func(o string) bool { return !n.usable(o) })
		if len(usable) == 0 && own { // which lacks something, and says so: see Behind
			parts = append(parts, Part{self, true, shard})
			continue
		}
		if len(usable) == 0 {
			usable = owners
		}
		parts = append(parts, Part{usable[rand.IntN(len(usable))], false, shard})
	}
	return parts
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

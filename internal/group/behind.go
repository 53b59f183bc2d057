package group

import "time"

// toldTime is how long a voter that was started waits for word of a leader, or for changes that cannot be made, before it takes its data
// for as good as any.
const toldTime = 10 * time.Second

// Behind reports whether this voter was started and has not caught up with the group since: clients are to use another one. It is not
// behind once it has heard of no leader for toldTime, or has tried for as long to make a change that fails.
func (v *Voter) Behind() bool {
	if _, known := v.Staleness(); known {
		return false
	}
	v.mu.Lock()
	node, began, troubled := v.node, v.began, v.troubled
	v.mu.Unlock()
	if node == nil {
		return true
	}
	silent := time.Since(began)
	if ago, known := node.Contact(); known {
		silent = min(silent, ago)
	}
	var failing time.Duration
	if !troubled.IsZero() {
		failing = time.Since(troubled)
	}
	return awaited(silent, failing)
}

// awaited reports whether a voter is to wait for a leader that has been silent, while changes have been failing, each for some time.
func awaited(silent, failing time.Duration) bool { return silent < toldTime && failing < toldTime }

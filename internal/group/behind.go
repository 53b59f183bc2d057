package group

import "time"

// toldTime is how long a started voter waits to hear from a leader, or retries a failing change, before it serves its present data.
const toldTime = 10 * time.Second

// Behind reports whether this voter was started and has not caught up with the group, so that clients should use another member. It
// returns false if there has been no leader, or a change has been failing, for toldTime.
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

// awaited reports whether the leader has been silent, and changes have failed, for less than toldTime each.
func awaited(silent, failing time.Duration) bool { return silent < toldTime && failing < toldTime }

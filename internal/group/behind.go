package group

import "time"

// toldTime is how long a voter that was started waits for word of a leader, before it takes its data for as good as any.
const toldTime = 10 * time.Second

// Behind reports whether this voter was started and has not caught up with the group since: clients are to use another one. Where nobody
// leads, it is behind for toldTime at most.
func (v *Voter) Behind() bool {
	if _, known := v.Staleness(); known {
		return false
	}
	node := v.current()
	if node == nil {
		return true
	}
	return node.Heard() > 0 || time.Since(v.opened) < toldTime
}

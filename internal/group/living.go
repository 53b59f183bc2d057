package group

import (
	"maps"
	"time"
)

const (
	// livingTime is how long Living waits for an answer of a member. A member that is paused or cut off may still be running.
	livingTime = 2 * time.Second
	// livingPoll is the time between two checks for answers.
	livingPoll = 20 * time.Millisecond
)

// Run returns an id of this process. Other voters know it by that.
func (v *Voter) Run() string { return v.run }

// Living returns those of some processes that are known to run: this one, and those of members that have answered this voter since it
// became the leader.
func (v *Voter) Living(runs []string) []string {
	for end := time.Now().Add(livingTime); ; {
		living, silent := v.heard(runs)
		if silent == 0 || time.Now().After(end) { // once this voter has lost the lead, heard reports no member as silent
			return living
		}
		select {
		case <-time.After(livingPoll):
		case <-v.done:
			return living
		}
	}
}

// heard returns those of the processes that are known to run. silent counts those whose member has not answered since this voter
// became the leader. A restarted member has reported a new process, so its old one is not counted.
func (v *Voter) heard(runs []string) (living []string, silent int) {
	v.mu.Lock()
	node, reign, all := v.node, v.reign, maps.Clone(v.runs)
	v.mu.Unlock()
	for _, run := range runs {
		if run == v.run {
			living = append(living, run)
			continue
		}
		for member, its := range all {
			if its != run || node == nil || reign == nil {
				continue
			}
			if _, ago, known := node.Matched(member); known && ago < time.Since(reign.since) {
				living = append(living, run)
			} else {
				silent++
			}
		}
	}
	return living, silent
}

package task

import "time"

// A commit through a log takes a round trip in the group and several syncs, however many tasks it stores. Callers that were answered
// together return together, but not at once. If the next commit started with the first of them, the callers would split into two
// crowds that wait for each other's commits. So a commit through a log waits for the callers that are likely to come, for less time
// than a commit takes.

// crowd estimates how many callers there are, and records how long their commits take.
type crowd struct {
	callers int           // in the last commit, plus those waiting when it ended
	took    time.Duration // the last commit
	pause   int           // commits without a wait after the last wait, which was in vain; 0: it was not
	rest    int           // how many of these are still to come
}

const (
	maxGather  = 25 * time.Millisecond
	gatherRest = 8
	maxRest    = 64
)

// served records a commit of a group, and how many callers waited when it ended.
func (c *crowd) served(group, waiting int, took time.Duration) {
	c.callers, c.took = group+waiting, took
}

// gather waits until the expected callers are in a group, for up to three quarters of the time of a commit. It does not wait once
// three quarters of them are there. A single caller never waits.
func (q *Queue) gather(group []*request, c *crowd) []*request {
	all, had := min(c.callers, maxGroup), len(group)
	if 4*had >= 3*all {
		return group
	}
	if c.rest > 0 {
		c.rest--
		return group
	}
	end := time.NewTimer(min(c.took*3/4, maxGather))
	defer end.Stop()
	for len(group) < all {
		select {
		case r := <-q.requests:
			group = append(group, r)
			continue
		case <-end.C:
		case <-q.ctx.Done():
		}
		c.pause = min(2*c.pause+gatherRest, maxRest)
		c.rest = c.pause
		return group
	}
	c.pause = 0
	return group
}

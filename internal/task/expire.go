package task

import (
	"errors"
	"log/slog"
	"time"
)

// Package index hides expired documents at once. The queue deletes them with ordinary deletion tasks.
//
// A deletion cannot be undone, so it must not trust a clock that is temporarily wrong: one set by mistake, or not yet corrected by
// the time service. Three rules ensure this:
//
//  1. The wall clock is compared with the monotonic clock every minute. If the two differ by more than a second between checks, the
//     wall clock has jumped. Nothing is deleted until it has been steady for an hour (expiryMargin).
//  2. The start of the program counts as a jump, because nothing is known of the clock before.
//  3. A task deletes what expired at least an hour ago. As the clock has been steady for that hour, that moment is after the last
//     jump.
//
// So a jump forward deletes a document early only if the clock stays wrong for an hour, and then svc cannot tell it from the true
// time. A jump back deletes nothing: fewer documents have expired. A suspended machine stops the monotonic clock, which looks like a
// jump and costs an hour of delay. Slow corrections of the clock, at most 0.05 % by NTP, are no jump.
//
// The task stores the moment and does not read the clock again, so it deletes the same documents after a crash. It uses the settings
// of the index at the time it runs: if the time to live was raised meanwhile, documents stay. Only open indexes are checked. An
// unused index is closed, and keeps its expired documents until it is used again.

const (
	expiryMargin   = time.Hour        // how long the clock has to be steady, and documents expired
	expiryEvery    = 10 * time.Minute // between tasks of an index: each deletes many documents
	clockEvery     = time.Minute      // between looks at the clock
	clockTolerance = time.Second      // by which the clocks may differ from one look to the next
)

// steadyClock measures for how long the wall clock has kept pace with the monotonic clock.
type steadyClock struct {
	started      bool          // the clocks were compared at least once
	wall         time.Time     // of the last comparison
	mono, anchor time.Duration // of the last comparison, and of the first one since which the clocks have agreed
}

// look compares the clocks and returns for how long they have agreed.
func (c *steadyClock) look(wall time.Time, mono time.Duration) time.Duration {
	drift := wall.Sub(c.wall) - (mono - c.mono)
	if !c.started || drift.Abs() > clockTolerance {
		c.started, c.anchor = true, mono
	}
	c.wall, c.mono = wall, mono
	return mono - c.anchor
}

// expiry is what the queue knows about expired documents. Only its goroutine uses it.
type expiry struct {
	clock steadyClock
	last  map[string]uint32 // the last task of each index
	swept time.Duration     // when tasks were made last, by the monotonic clock
}

// expire has expired documents deleted until the queue is closed.
func (q *Queue) expire() {
	defer q.done.Done()
	ticker := time.NewTicker(clockEvery)
	defer ticker.Stop()
	began := time.Now()
	x := &expiry{last: make(map[string]uint32), swept: -expiryEvery}
	for {
		select {
		case <-ticker.C:
			q.sweep(x, q.o.Now().Round(0), time.Since(began))
		case <-q.ctx.Done():
			return
		}
	}
}

// sweep looks at the clocks and makes the tasks that are due.
func (q *Queue) sweep(x *expiry, wall time.Time, mono time.Duration) {
	if x.clock.look(wall, mono) < expiryMargin || mono-x.swept < expiryEvery {
		return
	}
	x.swept = mono
	moment := wall.Add(-expiryMargin)
	for _, uid := range q.engine.expired(moment) {
		if last, ok := x.last[uid]; ok {
			if t, err := q.Task(last, nil); err == nil && !t.Status.Finished() {
				continue
			}
		}
		t, err := q.Enqueue(q.ctx, New{IndexUID: uid, Content: DeleteExpired{Moment: moment.Unix()}})
		switch {
		case err == nil:
			x.last[uid] = t.UID
		case q.ctx.Err() != nil || errors.Is(err, errClosed):
			return
		default: // the next sweep tries again
			q.log.Warn("cannot delete expired documents", slog.String("index", uid), slog.Any("error", err))
		}
	}
}

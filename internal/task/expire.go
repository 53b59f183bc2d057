package task

import (
	"errors"
	"log/slog"
	"time"
)

// Documents that have expired are hidden by package index at once. The queue has them deleted, by tasks as other deletions.
//
// A deletion cannot be undone, so it must not believe a clock that is wrong for a while: one that was set by mistake, or that is right only
// after the time service has answered. Three rules see to that:
//
//  1. The wall clock is compared with the monotonic clock every minute. If they differ by more than a second from one look to the next,
//     the wall clock has jumped. Nothing is deleted until it has gone steadily for an hour (expiryMargin).
//  2. The start of the program counts as a jump: nothing is known of the clock before.
//  3. A task deletes what had expired an hour ago. As the clock has been steady for that hour, that moment lies behind the last jump.
//
// So a jump forward deletes a document early only if nobody sets the clock right for an hour, and then svc cannot tell it from the
// true time. A jump back deletes nothing: less has expired. A suspended machine stops the monotonic clock, which looks like a jump
// and costs an hour of delay. Slow corrections of the clock, at most 0.05 % by NTP, are no jump.
//
// The task holds the moment and does not ask the clock again, so it deletes the same after a crash. It goes by the settings of the index
// when it runs: a longer time to live that was set meanwhile keeps documents. Only open indexes are looked at. One that nobody uses is
// closed, and keeps its expired documents until somebody does.

const (
	expiryMargin   = time.Hour        // how long the clock has to be steady, and documents expired
	expiryEvery    = 10 * time.Minute // between tasks of an index: each deletes many documents
	clockEvery     = time.Minute      // between looks at the clock
	clockTolerance = time.Second      // by which the clocks may differ from one look to the next
)

// steadyClock tells for how long the wall clock has gone as the monotonic clock does.
type steadyClock struct {
	begun        bool
	wall         time.Time     // of the last look
	mono, anchor time.Duration // of the last look, and of the first one since the clock is steady
}

// look compares the clocks and returns for how long they have agreed.
func (c *steadyClock) look(wall time.Time, mono time.Duration) time.Duration {
	drift := wall.Sub(c.wall) - (mono - c.mono)
	if !c.begun || drift.Abs() > clockTolerance {
		c.begun, c.anchor = true, mono
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

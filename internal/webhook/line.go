package webhook

import (
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	// parallel is the number of concurrent deliveries to one webhook.
	parallel = 4

	// maxFailed is how many failed batches are retried in turn. With that many, the receiver counts as down and no other batch is
	// tried.
	maxFailed = 16

	firstWait = time.Second     // before the second try of a batch; it doubles
	maxWait   = 5 * time.Minute // between two tries
	giveUp    = 24 * time.Hour  // since the first try; then the batch is given up
)

// line is the delivery queue of one webhook. Each finished batch is in settled, owed or failed, or is being delivered.
type line struct {
	settled *roaring.Bitmap // the webhook's cursor
	owed    *roaring.Bitmap // batches that have not been tried
	failed  map[uint32]*failure
	running int         // goroutines that deliver
	again   *time.Timer // starts a goroutine when a failed batch is due; nil: none has failed yet
}

// failure is a batch whose delivery has failed.
type failure struct {
	tries    int
	since    time.Time // of the first try
	due      time.Time // for the next one
	underWay bool
}

func newLine(settled *roaring.Bitmap) *line {
	return &line{settled: settled, owed: roaring.New(), failed: map[uint32]*failure{}}
}

// isDown reports whether the receiver counts as down.
func (l *line) isDown() bool { return len(l.failed) >= maxFailed }

// take returns the next batch to deliver: a failed one that is due, else the oldest untried one. ok is false if there is none.
func (l *line) take(now time.Time) (batch uint32, ok bool) {
	for uid, f := range l.failed {
		if !f.underWay && !f.due.After(now) && (!ok || uid < batch) {
			batch, ok = uid, true
		}
	}
	if ok {
		l.failed[batch].underWay = true
		return batch, true
	}
	if l.owed.IsEmpty() || l.isDown() {
		return 0, false
	}
	batch = l.owed.Minimum()
	l.owed.Remove(batch)
	return batch, true
}

// settle records that a batch need not be delivered any more. delivered is true if it was delivered, which shows that the receiver is
// up.
func (l *line) settle(batch uint32, delivered bool, now time.Time) {
	if delivered && l.isDown() {
		for _, f := range l.failed {
			f.due = now
		}
	}
	delete(l.failed, batch)
	l.settled.Add(batch)
}

// fail records a failed delivery. It returns the number of tries of the batch, and in last whether the batch is given up.
func (l *line) fail(batch uint32, first time.Duration, now time.Time) (tries int, last bool) {
	f := l.failed[batch]
	if f == nil {
		f = &failure{since: now}
		l.failed[batch] = f
	}
	f.tries++
	f.underWay = false
	f.due = now.Add(min(maxWait, first<<min(f.tries-1, 20)))
	if now.Sub(f.since) >= giveUp {
		l.settle(batch, false, now)
		return f.tries, true
	}
	return f.tries, false
}

// wait returns the time until the next failed batch is due. ok is false if none has failed.
func (l *line) wait(now time.Time) (d time.Duration, ok bool) {
	for _, f := range l.failed {
		if w := max(0, f.due.Sub(now)); !f.underWay && (!ok || w < d) {
			d, ok = w, true
		}
	}
	return d, ok
}

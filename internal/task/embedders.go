package task

import (
	"errors"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
)

// Batches may wait for embedders: for slow responses, and for failing calls that are retried for minutes. A waiting batch keeps its
// state with all vectors that it has, and delays only its own indexes: it does not count among the running batches. If another batch
// needs its slot, it gives up its state and runs again later: see yield.

// maxAway is the maximum number of batches that wait for embedders beside the running ones. Each one keeps its memory.
const maxAway = 4

// notEmbedded is the code of errors that keep an embedder from embedding.
const notEmbedded apierr.Code = "vector_embedding_error"

// errYields ends a batch that waits for a failing embedder, because another batch cannot run at the same time. Its tasks stay
// enqueued.
var errYields = errors.New("the batch waited for an embedder and was interrupted for another batch")

// embedderChanged is called when a batch has waited long for its embedders, and when one of them begins or ceases to fail.
func (q *Queue) embedderChanged(r *running) {
	if t, ok := r.requests.Trouble(); ok {
		q.log.Warn("a batch waits for a failing embedder; other indexes continue", "batch", r.uid, "indexes", r.touched(), "error", t.Reason, "next", t.Next)
	}
	q.watches.tell(r.set, roaring.BitmapOf(r.uid))
	q.wakeUp()
}

// waitsForEmbedder returns why the batch waits; nil when no embedder fails it.
func (r *running) waitsForEmbedder() *parking {
	t, ok := r.requests.Trouble()
	if !ok {
		return nil
	}
	p := &parking{reason: t.Reason, since: t.Since, tries: t.Retries, next: t.Next, retries: t.Retries}
	if r.before != nil {
		p.since = r.before.since
	}
	return p
}

// away reports whether others need not wait until the batch has ended.
func (r *running) away() bool {
	_, fails := r.requests.Trouble()
	return fails || r.requests.Slow()
}

// slow reports whether one of the batches has waited long for an embedder that does not fail. Such a batch must not be interrupted.
func (rs runs) slow() bool {
	for _, r := range rs {
		if r.requests.Slow() && r.waitsForEmbedder() == nil {
			return true
		}
	}
	return false
}

// resume makes the batch continue the retries of an earlier batch that yielded. The lock of the roster is held.
func (r *running) resume(parked map[string]*parking) {
	for _, uid := range r.touched() {
		if p := parked[uid]; p != nil && p.reason.Code == notEmbedded {
			r.before, r.requests.Retries = p, p.retries
		}
	}
}

// yield ends the batch if an embedder fails it. hurry: it is tried again at once, with all of its retries.
func (r *running) yield(hurry bool) {
	p := r.waitsForEmbedder()
	if p == nil {
		return
	}
	if hurry {
		p = p.hurried()
	}
	r.yielded.Store(p)
	r.cancel(errYields)
}

// parkYielded makes the indexes of a batch that has yielded wait until its embedder is called again.
func (q *Queue) parkYielded(run *running) {
	q.roster.mu.Lock()
	defer q.roster.mu.Unlock()
	for _, uid := range run.touched() {
		q.roster.parked[uid] = run.yielded.Load()
	}
}

// makeWay has the batches that run yield, if embedders fail all of them.
func (q *Queue) makeWay() {
	q.roster.mu.RLock()
	defer q.roster.mu.RUnlock()
	for _, r := range q.roster.running {
		if r.waitsForEmbedder() == nil {
			return
		}
	}
	for _, r := range q.roster.running {
		r.yield(false)
	}
}

// away returns the number of batches that wait for embedders beside the running ones. If there are too many, the batch that would
// lose the fewest vectors yields.
func (q *Queue) away() int {
	q.roster.mu.RLock()
	defer q.roster.mu.RUnlock()
	n := 0
	var least *running
	var fewest uint64
	for _, r := range q.roster.running {
		if !r.away() {
			continue
		}
		n++
		if r.waitsForEmbedder() == nil {
			continue
		}
		total, failed, _ := r.requests.Counts()
		if got := total - failed; least == nil || got < fewest {
			least, fewest = r, got
		}
	}
	if n > maxAway && least != nil {
		least.yield(false)
	}
	return min(n, maxAway)
}

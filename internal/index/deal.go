package index

import (
	"context"
	"sync"
	"time"

	"svc/internal/pace"
)

// deal distributes the documents of a batch to its workers round-robin, one run at a time. So the documents of a worker, and the
// bytes of its segments, depend on the number of workers and not on their speed. docs/architecture/writes.md has the exceptions.
//
// Long runs make merges cheaper: a merge copies postings of consecutive rows of one segment at once. Towards the end of a batch, runs
// get shorter, so that all workers get the same number of documents.
//
// Each goroutine starts with a worker of its own. While there are searches, a polite goroutine suspends its worker. A suspended
// worker gets no documents until a goroutine continues it: a steady one after finishing its own, or a polite one once there are no
// searches.
type deal struct {
	queue    *queue
	chunk    int // documents that a worker takes at once
	searches *pace.Searches

	mu struct {
		sync.Mutex
		hands  []hand // by worker
		next   int    // worker that gets the next run
		run    int    // documents that each worker gets in this round
		ended  bool   // all was dealt
		down   []*worker
		steady int // goroutines that do not stop for searches
	}
}

// hand is the queue of one worker: documents dealt to it that it has not taken yet.
type hand struct {
	items []item
	taken int  // of items
	down  bool // the worker is suspended
}

// newDeal deals to workers. The first ones belong to steady goroutines.
func newDeal(q *queue, workers, steady, chunk int, searches *pace.Searches) *deal {
	d := &deal{queue: q, chunk: chunk, searches: searches}
	d.mu.hands = make([]hand, workers)
	d.mu.steady = min(workers, steady)
	going := searches.Going()
	for i := range d.mu.hands {
		d.mu.hands[i].down = going && i >= steady // its goroutine puts it down as soon as it runs
	}
	return d
}

// take appends the next chunk of a worker, and nothing at the end.
func (d *deal) take(dst []item, worker int) []item {
	d.mu.Lock()
	defer d.mu.Unlock()
	mine := &d.mu.hands[worker]
	mine.down = false
	for mine.taken == len(mine.items) && !d.mu.ended {
		if to := &d.mu.hands[d.mu.next]; !to.down {
			if to.taken > len(to.items)/2 { // drop the consumed part, so that the queue of a slow worker does not grow with the batch
				to.items, to.taken = to.items[:copy(to.items, to.items[to.taken:])], 0
			}
			if d.mu.next == 0 || d.mu.run == 0 {
				d.mu.run = d.runLength()
			}
			before := len(to.items)
			to.items = d.queue.take(to.items, d.mu.run)
			d.mu.ended = len(to.items)-before < d.mu.run
		}
		d.mu.next = (d.mu.next + 1) % len(d.mu.hands)
	}
	n := min(d.chunk, len(mine.items)-mine.taken)
	mine.taken += n
	return append(dst, mine.items[mine.taken-n:mine.taken]...)
}

// runLength returns the length of the runs of the next round, in documents: a multiple of chunk. A round has at most a quarter of what is
// left, up to the last chunks.
func (d *deal) runLength() int {
	run := min(d.queue.left()/(4*len(d.mu.hands)), maxRunDocuments)
	return max(run/d.chunk, 1) * d.chunk
}

// end is called by a steady goroutine when its worker has finished. It returns a suspended worker to continue, or nil: then the goroutine
// ends.
func (d *deal) end() *worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.takeUp()
	if k == nil {
		d.mu.steady--
	}
	return k
}

func (d *deal) takeUp() (k *worker) {
	if n := len(d.mu.down); n > 0 {
		k, d.mu.down = d.mu.down[n-1], d.mu.down[:n-1]
	}
	return k
}

// searchCheckPause is how often a polite goroutine checks whether there are still searches.
const searchCheckPause = 5 * time.Millisecond

// rest suspends a worker while there are searches and steady goroutines take documents. It returns the worker to continue with, or
// nil if another goroutine has it now. Even short slices of work increased the 99th percentile of searches by half.
func (d *deal) rest(ctx context.Context, k *worker) *worker {
	if !d.rests() {
		return k
	}
	d.mu.Lock()
	d.mu.hands[k.number].down = true
	d.mu.down = append(d.mu.down, k)
	d.mu.Unlock()
	for d.rests() && ctx.Err() == nil {
		select {
		case <-time.After(searchCheckPause):
		case <-ctx.Done():
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.takeUp()
}

func (d *deal) rests() bool {
	if !d.searches.Going() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.steady > 0
}

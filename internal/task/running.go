package task

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/embed"
	"svc/internal/trace"
)

// running is a batch that runs. All but its progress and its count of requests is immutable.
type running struct {
	plan
	uid            uint32
	startedAt      time.Time
	tasks          []*Task // in uid order
	set            *roaring.Bitmap
	kinds          uint32 // a bit a kind
	indexes        map[string]bool
	oldest, newest int64          // time of enqueuing
	crashes        int            // how often the program ended, or lost the lead, while it ran
	ran            []string       // the processes that did, where they are known
	ends           int            // how often it ended: see acquit
	by             string         // the process that runs it; "": there is only one
	apart          map[int][]byte // as the journal has them
	apartRan       map[int][]string
	skipped        uint32 // see entry
	progress       *progress
	due            atomic.Bool // a report of its progress to watches is scheduled
	requests       embed.Stats // to providers of embeddings
	before         *parking    // why its index waited for an embedder before it began; nil: it did not
	yielded        atomic.Pointer[parking]
	span           trace.Span
	ctx            context.Context
	cancel         context.CancelCauseFunc

	owned     func(id []byte) bool // whether this instance has a document of a network; nil: it has all
	journaled bool                 // the journal says that it runs; of the goroutine that runs it, then of the scheduler
}

var errCanceled = errors.New("the batch holds a canceled task")

// cancelFor stops the batch when a cancelation matches one of its tasks.
func (r *running) cancelFor(c CancelTasks) {
	for _, uid := range c.Tasks {
		if r.set.Contains(uid) {
			r.cancel(errCanceled)
			return
		}
	}
}

// entry is what the journal says of the batch.
func (r *running) entry(stopped bool) *entry {
	return &entry{UID: r.uid, StartedAt: r.startedAt, Tasks: r.set.ToArray(), Plan: r.plan, Crashes: r.crashes, Stopped: stopped, Apart: r.apart, Skipped: r.skipped, By: r.by, Ran: r.ran, ApartRan: r.apartRan}
}

// batch gives the batch as it is shown while it runs.
func (r *running) batch() *Batch {
	b := &Batch{UID: r.uid, StartedAt: r.startedAt, Strategy: r.Strategy, Progress: r.progress.current()}
	var u union
	for _, t := range r.tasks {
		u.add(t.Kind, t.Details)
		shown := *t
		shown.Status = Processing
		b.Stats.count(&shown)
	}
	b.Details = u.json(false)
	b.Stats.Requests = requestsOf(&r.requests)
	return b
}

// has reports whether the batch has tasks of any of the kinds, a set of bits.
func (r *running) has(kinds uint32) bool { return r.kinds&kinds != 0 }

// alone reports whether no other batch may run at the same time. A batch that was running when the process ended may be the cause,
// and must not make others fail.
func (r *running) alone() bool { return r.crashes > 0 || r.has(aloneKinds) }

// changesCatalog reports whether the batch makes, removes or renames an index that it does not fill.
func (r *running) changesCatalog() bool {
	return r.Mode == removal || r.has(catalogKinds)
}

// touched are the indexes that the batch changes.
func (r *running) touched() []string {
	var uids []string
	for _, t := range r.tasks {
		if t.IndexUID != "" {
			uids = append(uids, t.IndexUID)
		}
		uids = append(uids, touched(t.Content)...)
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// newRunning makes the state of a batch that is about to run. Its context ends with the queue. Changes of its
// progress reach the watches.
func (q *Queue) newRunning(uid uint32, at time.Time, tasks []*Task, p plan) *running {
	r := &running{
		plan: p, uid: uid, startedAt: at.UTC(), tasks: tasks, set: roaring.New(), indexes: map[string]bool{}, progress: newProgress(q.now), by: q.process,
	}
	for _, t := range tasks {
		r.set.Add(t.UID)
		r.kinds |= 1 << t.Kind
		if t.IndexUID != "" {
			r.indexes[t.IndexUID] = true
		}
		n := toNanos(t.EnqueuedAt)
		if r.oldest == 0 || n < r.oldest {
			r.oldest = n
		}
		r.newest = max(r.newest, n)
	}
	r.progress.changed = func() { q.watches.progressed(r) }
	r.requests.Changed = func() { q.embedderChanged(r) }
	r.ctx, r.cancel = context.WithCancelCause(q.ctx)
	return r
}

// runs has the running batches by uid. It is never changed in place, so callers may keep it.
type runs []*running

// with returns the batches and one more.
func (rs runs) with(r *running) runs {
	next := append(slices.Clone(rs), r)
	slices.SortFunc(next, func(a, b *running) int { return int(a.uid) - int(b.uid) })
	return next
}

// without returns all batches except one.
func (rs runs) without(r *running) runs {
	return slices.DeleteFunc(slices.Clone(rs), func(other *running) bool { return other == r })
}

// batch returns the batch of a uid, or nil.
func (rs runs) batch(uid uint32) *running {
	for _, r := range rs {
		if r.uid == uid {
			return r
		}
	}
	return nil
}

// holding returns the batch of a task, or nil.
func (rs runs) holding(task uint32) *running {
	for _, r := range rs {
		if r.set.Contains(task) {
			return r
		}
	}
	return nil
}

// tasks returns the tasks of all; not to be changed.
func (rs runs) tasks() *roaring.Bitmap {
	if len(rs) == 1 {
		return rs[0].set
	}
	all := roaring.New()
	for _, r := range rs {
		all.Or(r.set)
	}
	return all
}

// next is the uid after the highest.
func (rs runs) next() uint32 {
	if len(rs) == 0 {
		return 0
	}
	return rs[len(rs)-1].uid + 1
}

// closed reports whether no other batch may begin: one runs alone, or tasks are being canceled that it could hold.
func (rs runs) closed() bool {
	return slices.ContainsFunc(rs, func(r *running) bool { return r.alone() || r.has(1<<TaskCancelation) })
}

// stopping reports whether one of the batches ends for a cancelation, which waits for that.
func (rs runs) stopping() bool {
	return slices.ContainsFunc(rs, func(r *running) bool { return errors.Is(context.Cause(r.ctx), errCanceled) })
}

package task

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"go.etcd.io/bbolt"

	"svc/internal/embed"
	"svc/internal/trace"
)

// running is the batch that runs. All but its progress and its count of requests is immutable.
type running struct {
	plan
	uid            uint32
	startedAt      time.Time
	tasks          []*Task // in uid order
	set            *roaring.Bitmap
	kinds          uint32 // a bit a kind
	indexes        map[string]bool
	oldest, newest int64          // time of enqueuing
	crashes        int            // how often the program ended while it ran
	journaled      bool           // the journal says that it runs
	apart          map[int][]byte // as the journal has them
	skipped        uint32         // see entry
	progress       *progress
	requests       embed.Stats // to providers of embeddings
	ctx            context.Context
	cancel         context.CancelCauseFunc
}

var errCanceled = errors.New("the batch holds a canceled task")

// cancelFor stops the batch when a cancelation matches one of its tasks.
func (r *running) cancelFor(c CancelTasks) {
	if r == nil {
		return
	}
	for _, uid := range c.Tasks {
		if r.set.Contains(uid) {
			r.cancel(errCanceled)
			return
		}
	}
}

// entry is what the journal says of the batch.
func (r *running) entry(stopped bool) *entry {
	return &entry{UID: r.uid, StartedAt: r.startedAt, Tasks: r.set.ToArray(), Plan: r.plan, Crashes: r.crashes, Stopped: stopped, Apart: r.apart, Skipped: r.skipped}
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

func (q *Queue) newRunning(uid uint32, at time.Time, tasks []*Task, p plan) *running {
	r := &running{
		plan: p, uid: uid, startedAt: at.UTC(), tasks: tasks, set: roaring.New(), indexes: map[string]bool{}, progress: newProgress(q.now),
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
	r.progress.changed = func() { q.watches.progressed(uid) }
	r.ctx, r.cancel = context.WithCancelCause(q.ctx)
	return r
}

const retryAfter = time.Second // a failing disk

// longWork is for how long batches have to run until the memory that they leave is given back to the system at
// once: the runtime would keep it for minutes, and there may be no more work for days.
const longWork = time.Second / 2

// schedule is the scheduler: pick a batch, run it, store its end, again.
func (q *Queue) schedule() {
	defer q.done.Done()
	var worked time.Duration // since the queue was last empty
	for {
		began := time.Now()
		ran, due, err := q.turn()
		if ran {
			worked += time.Since(began)
		}
		switch {
		case q.ctx.Err() != nil:
			return
		case errors.Is(err, errCrash):
			q.stop(err)
			return
		case err != nil:
			q.log.Error("the task queue cannot go on; it tries again", "error", err, "after", retryAfter)
			select {
			case <-time.After(retryAfter):
			case <-q.ctx.Done():
				return
			}
		case !ran:
			if worked > longWork {
				debug.FreeOSMemory()
			}
			worked = 0
			var retry <-chan time.Time // nil: nothing is parked
			if !due.IsZero() {
				retry = time.After(due.Sub(q.now()))
			}
			select {
			case <-q.wake:
			case <-retry:
			case <-q.ctx.Done():
				return
			}
		}
	}
}

// turn runs one batch, if there is one to run. due is when the first parked batch is to be tried again, if there is none.
func (q *Queue) turn() (ran bool, due time.Time, err error) {
	if q.o.MaxBatchTasks == 0 {
		return false, due, nil
	}
	if err := q.retain(); err != nil {
		return false, due, err
	}
	run, due, err := q.pick()
	if err != nil || run == nil {
		return false, due, err
	}
	defer run.cancel(nil)
	q.begin(run)
	span := q.trace(run)
	err = q.run(run)
	if err != nil {
		span.Fail(err.Error())
	}
	span.End()
	if err != nil && run.journaled && !errors.Is(err, errCrash) {
		if e := q.journal.write(run.entry(true)); e != nil {
			q.log.Warn("the task queue cannot note that a batch has stopped in order", "batch", run.uid, "error", e)
		}
	}
	aborted := err != nil
	if aborted {
		// Its tasks are enqueued again.
		q.roster.mu.Lock()
		q.roster.running = nil
		q.roster.mu.Unlock()
	} else {
		q.apart.ended(run.set)
	}
	if reason, ok := asParked(err); ok {
		q.park(run, reason)
		err = nil
	}
	if aborted {
		q.watches.tell(run.set, nil)
	}
	if errors.Is(err, errCanceled) || errors.Is(err, errTakenApart) {
		err = nil
	}
	return true, due, err
}

// trace begins the span of a batch.
func (q *Queue) trace(run *running) (span trace.Span) {
	run.ctx, span = q.o.Tracer.Begin(run.ctx, "batch")
	if span.Recorded() {
		span.SetInt("svc.batch", int(run.uid))
		span.SetInt("svc.tasks", len(run.tasks))
		span.Set("svc.type", run.tasks[0].Kind.String())
		span.Set("svc.index", run.tasks[0].IndexUID)
	}
	return span
}

// begin shows the batch as running, and stops it at once when a cancelation that waits matches it.
func (q *Queue) begin(run *running) {
	run.progress.outer(0)
	q.writing.Lock() // no cancelation is stored between the look at those that wait and the batch being shown
	defer q.writing.Unlock()
	q.roster.mu.Lock()
	q.roster.running = run
	waiting := roaring.And(q.roster.byStatus[Enqueued], q.roster.byKind[TaskCancelation])
	q.watches.tell(run.set, roaring.BitmapOf(run.uid))
	q.roster.mu.Unlock()
	waiting.AndNot(run.set)
	if waiting.IsEmpty() || run.kinds == 1<<TaskCancelation {
		return
	}
	err := q.db.View(func(tx *bbolt.Tx) error {
		for it := waiting.Iterator(); it.HasNext(); {
			t, err := readTask(tx, it.Next(), q.roster.names, nil, true)
			if err != nil {
				return err
			}
			run.cancelFor(t.Content.(CancelTasks))
		}
		return nil
	})
	if err != nil {
		q.log.Error("a waiting cancelation cannot be read", "error", err)
	}
}

// priorities are the kinds that go before everything else, in their order.
var priorities = []struct {
	kind     Kind
	together bool // all waiting tasks of the kind are one batch
}{
	{TaskDeletion, true},
	{IndexCompaction, false},
	{Export, false},
	{SnapshotCreation, true},
	{DumpCreation, false},
}

// pick chooses the next batch; nil when nothing waits but for the time due.
func (q *Queue) pick() (run *running, due time.Time, err error) {
	var batch uint32
	var chosen, candidates *roaring.Bitmap
	var strategy string
	var names *names
	var stored uint32
	err = q.read(func(ro *roster, _ *bbolt.Tx) error {
		batch, stored, names = ro.nextBatch(), ro.afterStored(), ro.names
		if q.resume != nil {
			return nil
		}
		chosen, candidates, due, strategy = q.choose(ro)
		chosen, candidates = q.apart.cut(chosen), q.apart.cut(candidates)
		return nil
	}, func(tx *bbolt.Tx) (err error) {
		switch {
		case q.resume != nil:
			e := q.resume
			tasks, err := readTasks(tx, roaring.BitmapOf(e.Tasks...), names)
			if err != nil {
				return err
			}
			run = q.newRunning(e.UID, e.StartedAt, tasks, e.Plan)
			run.crashes = e.crashes()
			q.resume = nil
		case chosen != nil:
			tasks, err := readTasks(tx, chosen, names)
			if err != nil {
				return err
			}
			run = q.newRunning(batch, q.now(), tasks, plan{Mode: single, Strategy: strategy})
		case candidates != nil:
			tasks, p, err := q.fold(tx, candidates, names, strategy)
			if err != nil {
				return err
			}
			run = q.newRunning(batch, q.now(), tasks, p)
		}
		return nil
	})
	if run == nil || err != nil {
		return nil, due, err
	}
	if n, alone := q.apart.crashes(run.tasks[0].UID); alone && run.crashes == 0 {
		run.crashes, run.Strategy = n, reasonApart
	}
	run.skipped = run.uid - stored
	run.apart, err = q.apart.bytes()
	return run, due, err
}

// choose returns the tasks of the next batch, or those that may become one, in uid order.
// strategy says why there are no more; due is that of held.
func (q *Queue) choose(ro *roster) (chosen, candidates *roaring.Bitmap, due time.Time, strategy string) {
	waiting := ro.byStatus[Enqueued]
	if set := roaring.And(waiting, ro.byKind[TaskCancelation]); !set.IsEmpty() {
		return roaring.BitmapOf(set.Maximum()), nil, due, fmt.Sprintf(reasonAlone, TaskCancelation)
	}
	if q.upgradeFailed {
		return nil, nil, due, ""
	}
	upgrades := roaring.Or(waiting, ro.byStatus[Failed])
	if upgrades.And(ro.byKind[UpgradeDatabase]); !upgrades.IsEmpty() {
		return upgrades, nil, due, fmt.Sprintf(reasonAllTogether, UpgradeDatabase)
	}
	all := waiting.GetCardinality()
	held, due := ro.held(q.now)
	if !held.IsEmpty() {
		waiting = roaring.AndNot(waiting, held)
	}
	if change := roaring.And(ro.byStatus[Enqueued], ro.byKind[NetworkTopologyChange]); !change.IsEmpty() {
		// What was accepted before the change is done before it, and what was accepted after it waits: each under its own topology.
		uid := change.Minimum()
		if ro.byStatus[Enqueued].Minimum() == uid {
			return roaring.BitmapOf(uid), nil, due, fmt.Sprintf(reasonAlone, NetworkTopologyChange)
		}
		behind := waiting.Clone()
		behind.RemoveRange(0, uint64(uid))
		behind.AndNot(ro.byKind[TaskDeletion])
		waiting = roaring.AndNot(waiting, behind)
	}
	for _, p := range priorities {
		set := roaring.And(waiting, ro.byKind[p.kind])
		switch {
		case set.IsEmpty():
		case p.together:
			return set, nil, due, fmt.Sprintf(reasonAllTogether, p.kind)
		default:
			return roaring.BitmapOf(set.Minimum()), nil, due, fmt.Sprintf(reasonAlone, p.kind)
		}
	}
	if waiting.IsEmpty() {
		return nil, nil, due, ""
	}
	first := waiting.Minimum()
	for id, set := range ro.byName {
		// Of the one or two indexes of the first task any will do: a task of two runs alone.
		if set.Contains(first) {
			candidates = roaring.And(waiting, ro.byName[id])
			break
		}
	}
	if candidates == nil {
		candidates = roaring.BitmapOf(first) // a swap of nothing
	}
	strategy = reasonEmptyIndex
	if candidates.GetCardinality() == all {
		strategy = reasonEmptyQueue
	}
	return nil, candidates, due, strategy
}

// fold grows a batch from the candidates.
func (q *Queue) fold(tx *bbolt.Tx, candidates *roaring.Bitmap, names *names, strategy string) ([]*Task, plan, error) {
	it := candidates.Iterator()
	first, err := readTask(tx, it.Next(), names, nil, true)
	if err != nil {
		return nil, plan{}, err
	}
	state, exists := q.engine.info(first.IndexUID)
	f := newFolder(first, state, exists)
	f.Strategy = strategy
	if f.Mode == single {
		f.Strategy = fmt.Sprintf(reasonAlone, first.Kind)
		if c, ok := first.Content.(UpdateIndex); ok && c.NewUID != "" {
			_, f.NewExisted = q.engine.info(c.NewUID)
		}
		return []*Task{first}, f.plan, nil
	}
	limit := maxLoaded
	if q.o.MaxBatchTasks > 0 {
		limit = min(limit, q.o.MaxBatchTasks)
	}
	tasks, bytes := []*Task{first}, payloadSize(first)
	for it.HasNext() {
		if len(tasks) >= limit {
			f.Strategy = reasonCount
			break
		}
		t, err := readTask(tx, it.Next(), names, nil, true)
		if err != nil {
			return nil, plan{}, err
		}
		size := payloadSize(t)
		if size > 0 && q.o.MaxBatchBytes >= 0 && bytes+size > q.o.MaxBatchBytes {
			f.Strategy = reasonSize
			break
		}
		joined, reason := f.join(t)
		if !joined {
			if reason == reasonMixed {
				reason = fmt.Sprintf(reasonMixed, t.Kind)
			}
			f.Strategy = reason
			break
		}
		tasks = append(tasks, t)
		bytes += size
	}
	return tasks, f.plan, nil
}

func payloadSize(t *Task) int64 {
	if c, ok := t.Content.(AddDocuments); ok {
		return c.Size
	}
	return 0
}

func readTasks(tx *bbolt.Tx, uids *roaring.Bitmap, names *names) ([]*Task, error) {
	tasks := make([]*Task, 0, uids.GetCardinality())
	for it := uids.Iterator(); it.HasNext(); {
		t, err := readTask(tx, it.Next(), names, nil, true)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

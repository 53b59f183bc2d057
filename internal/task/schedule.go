package task

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/boltfile"
	"svc/internal/trace"
)

const retryAfter = time.Second // a failing disk

// longWork is the running time of batches after which their memory is returned to the system at once. The runtime would keep it for
// minutes, and the next work may be days away. svc waits while searches run, because returning memory takes all processors.
const longWork = time.Second / 2

// ended is a batch whose goroutine has finished.
type ended struct {
	run  *running
	err  error
	took time.Duration
}

// schedule is the scheduler: it picks a batch, runs it and stores its end, repeatedly. Batches without common indexes run
// at the same time, up to the limit in Options. Only the scheduler picks batches, and takes back those that could not end.
func (q *Queue) schedule() {
	defer q.done.Done()
	q.reserve.fill()
	limit := max(q.o.Concurrent, 1)
	back := make(chan ended)
	flying := 0
	var worked time.Duration   // since the queue was last empty
	var pause <-chan time.Time // not nil: nothing begins before
	conclude := func(e ended) {
		flying--
		worked += e.took
		err := q.conclude(e.run, e.err)
		if errors.Is(err, errCrash) {
			q.stop(err)
		}
		if err != nil && q.ctx.Err() == nil {
			pause = q.again(err)
		}
	}
	for q.ctx.Err() == nil {
		var retry <-chan time.Time // nil: nothing is parked
		for pause == nil && flying-q.away() < limit && q.ctx.Err() == nil {
			run, due, err := q.next()
			if err != nil {
				pause = q.again(err)
				break
			}
			if run == nil {
				if !due.IsZero() {
					retry = time.After(due.Sub(q.now()))
				}
				break
			}
			flying++
			go func() {
				began := time.Now()
				err := q.run(run)
				back <- ended{run, err, time.Since(began)}
			}()
		}
		if flying == 0 && pause == nil {
			if worked > longWork && !(q.o.Catalog != nil && q.o.Catalog.Searches().Going()) {
				debug.FreeOSMemory()
			}
			worked = 0
		}
		select {
		case e := <-back:
			conclude(e)
		case <-pause:
			pause = nil
		case <-retry:
		case <-q.wake:
		case <-q.ctx.Done():
		}
	}
	for flying > 0 {
		conclude(<-back)
	}
}

// again logs an error. The channel receives when it is time to try again.
func (q *Queue) again(err error) <-chan time.Time {
	q.log.Error("the task queue cannot continue; retrying", "error", err, "after", retryAfter)
	return time.After(retryAfter)
}

// next starts a batch if one is ready to run. If none is, due is when the first parked batch is retried.
func (q *Queue) next() (run *running, due time.Time, err error) {
	if q.o.MaxBatchTasks == 0 {
		return nil, due, nil
	}
	if err := q.retain(); err != nil {
		return nil, due, err
	}
	run, due, err = q.pick()
	if err != nil || run == nil {
		return nil, due, err
	}
	run.span = q.trace(run)
	q.begin(run)
	return run, due, nil
}

// conclude handles the result of run for a batch. It returns an error if the queue cannot continue.
func (q *Queue) conclude(run *running, err error) error {
	defer run.cancel(nil)
	if err != nil {
		run.span.Fail(err.Error())
	}
	run.span.End()
	if err == nil {
		q.apart.ended(run.set)
		q.journal.forget(run.uid)
		if q.outOfRoom() == nil {
			q.reserve.fill()
		}
		return nil
	}
	if errors.Is(err, errCrash) {
		return err
	}
	if run.journaled {
		if e := q.journal.write(run.entry(true)); e != nil {
			q.log.Warn("cannot record that a batch stopped in order", "batch", run.uid, "error", e)
		}
	}
	if q.ctx.Err() == nil {
		q.journal.forget(run.uid) // its tasks may come back in another batch; what the next start finds is that one
	}
	// Its tasks are enqueued again.
	q.roster.mu.Lock()
	q.roster.running = q.roster.running.without(run)
	if len(q.roster.running) > 0 {
		// A lower uid may be free later. The changes of this batch in an index would make a batch with that uid look applied.
		q.roster.firstBatch = max(q.roster.firstBatch, run.uid+1)
	}
	q.roster.mu.Unlock()
	if q.roomFor(run, err) {
		q.watches.tell(run.set, nil)
		return nil
	}
	reason, parked := asParked(err)
	yields := errors.Is(err, errYields)
	switch {
	case parked:
		q.park(run, reason)
	case yields:
		q.parkYielded(run)
	case errors.Is(err, errTakenApart):
		q.takeApart(run)
	}
	q.watches.tell(run.set, nil)
	if parked || yields || errors.Is(err, errCanceled) || errors.Is(err, errTakenApart) {
		return nil
	}
	return err
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
	q.roster.running = q.roster.running.with(run)
	run.resume(q.roster.parked)
	waiting := roaring.And(q.roster.byStatus[Enqueued], q.roster.byKind[TaskCancelation])
	q.watches.tell(run.set, roaring.BitmapOf(run.uid))
	q.roster.mu.Unlock()
	waiting.AndNot(run.set)
	if waiting.IsEmpty() || run.kinds == 1<<TaskCancelation {
		return
	}
	err := boltfile.Guard(q.file, func() error {
		return q.db.View(func(tx *boltfile.Tx) error {
			for it := waiting.Iterator(); it.HasNext(); {
				t, err := readTask(tx, it.Next(), q.roster.names, nil)
				if err != nil {
					return err
				}
				run.cancelFor(t.Content.(CancelTasks))
			}
			return nil
		})
	})
	if err != nil {
		q.log.Error("cannot read a waiting cancelation", "error", err)
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

// pick chooses the next batch. It returns nil if tasks wait only for the time due, or for running batches, or if there are none.
func (q *Queue) pick() (run *running, due time.Time, err error) {
	var batch uint32
	var chosen, candidates *roaring.Bitmap
	var strategy string
	var names *names
	var stored uint32
	var beside bool
	err = q.read(func(ro *roster, tx *boltfile.Tx) error {
		batch, stored, names, beside = ro.nextBatch(), ro.afterStored(), ro.names, len(ro.running) > 0
		if ro.running.closed() || len(q.resume) > 0 {
			return nil
		}
		if uid, in, found, err := ro.interruptedCancelation(tx); found || err != nil {
			batch, chosen, strategy = in, roaring.BitmapOf(uid), fmt.Sprintf(reasonAlone, TaskCancelation)
			return err
		}
		var err error
		chosen, candidates, due, strategy, err = q.choose(ro, tx)
		chosen, candidates = q.apart.cut(chosen), q.apart.cut(candidates)
		return err
	}, func(tx *boltfile.Tx) (err error) {
		switch {
		case len(q.resume) > 0:
			if beside {
				return nil
			}
			e := q.resume[0]
			tasks, err := readTasks(tx, roaring.BitmapOf(e.Tasks...), names)
			if err != nil {
				return err
			}
			run = q.newRunning(e.UID, e.StartedAt, tasks, e.Plan)
			run.crashes, run.ran = e.crashes(), e.ran()
			q.resume = q.resume[1:]
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
	if n, ran, alone := q.apart.crashes(run.tasks[0].UID); alone && run.crashes == 0 {
		run.crashes, run.ran, run.Strategy = n, ran, reasonApart
	}
	if beside && run.alone() {
		run.cancel(nil)
		q.makeWay()
		return nil, due, nil
	}
	q.acquit(run) // it may wait
	run.skipped = run.uid - min(stored, run.uid)
	run.apart, run.apartRan, err = q.apart.bytes()
	return run, due, err
}

// choose returns the tasks of the next batch, or those that may become one, in uid order. strategy says why the batch ends there. due
// is as in held.
func (q *Queue) choose(ro *roster, tx *boltfile.Tx) (chosen, candidates *roaring.Bitmap, due time.Time, strategy string, err error) {
	waiting := ro.enqueued()
	if set := roaring.And(waiting, ro.byKind[TaskCancelation]); !set.IsEmpty() {
		if ro.running.stopping() {
			return nil, nil, due, "", nil // first the interrupted batches have to be enqueued again
		}
		return roaring.BitmapOf(set.Maximum()), nil, due, fmt.Sprintf(reasonAlone, TaskCancelation), nil
	}
	if q.upgradeFailed {
		return nil, nil, due, "", nil
	}
	upgrades := roaring.Or(waiting, ro.byStatus[Failed])
	if upgrades.And(ro.byKind[UpgradeDatabase]); !upgrades.IsEmpty() {
		return upgrades, nil, due, fmt.Sprintf(reasonAllTogether, UpgradeDatabase), nil
	}
	all := waiting.GetCardinality()
	held, due := ro.held(waiting, q.now)
	waiting.AndNot(held)
	if change := roaring.And(ro.byStatus[Enqueued], ro.byKind[NetworkTopologyChange]); !change.IsEmpty() {
		// Writes accepted before the change run before it, and later ones wait: each under its own topology.
		uid := change.Minimum()
		if ro.byStatus[Enqueued].Minimum() == uid {
			return roaring.BitmapOf(uid), nil, due, fmt.Sprintf(reasonAlone, NetworkTopologyChange), nil
		}
		behind := waiting.Clone()
		behind.RemoveRange(0, uint64(uid))
		behind.AndNot(ro.byKind[TaskDeletion])
		waiting = roaring.AndNot(waiting, behind)
	}
	if ro.running.slow() { // what needs all to rest may wait for long
		for kind := range ro.byKind {
			if kinds[kind].alone {
				waiting.AndNot(ro.byKind[kind])
			}
		}
	}
	for _, p := range priorities {
		set := roaring.And(waiting, ro.byKind[p.kind])
		switch {
		case set.IsEmpty():
		case p.together:
			return set, nil, due, fmt.Sprintf(reasonAllTogether, p.kind), nil
		default:
			return roaring.BitmapOf(set.Minimum()), nil, due, fmt.Sprintf(reasonAlone, p.kind), nil
		}
	}
	if waiting.IsEmpty() {
		return nil, nil, due, "", nil
	}
	first := waiting.Minimum()
	tasks := tx.Bucket(taskBucket)
	rec, err := readRecord(tasks, first)
	switch {
	case err != nil:
		return nil, nil, due, "", err
	case rec == nil:
		return nil, nil, due, "", lostTask(tasks, first)
	case len(rec.names) > 0: // of two indexes any will do: a task of two runs alone
		candidates = roaring.And(waiting, ro.byName[rec.names[0]])
	default:
		candidates = roaring.BitmapOf(first) // a swap of nothing
	}
	strategy = reasonEmptyIndex
	if candidates.GetCardinality() == all {
		strategy = reasonEmptyQueue
	}
	return nil, candidates, due, strategy, nil
}

// fold grows a batch from the candidates.
func (q *Queue) fold(tx *boltfile.Tx, candidates *roaring.Bitmap, names *names, strategy string) ([]*Task, plan, error) {
	it := candidates.Iterator()
	first, err := readTask(tx, it.Next(), names, nil)
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
		t, err := readTask(tx, it.Next(), names, nil)
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

// readTasks reads tasks with their contents, in the order of uids.
func readTasks(tx *boltfile.Tx, uids *roaring.Bitmap, names *names) ([]*Task, error) {
	tasks := make([]*Task, 0, uids.GetCardinality())
	for it := uids.Iterator(); it.HasNext(); {
		t, err := readTask(tx, it.Next(), names, nil)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

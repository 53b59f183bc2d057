package task

import (
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// apart are tasks that were running together when the program ended, or lost its lead, by how often that happened while they ran.
// From then on they run one by one, so that only the task that causes the failure pays for it. The journal keeps them until they end.
type apart map[int]*isolated

// isolated are tasks that run one by one.
type isolated struct {
	tasks *roaring.Bitmap
	ran   []string // the processes that ended or lost the lead, where they are known
}

// reasonApart is why a batch has one task of these, as the API shows it.
const reasonApart = "the task ran with others when the process ended or lost the lead"

// errTakenApart says that the tasks of a batch run one by one instead.
var errTakenApart = errors.New("the process ended or lost the lead while the batch ran: its tasks run one by one")

// takeApart has the tasks of a batch that has changed nothing yet run one by one.
func (q *Queue) takeApart(run *running) {
	if q.apart == nil {
		q.apart = apart{}
	}
	if set := q.apart[run.crashes]; set != nil {
		set.tasks.Or(run.set)
		set.ran = append(slices.Clone(set.ran), run.ran...)
		slices.Sort(set.ran)
		set.ran = slices.Compact(set.ran)
	} else {
		q.apart[run.crashes] = &isolated{run.set.Clone(), run.ran}
	}
	q.log.Warn("the process ended or lost the lead while a batch ran: its tasks run one by one", "batch", run.uid, "tasks", len(run.tasks))
}

// crashes returns how often the process ended, or lost the lead, while a task ran together with others. ran are the processes that may
// have run the task then. alone is true if this happened, so the task runs alone.
func (a apart) crashes(uid uint32) (n int, ran []string, alone bool) {
	for n, set := range a {
		if set.tasks.Contains(uid) {
			return n, set.ran, true
		}
	}
	return 0, nil, false
}

// cut returns the beginning of a set of tasks that may be one batch: a single task that has to run alone, or the tasks before the
// first such task.
func (a apart) cut(set *roaring.Bitmap) *roaring.Bitmap {
	if len(a) == 0 || set == nil || set.IsEmpty() {
		return set
	}
	alone := roaring.New()
	for _, set := range a {
		alone.Or(set.tasks)
	}
	if alone.And(set); alone.IsEmpty() {
		return set
	}
	if alone.Minimum() == set.Minimum() {
		return roaring.BitmapOf(set.Minimum())
	}
	together := set.Clone()
	together.RemoveRange(uint64(alone.Minimum()), 1<<32)
	return together
}

// ended takes out tasks that have ended.
func (a apart) ended(tasks *roaring.Bitmap) {
	for n, set := range a {
		if set.tasks.AndNot(tasks); set.tasks.IsEmpty() {
			delete(a, n)
		}
	}
}

// RunIn sets the id of this process, for queues whose batches another process may take over. living returns those of the given
// processes that still run; it may block for seconds. Call RunIn before Lead.
func (q *Queue) RunIn(process string, living func(all []string) []string) {
	q.process, q.living = process, living
}

// acquit sets run.ends: how many of the batch's losses were crashes. A process that still runs did not crash: it lost the batch to another
// process. Only batches with maxCrashes losses or more are checked. The result is not recorded, because a process may have answered just
// before it ended.
func (q *Queue) acquit(run *running) {
	if run.ends = run.crashes; run.crashes < maxCrashes || len(run.ran) == 0 || q.living == nil {
		return
	}
	living := q.living(run.ran)
	dead := slices.DeleteFunc(slices.Clone(run.ran), func(process string) bool { return slices.Contains(living, process) })
	run.ends = ends(run.crashes, len(run.ran), len(dead))
}

// ends returns how many losses of a batch count as crashes. crashes is the number of losses, ran the number of recorded processes,
// and dead the number of these that have ended. Losses without a recorded process count as crashes. ran may include processes of
// other batches whose tasks now run one by one. Each of them that still runs lowers the count in favour of the task.
func ends(crashes, ran, dead int) int { return max(0, crashes-(ran-dead)) }

// bytes gives them as the journal has them.
func (a apart) bytes() (all map[int][]byte, ran map[int][]string, err error) {
	if len(a) == 0 {
		return nil, nil, nil
	}
	all, ran = make(map[int][]byte, len(a)), map[int][]string{}
	for n, set := range a {
		set.tasks.RunOptimize()
		b, err := set.tasks.ToBytes()
		if err != nil {
			return nil, nil, fmt.Errorf("cannot record the tasks to run one by one: %w", err)
		}
		all[n] = b
		if len(set.ran) > 0 {
			ran[n] = set.ran
		}
	}
	return all, ran, nil
}

// readApart is the inverse of bytes, limited to waiting tasks.
func readApart(e *entry, waiting *roaring.Bitmap) (apart, error) {
	a := apart{}
	for n, b := range e.Apart {
		set := roaring.New()
		if err := set.UnmarshalBinary(b); err != nil {
			return nil, fmt.Errorf("the journal does not say which tasks run one by one: %w", err)
		}
		if set.And(waiting); !set.IsEmpty() {
			a[n] = &isolated{set, e.ApartRan[n]}
		}
	}
	return a, nil
}

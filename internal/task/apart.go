package task

import (
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// apart are tasks that were running together when the program ended, by how often it ended while they ran. They run one by one from
// then on, so that only the one that ends the program pays for it. The journal keeps them until they have ended.
type apart map[int]*roaring.Bitmap

// reasonApart is why a batch has one task of these, as the API shows it.
const reasonApart = "the process ended while the task ran with others"

// errTakenApart says that the tasks of a batch run one by one instead.
var errTakenApart = errors.New("the process ended while the batch ran: its tasks run one by one")

// takeApart has the tasks of a batch that has changed nothing yet run one by one.
func (q *Queue) takeApart(run *running) {
	if q.apart == nil {
		q.apart = apart{}
	}
	if set := q.apart[run.crashes]; set != nil {
		set.Or(run.set)
	} else {
		q.apart[run.crashes] = run.set.Clone()
	}
	q.log.Warn("the process ended while a batch ran: its tasks run one by one", "batch", run.uid, "tasks", len(run.tasks))
}

// crashes returns how often the program ended while a task ran together with others; alone is false when it never did.
func (a apart) crashes(uid uint32) (n int, alone bool) {
	for n, set := range a {
		if set.Contains(uid) {
			return n, true
		}
	}
	return 0, false
}

// cut returns the beginning of a set of tasks that may be one batch: one task that is to run alone, or those before the first such.
func (a apart) cut(set *roaring.Bitmap) *roaring.Bitmap {
	if len(a) == 0 || set == nil || set.IsEmpty() {
		return set
	}
	alone := roaring.New()
	for _, tasks := range a {
		alone.Or(tasks)
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
		if set.AndNot(tasks); set.IsEmpty() {
			delete(a, n)
		}
	}
}

// bytes gives them as the journal has them.
func (a apart) bytes() (map[int][]byte, error) {
	if len(a) == 0 {
		return nil, nil
	}
	all := make(map[int][]byte, len(a))
	for n, set := range a {
		set.RunOptimize()
		b, err := set.ToBytes()
		if err != nil {
			return nil, fmt.Errorf("cannot record the tasks to run one by one: %w", err)
		}
		all[n] = b
	}
	return all, nil
}

// readApart is the inverse of bytes, for those of the tasks that wait.
func readApart(all map[int][]byte, waiting *roaring.Bitmap) (apart, error) {
	a := apart{}
	for n, b := range all {
		set := roaring.New()
		if err := set.UnmarshalBinary(b); err != nil {
			return nil, fmt.Errorf("the journal does not say which tasks run one by one: %w", err)
		}
		if set.And(waiting); !set.IsEmpty() {
			a[n] = set
		}
	}
	return a, nil
}

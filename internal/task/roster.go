package task

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
)

// The columns of tasks, and of batches.
const (
	enqueuedAt = iota
	startedAt
	finishedAt
	taskTimes

	oldestEnqueued = finishedAt + 1 // of the batch's tasks
	newestEnqueued = finishedAt + 2
	batchTimes     = finishedAt + 3
)

// fact is the fixed part of a task's record.
type fact struct {
	status Status // never Processing: that is what the running batch's tasks are
	kind   Kind
	times  [taskTimes]int64 // nanoseconds since 1970, 0 for none
	batch  uint32
}

// head is what the roster has of a task.
type head struct {
	fact
	canceledBy uint32
	names      []nameID // a change makes others: effects share them
}

// batchFact is what filters ask of a stored batch.
type batchFact struct {
	statuses uint8 // a bit a status
	kinds    uint32
	indexes  []string
	times    [batchTimes]int64
}

// roster is the copy in memory of what filters read of tasks and batches. It is built from the records at the start and
// follows every commit, so it is never stored.
//
// mu guards everything in it. Only the holder of Queue.writing changes it, after its transaction is committed: see
// effects. Readers that also read the file use Queue.read, to see the same commit in both.
type roster struct {
	mu   sync.RWMutex
	txid int // of the last commit that the roster knows

	// unknown is set before a commit may be in the file without the roster knowing. It is cleared, with mu held, once the roster
	// knows the commit or the commit has failed. Then known, which uses the reader's side of mu, is broadcast.
	unknown atomic.Bool
	known   *sync.Cond

	names      *names
	tasks      *roaring.Bitmap
	byStatus   [len(statusNames)]*roaring.Bitmap
	byKind     [kindCount]*roaring.Bitmap
	byName     map[nameID]*roaring.Bitmap
	canceledBy map[uint32]*roaring.Bitmap
	times      *columns
	batchTasks *counts // how many of the tasks name each batch as theirs

	firstBatch      uint32 // no batch from now on has a lower uid
	batches         *roaring.Bitmap
	batchesByStatus [len(statusNames)]*roaring.Bitmap
	batchesByKind   [kindCount]*roaring.Bitmap
	batchesByIndex  map[string]*roaring.Bitmap
	batchTimes      *columns

	running runs
	// parked has the indexes whose tasks wait because of the machine or an embedder, by uid. It is not stored: the next process finds out
	// by itself.
	parked map[string]*parking
}

func newRoster() *roster {
	r := &roster{
		names: newNames(), tasks: roaring.New(), byName: map[nameID]*roaring.Bitmap{}, canceledBy: map[uint32]*roaring.Bitmap{},
		times: newColumns(taskTimes), batchTasks: newCounts(), batches: roaring.New(), batchesByIndex: map[string]*roaring.Bitmap{}, batchTimes: newColumns(batchTimes),
		parked: map[string]*parking{},
	}
	r.known = sync.NewCond(r.mu.RLocker())
	for i := range r.byStatus {
		r.byStatus[i], r.batchesByStatus[i] = roaring.New(), roaring.New()
	}
	for i := range r.byKind {
		r.byKind[i], r.batchesByKind[i] = roaring.New(), roaring.New()
	}
	return r
}

// catchUp wakes readers that saw a newer state in the file than in the roster. mu is held.
func (r *roster) catchUp() {
	r.unknown.Store(false)
	r.known.Broadcast()
}

// giveUp is catchUp after a failed commit, whether or not the file has the change.
func (r *roster) giveUp() {
	if !r.unknown.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.catchUp()
}

// nextTask and nextBatch are the uids after the highest stored ones.
func (r *roster) nextTask() uint32  { return next(r.tasks) }
func (r *roster) nextBatch() uint32 { return max(r.afterStored(), r.firstBatch, r.running.next()) }

func (r *roster) afterStored() uint32 { return next(r.batches) }

func next(set *roaring.Bitmap) uint32 {
	if set.IsEmpty() {
		return 0
	}
	return set.Maximum() + 1
}

// add takes up a stored task.
func (r *roster) add(uid uint32, now *head) {
	r.tasks.Add(uid)
	r.byStatus[now.status].Add(uid)
	r.byKind[now.kind].Add(uid)
	for _, n := range now.names {
		addTo(r.byName, n, uid)
	}
	if now.canceledBy != noUID {
		addTo(r.canceledBy, now.canceledBy, uid)
	}
	if now.batch != noUID {
		r.batchTasks.add(now.batch, 1)
	}
	r.times.set(uid, now.times[:])
}

// change follows a task that stays and keeps its kind.
func (r *roster) change(uid uint32, was, now *head) {
	if was.status != now.status {
		r.byStatus[was.status].Remove(uid)
		r.byStatus[now.status].Add(uid)
	}
	if was.canceledBy != now.canceledBy {
		if was.canceledBy != noUID {
			takeFrom(r.canceledBy, was.canceledBy, uid)
		}
		addTo(r.canceledBy, now.canceledBy, uid)
	}
	if was.batch != now.batch {
		if was.batch != noUID {
			r.batchTasks.sub(was.batch, 1)
		}
		r.batchTasks.add(now.batch, 1)
	}
	if was.times != now.times {
		r.times.set(uid, now.times[:])
	}
	if !slices.Equal(was.names, now.names) {
		for _, n := range was.names {
			takeFrom(r.byName, n, uid)
		}
		for _, n := range now.names {
			addTo(r.byName, n, uid)
		}
	}
}

// remove forgets deleted tasks and batches.
func (r *roster) remove(d *deletion) {
	r.tasks.AndNot(d.tasks)
	for _, set := range r.byStatus {
		set.AndNot(d.tasks)
	}
	for _, set := range r.byKind {
		set.AndNot(d.tasks)
	}
	for it := d.canceledBy.Iterator(); it.HasNext(); {
		dropFrom(r.canceledBy, it.Next(), d.tasks)
	}
	for it := d.names.Iterator(); it.HasNext(); {
		dropFrom(r.byName, nameID(it.Next()), d.tasks)
	}
	for batch, n := range d.batches {
		r.batchTasks.sub(batch, n)
	}
	r.times.drop(r.tasks)

	r.batches.AndNot(d.emptied)
	for _, set := range r.batchesByStatus {
		set.AndNot(d.emptied)
	}
	for _, set := range r.batchesByKind {
		set.AndNot(d.emptied)
	}
	for index := range d.indexes {
		dropFrom(r.batchesByIndex, index, d.emptied)
	}
	r.batchTimes.drop(r.batches)
}

// addBatch adds a batch that is stored. mu is held, or the roster is not shared yet.
func (r *roster) addBatch(uid uint32, f *batchFact) {
	r.batches.Add(uid)
	for s := range r.batchesByStatus {
		if f.statuses&(1<<s) != 0 {
			r.batchesByStatus[s].Add(uid)
		}
	}
	for k := range r.batchesByKind {
		if f.kinds&(1<<k) != 0 {
			r.batchesByKind[k].Add(uid)
		}
	}
	for _, index := range f.indexes {
		addTo(r.batchesByIndex, index, uid)
	}
	r.batchTimes.set(uid, f.times[:])
}

func addTo[K comparable](sets map[K]*roaring.Bitmap, key K, uid uint32) {
	set := sets[key]
	if set == nil {
		set = roaring.New()
		sets[key] = set
	}
	set.Add(uid)
}

// takeFrom takes a uid out of a set, and away the set when it is empty.
func takeFrom[K comparable](sets map[K]*roaring.Bitmap, key K, uid uint32) {
	if set := sets[key]; set != nil {
		if set.Remove(uid); set.IsEmpty() {
			delete(sets, key)
		}
	}
}

// dropFrom takes uids out of a set, and away the set when it is empty.
func dropFrom[K comparable](sets map[K]*roaring.Bitmap, key K, uids *roaring.Bitmap) {
	set := sets[key]
	if set == nil {
		return
	}
	if set.AndNot(uids); set.IsEmpty() {
		delete(sets, key)
	}
}

// named returns the tasks that touch an index. The set must not be modified.
func (r *roster) named(uid string) *roaring.Bitmap {
	if id, ok := r.names.id(uid); ok {
		if set := r.byName[id]; set != nil {
			return set
		}
	}
	return roaring.New()
}

// enqueued returns the waiting tasks, without those of running batches.
func (r *roster) enqueued() *roaring.Bitmap {
	set := r.byStatus[Enqueued].Clone()
	set.AndNot(r.running.tasks())
	return set
}

// bringPayloads returns the tasks that wait and may have a payload.
func (r *roster) bringPayloads() *roaring.Bitmap {
	set := roaring.Or(r.byKind[DocumentAdditionOrUpdate], r.byKind[DocumentEdition])
	set.And(r.byStatus[Enqueued])
	return set
}

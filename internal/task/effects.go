package task

import "github.com/RoaringBitmap/roaring/v2"

// effects are the changes of a transaction that memory follows: tasks, batches and the outbox, each before and after. The
// roster and the outbox apply them after the commit, and nothing else changes their copy of the file.
type effects struct {
	tasks   []taskEffect // in the order of the transaction
	batches []batchEffect
	deleted *deletion // takes effect after tasks and batches; nil: nothing is deleted

	outgoing  []outgoingEffect
	told, got *Position // nil: as before
	origins   [][]byte  // new ones, in order
	forgotten int       // of the oldest origins, how many are deleted
}

// taskEffect is a task that is stored: was is nil for a new one.
type taskEffect struct {
	uid      uint32
	was, now *head
}

// batchEffect is a batch that is stored. None changes afterwards.
type batchEffect struct {
	uid  uint32
	fact *batchFact
}

// outgoingEffect is a request of the outbox that is stored, or removed when no remote is left in Pending.
type outgoingEffect struct {
	was []string // Pending before; nil: the request is new
	now *Outgoing
}

// deletion is what a transaction deletes, with its keys in the roster.
type deletion struct {
	tasks      *roaring.Bitmap
	names      *roaring.Bitmap     // that the tasks touch
	canceledBy *roaring.Bitmap     // by which they were
	batches    map[uint32]uint32   // how many of the tasks go from each batch
	emptied    *roaring.Bitmap     // the batches that go
	indexes    map[string]struct{} // of these
}

func newDeletion() *deletion {
	return &deletion{
		tasks: roaring.New(), names: roaring.New(), canceledBy: roaring.New(), batches: map[uint32]uint32{},
		emptied: roaring.New(), indexes: map[string]struct{}{},
	}
}

// task adds a task.
func (d *deletion) task(uid uint32, was *head) {
	d.tasks.Add(uid)
	if was.batch != noUID {
		d.batches[was.batch]++
	}
	if was.canceledBy != noUID {
		d.canceledBy.Add(was.canceledBy)
	}
	for _, name := range was.names {
		d.names.Add(uint32(name))
	}
}

// batch adds a batch.
func (d *deletion) batch(uid uint32, was *batchFact) {
	d.emptied.Add(uid)
	for _, index := range was.indexes {
		d.indexes[index] = struct{}{}
	}
}

// changed returns the tasks and the batches that are stored; nil for none.
func (e *effects) changed() (tasks, batches *roaring.Bitmap) {
	if len(e.tasks) > 0 {
		tasks = roaring.New()
	}
	for _, t := range e.tasks {
		tasks.Add(t.uid)
	}
	if len(e.batches) > 0 {
		batches = roaring.New()
	}
	for _, b := range e.batches {
		batches.Add(b.uid)
	}
	return tasks, batches
}

// follow applies the changes of a committed transaction. mu is held.
func (r *roster) follow(e *effects) {
	for _, t := range e.tasks {
		if t.was == nil {
			r.add(t.uid, t.now)
		} else {
			r.change(t.uid, t.was, t.now)
		}
	}
	for _, b := range e.batches {
		r.addBatch(b.uid, b.fact)
	}
	if e.deleted != nil {
		r.remove(e.deleted)
	}
}

// follow applies the changes of a committed transaction. mu is not held.
func (o *outbox) follow(e *effects) {
	if len(e.outgoing) == 0 && len(e.origins) == 0 && e.told == nil && e.got == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range e.outgoing {
		if f.was == nil {
			o.add(f.now)
		} else {
			o.change(f.was, f.now)
		}
	}
	if e.told != nil {
		o.told = *e.told
	}
	if e.got != nil {
		o.got = *e.got
	}
	o.origins = append(o.origins[e.forgotten:], e.origins...)
}

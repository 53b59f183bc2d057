package task

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/boltfile"
	"svc/internal/invariant"
)

// comparedRecords is up to how many tasks and batches memory is compared with the file after each change: a comparison reads all of it.
const comparedRecords = 1 << 10

// checkMemory compares memory after a change with what a start would read, in builds with invariants: effects must
// describe all that a transaction changes. writing and roster.mu are held.
func (q *Queue) checkMemory() {
	if !q.compares() {
		return
	}
	var r *roster
	var o outbox
	err := boltfile.Guard(q.file, func() (err error) {
		if r, err = load(q.db); err == nil {
			err = o.load(q.db)
		}
		return err
	})
	if err != nil {
		return // the file is damaged, which readers are told
	}
	for _, d := range append(q.roster.differences(r), q.outbox.differences(&o)...) {
		invariant.Fail("memory has another task queue than %s: %s", q.file, d)
	}
}

// compares reports whether memory is compared with the file.
func (q *Queue) compares() bool {
	return invariant.Enabled && q.roster.tasks.GetCardinality()+q.roster.batches.GetCardinality() <= comparedRecords
}

// checkEffects compares the effects that a transaction has collected with those that a queue that follows reads from its changes. The
// transaction is not committed. writing is held.
func (q *Queue) checkEffects(tx *txn) {
	b, err := tx.tx.Changes()
	if err != nil {
		return // the commit meets it, too
	}
	changes, err := boltfile.DecodeChanges(b)
	if err != nil {
		invariant.Fail("the changes of a transaction of %s cannot be read: %v", q.file, err)
	}
	var all []string
	err = boltfile.Guard(q.file, func() error {
		return q.db.View(func(before *boltfile.Tx) error {
			f := newFollowed(before, q.roster.names)
			if err := f.read(changes); err != nil {
				return err
			}
			all = tx.effects.differences(&f.effects)
			if !tx.names.equal(f.names) {
				all = append(all, fmt.Sprintf("names: %v, want %v", f.names.all().texts, tx.names.all().texts))
			}
			return nil
		})
	})
	if err != nil {
		return // the file is damaged, which readers are told
	}
	for _, d := range all {
		invariant.Fail("the changes of a transaction of %s say other than what it did: %s", q.file, d)
	}
}

func (n *names) equal(o *names) bool {
	x, y := n.all(), o.all()
	return maps.Equal(x.texts, y.texts) && maps.Equal(x.ids, y.ids)
}

// differences describes in what got, which was read from the changes of a transaction, differs from e, which the transaction collected.
func (e *effects) differences(got *effects) (all []string) {
	differ := func(what string, got, want any) { all = append(all, fmt.Sprintf("%s: %v, want %v", what, got, want)) }
	equal := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			differ(what, got, want)
		}
	}
	if len(got.tasks) != len(e.tasks) {
		differ("tasks", len(got.tasks), len(e.tasks))
		return all
	}
	for i, t := range e.tasks {
		g := got.tasks[i]
		if g.uid != t.uid || !t.was.equal(g.was) || !t.now.equal(g.now) {
			differ(fmt.Sprint("task ", t.uid), g, t)
		}
	}
	sameBatch := func(a, b batchEffect) bool {
		x, y := a.fact, b.fact
		return a.uid == b.uid && x.statuses == y.statuses && x.kinds == y.kinds && x.times == y.times && slices.Equal(x.indexes, y.indexes)
	}
	if !slices.EqualFunc(got.batches, e.batches, sameBatch) {
		differ("batches", got.batches, e.batches)
	}
	d, g := e.deleted, got.deleted
	if d != nil && d.tasks.IsEmpty() && d.emptied.IsEmpty() {
		d = nil // a deletion of nothing
	}
	switch {
	case (d == nil) != (g == nil):
		differ("deletion", g, d)
	case d != nil:
		sets := func(what string, got, want *roaring.Bitmap) {
			if !got.Equals(want) {
				differ(what, got, want)
			}
		}
		sets("deleted tasks", g.tasks, d.tasks)
		sets("names of deleted tasks", g.names, d.names)
		sets("cancelations of deleted tasks", g.canceledBy, d.canceledBy)
		sets("deleted batches", g.emptied, d.emptied)
		equal("batches of deleted tasks", g.batches, d.batches)
		equal("indexes of deleted batches", g.indexes, d.indexes)
	}
	if len(got.outgoing) != len(e.outgoing) {
		differ("requests", len(got.outgoing), len(e.outgoing))
		return all
	}
	for i, o := range e.outgoing {
		if g := got.outgoing[i]; g.now.UID != o.now.UID || !slices.Equal(g.was, o.was) || (g.was == nil) != (o.was == nil) || !slices.Equal(g.now.Pending, o.now.Pending) {
			differ(fmt.Sprint("request ", o.now.UID), g, o)
		}
	}
	equal("told", got.told, e.told)
	equal("got", got.got, e.got)
	equal("origins", got.origins, e.origins)
	equal("forgotten origins", got.forgotten, e.forgotten)
	return all
}

// equal reports whether two heads are the same; nil is the head of a missing task.
func (h *head) equal(o *head) bool {
	if h == nil || o == nil {
		return h == o
	}
	return h.fact == o.fact && h.canceledBy == o.canceledBy && slices.Equal(h.names, o.names)
}

// differences describes what r has of the file that want, which was read of it, does not have, and the reverse.
func (r *roster) differences(want *roster) (all []string) {
	differ := func(what string, got, want any) {
		all = append(all, fmt.Sprintf("%s: %v, want %v", what, got, want))
	}
	set := func(what string, got, want *roaring.Bitmap) {
		if !got.Equals(want) {
			differ(what, got, want)
		}
	}
	set("tasks", r.tasks, want.tasks)
	for i := range r.byStatus {
		set(fmt.Sprint("tasks that are ", Status(i)), r.byStatus[i], want.byStatus[i])
		set(fmt.Sprint("batches with tasks that are ", Status(i)), r.batchesByStatus[i], want.batchesByStatus[i])
	}
	for i := range r.byKind {
		set(fmt.Sprint("tasks of kind ", Kind(i)), r.byKind[i], want.byKind[i])
		set(fmt.Sprint("batches with tasks of kind ", Kind(i)), r.batchesByKind[i], want.batchesByKind[i])
	}
	equal := func(a, b *roaring.Bitmap) bool { return a.Equals(b) }
	if !maps.EqualFunc(r.byName, want.byName, equal) {
		differ("tasks by name", r.byName, want.byName)
	}
	if !maps.EqualFunc(r.canceledBy, want.canceledBy, equal) {
		differ("canceled tasks", r.canceledBy, want.canceledBy)
	}
	if !maps.EqualFunc(r.batchesByIndex, want.batchesByIndex, equal) {
		differ("batches by index", r.batchesByIndex, want.batchesByIndex)
	}
	if !r.names.equal(want.names) {
		differ("names", r.names.all().texts, want.names.all().texts)
	}
	set("batches", r.batches, want.batches)
	if !r.batchTasks.equal(want.batchTasks) {
		differ("tasks by batch", r.batchTasks, want.batchTasks)
	}
	times := func(what string, uids *roaring.Bitmap, got, want *columns) {
		for it := uids.Iterator(); it.HasNext(); {
			uid := it.Next()
			for i := range got.width {
				if a, b := got.get(uid, i), want.get(uid, i); a != b {
					differ(fmt.Sprint(what, " of ", uid), a, b)
				}
			}
		}
	}
	times("times of task", want.tasks, r.times, want.times)
	times("times of batch", want.batches, r.batchTimes, want.batchTimes)
	return all
}

// equal reports whether two counts have the same number for each uid.
func (c *counts) equal(o *counts) bool {
	return maps.EqualFunc(c.pages, o.pages, func(a, b *countPage) bool { return *a == *b })
}

// differences describes what o has of the file that want, which was read of it, does not have, and the reverse.
func (o *outbox) differences(want *outbox) (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	differ := func(what string, got, want any) {
		all = append(all, fmt.Sprintf("%s: %v, want %v", what, got, want))
	}
	if !maps.EqualFunc(o.pending, want.pending, slices.Equal) {
		differ("requests by remote", o.pending, want.pending)
	}
	left := func(a, b *outgoingFact) bool { return a.left == b.left && a.file == b.file && a.since.Equal(b.since) }
	if !maps.EqualFunc(o.entries, want.entries, left) {
		differ("requests", o.entries, want.entries)
	}
	if o.told != want.told || o.got != want.got {
		differ("positions", [2]Position{o.told, o.got}, [2]Position{want.told, want.got})
	}
	if !slices.EqualFunc(o.origins, want.origins, bytes.Equal) {
		differ("origins", o.origins, want.origins)
	}
	return all
}

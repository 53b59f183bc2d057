package task

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"svc/internal/apierr"
	"svc/internal/commit"
)

// New is a task to enqueue.
type New struct {
	IndexUID       string
	Content        Content
	Payload        *Payload // of a document addition
	CustomMetadata *string
	UID            *uint32  // the uid that the task must get: the next one or a later one, else bad_request; nil: the next one
	DryRun         bool     // check everything, store nothing
	Forward        *Forward // what others get of it; nil: it is not for others
	Origin         *Origin  // the request of another instance that it is of; nil: none
	Key            string   // of the request, which may come again; "": none, and another request with the same one gets the same task
}

var errClosed = errors.New("the task queue is closed")

// maxGroup is the maximum number of tasks in one commit, so that no caller waits long.
const maxGroup = 512

// request is a task on its way to the committer. The committer fills task, known and err, and closes done.
type request struct {
	New
	content []byte
	task    *Task
	known   bool // the task was there before
	err     error
	done    chan struct{}
}

// Enqueue makes the task durable and returns it. The payload is the queue's
// from then on; after an error it still is the caller's to discard.
// no_space_left_on_device when the queue is full.
func (q *Queue) Enqueue(ctx context.Context, n New) (*Task, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if q.follows.Load() {
		return nil, errFollows
	}
	r := &request{New: n, done: make(chan struct{})}
	var err error
	if c, ok := n.Content.(enqueued); ok {
		if r.Content, err = c.enqueued(&n); err != nil {
			return nil, err
		}
	}
	if r.content, err = encodeContent(r.Content); err != nil {
		return nil, err
	}
	select {
	case q.requests <- r:
	case <-q.ctx.Done():
		return nil, errClosed
	}
	// The committer answers every request that it took, so the caller learns what became of its task.
	<-r.done
	if r.err != nil {
		return nil, r.err
	}
	if n.Payload != nil {
		if n.DryRun || r.known {
			n.Payload.Discard()
		}
		n.Payload.name = ""
	}
	return r.task, nil
}

// commit is the committer: it stores the tasks of all callers that wait in one transaction.
func (q *Queue) commit() {
	defer q.done.Done()
	var group, next []*request
	var crowd crowd
	for {
		if len(group) == 0 {
			select {
			case r := <-q.requests:
				group = append(group, r)
			case <-q.ctx.Done():
				return
			}
		}
		group = q.waiting(group)
		if commit.Logged(q.fs) {
			group = q.gather(group, &crowd)
		}
		began := time.Now()
		group = q.store(group)
		next = q.waiting(next[:0])
		crowd.served(len(group), len(next), time.Since(began))
		for _, r := range group {
			close(r.done)
		}
		clear(group) // the array stays, and would hold the tasks and their payloads
		group, next = next, group
	}
}

// waiting adds the requests to a group that wait now.
func (q *Queue) waiting(group []*request) []*request {
	for len(group) < maxGroup {
		select {
		case r := <-q.requests:
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// store stores a group of tasks, or gives each its error. It returns the group including the requests that arrived while it waited
// for the queue. On a full disk, a group with a deletion gets the reserve.
func (q *Queue) store(group []*request) []*request {
	group, err := q.tryStore(group)
	if err != nil && apierr.From(err).Code == noSpace && slices.ContainsFunc(group, func(r *request) bool { return makesRoom(r.Content) }) && q.leaveReserve() {
		group, err = q.tryStore(group)
	}
	if err != nil {
		fail(group, err)
	}
	return group
}

// tryStore is store, but returns an error that concerns the whole group.
func (q *Queue) tryStore(group []*request) (_ []*request, err error) {
	var named func() error
	logged := commit.Logged(q.fs)
	if !logged {
		named = q.nameAhead(group) // it has run
		if named != nil {
			if err := named(); err != nil {
				return group, err
			}
		}
	}
	defer func() {
		if named != nil {
			_ = named() // nothing runs any more
		}
	}()
	err = q.update(func(tx *txn) error {
		if logged {
			group = q.waiting(group)
			named = q.nameAhead(group)
		}
		tx.named = named
		uid := tx.roster.nextTask()
		now := toNanos(q.now())
		full, room := q.full(tx), q.outOfRoom()
		for _, r := range group {
			if r.err = q.admit(r, uid, full, room); r.err != nil {
				continue
			}
			var err error
			if r.task, err = tx.known(r.knownBy()); err != nil {
				return err
			}
			if r.known = r.task != nil; r.known {
				continue
			}
			at := uid
			if r.UID != nil {
				at = *r.UID
			}
			if err = q.insert(tx, r, at, now); err != nil {
				return err
			}
			if !r.DryRun {
				uid = at + 1
			}
		}
		return nil
	})
	if err != nil {
		return group, err
	}
	if q.o.OnForward != nil && slices.ContainsFunc(group, func(r *request) bool { return r.Forward != nil && r.err == nil }) {
		q.o.OnForward()
	}
	q.wakeUp()
	return group, nil
}

// nameAhead starts to make the names of all payloads of a group durable, with one sync, before a task names them. It returns a
// function that waits for this, or nil if there are no payloads.
func (q *Queue) nameAhead(group []*request) (named func() error) {
	some := false
	for _, r := range group {
		if r.Payload == nil || r.DryRun {
			continue
		}
		some = true
		if err := r.Payload.rename(); err != nil {
			err = fmt.Errorf("cannot name a payload anew: %w", err)
			return func() error { return err }
		}
	}
	if !some {
		return nil
	}
	return commit.Ahead(q.fs, q.log, func() error {
		if err := q.fs.SyncDir(path.Join(q.o.Dir, "payloads")); err != nil {
			q.lostNames.Add(1)
			return fmt.Errorf("cannot sync the payloads' directory: %w", err)
		}
		return nil
	})
}

// fail gives all requests of a group an error.
func fail(group []*request, err error) {
	for _, r := range group {
		r.task, r.err = nil, err
	}
}

// admit says whether a task may enter the queue when next is the next uid. room is why tasks wait for room on the disk; nil: none does.
func (q *Queue) admit(r *request, next uint32, full bool, room *apierr.Error) error {
	if next == noUID || r.UID != nil && *r.UID == noUID {
		return apierr.New(noSpace, "All task uids are used up.")
	}
	if r.UID != nil && *r.UID < next {
		return apierr.New("bad_request", "The uid %d in the `TaskId` header is taken. The next free uid is %d.", *r.UID, next)
	}
	if reason := room; reason != nil && !makesRoom(r.Content) {
		return apierr.New(noSpace, "The disk is full and accepted tasks wait for space, so new ones are refused. Free space or delete indexes; the waiting tasks then continue. (%s)", reason.Message)
	}
	if full && !freesQueue(r.Content) {
		return apierr.New(noSpace, "The task queue is full. Delete finished tasks with `DELETE /tasks?statuses=succeeded,failed,canceled`.")
	}
	return nil
}

// full reports whether the live pages of the queue file have reached the limit.
func (q *Queue) full(tx *txn) bool {
	if q.o.MaxBytes < 0 {
		return false
	}
	return q.usedBytes(tx.tx) >= q.o.MaxBytes
}

// insert stores a new task in a transaction, with its request for other instances if there is one. It appends the other changes in
// memory to tx.after, so they happen only if the transaction is committed. A dry run fills r.task and stores nothing.
func (q *Queue) insert(tx *txn, r *request, uid uint32, now int64) error {
	rec := &record{
		head:     head{fact: fact{status: Enqueued, kind: r.Content.Kind(), batch: noUID}, canceledBy: noUID},
		metadata: r.CustomMetadata,
		details:  r.Content.details(r.IndexUID, nil), content: r.content, network: networkOf(&r.New),
	}
	rec.times[enqueuedAt] = now
	r.task = &Task{
		UID: uid, IndexUID: r.IndexUID, Status: Enqueued, Kind: rec.kind, Details: rec.details,
		EnqueuedAt: fromNanos(now), CustomMetadata: r.CustomMetadata, Content: r.Content, Network: rec.network,
	}
	if r.DryRun {
		return nil
	}
	own := r.IndexUID
	if rec.kind.Global() {
		own = ""
	}
	if err := tx.setNames(rec, own, touched(r.Content)); err != nil {
		return err
	}
	if err := tx.put(uid, rec); err != nil {
		return err
	}
	if c, ok := r.Content.(AddDocuments); ok {
		if c.File != "" {
			tx.payloads = append(tx.payloads, q.payloadPath(c.File))
			var content []byte
			if r.Payload != nil {
				content = r.Payload.content
			}
			tx.contents = append(tx.contents, content)
		}
		tx.after = append(tx.after, func(*roster) { // before the task can finish, or be delivered, and drop the payload
			q.payloadBytes.Add(c.Size)
			if c.File != "" {
				q.need(c.File)
			}
		})
	}
	if err := tx.insertNetwork(q, r, uid, now); err != nil {
		return err
	}
	tx.after = append(tx.after, func(ro *roster) { ro.hurry(r.IndexUID, r.Content) })
	if c, ok := r.Content.(CancelTasks); ok {
		tx.after = append(tx.after, func(ro *roster) {
			for _, run := range ro.running {
				run.cancelFor(c)
			}
		})
	}
	return nil
}

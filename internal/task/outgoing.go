package task

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"svc/internal/apierr"
	"svc/internal/boltfile"
)

// Next returns the first request that a remote has not got, nil for none.
func (q *Queue) Next(remote string) (*Outgoing, error) {
	for last := int64(-1); ; {
		q.outbox.mu.Lock()
		uids := q.outbox.pending[remote]
		q.outbox.mu.Unlock()
		if len(uids) == 0 {
			return nil, nil
		}
		e, err := q.outgoing(uids[0])
		if err != nil {
			return nil, err
		}
		if e != nil && slices.Contains(e.Pending, remote) {
			return e, nil
		}
		// It was given up meanwhile: what comes behind it may stay.
		if last == int64(uids[0]) {
			return nil, &apierr.Corruption{File: q.file, Section: string(outboxBucket), Offset: -1, Reason: fmt.Sprintf("the request of task %d is not found where it was", last)}
		}
		last = int64(uids[0])
	}
}

// Lacks reports whether a remote has not got the request of a task.
func (q *Queue) Lacks(remote string, uid uint32) bool {
	q.outbox.mu.Lock()
	defer q.outbox.mu.Unlock()
	_, found := slices.BinarySearch(q.outbox.pending[remote], uid)
	return found
}

// outgoing reads a request of the outbox, nil for none.
func (q *Queue) outgoing(uid uint32) (e *Outgoing, err error) {
	err = q.read(func(_ *roster, tx *boltfile.Tx) error {
		b := tx.Bucket(outboxBucket)
		if b == nil {
			return nil
		}
		v, err := b.Get(key(uid))
		if err != nil {
			return err
		}
		if v != nil {
			if e, err = decodeOutgoing(key(uid), v); err != nil {
				return &apierr.Corruption{File: q.file, Section: string(outboxBucket), Offset: -1, Reason: fmt.Sprintf("task %d: %v", uid, err)}
			}
		}
		return nil
	}, nil)
	return e, err
}

// OpenOutgoing opens the documents of a request, NDJSON.
func (q *Queue) OpenOutgoing(e *Outgoing) (io.ReadCloser, error) {
	f, err := q.fs.Open(q.payloadPath(e.File))
	if err != nil {
		return nil, fmt.Errorf("cannot open the payload of task %d: %w", e.UID, err)
	}
	return f, nil
}

// Delivered records the outcome of a request at a remote. done says that the remote has it or never will, so that the next request
// follows.
func (q *Queue) Delivered(uid uint32, remote string, r RemoteTask, done bool) error {
	return q.delivered([]uint32{uid}, remote, r, done)
}

// delivered stores what a remote answered to the requests of some tasks, in one transaction. done says that the remote no longer needs
// them. A payload that no other remote needs is then removed.
func (q *Queue) delivered(uids []uint32, remote string, r RemoteTask, done bool) error {
	var drops []string
	err := q.update(func(tx *txn) error {
		drops = drops[:0]
		for _, uid := range uids {
			if err := tx.noteRemote(uid, remote, r); err != nil {
				return err
			}
			if !done {
				continue
			}
			drop, err := tx.settle(uid, remote)
			if err != nil {
				return err
			}
			if drop != "" {
				drops = append(drops, drop)
			}
		}
		return nil
	})
	if err == nil {
		q.dropPayloads(drops)
	}
	return err
}

// noteRemote records in a task what happened to it at a remote. The task may be deleted; its request is delivered nevertheless.
func (tx *txn) noteRemote(uid uint32, remote string, r RemoteTask) error {
	rec, err := tx.record(uid)
	if err != nil || rec == nil || rec.network == nil {
		return err
	}
	var l leaderNetwork
	if err := json.Unmarshal(rec.network, &l); err != nil {
		return err
	}
	if l.RemoteTasks == nil {
		l.RemoteTasks = map[string]json.RawMessage{}
	}
	l.RemoteTasks[remote] = encode(r)
	rec.network = encodeSorted(l)
	return tx.put(uid, rec)
}

// settle removes a remote from a request of the outbox, and the request itself with its last remote. drop is the payload to remove
// with it.
func (tx *txn) settle(uid uint32, remote string) (drop string, err error) {
	b := tx.tx.Bucket(outboxBucket)
	if b == nil {
		return "", nil
	}
	v, err := b.Get(key(uid))
	if v == nil || err != nil {
		return "", err
	}
	e, err := decodeOutgoing(key(uid), v)
	if err != nil {
		return "", err
	}
	was := e.Pending
	e.Pending = slices.DeleteFunc(slices.Clone(was), func(p string) bool { return p == remote })
	delete(e.Bodies, remote)
	if len(e.Pending) == 0 {
		err, drop = b.Delete(key(uid)), e.File
	} else {
		err = boltfile.Put(b, key(uid), encodeSorted(e))
	}
	tx.effects.outgoing = append(tx.effects.outgoing, outgoingEffect{was, e})
	return drop, err
}

// abandonedAtOnce bounds the requests that one transaction gives up.
const abandonedAtOnce = 1000

// Abandon removes a remote from the requests of the outbox up to the task last, including those that it has not received. Their tasks
// show why as the reason.
func (q *Queue) Abandon(remote string, last uint32, why *apierr.Error) error {
	for {
		q.outbox.mu.Lock()
		uids := q.outbox.pending[remote] // in ascending order
		i, found := slices.BinarySearch(uids, last)
		if found {
			i++
		}
		uids = slices.Clone(uids[:min(i, abandonedAtOnce)])
		q.outbox.mu.Unlock()
		if len(uids) == 0 {
			return nil
		}
		if err := q.delivered(uids, remote, RemoteTask{Err: why}, true); err != nil {
			return err
		}
	}
}

// Lag is what a remote has not got.
type Lag struct {
	Requests int
	Bytes    int64
	Oldest   time.Time // when the first of them was accepted; zero: none
}

// Lags returns what each remote has not got. Those that have everything are not in it.
func (q *Queue) Lags() map[string]Lag {
	q.outbox.mu.Lock()
	defer q.outbox.mu.Unlock()
	lags := make(map[string]Lag, len(q.outbox.pending))
	for remote, uids := range q.outbox.pending {
		l := Lag{Requests: len(uids)}
		for _, uid := range uids {
			if fact := q.outbox.entries[uid]; fact != nil {
				l.Bytes += fact.size
				if l.Oldest.IsZero() {
					l.Oldest = fact.since
				}
			}
		}
		lags[remote] = l
	}
	return lags
}

// Lacking returns the remotes that have not got everything.
func (q *Queue) Lacking() []string {
	q.outbox.mu.Lock()
	defer q.outbox.mu.Unlock()
	return slices.Collect(maps.Keys(q.outbox.pending))
}

// LacksSince returns when the first request that a remote has not got was accepted; false: it has everything.
func (q *Queue) LacksSince(remote string) (time.Time, bool) {
	q.outbox.mu.Lock()
	defer q.outbox.mu.Unlock()
	uids := q.outbox.pending[remote]
	if len(uids) == 0 || q.outbox.entries[uids[0]] == nil {
		return time.Time{}, false
	}
	return q.outbox.entries[uids[0]].since, true
}

// OutboxBytes returns the size of all requests that are not yet delivered everywhere.
func (q *Queue) OutboxBytes() int64 {
	q.outbox.mu.Lock()
	defer q.outbox.mu.Unlock()
	return q.outbox.bytes
}

// holdOutgoing has the payloads of all requests stay until each of them is unneeded, and returns them.
func (q *Queue) holdOutgoing() (files []string) {
	q.outbox.mu.Lock()
	defer q.outbox.mu.Unlock()
	for _, fact := range q.outbox.entries {
		if fact.file != "" {
			q.outbox.files[fact.file]++
			files = append(files, fact.file)
		}
	}
	return files
}

// need and unneed count the users of a payload: its task, until it is finished, and its request, until it is delivered.
func (q *Queue) need(file string) {
	q.outbox.mu.Lock()
	defer q.outbox.mu.Unlock()
	q.outbox.files[file]++
}

// unneed reports whether the payload has no user left, so that the caller removes it.
func (q *Queue) unneed(file string) (unneeded bool) {
	q.outbox.mu.Lock()
	defer q.outbox.mu.Unlock()
	q.outbox.files[file]--
	if q.outbox.files[file] > 0 {
		return false
	}
	delete(q.outbox.files, file)
	return true
}

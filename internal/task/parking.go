package task

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
)

// The first and the longest pause between two tries of a parked batch.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// machineCodes are errors caused by the machine alone: the same batch succeeds once the machine is repaired.
var machineCodes = []apierr.Code{noSpace, "too_many_open_files", "io_error", "invalid_store_file"}

// machineAtFault reports whether a batch failed for what the machine lacks, or has damaged.
func machineAtFault(err error) bool {
	return apierr.IsCorruption(err) || slices.Contains(machineCodes, apierr.From(err).Code)
}

// ParkingReasons are the codes of all errors for which indexes are parked.
func ParkingReasons() []string {
	var names []string
	for _, code := range append(slices.Clone(machineCodes), notEmbedded) {
		names = append(names, string(code))
	}
	return names
}

const noSpace apierr.Code = "no_space_left_on_device"

// parkedError ends a try of a batch whose tasks stay enqueued.
type parkedError struct{ reason *apierr.Error }

func (e *parkedError) Error() string { return "the batch will be retried: " + e.reason.Message }

// parking is an index whose tasks wait after a failure of the machine or of an embedder. It is immutable.
type parking struct {
	reason  *apierr.Error
	since   time.Time
	tries   int
	next    time.Time // not before
	retries int       // calls to an embedder so far: the next batch continues the count
}

// Parked says why tasks of an index wait although it is their turn, since when, and how often they were tried.
type Parked struct {
	IndexUID string
	Reason   *apierr.Error
	Since    time.Time
	Tries    int
	Next     time.Time
}

// Parked lists the indexes, by uid, whose tasks wait until the machine or an embedder works again.
func (q *Queue) Parked() []Parked {
	q.roster.mu.RLock()
	defer q.roster.mu.RUnlock()
	var all []Parked
	for uid, p := range q.roster.waits().indexes {
		all = append(all, Parked{uid, p.reason, p.since, p.tries, p.next})
	}
	slices.SortFunc(all, func(a, b Parked) int { return strings.Compare(a.IndexUID, b.IndexUID) })
	return all
}

// waits holds the reasons why tasks wait although it is their turn: by index for enqueued tasks, and by batch for tasks of running
// batches.
type waits struct {
	indexes map[string]*parking
	batches map[uint32]*parking
}

// waits returns why tasks wait now, as it stays. The lock is held.
func (ro *roster) waits() waits {
	w := waits{indexes: maps.Clone(ro.parked)}
	for _, run := range ro.running {
		p := run.waitsForEmbedder()
		if p == nil {
			continue
		}
		if w.indexes == nil {
			w.indexes = map[string]*parking{}
		}
		if w.batches == nil {
			w.batches = map[uint32]*parking{}
		}
		w.batches[run.uid] = p
		for _, uid := range run.touched() {
			w.indexes[uid] = p
		}
	}
	return w
}

// park makes the indexes of a batch wait, each time longer.
func (q *Queue) park(run *running, reason *apierr.Error) {
	uids := run.touched()
	now := q.now()
	q.roster.mu.Lock()
	pause, tries, since := firstPause, 1, now
	for _, uid := range uids {
		if p := q.roster.parked[uid]; p != nil {
			tries = max(tries, p.tries+1)
			if p.since.Before(since) {
				since = p.since
			}
		}
	}
	for range tries - 1 {
		pause = min(2*pause, longestPause)
	}
	for _, uid := range uids {
		q.roster.parked[uid] = &parking{reason: reason, since: since, tries: tries, next: now.Add(pause)}
	}
	q.roster.mu.Unlock()
	q.log.Error("a batch cannot finish because of the machine; its tasks stay enqueued and are retried",
		"indexes", uids, "tasks", len(run.tasks), "error", reason, "tries", tries, "after", pause)
}

// unpark forgets that the indexes of a batch waited: it has ended.
func (ro *roster) unpark(run *running) {
	if len(ro.parked) == 0 {
		return
	}
	for _, uid := range run.touched() {
		delete(ro.parked, uid)
	}
}

// hurry retries a waiting index at once when a new task may resolve the wait: one that drops what cannot be written or
// embedded, or changes the settings that wait for an embedder.
func (ro *roster) hurry(indexUID string, c Content) {
	drops := makesRoom(c)
	if p := ro.parked[indexUID]; p != nil && drops {
		ro.parked[indexUID] = p.hurried()
	}
	_, changes := c.(UpdateSettings)
	for _, run := range ro.running {
		if (drops || changes && run.kinds == 1<<SettingsUpdate) && slices.Contains(run.touched(), indexUID) {
			run.yield(true)
		}
	}
}

// hurried returns the same parking for a batch that is to run at once, with all of its retries.
func (p *parking) hurried() *parking {
	return &parking{reason: p.reason, since: p.since, tries: p.tries}
}

// hurryAll lets all indexes that wait for disk space retry at once, because there may be space now.
func (ro *roster) hurryAll() {
	for uid, p := range ro.parked {
		if p.reason.Code == noSpace {
			ro.parked[uid] = p.hurried()
		}
	}
}

// outOfRoom returns the reason when a batch waits for room on the disk: nothing that takes more of it is accepted then.
func (q *Queue) outOfRoom() *apierr.Error {
	q.roster.mu.RLock()
	defer q.roster.mu.RUnlock()
	for _, p := range q.roster.parked {
		if p.reason.Code == noSpace {
			return p.reason
		}
	}
	return nil
}

// held returns the waiting tasks that cannot run yet because an index is parked or has a running batch. due is when the first parked
// index is retried, or zero. Tasks of several indexes hold back later tasks of each.
func (ro *roster) held(waiting *roaring.Bitmap, clock func() time.Time) (held *roaring.Bitmap, due time.Time) {
	held = roaring.New()
	if len(ro.parked) == 0 && len(ro.running) == 0 {
		return held, due
	}
	now := clock()
	hold := func(id nameID, from uint32) {
		set := roaring.And(waiting, ro.byName[id])
		set.RemoveRange(0, uint64(from))
		held.Or(set)
	}
	for uid, p := range ro.parked {
		if !p.next.After(now) {
			continue
		}
		if due.IsZero() || p.next.Before(due) {
			due = p.next
		}
		if id, ok := ro.names.id(uid); ok && ro.byName[id] != nil {
			hold(id, 0)
		}
	}
	for _, run := range ro.running {
		for _, uid := range run.touched() {
			if id, ok := ro.names.id(uid); ok && ro.byName[id] != nil {
				hold(id, 0)
			}
		}
	}
	if held.IsEmpty() {
		return held, due
	}
	several := roaring.New()
	for k := range kinds {
		if kinds[k].several {
			several.Or(ro.byKind[k])
		}
	}
	several.And(waiting)
	if !several.Intersects(held) {
		return held, due
	}
	names := map[nameID]*roaring.Bitmap{} // that such tasks have: few of all
	for id, set := range ro.byName {
		if set.Intersects(several) {
			names[id] = set
		}
	}
	for it := several.Iterator(); it.HasNext(); {
		uid := it.Next()
		if !held.Contains(uid) {
			continue
		}
		for id, set := range names {
			if set.Contains(uid) {
				hold(id, uid)
			}
		}
	}
	return held, due
}

// waitsFor notes of a task why it waits.
func (t *Task) waitsFor(w waits) {
	switch {
	case t.Status == Enqueued && t.IndexUID != "":
		t.parked = w.indexes[t.IndexUID]
	case t.Status == Processing && t.BatchUID != nil:
		t.parked = w.batches[*t.BatchUID]
	}
}

// appendJSON appends the member of a task's object that says why it waits.
func (p *parking) appendJSON(b []byte) []byte {
	b = append(b, `,"parked":{"reason":`...)
	b = p.reason.AppendJSON(b)
	b = append(b, `,"since":`...)
	b = appendTime(b, p.since)
	b = append(b, `,"tries":`...)
	b = strconv.AppendInt(b, int64(p.tries), 10)
	b = append(b, `,"nextTryAt":`...)
	b = appendTime(b, p.next)
	return append(b, '}')
}

// asParked returns the reason of a parked batch in err's chain.
func asParked(err error) (*apierr.Error, bool) {
	var p *parkedError
	if errors.As(err, &p) {
		return p.reason, true
	}
	return nil, false
}

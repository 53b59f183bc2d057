package index

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/mapped"
	"svc/internal/numeric"
	"svc/internal/settings"
	"svc/segment"
)

// Documents of an index with the setting timeToLive expire. This happens in two steps with different clocks:
//
// First, an expired document is hidden. Readers get a view derived from the current one, in which the rows of expired documents are
// deleted. So searches, counts, caches and reads by id need no special code, and a cached result ends with the view that it belongs
// to. A derived view is made when the wall clock passes the expiry of the next document, at most once a second. It is never written:
// writers, merges, dumps and snapshots use the current view. If the clock is set back, the documents are visible again.
//
// Then a task (DeleteExpired) deletes expired documents, some time later and many at once. The task has a moment, and deletes what
// has expired then by the settings of the index when it runs. It does not read the clock, so it does the same after a crash and on
// another host. Package task chooses the moment such that a jumping clock deletes nothing early; see task/expire.go.
//
// Until the task runs, the document is stored: partial updates apply to it, and one that moves its expiry makes it visible again.

// expiring is what a view with a time to live caches of its derived view.
type expiring struct {
	latest atomic.Pointer[derived]
	mu     sync.Mutex           // held to replace latest
	known  map[*file]hiddenRows // of the previous state, until latest is set
}

// inherit takes over what is known about the segments of the previous state.
func (v *View) inherit(before *View) {
	if v.expiring == nil || before.expiring == nil || v.Settings.TimeToLive.Attribute != before.Settings.TimeToLive.Attribute {
		return
	}
	before.expiring.mu.Lock()
	defer before.expiring.mu.Unlock()
	d := before.expiring.latest.Load()
	if d == nil {
		v.expiring.known = before.expiring.known
		return
	}
	v.expiring.known = make(map[*file]hiddenRows, len(d.hidden))
	for i, h := range d.hidden {
		v.expiring.known[before.files[i]] = h
	}
}

// derived is a view without the documents that have expired. It is right from since until before until, in seconds since 1970.
type derived struct {
	view         *View // nil: nothing has expired
	since, until int64
	hidden       []hiddenRows // by segment of the view that it is derived from
}

// hiddenRows are the rows of a segment that have numbers, all of them below an ordinal. They may include deleted rows.
type hiddenRows struct {
	below int
	rows  *roaring.Bitmap // nil: none
}

// ReadView is View for readers that do not search: it reads nothing ahead. Expired documents are hidden.
func (ix *Index) ReadView() (*View, error) {
	v, err := ix.PlainView()
	if err != nil || v.expiring == nil {
		return v, err
	}
	return v.unexpired(ix.options.Now)
}

// unexpired returns the view without the documents that have expired, for a reference to this one, which it takes over.
func (v *View) unexpired(clock func() time.Time) (*View, error) {
	d, err := v.derivedAt(clock)
	if err != nil {
		v.Release()
		return nil, err
	}
	if d == nil {
		return v, nil
	}
	v.Release()
	return d, nil
}

// derivedAt returns the derived view of now with a reference for the caller, who holds v. It returns nil if nothing has expired.
func (v *View) derivedAt(clock func() time.Time) (*View, error) {
	e := v.expiring
	if d := e.latest.Load(); d.covers(clock().Unix()) && (d.view == nil || d.view.retain()) {
		return d.view, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := clock().Unix() // it may have been a second before others got the lock
	d := e.latest.Load()
	if !d.covers(now) {
		var next *derived
		if err := mapped.Guard(func() error { next = v.derive(now, d); return nil }); err != nil {
			return nil, err
		}
		e.latest.Store(next)
		e.known = nil
		if d != nil && d.view != nil {
			d.view.Release()
		}
		d = next
	}
	if d.view != nil {
		d.view.retain() // the cache has a reference, and mu keeps it
	}
	return d.view, nil
}

func (d *derived) covers(now int64) bool { return d != nil && d.since <= now && now < d.until }

// drop releases the derived view. No other goroutine may take one meanwhile.
func (e *expiring) drop() {
	if d := e.latest.Swap(nil); d != nil && d.view != nil {
		d.view.Release()
	}
}

// derive makes the derived view of a moment. before is that of an earlier moment, whose rows it reuses, or nil.
func (v *View) derive(now int64, before *derived) *derived {
	d := &derived{since: math.MinInt64, until: math.MaxInt64, hidden: make([]hiddenRows, len(v.files))}
	ttl := v.Settings.TimeToLive
	id, known := v.Fields.ID(ttl.Attribute)
	if !known {
		return d
	}
	var files []*file
	var lives []segment.Live
	hides := false
	for i, l := range v.Segments {
		c := l.Column(id)
		if c == nil || c.Numbers() == 0 {
			files, lives = append(files, v.files[i]), append(lives, l)
			continue
		}
		was := v.expiring.known[v.files[i]]
		if before != nil {
			was = before.hidden[i]
		}
		h := hiddenBefore(c, firstAfter(c, ttl, now), was)
		d.hidden[i] = h
		if h.below > 0 {
			d.since = max(d.since, expiryOf(c, h.below-1, ttl))
		}
		if h.below < c.Numbers() {
			d.until = min(d.until, expiryOf(c, h.below, ttl))
		}
		if h.rows != nil && (l.Deleted == nil || h.rows.AndCardinality(l.Deleted) < h.rows.GetCardinality()) {
			hides = true
			l.Deleted = union(l.Deleted, h.rows)
			if liveCount(l) == 0 {
				continue
			}
		}
		files, lives = append(files, v.files[i]), append(lives, l)
	}
	if !hides {
		return d
	}
	d.view = v.successor()
	d.view.Generation = v.Generation
	d.view.show(v.shardsOf.results, files, lives)
	d.view.expiring = nil
	d.view.keep(v.kept)
	return d
}

// firstAfter returns the first ordinal of a number whose documents have not expired at a moment.
func firstAfter(c *segment.Column, ttl *settings.TimeToLive, now int64) int {
	return c.SearchNumber(numeric.Value{Float: math.Nextafter(float64(now-int64(ttl.Seconds)), math.Inf(1))})
}

// expiryOf returns the first second in which a document with the number of an ordinal has expired, if it has no greater one.
func expiryOf(c *segment.Column, ord int, ttl *settings.TimeToLive) int64 {
	const far = 1 << 62
	at := math.Ceil(c.Number(ord).Float) + float64(ttl.Seconds)
	return int64(min(max(at, -far), far))
}

// hiddenBefore returns the rows with a number below an ordinal and none from there on. was is the result for another ordinal.
func hiddenBefore(c *segment.Column, below int, was hiddenRows) hiddenRows {
	if below <= 0 {
		return hiddenRows{}
	}
	if below < was.below {
		was = hiddenRows{}
	}
	if below == was.below {
		return was
	}
	more := roaring.New()
	c.AddNumberRows(more, was.below, below)
	var ordinals, stay []uint32
	for it := more.Iterator(); it.HasNext(); {
		row := it.Next()
		ordinals = c.RowNumbers(ordinals[:0], segment.Row(row))
		if n := len(ordinals); n > 0 && int(ordinals[n-1]) >= below {
			stay = append(stay, row)
		}
	}
	for _, row := range stay {
		more.Remove(row)
	}
	return hiddenRows{below, union(was.rows, more)}
}

// deleteExpired deletes the documents that had expired at a moment. It looks at the state before the batch, so documents that the
// batch has changed stay.
func (b *batch) deleteExpired(moment int64) (int, error) {
	ttl := b.base.Settings.TimeToLive
	if ttl == nil || b.cleared {
		return 0, nil
	}
	id, known := b.base.Fields.ID(ttl.Attribute)
	if !known {
		return 0, nil
	}
	deleted := 0
	for seg, l := range b.base.Segments {
		rows, err := expiredRows(l, id, ttl, moment)
		if err != nil {
			return deleted, err
		}
		for it := rows.Iterator(); it.HasNext(); {
			if n := b.numberAt(seg, segment.Row(it.Next())); b.states.at(n).head == stored {
				b.remove(n)
				deleted++
			}
		}
	}
	return deleted, nil
}

// expiredRows returns the live rows of a segment whose documents had expired at a moment.
func expiredRows(l segment.Live, id segment.FieldID, ttl *settings.TimeToLive, moment int64) (*roaring.Bitmap, error) {
	rows := roaring.New()
	err := mapped.Guard(func() error {
		c := l.Column(id)
		if c == nil {
			return nil
		}
		if h := hiddenBefore(c, firstAfter(c, ttl, moment), hiddenRows{}); h.rows != nil {
			rows = h.rows
			if l.Deleted != nil {
				rows = roaring.AndNot(rows, l.Deleted)
			}
		}
		return nil
	})
	return rows, err
}

// Expired returns the uids of the indexes with documents that had expired at a moment. It looks at open indexes only and does not
// count as use: an unused index is closed in time, and keeps its expired documents until it is opened again.
func (c *Catalog) Expired(moment time.Time) (uids []string) {
	for _, ix := range c.loaded.byUse() {
		v := ix.current.Load()
		if v.Settings.TimeToLive == nil || v.evicted || !v.retain() {
			continue
		}
		if v.anyExpired(moment.Unix()) {
			uids = append(uids, v.UID)
		}
		v.Release()
	}
	return uids
}

// anyExpired reports whether a document of the view had expired at a moment. It ignores damage, which callers that need
// the data report.
func (v *View) anyExpired(moment int64) bool {
	id, known := v.Fields.ID(v.Settings.TimeToLive.Attribute)
	if !known {
		return false
	}
	for _, l := range v.Segments {
		if rows, err := expiredRows(l, id, v.Settings.TimeToLive, moment); err == nil && !rows.IsEmpty() {
			return true
		}
	}
	return false
}

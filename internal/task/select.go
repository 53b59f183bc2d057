package task

import (
	"math"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/boltfile"
)

// bounds returns the limits of one date of a filter, in nanoseconds, exclusive. ok is false if there are none.
func bounds(after, before time.Time) (lo, hi int64, ok bool) {
	lo, hi = math.MinInt64, math.MaxInt64
	if !after.IsZero() {
		lo = clampedNanos(after)
	}
	if !before.IsZero() {
		hi = clampedNanos(before)
	}
	return lo, hi, !after.IsZero() || !before.IsZero()
}

// clampedNanos is t in nanoseconds since 1970, or the nearest number where that has more than 64 bits: outside the years 1678 to 2261.
func clampedNanos(t time.Time) int64 {
	switch {
	case t.Year() < 1678:
		return math.MinInt64
	case t.Year() > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

// selectTasks returns the matching tasks; the caller owns the set. tx is read for f.BatchUIDs.
func (r *roster) selectTasks(f *Filter, tx *boltfile.Tx) (*roaring.Bitmap, error) {
	set := r.tasks.Clone()
	if f.changed != nil {
		set.And(f.changed)
	}
	if f.UIDs != nil {
		set.And(roaring.BitmapOf(f.UIDs...))
	}
	if f.Statuses != nil {
		var parts []*roaring.Bitmap
		for _, s := range f.Statuses {
			switch {
			case s == Enqueued:
				parts = append(parts, r.enqueued())
			case s == Processing:
				parts = append(parts, r.running.tasks())
			default:
				parts = append(parts, roaring.AndNot(r.byStatus[s], r.running.tasks()))
			}
		}
		set.And(roaring.FastOr(parts...))
	}
	if f.Kinds != nil {
		var parts []*roaring.Bitmap
		for _, k := range f.Kinds {
			parts = append(parts, r.byKind[k])
		}
		set.And(roaring.FastOr(parts...))
	}
	if f.IndexUIDs != nil {
		var parts []*roaring.Bitmap
		for _, uid := range f.IndexUIDs {
			parts = append(parts, r.named(uid))
		}
		set.And(roaring.FastOr(parts...))
		r.withoutGlobal(set)
	}
	if f.CanceledBy != nil {
		var parts []*roaring.Bitmap
		for _, by := range f.CanceledBy {
			if s := r.canceledBy[by]; s != nil {
				parts = append(parts, s)
			}
		}
		set.And(roaring.FastOr(parts...))
	}
	if f.BatchUIDs != nil {
		of, err := r.tasksOf(f.BatchUIDs, tx)
		if err != nil {
			return nil, err
		}
		set.And(of)
	}
	if lo, hi, ok := bounds(f.AfterEnqueuedAt, f.BeforeEnqueuedAt); ok {
		r.times.keepBetween(set, enqueuedAt, lo, hi)
	}
	if lo, hi, ok := bounds(f.AfterStartedAt, f.BeforeStartedAt); ok {
		taken := roaring.And(set, r.running.tasks())
		set.AndNot(taken)
		r.times.keepBetween(set, startedAt, lo, hi)
		for _, run := range r.running {
			if at := toNanos(run.startedAt); lo < at && at < hi {
				set.Or(roaring.And(taken, run.set))
			}
		}
	}
	if lo, hi, ok := bounds(f.AfterFinishedAt, f.BeforeFinishedAt); ok {
		set.AndNot(r.running.tasks())
		r.times.keepBetween(set, finishedAt, lo, hi)
	}
	if f.Allowed != nil {
		r.withoutGlobal(set)
		var others []*roaring.Bitmap
		r.names.each(func(uid string, id nameID) {
			if s := r.byName[id]; s != nil && !f.Allowed(uid) {
				others = append(others, s)
			}
		})
		set.AndNot(roaring.FastOr(others...))
	}
	return set, nil
}

// withoutGlobal removes the tasks that belong to no index. Keys that are limited to some indexes do not see
// them.
func (r *roster) withoutGlobal(set *roaring.Bitmap) {
	for k, s := range r.byKind {
		if Kind(k).Global() {
			set.AndNot(s)
		}
	}
}

// tasksOf returns the tasks of batches that are still stored. It reads a batch once, however often a client names it.
func (r *roster) tasksOf(batches []uint32, tx *boltfile.Tx) (*roaring.Bitmap, error) {
	of := roaring.New()
	for it := roaring.BitmapOf(batches...).Iterator(); it.HasNext(); {
		uid := it.Next()
		if run := r.running.batch(uid); run != nil {
			of.Or(run.set)
			continue
		}
		b, tasks, err := storedBatchOf(tx.Bucket(batchBucket), uid, nil)
		if err != nil {
			return nil, err
		}
		if b != nil {
			of.Or(tasks)
		}
	}
	return of, nil
}

// batchesOf returns the batches that hold, or held before they were canceled, any of the tasks.
func (r *roster) batchesOf(tasks *roaring.Bitmap, tx *boltfile.Tx) (*roaring.Bitmap, error) {
	of := roaring.New()
	bucket := tx.Bucket(taskBucket)
	var rec record
	for it := tasks.Iterator(); it.HasNext(); {
		uid := it.Next()
		if run := r.running.holding(uid); run != nil {
			of.Add(run.uid)
			continue
		}
		found, err := readHead(bucket, uid, &rec)
		if err != nil {
			return nil, err
		}
		if found && rec.batch != noUID {
			of.Add(rec.batch)
		}
	}
	return of, nil
}

// selectBatches returns the matching batches; the caller owns the set. Each
// list of f selects for itself: a batch with a failed task and a task of index
// x matches statuses=failed&indexUids=x even when these are two tasks.
func (r *roster) selectBatches(f *Filter, tx *boltfile.Tx) (*roaring.Bitmap, error) {
	set := r.visibleBatches(f.Allowed, f.IndexUIDs)
	if f.changed != nil {
		set.And(f.changed)
	}
	visible := r.running // those that are visible
	for _, run := range r.running {
		if !set.Contains(run.uid) {
			visible = visible.without(run)
		}
	}
	if f.BatchUIDs != nil {
		set.And(roaring.BitmapOf(f.BatchUIDs...))
	}
	if f.Statuses != nil {
		match := roaring.New()
		for _, s := range f.Statuses {
			match.Or(r.batchesByStatus[s])
			for _, run := range visible {
				if s == Processing {
					match.Add(run.uid)
				}
			}
		}
		set.And(match)
	}
	if f.Kinds != nil {
		match := roaring.New()
		for _, k := range f.Kinds {
			match.Or(r.batchesByKind[k])
			for _, run := range visible {
				if run.has(1 << k) {
					match.Add(run.uid)
				}
			}
		}
		set.And(match)
	}
	if f.UIDs != nil {
		of, err := r.batchesOf(roaring.And(r.tasks, roaring.BitmapOf(f.UIDs...)), tx)
		if err != nil {
			return nil, err
		}
		set.And(of)
	}
	if f.CanceledBy != nil {
		by := roaring.New()
		for _, uid := range f.CanceledBy {
			if r.canceledBy[uid] != nil {
				by.Add(uid)
			}
		}
		of, err := r.batchesOf(by, tx)
		if err != nil {
			return nil, err
		}
		set.And(of)
	}
	// between keeps the batches whose values in all columns are inside the bounds, and the running ones whose value is.
	between := func(after, before time.Time, columns []int, times func(*running) (oldest, newest int64)) {
		lo, hi, ok := bounds(after, before)
		if !ok {
			return
		}
		var keep []uint32
		for _, run := range visible {
			if !set.CheckedRemove(run.uid) { // it has no row in the columns
				continue
			}
			if oldest, newest := times(run); oldest != 0 && (oldest > lo && oldest < hi || newest > lo && newest < hi) {
				keep = append(keep, run.uid)
			}
		}
		matches := roaring.New()
		for _, c := range columns {
			m := set.Clone()
			r.batchTimes.keepBetween(m, c, lo, hi)
			matches.Or(m)
		}
		set = matches
		set.AddMany(keep)
	}
	between(f.AfterEnqueuedAt, f.BeforeEnqueuedAt, []int{oldestEnqueued, newestEnqueued}, func(run *running) (int64, int64) { return run.oldest, run.newest })
	between(f.AfterStartedAt, f.BeforeStartedAt, []int{startedAt}, func(run *running) (int64, int64) { n := toNanos(run.startedAt); return n, n })
	between(f.AfterFinishedAt, f.BeforeFinishedAt, []int{finishedAt}, func(*running) (int64, int64) { return 0, 0 })
	return set, nil
}

// visibleBatches returns the batches, including running ones, with a task of a requested index that the caller may see. The set
// belongs to the caller.
func (r *roster) visibleBatches(allowed func(string) bool, indexUIDs []string) *roaring.Bitmap {
	if allowed == nil && indexUIDs == nil {
		set := r.batches.Clone()
		for _, run := range r.running {
			set.Add(run.uid)
		}
		return set
	}
	set := roaring.New()
	take := func(uid string) {
		if allowed != nil && !allowed(uid) {
			return
		}
		if s := r.batchesByIndex[uid]; s != nil {
			set.Or(s)
		}
		for _, run := range r.running {
			if run.indexes[uid] {
				set.Add(run.uid)
			}
		}
	}
	if indexUIDs != nil {
		for _, uid := range indexUIDs {
			take(uid)
		}
		return set
	}
	for uid := range r.batchesByIndex {
		take(uid)
	}
	for _, run := range r.running {
		for uid := range run.indexes {
			take(uid)
		}
	}
	return set
}

package index

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"svc/internal/mapped"
	"svc/internal/pace"
	"svc/segment"
)

// A batch that changes counters, prices or stocks in many documents changes no word. The segments of these documents are
// recast: written again with new documents and columns, while a merge copies the words as they are.
//
// Recasting only saves time. If it fails for a segment, the batch indexes the changed documents of that segment like any others.

// recasting is a segment that may be recast.
type recasting struct {
	file    *file
	seg     int
	ctx     context.Context              // ends with the batch, or when the gate of merges closes
	changes []rowChange                  // by row; once compared, those that change no word
	columns map[segment.FieldID]struct{} // whose values change
	fields  map[segment.FieldID]struct{} // that a document may get or lose
	states  []int32                      // by row of the output; -1: as stored
	written *file
	failed  atomic.Bool
}

// rowChange is a stored document that the batch gives a new version.
type rowChange struct {
	row   segment.Row
	state int32
}

// recastSegments recasts segments, and leaves the other documents to write. The caller calls end after the commit, also after an
// error. The only error is that of the batch's context. compared says that segments were compared, so that these steps were reported.
func (b *batch) recastSegments(c *change, next *View) (compared bool, end func(), err error) {
	var merges []*merge
	end = func() {
		for _, m := range merges {
			b.ix.merges.end(m)
		}
	}
	// Settings, embedders, vectors and elements change more than documents and columns: a merge does not copy what they need.
	if b.settings != b.base.Settings || b.primaryKey != b.base.PrimaryKey || len(b.plans) > 0 || b.versions.vectors || next.Fields.HasElements() {
		return false, end, nil
	}
	var plans []*recasting
	for _, r := range b.recastable() {
		ctx, m, ok := b.ix.merges.begin(b.ctx, []*file{r.file}) // no merge has the segment meanwhile
		if !ok {
			continue
		}
		merges = append(merges, m)
		if slices.Contains(b.ix.current.Load().files, r.file) { // else a merge has replaced it since the batch began
			r.ctx = ctx
			plans = append(plans, r)
		}
	}
	if len(plans) == 0 {
		return false, end, b.ctx.Err()
	}
	b.report.enter(1, recastSteps, 0)
	if plans = b.compare(plans, next); len(plans) == 0 {
		return true, end, b.ctx.Err()
	}
	b.report.enter(1, recastSteps, 1)
	total := 0
	for _, r := range plans {
		total += len(r.changes)
	}
	progress := b.counter(2, total)
	share := max(b.builderShare(min(b.threads(), len(plans))), b.ix.catalog.builderBytes)
	var group errgroup.Group
	crew := b.newCrew(&group)
	for _, r := range plans {
		crew.Go(func(p *pace.Worker) error {
			r.try(func() error { return b.recastOne(r, next, share, p, progress) })
			return nil
		})
	}
	_ = group.Wait() // each segment has its own error
	if err := b.ctx.Err(); err != nil {
		for _, r := range plans {
			if r.written != nil {
				r.written.discard()
			}
		}
		return true, end, err
	}
	c.recast = make(map[*file]int, len(plans))
	for _, r := range plans {
		if r.written == nil {
			continue
		}
		c.merge, c.add = append(c.merge, r.file), append(c.add, r.written)
		c.recast[r.written] = len(r.changes)
		for _, change := range r.changes {
			b.recast.Add(uint32(change.state))
		}
	}
	return true, end, nil
}

// maxMovedFields is how many fields documents of a segment may gain or lose, including nested ones: each takes two sets of rows.
const maxMovedFields = 64

// errTooLarge ends the recasting of a segment whose columns, or moved fields, need more than their share of the memory.
var errTooLarge = errors.New("the columns or fields need too much memory")

// try calls f unless the segment has failed before. An error, above all damage in the segment, leaves its documents to write.
func (r *recasting) try(f func() error) {
	if r.failed.Load() {
		return
	}
	err := r.ctx.Err()
	if err == nil {
		err = mapped.Guard(f)
	}
	if err == nil || r.failed.Swap(true) || errors.Is(err, errTooLarge) || r.ctx.Err() != nil {
		return
	}
	ix := r.file.ix
	ix.options.Logger.Warn("cannot copy the words of a segment; svc indexes its changed documents instead", slog.String("index", ix.UID()),
		slog.String("file", r.file.path()), slog.Any("error", err))
}

// recastable returns the segments in which the batch changes enough documents.
func (b *batch) recastable() []*recasting {
	of := make([]*recasting, len(b.base.files))
	count := make([]int, len(b.base.files))
	each := func(f func(seg int, row segment.Row, n int)) {
		for n := range b.states.len() {
			if s := b.states.at(n); s.before >= 0 && s.head >= 0 {
				at := b.versions.stood.at(int(s.before))
				f(int(at.seg), at.row, n)
			}
		}
	}
	each(func(seg int, _ segment.Row, _ int) { count[seg]++ })
	var all []*recasting
	for i, f := range b.base.files {
		if count[i] >= b.ix.catalog.recastRows && count[i] >= liveCount(b.base.Segments[i])/recastShare {
			of[i] = &recasting{file: f, seg: i, changes: make([]rowChange, 0, count[i]), columns: map[segment.FieldID]struct{}{},
				fields: map[segment.FieldID]struct{}{}}
			all = append(all, of[i])
		}
	}
	if len(all) == 0 {
		return nil
	}
	each(func(seg int, row segment.Row, n int) {
		if r := of[seg]; r != nil {
			r.changes = append(r.changes, rowChange{row, int32(n)})
		}
	})
	for _, r := range all {
		slices.SortFunc(r.changes, func(x, y rowChange) int { return cmp.Compare(x.row, y.row) })
	}
	return all
}

// compare returns the segments with enough changes that change no word, and drops their other changes.
func (b *batch) compare(plans []*recasting, next *View) (left []*recasting) {
	total := 0
	for _, r := range plans {
		same, sample := 0, min(recastSample, len(r.changes))
		r.try(func() error {
			k := newWordComparer(b, next.Fields)
			for i := range sample {
				ok, err := k.same(b.base.Segments[r.seg], r.changes[i*len(r.changes)/sample])
				if err != nil {
					return err
				}
				if ok {
					same++
				}
			}
			return nil
		})
		if !r.failed.Load() && 2*same >= sample {
			left = append(left, r)
			total += len(r.changes)
		}
	}
	var mu sync.Mutex
	var group errgroup.Group
	crew := b.newCrew(&group)
	progress := b.counter(2, total)
	same := make([][]bool, len(left))
	for i, r := range left {
		same[i] = make([]bool, len(r.changes))
		for from := 0; from < len(r.changes); from += chunkMoved {
			to := min(from+chunkMoved, len(r.changes))
			crew.Go(func(p *pace.Worker) error {
				k := newWordComparer(b, next.Fields)
				k.pace = p
				r.try(func() (err error) {
					for j := from; j < to && err == nil; j++ {
						if k.pace.Yield(); j%chunkDocuments == 0 && r.ctx.Err() != nil {
							return r.ctx.Err()
						}
						same[i][j], err = k.same(b.base.Segments[r.seg], r.changes[j])
					}
					return err
				})
				progress(to - from)
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(r.columns, k.changed)
				maps.Copy(r.fields, k.moved)
				return nil
			})
		}
	}
	_ = group.Wait() // each segment has its own error
	for i, r := range left {
		kept := r.changes[:0]
		for j, change := range r.changes {
			if same[i][j] {
				kept = append(kept, change)
			}
		}
		r.changes = kept
	}
	return slices.DeleteFunc(left, func(r *recasting) bool {
		return r.failed.Load() || len(r.changes) < b.ix.catalog.recastRows || len(r.changes) < liveCount(b.base.Segments[r.seg])/recastShare
	})
}

// recastOne writes a segment again. It drops rows that the batch deletes or writes elsewhere. share is of the memory, in bytes.
// It yields to searches by p.
func (b *batch) recastOne(r *recasting, next *View, share int64, p *pace.Worker, progress func(documents int)) error {
	kept := roaring.New()
	for _, change := range r.changes {
		kept.Add(uint32(change.row))
	}
	live := r.file.live(union(b.base.Segments[r.seg].Deleted, roaring.AndNot(b.gone[r.file], kept)))
	r.states = make([]int32, 0, liveCount(live))
	changes := r.changes
	for it := live.LiveRows().Iterator(); it.HasNext(); {
		if row := segment.Row(it.Next()); len(changes) > 0 && changes[0].row == row {
			r.states = append(r.states, changes[0].state)
			changes = changes[1:]
		} else {
			r.states = append(r.states, -1)
		}
	}
	k, err := b.newRecaster(r, live, next, share, p)
	if err != nil {
		return err
	}
	defer k.close()
	o := b.ix.mergeOptions(next)
	o.Columns, o.Present = k.columns.columns, k.found.rows
	written := 0
	o.Document = func(row segment.Row) ([]byte, error) {
		doc, err := k.document(row)
		if doc != nil {
			if written++; written%chunkDocuments == 0 {
				progress(chunkDocuments)
			}
		}
		return doc, err
	}
	o.Throttle = func(int) error { p.Yield(); return r.ctx.Err() }
	r.written, err = b.ix.mergeTo(r.ctx, []segment.Live{live}, o)
	return err
}

// recaster creates the documents of a recast segment. From the same documents it fills the columns whose values change, those that
// were rounded, and the fields that documents gain or lose.
type recaster struct {
	r       *recasting
	live    segment.Live
	rows    roaring.IntPeekable // of the input that are live
	read    docReader
	columns *columnCollector // without columns if there are none to fill
	with    *roaring.Bitmap  // rows of the input that have one of these
	found   *fieldFinder
	share   int64 // of the memory for columns, in bytes
}

func (b *batch) newRecaster(r *recasting, live segment.Live, next *View, share int64, p *pace.Worker) (*recaster, error) {
	if len(r.fields) > maxMovedFields {
		return nil, errTooLarge
	}
	wanted := roundedColumns(live, next.Fields)
	for id := range r.columns {
		wanted = append(wanted, id)
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	k := &recaster{r: r, live: live, rows: live.LiveRows().Iterator(), read: docReader{b: b}, columns: newColumnCollector(r.ctx, b, next.Fields, p, nil),
		with: roaring.New(), found: newFieldFinder(next.Fields, r.fields), share: share}
	if len(wanted) > 0 {
		k.columns.begin(len(r.states), wanted)
	}
	for _, id := range wanted {
		k.with.Or(live.Present(id))
	}
	return k, nil
}

func (k *recaster) close() { _ = k.read.close() } // leftovers are removed at the next open

// document returns the new document of a row of the output, valid until the next call; nil if it is as stored. Rows come in order. If the
// columns need more than their share of the memory, it returns errTooLarge.
func (k *recaster) document(row segment.Row) (doc []byte, err error) {
	from, c := k.rows.Next(), k.columns
	fills := c.columns != nil
	if fills && row%chunkDocuments == 0 && c.columns.MemoryBytes() > k.share {
		return nil, errTooLarge
	}
	c.pace.Yield()
	c.row = row
	n := int(k.r.states[row])
	if n < 0 {
		k.found.keep(row, k.live, from)
		if k.with.Contains(from) {
			err = c.read(&k.read, k.live, segment.Row(from))
		}
		return nil, err
	}
	if doc, err = k.read.document(c.b.states.at(n)); err != nil {
		return nil, err
	}
	if fills {
		if err := c.add(c.b.table.id(n), doc); err != nil {
			return nil, err
		}
	}
	return doc, k.found.find(row, doc)
}

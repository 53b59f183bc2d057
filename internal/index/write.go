package index

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"svc/internal/mapped"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// writer is the second phase of a batch: workers that are dealt the documents of a queue.
type writer struct {
	b          *batch
	ctx        context.Context
	queue      queue
	fields     *fieldTable
	analyzer   *text.Analyzer
	builder    segment.BuilderOptions
	share      int64 // of the memory, a worker, in bytes
	laterShare int64 // the same after earlySegments segments, if it is more
	chunk      int   // documents that a worker takes at once
	progress   func(documents int)
	pace       *pace.Worker // nil: the batch does not yield to searches
	beside     *pace.Worker // of the goroutines that yield to searches in any case
	written    written
	workers    int
	numbers    struct {
		sync.Mutex
		first []uint64 // of the first segments of all workers, of the second ones, and so on
	}

	valuesOnly bool // segments get no words, vectors and documents: filters alone read them
}

// item is a document to write: one from the batch, or a stored one.
type item struct {
	id    segment.DocID
	state int32 // in batch.states; < 0: it is as stored
	seg   int32
	row   segment.Row
}

// The steps inside the last outer step, without and with segments that may be recast.
var (
	indexingSteps = []string{"extracting documents", "finalizing"}
	recastSteps   = []string{"comparing documents", "copying segments", "extracting documents", "finalizing"}
)

// build writes what the batch changes and commits it. nextBatch is the lowest number of a batch that is not applied then.
func (b *batch) build(nextBatch uint64) error {
	base := b.base
	fields := base.Fields
	var stale settings.Rebuild
	if b.settings != base.Settings || b.primaryKey != base.PrimaryKey {
		fields = settings.Resolve(base.names, b.settings, b.primaryKey)
	}
	next := base.successor() // what the new segments are written for; commit makes its own
	next.Fields, next.embedders, next.nextEmbedder = fields, b.embedders, b.nextID
	if b.settings != base.Settings {
		stale = settings.Changes(base.Settings, b.settings, base.Fields, fields)
		next.setSettings(b.settings, fields)
	}
	c := &change{base: base, gone: b.gone, clear: b.cleared}
	steps := indexingSteps
	b.report.enter(1, steps, 0)

	var old *storedDocs
	if !b.cleared {
		if stale.Geo {
			again, err := b.checkPlaces()
			if err != nil {
				return err
			}
			stale.Words = stale.Words || again
		}
		if stale.Words || slices.ContainsFunc(b.plans, (*vectorPlan).all) {
			if err := base.CheckSums(b.ctx); err != nil {
				return err
			}
			old = newStoredDocs(base, b.gone, nil)
			c.merge = base.files
		} else {
			moved, err := b.movedRows()
			if err != nil {
				return err
			}
			old = newStoredDocs(base, b.gone, moved)
			for f, rows := range moved {
				if err := f.CheckSums(b.ctx); err != nil {
					return err
				}
				b.gone[f] = union(rows, b.gone[f])
			}
			if err := b.rebuild(c, next, &stale); err != nil {
				return err
			}
		}
		compared, end, err := b.recastSegments(c, next)
		defer end()
		if err != nil {
			return err
		}
		if compared {
			steps = recastSteps
			b.report.enter(1, steps, len(steps)-2)
		}
	}
	added, names, err := b.write(next, old)
	if err != nil {
		c.discard(b.ix)
		return err
	}
	c.add = append(c.add, added...)
	if len(names) > 0 {
		fields = fields.Extend(names)
	}
	c.edit = func(v *View) {
		v.UpdatedAt = b.ix.options.Now().UTC()
		v.PrimaryKey = b.primaryKey
		v.nextBatch, v.results = nextBatch, encodeResults(b.results)
		v.names = append(v.names[:len(v.names):len(v.names)], names...)
		v.resemble(next.likeness)
		v.Fields = fields
		v.embedders, v.nextEmbedder = next.embedders, next.nextEmbedder
	}
	b.report.enter(1, steps, len(steps)-1)
	return b.ix.commit(c)
}

// write writes the changed documents, and the stored ones that old lists (nil: none), as
// segments under next's settings. names are the paths of new fields.
func (b *batch) write(next *View, old *storedDocs) (files []*file, names []string, err error) {
	changed := slices.DeleteFunc(b.changed(), func(n int32) bool { return b.recast.Contains(uint32(n)) })
	total := len(changed)
	if old != nil {
		total += old.left
	}
	threads := min(b.threads(), (total+chunkDocuments-1)/chunkDocuments)
	if threads == 0 {
		return nil, nil, b.ctx.Err()
	}
	group, ctx := errgroup.WithContext(b.ctx)
	w := &writer{b: b, ctx: ctx, fields: newFieldTable(next.Fields), analyzer: next.Analyzer,
		// Half of the memory, because the garbage collector lets the heap grow to about twice the live data.
		chunk:      chunkDocuments,
		share:      max(b.builderShare(threads), b.ix.catalog.builderBytes),
		laterShare: b.shareOf(threads, maxBuilderBytes/4*laterShareParts),
		progress:   b.counter(2, total), pace: pace.Of(b.ctx)}
	if older := b.ix.catalog.older; older != nil && !b.background {
		w.analyzer = older(w.analyzer)
	}
	if w.beside = w.pace; w.pace == nil {
		w.beside = pace.Of(pace.Beside(ctx, b.ix.catalog.Searches()))
	}
	w.queue.changed, w.queue.stored = changed, old
	if b.versions.vectors { // it has no words and no values, but it is a field
		if _, err := w.fields.id(settings.VectorsField); err != nil {
			return nil, nil, err
		}
	}
	w.queue.states = &b.states
	w.builder.Embedders = shapes(next.embedders)
	w.builder.Spool = b.ix.newSpool
	w.builder.Dictionaries = segment.NewDocumentDictionaries(b.base.largest())
	w.builder.GraphThreads = (b.ix.options.MaxIndexingThreads + threads - 1) / threads
	if slices.ContainsFunc(next.embedders, (*ViewEmbedder).generates) {
		w.chunk = chunkEmbedded
	}
	w.builder.Infix = w.fields.infix
	w.builder.Prefixes = next.Settings.PrefixSearch != settings.PrefixDisabled
	for id := range next.Fields.Len() {
		if next.Fields.Info(segment.FieldID(id)).Column {
			w.builder.Columns = append(w.builder.Columns, segment.FieldID(id))
		}
	}
	if threads > 1 {
		if err := mapped.Guard(func() error { return w.sample(changed) }); err != nil {
			return nil, nil, err
		}
	}
	w.start(group, threads)
	if err = group.Wait(); err != nil {
		w.written.discard()
		return nil, nil, err
	}
	w.written.sort()
	return w.written.files, w.fields.names(), nil
}

// start starts goroutines with a worker each, which index the documents of the queue.
func (w *writer) start(group *errgroup.Group, threads int) {
	w.workers = threads
	d := newDeal(&w.queue, threads, w.b.ix.options.steadyThreads(), w.chunk, w.b.ix.catalog.Searches())
	for i := range threads {
		k := newWorker(w, i)
		group.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil { // one bad document must not stop the server
					err = w.b.ix.panicked("index", p)
				}
			}()
			return mapped.Guard(func() error { return w.run(d, k) })
		})
	}
}

// panicked logs a panic with its stack and returns it as the error of an operation. The error does not contain the stack, because
// tasks store errors and clients read them.
func (ix *Index) panicked(doing string, p any) error {
	ix.options.Logger.Error("a change of an index panicked", "index", ix.UID(), "panic", p, "stack", string(debug.Stack()))
	return fmt.Errorf("cannot %s: panic: %v", doing, p)
}

// paceOf returns at which pace a goroutine works. The last ones are polite: they yield to searches even in a batch that does not.
func (w *writer) paceOf(goroutine int) (p *pace.Worker, polite bool) {
	if goroutine < w.b.ix.options.steadyThreads() {
		return w.pace, false
	}
	return w.beside, true
}

// run indexes documents with a worker that it begins with, and then with others that were put down.
func (w *writer) run(d *deal, k *worker) error {
	pace, polite := w.paceOf(k.number)
	defer func() {
		if k != nil {
			k.close()
		}
	}()
	for {
		if polite {
			if k = d.rest(w.ctx, k); k == nil {
				return nil
			}
		}
		k.pace = pace
		more, err := k.step(d)
		if more {
			continue
		}
		if err != nil || polite {
			return err
		}
		k.close()
		if k = d.end(); k == nil {
			return nil
		}
	}
}

// numberOf returns the number of the next segment that a worker writes. Workers take turns, so the numbers do not depend on which
// worker writes first. Numbers of segments that are not written are skipped.
func (w *writer) numberOf(k *worker) uint64 {
	w.numbers.Lock()
	defer w.numbers.Unlock()
	for len(w.numbers.first) <= k.flushed {
		n := uint64(w.workers)
		w.numbers.first = append(w.numbers.first, w.b.ix.nextSegment.Add(n)-n)
	}
	return w.numbers.first[k.flushed] + uint64(k.number)
}

// threads returns how many workers there may be.
func (b *batch) threads() int {
	if b.background {
		return (b.ix.options.steadyThreads() + 1) / 2
	}
	return b.ix.options.MaxIndexingThreads
}

// builderShare returns the bytes that each worker may gather.
func (b *batch) builderShare(threads int) int64 { return b.shareOf(threads, maxBuilderBytes) }

// shareOf returns the bytes that each worker may collect, at most most; less if there are more threads than steady ones. The batch's
// data about its documents counts as memory for indexing, so with little memory many tiny documents are written earlier. At least a
// quarter of the share remains, so that not every segment needs a merge.
func (b *batch) shareOf(threads int, most int64) int64 {
	memory := b.ix.options.MaxIndexingMemory
	if b.background {
		memory /= 4
	}
	if steady := b.ix.options.steadyThreads(); threads > steady { // other threads do not add as much memory: segments get smaller
		most = most * 3 * int64(steady) / (2 * int64(threads))
	}
	least := min(memory/2/int64(threads), most) / 4
	return min(max((memory/2-b.memoryBytes())/int64(threads), least), most)
}

// memoryBytes returns about what the batch knows of its documents.
func (b *batch) memoryBytes() int64 {
	return int64(b.states.len())*(docStateBytes+idBytes) + int64(b.versions.all.len())*packedSourceBytes + int64(b.versions.stood.len())*placeBytes
}

// counter returns a function that counts documents up to total.
func (b *batch) counter(level, total int) func(n int) {
	var done atomic.Int64
	return func(n int) { b.report.at(level, "document", min(int(done.Add(int64(n))), total), total) }
}

// checkPlaces checks the places in the remaining stored documents when _geo or _geojson comes into use. again says that their
// segments were too old to record shapes, so all documents have to be read.
func (b *batch) checkPlaces() (again bool, err error) {
	used := geoChecksOf(b.base.Fields)
	check := geoChecks{points: b.geo.points && !used.points, shapes: b.geo.shapes && !used.shapes}
	fields := make([]segment.FieldID, 0, 2)
	if id, ok := b.base.Fields.ID(settings.GeoField); ok && check.points {
		fields = append(fields, id)
	}
	shapes, ok := b.base.Fields.ID(settings.GeoJSONField)
	if ok && check.shapes {
		fields = append(fields, shapes)
	}
	read := docReader{b: b}
	defer func() { _ = read.close() }() // leftovers are removed at the next open
	for i, f := range b.base.files {
		l := f.live(union(b.base.Segments[i].Deleted, b.gone[f]))
		rows := roaring.New()
		for _, id := range fields {
			rows.Or(l.Present(id))
		}
		if l.Deleted != nil {
			rows.AndNot(l.Deleted)
		}
		if check.shapes && ok && !l.RecordsShapes() {
			again = again || rows.Intersects(l.Present(shapes))
		}
		for it := rows.Iterator(); it.HasNext(); {
			if err := b.ctx.Err(); err != nil {
				return again, err
			}
			row := segment.Row(it.Next())
			doc, err := read.stored(l, row)
			if err != nil {
				return again, err
			}
			if err := check.check(l.ExternalID(row), doc); err != nil {
				return again, err
			}
		}
	}
	return again, nil
}

// queue hands out documents in ascending DocID. One goroutine at a time uses it.
type queue struct {
	states  *chunked[docState]
	changed []int32     // numbers of states
	stored  *storedDocs // or nil
}

// left returns how many documents are left.
func (q *queue) left() int {
	n := len(q.changed)
	if q.stored != nil {
		n += q.stored.left
	}
	return n
}

// take appends the next n documents, or the rest.
func (q *queue) take(dst []item, n int) []item {
	for ; n > 0; n-- {
		it, ok := q.stored.peek()
		if len(q.changed) > 0 {
			if c := q.changed[0]; !ok || q.states.at(int(c)).id < it.id {
				q.changed = q.changed[1:]
				dst = append(dst, item{id: q.states.at(int(c)).id, state: c})
				continue
			}
		}
		if !ok {
			break
		}
		q.stored.next()
		dst = append(dst, it)
	}
	return dst
}

package index

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"sync"
	"time"

	"svc/internal/index/mergeplan"
	"svc/internal/mapped"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/segment"
)

// compactor merges segments in the background. It has three lanes with one merge each: small merges, which a stream of
// small batches needs often; medium ones, for a stream of large batches; and large ones, which can take minutes. Each lane
// checks an index after each of its commits.
type compactor struct {
	catalog *Catalog
	plan    mergeplan.Options
	lanes   [mergeLanes]*lane
	stale   *reanalyzer
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// lane does merges of more than min and at most max bytes.
type lane struct {
	min, max int64
	wake     chan struct{} // holds one
	mu       struct {
		sync.Mutex
		changed []*Index        // to look at, each once, in the order of their commits
		waiting map[*Index]bool // those in changed
	}
	number int // in compactor.lanes and Index.failures
}

// mergeLanes is how many lanes there are.
const mergeLanes = 3

// failure records when to retry the merges of an index. A merge that meets damage or a full disk wastes much I/O, and
// would do so at each commit.
type failure struct {
	pause time.Duration
	until time.Time
}

const (
	minMergePause = time.Second
	maxMergePause = time.Hour
)

// newCompactor makes a compactor that does nothing before start.
func newCompactor(c *Catalog) *compactor {
	k := &compactor{catalog: c, plan: mergeplan.Default(), stale: newReanalyzer()}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.lanes = [mergeLanes]*lane{
		{number: 0, min: -1, max: smallMergeBytes, wake: make(chan struct{}, 1)},
		{number: 1, min: smallMergeBytes, max: mediumMergeBytes, wake: make(chan struct{}, 1)},
		{number: 2, min: mediumMergeBytes, max: k.plan.MaxBytes, wake: make(chan struct{}, 1)},
	}
	for _, l := range k.lanes {
		l.mu.waiting = make(map[*Index]bool)
	}
	return k
}

// start begins the work in the background. A catalog that follows inspects and evicts, but merges nothing.
func (k *compactor) start() {
	k.wg.Go(func() { k.catalog.inspections(k.ctx) })
	k.wg.Go(func() { k.catalog.quarantineSuspects(k.ctx) })
	k.wg.Go(func() { k.catalog.evictions(k.ctx) })
	if !k.catalog.follows.Load() {
		k.merge()
	}
}

// merge begins to merge segments. The startup scan wakes it for the others.
func (k *compactor) merge() {
	for _, l := range k.lanes {
		k.wg.Go(func() { k.run(l) })
	}
	k.wg.Go(func() { k.stale.run(k.ctx) })
	for _, ix := range k.catalog.loaded.byUse() { // startupScan wakes it for the others
		k.wake(ix)
	}
}

// close cancels all merges and waits for them.
func (k *compactor) close() {
	k.cancel()
	k.wg.Wait()
}

// wake says that the segments of an index have changed. It does not wait.
func (k *compactor) wake(ix *Index) {
	if k.catalog.follows.Load() {
		return
	}
	for _, l := range k.lanes {
		l.mu.Lock()
		if !l.mu.waiting[ix] {
			l.mu.changed, l.mu.waiting[ix] = append(l.mu.changed, ix), true
		}
		l.mu.Unlock()
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// next takes the index that has waited longest; nil when none does.
func (l *lane) next() *Index {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.changed) == 0 {
		return nil
	}
	ix := l.mu.changed[0]
	l.mu.changed[0] = nil
	l.mu.changed = l.mu.changed[1:]
	delete(l.mu.waiting, ix)
	return ix
}

// run makes the merges of a lane, one after the other, until the compactor is closed. It stays with an index while there is something
// to merge.
func (k *compactor) run(l *lane) {
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-l.wake:
		}
		for ix := l.next(); ix != nil; ix = l.next() {
			for k.ctx.Err() == nil && k.step(l, ix) {
			}
		}
	}
}

// step makes one merge of the index if the lane has one to do. An error stays with the index: it is logged, and the merge is retried
// after the index's next commit, after a growing pause.
func (k *compactor) step(l *lane, ix *Index) (merged bool) {
	failed := &ix.failures[l.number]
	if time.Now().Before(failed.until) {
		return false
	}
	defer func() {
		if p := recover(); p != nil {
			ix.options.Logger.Error("a compaction panicked", "index", ix.UID(), "panic", p, "stack", string(debug.Stack()))
			merged = false
			failed.again()
		}
	}()
	err := mapped.Guard(func() (err error) {
		merged, err = ix.compactOnce(k.ctx, k.plan, l.min, l.max, k.throttle(l, ix))
		return err
	})
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case err != nil:
		failed.again()
		ix.options.Logger.Error("cannot compact", "index", ix.UID(), "error", err, "pause", failed.pause)
		return false
	case !merged:
		return false
	}
	*failed = failure{}
	k.wake(ix) // the result may be an input of another lane
	return true
}

// throttle returns a function that a merge of a lane calls before it writes and now and then while it works. If the last batch of an
// index yields to searches, so do its merges. Segments do not pile up, because batches slow down too. Long merges, as after an
// import, get half of a processor while there are searches, unless there are so many segments that they slow searches more than
// merges do. Small merges follow every few commits and do not yield to searches by themselves.
func (k *compactor) throttle(l *lane, ix *Index) func(context.Context, int) error {
	quarter, half := pace.Of(pace.Beside(k.ctx, k.catalog.Searches())), pace.Half(k.catalog.Searches())
	return func(ctx context.Context, _ int) error {
		switch {
		case ix.yields.Load():
			quarter.Yield()
		case l.min > 0 && ix.fewSegments():
			half.Yield()
		}
		return ctx.Err()
	}
}

// fewSegments reports whether long merges may take their time.
func (ix *Index) fewSegments() bool {
	s := ix.Outline().size
	return s == nil || s.Segments <= manySegments
}

// again counts a failure.
func (f *failure) again() {
	f.pause = min(max(2*f.pause, minMergePause), maxMergePause)
	f.until = time.Now().Add(f.pause)
}

// compactOnce plans on the current segments that no merge has, and does the smallest
// merge with more than min and at most max bytes. It reports whether there was one.
func (ix *Index) compactOnce(ctx context.Context, o mergeplan.Options, min, max int64, throttle func(context.Context, int) error) (bool, error) {
	base, err := ix.PlainView()
	if err != nil {
		return false, err
	}
	defer base.Release()
	for _, m := range base.plan(o) {
		if m.Bytes > min && m.Bytes <= max {
			return ix.mergeSegments(ctx, base, m.Inputs, throttle)
		}
	}
	return false, nil
}

// plan returns the merges that are due of the segments that no merge has, by their places in the view.
func (v *View) plan(o mergeplan.Options) []mergeplan.Merge {
	var segments []mergeplan.Segment
	var which []int
	for i, f := range v.files {
		if !f.ix.merges.isBusy(f) {
			segments = append(segments, mergeplan.Segment{Rows: f.Rows(), Live: liveCount(v.Segments[i]), Bytes: f.Info().Bytes})
			which = append(which, i)
		}
	}
	merges := mergeplan.Plan(segments, o)
	for _, m := range merges {
		for i, segment := range m.Inputs {
			m.Inputs[i] = which[segment]
		}
	}
	return merges
}

// mergeSegments merges some segments of base and commits the result. It returns false if another merge has one of them or the gate is
// closed. If base is out of date it merges nothing and returns true, so that its caller tries again.
func (ix *Index) mergeSegments(ctx context.Context, base *View, inputs []int, throttle func(context.Context, int) error) (bool, error) {
	c := &change{base: base}
	var lives []segment.Live
	for _, i := range inputs {
		c.merge = append(c.merge, base.files[i])
		lives = append(lives, base.Segments[i])
	}
	ctx, m, ok := ix.merges.begin(ctx, c.merge)
	if !ok {
		return false, nil
	}
	defer ix.merges.end(m)
	if ix.Outline().likeness != base.likeness {
		return true, nil // like errStale: remaining segments may have got files of columns that base does not want
	}
	f, err := ix.mergeFiles(ctx, base, lives, nil, nil, throttle)
	if err != nil {
		return false, err
	}
	c.add = []*file{f}
	if err := ctx.Err(); err != nil {
		f.discard()
		return false, err
	}
	if err := ix.commit(c); err != nil && err != errStale {
		return false, err
	}
	return true, nil
}

// mergeFiles writes the live rows of segments as one new segment under the settings of v. It drops data that no embedder of v needs.
// columns has the corrected columns of rounded numbers, or is nil.
func (ix *Index) mergeFiles(ctx context.Context, v *View, lives []segment.Live, columns *segment.ColumnSet, vectors []*segment.VectorSet, throttle func(context.Context, int) error) (*file, error) {
	if columns == nil {
		var err error
		if columns, err = ix.exactColumns(ctx, v, lives, throttle); err != nil {
			return nil, fmt.Errorf("cannot read columns of index %s again: %w", ix.UID(), err)
		}
	}
	o := ix.mergeOptions(v)
	o.Columns, o.Vectors = columns, vectors
	o.Throttle = func(n int) error { return throttle(ctx, n) }
	return ix.mergeTo(ctx, lives, o)
}

// mergeOptions returns the options of a merge that keeps what v needs and replaces no columns or vectors.
func (ix *Index) mergeOptions(v *View) segment.MergeOptions {
	return segment.MergeOptions{
		KeepColumn:   func(id segment.FieldID) bool { return v.Fields.Info(id).Column },
		Infix:        func(id segment.FieldID) bool { return v.Fields.Info(id).Infix },
		KeepElement:  func(id segment.FieldID) bool { return v.Fields.Info(id).Elements },
		KeepVectors:  v.knows,
		GraphThreads: ix.options.steadyThreads(),
		Prefixes:     v.Settings.PrefixSearch != settings.PrefixDisabled,
	}
}

// mergeTo writes the live rows of segments as one new segment.
func (ix *Index) mergeTo(ctx context.Context, lives []segment.Live, o segment.MergeOptions) (merged *file, err error) {
	ctx, span := ix.options.Tracer.Begin(ctx, "merge")
	defer func() {
		if err != nil {
			span.Fail("cannot merge") // the log says why
		}
		span.End()
	}()
	span.Set("svc.index", ix.UID())
	span.SetInt("svc.segments", len(lives))
	number := ix.nextSegment.Add(1) - 1
	name := path.Join(ix.dir, segmentName(number))
	if _, err = segment.Merge(ctx, ix.options.FS, name, lives, o); err == nil {
		var f *file
		if f, err = ix.openNew(number); err == nil {
			return f, nil
		}
	}
	_ = ix.options.FS.Remove(name) // or the next open does it
	return nil, fmt.Errorf("cannot merge segments of index %s: %w", ix.UID(), err)
}

var compactSteps = []string{"retrieve the index", "copy and compact the index", "persist the compacted index"}

// Compact merges all segments into one and returns the sizes before and after, in
// bytes. A second one finds nothing to do, so batch needs no remembering.
func (ix *Index) Compact(ctx context.Context, batch uint64, p Progress) (before, after int64, err error) {
	ix.writing.Lock()
	defer ix.writing.Unlock()
	ix.merges.stop()
	defer ix.catalog.compactor.wake(ix)
	defer ix.merges.resume()
	r := &reporter{p: p}
	r.enter(0, compactSteps, 0)
	base, err := ix.PlainView()
	if err != nil {
		return 0, 0, err
	}
	defer base.Release()
	before = base.size.SegmentBytes
	if len(base.files) == 0 || len(base.files) == 1 && base.Segments[0].Deleted == nil && len(base.beside[0]) == 0 && !base.hasStrayVectors() {
		return before, before, ctx.Err()
	}
	r.enter(0, compactSteps, 1)
	written := 0
	f, err := ix.mergeFiles(ctx, base, base.Segments, nil, nil, func(ctx context.Context, n int) error {
		written += n
		r.at(1, "byte", min(written, int(before)), int(before))
		return ctx.Err()
	})
	if err != nil {
		return 0, 0, err
	}
	r.enter(0, compactSteps, 2)
	if err := ix.commit(&change{base: base, add: []*file{f}, merge: base.files}); err != nil {
		return 0, 0, err
	}
	return before, ix.Outline().size.SegmentBytes, nil
}

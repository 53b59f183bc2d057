package index

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/embed"
	"svc/internal/mapped"
	"svc/internal/pace"
)

// reanalyzer indexes stale words again (see View.Stale), one segment at a time, while batches, merges and searches run. It replaces a
// segment as a merge does, so a stop of the program loses the work on one segment at most.
type reanalyzer struct {
	wake chan struct{} // holds one
	mu   struct {
		sync.Mutex
		stale   []*Index // a queue without duplicates
		waiting map[*Index]bool
	}
}

// progressEvery is the time between two log lines about the progress of an index.
const progressEvery = 15 * time.Second

func newReanalyzer() *reanalyzer {
	a := &reanalyzer{wake: make(chan struct{}, 1)}
	a.mu.waiting = map[*Index]bool{}
	return a
}

// add queues an index that may have stale words. It does not block.
func (a *reanalyzer) add(ix *Index) {
	a.mu.Lock()
	if !a.mu.waiting[ix] {
		a.mu.stale, a.mu.waiting[ix] = append(a.mu.stale, ix), true
	}
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// next takes the index that has waited longest; nil when none does.
func (a *reanalyzer) next() *Index {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.mu.stale) == 0 {
		return nil
	}
	ix := a.mu.stale[0]
	a.mu.stale[0] = nil
	a.mu.stale = a.mu.stale[1:]
	delete(a.mu.waiting, ix)
	return ix
}

// run works until ctx ends. After an error an index waits, with growing pauses, while others continue.
func (a *reanalyzer) run(ctx context.Context) {
	var pauses sync.WaitGroup
	defer pauses.Wait()
	begun := map[*Index]*reanalysis{} // unfinished ones
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		for ix := a.next(); ix != nil && ctx.Err() == nil; ix = a.next() {
			r := begun[ix]
			if r == nil {
				r = &reanalysis{ix: ix, began: time.Now()}
				begun[ix] = r
			}
			if time.Now().Before(r.failed.until) {
				continue // its pause ends with add
			}
			if r.run(ctx) {
				delete(begun, ix)
				continue
			}
			pause := time.After(r.failed.pause)
			pauses.Go(func() {
				select {
				case <-ctx.Done():
				case <-pause:
					a.add(ix)
				}
			})
		}
	}
}

// reanalysis is the work on the stale words of one index, and its log lines.
type reanalysis struct {
	ix          *Index
	failed      failure
	began, told time.Time
	total, done int // documents
}

// run indexes all stale words again. After an error finished is false.
func (r *reanalysis) run(ctx context.Context) (finished bool) {
	ix := r.ix
	defer ix.visit()()
	log := ix.options.Logger.With(slog.String("index", ix.UID()))
	begin := func(s stale) {
		if r.total > 0 {
			return
		}
		r.total, r.told = s.Documents, time.Now()
		if s.Lost {
			log.Warn("another version of svc indexed the words of some documents: svc indexes them again in the background. "+
				"Until then, searches may miss some words and phrases in these documents. No action is needed", slog.Int("documents", r.total))
		} else {
			log.Info("another version of svc indexed the words of some documents: svc indexes them again in the background. "+
				"Searches find these documents meanwhile", slog.Int("documents", r.total))
		}
	}
	progress := func(n int) {
		if r.done += n; time.Since(r.told) >= progressEvery {
			r.told = time.Now()
			log.Info("indexing words of another version again", slog.Int("documents", min(r.done, r.total)), slog.Int("of", r.total))
		}
	}
	for left := true; left; {
		var err error
		if left, err = ix.reanalyzeOne(ctx, begin, progress); err == nil {
			r.failed = failure{}
			continue
		}
		r.failed.again()
		if !errors.Is(err, context.Canceled) { // else a batch or a compaction needs the segments, or ctx has ended
			log.Error("indexing words of another version again failed; svc tries again", slog.Any("error", err), slog.Duration("pause", r.failed.pause))
		}
		return false
	}
	if r.total > 0 {
		log.Info("all words are indexed by this version", slog.Int("documents", r.total), slog.Duration("took", time.Since(r.began).Round(time.Millisecond)))
	}
	return true
}

// reanalyzeOne reanalyses the words of one segment. It calls begin first, and progress with numbers of finished documents. left is
// false if no segment has stale words, or the index is closed.
func (ix *Index) reanalyzeOne(ctx context.Context, begin func(stale), progress func(documents int)) (left bool, err error) {
	base, err := ix.take()
	if err != nil {
		return true, err
	}
	defer base.Release()
	s := base.Stale()
	if s.Documents == 0 {
		return false, nil
	}
	begin(s)
	possible := sync.OnceValue(base.pipelines)
	for i, f := range base.files {
		if len(base.staleIn(f, possible)) == 0 {
			continue
		}
		merging, m, ok := ix.merges.begin(pace.Beside(ctx, &ix.catalog.searches), []*file{f})
		if !ok {
			continue
		}
		defer ix.merges.end(m)
		return true, mapped.Guard(func() error { return ix.reanalyzeFile(merging, base, i, progress) })
	}
	return true, context.Canceled // merges have them all
}

// reanalyzeFile replaces the segment base.files[at] by segments with the same live documents. The caller keeps merges away from it.
func (ix *Index) reanalyzeFile(ctx context.Context, base *View, at int, progress func(documents int)) (err error) {
	defer func() {
		if p := recover(); p != nil && mapped.Damage(p) == nil {
			err = errPanicked
			ix.options.Logger.Error("indexing words again panicked", "index", ix.UID(), "panic", p, "stack", string(debug.Stack()))
		} else if p != nil {
			panic(p)
		}
	}()
	if ix.Outline().likeness != base.likeness {
		return context.Canceled // the settings have changed
	}
	f := base.files[at]
	if err := f.CheckSums(ctx); err != nil {
		return err
	}
	b := &batch{ctx: ctx, ix: ix, base: base, report: &reporter{}, primaryKey: base.PrimaryKey, settings: base.Settings, requests: new(embed.Stats), background: true}
	b.vectors.embedders = base.embedders
	if err := b.planVectors(); err != nil {
		return err
	}
	b.report.p = func() Progress {
		last := 0
		return func(_ int, s Step) {
			progress(s.Finished - last)
			last = s.Finished
		}
	}()
	all := roaring.New()
	all.AddRange(0, uint64(f.Rows()))
	next := base.successor()
	next.embedders, next.nextEmbedder = b.embedders, b.nextID
	files, names, err := b.write(next, newStoredDocs(base, nil, map[*file]*roaring.Bitmap{f: all}))
	if err != nil {
		return err
	}
	c := &change{base: base, merge: []*file{f}, add: files}
	if len(names) > 0 || ctx.Err() != nil {
		c.discard(ix)
		if err := ctx.Err(); err != nil {
			return err
		}
		return errUnknownFields
	}
	if err := ix.commit(c); err != nil && err != errStale {
		return err
	}
	ix.catalog.compactor.wake(ix)
	return nil
}

var (
	errPanicked      = errors.New("it panicked")
	errUnknownFields = errors.New("documents of a segment have fields that the index does not know")
)

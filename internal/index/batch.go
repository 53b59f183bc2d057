package index

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/embed"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/internal/template"
	"svc/segment"
)

// batch is one running Apply. Phase resolve runs the operations in order and records only the place of each document's
// bytes. Phase build reads those bytes and writes segments.
type batch struct {
	ctx    context.Context
	ix     *Index
	base   *View
	ids    *allocator
	report *reporter

	primaryKey string
	settings   *settings.Settings // after the batch
	geo        geoChecks          // places
	vectors    vectorChecks
	plans      []*vectorPlan   // what happens to each embedder, by name; nil if there are no embedders before or after
	embedders  []*ViewEmbedder // after the batch, by name
	nextID     segment.EmbedderID
	rendering  template.Work
	requests   *embed.Stats // counts calls to providers
	results    []OpResult

	table    idTable           // external ids that the batch names
	states   chunked[docState] // by number in table
	versions versions
	payloads []string // file names
	pending  pending

	recast  roaring.Bitmap // numbers of documents that recast wrote
	cleared bool
	gone    map[*file]*roaring.Bitmap // rows of base that are replaced or deleted
	edited  *editFile                 // nil when no function ran

	background bool // background work: it takes half of the processors and a quarter of the memory
}

// yielding returns a context for code of users, such as functions and templates. It yields to searches, even if a client
// waits for the batch.
func yielding(ctx context.Context, s *pace.Searches) context.Context {
	if pace.Of(ctx) == nil {
		ctx = pace.Beside(ctx, s)
	}
	return ctx
}

// rendering returns what the templates of a batch work for.
func rendering(ctx context.Context) template.Work {
	worker := pace.Of(ctx)
	return template.Work{Yield: func() error {
		worker.Yield()
		return ctx.Err()
	}}
}

// Apply applies the operations in order, as one commit. On an error nothing was applied. If the manifest already has this
// batch or a later one, Apply does nothing and returns ErrApplied, with the results if it was the last batch.
//
// An error of one operation is in its result. Apply returns errors that concern all documents: too many fields, an
// unreadable file, a cancelled context. Errors that the user can resolve are *apierr.Error.
func (ix *Index) Apply(ctx context.Context, number uint64, ops []Op, p Progress) ([]OpResult, error) {
	return ix.ApplyCounted(ctx, number, ops, p, new(embed.Stats))
}

// ApplyCounted is Apply that counts the calls to providers of embeddings, even if the batch fails.
func (ix *Index) ApplyCounted(ctx context.Context, number uint64, ops []Op, p Progress, requests *embed.Stats) ([]OpResult, error) {
	return ix.applyCounted(ctx, &number, ops, p, requests)
}

// applyCounted applies a batch, or, if number is nil, a change that is no batch.
func (ix *Index) applyCounted(ctx context.Context, number *uint64, ops []Op, p Progress, requests *embed.Stats) ([]OpResult, error) {
	if err := ix.catalog.settle(); err != nil {
		return nil, err
	}
	ix.writing.Lock()
	defer ix.writing.Unlock()
	ix.yields.Store(pace.Of(ctx) != nil)
	if slices.ContainsFunc(ops, isSettings) { // it may have to replace every segment
		ix.merges.stop()
		defer ix.catalog.compactor.wake(ix)
		defer ix.merges.resume()
	}
	now := ix.Outline()
	next := now.nextBatch
	if number != nil {
		if *number+1 == now.nextBatch {
			return decodeResults(now.results), ErrApplied
		}
		if *number < now.nextBatch {
			return nil, ErrApplied
		}
		next = *number + 1
	}
	base, err := ix.PlainView()
	if err != nil {
		return nil, err
	}
	defer base.Release()
	if ix.writing.ids == nil {
		ix.writing.ids = newAllocator(base)
	}
	ix.writing.ids.begin()
	b := &batch{ctx: ctx, ix: ix, base: base, ids: ix.writing.ids, report: &reporter{p: p},
		primaryKey: base.PrimaryKey, results: make([]OpResult, len(ops)), gone: make(map[*file]*roaring.Bitmap), requests: requests,
		rendering: rendering(yielding(ctx, ix.catalog.Searches()))}
	defer b.close()
	steps := stepsOf(ops)
	b.report.enter(0, steps, 0)
	if err := b.settle(ops); err != nil {
		return nil, err
	}
	b.report.enter(0, steps, 1)
	if err := b.resolve(ops); err != nil {
		return nil, err
	}
	b.table.close()
	if err := b.addUnfit(); err != nil {
		return nil, err
	}
	for i := 2; i < len(steps); i++ {
		b.report.enter(0, steps, i)
	}
	if err := b.build(next); err != nil {
		return nil, err
	}
	b.ids.committed()
	ix.catalog.compactor.wake(ix)
	return b.results, nil
}

func isSettings(op Op) bool {
	_, ok := op.(UpdateSettings)
	return ok
}

// stepsOf names the outer steps of a batch.
func stepsOf(ops []Op) []string {
	var adds, edits, deletes bool
	for _, op := range ops {
		switch op.(type) {
		case AddDocuments:
			adds = true
		case EditDocuments, PatchDocuments:
			edits = true
		case DeleteDocuments, DeleteByFilter, DeleteExpired, Clear:
			deletes = true
		}
	}
	switch {
	case adds:
		return []string{"retrieving config", "computing document changes", "reading payload stats", "indexing"}
	case edits:
		return []string{"retrieving config", "computing document changes", "indexing"}
	case deletes:
		return []string{"retrieving config", "delete documents", "indexing"}
	}
	return []string{"retrieving and merging the settings", "apply the settings"}
}

// settle finds the settings that the batch ends with.
func (b *batch) settle(ops []Op) error {
	b.settings = b.base.Settings
	for _, op := range ops {
		u, ok := op.(UpdateSettings)
		if !ok {
			continue
		}
		s, err := b.settings.Apply(u.Update)
		if err != nil {
			return err
		}
		b.settings = s
	}
	b.geo = geoChecksOf(settings.Resolve(nil, b.settings, ""))
	b.vectors.embedders = b.base.embedders
	if slices.ContainsFunc(ops, func(op Op) bool { add, ok := op.(AddDocuments); return ok && add.Unfit }) {
		b.vectors.unfit = map[string]map[int]bool{}
	}
	return b.planVectors()
}

// close removes what the batch needed while it ran.
func (b *batch) close() {
	b.pending.drop()
	if b.edited != nil {
		b.edited.remove()
	}
}

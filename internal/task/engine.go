package task

import (
	"context"
	"slices"
	"time"

	"svc/internal/apierr"
	"svc/internal/embed"
	"svc/internal/index"
)

// engine runs the batches: it is the catalog of indexes, or a fake in tests.
//
// Every change has the number of its step: (batch uid + 1) << stepBits plus its index in the batch, so numbers only grow. If a run
// before a crash already applied a change, repeating it has no effect.
type engine interface {
	// lastStep is the highest step that left a mark; 0 when none did.
	lastStep() uint64
	// marked reports whether a step from first to last left a mark.
	marked(first, last uint64) bool
	// settle makes the state on disk of earlier changes known. An error says that it is unknown, and nothing may build on
	// it.
	settle() error
	// info describes an index. ok is false if it does not exist.
	info(uid string) (state indexState, ok bool)
	// behind returns the index that a name is an alias of, or "".
	behind(name string) string
	// expired returns the indexes that have documents which had expired at a moment. It opens none.
	expired(moment time.Time) []string
	create(uid, primaryKey string, step uint64) error
	delete(uid string, step uint64) (documents int, err error)
	swap(pairs []index.Pair, step uint64) error
	setPrimaryKey(uid, key string, step uint64) error
	apply(ctx context.Context, uid string, step uint64, ops []index.Op, p index.Progress, requests *embed.Stats) ([]index.OpResult, error)
	compact(ctx context.Context, uid string, step uint64, p index.Progress) (before, after int64, err error)
}

type indexState struct {
	primaryKey string
	documents  int
	uncounted  error // why the number of documents is unknown; nil: it is known
}

const stepBits = 4

// noStep is the step of a change that leaves no mark. Its caller first checks whether the change is already made.
const noStep = 0

func step(batch uint32, n int) uint64 { return (uint64(batch)+1)<<stepBits + uint64(n) }

// batchAfter is the lowest batch uid whose steps are all above step.
func batchAfter(step uint64) uint32 { return uint32(step >> stepBits) }

// indexEngine runs batches on the indexes of a catalog.
type indexEngine struct{ *index.Catalog }

// behind returns the index that an alias stands for, or "" if the name is no alias.
func (e indexEngine) behind(name string) string {
	aliases := e.Aliases()
	if !aliases.Has(name) {
		return ""
	}
	return aliases.Index(name)
}

func (e indexEngine) expired(moment time.Time) []string {
	if e.Catalog == nil { // a queue that is being restored
		return nil
	}
	return e.Expired(moment)
}

func (e indexEngine) lastStep() uint64 {
	if e.Catalog == nil { // a queue that is being restored
		return 0
	}
	return e.LastBatch()
}

func (e indexEngine) marked(first, last uint64) bool {
	return slices.ContainsFunc(e.Batches(), func(step uint64) bool { return step >= first && step <= last })
}

func (e indexEngine) settle() error { return e.Settle() }

func (e indexEngine) info(uid string) (indexState, bool) {
	ix := e.Get(uid)
	if ix == nil {
		return indexState{}, e.Damaged(uid) // it exists, and every operation on it except its deletion fails
	}
	size, err := ix.Size()
	return indexState{ix.Outline().PrimaryKey, size.Documents, err}, true
}

func (e indexEngine) create(uid, primaryKey string, step uint64) error {
	_, err := e.Create(uid, primaryKey, step)
	return err
}

func (e indexEngine) delete(uid string, step uint64) (int, error) { return e.Delete(uid, step) }
func (e indexEngine) swap(pairs []index.Pair, step uint64) error  { return e.Swap(pairs, step) }

func (e indexEngine) setPrimaryKey(uid, key string, step uint64) error {
	ix := e.Get(uid)
	if ix == nil {
		return e.Missing(uid)
	}
	return ix.SetPrimaryKey(key, step)
}

func (e indexEngine) apply(ctx context.Context, uid string, step uint64, ops []index.Op, p index.Progress, requests *embed.Stats) ([]index.OpResult, error) {
	ix := e.Reopen(uid)
	if ix == nil {
		return e.AppliedBefore(uid, step)
	}
	return ix.ApplyCounted(ctx, step, ops, p, requests)
}

func (e indexEngine) compact(ctx context.Context, uid string, step uint64, p index.Progress) (int64, int64, error) {
	ix := e.Get(uid)
	if ix == nil {
		return 0, 0, e.Missing(uid)
	}
	return ix.Compact(ctx, step, p)
}

func notFound(uid string) error {
	return apierr.New("index_not_found", "Index `%s` does not exist. Create it, or add documents to it, first.", uid)
}

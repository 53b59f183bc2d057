package task

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/apierr"
	"svc/internal/embed"
	"svc/internal/index"
	"svc/internal/vfs"
)

// fakeEngine keeps indexes as maps. Like a real engine, it ignores a step that was already applied. It stands for the disk: in tests of
// crashes it outlives the queue.
type fakeEngine struct {
	mu      sync.Mutex
	fs      vfs.FS
	indexes map[string]*fakeIndex
	swapped uint64 // step of the last swap
	log     []string
	due     map[string]int64         // when documents of an index expire
	block   chan struct{}            // if not nil, apply waits until it is closed, or for its context
	blocks  map[string]chan struct{} // the same for one index
	entered chan struct{}            // apply sends when it begins
	fail    func(op index.Op) error  // error of the whole batch
}

type fakeIndex struct {
	primaryKey string
	documents  map[string]bool
	step       uint64
	results    []index.OpResult
	settings   int
	uncounted  error // error of counting its documents
}

// turn runs one batch if one is due.
func (q *Queue) turn() (ran bool, due time.Time, err error) {
	run, due, err := q.next()
	if err != nil || run == nil {
		return false, due, err
	}
	return true, due, q.conclude(run, q.run(run))
}

func newFake(fs vfs.FS) *fakeEngine { return &fakeEngine{fs: fs, indexes: map[string]*fakeIndex{}} }

func (e *fakeEngine) lastStep() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.swapped
	for _, ix := range e.indexes {
		last = max(last, ix.step)
	}
	return last
}

func (e *fakeEngine) marked(first, last uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	in := func(step uint64) bool { return step >= first && step <= last }
	for _, ix := range e.indexes {
		if in(ix.step) {
			return true
		}
	}
	return in(e.swapped)
}

func (e *fakeEngine) settle() error { return nil }

func (e *fakeEngine) info(uid string) (indexState, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ix := e.indexes[uid]
	if ix == nil {
		return indexState{}, false
	}
	if ix.uncounted != nil {
		return indexState{ix.primaryKey, 0, ix.uncounted}, true
	}
	return indexState{ix.primaryKey, len(ix.documents), nil}, true
}

func (e *fakeEngine) create(uid, primaryKey string, step uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ix := e.indexes[uid]; ix != nil {
		if ix.step == step {
			return nil
		}
		return apierr.New("index_already_exists", "there is `%s`", uid)
	}
	e.indexes[uid] = &fakeIndex{primaryKey: primaryKey, documents: map[string]bool{}, step: step}
	e.log = append(e.log, "create "+uid)
	return nil
}

func (e *fakeEngine) delete(uid string, step uint64) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ix := e.indexes[uid]
	if ix == nil {
		return 0, notFound(uid)
	}
	delete(e.indexes, uid)
	e.log = append(e.log, "delete "+uid)
	return len(ix.documents), nil
}

func (e *fakeEngine) swap(pairs []index.Pair, step uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if step == e.swapped {
		return nil
	}
	for _, p := range pairs {
		if e.indexes[p.A] == nil {
			return notFound(p.A)
		}
		if p.Rename && e.indexes[p.B] != nil {
			return apierr.New("index_already_exists", "there is `%s`", p.B)
		}
		if !p.Rename && e.indexes[p.B] == nil {
			return notFound(p.B)
		}
	}
	for _, p := range pairs {
		e.indexes[p.A], e.indexes[p.B] = e.indexes[p.B], e.indexes[p.A]
		if p.Rename {
			delete(e.indexes, p.A)
		}
		e.log = append(e.log, "swap "+p.A+" "+p.B)
	}
	e.swapped = step
	return nil
}

func (e *fakeEngine) setPrimaryKey(uid, key string, step uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	ix := e.indexes[uid]
	if len(ix.documents) > 0 && ix.primaryKey != key {
		return apierr.New("index_primary_key_already_exists", "it has one")
	}
	ix.primaryKey, ix.step = key, step
	return nil
}

func (e *fakeEngine) compact(_ context.Context, uid string, _ uint64, _ index.Progress) (int64, int64, error) {
	return 2_000_000, 1024, nil
}

func (e *fakeEngine) behind(string) string { return "" }

func (e *fakeEngine) expired(moment time.Time) (uids []string) {
	for _, uid := range slices.Sorted(maps.Keys(e.due)) {
		if e.due[uid] <= moment.Unix() {
			uids = append(uids, uid)
		}
	}
	return uids
}

func (e *fakeEngine) apply(ctx context.Context, uid string, step uint64, ops []index.Op, p index.Progress, _ *embed.Stats) ([]index.OpResult, error) {
	e.mu.Lock()
	ix := e.indexes[uid]
	if ix == nil {
		e.mu.Unlock()
		return nil, notFound(uid)
	}
	if ix.step >= step {
		defer e.mu.Unlock()
		return ix.results, errApplied
	}
	e.mu.Unlock()
	if e.entered != nil {
		e.entered <- struct{}{}
	}
	block := e.block
	if own, ok := e.blocks[uid]; ok {
		block = own
	}
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	next := &fakeIndex{ix.primaryKey, maps.Clone(ix.documents), step, nil, ix.settings, ix.uncounted}
	var log []string
	for i, op := range ops {
		p(0, index.Step{Name: "indexing", Finished: i, Total: len(ops)})
		if e.fail != nil {
			if err := e.fail(op); err != nil {
				return nil, err
			}
		}
		var r index.OpResult
		switch op := op.(type) {
		case index.AddDocuments:
			ids, err := e.ids(op.Payload)
			if err != nil {
				return nil, err
			}
			if next.primaryKey == "" {
				next.primaryKey = op.PrimaryKey
			}
			if slices.Contains(ids, "bad") {
				r.Err = apierr.New("invalid_document_id", "bad")
			} else {
				for _, id := range ids {
					next.documents[id] = true
				}
				r.Indexed = len(ids)
			}
			log = append(log, fmt.Sprintf("add %s", strings.Join(ids, ",")))
		case index.PatchDocuments:
			r.Patched = &index.PatchResult{Changed: op.Operations}
			log = append(log, fmt.Sprintf("patch %d", op.Operations))
		case index.DeleteDocuments:
			for _, id := range op.IDs {
				if next.documents[id] {
					delete(next.documents, id)
					r.Deleted++
				}
			}
			log = append(log, "delete "+strings.Join(op.IDs, ","))
		case index.DeleteByFilter:
			if string(op.Filter) == `"bad"` {
				r.Err = apierr.New("invalid_document_filter", "bad")
				break
			}
			r.Deleted = len(next.documents)
			clear(next.documents)
			log = append(log, "filter")
		case index.Clear:
			r.Deleted = len(next.documents)
			clear(next.documents)
			log = append(log, "clear")
		case index.UpdateSettings:
			next.settings++
			log = append(log, "settings")
		case index.EditDocuments:
			r.Edited = len(next.documents)
			log = append(log, "edit")
		}
		next.results = append(next.results, r)
	}
	e.indexes[uid] = next
	e.log = append(e.log, uid+": "+strings.Join(log, " "))
	return next.results, nil
}

func (e *fakeEngine) ids(payload string) ([]string, error) {
	f, err := e.fs.Open(payload)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var ids []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var d struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			return nil, err
		}
		ids = append(ids, d.ID)
	}
	return ids, nil
}

func (e *fakeEngine) took() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.log)
}

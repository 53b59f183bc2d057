package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/resultcache"
	"svc/internal/vfs"
)

// testValues are cached with views, and dropped when a view is closed.
var testValues = resultcache.NewKind[int]("values of tests of evictions")

// TestEvictionsBesideEverything runs searches, writes, deletions, swaps, merges, inspections, copies and evictions at once. Each view must
// show a state that its index had while the view was taken.
func TestEvictionsBesideEverything(t *testing.T) {
	const changes = 150
	dir := t.TempDir()
	b := &bed{t: t, fs: vfs.OS, options: Options{FS: vfs.OS, keptLoaded: 2, mostLoaded: 3}}
	payload := func(docs ...string) AddDocuments {
		name := filepath.Join(dir, fmt.Sprint("payload", b.payloads))
		b.payloads++
		if err := vfs.WriteFile(vfs.OS, name, []byte(strings.Join(docs, "\n")+"\n")); err != nil {
			t.Fatal(err)
		}
		return AddDocuments{Payload: name, Documents: len(docs), PrimaryKey: "id"}
	}
	c, err := OpenCatalog(filepath.Join(dir, "indexes"), b.options)
	if err != nil {
		t.Fatal(err)
	}
	c.inlineTombstones = 19
	b.c = c

	const uids = 8
	uid := func(i int) string { return fmt.Sprint("i", i) }
	// states are the states that an index may have had, by uid, latest last. Those before settled are over.
	var model struct {
		sync.Mutex
		states  [uids][]map[string]string
		settled [uids]int
	}
	for i := range uids {
		model.states[i] = []map[string]string{{}}
	}
	begin := func(i int, next map[string]string) {
		model.Lock()
		defer model.Unlock()
		model.states[i] = append(model.states[i], next)
	}
	settle := func(i int) {
		model.Lock()
		defer model.Unlock()
		model.settled[i] = len(model.states[i]) - 1
	}
	now := func(i int) map[string]string { return model.states[i][len(model.states[i])-1] } // for the writer alone

	var changing sync.Mutex // held during a change and during a copy
	done := make(chan struct{})
	var others sync.WaitGroup
	beside := func(pause time.Duration, f func(r *rand.Rand)) { // paused, so that other goroutines run
		n := uint64(rand.Uint32())
		others.Go(func() {
			r := rand.New(rand.NewPCG(n, 1))
			for {
				select {
				case <-done:
					return
				case <-time.After(pause):
					f(r)
				}
			}
		})
	}
	for range 3 { // readers
		beside(time.Millisecond, func(r *rand.Rand) {
			model.Lock()
			before := model.settled
			model.Unlock()
			ix := c.Get(uid(r.IntN(uids)))
			if ix == nil { // not created yet, or deleted
				return
			}
			v, err := ix.View()
			if err != nil {
				t.Error(err)
				return
			}
			defer v.Release()
			if r.IntN(3) == 0 {
				testValues.Put(v.Cache.Own(), []byte("k"), 1, 100)
			}
			i := int(v.UID[1] - '0')
			got := documents(t, v)
			model.Lock()
			states := model.states[i][before[i]:]
			model.Unlock()
			if len(got) > 0 && !slices.ContainsFunc(states, func(s map[string]string) bool { return maps.Equal(s, got) }) {
				t.Errorf("index %s has %v, may have %v", v.UID, got, states)
			}
		})
	}
	beside(200*time.Microsecond, func(r *rand.Rand) {
		if ix := c.Get(uid(r.IntN(uids))); ix != nil {
			ix.evict()
		}
	})
	beside(time.Millisecond, func(r *rand.Rand) {
		if ix := c.Get(uid(r.IntN(uids))); ix != nil {
			if _, err := ix.Counts(); err != nil {
				t.Error(err)
			}
		}
		c.evictIdle(c.loaded.clock(), r.IntN(2) == 0)
	})
	beside(5*time.Millisecond, func(r *rand.Rand) {
		c.inspect(t.Context(), 0)
		c.startupScan(t.Context())
	})
	beside(20*time.Millisecond, func(r *rand.Rand) { // copies
		changing.Lock()
		defer changing.Unlock()
		frozen, err := c.Freeze()
		if err != nil {
			t.Error(err)
			return
		}
		defer frozen.Release()
		for i, o := range frozen.Outlines() {
			v, err := frozen.View(i)
			if err != nil {
				t.Error(err)
				continue
			}
			if got := documents(t, v); !maps.Equal(got, now(int(o.UID[1]-'0'))) {
				t.Errorf("the copy of %s has %v, want %v", o.UID, got, now(int(o.UID[1]-'0')))
			}
			frozen.Done(i)
		}
	})

	r := rand.New(rand.NewPCG(7, 7))
	change := func(batch uint64) {
		changing.Lock()
		defer changing.Unlock()
		i, j := r.IntN(uids), r.IntN(uids)
		ix := c.Get(uid(i))
		switch what := r.IntN(20); {
		case ix == nil:
			if _, err := c.Create(uid(i), "id", batch); err != nil {
				t.Error(err)
			}
		case what == 0:
			documents := len(now(i))
			begin(i, map[string]string{})
			if n, err := c.Delete(uid(i), batch); err != nil || n != documents {
				t.Errorf("deleted %d of %d documents: %v", n, documents, err)
			}
			settle(i)
		case what == 1 && i != j && c.Get(uid(j)) != nil:
			a, z := now(i), now(j)
			begin(i, z)
			begin(j, a)
			if err := c.Swap([]Pair{{A: uid(i), B: uid(j)}}, batch); err != nil {
				t.Error(err)
			}
			settle(i)
			settle(j)
		case what == 2 && i != j && c.Get(uid(j)) == nil:
			begin(j, now(i))
			begin(i, map[string]string{})
			if err := c.Swap([]Pair{{A: uid(i), B: uid(j), Rename: true}}, batch); err != nil {
				t.Error(err)
			}
			settle(i)
			settle(j)
		case what == 3:
			if _, _, err := ix.Compact(t.Context(), batch, nil); err != nil {
				t.Error(err)
			}
		default:
			next := maps.Clone(now(i))
			var docs, gone []string
			for range 1 + r.IntN(4) {
				id := fmt.Sprint("d", r.IntN(12))
				if slices.Contains(gone, id) {
					continue
				}
				if what < 8 {
					delete(next, id)
					gone = append(gone, id)
					continue
				}
				doc := fmt.Sprintf(`{"id":"%s","n":%d}`, id, batch)
				next[id] = doc
				docs = append(docs, doc)
			}
			ops := []Op{DeleteDocuments{gone}}
			if len(docs) > 0 {
				ops = []Op{payload(docs...)}
			}
			begin(i, next)
			results, err := ix.Apply(t.Context(), batch, ops, nil)
			if err != nil || results[0].Err != nil {
				t.Errorf("%v, %+v", err, results)
			}
			settle(i)
		}
	}
	for n := range changes {
		change(uint64(n) + 1)
	}
	close(done)
	others.Wait()
	for i := range uids {
		if ix := c.Get(uid(i)); ix != nil {
			wantDocuments(t, ix, now(i))
			ix.evict()
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if b.c, err = openCatalog(filepath.Join(dir, "indexes"), b.options); err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for i := range uids {
		if ix := b.c.Get(uid(i)); ix != nil {
			wantDocuments(t, ix, now(i))
		} else if len(now(i)) > 0 {
			t.Errorf("%s is lost", uid(i))
		}
	}
}

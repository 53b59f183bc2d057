package index

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"svc/internal/text"
	"svc/internal/vfs"
	"svc/segment"
)

// model is the reference implementation of an index.
type model struct {
	docs    map[string]map[string]any
	numbers map[string]segment.DocID
}

func newModel() *model {
	return &model{map[string]map[string]any{}, map[string]segment.DocID{}}
}

// run applies one batch. Operations run in order, and document numbers follow the same rules as in an index.
func (m *model) run(ops []modelOp) (indexed, deleted []int) {
	taken := map[segment.DocID]bool{} // numbers freed here are free for the next batch only
	for _, n := range m.numbers {
		taken[n] = true
	}
	was := maps.Clone(m.numbers)
	for _, op := range ops {
		i, d := 0, 0
		switch {
		case op.clear:
			d = len(m.docs)
			m.docs, m.numbers = map[string]map[string]any{}, map[string]segment.DocID{}
			taken, was = map[segment.DocID]bool{}, map[string]segment.DocID{}
		case op.deletes != nil:
			for _, id := range op.deletes {
				if m.docs[id] != nil {
					d++
					delete(m.docs, id)
					delete(m.numbers, id)
				}
			}
		default:
			seen := map[string]bool{}
			for _, text := range op.docs {
				var doc map[string]any
				if err := json.Unmarshal([]byte(text), &doc); err != nil {
					panic(err)
				}
				id := doc["id"].(string)
				seen[id] = true
				old := m.docs[id]
				if old == nil && op.skip {
					continue
				}
				if op.merge && old != nil {
					merged := maps.Clone(old)
					maps.Copy(merged, doc)
					doc = merged
				}
				m.docs[id] = doc
				if _, ok := m.numbers[id]; ok {
					continue
				}
				n, again := was[id]
				for !again && taken[n] {
					n++
				}
				m.numbers[id], was[id], taken[n] = n, n, true
			}
			i = len(seen)
		}
		indexed, deleted = append(indexed, i), append(deleted, d)
	}
	return indexed, deleted
}

type modelOp struct {
	docs        []string
	merge, skip bool
	deletes     []string
	clear       bool
	settings    string
}

var words = strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon")

// randomDoc returns a document with every kind of value.
func randomDoc(r *rand.Rand, id string) string {
	text := func() string {
		var s []string
		for range r.IntN(6) {
			s = append(s, words[r.IntN(len(words))])
		}
		return strings.Join(s, []string{" ", ", ", "-"}[r.IntN(3)])
	}
	parts := []string{fmt.Sprintf(`"id":%q`, id)}
	optional := func(format string, args ...any) {
		if r.IntN(2) == 0 {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	optional(`"title":%q`, text())
	optional(`"n":%d`, r.IntN(5))
	optional(`"tags":[%q,%q,%d]`, words[r.IntN(4)], text(), r.IntN(3))
	optional(`"sub":{"a":%q,"b":[{"c":%q},{"c":%v}]}`, text(), text(), r.IntN(2) == 0)
	optional(`"sub.a":%q`, text())
	optional(`"n.of.it":{"sub.a":%d}`, r.IntN(3))
	optional(`"maybe":%s`, []string{"null", `""`, "[]", "{}", "true", "1.5"}[r.IntN(6)])
	optional(`"_geo":{"lat":%d,"lng":"%d"}`, r.IntN(80), r.IntN(80))
	optional(`"_geojson":{"type":"LineString","coordinates":[[%d,%d],[%d.5,1]]}`, r.IntN(360)-180, r.IntN(80), r.IntN(360)-180)
	optional(`"_vectors":{"e":[1,2,%d]}`, r.IntN(9))
	optional(`"own%d":1`, r.IntN(20))
	return "{" + strings.Join(parts, ",") + "}"
}

var settingsChanges = []string{
	`{"filterableAttributes":["n","tags","maybe"]}`,
	`{"filterableAttributes":["sub"],"sortableAttributes":["title"]}`,
	`{"filterableAttributes":[]}`,
	`{"sortableAttributes":["n","_geo"]}`,
	`{"filterableAttributes":["_geojson","n"]}`,
	`{"searchableAttributes":["title","sub.b"]}`,
	`{"searchableAttributes":null}`,
	`{"stopWords":["alpha","pi"]}`,
	`{"stopWords":null}`,
	`{"localizedAttributes":[{"attributePatterns":["*"],"locales":["deu"]}]}`,
	`{"localizedAttributes":[{"attributePatterns":["sub*"],"locales":["de","fr"]}]}`,
	`{"localizedAttributes":null}`,
	`{"prefixSearch":"disabled"}`,
	`{"prefixSearch":"indexingTime"}`,
	`{"synonyms":{"alpha":["beta"]}}`,
	`{"distinctAttribute":"n","rankingRules":["words","title:asc"]}`,
}

func randomBatch(r *rand.Rand) []modelOp {
	id := func() string { return fmt.Sprint("d", r.IntN(60)) }
	if r.IntN(8) == 0 {
		return []modelOp{{settings: settingsChanges[r.IntN(len(settingsChanges))]}}
	}
	if r.IntN(30) == 0 {
		return []modelOp{{clear: true}}
	}
	var ops []modelOp
	for range 1 + r.IntN(4) {
		if r.IntN(3) == 0 {
			op := modelOp{deletes: []string{}}
			for range r.IntN(12) {
				op.deletes = append(op.deletes, id())
			}
			ops = append(ops, op)
			continue
		}
		op := modelOp{merge: r.IntN(2) == 0, skip: r.IntN(6) == 0}
		n := 1 + r.IntN(8)
		if r.IntN(12) == 0 {
			n = 2*chunkDocuments + 10 // more than one worker
		}
		for range n {
			if r.IntN(40) == 0 || n > 100 {
				op.docs = append(op.docs, randomDoc(r, fmt.Sprint("x", r.IntN(400))))
			} else {
				op.docs = append(op.docs, randomDoc(r, id()))
			}
		}
		ops = append(ops, op)
	}
	return ops
}

// ops converts operations of the model to real ones.
func (b *bed) ops(batch []modelOp) []Op {
	var ops []Op
	for _, m := range batch {
		switch {
		case m.clear:
			ops = append(ops, Clear{})
		case m.settings != "":
			ops = append(ops, update(b.t, m.settings))
		case m.deletes != nil:
			ops = append(ops, DeleteDocuments{m.deletes})
		default:
			a := b.payload(m.docs...)
			a.Merge, a.SkipCreation = m.merge, m.skip
			ops = append(ops, a)
		}
	}
	return ops
}

func (m *model) check(t testing.TB, ix *Index) {
	t.Helper()
	v := held(ix.View())
	defer v.Release()
	got := documents(t, v)
	for id, text := range got {
		var doc map[string]any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(doc, m.docs[id]) {
			t.Fatalf("document %s is %s, want %v", id, text, m.docs[id])
		}
	}
	if len(got) != len(m.docs) {
		t.Fatalf("%d documents, want %d", len(got), len(m.docs))
	}
	if n := numbers(v); !maps.Equal(n, m.numbers) {
		t.Fatalf("numbers %v, want %v", n, m.numbers)
	}
	fields := map[string]int{}
	for _, doc := range m.docs {
		for name := range doc {
			if name != "_vectors" {
				fields[name]++
			}
		}
	}
	if n := v.FieldDistribution(); !maps.Equal(n, fields) {
		t.Fatalf("fields %v, want %v", n, fields)
	}
}

// TestRandomHistories runs a random history with different amounts of memory, threads, compactions and restarts. The index must equal the
// model, and one that got its documents at once.
func TestRandomHistories(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, 5, 6}
	if testing.Short() {
		seeds = seeds[:2]
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 1 + r.IntN(3)})
			defer func() { b.close() }()
			tiny := r.IntN(2) == 0
			setUp := func() {
				if tiny {
					b.options.MaxIndexingMemory, b.c.options.MaxIndexingMemory = 1, 1
					b.c.builderBytes = 10 << 10
				}
			}
			setUp()
			ix := b.create("m")
			b.apply(ix, AddDocuments{Payload: b.payload().Payload, PrimaryKey: "id"})
			m := newModel()
			stale := 0
			for step := range 60 {
				batch := randomBatch(r)
				if b.c.older = nil; r.IntN(3) == 0 { // an older analysis, with which words like "epsilon" differ
					b.c.older = before(t, text.German, 1)
				}
				results := b.apply(ix, b.ops(batch)...)
				indexed, deleted := m.run(batch)
				if batch[0].settings == "" {
					for i, res := range results {
						if res.Indexed != indexed[i] || res.Deleted != deleted[i] {
							t.Fatalf("step %d, operation %d: %+v, want %d indexed, %d deleted", step, i, res, indexed[i], deleted[i])
						}
					}
				}
				m.check(t, ix)
				switch r.IntN(6) {
				case 0:
					b.compact(ix)
					m.check(t, ix)
				case 1:
					b.reopen()
					setUp()
					ix = b.c.Get("m")
					m.check(t, ix)
				case 2:
					b.batch++
					if _, _, err := ix.Compact(t.Context(), b.batch, nil); err != nil {
						t.Fatal(err)
					}
					m.check(t, ix)
				}
				if step%6 == 5 {
					stale += b.reanalyze(ix)
					m.check(t, ix)
					b.checkFresh(ix)
				}
			}
			b.reanalyze(ix)
			b.checkFresh(ix)
			t.Logf("%d segments were reanalysed", stale)
		})
	}
}

// TestBatchesCompactionAndReadersAtOnce runs batches, the compactor and readers at once. Every view must be complete, and the final state
// right. A view of mapped files that is used after its release would crash the process.
func TestBatchesCompactionAndReadersAtOnce(t *testing.T) {
	t.Run("in memory", func(t *testing.T) { allAtOnce(t, vfs.NewMem()) })
	t.Run("mapped", func(t *testing.T) {
		t.Chdir(t.TempDir())
		allAtOnce(t, vfs.OS)
	})
}

func allAtOnce(t *testing.T, fsys vfs.FS) {
	const seed = 17
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	b := newBed(t, fsys, Options{MaxIndexingThreads: 2})
	defer func() { b.close() }()
	b.c.compactor.plan.MinRun = 2 // merge as often as possible
	b.c.compactor.start()
	ix := b.create("m")
	b.apply(ix, AddDocuments{Payload: b.payload().Payload, PrimaryKey: "id"})
	m := newModel()

	var stop atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !stop.Load() {
				v := held(ix.View())
				docs := 0
				for _, l := range v.Segments {
					for _, f := range l.ColumnFields() { // columns are added beside the segment at the same time
						if c := l.Column(f); c == nil || c.Null() == nil {
							t.Errorf("field %d has no column", f)
						}
					}
					for it := l.LiveRows().Iterator(); it.HasNext(); docs++ {
						row := segment.Row(it.Next())
						if _, ok := l.RowOf(l.DocID(row)); !ok {
							t.Error("a document is not found by its number")
						}
						if doc, err := l.AppendDocument(nil, row); err != nil || !json.Valid(doc) {
							t.Errorf("a document reads as %q, %v", doc, err)
						}
					}
				}
				if docs != v.Documents() {
					t.Errorf("%d documents, want %d", docs, v.Documents())
				}
				v.Release()
			}
		})
	}
	for range 80 {
		batch := randomBatch(r)
		b.apply(ix, b.ops(batch)...)
		m.run(batch)
		m.check(t, ix)
	}
	stop.Store(true)
	readers.Wait()
	b.checkFresh(ix)
	v := held(ix.View())
	n := len(v.Segments)
	v.Release()
	if n > 12 {
		t.Errorf("%d segments are left after a stream of batches", n)
	}
}

package index

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/vfs"
)

// recastBed returns a bed that recasts segments from `fewest` changed documents on.
func recastBed(t *testing.T, fewest int) (*bed, *Index) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 2})
	b.c.builderBytes, b.c.recastRows = 1<<10, fewest
	b.c.importPlan.MinRun, b.c.importPlan.MinLargeRun = 1000, 1000 // so that the segments stay apart
	return b, b.create("p")
}

// TestRecast checks which changes leave all words as they are, so that a segment is recast.
func TestRecast(t *testing.T) {
	wide := "{"
	for n := range maxMovedFields - 2 {
		wide += fmt.Sprintf(`"f%d":1,`, n)
	}
	wide += `"last":1}`
	for _, tt := range []struct {
		name, operation string
		recast          bool
	}{
		{"a number", `"increment":{"n":1}`, true},
		{"to null", `"set":{"n":null}`, true},
		{"an array", `"append":{"tags":["z"]}`, true},
		{"a nested value", `"set":{"o.p":70}`, true},
		{"a hidden value", `"set":{"hidden":"other words"}`, true},
		{"a word", `"set":{"t":"other words"}`, false},
		{"a nested word", `"set":{"o.q":"other words"}`, false},
		{"a number that is searched", `"set":{"o.q":7}`, false},
		{"a new field", `"set":{"fresh":1}`, false},
		{"a new field with words", `"set":{"w":"words"}`, false},
		{"a known field added", `"set":{"seldom":1}`, true},
		{"a field removed", `"unset":["n"]`, true},
		{"a nested field removed", `"unset":["o.p"]`, true},
		{"a nested field with words removed", `"unset":["o.q"]`, false},
		{"a field with words removed", `"unset":["t"]`, false},
		{"a hidden field removed", `"unset":["hidden"]`, true},
		{"one removed and one added", `"unset":["n"],"set":{"seldom":{"deep":2}}`, true},
		{"a key with a dot removed", `"unset":["x.y"]`, false},
		{"the most fields removed", `"unset":["wide"]`, true}, // including wide itself
		{"too many fields removed", `"unset":["wide","n"]`, false},
		{"a point", `"set":{"_geo":{"lat":2,"lng":2}}`, false},
	} {
		b, ix := recastBed(t, 1)
		b.apply(ix, update(t, `{"searchableAttributes":["t","o.q","w"],"filterableAttributes":["n","tags","o.p","_geo","seldom"],"sortableAttributes":["n"]}`),
			b.payload(`{"id":"other","seldom":{"deep":1},"w":"some"}`))
		var docs, operations []string
		for id := range 20 {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"t":"some words %d","n":%d,"tags":["a","B"],"o":{"p":%d,"q":"deep"},"hidden":"h","x.y":1,"wide":%s,"_geo":{"lat":1,"lng":1}}`, id, id, id, id, wide))
			operations = append(operations, fmt.Sprintf(`{"id":%d,%s}`, id, tt.operation))
		}
		b.apply(ix, b.payload(docs...))
		before := b.c.Work()
		b.apply(ix, b.patch(operations...))
		if recast := b.c.Work().Merges > before.Merges; recast != tt.recast {
			t.Errorf("%s: words are copied: %v, want %v", tt.name, recast, tt.recast)
		}
		if n := b.c.Work().Documents - before.Documents; n != 20 {
			t.Errorf("%s: %d documents in the statistics", tt.name, n)
		}
		b.checkFresh(ix)
		b.close()
	}
}

// TestFewChangesAreNotRecast checks that a segment is not recast for fewer changes than justify rewriting it.
func TestFewChangesAreNotRecast(t *testing.T) {
	b, ix := recastBed(t, 2)
	b.c.builderBytes = 1 << 20
	defer b.close()
	b.apply(ix, update(t, `{"searchableAttributes":["t"],"filterableAttributes":["n"]}`))
	var docs []string
	for id := range 40 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"t":"words","n":1}`, id))
	}
	b.apply(ix, b.payload(docs...))
	for i, tt := range []struct {
		changed int
		recast  bool
	}{{1, false}, {4, false}, {5, true}} {
		var operations []string
		for id := range tt.changed {
			operations = append(operations, fmt.Sprintf(`{"id":%d,"set":{"n":%d}}`, 8*id, i+2))
		}
		before := b.c.Work().Merges
		if i == 2 {
			b.compact(ix)
			before = b.c.Work().Merges
		}
		b.apply(ix, b.patch(operations...))
		if recast := b.c.Work().Merges > before; recast != tt.recast {
			t.Errorf("%d documents: words are copied: %v, want %v", tt.changed, recast, tt.recast)
		}
	}
	b.checkFresh(ix)
}

// TestSegmentsOfMergesAreNotRecast changes documents while a merge reads their segment.
func TestSegmentsOfMergesAreNotRecast(t *testing.T) {
	b, ix := recastBed(t, 1)
	defer b.close()
	b.apply(ix, update(t, `{"searchableAttributes":["t"],"filterableAttributes":["n"]}`), b.payload(`{"id":1,"t":"words","n":1}`))
	v := held(ix.View())
	_, m, _ := ix.merges.begin(context.Background(), v.files)
	v.Release()
	before := b.c.Work().Merges
	b.apply(ix, b.patch(`{"id":1,"set":{"n":2}}`))
	ix.merges.end(m)
	if b.c.Work().Merges > before {
		t.Error("a segment is recast during its merge")
	}
	b.apply(ix, b.patch(`{"id":1,"set":{"n":3}}`))
	if b.c.Work().Merges == before {
		t.Error("no segment is recast")
	}
	if n := ix.merges.count(); n != 0 {
		t.Errorf("%d merges are still running", n)
	}
	wantDocuments(t, ix, map[string]string{"1": `{"id":1,"t":"words","n":3}`})
}

// TestMergedSegmentsAreNotRecast merges the segments while the batch runs.
func TestMergedSegmentsAreNotRecast(t *testing.T) {
	b, ix := recastBed(t, 1)
	defer b.close()
	b.apply(ix, update(t, `{"searchableAttributes":["t"],"filterableAttributes":["n"]}`), b.payload(`{"id":1,"t":"words","n":1}`))
	b.apply(ix, b.payload(`{"id":2,"t":"words","n":1}`))
	merged := false
	b.batch++
	_, err := ix.Apply(context.Background(), b.batch, []Op{b.patch(`{"id":1,"set":{"n":2}}`, `{"id":2,"set":{"n":2}}`)}, func(int, Step) {
		if merged {
			return
		}
		merged = true
		v := held(ix.View())
		defer v.Release()
		if ok, err := ix.mergeSegments(context.Background(), v, []int{0, 1}, unthrottled); !ok || err != nil {
			t.Error(ok, err)
		}
	})
	if err != nil || !merged {
		t.Fatal(merged, err)
	}
	if n := b.c.Work().Merges; n != 1 {
		t.Errorf("%d merges, want 1", n)
	}
	b.checkFresh(ix)
	wantDocuments(t, ix, map[string]string{"1": `{"id":1,"t":"words","n":2}`, "2": `{"id":2,"t":"words","n":2}`})
}

// TestAFailedRecastDoesNotFailItsBatch replaces documents of a segment that cannot be recast.
func TestAFailedRecastDoesNotFailItsBatch(t *testing.T) {
	const n = 900
	documents := func(value int) (docs []string) {
		for id := range n {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"t":"some words %d","n":%d}`, id, id, value+id))
		}
		return docs
	}
	for _, tt := range []struct {
		name, section string
		memory        int64
		stopped       bool
		recast        bool
	}{
		{name: "nothing", recast: true},
		{name: "a document is damaged", section: "docs"},
		{name: "a posting list is damaged", section: "post"},
		{name: "the memory is too small", memory: 1},
		{name: "merges are stopped", stopped: true},
	} {
		t.Chdir(t.TempDir())
		b := newBed(t, vfs.OS, Options{MaxIndexingThreads: 1})
		b.c.recastRows = 1
		ix := b.create("p")
		b.apply(ix, update(t, `{"searchableAttributes":["t"],"filterableAttributes":["n"]}`), b.payload(documents(0)...))
		if tt.section != "" {
			v := held(ix.View())
			flipSection(t, v.files[0].path(), tt.section, 0.5)
			v.Release()
		}
		if tt.memory > 0 {
			ix.options.MaxIndexingMemory, b.c.builderBytes = tt.memory, 1
		}
		before := b.c.Work().Merges
		b.batch++
		_, err := ix.Apply(t.Context(), b.batch, []Op{b.payload(documents(1000)...)}, func(_ int, s Step) {
			if tt.stopped && s.Name == "document" {
				ix.merges.mu.Lock()
				for m := range ix.merges.mu.running {
					m.cancel()
				}
				ix.merges.mu.Unlock()
			}
		})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if recast := b.c.Work().Merges > before; recast != tt.recast {
			t.Errorf("%s: words are copied: %v", tt.name, recast)
		}
		b.checkFresh(ix)
		b.close()
	}
}

// TestRecastEqualsIndexing runs the same random batches on an index that recasts segments and on one that never does.
func TestRecastEqualsIndexing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	one, ix := recastBed(t, 1)
	two, twin := recastBed(t, math.MaxInt)
	defer func() { one.close(); two.close() }()
	both := func(ops func(b *bed) []Op) {
		x := one.apply(ix, ops(one)...)
		y := two.apply(twin, ops(two)...)
		for i := range x {
			if fmt.Sprint(x[i].Indexed, x[i].Deleted, x[i].Patched) != fmt.Sprint(y[i].Indexed, y[i].Deleted, y[i].Patched) {
				t.Fatalf("operation %d: %+v, want %+v", i, x[i], y[i])
			}
		}
	}
	settings := update(t, []string{
		`{"searchableAttributes":["t","o.q"],"filterableAttributes":["n","tags","o"],"sortableAttributes":["n"]}`,
		`{"searchableAttributes":["t","o"],"filterableAttributes":["n","tags"],"prefixSearch":"disabled"}`,
		`{"searchableAttributes":["tags","t"],"filterableAttributes":["n"],"sortableAttributes":["o.p"]}`,
	}[r.IntN(3)])
	both(func(*bed) []Op { return []Op{settings} })
	long := strings.Repeat("so many words ", 1300)
	value := func(of ...string) string { return of[r.IntN(len(of))] }
	document := func(id int) string {
		t := value(`"one"`, `"two words"`, `"Three more words"`, `7`, `null`, `["a","b c"]`)
		if r.IntN(60) == 0 {
			t = `"` + strings.Repeat(long, r.IntN(5)) + `"` // split, or too long
		}
		return fmt.Sprintf(`{"id":%d,"t":%s,"n":%s,"tags":%s,"o":{"p":%s,"q":%s}%s}`, id, t, value("1", "2.5", `"x"`, "null", "[]", "[1,2]", "18446744073709551615"),
			value(`["a"]`, `["A","b"]`, `"b"`, `""`, "[null]"), value("1", "true", `["é","e"]`, `{"x":1}`), value(`"deep"`, "null", "3"), value("", "", `,"o.p":4`, `,"_geo":{"lat":1,"lng":2}`))
	}
	operation := func(id int) string {
		return fmt.Sprintf(`{"id":%d,%s}`, id, value(`"set":{"n":3}`, `"set":{"n":"y"}`, `"set":{"n":1e2}`, `"append":{"tags":["Z"]},"ifMissing":"create"`, `"set":{"o.p":["e"]}`, `"set":{"o.q":"deeper"}`,
			`"set":{"t":"two words"}`, `"unset":["n"]`, `"set":{"hidden":1}`, `"unset":["o.p"]`, `"set":{"hidden":{"n":1}},"unset":["tags"]`, `"unset":["hidden","o"]`, `"set":{"tags":"c"}`, `"set":{"n":5},"filter":"n = 1"`))
	}
	some := func(f func(id int) string) []string {
		var all []string
		for range 1 + r.IntN(40) {
			all = append(all, f(r.IntN(60)))
		}
		return all
	}
	for range 12 {
		var made []func(b *bed) Op
		for range 1 + r.IntN(3) {
			switch r.IntN(8) {
			case 0, 1:
				docs := some(document)
				made = append(made, func(b *bed) Op { return b.payload(docs...) })
			case 2:
				docs := some(func(id int) string { return fmt.Sprintf(`{"id":%d,"n":%s}`, id, value("1", "7")) })
				made = append(made, func(b *bed) Op { return b.merge(docs...) })
			case 3:
				ids := []string{fmt.Sprint(r.IntN(60)), fmt.Sprint(r.IntN(60))}
				made = append(made, func(*bed) Op { return DeleteDocuments{ids} })
			default:
				lines := some(operation)
				if same := operation(0); r.IntN(2) == 0 { // the same operation for all documents
					lines = nil
					for id := range 60 {
						lines = append(lines, strings.Replace(same, `"id":0`, fmt.Sprintf(`"id":%d`, id), 1))
					}
				}
				made = append(made, func(b *bed) Op { return b.patch(lines...) })
			}
		}
		both(func(b *bed) (ops []Op) {
			for _, f := range made {
				ops = append(ops, f(b))
			}
			return ops
		})
		if r.IntN(3) == 0 {
			one.compact(ix)
		}
		v, w := held(ix.View()), held(twin.View())
		if got, want := dump(t, v), dump(t, w); got != want {
			t.Fatalf("the index differs from one without recasts:\n%s", firstDifference(got, want))
		}
		if got, want := numbers(v), numbers(w); !maps.Equal(got, want) {
			t.Fatalf("documents have the numbers %v, want %v", got, want)
		}
		v.Release()
		w.Release()
	}
	one.checkFresh(ix)
	if two.c.Work().Merges > 0 {
		t.Error("the reference recasts segments")
	}
	before := one.c.Work().Merges
	v := held(ix.View())
	ids := slices.Sorted(maps.Keys(documents(t, v)))
	v.Release()
	var lines []string
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf(`{"id":%q,"n":1}`, id))
	}
	one.apply(ix, one.merge(lines...))
	lines = lines[:0]
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf(`{"id":%q,"increment":{"n":1}}`, id))
	}
	if one.apply(ix, one.patch(lines...)); len(ids) > 0 && one.c.Work().Merges == before {
		t.Error("no segment is recast")
	}
	one.checkFresh(ix)
}

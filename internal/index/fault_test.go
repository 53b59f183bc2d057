package index

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"svc/internal/text"
	"svc/internal/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// step is one change of a small history of a catalog. After a crash it is there completely or not at all.
type step struct {
	name string
	do   func(b *bed, batch uint64) error
}

func batchStep(name string, ops ...Op) step {
	return step{name, func(b *bed, batch uint64) error {
		ix := b.c.Get("a")
		if batch%2 == 0 {
			ix.evict() // so that it is opened again
		}
		results, err := ix.Apply(context.Background(), batch, ops, nil)
		if err != nil && !errors.Is(err, ErrApplied) {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
		return nil
	}}
}

// history returns the steps, and writes their payloads durably to the file system of the bed.
func history(b *bed) []step {
	b.t.Helper()
	german := b.payload(`{"id":6,"t":"Schifffahrtskalender epsilon","_vectors":{"m":null}}`, `{"id":7,"t":"Straße125","_vectors":{"m":[1,1]}}`)
	values := b.patch(`{"id":3,"increment":{"n":1}}`, `{"id":5,"set":{"n":"x"}}`)
	steps := []step{
		{"create a", func(b *bed, batch uint64) error { _, err := b.c.Create("a", "", batch); return err }},
		batchStep("add", b.payload(`{"id":1,"t":"one","n":1}`, `{"id":2,"t":"two","n":2}`, `{"id":3,"t":"three"}`)),
		batchStep("replace", b.payload(`{"id":2,"t":"second"}`), b.merge(`{"id":3,"n":3}`, `{"id":4,"t":"four"}`)),
		batchStep("delete", DeleteDocuments{[]string{"1"}}),
		batchStep("update partially", b.patch(`{"id":2,"set":{"o.k":[1]}}`, `{"id":5,"increment":{"n":1},"ifMissing":"create"}`, `{"id":3,"unset":["t"]}`, `{"id":1,"set":{"t":"gone"}}`)),
		batchStep("add a column", update(b.t, `{"filterableAttributes":["n"],"searchableAttributes":["t"]}`)),
		{"change values", func(b *bed, batch uint64) error {
			b.c.recastRows = 1
			defer func() { b.c.recastRows = minRecastRows }()
			return batchStep("", values).do(b, batch)
		}},
		batchStep("add more", b.payload(`{"id":5,"t":"five"}`)),
		{"merge", func(b *bed, batch uint64) error {
			o := b.c.compactor.plan
			o.MinRun = 2
			_, err := b.c.Get("a").compactOnce(context.Background(), o, -1, 1<<40, unthrottled)
			return err
		}},
		batchStep("analyse again", update(b.t, `{"stopWords":["five"]}`)),
		batchStep("have large settings", update(b.t, `{"synonyms":{"one":["two","second one"],"zwei":["two"]}}`)),
		batchStep("replace again", b.payload(`{"id":4,"t":"fourth"}`)),
		batchStep("bring vectors", b.merge(`{"id":2,"_vectors":{"m":null}}`, `{"id":3,"_vectors":{"m":[1,-2]}}`, `{"id":4,"_vectors":{"m":[[3,4],[5,6]]}}`, `{"id":5,"_vectors":{"m":[7,8]}}`)),
		batchStep("add an embedder", update(b.t, `{"embedders":{"m":{"source":"userProvided","dimensions":2}}}`)),
		batchStep("give a vector", b.merge(`{"id":2,"_vectors":{"m":[9,-9]}}`)),
		batchStep("make bits of them", update(b.t, `{"embedders":{"m":{"binaryQuantized":true}}}`)),
		{"compact", func(b *bed, batch uint64) error {
			_, _, err := b.c.Get("a").Compact(context.Background(), batch, nil)
			return err
		}},
		batchStep("become German", update(b.t, `{"localizedAttributes":[{"attributePatterns":["*"],"locales":["deu"]}]}`)),
		{"add as an older program", func(b *bed, batch uint64) error {
			b.c.older = before(b.t, text.German, 1)
			defer func() { b.c.older = nil }()
			return batchStep("", german).do(b, batch)
		}},
		{"index words again", func(b *bed, _ uint64) error {
			for left := true; left; {
				var err error
				if left, err = b.c.Get("a").reanalyzeOne(context.Background(), func(stale) {}, func(int) {}); err != nil {
					return err
				}
			}
			return nil
		}},
		batchStep("have other large settings", update(b.t, `{"synonyms":{"one":["first"]}}`)),
		batchStep("have small settings", update(b.t, `{"synonyms":null,"stopWords":null,"localizedAttributes":null}`)),
		batchStep("remove the embedder", update(b.t, `{"embedders":{"m":null}}`)),
		batchStep("let documents expire", update(b.t, `{"timeToLive":{"attribute":"end","seconds":60}}`), b.payload(`{"id":31,"end":0}`, `{"id":32,"end":1e9}`, `{"id":33,"end":9e9}`)),
		batchStep("delete expired documents", DeleteExpired{Moment: 1e9}),
		batchStep("let no documents expire", DeleteExpired{Moment: 2e9}, update(b.t, `{"timeToLive":null}`)),
		{"create b", func(b *bed, batch uint64) error { _, err := b.c.Create("b", "key", batch); return err }},
		{"point aliases", func(b *bed, _ uint64) error {
			return b.c.MoveAliases([]AliasMove{{"first", "a"}, {"second", "b"}, {"third", "b"}})
		}},
		{"move aliases", func(b *bed, _ uint64) error {
			if b.c.Aliases().Index("first") == "b" { // done before the crash
				return nil
			}
			return b.c.MoveAliases([]AliasMove{{"first", "b"}, {"second", "a"}, {"third", ""}})
		}},
		{"swap", func(b *bed, batch uint64) error { return b.c.Swap([]Pair{{A: "a", B: "b"}}, batch) }},
		{"swap back", func(b *bed, batch uint64) error { return b.c.Swap([]Pair{{A: "a", B: "b"}}, batch) }},
		{"delete b", func(b *bed, batch uint64) error { _, err := b.c.Delete("b", batch); return err }},
		batchStep("clear", Clear{}),
		batchStep("begin again", b.payload(`{"id":9,"t":"nine"}`)),
		{"delete a", func(b *bed, batch uint64) error { _, err := b.c.Delete("a", batch); return err }},
	}
	if err := b.fs.SyncDir("payloads"); err != nil {
		b.t.Fatal(err)
	}
	if err := b.fs.SyncDir("/"); err != nil {
		b.t.Fatal(err)
	}
	return steps
}

// state returns everything that a catalog shows as text.
func (b *bed) state() string {
	b.t.Helper()
	var out strings.Builder
	for _, alias := range b.c.Aliases().All() {
		fmt.Fprintf(&out, "alias %s of %s\n", alias, b.c.Aliases().Index(alias))
	}
	for _, uid := range b.c.UIDs() {
		v := held(b.c.Get(uid).PlainView()) // includes stored documents that have expired
		settings, err := v.Settings.MarshalJSON()
		if err != nil {
			b.t.Fatal(err)
		}
		fmt.Fprintf(&out, "index %s, key %q, settings %s, synonyms of one %q\n%s", uid, v.PrimaryKey, settings, v.Synonyms().Lookup("one", 100), dump(b.t, v))
		v.Release()
	}
	return out.String()
}

// prepared returns a bed whose catalog directory is durable, the steps, and the states before and after each step.
func prepared(t *testing.T, hook func(vfs.Op) error) (b *bed, mem *vfs.MemFS, steps []step) {
	mem = vfs.NewMem()
	b = newBed(t, vfs.Hook(mem, mem.LoseOnError(hook)), Options{inlineCatalog: 64, catalogDifferences: 64}) // too small for the aliases
	return b, mem, history(b)
}

func states(t *testing.T) []string {
	b, _, steps := prepared(t, func(vfs.Op) error { return nil })
	defer b.close()
	all := []string{b.state()}
	for i, s := range steps {
		if err := s.do(b, uint64(i+1)); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		all = append(all, b.state())
	}
	return all
}

// TestFileOperations compares the order in which files are created, synced, renamed and removed with a golden file. What a crash leaves
// depends on this order.
func TestFileOperations(t *testing.T) {
	var log vfs.Log
	b, _, steps := prepared(t, log.Hook)
	defer b.close()
	log.Take()
	var out strings.Builder
	for i, s := range steps {
		if err := s.do(b, uint64(i+1)); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		fmt.Fprintf(&out, "# %s\n", s.name)
		for _, line := range log.Take() {
			out.WriteString(strings.ReplaceAll(line, catalogDir+"/", "") + "\n")
		}
		out.WriteByte('\n')
	}
	golden := filepath.Join("testdata", "fileops.txt")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != string(want) {
		t.Errorf("the file operations differ from %s (run with -rewrite to renew it):\n%s", golden, firstDifference(got, string(want)))
	}
}

var errPower = errors.New("the power is gone")

// TestPowerFailureAtEveryOperation cuts the power before each file operation of the history. Acknowledged changes must stay; the
// interrupted one must be there completely or not at all, and can be repeated.
func TestPowerFailureAtEveryOperation(t *testing.T) {
	want := states(t)
	outcomes := map[bool]int{}
	for n := int64(0); ; n++ {
		var at atomic.Int64
		var clones []*vfs.MemFS
		var mem *vfs.MemFS
		at.Store(-1 << 40) // not yet
		b, mem, steps := prepared(t, func(o vfs.Op) error {
			if !o.Kind.Changes() {
				return nil
			}
			i := at.Add(1) - 1
			if i == n {
				clones = append(clones, mem.CrashClone(nil))
				for seed := range uint64(2) {
					clones = append(clones, mem.CrashClone(rand.New(rand.NewPCG(seed, uint64(n)))))
				}
			}
			if i >= n {
				return errPower
			}
			return nil
		})
		at.Store(0)
		acknowledged := 0
		for i, s := range steps {
			if s.do(b, uint64(i+1)) != nil {
				break
			}
			acknowledged++
		}
		b.close()
		if len(clones) == 0 {
			t.Logf("%d operations; the interrupted change was there %d times, and missing %d times", n, outcomes[true], outcomes[false])
			break
		}
		if n > 1000 {
			t.Fatal("the history does not end")
		}
		for c, fsys := range clones {
			what := fmt.Sprintf("operation %d, clone %d, in step %q", n, c, steps[min(acknowledged, len(steps)-1)].name)
			a := &bed{t: t, fs: fsys, options: b.options}
			a.options.FS = fsys
			a.open()
			got := a.state()
			// Steps that end with the removal of files succeed even if that fails, so one more step may be acknowledged than steps
			// changed the state.
			there := acknowledged < len(steps) && got == want[acknowledged+1] && want[acknowledged+1] != want[acknowledged]
			if !there && got != want[acknowledged] {
				t.Fatalf("%s: after the crash:\n%s", what, firstDifference(got, want[acknowledged]))
			}
			outcomes[there]++
			last := min(acknowledged+1, len(steps))
			if c == 0 {
				last = len(steps)
			}
			for i := acknowledged; i < last; i++ {
				if err := steps[i].do(a, uint64(i+1)); err != nil {
					t.Fatalf("%s: repeated step %q: %v", what, steps[i].name, err)
				}
				if got := a.state(); got != want[i+1] {
					t.Fatalf("%s: after repeated step %q:\n%s", what, steps[i].name, firstDifference(got, want[i+1]))
				}
			}
			a.close()
			if c > 0 {
				continue
			}
			a.open() // removes what the crash left
			for _, name := range list(t, fsys, catalogDir) {
				if filepath.Base(name) != catalogName {
					t.Errorf("%s: %s is left", what, name)
				}
			}
			a.close()
		}
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Error("a branch of the test never ran")
	}
}

// TestErrorsAtEveryOperation fails each file operation alone, every third one with the next, and every seventh with the next two. The
// failed change must leave everything as it was, also on disk, and must succeed when it is repeated.
func TestErrorsAtEveryOperation(t *testing.T) {
	want := states(t)
	broken := errors.New("disk on fire")
	for _, try := range []struct{ count, step int64 }{{1, 1}, {2, 3}, {3, 7}} {
		count, failures := try.count, 0
		for n := count - 1; ; n += try.step {
			armed := func(vfs.Op) error { return nil }
			var hit atomic.Bool
			b, mem, steps := prepared(t, func(o vfs.Op) error {
				err := armed(o)
				if err != nil {
					hit.Store(true)
				}
				return err
			})
			armed = vfs.FailFrom(n, count, nil, broken)
			for i, s := range steps {
				err := s.do(b, uint64(i+1))
				if err == nil {
					continue
				}
				failures++
				what := fmt.Sprintf("%d errors from operation %d, in step %q", count, n, s.name)
				if !errors.Is(err, broken) {
					t.Fatalf("%s: error %v", what, err)
				}
				armed = func(vfs.Op) error { return nil }
				if got := b.state(); got != want[i] {
					t.Fatalf("%s: after the error:\n%s", what, firstDifference(got, want[i]))
				}
				seeds := uint64(2)
				if ix := b.c.Get("a"); ix != nil && ix.unsure.Load() { // files of both manifests are needed
					seeds = 16
				}
				for seed := range seeds {
					a := &bed{t: t, fs: mem.CrashClone(rand.New(rand.NewPCG(seed, uint64(n)))), options: b.options}
					a.options.FS = a.fs
					a.open()
					// One failure can be undone. After two in a row, undoing fails as well.
					if got := a.state(); got != want[i] && (count == 1 || got != want[i+1]) {
						t.Fatalf("%s: after a crash on it:\n%s", what, firstDifference(got, want[i]))
					}
					a.close()
				}
				if err := s.do(b, uint64(i+1)); err != nil {
					t.Fatalf("%s: second try: %v", what, err)
				}
				if got := b.state(); got != want[i+1] {
					t.Fatalf("%s: second try:\n%s", what, firstDifference(got, want[i+1]))
				}
				a := &bed{t: t, fs: mem.CrashClone(nil), options: b.options} // a failed sync proves nothing about the next one
				a.options.FS = a.fs
				a.open()
				if got := a.state(); got != want[i+1] {
					t.Fatalf("%s: after a crash after the second try:\n%s", what, firstDifference(got, want[i+1]))
				}
				a.close()
			}
			if got := b.state(); got != want[len(steps)] {
				t.Fatalf("%d errors from operation %d: at the end:\n%s", count, n, firstDifference(got, want[len(steps)]))
			}
			b.close()
			if !hit.Load() {
				t.Logf("%d operations, %d failures of changes", n, failures)
				break
			}
			if n > 3000 {
				t.Fatal("the history does not end")
			}
		}
		if failures == 0 {
			t.Error("no failed operation made a change fail")
		}
	}
}

// TestAMergeBesideAFailedCommit runs a batch while the manifest of a merge cannot be written. The batch must be durable all the same, by
// giving its segments new names. The next batch must not rename its segments.
func TestAMergeBesideAFailedCommit(t *testing.T) {
	mem := vfs.NewMem()
	hook := func(vfs.Op) error { return nil }
	b := newBed(t, vfs.Hook(mem, mem.LoseOnError(func(o vfs.Op) error { return hook(o) })), Options{})
	defer func() { b.close() }()
	if _, err := b.c.Create("a", "", 1); err != nil {
		t.Fatal(err)
	}
	for i, doc := range []string{`{"id":1}`, `{"id":2}`} {
		if _, err := b.c.Get("a").Apply(t.Context(), uint64(2+i), []Op{b.payload(doc)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	last, next := b.payload(`{"id":3}`), b.payload(`{"id":4}`)
	if err := errors.Join(mem.SyncDir("payloads"), mem.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	broken, merged, fails := errors.New("injected failure"), false, false
	renamed := 0 // segments
	hook = func(o vfs.Op) error {
		if o.Kind == vfs.OpRename && strings.HasSuffix(o.Name, segSuffix) {
			renamed++
		}
		switch {
		case o.Kind == vfs.OpStat || o.Kind == vfs.OpList:
		case fails && o.Kind == vfs.OpSyncDir:
			return broken
		case !merged && o.Kind == vfs.OpOpen && strings.HasSuffix(o.Name, segSuffix): // the segment of the batch is complete
			merged, fails = true, true
			plan := b.c.compactor.plan
			plan.MinRun = 2
			if _, err := b.c.Get("a").compactOnce(t.Context(), plan, -1, 1<<40, unthrottled); !errors.Is(err, broken) {
				t.Errorf("the merge: %v", err)
			}
			fails = false
		}
		return nil
	}
	if _, err := b.c.Get("a").Apply(t.Context(), 4, []Op{last}, nil); err != nil || !merged {
		t.Fatalf("merged: %v, %v", merged, err)
	}
	if renamed != 1 {
		t.Errorf("%d segments of the batch were renamed", renamed)
	}
	if _, err := b.c.Get("a").Apply(t.Context(), 5, []Op{next}, nil); err != nil || renamed != 1 {
		t.Errorf("the next batch: %v, %d segments were renamed", err, renamed)
	}
	want := b.state()
	a := &bed{t: t, fs: mem.CrashClone(nil), options: b.options}
	a.options.FS = a.fs
	a.open()
	if got := a.state(); got != want {
		t.Error(firstDifference(got, want))
	}
	a.close()
}

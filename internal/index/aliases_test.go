package index

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// pointed returns all aliases and their indexes as text.
func pointed(c *Catalog) (all []string) {
	a := c.Aliases()
	for _, alias := range a.All() {
		all = append(all, alias+"="+a.Index(alias))
	}
	return all
}

func TestAliases(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	for _, uid := range []string{"a", "b", "c"} {
		b.create(uid)
	}
	want := func(all ...string) {
		t.Helper()
		for range 2 {
			if got := pointed(b.c); !slices.Equal(got, all) {
				t.Fatalf("aliases %v, want %v", got, all)
			}
			b.reopen()
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	format := func() uint32 {
		file, err := vfs.ReadFile(b.fs, path.Join(catalogDir, catalogName))
		must(err)
		return uint32(file[8])
	}
	want()
	if format() != 1 {
		t.Errorf("without aliases the catalog has format %d", format())
	}
	must(b.c.MoveAliases([]AliasMove{{"x", "a"}, {"y", "a"}}))
	want("x=a", "y=a")
	if format() != aliasesVersion {
		t.Errorf("with aliases the catalog has format %d", format())
	}
	if got := b.c.Aliases().Of("a"); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("a has %v", got)
	}
	// MoveAliases makes all moves or none.
	wantCode(t, b.c.MoveAliases([]AliasMove{{"x", "b"}, {"y", "none"}}), "index_not_found")
	wantCode(t, b.c.MoveAliases([]AliasMove{{"x", "b"}, {"c", "a"}}), "index_already_exists")
	wantCode(t, b.c.MoveAliases([]AliasMove{{"x", "b"}, {"z", ""}}), "alias_not_found")
	want("x=a", "y=a")
	// No name is both an index and an alias.
	b.batch++
	_, err := b.c.Create("x", "", b.batch)
	wantCode(t, err, "alias_already_exists")
	b.batch++
	wantCode(t, b.c.Swap([]Pair{{A: "b", B: "x", Rename: true}}, b.batch), "alias_already_exists")
	// A swap leaves aliases with the uid, a rename takes them along, and a deletion removes them.
	b.batch++
	must(b.c.Swap([]Pair{{A: "a", B: "b"}}, b.batch))
	want("x=a", "y=a")
	b.batch++
	must(b.c.Swap([]Pair{{A: "a", B: "d", Rename: true}}, b.batch))
	want("x=d", "y=d")
	must(b.c.MoveAliases([]AliasMove{{"y", "c"}}))
	b.batch++
	if _, err = b.c.Delete("d", b.batch); err != nil {
		t.Fatal(err)
	}
	want("y=c")
	// A batch that runs again after a move recognizes its own change.
	must(b.c.MoveAliases([]AliasMove{{"y", ""}}))
	if _, err = b.c.Delete("d", b.batch); err != nil {
		t.Errorf("the repeated deletion: %v", err)
	}
	want()
}

// TestDamagedAliases checks that a catalog counts as damaged if an alias points to a missing index, or if its base is missing or damaged.
func TestDamagedAliases(t *testing.T) {
	seven, one := uint64(7), uint64(1)
	to := func(uid string) *string { return &uid }
	indexes := map[string]*uint64{"a": &one}
	whole := baseSeal.wrap([]byte(`{"Indexes":{"a":1,"b":2},"Aliases":{"x":"b"}}`))
	for name, f := range map[string]struct {
		catalogFile
		base []byte
		good bool
	}{
		"a missing index":                {catalogFile: catalogFile{entries: entries{indexes, map[string]*string{"x": to("none")}}, Next: 2}},
		"the uid of an index":            {catalogFile: catalogFile{entries: entries{indexes, map[string]*string{"a": to("a")}}, Next: 2}},
		"a base":                         {catalogFile: catalogFile{Next: 8, Base: 7}, base: whole, good: true},
		"a base that is missing":         {catalogFile: catalogFile{Next: 8, Base: 7}},
		"a base with a wrong byte":       {catalogFile: catalogFile{Next: 8, Base: 7}, base: append(slices.Clone(whole[:len(whole)-1]), 'x')},
		"a base that is cut":             {catalogFile: catalogFile{Next: 8, Base: 7}, base: whole[:40]},
		"a base that is no JSON":         {catalogFile: catalogFile{Next: 8, Base: 7}, base: baseSeal.wrap([]byte("x"))},
		"a base beyond the next number":  {catalogFile: catalogFile{Next: 7, Base: 7}, base: whole},
		"a base with a dangling alias":   {catalogFile: catalogFile{entries: entries{Indexes: map[string]*uint64{"b": nil}}, Next: 8, Base: 7}, base: whole},
		"one directory for two indexes":  {catalogFile: catalogFile{entries: entries{Indexes: map[string]*uint64{"c": &one}}, Next: 8, Base: 7}, base: whole},
		"a directory beyond the next":    {catalogFile: catalogFile{entries: entries{Indexes: map[string]*uint64{"c": &seven}}, Next: 7, Base: 3}, base: whole},
		"a catalog in place of the base": {catalogFile: catalogFile{Next: 8, Base: 7}, base: catalogSeal.wrap([]byte("{}"))},
		"a base, and a removed alias":    {catalogFile: catalogFile{entries: entries{map[string]*uint64{"b": nil}, map[string]*string{"x": nil}}, Next: 8, Base: 7}, base: whole, good: true},
	} {
		file, err := f.encode()
		if err != nil {
			t.Fatal(err)
		}
		fsys := vfs.NewMem()
		if err := errors.Join(fsys.MkdirAll("c"), vfs.WriteFile(fsys, path.Join("c", catalogName), file)); err != nil {
			t.Fatal(err)
		}
		if f.base != nil {
			if err := vfs.WriteFile(fsys, path.Join("c", baseName(f.Base)), f.base); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err = decodeCatalog("CATALOG", file, baseReader(fsys, "c"))
		if f.good != (err == nil) || err != nil && !apierr.IsCorruption(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManyEntries makes random changes to a catalog that keeps few entries in CATALOG, and compares it with a model, also after restarts.
func TestManyEntries(t *testing.T) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	b := newBed(t, vfs.NewMem(), Options{inlineCatalog: 300})
	defer func() { b.close() }()
	indexes, aliases := map[string]bool{}, map[string]string{}
	bases, changes := map[uint64]bool{}, 0
	pick := func() string { return slices.Sorted(maps.Keys(indexes))[random.IntN(len(indexes))] }
	for round := range 300 {
		if round%100 == 99 { // the remaining entries fit into CATALOG again
			var moves []AliasMove
			for alias := range aliases {
				moves = append(moves, AliasMove{alias, ""})
			}
			for uid := range maps.Clone(indexes) {
				if len(indexes) > 2 {
					b.batch++
					if _, err := b.c.Delete(uid, b.batch); err != nil {
						t.Fatal(err)
					}
					delete(indexes, uid)
					moves = slices.DeleteFunc(moves, func(m AliasMove) bool { return aliases[m.Alias] == uid })
				}
			}
			if err := b.c.MoveAliases(moves); err != nil {
				t.Fatal(err)
			}
			clear(aliases)
			if base := b.c.changing.content.base; base != 0 {
				t.Fatalf("%d indexes have the base %d", len(indexes), base)
			}
		}
		b.batch++
		switch name := fmt.Sprint("n", random.IntN(60)); {
		case len(indexes) == 0 || random.IntN(8) == 0:
			_, err := b.c.Create(name, "", b.batch)
			if (err == nil) != (!indexes[name] && aliases[name] == "") {
				t.Fatalf("create %s: %v", name, err)
			}
			if err == nil {
				indexes[name] = true
			}
		case random.IntN(10) == 0:
			_, err := b.c.Delete(name, b.batch)
			if (err == nil) != indexes[name] {
				t.Fatalf("delete %s: %v", name, err)
			}
			delete(indexes, name)
			maps.DeleteFunc(aliases, func(_, uid string) bool { return uid == name })
		case random.IntN(10) == 0:
			from, rename := pick(), random.IntN(2) == 0
			err := b.c.Swap([]Pair{{A: from, B: name, Rename: rename}, {A: name, B: name}}, b.batch)
			if good := rename && !indexes[name] && aliases[name] == "" || !rename && indexes[name]; good != (err == nil) {
				t.Fatalf("swap %s and %s (%v): %v", from, name, rename, err)
			}
			if err == nil && rename {
				delete(indexes, from)
				indexes[name] = true
				for alias, uid := range aliases {
					if uid == from {
						aliases[alias] = name
					}
				}
			}
		default:
			var moves []AliasMove
			next := maps.Clone(aliases)
			good := true
			for range 1 + random.IntN(3) {
				m := AliasMove{Alias: fmt.Sprint("n", random.IntN(60)), UID: pick()}
				if random.IntN(4) == 0 {
					m.UID = ""
				}
				moves = append(moves, m)
				good = good && !indexes[m.Alias] && (m.UID != "" || next[m.Alias] != "")
				if next[m.Alias] = m.UID; m.UID == "" {
					delete(next, m.Alias)
				}
			}
			if err := b.c.MoveAliases(moves); (err == nil) != good {
				t.Fatalf("%v: %v", moves, err)
			}
			if good {
				aliases = next
			}
		}
		if b.c.changing.content.base != 0 {
			bases[b.c.changing.content.base] = true
			changes += len(b.c.changing.content.since.Aliases)
		}
		if random.IntN(10) == 0 {
			b.reopen()
		}
		if got := b.c.UIDs(); !slices.Equal(got, slices.Sorted(maps.Keys(indexes))) {
			t.Fatalf("indexes %v, want %v", got, indexes)
		}
		if got := b.c.Aliases().all(); !maps.Equal(got, aliases) {
			t.Fatalf("aliases %v, want %v", got, aliases)
		}
		left := 0
		for _, name := range list(t, b.fs, catalogDir) {
			if IsBase(path.Base(name)) {
				left++
			}
		}
		if want := min(b.c.changing.content.base, 1); left != int(want) {
			t.Fatalf("%d bases are there, want %d", left, want)
		}
	}
	if len(bases) < 3 || changes == 0 {
		t.Errorf("%d bases, %d changes of them", len(bases), changes)
	}
}

// TestMoveIsAtomic checks that readers see all aliases of a move changed or none.
func TestMoveIsAtomic(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	uids := []string{"a", "b"}
	for _, uid := range uids {
		b.create(uid)
	}
	moves := func(to string) (all []AliasMove) {
		for i := range 50 {
			all = append(all, AliasMove{fmt.Sprint("x", i), to})
		}
		return all
	}
	if err := b.c.MoveAliases(moves("a")); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var looking sync.WaitGroup
	for range 4 {
		looking.Go(func() {
			for {
				a := b.c.Aliases()
				seen := map[string]bool{}
				for _, alias := range a.All() {
					seen[a.Index(alias)] = true
				}
				if len(seen) != 1 {
					t.Errorf("readers saw a partial move: %v", slices.Collect(maps.Keys(seen)))
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 100 {
		if err := b.c.MoveAliases(moves(uids[i%2])); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	looking.Wait()
}

func BenchmarkMoveAmongManyAliases(b *testing.B) {
	bed := newBed(b, vfs.NewMem(), Options{})
	defer bed.close()
	bed.create("a")
	var moves []AliasMove
	for i := range 100_000 {
		moves = append(moves, AliasMove{fmt.Sprint("alias-", i), "a"})
	}
	if err := bed.c.MoveAliases(moves); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if err := bed.c.MoveAliases(moves[i%1000 : i%1000+1]); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAliasesAfterChanges compares aliases derived from earlier ones with aliases built from scratch.
func TestAliasesAfterChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	show := func(a *Aliases) string {
		text := fmt.Sprint(a.Len(), a.all())
		for i := range 6 {
			uid := fmt.Sprint("i", i)
			text += fmt.Sprint(" ", uid, a.Of(uid))
		}
		for i := range 5 {
			if alias := fmt.Sprint("x", i); a.Has(alias) != (a.Index(alias) != alias) || a.Has(alias) != slices.Contains(a.All(), alias) {
				return alias + " is half an alias"
			}
		}
		return text
	}
	var a *Aliases
	index := map[string]string{}
	same, few, many := 0, 0, 0
	for round := 0; round < 200 || same == 0 || many == 0; round++ { // until the rare changes have come
		was, changes := a, map[string]*string{}
		change := func(alias, uid string) {
			if changes[alias], index[alias] = &uid, uid; uid == "" {
				changes[alias] = nil
				delete(index, alias)
			}
		}
		index = maps.Clone(index)
		switch n := random.IntN(100); {
		case n < 3:
			for i := range 2 * fewMoves {
				change(fmt.Sprint("x", i), fmt.Sprint("i", random.IntN(3)))
			}
			many++
		case n < 10:
			for alias, uid := range index {
				changes[alias] = &uid
			}
			same++
		case n < 13:
			for alias, uid := range maps.Clone(index) {
				if uid == "i0" || random.IntN(20) == 0 {
					change(alias, "")
				}
			}
		default:
			few++
			for range 1 + random.IntN(3) {
				uid := fmt.Sprint("i", random.IntN(5))
				if random.IntN(3) == 0 {
					uid = ""
				}
				change(fmt.Sprint("x", random.IntN(3*fewMoves)), uid)
			}
		}
		old := show(was)
		a = a.after(changes)
		if want := newAliases(index); show(a) != show(want) || (a == nil) != (want == nil) {
			t.Fatalf("%s, want %s", show(a), show(want))
		}
		if show(was) != old {
			t.Fatalf("aliases have changed from %s to %s", old, show(was))
		}
		if other := was.after(was.changesTo(index)); show(other) != show(a) {
			t.Fatalf("%s, want %s", show(other), show(a))
		}
		if (old == show(a)) != (a == was) {
			t.Error("unchanged aliases are built again")
		}
	}
	if same == 0 || few == 0 || many == 0 {
		t.Errorf("%d, %d and %d changes", same, few, many)
	}
}

// TestAliasesFold checks that a chain of moves does not accumulate changes without limit.
func TestAliasesFold(t *testing.T) {
	all := map[string]string{}
	for i := range 3 * mostChanges {
		all[fmt.Sprint("x", i)] = "a"
	}
	a := newAliases(all)
	first := a.base
	for i := range 2*mostChanges + 10 {
		to := fmt.Sprint("b", i%7)
		a = a.after(map[string]*string{fmt.Sprint("x", i): &to})
		if len(a.index) > mostChanges {
			t.Fatalf("%d changes", len(a.index))
		}
	}
	if a.base == first || len(a.Of("a")) != mostChanges-10 || len(a.All()) != len(all) {
		t.Errorf("%d of a, %d in all", len(a.Of("a")), len(a.All()))
	}
}

// TestExcerpt reads single indexes from a CATALOG, with and without a base.
func TestExcerpt(t *testing.T) {
	for _, inline := range []int{64, 1 << 20} {
		fsys := vfs.NewMem()
		c, err := OpenCatalog("c", Options{FS: fsys, inlineCatalog: inline})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			if _, err := c.Create(fmt.Sprint("index-", i), "", uint64(i+1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		whole, err := vfs.ReadFile(fsys, path.Join("c", catalogName))
		if err != nil {
			t.Fatal(err)
		}
		bases := 0
		base := func(name string) ([]byte, error) {
			bases++
			return vfs.ReadFile(fsys, path.Join("c", name))
		}
		for i := range 30 {
			uid := fmt.Sprint("index-", i)
			directory, excerpt, err := Excerpt(whole, uid, base)
			if err != nil {
				t.Fatal(err)
			}
			content, aliases, err := decodeCatalog(catalogName, excerpt, nil)
			if err != nil || len(content.indexes) != 1 || directoryName(content.indexes[uid]) != directory || len(aliases) > 0 {
				t.Errorf("%s: %v, %v", uid, content, err)
			}
			if got := path.Base(c.directoryOf(uid)); got != directory {
				t.Errorf("%s is in %s, want %s", uid, got, directory)
			}
		}
		if (bases > 0) != (inline == 64) {
			t.Errorf("with %d bytes a base was read %d times", inline, bases)
		}
		_, _, err = Excerpt(whole, "index-30", base)
		if err == nil || !strings.Contains(err.Error(), "the indexes are index-0, index-1,") || !strings.Contains(err.Error(), " and 10 others") {
			t.Errorf("a missing index: %v", err)
		}
		if _, _, err := Excerpt(whole[:len(whole)-1], "index-1", base); err == nil {
			t.Error("a truncated CATALOG is accepted")
		}
	}
}

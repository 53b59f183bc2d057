package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"sync"
	"testing"

	"svc/internal/vfs"
)

// pointed returns all aliases with their indexes, as text.
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
	// All moves or none.
	wantCode(t, b.c.MoveAliases([]AliasMove{{"x", "b"}, {"y", "none"}}), "index_not_found")
	wantCode(t, b.c.MoveAliases([]AliasMove{{"x", "b"}, {"c", "a"}}), "index_already_exists")
	wantCode(t, b.c.MoveAliases([]AliasMove{{"x", "b"}, {"z", ""}}), "alias_not_found")
	want("x=a", "y=a")
	// A name is an index or an alias.
	b.batch++
	_, err := b.c.Create("x", "", b.batch)
	wantCode(t, err, "alias_already_exists")
	b.batch++
	wantCode(t, b.c.Swap([]Pair{{A: "b", B: "x", Rename: true}}, b.batch), "alias_already_exists")
	// A swap leaves them with the uid, a rename takes them along, and a deletion removes them.
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
	// A batch that runs again after a move finds its own change.
	must(b.c.MoveAliases([]AliasMove{{"y", ""}}))
	if _, err = b.c.Delete("d", b.batch); err != nil {
		t.Errorf("the deletion, again: %v", err)
	}
	want()
}

// A catalog whose aliases lead nowhere is damaged.
func TestDamagedAliases(t *testing.T) {
	for _, aliases := range []map[string]string{{"x": "none"}, {"a": "a"}} {
		content := catalogContent{Indexes: map[string]uint64{"a": 1}, Aliases: aliases, Next: 2}
		fs := vfs.NewMem()
		b := newBed(t, fs, Options{})
		if err := b.c.write(content); err != nil {
			t.Fatal(err)
		}
		file, err := vfs.ReadFile(fs, path.Join(catalogDir, catalogName))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeCatalog("CATALOG", file); err == nil {
			t.Errorf("%v is read", aliases)
		}
		b.close()
	}
}

// Whoever looks sees all of a move, or nothing of it.
func TestNobodySeesHalfAMove(t *testing.T) {
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
					t.Errorf("half a move: %v", slices.Collect(maps.Keys(seen)))
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

// TestAliasesAfterChanges compares aliases that follow from others with those that are made anew.
func TestAliasesAfterChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	var a *Aliases
	index := map[string]string{}
	same, few, many := 0, 0, 0
	for range 500 {
		was, before := a, len(index)
		index = maps.Clone(index)
		switch random.IntN(10) {
		case 0:
			for i := range 2 * fewMoves {
				index[fmt.Sprint("x", i)] = fmt.Sprint("i", random.IntN(3))
			}
			many++
		case 1:
			same++
		case 2:
			maps.DeleteFunc(index, func(_, uid string) bool { return uid == "i0" })
		default:
			few++
			for range 1 + random.IntN(3) {
				alias := fmt.Sprint("x", random.IntN(3*fewMoves))
				if index[alias] = fmt.Sprint("i", random.IntN(5)); random.IntN(3) == 0 {
					delete(index, alias)
				}
			}
		}
		old := fmt.Sprint(was)
		a = a.after(index)
		if want := newAliases(index); !reflect.DeepEqual(a, want) {
			t.Fatalf("%+v, want %+v", a, want)
		}
		if fmt.Sprint(was) != old {
			t.Fatalf("aliases have changed from %s to %v", old, was)
		}
		if len(index) == before && was != nil && maps.Equal(was.index, index) && a != was {
			t.Error("the same aliases are made again")
		}
	}
	if same == 0 || few == 0 || many == 0 {
		t.Errorf("%d, %d and %d changes", same, few, many)
	}
}

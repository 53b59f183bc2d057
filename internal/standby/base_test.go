package standby

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"svc/internal/commit"
	"svc/internal/index"
	"svc/internal/vfs"
)

// aliasesOf returns the aliases of a catalog as text.
func aliasesOf(c *index.Catalog) string {
	var all []string
	for _, alias := range c.Aliases().All() {
		all = append(all, alias+"="+c.Aliases().Index(alias))
	}
	return fmt.Sprint(all, c.UIDs())
}

// TestACatalogWithABase follows a catalog that keeps its many aliases beside CATALOG. Every change first fails at a random file operation.
func TestACatalogWithABase(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	dir, mem := newDir(t)
	log := &recorder{t: t, disk: mem, dir: dir}
	options := index.Options{FS: commit.On(mem, dir, log), MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 1}
	c, err := index.OpenCatalog(path.Join(dir, "indexes"), options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	many := func(uid string) (moves []index.AliasMove) {
		for i := range 3000 {
			moves = append(moves, index.AliasMove{Alias: fmt.Sprint("alias-", i), UID: uid})
		}
		return moves
	}
	state := map[int]string{} // aliases by number of changes
	for i, step := range []func() error{
		func() error { _, err := c.Create("a", "", 1); return err },
		func() error { _, err := c.Create("b", "", 2); return err },
		func() error { return c.MoveAliases(many("a")) },
		func() error {
			return c.MoveAliases([]index.AliasMove{{Alias: "alias-7", UID: "b"}, {Alias: "alias-8"}})
		},
		func() error { return c.MoveAliases([]index.AliasMove{{Alias: "alias-9", UID: "b"}}) },
		func() error { _, err := c.Create("alias-8", "", 3); return err },
		func() error { return c.MoveAliases(many("b")[100:]) }, // writes another base
		func() error { _, err := c.Delete("a", 4); return err },
		func() error { _, err := c.Delete("b", 5); return err }, // leaves no aliases
	} {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		state[log.count()] = aliasesOf(c)
	}

	plain, live := newMember(t), &liveMember{member: newMember(t)}
	live.open(t)
	defer func() { live.close(t) }()
	bases := map[string]bool{}
	broken := errors.New("disk on fire")
	for n := range log.changes {
		change := &log.changes[n]
		for _, name := range change.Files {
			bases[name] = bases[name] || index.IsBase(path.Base(name))
		}
		left := r.IntN(12)
		plain.reopen(vfs.Hook(plain.disk, func(vfs.Op) error {
			if left--; left < 0 {
				return broken
			}
			return nil
		}))
		if err := plain.Apply(change.Change, change.open); err != nil && !errors.Is(err, broken) {
			t.Fatal(err)
		}
		plain.reopen(plain.disk)
		for _, m := range []*Directory{plain.Directory, live.Directory} {
			if err := m.Apply(change.Change, change.open); err != nil {
				t.Fatalf("change %d: %v", n, err)
			}
		}
		if want, ok := state[n+1]; ok && aliasesOf(live.catalog) != want {
			t.Fatalf("after change %d: %s, want %s", n, aliasesOf(live.catalog), want)
		}
		if want, ok := state[n+1]; ok {
			dir, disk := plain.copied(t)
			started, err := index.OpenCatalog(path.Join(dir, "indexes"), index.Options{FS: disk})
			if err != nil {
				t.Fatal(err)
			}
			if got := aliasesOf(started); got != want {
				t.Fatalf("after change %d a start has %s, want %s", n, got, want)
			}
			if err := started.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(bases) < 2 {
		t.Errorf("bases %v", bases)
	}
	if got, want := fmt.Sprint(indexFiles(t, plain.disk, plain.dir)), fmt.Sprint(indexFiles(t, mem, dir)); got != want {
		t.Errorf("files %s, want %s", got, want)
	}
}

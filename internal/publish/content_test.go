package publish

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/zeebo/xxh3"
	"go.etcd.io/bbolt"

	"svc/internal/commit"
	"svc/internal/group"
	"svc/internal/standby"
	"svc/internal/vfs"
)

// TestRestoreEqualsReplay compares restored directories with directories in which package standby applied the entries one after the other.
func TestRestoreEqualsReplay(t *testing.T) {
	t.Parallel()
	for round := range 2 * *rounds {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			store := directory(t)
			images := round%2 == 1 // whether later images are made
			h := newHost(t, store, func(o *Options) {
				if images {
					o.imageBytes = int64(2000 + r.IntN(20_000))
				}
			})
			h.published(h.w.Position())
			for n := range 3 { // two of these payloads are removed
				h.put(n, n)
				h.idle()
			}
			for range 4 {
				h.goOn(r, 1+r.IntN(4))
			}
			h.stop()
			var mu sync.Mutex
			opened := map[string]bool{}
			a, err := Open(t.Context(), hooked{store, func(name string) {
				mu.Lock()
				defer mu.Unlock()
				opened[name] = true
			}}, masterKey)
			if err != nil {
				t.Fatal(err)
			}
			all, err := a.history(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			to, err := all.latest()
			if err != nil {
				t.Fatal(err)
			}
			end, skipped := to.Index, 0
			for range 3 {
				p, err := all.planFor(to)
				if err != nil {
					break // the first image comes later
				}
				root := filepath.ToSlash(t.TempDir())
				clear(opened)
				if _, err := a.Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: path.Join(root, "restored"), Target: Target{Position: to}}); err != nil {
					t.Fatal(err)
				}
				fetched := maps.Clone(opened)
				for _, name := range replayed(t, a, p, path.Join(root, "replayed")) {
					if !fetched[name] {
						skipped++
					}
				}
				if got, want := filesBelow(t, path.Join(root, "restored")), filesBelow(t, path.Join(root, "replayed")); !reflect.DeepEqual(got, want) {
					t.Errorf("position %v of %v is restored as %v, want %v", to, p.image.name, got, want)
				}
				to.Index = end - r.Uint64N(min(end, 20))
			}
			if skipped == 0 && !images {
				t.Error("the restore fetched every file of the entries")
			}
		})
	}
}

// filled restores the image of a plan into a directory.
func filled(t *testing.T, a *Archive, p *plan, dir string) *restore {
	t.Helper()
	st, err := a.image(t.Context(), &p.image)
	if err != nil {
		t.Fatal(err)
	}
	r := &restore{RestoreOptions: RestoreOptions{FS: vfs.OS, Logger: slog.New(slog.DiscardHandler)}, a: a, temp: dir, have: map[string]bool{}}
	c := contentOf(st)
	for _, f := range c.dbs {
		if err := r.ready(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.fill(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return r
}

// replayed builds a directory from an image and the entries after it. It returns the objects of the files that the entries name.
func replayed(t *testing.T, a *Archive, p *plan, dir string) (names []string) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	r := filled(t, a, p, dir)
	d := standby.Open(standby.Options{FS: vfs.OS, Dir: dir})
	must(r.entries(t.Context(), p, func(e *group.Entry) error {
		err := d.Apply(e.Change, func(name string) (io.ReadCloser, error) {
			for _, f := range e.Files {
				if f.Name == name {
					return a.file(t.Context(), f)
				}
			}
			return nil, fs.ErrNotExist
		})
		for _, name := range e.Removed {
			if e := vfs.OS.Remove(path.Join(dir, name)); err == nil && !errors.Is(e, fs.ErrNotExist) {
				err = e
			}
		}
		for _, f := range e.Files {
			names = append(names, fileName(f))
		}
		return err
	}))
	must(d.Close())
	return names
}

// filesBelow returns the content of files; for bbolt files, all keys and values.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rest := strings.TrimPrefix(filepath.ToSlash(name), dir+"/")
		if path.Ext(name) != ".db" {
			b, err := os.ReadFile(name)
			files[rest] = fmt.Sprintf("%d bytes with checksum %x: %x", len(b), xxh3.Hash(b), b[:min(len(b), 200)])
			return err
		}
		db, err := bbolt.Open(name, 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(bucket []byte, b *bbolt.Bucket) error {
				return b.ForEach(func(k, v []byte) error {
					files[fmt.Sprintf("%s: %s: %x", rest, bucket, k)] = hex.EncodeToString(v)
					return nil
				})
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestWaitingTasksAreRestored restores each position of a few tasks: unfinished tasks must run to their end.
func TestWaitingTasksAreRestored(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	first := h.w.Position()
	for n := range 3 {
		h.put(n, 1)
	}
	h.idle()
	last := h.w.Position()
	h.published(last)
	h.stop()
	waited := 0
	for at := first; at.Index <= last.Index; at.Index++ {
		got, counts := restored(t, store, Target{Position: at})
		want := map[string]map[string]int{}
		for n := range counts[0] {
			if want["a"] == nil {
				want["a"] = map[string]int{}
			}
			want["a"][fmt.Sprint(n)] = 1
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("position %v with %d tasks ends with %v", at, counts[0], got)
		}
		waited += counts[2]
	}
	if waited == 0 {
		t.Error("no task waited")
	}
}

// TestInvalidChanges checks that a restore refuses changes of a later version and of files outside the directory.
func TestInvalidChanges(t *testing.T) {
	for want, change := range map[string]commit.Change{
		"unknown kind of change 77":  {Kind: 77, Name: "x"},
		"outside the data directory": {Kind: commit.Sealed, Name: "../x"},
	} {
		c := contentOf(&group.Image{})
		if err := c.change(&group.Entry{Change: change}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", change, err)
		}
	}
}

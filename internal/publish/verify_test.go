package publish

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/bucket"
	"svc/internal/group"
	"svc/internal/vfs"
)

// damages returns the damaged objects that Verify reports.
func damages(t *testing.T, store bucket.Store, target *Target) (names []string) {
	t.Helper()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	v, err := a.Verify(t.Context(), VerifyOptions{Target: target, Damaged: func(d Damage) {
		names = append(names, d.Object)
		if !broken(d.Err) || d.From.Compare(d.To) > 0 {
			t.Errorf("%+v", d)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if v.Damaged != len(names) || v.Objects < 2 {
		t.Errorf("%+v with %q", v, names)
	}
	slices.Sort(names)
	return names
}

// objectNames lists the names of objects with a prefix.
func objectNames(t *testing.T, store bucket.Store, prefix string) (names []string) {
	t.Helper()
	if err := store.List(t.Context(), prefix, "", func(o bucket.Object) error { names = append(names, o.Name); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// damage damages an object: how is "missing", "short" or "changed".
func damage(t *testing.T, store bucket.Store, name, how string) {
	t.Helper()
	in, err := store.Open(t.Context(), name, 0)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(in)
	if err != nil || in.Close() != nil {
		t.Fatal(err)
	}
	switch how {
	case "missing":
		err = store.Remove(t.Context(), name)
	case "short":
		err = store.Put(t.Context(), name, int64(len(content)/2), bytes.NewReader(content[:len(content)/2]))
	default:
		content[len(content)/2] ^= 1
		err = store.Put(t.Context(), name, int64(len(content)), bytes.NewReader(content))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamagedObjectsAreSentAgain damages objects, and waits until the last position can be restored again.
func TestDamagedObjectsAreSentAgain(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		prefix, how string
		restarts    bool // a restart finds the damage in a list; otherwise reading the object does
	}{
		{filesPrefix, "missing", true},
		{filesPrefix, "short", true},
		{filesPrefix, "missing", false},
		{filesPrefix, "short", false},
		{filesPrefix, "changed", false},
		{logPrefix, "missing", false},
		{logPrefix, "short", false},
		{logPrefix, "changed", false},
	} {
		t.Run(fmt.Sprint(x.prefix, x.how, x.restarts), func(t *testing.T) {
			t.Parallel()
			store := directory(t)
			h := newHost(t, store, func(o *Options) {
				if !x.restarts {
					o.Verify, o.heal = 5*time.Millisecond, time.Millisecond
				}
			})
			r := rand.New(rand.NewPCG(1, 1))
			h.published(h.w.Position()) // so that entries follow the image
			h.goOn(r, 3)
			if x.restarts {
				h.stop()
			}
			names := objectNames(t, store, x.prefix)
			if x.restarts { // the files of the last image
				a, err := Open(t.Context(), store, masterKey)
				if err != nil {
					t.Fatal(err)
				}
				all, err := a.history(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				st, err := a.image(t.Context(), &all.images[len(all.images)-1])
				if err != nil {
					t.Fatal(err)
				}
				names = names[:0]
				for i := range st.Files {
					names = append(names, fileName(st.Files[i].File))
				}
			}
			for _, name := range names {
				damage(t, store, name, x.how)
			}
			if x.restarts {
				if got := damages(t, store, nil); len(got) != len(names) {
					t.Errorf("damaged %q, reported %q", names, got)
				}
				h.start()
			}
			h.step(r)
			await(t, "the last position is whole again", func() bool {
				h.idle()
				at := h.w.Position()
				h.published(at)
				a, err := Open(t.Context(), store, masterKey)
				if err != nil {
					t.Fatal(err)
				}
				all, err := a.history(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := all.planFor(at); err != nil {
					return false
				}
				return len(damages(t, store, &Target{Position: at})) == 0
			})
			got, _ := restored(t, store, Target{})
			if want := documents(t, h.catalog); !reflect.DeepEqual(got, want) {
				t.Errorf("restored as %v, and was %v", got, want)
			}
			if s := h.pub.Status(); s.Damaged == 0 && !x.restarts {
				t.Errorf("no damage was detected: %+v", s)
			}
		})
	}
}

// TestVerify checks that exactly the missing and damaged objects are reported.
func TestVerify(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	r := rand.New(rand.NewPCG(2, 2))
	for range 4 {
		h.goOn(r, 1)
	}
	h.stop()
	if got := damages(t, store, nil); got != nil {
		t.Fatalf("%q are damaged", got)
	}
	images, logs := objectNames(t, store, imagesPrefix), objectNames(t, store, logPrefix)
	want := []string{logs[1], images[0]}
	for _, name := range want {
		damage(t, store, name, "changed")
	}
	if got := damages(t, store, nil); !slices.Equal(got, want) {
		t.Errorf("damaged %q, reported %q", want, got)
	}
	damage(t, store, logs[1], "missing")
	if got := damages(t, store, nil); !slices.Equal(got, []string{logPrefix, images[0]}) {
		t.Errorf("entries are missing, but %q are reported", got)
	}
}

// TestRestoreUsesAnOlderImage damages the newest image. Its content must come from the previous image and the entries after it.
func TestRestoreUsesAnOlderImage(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	r := rand.New(rand.NewPCG(3, 3))
	h.goOn(r, 1)
	want := documents(t, h.catalog)
	h.stop()
	all := objectNames(t, store, imagesPrefix)
	if len(all) != 1 {
		t.Fatalf("%q", all)
	}
	// Add another image, as after more entries, that is damaged.
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	hist, err := a.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, err := hist.latest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.createOnce(t.Context(), imageName(at, at.Index, time.Now().UnixNano()), []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := RestoreOptions{FS: vfs.OS, Dir: path.Join(filepath.ToSlash(t.TempDir()), "r"), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	if made, err := a.Restore(t.Context(), o); err != nil || made.Position != at || !strings.Contains(log.String(), "an older image") {
		t.Errorf("%+v, %v: %s", made, err, &log)
	}
	if got, _ := restored(t, store, Target{}); !reflect.DeepEqual(got, want) {
		t.Errorf("restored as %v, and was %v", got, want)
	}
	if got := damages(t, store, nil); len(got) != 1 || !strings.HasPrefix(got[0], imagesPrefix) {
		t.Errorf("reported %q", got)
	}
}

// TestVerifyBesideRetention lets retention remove objects after Verify listed them.
func TestVerifyBesideRetention(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	r := rand.New(rand.NewPCG(4, 4))
	var first group.Position
	for i := range 3 { // each start publishes an image
		h.published(h.w.Position()) // so that entries follow it
		for range 4 {
			h.step(r)
		}
		h.idle()
		if h.published(h.w.Position()); i == 0 {
			first = h.w.Position()
		}
		h.stop()
		h.start()
	}
	h.published(h.w.Position())
	h.stop()
	removed := int64(0)
	retain := func() {
		a, err := Open(t.Context(), store, masterKey)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Store: store, Keep: time.Nanosecond, Now: time.Now, Logger: slog.New(slog.DiscardHandler), margin: time.Nanosecond}
		p := &Publisher{o: o, archive: a, objects: newObjects(), claimed: runsPrefix + "~"}
		if err := p.retain(t.Context()); err != nil {
			t.Fatal(err)
		}
		removed += p.Status().Removed
	}
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	started := false
	beside := hooked{store, func(name string) {
		if !started && strings.HasPrefix(name, logPrefix) {
			started = true
			retain()
		}
	}}
	a.store = beside
	if v, err := a.Verify(t.Context(), VerifyOptions{Target: &Target{Position: first}, Damaged: func(d Damage) { t.Errorf("%+v", d) }}); err == nil || !strings.Contains(err.Error(), "was removed while") {
		t.Errorf("verifying a removed position: %+v, %v", v, err)
	}
	if removed == 0 {
		t.Fatal("nothing was removed")
	}
	// The same without a target, while a file of the oldest image is missing.
	h.start()
	h.published(h.w.Position())
	h.goOn(r, 4)
	h.stop()
	h.start()
	h.published(h.w.Position())
	h.stop()
	started, removed = false, 0
	if got := damages(t, beside, nil); got != nil || removed == 0 {
		t.Errorf("%d objects were removed, but %q are reported", removed, got)
	}
	all, err := a.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st, err := a.image(t.Context(), &all.images[0])
	if err != nil {
		t.Fatal(err)
	}
	file := fileName(st.Files[0].File)
	damage(t, store, file, "missing")
	if got := damages(t, beside, nil); !slices.Equal(got, []string{file}) {
		t.Errorf("%q is missing, reported %q", file, got)
	}
}

// TestVerifyOfAPosition checks that files of later entries are not needed for a position, even if they share an object.
func TestVerifyOfAPosition(t *testing.T) {
	t.Parallel()
	store := directory(t)
	w := newWitness(t)
	h := newHost(t, store, func(o *Options) { w.Feed, o.Feed = o.Feed, w })
	h.published(h.w.Position())
	r := rand.New(rand.NewPCG(5, 5))
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	var before group.Position
	file := ""
	await(t, "an object has a file that its first entry does not need", func() bool {
		w.goOn(h, r, 1)
		all, err := a.history(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		st, err := a.image(t.Context(), &all.images[0])
		if err != nil {
			t.Fatal(err)
		}
		needed := map[string]bool{}
		for i := range st.Files {
			needed[fileName(st.Files[i].File)] = true
		}
		for i := range all.logs {
			entries, err := a.decoded(t.Context(), &all.logs[i])
			if err != nil {
				t.Fatal(err)
			}
			for n, e := range entries {
				for k := range e.Files {
					name := fileName(e.Files[k])
					if n > 0 && !needed[name] {
						before, file = all.logs[i].first, name
						before.Index += uint64(n) - 1
						return before.Index >= all.images[0].whole
					}
					needed[name] = true
				}
			}
		}
		return false
	})
	h.stop()
	damage(t, store, file, "missing")
	if got := damages(t, store, &Target{Position: before}); got != nil {
		t.Errorf("position %v does not need %s, but %q are reported", before, file, got)
	}
	restored(t, store, Target{Position: before})
	before.Index++
	if got := damages(t, store, &Target{Position: before}); !slices.Equal(got, []string{file}) {
		t.Errorf("position %v needs %s, reported %q", before, file, got)
	}
}

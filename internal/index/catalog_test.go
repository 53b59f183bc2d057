package index

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

func TestCatalogCreatesDeletesAndSwaps(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	for _, uid := range []string{"b", "a", "c"} {
		b.apply(b.create(uid), b.payload(`{"id":"`+uid+`"}`))
	}
	holds := func(uid, id string) {
		t.Helper()
		ix := b.c.Get(uid)
		if ix == nil {
			t.Fatalf("no index %s", uid)
		}
		wantDocuments(t, ix, map[string]string{id: `{"id":"` + id + `"}`})
		v := held(ix.View())
		defer v.Release()
		if ix.UID() != uid || v.UID != uid {
			t.Errorf("index %s has the uid %s, its view %s", uid, ix.UID(), v.UID)
		}
	}
	if got := b.c.UIDs(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("uids %v", got)
	}
	_, err := b.c.Create("a", "", 50)
	wantCode(t, err, "index_already_exists")
	_, err = b.c.Delete("none", 50)
	wantCode(t, err, "index_not_found")
	wantCode(t, b.c.Swap([]Pair{{A: "a", B: "b"}, {A: "c", B: "none"}}, 51), "index_not_found")
	wantCode(t, b.c.Swap([]Pair{{A: "a", B: "b", Rename: true}}, 51), "index_already_exists")
	wantCode(t, b.c.Swap([]Pair{{A: "none", B: "d", Rename: true}}, 51), "index_not_found")
	err = b.c.Swap([]Pair{{A: "none", B: "a"}, {A: "c", B: "d", Rename: true}, {A: "d", B: "nil"}, {A: "none", B: "c"}}, 51)
	wantCode(t, err, "index_not_found")
	if !strings.Contains(err.Error(), "indexes `none`, `nil`, `c`.") {
		t.Errorf("a swap without indexes says: %v", err)
	}
	holds("a", "a")
	if err := b.c.Swap([]Pair{{A: "a", B: "b"}, {A: "c", B: "d", Rename: true}}, 52); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		holds("a", "b")
		holds("b", "a")
		holds("d", "c")
		if b.c.Get("c") != nil {
			t.Error("c is still there")
		}
		b.reopen()
	}
	total, used := b.c.DiskBytes()
	if used <= 0 || total < used {
		t.Errorf("%d bytes, %d used", total, used)
	}
}

// TestRepeatedCatalogChanges checks that a change whose batch runs again after a crash has no second effect, and the same result.
func TestRepeatedCatalogChanges(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	if _, err := b.c.Create("a", "key", 5); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	if ix, err := b.c.Create("a", "key", 5); err != nil || ix != b.c.Get("a") {
		t.Fatalf("again: %v, %v", ix, err)
	}
	_, err := b.c.Create("a", "key", 6)
	wantCode(t, err, "index_already_exists")
	// The number of an abandoned batch goes to the next batch.
	if _, err := b.c.Create("b", "", 5); err != nil {
		t.Error(err)
	}
	swap := []Pair{{A: "a", B: "b"}}
	first := b.c.Get("a")
	for range 2 {
		if err := b.c.Swap(swap, 7); err != nil || b.c.Get("b") != first {
			t.Fatalf("swap: %v", err)
		}
	}
	b.batch = 8
	b.apply(b.c.Get("a"), b.payload(`{"id":1}`, `{"id":2}`))
	for range 2 {
		if n, err := b.c.Delete("a", 9); n != 2 || err != nil {
			t.Fatalf("deleted %d, %v", n, err)
		}
		b.reopen()
	}
	_, err = b.c.Delete("a", 10)
	wantCode(t, err, "index_not_found")
}

func TestPrimaryKeyChangesWhileThereAreNoDocuments(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	ix := b.create("u")
	for _, key := range []string{"id", "code", "code", ""} {
		b.batch++
		if err := ix.SetPrimaryKey(key, b.batch); err != nil {
			t.Fatal(err)
		}
	}
	b.apply(ix, b.payload(`{"code":1,"id":2}`))
	wantCode(t, ix.SetPrimaryKey("id", 90), "index_primary_key_already_exists")
	if err := ix.SetPrimaryKey("code", 91); err != nil {
		t.Error(err)
	}
	b.apply(ix, Clear{})
	if err := ix.SetPrimaryKey("id", 92); err != nil {
		t.Error(err)
	}
	b.reopen()
	v := held(b.c.Get("u").View())
	defer v.Release()
	if v.PrimaryKey != "id" || v.Fields.PrimaryKey() != "id" {
		t.Errorf("primary key %q, in fields %q", v.PrimaryKey, v.Fields.PrimaryKey())
	}
}

// TestOpenRemovesOnlyItsLeftovers checks that opening removes files that a crash left, but not files that an operator put there.
func TestOpenRemovesOnlyItsLeftovers(t *testing.T) {
	fsys := vfs.NewMem()
	b := newBed(t, fsys, Options{})
	b.apply(b.create("a"), b.payload(`{"id":1}`))
	b.close()
	write := func(name string) {
		t.Helper()
		if err := vfs.WriteFile(fsys, catalogDir+"/"+name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := fsys.MkdirAll(catalogDir + "/000007"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"000000/000099.seg", "000000/MANIFEST.tmp", "000000/edit.tmp", "CATALOG.tmp", "000007/MANIFEST", "notes.txt", "000000/notes.txt"} {
		write(name)
	}
	b.open()
	defer b.close()
	want := []string{"000000/000000.seg", "000000/MANIFEST", "000000/notes.txt", "CATALOG", "notes.txt"}
	var got []string
	for _, name := range list(t, fsys, catalogDir) {
		got = append(got, name[len(catalogDir)+1:])
	}
	if !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

func TestDamagedAndForeignFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fsys vfs.FS) error
		damage bool
	}{
		"catalog missing": {func(fsys vfs.FS) error { return fsys.Remove(catalogDir + "/CATALOG") }, true},
		"catalog empty":   {func(fsys vfs.FS) error { return vfs.WriteFile(fsys, catalogDir+"/CATALOG", nil) }, true},
		"manifest of another version": {func(fsys vfs.FS) error {
			return vfs.WriteFile(fsys, catalogDir+"/000000/MANIFEST", seal{magic: manifestSeal.magic, version: manifestSeal.version + 1}.wrap([]byte("{}")))
		}, false},
		"manifest flipped": {func(fsys vfs.FS) error {
			b, err := vfs.ReadFile(fsys, catalogDir+"/000000/MANIFEST")
			b[len(b)/2] ^= 4
			return errors.Join(err, vfs.WriteFile(fsys, catalogDir+"/000000/MANIFEST", b))
		}, true},
		"segment cut": {func(fsys vfs.FS) error {
			b, err := vfs.ReadFile(fsys, catalogDir+"/000000/000000.seg")
			return errors.Join(err, vfs.WriteFile(fsys, catalogDir+"/000000/000000.seg", b[:len(b)-9]))
		}, true},
		"segment missing": {func(fsys vfs.FS) error { return fsys.Remove(catalogDir + "/000000/000000.seg") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			b := newBed(t, fsys, Options{})
			b.apply(b.create("a"), b.payload(`{"id":1}`))
			b.close()
			if err := c.change(fsys); err != nil {
				t.Fatal(err)
			}
			before := list(t, fsys, catalogDir)
			catalog, err := OpenCatalog(catalogDir, b.options)
			if !strings.HasPrefix(name, "catalog") {
				if err != nil {
					t.Fatal(err)
				}
				if err = catalog.Missing("a"); catalog.Get("a") != nil || !catalog.Damaged("a") {
					t.Fatal("the catalog was opened")
				}
				if text := err.Error(); !strings.Contains(text, catalogDir+"/000000") {
					t.Errorf("the error does not name the directory: %s", text)
				}
				err = catalog.open.damaged["a"].err
				defer catalog.Close()
			}
			if err == nil {
				t.Fatal("the catalog was opened")
			}
			if apierr.IsCorruption(err) != c.damage {
				t.Errorf("error %v, want damage: %v", err, c.damage)
			}
			if after := list(t, fsys, catalogDir); !slices.Equal(before, after) {
				t.Errorf("files %v before, %v after", before, after)
			}
		})
	}
}

func FuzzManifest(f *testing.F) {
	m := &manifest{Fields: []string{"id"}, NextSegment: 3, Segments: []segmentEntry{{Number: 1, Deleted: []byte{1}}, {Number: 2}}}
	good, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:40])
	f.Add(manifestSeal.wrap([]byte(`{"Segments":[{"Number":7}],"NextSegment":7}`)))
	f.Add(catalogSeal.wrap([]byte(`{"Indexes":{"a":0},"Next":1}`)))
	f.Add(catalogSeal.wrap([]byte(`{"Indexes":{"a":0,"b":null},"Aliases":{"x":null,"y":"a"},"Next":2,"Base":1}`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Reseal, so that mutations get past the checksum.
		if len(b) >= sealBytes {
			if _, err := decodeManifest("m", manifestSeal.wrap(b[sealBytes:])); err != nil && !apierr.IsCorruption(err) {
				t.Errorf("error %v", err)
			}
			base := func(uint64) (string, []byte, error) { return "b", baseSeal.wrap(b[sealBytes:]), nil }
			if _, _, err := decodeCatalog("c", catalogSeal.wrap(b[sealBytes:]), base); err != nil && !apierr.IsCorruption(err) {
				t.Errorf("error %v", err)
			}
		}
		if m, err := decodeManifest("m", b); err == nil {
			for _, e := range m.Segments {
				if d, err := decodeRows("m", e.Deleted, 10); err == nil && !d.IsEmpty() && d.Maximum() >= 10 {
					t.Error("a deleted row past the end of the segment is accepted")
				}
			}
		}
	})
}

// TestWritesAfterAnUnknownCatalog fails a change of the catalog so that the state on disk is unknown. Later writes to an index must belong
// to that index, also after a crash.
func TestWritesAfterAnUnknownCatalog(t *testing.T) {
	broken := errors.New("disk on fire")
	unsure := 0
	for n := int64(0); n < 12; n++ {
		for what, change := range map[string]func(*bed) error{
			"delete": func(b *bed) error { _, err := b.c.Delete("a", 7); return err },
			"swap":   func(b *bed) error { return b.c.Swap([]Pair{{A: "a", B: "b"}}, 7) },
		} {
			armed := func(vfs.Op) error { return nil }
			mem := vfs.NewMem()
			b := newBed(t, vfs.Hook(mem, func(o vfs.Op) error { return armed(o) }), Options{})
			for i, uid := range []string{"a", "b"} {
				if _, err := b.c.Create(uid, "id", uint64(i)); err != nil {
					t.Fatal(err)
				}
			}
			payload := b.payload(`{"id":1}`)
			if err := errors.Join(mem.SyncDir("payloads"), mem.SyncDir("/")); err != nil {
				t.Fatal(err)
			}
			armed = vfs.FailFrom(n, 8, nil, broken)
			err := change(b)
			if b.c.unsure.Load() {
				unsure++
				if _, err := b.c.Get("a").Apply(t.Context(), 8, []Op{payload}, nil); !errors.Is(err, broken) {
					t.Errorf("%s, operation %d: a write succeeds: %v", what, n, err)
				}
			}
			armed = func(vfs.Op) error { return nil }
			if err != nil {
				if _, err := b.c.Get("a").Apply(t.Context(), 9, []Op{payload}, nil); err != nil {
					t.Fatalf("%s, operation %d: %v", what, n, err)
				}
				for seed := range uint64(4) {
					a := &bed{t: t, fs: mem.CrashClone(rand.New(rand.NewPCG(seed, uint64(n)))), options: b.options}
					a.options.FS = a.fs
					a.open()
					if ix := a.c.Get("a"); ix == nil || ix.current.Load().Documents() != 1 {
						t.Errorf("%s, operation %d: the document is not in a after a crash", what, n)
					}
					a.close()
				}
			}
			b.close()
		}
	}
	if unsure == 0 {
		t.Error("the state of the catalog was never unknown")
	}
}

// TestIndexesWithAnUnknownManifest checks that the next batch finds an index whose manifest on disk is unknown, until the
// manifest is rewritten.
func TestIndexesWithAnUnknownManifest(t *testing.T) {
	broken := errors.New("disk on fire")
	found := 0
	for n := int64(0); n < 12; n++ {
		armed := func(vfs.Op) error { return nil }
		b := newBed(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error { return armed(o) }), Options{})
		for _, uid := range []string{"a", "b"} {
			b.create(uid)
		}
		armed = vfs.FailFrom(n, 8, nil, broken)
		err := b.c.Get("a").SetTimes(time.Unix(1, 0), time.Unix(2, 0))
		armed = func(vfs.Op) error { return nil }
		unsettled := b.c.unsettled()
		if want := b.c.Get("a").unsure.Load(); want != (len(unsettled) == 1) || want && (err == nil || unsettled[0] != b.c.Get("a")) {
			t.Errorf("operation %d (%v): %d unsettled indexes, unsure %v", n, err, len(unsettled), want)
		}
		found += len(unsettled)
		if err := b.c.Settle(); err != nil || len(b.c.unsettled()) > 0 || b.c.doubts.Load() != 0 {
			t.Errorf("operation %d: %v, %d unsettled indexes afterwards", n, err, len(b.c.unsettled()))
		}
		b.close()
	}
	if found == 0 {
		t.Error("the state of the manifest was never unknown")
	}
}

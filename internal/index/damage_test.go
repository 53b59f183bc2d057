package index

import (
	"bytes"
	"errors"
	"log/slog"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// damage creates three indexes and damages the second. It returns the damaged file and its former content.
func damage(t *testing.T, fsys vfs.FS, o Options) (b *bed, file string, content []byte) {
	t.Helper()
	b = newBed(t, fsys, o)
	for _, uid := range []string{"a", "b", "c"} {
		b.apply(b.create(uid), b.payload(`{"id":1}`, `{"id":2}`))
	}
	b.close()
	file = catalogDir + "/000001/MANIFEST"
	content, err := vfs.ReadFile(fsys, file)
	if err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(fsys, file, content[:len(content)/2]); err != nil {
		t.Fatal(err)
	}
	b.open()
	return b, file, content
}

func TestDamagedIndexIsQuarantined(t *testing.T) {
	var logged bytes.Buffer
	fsys := vfs.NewMem()
	b, file, content := damage(t, fsys, Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	c := b.c
	if n := strings.Count(logged.String(), "level=ERROR"); n != 1 || !strings.Contains(logged.String(), "directory="+path.Dir(file)) {
		t.Errorf("logged %s", logged.String())
	}
	if got := c.UIDs(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("indexes %v", got)
	}
	code := func(err error) apierr.Code {
		var e *apierr.Error
		if !errors.As(err, &e) {
			t.Errorf("error %v", err)
			return ""
		}
		return e.Code
	}
	if e := c.Missing("b"); e.Code != "invalid_store_file" || !strings.Contains(e.Message, path.Dir(file)) {
		t.Errorf("%s %s", e.Code, e.Message)
	}
	if e := c.Missing("x"); e.Code != "index_not_found" {
		t.Errorf("%s %s", e.Code, e.Message)
	}
	b.batch += 10
	if _, err := c.Create("b", "", b.batch); code(err) != "invalid_store_file" {
		t.Errorf("created over it: %v", err)
	}
	if err := c.Swap([]Pair{{A: "a", B: "b"}}, b.batch+1); code(err) != "invalid_store_file" {
		t.Errorf("swapped with it: %v", err)
	}
	if err := c.Swap([]Pair{{A: "a", B: "b", Rename: true}}, b.batch+2); code(err) != "index_already_exists" {
		t.Errorf("renamed over it: %v", err)
	}
	if _, err := c.Freeze(); code(err) != "invalid_store_file" {
		t.Errorf("copied without it: %v", err)
	}
	// The other indexes stay usable, and their changes keep the entry of the damaged one.
	b.batch += 10
	b.apply(c.Get("a"), b.payload(`{"id":3}`))
	b.create("d")
	b.reopen()
	if !b.c.Damaged("b") || b.c.Get("d") == nil {
		t.Fatal("the next start finds other indexes")
	}

	// After a repair, the index is back with its documents.
	b.close()
	if err := vfs.WriteFile(fsys, file, content); err != nil {
		t.Fatal(err)
	}
	b.open()
	if ix := b.c.Get("b"); ix == nil || b.c.Damaged("b") {
		t.Error("the repaired index is missing")
	} else if v := held(ix.View()); v.Documents() != 2 {
		t.Errorf("the repaired index has %d documents", v.Documents())
	} else {
		v.Release()
	}
	b.close()
}

func TestDamagedIndexIsDeleted(t *testing.T) {
	fsys := vfs.NewMem()
	b, file, _ := damage(t, fsys, Options{})
	b.batch += 10
	if n, err := b.c.Delete("b", b.batch); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := b.c.Delete("b", b.batch); err != nil || n != 0 { // repeated after a crash
		t.Errorf("again: %d, %v", n, err)
	}
	if names := list(t, fsys, catalogDir); slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "000001") }) {
		t.Errorf("files of %s are left: %v", file, names)
	}
	b.batch++
	b.create("b")
	b.reopen()
	if got := b.c.UIDs(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("indexes %v", got)
	}
	b.close()
}

// TestNoFilesLeftIsNoDamage checks that running out of file descriptors, which affects every index, does not count as damage of the first
// index that meets it.
func TestNoFilesLeftIsNoDamage(t *testing.T) {
	fsys := vfs.NewMem()
	b := newBed(t, fsys, Options{})
	b.create("a")
	b.close()
	full := vfs.Hook(fsys, func(op vfs.Op) error {
		if strings.HasSuffix(op.Name, "MANIFEST") {
			return syscall.EMFILE
		}
		return nil
	})
	b.options.FS = full
	if _, err := openCatalog(catalogDir, b.options); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("error %v", err)
	}
}

// TestScarcitiesAreRetried checks the error codes of a batch that cannot open its index because a resource is scarce: the codes tell the
// queue to retry.
func TestScarcitiesAreRetried(t *testing.T) {
	for _, errno := range slices.Concat(noFiles, noMemory) {
		if e := apierr.From(errno); e.Code != "too_many_open_files" {
			t.Errorf("%v is %s", errno, e.Code)
		}
	}
}

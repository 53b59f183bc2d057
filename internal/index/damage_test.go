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

// damage makes three indexes and breaks the second one. It returns the broken file and what was in it.
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

func TestDamagedIndexIsSetAside(t *testing.T) {
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
	// The others go on, and their changes keep the damaged one's place.
	b.batch += 10
	b.apply(c.Get("a"), b.payload(`{"id":3}`))
	b.create("d")
	b.reopen()
	if !b.c.Damaged("b") || b.c.Get("d") == nil {
		t.Fatal("the next start knows other indexes")
	}

	// Mended, it is there again, with what it had.
	b.close()
	if err := vfs.WriteFile(fsys, file, content); err != nil {
		t.Fatal(err)
	}
	b.open()
	if ix := b.c.Get("b"); ix == nil || b.c.Damaged("b") {
		t.Error("mended, it is not there")
	} else if v := held(ix.View()); v.Documents() != 2 {
		t.Errorf("mended, it has %d documents", v.Documents())
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
	if n, err := b.c.Delete("b", b.batch); err != nil || n != 0 { // once more, after a crash
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

// What every index lacks is no damage of the first that meets it.
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

// A batch that could not open its index for want of something is tried again: the code of the error says so to the queue.
func TestScarcitiesAreTheMachinesFault(t *testing.T) {
	for _, errno := range slices.Concat(noFiles, noMemory) {
		if e := apierr.From(errno); e.Code != "too_many_open_files" {
			t.Errorf("%v is %s", errno, e.Code)
		}
	}
}

package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

// TestFileSystemsAgree checks that all implementations give the same answers to the same calls.
func TestFileSystemsAgree(t *testing.T) {
	systems := map[string]FS{
		"os":     OS,
		"mem":    NewMem(),
		"hooked": Hook(NewMem(), func(Op) error { return nil }),
	}
	for name, fsys := range systems {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			at := func(name string) string { return filepath.Join(dir, name) }
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			want := func(name, content string) {
				t.Helper()
				got, err := ReadFile(fsys, at(name))
				if err != nil || string(got) != content {
					t.Fatalf("%s: got %q, %v, want %q", name, got, err, content)
				}
			}
			must(fsys.MkdirAll(dir))
			must(fsys.MkdirAll(dir))
			must(WriteFile(fsys, at("x"), []byte("one")))
			must(WriteFile(fsys, at("y"), []byte("two")))
			must(fsys.SyncDir(dir))
			want("x", "one")
			for _, name := range []string{"x", "new"} {
				f, err := fsys.Append(at(name))
				must(err)
				if _, err := f.Write([]byte("!")); err != nil {
					t.Fatal(err)
				}
				must(f.Sync())
				must(f.Close())
			}
			want("x", "one!")
			want("new", "!")
			must(fsys.Remove(at("new")))
			must(WriteFile(fsys, at("x"), []byte("one")))
			must(fsys.Link(at("x"), at("z")))
			if err := fsys.Link(at("x"), at("y")); !errors.Is(err, fs.ErrExist) {
				t.Errorf("link onto a file: %v", err)
			}
			if name != "os" || ReplacesOpen { // elsewhere, systems differ
				must(fsys.Link(at("z"), at("z2")))
				must(fsys.Rename(at("z2"), at("z")))
				want("z", "one")
				want("z2", "one")
				must(fsys.Remove(at("z2")))
			}
			must(fsys.Rename(at("y"), at("x")))
			want("x", "two")
			want("z", "one")
			if names, err := fsys.List(dir); err != nil || !slices.Equal(names, []string{"x", "z"}) {
				t.Errorf("list: %v, %v", names, err)
			}
			if _, err := fsys.Open(at("y")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("open of a missing file: %v", err)
			}
			if _, err := fsys.Stat(at("y")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("stat of a missing file: %v", err)
			}
			if err := fsys.Remove(at("y")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("remove of a missing file: %v", err)
			}
			if info, err := fsys.Stat(dir); err != nil || !info.IsDir() {
				t.Errorf("stat of a directory: %v, %v", info, err)
			}
			if err := fsys.Remove(dir); err == nil {
				t.Error("a full directory was removed")
			}

			f, err := fsys.Open(at("x"))
			must(err)
			if _, err := f.Write([]byte("no")); err == nil {
				t.Error("a file from Open was written")
			}
			if name == "os" && !ReplacesOpen {
				if fsys.Remove(at("x")) == nil || fsys.Rename(at("z"), at("x")) == nil {
					t.Error("an open file was removed or replaced")
				}
			} else {
				must(fsys.Remove(at("x")))
			}
			p := make([]byte, 2)
			if n, err := f.ReadAt(p, 1); n != 2 || err != nil || string(p) != "wo" {
				t.Errorf("read of an unlinked file: %d, %v, %q", n, err, p)
			}
			if n, err := f.ReadAt(p, 2); n != 1 || err != io.EOF {
				t.Errorf("read over the end: %d, %v", n, err)
			}
			if info, err := f.Stat(); err != nil || info.Size() != 3 {
				t.Errorf("stat of an unlinked file: %v, %v", info, err)
			}
			must(f.Close())
			if f.Close() == nil {
				t.Error("a file was closed twice")
			}
			must(fsys.RemoveAll(dir))
			must(fsys.RemoveAll(dir))
			if _, err := fsys.List(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("list of a removed directory: %v", err)
			}
		})
	}
}

func TestLockIsExclusive(t *testing.T) {
	for name, l := range map[string]Locker{"os": OS.(Locker), "mem": NewMem()} {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "LOCK")
			if m, ok := l.(*MemFS); ok {
				if err := m.MkdirAll(filepath.Dir(at)); err != nil {
					t.Fatal(err)
				}
			}
			held, err := l.Lock(at)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Lock(at); !errors.Is(err, ErrLocked) {
				t.Errorf("second lock: %v", err)
			}
			if err := held.Close(); err != nil {
				t.Fatal(err)
			}
			held, err = l.Lock(at)
			if err != nil {
				t.Fatalf("lock after it was released: %v", err)
			}
			held.Close()
		})
	}
}

// TestStrictCrashKeepsSyncedData checks that a strict crash keeps exactly what was synced.
func TestStrictCrashKeepsSyncedData(t *testing.T) {
	m := NewMem()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(m.MkdirAll("d"))
	check(m.SyncDir("/"))
	check(WriteFile(m, "d/named", []byte("synced")))
	check(m.SyncDir("d"))
	check(WriteFile(m, "d/unnamed", []byte("synced")))
	f, err := m.Create("d/named2")
	check(err)
	check(m.SyncDir("d"))
	_, err = f.Write([]byte("dur"))
	check(err)
	check(f.Sync())
	_, err = f.Write([]byte("able"))
	check(err)
	check(m.Rename("d/unnamed", "d/named"))

	c := m.CrashClone(nil)
	for name, want := range map[string]string{"d/named": "synced", "d/named2": "dur", "d/unnamed": "synced"} {
		if got, err := ReadFile(c, name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	check(m.SyncDir("d"))
	c = m.CrashClone(nil)
	if names, _ := c.List("d"); !slices.Equal(names, []string{"named", "named2"}) {
		t.Errorf("after SyncDir: %v", names)
	}
	check(m.RemoveAll("d"))
	c = m.CrashClone(nil)
	if names, _ := c.List("d"); !slices.Equal(names, []string{"named", "named2"}) {
		t.Errorf("a removal survived that was not synced: %v", names)
	}
}

// TestSeededCrashKeepsSyncedData checks crashes with all seeds: synced bytes stay, unsynced ones are a prefix with blocks of zeros, and a
// replaced name refers to the old or the new file.
func TestSeededCrashKeepsSyncedData(t *testing.T) {
	synced, unsynced := bytes.Repeat([]byte("s"), 700), bytes.Repeat([]byte("u"), 3000)
	seen := map[string]bool{}
	for seed := range uint64(200) {
		m := NewMem()
		if err := WriteFile(m, "a", []byte("old")); err != nil {
			t.Fatal(err)
		}
		f, _ := m.Create("f")
		f.Write(synced)
		f.Sync()
		m.SyncDir("/")
		f.Write(unsynced)
		WriteFile(m, "tmp", []byte("new"))
		m.Rename("tmp", "a")

		c := m.CrashClone(rand.New(rand.NewPCG(seed, 1)))
		again := m.CrashClone(rand.New(rand.NewPCG(seed, 1)))
		a, err := ReadFile(c, "a")
		if err != nil || string(a) != "old" && string(a) != "new" {
			t.Fatalf("seed %d: a is %q, %v", seed, a, err)
		}
		seen[string(a)] = true
		got, err := ReadFile(c, "f")
		if err != nil || !bytes.HasPrefix(got, synced) || len(got) > len(synced)+len(unsynced) {
			t.Fatalf("seed %d: f has %d bytes, %v", seed, len(got), err)
		}
		for _, b := range got[len(synced):] {
			if b != 'u' && b != 0 {
				t.Fatalf("seed %d: byte %q", seed, b)
			}
			if b == 0 {
				seen["torn"] = true
			}
		}
		if len(got) > len(synced) {
			seen["more"] = true
		}
		if twin, _ := ReadFile(again, "f"); !bytes.Equal(got, twin) {
			t.Fatalf("seed %d gives two clones", seed)
		}
	}
	for _, k := range []string{"old", "new", "torn", "more"} {
		if !seen[k] {
			t.Errorf("no seed gave %q", k)
		}
	}
}

func TestHookFailsTheChosenOperations(t *testing.T) {
	broken := errors.New("disk on fire")
	m := NewMem()
	h := Hook(m, FailFrom(1, 1, func(o Op) bool { return o.Kind == OpWrite }, broken))
	f, err := h.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, broken, nil} {
		if _, err := f.Write([]byte("abcd")); !errors.Is(err, want) {
			t.Errorf("write %d: %v, want %v", i, err, want)
		}
	}
	if got, _ := ReadFile(m, "f"); string(got) != "abcdababcd" {
		t.Errorf("got %q: a failed write leaves half of its bytes", got)
	}
}

func TestLogHasALineAnOperation(t *testing.T) {
	var l Log
	h := Hook(NewMem(), l.Hook)
	f, _ := h.Create("t")
	f.Write([]byte("a"))
	g, _ := h.Create("u")
	f.Write([]byte("b"))
	f.Sync()
	f.Write([]byte("c"))
	f.Close()
	g.Close()
	h.Rename("t", "v")
	h.SyncDir("/")
	want := []string{"create t", "write t", "create u", "sync t", "write t", "rename t v", "syncdir /"}
	if got := l.Take(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := l.Take(); len(got) != 0 {
		t.Errorf("second Take: %q", got)
	}
}

func TestHookKeepsOSFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := WriteFile(OS, name, []byte("x")); err != nil {
		t.Fatal(err)
	}
	f, err := Hook(OS, func(Op) error { return nil }).Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := f.(OSFile); !ok {
		t.Error("a hooked file cannot be mapped")
	}
}

// TestFailedSyncsLose checks that data of a failed sync are not durable after the next sync, until they are written, or the name is
// created, again.
func TestFailedSyncsLose(t *testing.T) {
	mem := NewMem()
	fails := true
	disk := Hook(mem, mem.LoseOnError(func(o Op) error {
		if fails && (o.Kind == OpSync || o.Kind == OpSyncDir) {
			return errors.New("disk on fire")
		}
		return nil
	}))
	write := func(f File, text string) {
		t.Helper()
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := mem.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	write(f, "1")
	if err := errors.Join(f.Sync(), mem.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	g, err := disk.Append("a")
	if err != nil {
		t.Fatal(err)
	}
	write(g, "2")
	if err := WriteFile(mem, "b", []byte("b")); err != nil {
		t.Fatal(err)
	}
	if err := mem.Rename("b", "c"); err != nil {
		t.Fatal(err)
	}
	if g.Sync() == nil || disk.SyncDir("/") == nil {
		t.Fatal("a failed sync gives no error")
	}
	fails = false
	left := func() string {
		t.Helper()
		if err := errors.Join(g.Sync(), disk.SyncDir("/")); err != nil {
			t.Fatal(err)
		}
		var all []string
		for range 3 {
			c := mem.CrashClone(rand.New(rand.NewPCG(1, 1)))
			names, err := c.List("/")
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, name := range names {
				b, err := ReadFile(c, name)
				if err != nil {
					t.Fatal(err)
				}
				text += fmt.Sprintf("%s:%q ", name, b)
			}
			all = append(all, text)
		}
		if all[0] != all[1] || all[1] != all[2] {
			t.Errorf("a crash after all was synced leaves one of %q", all)
		}
		return all[0]
	}
	if got := left(); got != `a:"1\x00" ` {
		t.Errorf("there is %s", got)
	}
	if err := Rename(mem, "c"); err != nil {
		t.Fatal(err)
	}
	write(g, "3")
	if got := left(); got != `a:"1\x003" c:"b" ` {
		t.Errorf("after another name there is %s", got)
	}
}

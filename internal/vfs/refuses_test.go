//go:build windows || windowsrules

package vfs

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/edsrzf/mmap-go"
)

// What Windows refuses is refused, and what it allows is done.
func TestFilesInUseStay(t *testing.T) {
	for _, c := range []struct {
		name                       string
		open, mapped               bool
		remove, replace, move, cut bool // what can be done with it
	}{
		{name: "unused", remove: true, replace: true, move: true, cut: true},
		{name: "open", open: true, cut: true},
		{name: "mapped", mapped: true, move: true},
		{name: "open and mapped", open: true, mapped: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.ToSlash(t.TempDir())
			at := func(name string) string { return path.Join(dir, name) }
			made := func(name string) string {
				t.Helper()
				if err := OS.MkdirAll(path.Dir(at(name))); err != nil {
					t.Fatal(err)
				}
				if err := WriteFile(OS, at(name), []byte("used")); err != nil {
					t.Fatal(err)
				}
				f, err := OS.Open(at(name))
				if err != nil {
					t.Fatal(err)
				}
				if c.mapped {
					m, err := mmap.Map(f.(OSFile).OSFile(), mmap.RDONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { m.Unmap() })
				}
				if c.open {
					t.Cleanup(func() { f.Close() })
				} else {
					f.Close()
				}
				return at(name)
			}
			for _, do := range []struct {
				what string
				can  bool
				err  error
			}{
				{"remove", c.remove, OS.Remove(made("a"))},
				{"remove the directory of", c.remove, OS.RemoveAll(path.Dir(made("d/a")))},
				{"replace", c.replace, errors.Join(WriteFile(OS, at("new"), nil), OS.Rename(at("new"), made("b")))},
				{"rename", c.move, OS.Rename(made("c"), at("other"))},
				{"truncate", c.cut, WriteFile(OS, made("e"), nil)},
			} {
				if (do.err == nil) != do.can {
					t.Errorf("%s a file that is %s: %v", do.what, c.name, do.err)
				}
			}
		})
	}
}

// TestReadOnlyFilesStay replaces and removes a read-only file. The system allows only the removal.
func TestReadOnlyFilesStay(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	file, other := path.Join(dir, "a"), path.Join(dir, "b")
	for _, name := range []string{file, other} {
		if err := WriteFile(OS, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := OS.Rename(other, file); err == nil {
		t.Error("a read-only file was replaced")
	}
	if err := OS.Remove(file); err != nil {
		t.Error(err)
	}
}

// The lock is not bbolt's, and belongs to one handle.
func TestALockKeepsOthersOut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := WriteFile(OS, name, []byte("used")); err != nil {
		t.Fatal(err)
	}
	one, err := OS.(Locker).Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OS.(Locker).Lock(name); !errors.Is(err, ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	if b, err := ReadFile(OS, name); err != nil || string(b) != "used" {
		t.Errorf("a locked file reads as %q, %v", b, err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OS.(Locker).Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

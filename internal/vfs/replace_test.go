package vfs

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestReplaceIsAllOrNothing checks that a replaced file has its old or its new content after a crash at any moment, and the new content
// once Replace has returned.
func TestReplaceIsAllOrNothing(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, count := range []int64{1, 1 << 40} {
		for n := int64(0); ; n++ {
			mem := NewMem()
			if err := MakeDir(mem, "/a/b"); err != nil {
				t.Fatal(err)
			}
			if _, err := Replace(mem, "/a/b/x", []byte("old")); err != nil {
				t.Fatal(err)
			}
			failed := false
			fail := FailFrom(n, count, nil, broken)
			renamed, err := Replace(Hook(mem, func(o Op) error {
				err := fail(o)
				failed = failed || err != nil
				return err
			}), "/a/b/x", []byte("new"))
			if failed != (err != nil) {
				t.Fatalf("operation %d fails, and Replace gives %v", n, err)
			}
			for seed := range uint64(8) {
				crashed := mem.CrashClone(rand.New(rand.NewPCG(seed, uint64(n))))
				b, readErr := ReadFile(crashed, "/a/b/x")
				got := string(b)
				switch {
				case readErr != nil:
					t.Fatalf("operation %d fails: %v", n, readErr)
				case err == nil && got != "new", err != nil && !renamed && got != "old", got != "old" && got != "new":
					t.Errorf("operation %d fails with %v, renamed %v: after a crash %q", n, err, renamed, got)
				}
			}
			if err != nil && count == 1 {
				if names, _ := mem.List("/a/b"); len(names) != 1 {
					t.Errorf("operation %d fails: %q is left", n, names)
				}
			}
			if !failed {
				if n < 6 {
					t.Errorf("only %d operations", n)
				}
				break
			}
		}
	}
}

// TestReplaceIsAllOrNothingAfterACrash checks the state that a crash between the rename and the sync of the directory may leave, with the
// file under both names. The next Replace must not write to that file.
func TestReplaceIsAllOrNothingAfterACrash(t *testing.T) {
	broken := errors.New("disk on fire")
	mem := NewMem()
	if err := MakeDir(mem, "/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := Replace(mem, "/a/x", []byte("old")); err != nil {
		t.Fatal(err)
	}
	renamed := false
	_, err := Replace(Hook(mem, func(o Op) error {
		if renamed && o.Kind == OpSyncDir {
			return broken
		}
		renamed = renamed || o.Kind == OpRename
		return nil
	}), "/a/x", []byte("second"))
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	both := 0
	for seed := range uint64(16) {
		for n := int64(0); ; n++ {
			first := mem.CrashClone(rand.New(rand.NewPCG(seed, 1)))
			before, err := ReadFile(first, "/a/x")
			if err != nil {
				t.Fatal(err)
			}
			if names, _ := first.List("/a"); len(names) == 2 && string(before) == "second" {
				both++
			}
			_, err = Replace(Hook(first, FailFrom(n, 1<<40, nil, broken)), "/a/x", []byte("the third"))
			for again := range uint64(8) {
				b, readErr := ReadFile(first.CrashClone(rand.New(rand.NewPCG(again, 2))), "/a/x")
				if got := string(b); readErr != nil || got != string(before) && got != "the third" || err == nil && got != "the third" {
					t.Errorf("seed %d, operation %d fails with %v: after a second crash there is %q, %v; before it was %q", seed, n, err, got, readErr, before)
				}
			}
			if err == nil {
				break
			}
		}
	}
	if both == 0 {
		t.Error("no crash leaves both names")
	}
}

// TestReplaceComesAfterEarlierNames checks that files created in a directory before a Replace exist after each crash that leaves the
// replaced file: it may refer to them.
func TestReplaceComesAfterEarlierNames(t *testing.T) {
	const others = 6
	before, after := 0, 0
	for n := int64(0); ; n++ {
		mem := NewMem()
		if err := MakeDir(mem, "/a"); err != nil {
			t.Fatal(err)
		}
		if _, err := Replace(mem, "/a/x", []byte("old")); err != nil {
			t.Fatal(err)
		}
		for i := range others { // durable except for their names
			if err := WriteFile(mem, "/a/"+string(rune('a'+i)), []byte("other")); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Replace(Hook(mem, FailFrom(n, 1<<40, nil, errors.New("disk on fire"))), "/a/x", []byte("new"))
		for seed := range uint64(16) {
			crashed := mem.CrashClone(rand.New(rand.NewPCG(seed, uint64(n))))
			if b, err := ReadFile(crashed, "/a/x"); err != nil || string(b) != "new" {
				before++
				continue
			}
			after++
			for i := range others {
				if b, err := ReadFile(crashed, "/a/"+string(rune('a'+i))); err != nil || string(b) != "other" {
					t.Errorf("operation %d fails: the new file exists, but %c does not: %q %v", n, 'a'+i, b, err)
				}
			}
		}
		if err == nil {
			break
		}
	}
	if before == 0 || after == 0 {
		t.Errorf("%d crashes left the old file, %d the new one", before, after)
	}
}

// TestMadeDirectoriesAreDurable checks that a directory is durable once MakeDir has returned nil, also if earlier calls failed at any
// operation or the process was killed.
func TestMadeDirectoriesAreDurable(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, count := range []int64{1, 1 << 40} {
		for n := int64(0); ; n++ {
			mem := NewMem()
			fail := FailFrom(n, count, func(o Op) bool { return o.Kind.Changes() }, broken)
			if count == 1 { // otherwise the process was killed
				fail = mem.LoseOnError(fail)
			}
			err := MakeDir(Hook(mem, fail), "/a/b/c")
			if err != nil && !errors.Is(err, broken) {
				t.Fatal(err)
			}
			if again := MakeDir(mem, "/a/b/c"); again != nil {
				t.Fatalf("second call: %v", again)
			}
			if _, err := mem.CrashClone(nil).Stat("/a/b/c"); err != nil {
				t.Errorf("operation %d failed before: %v", n, err)
			}
			if err == nil {
				if n < 6 {
					t.Errorf("only %d operations", n)
				}
				break
			}
		}
	}
}

// TestDirectoriesInOnesThatCannotBeSynced creates a data directory in a directory that svc may not read, and in a file system that cannot
// sync directories.
func TestDirectoriesInOnesThatCannotBeSynced(t *testing.T) {
	for _, test := range []struct {
		err error
		ok  bool
	}{
		{os.ErrPermission, true},
		{syscall.EINVAL, true},
		{errors.ErrUnsupported, true},
		{errors.New("disk on fire"), false},
	} {
		mem := NewMem()
		if err := mem.MkdirAll("/mnt/data"); err != nil {
			t.Fatal(err)
		}
		disk := Hook(mem, func(o Op) error {
			if o.Kind == OpSyncDir && o.Name == "/mnt" {
				return test.err
			}
			return nil
		})
		for _, dir := range []string{"/mnt/data", "/mnt/data/a/b"} {
			if err := MakeDir(disk, dir); (err == nil) != test.ok {
				t.Errorf("%v: %s: %v", test.err, dir, err)
			}
		}
		if err := MakeDir(disk, "/mnt/new"); err == nil {
			t.Errorf("%v: a new directory that is not durable gives no error", test.err)
		}
	}
	mem := NewMem()
	if err := WriteFile(mem, "/file", nil); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/file", "/file/a"} {
		if MakeDir(mem, dir) == nil {
			t.Errorf("%s is no directory", dir)
		}
	}
}

// TestFilesAreForTheirOwnerOnly checks the modes of files and directories, which may hold secrets.
func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := MakeDir(OS, dir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "x")
	if _, err := Replace(OS, file, nil); err != nil {
		t.Fatal(err)
	}
	lock, err := OS.(Locker).Lock(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, name := range []string{dir, filepath.Dir(dir), file, filepath.Join(dir, "lock")} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

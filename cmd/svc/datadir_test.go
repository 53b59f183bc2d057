package main

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"svc/internal/vfs"
)

// filling makes the file operations of an import in short: directories, files, syncs.
func filling(fsys vfs.FS) error {
	for _, name := range []string{"/data/indexes/000000/MANIFEST", "/data/indexes/CATALOG", "/data/auth.db"} {
		dir := name[:strings.LastIndexByte(name, '/')]
		if err := vfs.MakeDir(fsys, dir); err != nil {
			return err
		}
		if _, err := vfs.Replace(fsys, name, []byte(name)); err != nil {
			return err
		}
	}
	return nil
}

// filled reports whether a data directory has everything of an import, or nothing.
func filled(t *testing.T, fsys vfs.FS) (whole, nothing bool) {
	t.Helper()
	found := 0
	for _, name := range []string{"/data/indexes/000000/MANIFEST", "/data/indexes/CATALOG", "/data/auth.db"} {
		if b, err := vfs.ReadFile(fsys, name); err == nil && string(b) == name {
			found++
		}
	}
	return found == 3, found == 0
}

// TestAnImportIsAllOrNothing fails the power or the disk at each file operation of an import, and at each of a repetition. The directory
// must then be complete, count as empty, or report an interrupted import; the same import must complete it.
func TestAnImportIsAllOrNothing(t *testing.T) {
	broken := errors.New("the power is gone")
	outcomes := map[string]int{}
	interrupted := func(from vfs.FS, n, count int64) (failed bool) {
		fail := vfs.FailFrom(n, count, func(o vfs.Op) bool { return o.Kind.Changes() }, broken)
		hooked := vfs.Hook(from, func(o vfs.Op) error {
			err := fail(o)
			failed = failed || err != nil
			return err
		})
		lock, err := openDataDir(hooked, "/data", "a.dump", func() error { return filling(hooked) })
		if err == nil {
			lock.Close()
		} else if !failed {
			t.Fatal(err)
		}
		return failed
	}
	check := func(what string, crashed *vfs.MemFS) {
		state, err := checkDataDir(crashed, "/data")
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if state != dataExists { // otherwise the start would use the existing data
			again := crashed.CrashClone(nil)
			lock, err := openDataDir(again, "/data", "a.dump", func() error { return filling(again) })
			if err != nil {
				t.Fatalf("%s: the same import: %v", what, err)
			}
			lock.Close()
			if whole, _ := filled(t, again); !whole {
				t.Fatalf("%s: the same import does not complete it", what)
			}
		}
		lock, err := openDataDir(crashed, "/data", "", nil)
		if err != nil {
			if !strings.Contains(err.Error(), "the import of") || !strings.Contains(err.Error(), "was interrupted") {
				t.Fatalf("%s: %v", what, err)
			}
			outcomes["cut off"]++
			return
		}
		lock.Close()
		switch whole, nothing := filled(t, crashed); {
		case whole:
			outcomes["whole"]++
		case nothing:
			outcomes["nothing"]++
		default:
			t.Fatalf("%s: a part of the import counts as complete", what)
		}
	}
	for _, count := range []int64{1, 1 << 40} {
		for n, failed := int64(0), true; failed; n++ {
			mem := vfs.NewMem()
			failed = interrupted(mem, n, count)
			for seed := range uint64(6) {
				random := rand.New(rand.NewPCG(seed, uint64(n)))
				crashed := mem.CrashClone(random)
				if seed == 0 {
					crashed = mem.CrashClone(nil)
				}
				check("once", crashed.CrashClone(nil))
				// A second import that fails at another point.
				if state, err := checkDataDir(crashed, "/data"); err == nil && state != dataExists {
					interrupted(crashed, int64(random.IntN(40)), 1<<40)
					check("twice", crashed.CrashClone(random))
				}
			}
		}
	}
	t.Log(outcomes)
	for _, outcome := range []string{"cut off", "whole", "nothing"} {
		if outcomes[outcome] == 0 {
			t.Errorf("no case ended as %q", outcome)
		}
	}
}

// TestVersionIsWrittenAgain fails each sync of a start on a new directory, and on one that an older program wrote. When the next start
// succeeds, a power cut must leave a directory that counts as one of this version.
func TestVersionIsWrittenAgain(t *testing.T) {
	broken := errors.New("the disk fails")
	for _, older := range []bool{false, true} {
		for n, failed := int64(0), true; failed; n++ {
			mem := vfs.NewMem()
			if older {
				if err := vfs.MakeDir(mem, "/data"); err != nil {
					t.Fatal(err)
				}
				if _, err := vfs.Replace(mem, "/data/VERSION", []byte("svc 3 0.1.0")); err != nil {
					t.Fatal(err)
				}
			}
			failed = false
			fail := vfs.FailFrom(n, 1, func(o vfs.Op) bool { return o.Kind == vfs.OpSync || o.Kind == vfs.OpSyncDir }, broken)
			hooked := vfs.Hook(mem, mem.LoseOnError(func(o vfs.Op) error {
				err := fail(o)
				failed = failed || err != nil
				return err
			}))
			lock, err := openDataDir(hooked, "/data", "", nil)
			if failed != errors.Is(err, broken) {
				t.Fatalf("sync %d: %v", n, err)
			}
			if err != nil {
				if lock, err = openDataDir(hooked, "/data", "", nil); err != nil {
					t.Fatal(err)
				}
			}
			lock.Close()
			if state, err := checkDataDir(mem.CrashClone(nil), "/data"); err != nil || state != dataExists {
				t.Errorf("older: %v, sync %d: the directory has the state %v, %v", older, n, state, err)
			}
		}
	}
}

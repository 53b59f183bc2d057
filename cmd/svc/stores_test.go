package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/logs/logstest"
)

// refused starts a server that must not start, and returns its output.
func refused(t *testing.T, db string) string {
	t.Helper()
	said := new(logstest.Buffer)
	p := program{getenv: func(string) (string, bool) { return "", false }, out: io.Discard, err: said}
	if code := p.run([]string{"--db-path", db, "--http-addr", "127.0.0.1:0"}); code != exitFailure {
		t.Errorf("exit code %d: %s", code, said)
	}
	return said.String()
}

// tree lists the files below a directory with their sizes.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b.WriteString(path + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestAMissingStoreIsNotReplaced checks that a store that is missing or empty counts as damage: no new one may replace it, and no other
// file may be removed.
func TestAMissingStoreIsNotReplaced(t *testing.T) {
	db := filepath.Join(t.TempDir(), "data")
	in := start(t, db, "--experimental-max-number-of-batched-tasks", "1")
	in.call("POST", "/indexes/films/documents", `[{"id": 1}]`)
	in.idle()
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"indexes/CATALOG", "tasks/queue.db", "auth.db", "indexes", "tasks"} {
		for _, empty := range []bool{false, true} {
			file := filepath.Join(db, name)
			if err := os.Rename(file, file+".kept"); err != nil {
				t.Fatal(err)
			}
			if empty {
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := tree(t, db)
			if said := refused(t, db); !strings.Contains(said, file) && !empty {
				t.Errorf("%s, empty %v: %s", name, empty, said)
			}
			if after := tree(t, db); after != before {
				t.Errorf("%s, empty %v: before\n%s\nafter\n%s", name, empty, before, after)
			}
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".kept", file); err != nil {
				t.Fatal(err)
			}
		}
	}
	in = start(t, db)
	if got := in.call("GET", "/indexes/films/documents/1", ""); got != `{"id":1}` {
		t.Error(got)
	}
}

// TestARemovedLockStillLocks removes LOCK, which must not allow a second process to open the directory.
func TestARemovedLockStillLocks(t *testing.T) {
	db := filepath.Join(t.TempDir(), "data")
	in := start(t, db)
	in.call("POST", "/indexes/films/documents", `[{"id": 1}]`)
	in.idle()
	if err := os.Remove(filepath.Join(db, lockFile)); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob(filepath.Join(db, "indexes", "*", "MANIFEST"))
	if err != nil || len(manifests) != 1 {
		t.Fatal(manifests, err)
	}
	stranger := filepath.Join(filepath.Dir(manifests[0]), "999999.seg") // as a running batch would write it
	if err := os.WriteFile(stranger, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := refused(t, db); !strings.Contains(said, "another svc is running") {
		t.Error(said)
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Errorf("the refused process removed a file of the first one: %v", err)
	}
	in.call("POST", "/indexes/films/documents", `[{"id": 2}]`)
	in.idle()
}

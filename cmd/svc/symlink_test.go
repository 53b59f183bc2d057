package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"svc/internal/vfs"
)

// TestAFailedImportLeavesASymbolicLink fails an import into a directory that --db-path names by a symbolic link. The directory must be
// empty then, and the link must remain.
func TestAFailedImportLeavesASymbolicLink(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	link := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(disk, link); err != nil {
		t.Skip(err)
	}
	broken := errors.New("the dump is damaged")
	lock, err := openDataDir(vfs.OS, link, "a.dump", func() error {
		return errors.Join(os.WriteFile(filepath.Join(link, "auth.db"), []byte("x"), 0o600), broken)
	})
	if !errors.Is(err, broken) || lock != nil {
		t.Fatalf("%v, %v", lock, err)
	}
	if to, err := os.Readlink(link); err != nil || to != disk {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	if names, err := vfs.OS.List(disk); err != nil || len(names) > 0 {
		t.Errorf("the directory has %v: %v", names, err)
	}
}

// TestVerifyFollowsASymbolicLink verifies a directory that is named by a symbolic link, as for data on another disk.
func TestVerifyFollowsASymbolicLink(t *testing.T) {
	disk, link := t.TempDir(), filepath.Join(t.TempDir(), "data")
	if err := os.Symlink(disk, link); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(disk, versionFile), versionContent(), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := runCommand("segment", "verify", link); code != 0 || out != "0 checked, 0 damaged\n" {
		t.Errorf("without files: exit code %d, %s%s", code, out, errs)
	}
	bad := "000000" + segmentSuffix
	if err := os.WriteFile(filepath.Join(disk, bad), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := runCommand("segment", "verify", link); code != 1 || out != filepath.Join(link, bad)+": DAMAGED\n1 checked, 1 damaged\n" {
		t.Errorf("with a damaged file: exit code %d, %s%s", code, out, errs)
	}
}

package mapped

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"svc/internal/vfs"
)

// TestHoldsNotWhatTheSystemForgot drops a file from the system's cache before it is mapped.
func TestHoldsNotWhatTheSystemForgot(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	w, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const size = 4 << 20
	if _, err := w.Write(bytes.Repeat([]byte("abcd"), size/4)); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(w.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Skip(err)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(w.Fd()), &fs); err != nil {
		t.Fatal(err)
	}
	switch int64(fs.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
	default:
		t.Skip("this file system may keep what it was asked to drop")
	}
	f, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	missing := 0
	for at := int64(0); at < size; at += 64 << 10 {
		if !f.Holds(at) {
			missing++
		}
	}
	if missing == 0 {
		t.Error("each page is said to be in memory, and none was read")
	}
}

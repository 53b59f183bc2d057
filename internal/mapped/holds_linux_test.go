package mapped

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"svc/internal/vfs"
)

// TestHoldsSeesEvictedPages evicts a file from the page cache before it is mapped.
func TestHoldsSeesEvictedPages(t *testing.T) {
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
		t.Skip("this file system may not evict pages on request")
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
		t.Error("all pages are reported as in memory although none was read")
	}
}

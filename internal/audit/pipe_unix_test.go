//go:build unix

package audit

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"svc/internal/vfs"
)

// TestPipe writes to a pipe, as /dev/stdout is in a container: it can be neither synced nor renamed.
func TestPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(name, os.O_RDWR, 0) // which waits for no writer
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	l, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.maxBytes = 100 // less than two lines
	lines := bufio.NewScanner(reader)
	for n := range 5 {
		if err := l.Append(entry(n)); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), `"action":"keys.create"`) {
			t.Fatalf("line %d is %q: %v", n, lines.Text(), lines.Err())
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().IsRegular() {
		t.Errorf("the pipe was replaced: %v %v", info, err)
	}
}

// TestNamesBelowDev keeps files below /dev: they lead to files that others name.
func TestNamesBelowDev(t *testing.T) {
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("/dev"); err != nil {
		t.Fatal(err)
	}
	l, err := Open(fsys, "/dev/stdout")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.maxBytes = 100
	appendTo(t, l, 1, 2, 3)
	if got := objects(t, fsys, "/dev/stdout"); got != "1 2 3" {
		t.Errorf("the file has %s", got)
	}
}

//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// asUser is the environment variable that makes the test binary run as another user.
const asUser = "BE_THE_USER"

func init() {
	if uid, err := strconv.Atoi(os.Getenv(asUser)); err == nil {
		if err := syscall.Setuid(uid); err != nil {
			panic(err)
		}
	}
}

// TestDeniedDirectories starts svc as a user who may not use the data directory: one line must name what denies access, its owner, and
// what to do.
func TestDeniedDirectories(t *testing.T) {
	const nobody = 65534
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	top := t.TempDir()
	for dir := top; dir != "/" && dir != "/tmp"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	made := func(name string, mode os.FileMode, uid int) string {
		dir := filepath.Join(top, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	root, user := userName(0), userName(nobody)
	for _, tt := range []struct{ dir, want string }{
		{made("hidden", 0o700, 0), "svc runs as " + user + ", but " + filepath.Join(top, "hidden") + " belongs to " + root + " and has the mode drwx------"},
		{made("shown", 0o755, 0), "svc runs as " + user + ", but " + filepath.Join(top, "shown") + " belongs to " + root + " and has the mode drwxr-xr-x"},
		{filepath.Join(made("above", 0o755, 0), "data"), "but " + filepath.Join(top, "above") + " belongs to " + root},
		{made("own", 0o500, nobody), filepath.Join(top, "own") + " has the mode dr-x------: allow its owner to write"},
	} {
		cmd := exec.Command(os.Args[0], "--db-path", tt.dir, "--http-addr", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), asProgram+"=1", asUser+"="+strconv.Itoa(nobody))
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != exitFailure || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "permission denied. ") || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %v, %s", tt.dir, err, out)
		}
	}
}

// TestAdviceForTheMachine checks that an error of the machine that ends the program comes with advice.
func TestAdviceForTheMachine(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "The disk is full: free space", syscall.EROFS: "The file system is read-only", syscall.EMFILE: "cannot open more files",
	} {
		err := &os.PathError{Op: "write", Path: "/data/VERSION", Err: errno}
		if got := advised(err); !strings.HasPrefix(got, err.Error()+". ") || !strings.Contains(got, want) {
			t.Errorf("%v: %s", errno, got)
		}
	}
	// Owner and mode allow access to this directory.
	if got := advised(&os.PathError{Op: "mkdir", Path: filepath.Join(t.TempDir(), "x"), Err: syscall.EACCES}); !strings.Contains(got, "SELinux") {
		t.Error(got)
	}
}

package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asProgram is the environment variable that makes the test binary run as svc.
const asProgram = "BE_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// addressIn reads what the program prints until it names its address; "": it ended without.
func addressIn(r io.Reader) string {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), " "); name == "address" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// healthy checks with n requests that a server answers.
func healthy(t *testing.T, url string, n int) {
	t.Helper()
	for range n {
		resp, err := http.Get(url + "/health")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

// TestTheServerOutlivesTheReaderOfItsLog closes the reader of the log, as a restart of journald does: the server must continue, and stop
// when asked to.
func TestTheServerOutlivesTheReaderOfItsLog(t *testing.T) {
	cmd := exec.Command(os.Args[0], "--db-path", filepath.Join(t.TempDir(), "data"), "--http-addr", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	w.Close()
	url := addressIn(r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	healthy(t, url, 3) // each logs a line
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the server does not stop")
	}
}

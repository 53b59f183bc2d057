//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTheSupervisorIsNotified starts the program like systemd: it must report when it listens, and when it stops.
func TestTheSupervisorIsNotified(t *testing.T) {
	dir, err := os.MkdirTemp("", "svc") // socket names must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	heard := func() string {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		message := make([]byte, 4096)
		n, err := socket.Read(message)
		if err != nil {
			t.Fatal(err)
		}
		return string(message[:n])
	}
	cmd := exec.Command(os.Args[0], "--db-path", filepath.Join(dir, "data"), "--http-addr", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), asProgram+"=1", "NOTIFY_SOCKET="+socket.LocalAddr().String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	url, ok := strings.CutPrefix(heard(), "READY=1\nSTATUS=serving on ")
	if !ok {
		t.Fatalf("the server is not ready: %s", url)
	}
	healthy(t, url, 1) // connections are accepted from then on
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := heard(); got != "STOPPING=1" {
		t.Errorf("got %q", got)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestHangup sends SIGHUP, which a closing terminal sends: the server stops. With an audit log it goes on, because programs that rotate
// logs send it, too.
func TestHangup(t *testing.T) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // where tests run under nohup: a program inherits an ignored signal, but no handler
	defer signal.Stop(hangups)
	for _, audited := range []bool{false, true} {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "--db-path", filepath.Join(dir, "data"), "--http-addr", "127.0.0.1:0")
		if audited {
			cmd.Args = append(cmd.Args, "--audit-log", filepath.Join(dir, "audit"))
		}
		cmd.Env = append(os.Environ(), asProgram+"=1")
		out, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill()
		url := addressIn(out)
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if audited {
			healthy(t, url, 3) // each a chance to stop instead
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("with an audit log: %t: %v", audited, err)
		}
	}
}

func TestNotify(t *testing.T) {
	abstract := "@svc-notify-test"
	if socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: abstract, Net: "unixgram"}); err == nil { // Linux
		defer socket.Close()
	} else {
		abstract = ""
	}
	for name, ok := range map[string]bool{"": true, abstract: true, "relative": false, "vsock:2:1234": false, filepath.Join(t.TempDir(), "nobody"): false} {
		p := program{getenv: func(string) (string, bool) { return name, true }}
		if err := p.notify("READY=1"); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

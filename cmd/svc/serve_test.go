package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/logs/logstest"
)

// instance is a running server.
type instance struct {
	t    *testing.T
	url  string
	log  *logstest.Buffer
	stop func() error
}

func start(t *testing.T, db string, args ...string) *instance {
	t.Helper()
	in, err := tryStart(t, db, args...)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// tryStart starts a server, or returns why it refuses to start.
func tryStart(t *testing.T, db string, args ...string) (*instance, error) {
	t.Helper()
	p := program{getenv: func(string) (string, bool) { return "", false }, out: io.Discard, err: io.Discard}
	parsed, err := p.parse(append([]string{"--db-path", db, "--http-addr", "127.0.0.1:0"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, serverOptions(parsed))
}

// startWith is tryStart with parsed options.
func startWith(t *testing.T, o *options) (*instance, error) {
	t.Helper()
	in := &instance{t: t, log: new(logstest.Buffer)}
	p := program{getenv: func(string) (string, bool) { return "", false }, out: in.log, err: in.log}
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() { done <- o.serve(ctx, p, func(a net.Addr) { ready <- a }) }()
	select {
	case a := <-ready:
		in.url = "http://" + a.String()
	case err := <-done:
		cancel()
		return nil, fmt.Errorf("cannot start: %w\n%s", err, in.log)
	}
	in.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(2 * time.Minute):
			return allStacks()
		}
	})
	t.Cleanup(func() {
		if err := in.stop(); errors.As(err, new(stuck)) {
			t.Error(err)
		}
	})
	return in, nil
}

// stuck is the error of a server that does not stop, with the stacks of all goroutines.
type stuck string

func (s stuck) Error() string { return "does not stop:\n" + string(s) }

func allStacks() stuck {
	b := make([]byte, 16<<20)
	return stuck(b[:runtime.Stack(b, true)])
}

func (in *instance) call(method, path, body string) string {
	in.t.Helper()
	req, err := http.NewRequest(method, in.url+path, strings.NewReader(body))
	if err != nil {
		in.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		in.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		in.t.Fatal(err)
	}
	return string(b)
}

func (in *instance) idle() {
	in.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var list struct{ Total int }
		body := in.call("GET", "/tasks?statuses=enqueued,processing&limit=0", "")
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			in.t.Fatalf("%v: %s", err, body)
		}
		if list.Total == 0 {
			return
		}
	}
	in.t.Fatal("tasks do not end")
}

// TestStartAndStop writes, stops, restarts and finds everything.
func TestStartAndStop(t *testing.T) {
	db := filepath.Join(t.TempDir(), "deep", "data")
	in := start(t, db)
	in.call("POST", "/indexes/films/documents", `[{"id": 1, "title": "Metropolis"}]`)
	in.call("PATCH", "/experimental-features", `{"containsFilter": true}`)
	in.idle()

	// No other process may open the directory at the same time.
	p := program{getenv: func(string) (string, bool) { return "", false }, out: io.Discard, err: new(logstest.Buffer)}
	if code := p.run([]string{"--db-path", db, "--http-addr", "127.0.0.1:0"}); code != exitFailure || !strings.Contains(p.err.(*logstest.Buffer).String(), "another svc is running") {
		t.Errorf("a second process: %d %s", code, p.err)
	}
	if err := in.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if !strings.Contains(in.log.String(), "no master key") {
		t.Errorf("no warning that everything is open: %s", in.log)
	}

	in = start(t, db, "--experimental-logs-mode", "json", "--master-key", "")
	if got := in.call("POST", "/indexes/films/search", `{"q": "metropolis"}`); !strings.Contains(got, `"hits":[{"id":1,"title":"Metropolis"}]`) {
		t.Errorf("after a restart: %s", got)
	}
	if got := in.call("GET", "/experimental-features", ""); !strings.Contains(got, `"containsFilter":true`) {
		t.Errorf("after a restart: %s", got)
	}
	for line := range strings.Lines(in.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	if err := in.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}

	// A file that disappears after its directory was listed is not damaged.
	if err := os.Symlink("removed", filepath.Join(db, "indexes", "gone.seg")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p.out = &out
	if code := p.run([]string{"segment", "verify", filepath.Join(db, "gone.seg")}); code != exitFailure {
		t.Errorf("verify of a missing file: %d", code)
	}
	out.Reset()
	if code := p.run([]string{"segment", "verify", db}); code != 0 || !strings.Contains(out.String(), " 0 damaged") || strings.HasPrefix(out.String(), "0 checked") {
		t.Errorf("verify: %d %s %s", code, out.String(), p.err)
	}
}

// TestLaunchedWebhook checks that the webhook of the command line gets a batch, with the secret that the API hides, only if its
// address is allowed.
func TestLaunchedWebhook(t *testing.T) {
	told := make(chan string, 10)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Error(err)
		}
		told <- r.Header.Get("Authorization") + " " + string(b)
	}))
	defer target.Close()
	for _, networks := range []string{"", "127.0.0.0/8"} {
		in := start(t, filepath.Join(t.TempDir(), "data"), "--task-webhook-url", target.URL, "--task-webhook-authorization-header", "Bearer launch-secret-0123456789",
			"--experimental-allowed-ip-networks", networks)
		if got := in.call("GET", "/webhooks", ""); !strings.Contains(got, `"isEditable":false`) || strings.Contains(got, "secret") {
			t.Errorf("shown: %s", got)
		}
		in.call("POST", "/indexes/films/documents", `[{"id": 1}]`)
		in.idle()
		// A stopping server delivers pending batches for some seconds, which may be too short on a busy machine.
		ended := func() bool { return len(told) > 0 || strings.Contains(in.log.String(), "not allowed") }
		for deadline := time.Now().Add(2 * time.Minute); !ended(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("neither delivered nor refused: %s", in.log)
			}
		}
		if err := in.stop(); err != nil {
			t.Fatal(err)
		}
		if networks == "" {
			if len(told) > 0 {
				t.Errorf("not refused: %s", in.log)
			}
			continue
		}
		select {
		case got := <-told:
			if !strings.HasPrefix(got, `Bearer launch-secret-0123456789 {"uid":0,`) || !strings.HasSuffix(got, "}\n") {
				t.Errorf("delivered %s", got)
			}
		default:
			t.Errorf("not delivered: %s", in.log)
		}
	}
}

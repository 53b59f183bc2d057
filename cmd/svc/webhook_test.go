package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/webhook"
)

// hookReceiver records the deliveries that it accepts, by name.
type hookReceiver struct {
	mu    sync.Mutex
	tasks map[string]string // bodies by name
	up    bool
}

func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	z, err := gzip.NewReader(req.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(z)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || !r.up {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.tasks[req.Header.Get(webhook.DeliveryHeader)] = string(body)
}

func (r *hookReceiver) wait(t *testing.T, s *crashServer, n int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r.mu.Lock()
		got := len(r.tasks)
		r.mu.Unlock()
		if got >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d batches were delivered: %s", got, n, s.log)
		}
	}
}

// TestWebhooksGetAllBatches kills the program while the receiver of its webhook is away. After the next start the receiver must
// get all batches.
func TestWebhooksGetAllBatches(t *testing.T) {
	t.Setenv(asProgram, "1")
	r := &hookReceiver{tasks: map[string]string{}, up: true}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: r}
	go server.Serve(l)
	defer server.Close()

	data := filepath.Join(t.TempDir(), "data")
	address := "http://" + l.Addr().String()
	begin := func() *crashServer {
		return startServer(t, os.Args[0], data, "--experimental-allowed-ip-networks", "127.0.0.0/8")
	}
	post := func(s *crashServer, path, body string) {
		t.Helper()
		res, err := http.Post(s.url+path, "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode >= 300 {
			t.Fatalf("%s: %s", path, res.Status)
		}
	}
	add := func(s *crashServer, id int) {
		t.Helper()
		post(s, "/indexes/films/documents", fmt.Sprintf(`[{"id": %d}]`, id))
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			res, err := http.Get(fmt.Sprintf("%s/tasks/%d", s.url, id))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("task %d: %s %v: %s", id, b, err, s.log)
			}
			if bytes.Contains(b, []byte(`"status":"succeeded"`)) {
				return
			}
		}
	}

	s := begin()
	add(s, 0) // before the webhook exists
	post(s, "/webhooks", `{"url": "`+address+`"}`)
	add(s, 1)
	r.wait(t, s, 1)
	r.mu.Lock()
	r.up = false
	r.mu.Unlock()
	add(s, 2)
	add(s, 3)
	s.process.Process.Kill()
	s.process.Wait()
	r.mu.Lock()
	r.up = true
	r.mu.Unlock()
	s = begin()
	r.wait(t, s, 3)
	add(s, 4)
	r.wait(t, s, 4)
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, body := range r.tasks {
		batch, _, _ := strings.Cut(name, "/")
		if !strings.HasPrefix(body, `{"uid":`+batch+`,"batchUid":`+batch+`,`) || !strings.Contains(body, `"status":"succeeded"`) {
			t.Errorf("%s: %s", name, body)
		}
		if batch == "0" {
			t.Error("the webhook gets a batch that ended before it was created")
		}
	}
}

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// failover sends requests to several servers in turn, until one answers.
type failover struct{ hosts []string }

func (f failover) RoundTrip(r *http.Request) (res *http.Response, err error) {
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	r = r.Clone(r.Context())
	if r.Method != http.MethodGet {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	for last := time.Now().Add(30 * time.Second); ; time.Sleep(250 * time.Millisecond) {
		for _, r.URL.Host = range f.hosts {
			r.Host, r.Body = "", io.NopCloser(bytes.NewReader(body))
			res, err = http.DefaultTransport.RoundTrip(r)
			if err == nil && (res.StatusCode < 502 || res.StatusCode > 504) || time.Now().After(last) {
				return res, err
			}
			if err == nil {
				res.Body.Close()
			}
		}
	}
}

// TestFailoverOfClients sends requests as docs/CLIENTS.md shows, while the leader of three voters is killed: none fails, and no write is
// lost or made twice.
func TestFailoverOfClients(t *testing.T) {
	own, err := os.ReadFile("failover_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "CLIENTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```go\n")
	shown, _, _ = strings.Cut(shown, "```")
	if shown == "" || !strings.Contains(string(own), shown) {
		t.Fatalf("docs/CLIENTS.md shows another wrapper:\n%s", shown)
	}
	g := newVoterRun(t, mathrand.Uint64())
	g.all()
	l := newLoad(t, g)
	time.Sleep(100 * time.Millisecond)
	g.voters[g.leader()].kill()
	l.write(loadClients, 0)
	l.end()
}

// load are clients of a group that write and read all the time, as docs/CLIENTS.md shows. None of their requests may fail.
type load struct {
	t       *testing.T
	client  http.Client
	running sync.WaitGroup
	over    atomic.Bool
	tasks   [loadClients + 1]map[uint64]bool // by client; the last one writes when it is told to
}

const loadClients = 3

func newLoad(t *testing.T, g *voterRun) *load {
	var f failover
	for _, m := range g.voters {
		f.hosts = append(f.hosts, strings.TrimPrefix(m.url, "http://"))
	}
	l := &load{t: t, client: http.Client{Transport: f, Timeout: time.Minute}}
	for i := range l.tasks {
		l.tasks[i] = map[uint64]bool{}
		if i == loadClients {
			break
		}
		l.running.Go(func() {
			for n := 0; !l.over.Load() || n < 10; n++ {
				var found struct{ Results []any }
				if !l.write(i, n) || !l.must("GET", "/indexes?limit=1", "", &found) {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return l
}

// write writes a document of a client.
func (l *load) write(client, n int) bool {
	var task struct{ TaskUID uint64 }
	if !l.must("POST", "/indexes/films/documents", fmt.Sprintf(`[{"id": %d}]`, client*1_000_000+n), &task) {
		return false
	}
	l.tasks[client][task.TaskUID] = true
	return true
}

// must sends a request, which may not fail. A read misses no write.
func (l *load) must(method, path, body string, answer any) bool {
	req, err := http.NewRequest(method, "http://anywhere"+path, strings.NewReader(body))
	if err != nil {
		l.t.Error(err)
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+groupKey)
	if method == "GET" {
		req.Header.Set("Svc-Min-Position", "latest")
	}
	res, err := l.client.Do(req)
	if err != nil {
		l.t.Error(err)
		return false
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode < 300 {
		err = json.Unmarshal(b, answer)
	}
	if err != nil || res.StatusCode > 299 {
		l.t.Errorf("%s %s: %d %s %v", method, path, res.StatusCode, b, err)
		return false
	}
	return true
}

// end ends the clients, and compares what they were told with what the group has.
func (l *load) end() {
	l.t.Helper()
	l.over.Store(true)
	l.running.Wait()
	sent := 0
	for _, tasks := range l.tasks {
		sent += len(tasks)
	}
	var list struct{ Total int }
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if l.must("GET", "/tasks?statuses=enqueued,processing&limit=1", "", &list); list.Total == 0 {
			break
		}
	}
	for _, path := range []string{"/tasks?types=documentAdditionOrUpdate&statuses=succeeded&limit=1", "/indexes/films/documents?limit=1"} {
		if l.must("GET", path, "", &list) && list.Total != sent {
			l.t.Errorf("%d writes were acknowledged, and %s has %d", sent, path, list.Total)
		}
	}
	l.t.Logf("%d writes, and as many reads", sent)
}

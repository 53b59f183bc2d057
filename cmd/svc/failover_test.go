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
	for last := time.Now().Add(10 * time.Second); ; time.Sleep(250 * time.Millisecond) {
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
	f := failover{}
	for _, m := range g.voters {
		f.hosts = append(f.hosts, strings.TrimPrefix(m.url, "http://"))
	}
	client := http.Client{Transport: f, Timeout: time.Minute}
	send := func(method, path, body string, answer any) error {
		req, err := http.NewRequest(method, "http://anywhere"+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+groupKey)
		if method == "GET" {
			req.Header.Set("Svc-Min-Position", "latest")
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode > 299 {
			return fmt.Errorf("%s %s: %d %s %v", method, path, res.StatusCode, b, err)
		}
		return json.Unmarshal(b, answer)
	}
	const clients, writes = 3, 20 // at least
	var tasks [clients]map[uint64]bool
	var all sync.WaitGroup
	var over atomic.Bool // the failover is
	for i := range clients {
		tasks[i] = map[uint64]bool{}
		all.Go(func() {
			for n := 0; n < writes || !over.Load(); n++ {
				var task struct{ TaskUID uint64 }
				var found struct{ Results []any }
				err := send("POST", "/indexes/films/documents", fmt.Sprintf(`[{"id": %d}]`, i*100_000+n), &task)
				if err == nil {
					err = send("GET", "/indexes?limit=1", "", &found)
				}
				if err != nil {
					t.Error(err)
					return
				}
				tasks[i][task.TaskUID] = true
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	former := g.leader()
	g.voters[former].kill()
	var task struct{ TaskUID uint64 }
	if err := send("POST", "/indexes/films/documents", `[{"id": 900000}]`, &task); err != nil {
		t.Error(err)
	}
	over.Store(true)
	all.Wait()
	tasks[0][task.TaskUID] = true
	sent := 0
	for i := range clients {
		sent += len(tasks[i])
	}
	var list struct{ Total int }
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err := send("GET", "/tasks?statuses=enqueued,processing&limit=1", "", &list); err != nil {
			t.Fatal(err)
		}
		if list.Total == 0 || time.Now().After(deadline) {
			break
		}
	}
	if err := send("GET", "/tasks?types=documentAdditionOrUpdate&statuses=succeeded&limit=1", "", &list); err != nil || list.Total != sent {
		t.Errorf("%d writes were acknowledged, and there are %d tasks: %v", sent, list.Total, err)
	}
	if err := send("GET", "/indexes/films/documents?limit=1", "", &list); err != nil || list.Total != sent {
		t.Errorf("%d documents were written, and there are %d: %v", sent, list.Total, err)
	}
}

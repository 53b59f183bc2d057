package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// failover sends requests to several servers in turn until one answers. It starts with the one that answered last.
type failover struct {
	hosts     []string
	transport http.RoundTripper
	last      atomic.Int64
}

func newFailover(hosts ...string) *failover {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	return &failover{hosts: hosts, transport: &http.Transport{
		DialContext: dialer.DialContext, ResponseHeaderTimeout: 10 * time.Second, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
	}}
}

func (f *failover) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	key, until := rand.Text(), time.Now().Add(30*time.Second)
	for n, at := 1, f.last.Load(); ; n, at = n+1, at+1 {
		attempt := r.Clone(r.Context())
		attempt.URL.Host, attempt.Host = f.hosts[at%int64(len(f.hosts))], ""
		attempt.Body = io.NopCloser(bytes.NewReader(body))
		if r.Method != http.MethodGet {
			attempt.Header.Set("Idempotency-Key", key)
		}
		res, err := f.transport.RoundTrip(attempt)
		if err == nil && (res.StatusCode < 502 || res.StatusCode > 504) {
			f.last.Store(at)
			return res, nil
		}
		round := n%len(f.hosts) == 0 // all servers were asked
		if r.Context().Err() != nil || round && time.Now().After(until) {
			return res, err
		}
		if err == nil {
			res.Body.Close()
		}
		if round {
			select {
			case <-r.Context().Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	}
}

// TestFailoverOfClients sends requests as docs/CLIENTS.md shows while the leader of three voters is killed: no request may fail, and no
// write may be lost or repeated.
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
		t.Fatalf("docs/CLIENTS.md differs from this wrapper:\n%s", shown)
	}
	g := newVoterRun(t, mathrand.Uint64())
	g.all()
	l := newLoad(t, g)
	time.Sleep(100 * time.Millisecond)
	g.voters[g.leader()].kill()
	l.write(loadClients, 0)
	l.end()
}

// TestFailoverAsksInTurn sends requests to servers some of which do not answer, with a fake clock.
func TestFailoverAsksInTurn(t *testing.T) {
	for name, tt := range map[string]struct {
		silent, busy string        // hosts that do not answer within 20 s, and hosts that answer 503
		cancel       time.Duration // when the caller gives up; 0: never
		want         string        // the hosts that three requests ask
		took         time.Duration // of the first request
		status       int
	}{
		"all answer":            {want: "a a a", status: 200},
		"one is busy":           {busy: "a", want: "ab b b", status: 200},
		"two are silent":        {silent: "ab", want: "abc c c", took: 40 * time.Second, status: 200}, // all are asked although the time is over
		"silent, busy":          {silent: "a", busy: "b", want: "abc c c", took: 20 * time.Second, status: 200},
		"all are busy":          {busy: "abc", took: 30*time.Second + 250*time.Millisecond, status: 503},
		"all are silent":        {silent: "abc", want: "abc abc abc", took: time.Minute},
		"the caller ends":       {silent: "abc", cancel: 5 * time.Second, want: "a a a", took: 5 * time.Second},
		"it ends between tries": {busy: "abc", cancel: 100 * time.Millisecond, want: "abca abca abca", took: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, keys := "", map[string]bool{}
				f := newFailover("a", "b", "c")
				f.transport = roundTripper(func(r *http.Request) (*http.Response, error) {
					host := r.URL.Host
					asked, keys[r.Header.Get("Idempotency-Key")] = asked+host, true
					if b, err := io.ReadAll(r.Body); err != nil || string(b) != "body" {
						t.Errorf("%s reads %q, %v", host, b, err)
					}
					if strings.Contains(tt.silent, host) {
						select {
						case <-time.After(20 * time.Second):
							return nil, errors.New("no answer")
						case <-r.Context().Done():
							return nil, r.Context().Err()
						}
					}
					res := &http.Response{StatusCode: 200, Body: http.NoBody}
					if r.Context().Err() != nil {
						return nil, r.Context().Err()
					}
					if strings.Contains(tt.busy, host) {
						res.StatusCode = 503
					}
					return res, nil
				})
				for n := range 3 {
					ctx, cancel := t.Context(), func() {}
					if tt.cancel > 0 {
						ctx, cancel = context.WithTimeout(ctx, tt.cancel)
					}
					start := time.Now()
					r, err := http.NewRequestWithContext(ctx, "POST", "http://anywhere/indexes", strings.NewReader("body"))
					if err != nil {
						t.Fatal(err)
					}
					status := 0
					if res, err := f.RoundTrip(r); err == nil {
						status = res.StatusCode
					}
					cancel()
					if d := time.Since(start); status != tt.status || n == 0 && d != tt.took {
						t.Errorf("request %d: status %d after %v, want %d after %v", n, status, d, tt.status, tt.took)
					}
					asked += " "
				}
				if tt.want != "" && strings.TrimSpace(asked) != tt.want {
					t.Errorf("asked %s, want %s", asked, tt.want)
				}
				if len(keys) != 3 || keys[""] {
					t.Errorf("three writes have the keys %v", keys)
				}
			})
		})
	}
}

// TestFailoverOfSilentHosts uses a server that accepts connections and never answers: the transport must give up, and the next request
// must go elsewhere.
func TestFailoverOfSilentHosts(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts the connections
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer other.Close()
	f := newFailover(silent.Addr().String(), other.Listener.Addr().String())
	transport := f.transport.(*http.Transport)
	defer transport.CloseIdleConnections()
	if transport.ResponseHeaderTimeout == 0 {
		t.Fatal("the request still waits for the silent server")
	}
	transport.ResponseHeaderTimeout = 100 * time.Millisecond
	client := http.Client{Transport: f}
	for range 2 {
		res, err := client.Post("http://anywhere/indexes", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNoContent || f.last.Load()%2 != 1 {
			t.Errorf("status %d of server %d", res.StatusCode, f.last.Load()%2)
		}
		transport.ResponseHeaderTimeout = time.Minute // the second request must not wait for it
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// load is a set of clients that write and read continuously, as docs/CLIENTS.md shows. None of their requests may fail.
type load struct {
	t       *testing.T
	client  http.Client
	running sync.WaitGroup
	over    atomic.Bool
	tasks   [loadClients + 1]map[uint64]bool // by client; the last one writes on request
}

const loadClients = 3

func newLoad(t *testing.T, g *voterRun) *load {
	var hosts []string
	for _, m := range g.voters {
		hosts = append(hosts, strings.TrimPrefix(m.url, "http://"))
	}
	l := &load{t: t, client: http.Client{Transport: newFailover(hosts...), Timeout: time.Minute}}
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

// must sends a request that must not fail. A read must see all previous writes.
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

// end stops the clients, and compares the acknowledged writes with the group.
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
			l.t.Errorf("%d writes were acknowledged, but %s has %d", sent, path, list.Total)
		}
	}
	l.t.Logf("%d writes, and as many reads", sent)
}

// TestSearchesOutliveTheLeader kills the leader of three voters, and later makes another one lead in order. Clients search the other
// voters directly; none of their searches may fail.
func TestSearchesOutliveTheLeader(t *testing.T) {
	g := newVoterRun(t, mathrand.Uint64())
	g.all()
	g.voters[0].must("POST", "/indexes/films/documents", `[{"id": 1, "title": "a film"}]`, nil)
	search := func(m *member) (found int, err error) {
		var x struct{ Hits []any }
		status, text, err := m.ask("POST", "/indexes/films/search", `{"q": "film"}`, &x)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%s: %d %s", m.name, status, text)
		}
		return len(x.Hits), err
	}
	for _, m := range g.voters {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if found, err := search(m); err == nil && found == 1 {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("%d documents, %v", found, err)
			}
		}
	}
	for _, way := range []string{"killed", "asked to hand over"} {
		was := g.leader()
		var over atomic.Bool
		var searching sync.WaitGroup
		var searches atomic.Int64
		for i, m := range g.voters {
			if i == was {
				continue
			}
			for range 2 {
				searching.Go(func() {
					for !over.Load() && !t.Failed() {
						if found, err := search(m); err != nil || found != 1 {
							t.Errorf("while the leader is %s: %d documents, %v", way, found, err)
						}
						searches.Add(1)
					}
				})
			}
		}
		least := searches.Load() + 10
		if way == "killed" {
			g.voters[was].kill()
		} else {
			g.voters[was].must("POST", "/group/transfer", "{}", nil)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			i := (was + 1) % 3
			if s := g.status(i); s == nil || !s.Voter.Leads {
				i = (was + 2) % 3
			}
			if s := g.status(i); s != nil && s.Voter.Leads {
				if status, _, err := g.voters[i].ask("POST", "/indexes/films/documents", `[{"id": 2, "title": "a word"}]`, nil); err == nil && status == http.StatusAccepted && searches.Load() >= least {
					break // it accepts writes, and searches ran meanwhile
				}
			}
			if time.Now().After(deadline) {
				t.Errorf("no other voter leads, or only %d searches ran", searches.Load()-least+10)
				break
			}
		}
		over.Store(true)
		searching.Wait()
		if t.Failed() {
			t.FailNow()
		}
		if way == "killed" {
			g.voters[was].start()
			g.all()
		}
	}
}

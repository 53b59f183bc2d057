package network

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/outbound"
	"svc/internal/vfs"
)

// wobbly is a remote that tests make fail.
type wobbly struct {
	*httptest.Server
	searches, probes atomic.Int64
	sick             atomic.Bool // answers status 500
	silent           chan struct{}
}

func newWobbly(t *testing.T) *wobbly {
	w := &wobbly{silent: make(chan struct{})}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/health" {
			w.probes.Add(1)
		} else {
			w.searches.Add(1)
		}
		switch {
		case w.sick.Load():
			rw.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/health":
			_, _ = io.WriteString(rw, `{"status":"available"}`)
		case r.Header.Get("Svc-Include-Metadata") != "": // tests set this header to get no answer
			select {
			case <-w.silent:
			case <-r.Context().Done():
			}
		default:
			_, _ = io.WriteString(rw, emptyAnswer)
		}
	}))
	t.Cleanup(w.Close)
	t.Cleanup(func() { close(w.silent) })
	return w
}

// query returns a search for one shard of one remote.
func query(remote, shard string) []RemoteSearch {
	return []RemoteSearch{{Remote: remote, Federation: []byte(`{}`), Queries: []RemoteQuery{{Body: fmt.Appendf(nil, `{"shard":%q}`, shard), Shard: shard}}}}
}

// TestTheOnlyOwnerIsAskedAgain makes the only owner of a shard fail and recover. While it fails, each search reports it and sends it at
// most a probe. The first search after it recovers has its hits.
func TestTheOnlyOwnerIsAskedAgain(t *testing.T) {
	patience := probePatience
	probePatience = time.Minute
	defer func() { probePatience = patience }()
	far := newWobbly(t)
	var now atomic.Int64
	o := Options{Allowed: outbound.Any(), Now: func() time.Time { return time.Unix(0, now.Load()) }}
	n := nodeOf(t, o, far.URL, map[string]*ShardPatch{"x": owners("far")})
	search := func(what string, code apierr.Code, searches, probes int64) {
		t.Helper()
		now.Add(int64(probeStands))
		far.searches.Store(0)
		far.probes.Store(0)
		got := n.Search(context.Background(), query("far", "x"), nil)
		var failed apierr.Code
		if got[0].Err != nil {
			failed = got[0].Err.Code
		}
		if len(got) != 1 || got[0].Remote != "far" || failed != code || far.searches.Load() != searches || far.probes.Load() != probes {
			t.Errorf("%s: %q after %d searches and %d probes, want %q after %d and %d", what, failed, far.searches.Load(), far.probes.Load(), code, searches, probes)
		}
	}
	search("well", "", 1, 0)
	far.sick.Store(true)
	search("the first search that fails", "remote_remote_error", readAttempts, 0)
	search("the second one", "remote_remote_error", 0, 1)
	search("the third one", "remote_remote_error", 0, 1)
	if n.status("far") != "unavailable" {
		t.Error("the failed remote counts as available")
	}
	far.sick.Store(false)
	search("it is back", "", 1, 1)
	search("and stays", "", 1, 0)
	if n.status("far") != "available" {
		t.Error("the remote does not count as available")
	}
}

// TestASilentRemoteIsNotWaitedFor lets a failed remote swallow probes: only one search waits for a probe, and only briefly.
func TestASilentRemoteIsNotWaitedFor(t *testing.T) {
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(far.Close) // closed after the node, whose probe is still waiting
	n := nodeOf(t, Options{Allowed: outbound.Any()}, far.URL, map[string]*ShardPatch{"x": owners("far")})
	n.availability.fail("far", apierr.New("remote_timeout", "It was silent."))
	for range 3 {
		if got := n.Search(context.Background(), query("far", "x"), nil); len(got) != 1 || got[0].Err == nil || got[0].Err.Message != "It was silent." {
			t.Fatalf("got %v", got[0].Err)
		}
	}
	n.availability.mu.Lock()
	defer n.availability.mu.Unlock()
	if o := n.availability.outages["far"]; o == nil || o.probe == nil || o.takes != firstPeriod {
		t.Errorf("the outage is %+v: a search was not sent, or failed", o)
	}
}

// TestASlowRemoteIsTriedByOneSearch lets failed remotes answer probes. All searches then ask a remote that was broken, but only one at a
// time asks a remote that was too slow.
func TestASlowRemoteIsTriedByOneSearch(t *testing.T) {
	now := time.Unix(1000, 0)
	a := availability{now: func() time.Time { return now }, outages: map[string]*outage{}}
	for _, tt := range []struct {
		code  apierr.Code
		admit []bool
	}{
		{"remote_could_not_send_request", []bool{true, true, true}},
		{"remote_timeout", []bool{true, false, false}},
	} {
		a.fail("r", apierr.New(tt.code, "It failed."))
		p, begin := a.probe("r")
		if !begin {
			t.Fatal("a remote that failed is not probed")
		}
		if again, begin := a.probe("r"); begin || again != p {
			t.Error("a second probe started during the first")
		}
		if err := a.admit("r", p, time.Second); err == nil || err.Code != tt.code {
			t.Errorf("%s: a search was sent before the probe was answered: %v", tt.code, err)
		}
		a.probed(p, true)
		for i, want := range tt.admit {
			if err := a.admit("r", p, time.Second); (err == nil) != want {
				t.Errorf("%s, search %d: %v", tt.code, i, err)
			}
		}
		now = now.Add(time.Second)
		if err := a.admit("r", p, time.Second); err != nil {
			t.Errorf("%s, after the trial period: %v", tt.code, err)
		}
		a.fail("r", apierr.New(tt.code, "It failed again."))
		if err := a.admit("r", p, time.Second); err == nil {
			t.Errorf("%s: the result of a probe counts although the remote failed after it began", tt.code)
		}
		a.succeed("r")
	}
	a.fail("r", apierr.New("remote_remote_error", "It failed."))
	p, _ := a.probe("r")
	a.probed(p, false)
	if _, begin := a.probe("r"); begin {
		t.Error("the result of a probe is not kept")
	}
	now = now.Add(probeStands)
	if _, begin := a.probe("r"); !begin {
		t.Error("the result of a probe does not expire")
	}
}

// TestACanceledSearchIsNoFailure cancels searches while a remote is asked, as a request does when its local part fails. The remote must
// not count as failed.
func TestACanceledSearchIsNoFailure(t *testing.T) {
	far := newWobbly(t)
	n := nodeOf(t, Options{Allowed: outbound.Any()}, far.URL, map[string]*ShardPatch{"x": owners("far")})
	asked := query("far", "x")
	asked[0].Asked.Metadata = true // no answer
	ctx, cancel := context.WithCancel(context.Background())
	answers := make(chan *apierr.Error)
	go func() { answers <- n.Search(ctx, asked, nil)[0].Err }()
	for far.searches.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-answers; err == nil {
		t.Error("a canceled search has an answer")
	}
	if n.status("far") != "available" {
		t.Error("the remote counts as failed")
	}
}

// stuckFS holds up the files that are created once stuck is set.
type stuckFS struct {
	vfs.FS
	stuck          atomic.Bool
	reached, leave chan struct{}
}

func (f *stuckFS) Create(name string) (vfs.File, error) {
	if f.stuck.Load() {
		f.reached <- struct{}{}
		<-f.leave
	}
	return f.FS.Create(name)
}

// TestSearchesDoNotWaitForStoredChanges has a change of the stored state wait for the disk. Searches are planned meanwhile, with the
// state before.
func TestSearchesDoNotWaitForStoredChanges(t *testing.T) {
	fs := &stuckFS{FS: vfs.NewMem(), reached: make(chan struct{}), leave: make(chan struct{})}
	n, err := Open(Options{FS: fs, File: "network.json"})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	self := "a"
	err = n.update(func(s *stored) {
		s.Network = &Network{Self: &self, Leader: &self, Remotes: map[string]*Remote{"a": {}, "b": {}, "c": {}}, Shards: map[string]*Shard{"s": {[]string{"b", "c"}}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	lose := func() error { return n.update(func(s *stored) { s.lose("b") }) }
	fs.stuck.Store(true)
	stored := make(chan error)
	go func() { stored <- lose() }()
	<-fs.reached
	planned := make(chan bool)
	go func() {
		parts := n.Parts()
		planned <- len(parts) == 1 && parts[0].Shard == "s" && n.status("b") == "available"
	}()
	select {
	case ok := <-planned:
		if !ok {
			t.Error("the search is not planned with the state before")
		}
	case <-time.After(10 * time.Second):
		t.Error("a search waits for a change of the stored state")
	}
	close(fs.leave)
	if err := <-stored; err != nil || n.status("b") != "unavailable" || n.Parts()[0].Remote != "c" {
		t.Errorf("after the change, b is %s: %v", n.status("b"), err)
	}
}

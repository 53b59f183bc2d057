package network

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/outbound"
	"svc/internal/vfs"
)

// TestFollow has a following member of a group ask the leader of the network whether this instance is complete.
func TestFollow(t *testing.T) {
	t.Parallel()
	var behind, restored atomic.Bool
	var asked atomic.Int64
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Remote   string
			Restored bool
		}
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &q); err != nil || q.Remote != "me" || r.URL.Path != changeMessage.Path {
			t.Errorf("%s: %s: %v", r.URL, b, err)
		}
		asked.Add(1)
		if q.Restored {
			restored.Store(true)
		}
		_, _ = w.Write(encode(ChangeState{Behind: behind.Load()}))
	}))
	defer leader.Close()
	o := Options{FS: vfs.NewMem(), File: "network.json", Allowed: outbound.Any()}
	self, far := "me", "far"
	s := &stored{Restored: true, Network: &Network{Self: &self, Leader: &far, Version: uuid.Must(uuid.NewV7()),
		Remotes: map[string]*Remote{"me": {URL: "http://me.test"}, "far": {URL: leader.URL}}, Shards: map[string]*Shard{"x": {Remotes: []string{"me"}}}}}
	write := func() {
		t.Helper()
		if err := s.write(o.FS, o.File); err != nil {
			t.Fatal(err)
		}
	}
	write()
	n, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	until := func(what string, lags bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); (n.Behind() != nil) != lags; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: is behind: %v", what, n.Behind())
			}
		}
	}
	behind.Store(true)
	n.Follow()
	if n.Behind() == nil {
		t.Error("the instance counts as complete before the leader said so")
	}
	s.Restored = false
	write()
	if err := n.Reload(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); asked.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the leader is not asked")
		}
	}
	if n.Behind() == nil {
		t.Error("the instance counts as complete although the leader says that it is not")
	}
	behind.Store(false)
	until("complete", false)
	s.Restored = true
	write()
	if err := n.Reload(); err != nil {
		t.Fatal(err)
	}
	until("restored from a snapshot", true)
	s.Restored = false
	write()
	if err := n.Reload(); err != nil {
		t.Fatal(err)
	}
	leader.Close() // only the state of this instance is left
	until("without the leader", false)
	if restored.Load() {
		t.Error("the leader was told that the instance was restored")
	}
	n.unfollow()
	if err := n.update(func(s *stored) { s.Restored = true }); err != nil || n.Behind() != nil {
		t.Errorf("the network is still followed: %v, %v", err, n.Behind())
	}
}

// TestALeaderThatIsNoRemote checks that a network is refused whose leader is not one of its remotes, and that an instance which already
// has such a network asks no remote.
func TestALeaderThatIsNoRemote(t *testing.T) {
	t.Parallel()
	self, far := "me", "far"
	n := &Network{Self: &self, Leader: &far, Remotes: map[string]*Remote{"me": {URL: "http://me.test"}}, Shards: map[string]*Shard{"x": {Remotes: []string{"me"}}}}
	if err := n.check(); err == nil || !strings.Contains(err.Error(), `the leader "far" is none of the remotes`) {
		t.Error(err)
	}
	node, err := Open(Options{FS: vfs.NewMem(), File: "network.json", Allowed: outbound.Any()})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	missing := new(apierr.Error)
	if _, err := node.askChange(t.Context(), far, n.Remotes[far], n.Version, false); !errors.As(err, &missing) || missing.Code != "remote_could_not_send_request" {
		t.Error(err)
	}
}

// TestALaterNetwork sends a search to a remote that has a later network than the one followed here.
func TestALaterNetwork(t *testing.T) {
	t.Parallel()
	var version atomic.Value
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if v := version.Load().(string); v != "" {
			w.Header().Set(VersionHeader, v)
		}
		_, _ = w.Write([]byte(emptyAnswer))
	}))
	defer remote.Close()
	n := nodeOf(t, Options{Allowed: outbound.Any()}, remote.URL, map[string]*ShardPatch{"a": owners("far")})
	n.mu.Lock()
	to, me := n.stored.Network.clone(), "me"
	to.Leader = &me
	n.stored = &stored{Network: to}
	n.publish()
	n.mu.Unlock()
	own := n.Network().Version
	for _, tt := range []struct {
		follows bool
		version string
		fails   bool
	}{
		{true, "", false},
		{true, "?", false},
		{true, own.String(), false},
		{true, newVersion(own).String(), true},
		{true, uuid.Nil.String(), false},
		{false, newVersion(own).String(), false},
	} {
		n.follows.Store(tt.follows)
		version.Store(tt.version)
		got := n.Search(context.Background(), []RemoteSearch{{Remote: "far", Federation: []byte(`{}`), Queries: []RemoteQuery{{Body: []byte(`{}`), Shard: "a"}}}}, nil)
		if len(got) != 1 || (got[0].Err != nil) != tt.fails {
			t.Errorf("%v: %+v", tt, got[0].Err)
		}
		if n.status("far") != "available" {
			t.Errorf("%v: the remote is avoided", tt)
		}
	}
	if v := n.AnswersBy(own.String()); v != own.String() {
		t.Errorf("for a known version, the answer names %s", v)
	}
	for _, unknown := range []string{"", "?", uuid.Nil.String(), newVersion(own).String()} {
		if v := n.AnswersBy(unknown); v != own.String() {
			t.Errorf("for version %q, the answer names %s, want %s", unknown, v, own)
		}
	}
}

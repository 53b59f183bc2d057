package network

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/index"
	"svc/internal/outbound"
	"svc/internal/task"
	"svc/internal/vfs"
)

// TestSecretsOfTheNetworkElsewhere reads the network from a remote that hides secrets in URLs.
func TestSecretsOfTheNetworkElsewhere(t *testing.T) {
	var n *Node
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(n.JSON(nil)) }))
	defer remote.Close()
	url := strings.Replace(remote.URL, "://", "://somebody:secret@", 1)
	n = nodeOf(t, Options{Allowed: outbound.Any()}, url, nil)
	if strings.Contains(string(n.JSON(nil)), "secret") {
		t.Fatalf("the network shows a secret: %s", n.JSON(nil))
	}
	got, err := n.networkAt(t.Context(), "far", n.Network().Remotes["far"])
	if err != nil || got.Remotes["far"].URL != url {
		t.Errorf("the network of the remote has the URL %v, want %s: %v", got, url, err)
	}
}

// TestASnapshotOfAnInstanceThatIsRebuilt rebuilds an instance without interruption, and from a snapshot taken during the change, which
// lacks writes that arrived during it.
func TestASnapshotOfAnInstanceThatIsRebuilt(t *testing.T) {
	for name, setBack := range map[string]bool{"without a break": false, "from a snapshot": true} {
		t.Run(name, func(t *testing.T) {
			var says atomic.Bool
			leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var answer any
				if r.URL.Path == "/network/change" {
					var asked struct{ Restored bool }
					_ = json.NewDecoder(r.Body).Decode(&asked)
					if asked.Restored {
						says.Store(true)
					}
					answer = ChangeState{Phase: finished, Committed: true}
				}
				_, _ = w.Write(encode(answer))
			}))
			defer leader.Close()
			fsys, dir := vfs.NewMem(), t.TempDir()
			to, self := shaped("c", "ac", map[string]string{"x": "ac"}), "c"
			to.Self = &self
			for _, r := range to.Remotes {
				r.URL = leader.URL
			}
			before := to.clone()
			before.Version, to.Version = to.Version, newVersion(to.Version)
			a := &announced{Network: to, Previous: before, Rebuilt: []string{"c"}}
			s := &stored{Network: before, Restored: true}
			if setBack {
				s = &stored{Network: to, Change: &change{Before: before, Previous: before, Rebuilt: a.Rebuilt}}
			}
			if err := s.write(fsys, "network.json"); err != nil {
				t.Fatal(err)
			}
			if setBack {
				if err := SetBack(fsys, "network.json"); err != nil {
					t.Fatal(err)
				}
			}
			catalog, err := index.OpenCatalog(filepath.Join(dir, "indexes"), index.Options{FS: vfs.OS, Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer catalog.Close()
			n, err := Open(Options{FS: fsys, File: "network.json", Catalog: catalog, Allowed: outbound.Any()})
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			ended := make(chan task.Status, 1)
			q, err := task.Open(task.Options{FS: vfs.OS, Dir: dir, Catalog: catalog, Now: time.Now, MaxBatchTasks: -1,
				Executors: map[task.Kind]task.Executor{task.NetworkTopologyChange: n.Executor},
				OnBatch:   func(tasks []*task.Task) { ended <- tasks[0].Status }})
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			if _, err := q.Enqueue(t.Context(), task.New{Content: task.ChangeTopology{State: encode(a)}}); err != nil {
				t.Fatal(err)
			}
			if status := <-ended; status != task.Succeeded || n.snapshot().Change != nil {
				t.Fatalf("the change is %s", status)
			}
			if says.Load() != setBack || n.snapshot().Restored != setBack {
				t.Errorf("reports that it was restored: %v, still restored after the change: %v", says.Load(), n.snapshot().Restored)
			}
		})
	}
}

// TestAnOldChange asks for changes whose result the instance has dropped, and for unknown ones.
func TestAnOldChange(t *testing.T) {
	n := nodeOf(t, Options{}, "http://far.test", nil)
	var versions []uuid.UUID
	for range keptOutcomes + 1 {
		v := newVersion(versions...)
		versions = append(versions, v)
		if n.state(v).Canceled {
			t.Fatal("a change that is not known yet counts as canceled")
		}
		if err := n.update(func(s *stored) { s.record(v, true) }); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range versions {
		if st := n.state(v); st.Canceled != (i == 0) || st.Committed != (i > 0) {
			t.Errorf("change %d is %+v", i, st)
		}
	}
	if n.state(uuid.Nil).Canceled || n.state(newVersion(versions...)).Canceled {
		t.Error("no change, or a later one, counts as canceled")
	}
}

// TestTheOnlyOwnerKeepsOlderWrites restores the only owner of a shard to a time before a network change. It lacks writes from before the
// change, which it must still get, and a later change, which is given up.
func TestTheOnlyOwnerKeepsOlderWrites(t *testing.T) {
	l := newLeading(t)
	l.end(l.change(&Patch{Shards: map[string]*ShardPatch{"w": owners("c")}}), task.Succeeded)
	l.c.refuses.Store(true)
	l.c.is(ChangeState{})
	f, stored := l.Forward()
	written := f.Version
	f.Method, f.Path, f.Remotes = "PATCH", "/network", onlyC // whatever c refuses
	if _, err := l.q.Enqueue(t.Context(), task.New{IndexUID: "i", Content: task.CreateIndex{}, Forward: f}); err != nil {
		t.Fatal(err)
	}
	stored()
	uid := l.change(&Patch{Shards: map[string]*ShardPatch{"z": owners("b")}})
	var alone *goingOn
	l.until("c is told to go on", func() bool {
		var err error
		if alone, err = l.lose("c"); err != nil {
			t.Fatal(err)
		}
		return alone != nil
	})
	l.end(uid, task.Failed)
	if now := l.Network().Version; alone.told.String() != written || alone.shown != now || now.String() == written {
		t.Errorf("c goes on with writes of %s and network %s, want %s and %s", alone.told, alone.shown, written, now)
	}
}

// TestGoingOnAlone checks that a restored owner takes over the network of the leader, under the version of the next write
// that it will get.
func TestGoingOnAlone(t *testing.T) {
	older, next := shaped("c", "ac", map[string]string{"x": "c"}), shaped("", "ac", map[string]string{"x": "c", "y": "a"})
	told := newVersion(older.Version)
	next.Version = newVersion(told)
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(encode(next)) }))
	defer leader.Close()
	for what, tt := range map[string]struct {
		st   ChangeState
		goes bool
		want uuid.UUID
	}{
		"with older writes":    {ChangeState{Version: told, Shown: &next.Version}, true, told},
		"without older writes": {ChangeState{Version: next.Version, Shown: &next.Version}, true, next.Version},
		"from an older leader": {ChangeState{Version: next.Version}, true, next.Version},
		"after another change": {ChangeState{Version: told, Shown: &told}, false, older.Version},
	} {
		own := older.clone()
		own.Remotes["a"] = &Remote{URL: leader.URL}
		fsys := vfs.NewMem()
		if err := (&stored{Network: own, Restored: true}).write(fsys, "network.json"); err != nil {
			t.Fatal(err)
		}
		n, err := Open(Options{FS: fsys, File: "network.json", Allowed: outbound.Any()})
		if err != nil {
			t.Fatal(err)
		}
		restored, err := n.goOn(&tt.st)
		if now := n.snapshot(); err != nil || restored == tt.goes || now.Restored == tt.goes || now.Network.Version != tt.want || (now.Network.Shards["y"] != nil) != tt.goes {
			t.Errorf("%s: goes on %v (%v), the network is %s", what, !restored, err, n.JSON(nil))
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSecretsThatOnlyOthersKnow restores a leader to a time before a remote was added whose URL has a password. The others hide it, so
// that it must be given again.
func TestSecretsThatOnlyOthersKnow(t *testing.T) {
	l := newLeading(t)
	d, secret := newPeer(t), "hunter2"
	d.secret.Store(&secret)
	url := strings.Replace(d.server.URL, "://", "://somebody:"+secret+"@", 1)
	since := l.Network().clone()
	since.Remotes["d"] = &Remote{URL: url}
	since.Shards["x"] = &Shard{[]string{"b", "c", "d"}}
	since.Version = newVersion(since.Version)
	for _, p := range []*peer{l.b, l.c, d} {
		p.knows.Store(since)
	}
	if err := l.update(func(s *stored) { s.Restored = true }); err != nil {
		t.Fatal(err)
	}
	for len(l.queue.Load().Lags()) > 0 { // otherwise the missing writes of b or c are the error
		time.Sleep(time.Millisecond)
	}
	if _, err := l.Patch(t.Context(), &Patch{}); err == nil || !strings.Contains(err.Error(), "`d`") {
		t.Errorf("without the password the network is announced: %v", err)
	}
	l.end(l.change(&Patch{Remotes: map[string]*RemotePatch{"d": at(url)}}), task.Succeeded)
	if s := l.snapshot(); s.Restored || s.Network.Remotes["d"].URL != url {
		t.Errorf("with the password: restored %v, d is at %s", s.Restored, s.Network.Remotes["d"].URL)
	}
}

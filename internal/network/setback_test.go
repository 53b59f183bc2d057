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

// TestSecretsOfTheNetworkElsewhere asks a remote for its network, in which it hides what is secret in URLs.
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
		t.Errorf("the remote is at %v by what it says, want %s: %v", got, url, err)
	}
}

// TestASnapshotOfAnInstanceThatIsRebuilt has an instance run the change by which it is rebuilt, without a break, and from a snapshot, after
// which it lacks what it was told within that change.
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
				t.Errorf("it says that it was set back: %v, and is so after the change: %v", says.Load(), n.snapshot().Restored)
			}
		})
	}
}

// TestAChangeOfLongAgo asks for changes of which an instance does not keep the end any more, and for others that it does not know.
func TestAChangeOfLongAgo(t *testing.T) {
	n := nodeOf(t, Options{}, "http://far.test", nil)
	var versions []uuid.UUID
	for range keptOutcomes + 1 {
		v := newVersion(versions...)
		versions = append(versions, v)
		if n.state(v).Canceled {
			t.Fatal("a change that is not known yet is canceled")
		}
		if err := n.update(func(s *stored) { s.record(v, true) }); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range versions {
		if st := n.state(v); st.Canceled != (i == 0) || st.Committed != (i > 0) {
			t.Errorf("of change %d it says %+v", i, st)
		}
	}
	if n.state(uuid.Nil).Canceled || n.state(newVersion(versions...)).Canceled {
		t.Error("no change, or a later one, is canceled")
	}
}

// TestWhoIsAloneGoesOnWithOlderWrites has a remote that alone has a shard be set back to a time before a network of which it lacks writes,
// and lacks a change that came after them, which is given up.
func TestWhoIsAloneGoesOnWithOlderWrites(t *testing.T) {
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
		t.Errorf("c is told to go on in %s as in %s, want %s as in %s", alone.told, alone.shown, written, now)
	}
}

// TestGoingOnAlone takes up the network that the leader has, under the version of what it tells next.
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
		"with older writes":          {ChangeState{Version: told, Shown: &next.Version}, true, told},
		"with nothing older":         {ChangeState{Version: next.Version, Shown: &next.Version}, true, next.Version},
		"as an older leader says it": {ChangeState{Version: next.Version}, true, next.Version},
		"once there is another":      {ChangeState{Version: told, Shown: &told}, false, older.Version},
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

// TestSecretsThatOnlyOthersKnow has a leader be set back to a time before a remote was added whose URL has a password. Others hide that: it
// is to be given again.
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
	for len(l.queue.Load().Lags()) > 0 { // else what b or c lacks is the error
		time.Sleep(time.Millisecond)
	}
	if _, err := l.Patch(t.Context(), &Patch{}); err == nil || !strings.Contains(err.Error(), "`d`") {
		t.Errorf("without the password the network is announced: %v", err)
	}
	l.end(l.change(&Patch{Remotes: map[string]*RemotePatch{"d": at(url)}}), task.Succeeded)
	if s := l.snapshot(); s.Restored || s.Network.Remotes["d"].URL != url {
		t.Errorf("with the password, it still lacks something: %v, and d is at %s", s.Restored, s.Network.Remotes["d"].URL)
	}
}

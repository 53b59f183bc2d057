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
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(n.JSON()) }))
	defer remote.Close()
	url := strings.Replace(remote.URL, "://", "://somebody:secret@", 1)
	n = nodeOf(t, Options{Allowed: outbound.Any()}, url, nil)
	if strings.Contains(string(n.JSON()), "secret") {
		t.Fatalf("the network shows a secret: %s", n.JSON())
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

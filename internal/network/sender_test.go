package network

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"svc/internal/index"
	"svc/internal/outbound"
	"svc/internal/task"
	"svc/internal/vfs"
)

// TestAChangeReachesTheRemoteItAdds has the sender look up the address of a new remote after the task is queued and before the network
// that contains the remote is stored.
func TestAChangeReachesTheRemoteItAdds(t *testing.T) {
	announced := make(chan string, 1)
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "PATCH" {
			announced <- r.URL.Path
		}
		_, _ = io.WriteString(w, map[string]string{
			"/experimental-features": `{"network":true}`,
			"/tasks":                 `{"results":[]}`,
			"/network/change":        `{"phase":"waiting"}`,
			"/network":               `{"taskUid":7}`,
		}[r.URL.Path])
	}))
	defer remote.Close()
	dir := t.TempDir()
	catalog, err := index.OpenCatalog(filepath.Join(dir, "indexes"), index.Options{FS: vfs.OS, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer catalog.Close()
	n, err := Open(Options{FS: vfs.NewMem(), File: "network.json", Catalog: catalog, Allowed: outbound.Any()})
	if err != nil {
		t.Fatal(err)
	}
	var q *task.Queue
	q, err = task.Open(task.Options{FS: vfs.OS, Dir: dir, Catalog: catalog, Now: time.Now, OnForward: func() {
		n.Forwarded()
		for range 100 { // the change is not stored before this returns
			if len(q.Lags()) == 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	n.Start(q)
	defer n.Close()
	defer q.Close()
	p := &Patch{Self: given("a"), Leader: given("a"), Remotes: map[string]*RemotePatch{"a": at(remote.URL), "b": at(remote.URL)},
		Shards: map[string]*ShardPatch{"x": owners("a", "b")}}
	if err := patch(n, p); err != nil {
		t.Fatal(err)
	}
	select {
	case path := <-announced:
		if path != "/network" {
			t.Errorf("the remote was sent %s", path)
		}
	case <-time.After(2 * time.Minute):
		t.Errorf("the remote got no announcement")
	}
}

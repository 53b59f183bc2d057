package fastapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/index"
	"svc/internal/network"
	"svc/internal/outbound"
	"svc/internal/socket/sockettest"
	"svc/internal/task"
	"svc/internal/vfs"
)

// host is an instance of a network in this process, whose address and directory outlive it.
type host struct {
	*client
	name, address, dir string
	stop               func() // nil: stopped
}

// newHosts starts a network of three hosts a, b and c. a leads and has no shard.
func newHosts(t *testing.T, shards string) []*host {
	var all []*host
	var remotes []string
	for _, name := range []string{"a", "b", "c"} {
		h := &host{client: &client{t: t}, name: name, address: sockettest.Host() + ":0", dir: t.TempDir()}
		t.Cleanup(func() {
			if h.stop != nil {
				h.stop()
			}
		})
		h.start()
		all = append(all, h)
		remotes = append(remotes, fmt.Sprintf(`%q:{"url":"http://%s"}`, name, h.address))
	}
	all[0].wait(all[0].json("PATCH", "/network", `{"self":"a","leader":"a","remotes":{`+strings.Join(remotes, ",")+`},"shards":`+shards+`}`))
	return all
}

func (h *host) start() {
	h.t.Helper()
	var closers []func() error
	must := func(err error) {
		if err != nil {
			h.t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	catalog, err := index.OpenCatalog(filepath.Join(h.dir, "indexes"), index.Options{FS: vfs.OS, Logger: log, Now: time.Now, MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 1})
	must(err)
	node, err := network.Open(network.Options{FS: vfs.OS, File: filepath.Join(h.dir, "network.json"), Work: h.dir, Catalog: catalog, Allowed: outbound.Any()})
	must(err)
	queue, err := task.Open(task.Options{
		Dir: filepath.Join(h.dir, "tasks"), Catalog: catalog, Logger: log, Now: time.Now, MaxBatchTasks: -1, MaxBatchBytes: -1,
		OnBatch: node.Ended, OnForward: node.Forwarded, Owned: node.Owned,
		Executors: map[task.Kind]task.Executor{task.NetworkTopologyChange: node.Executor},
	})
	must(err)
	node.Start(queue)
	features, err := OpenFeatures(vfs.NewMem(), "features.json", "network")
	must(err)
	o := Options{Catalog: catalog, Queue: queue, Network: node, Features: features, Logger: log}
	complete(h.t, &o)
	s := New(o)
	var l net.Listener
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); { // the port may not be free yet
		if l, err = net.Listen("tcp", h.address); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	must(err)
	h.address = l.Addr().String()
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	h.server, h.http = s, http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("tcp", h.address) }}}
	closers = append(closers, func() error { return s.Shutdown(context.Background()) }, func() error { return <-served }, node.Close, queue.Close, catalog.Close)
	h.stop = func() {
		h.stop = nil
		h.http.CloseIdleConnections()
		for _, c := range closers {
			if err := c(); err != nil {
				h.t.Errorf("%s: %v", h.name, err)
			}
		}
		checkIdle(h.t, s.slots)
	}
}

// found is the answer to a search of the network.
type found struct {
	Hits         []struct{ ID int }
	RemoteErrors map[string]struct{ Code, Message string }
}

// failed returns the remotes that an answer names as failed.
func (f *found) failed() string {
	var names []string
	for name := range f.RemoteErrors {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

const awayDocuments = 60

// ask sends each kind of search that uses the network.
func (h *host) ask() map[string]*found {
	h.t.Helper()
	decoded := func(r reply, into any) {
		h.t.Helper()
		if err := json.Unmarshal([]byte(r.body), into); err != nil || r.status != 200 {
			h.t.Fatalf("%d %s", r.status, r.body)
		}
	}
	var plain, federated found
	var several struct{ Results []*found }
	decoded(h.json("POST", "/indexes/i/search", `{"q":"red","limit":1000}`), &plain)
	decoded(h.json("POST", "/multi-search", `{"queries":[{"indexUid":"i","q":"red","limit":1000}]}`), &several)
	decoded(h.json("POST", "/multi-search", `{"federation":{"limit":1000},"queries":[{"indexUid":"i","q":"red"}]}`), &federated)
	return map[string]*found{"search": &plain, "multi-search": several.Results[0], "federated search": &federated}
}

// finds sends searches of all kinds a few times: each must find all documents, or name the failed remotes.
func (h *host) finds(what, failed string) {
	h.t.Helper()
	for range 3 {
		for kind, f := range h.ask() {
			if whole := len(f.Hits) == awayDocuments; whole != (failed == "") || f.failed() != failed {
				h.t.Errorf("%s: a %s at %s finds %d of %d documents and names %q, want %q", what, kind, h.name, len(f.Hits), awayDocuments, f.failed(), failed)
			}
		}
	}
}

// recovers waits until hosts report that they are complete, and searches at this one: within a few searches the answers must be complete,
// and until then name the missing remotes.
func (h *host) recovers(what string, back ...*host) {
	h.t.Helper()
	for _, b := range back {
		for b.server.network.Behind() != nil {
			time.Sleep(time.Millisecond)
		}
	}
	// A failed probe counts for a moment, and on a busy machine a probe may take longer than a search waits.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		whole := true
		for kind, f := range h.ask() {
			if len(f.Hits) < awayDocuments && f.failed() == "" {
				h.t.Errorf("%s: a %s finds %d of %d documents and names no remote", what, kind, len(f.Hits), awayDocuments)
			}
			whole = whole && len(f.Hits) == awayDocuments && f.failed() == ""
		}
		if whole {
			return
		}
	}
	h.t.Errorf("%s: searches still miss documents", what)
}

// filled adds documents to the network, and waits until all hosts have theirs.
func filled(all []*host) {
	var docs []string
	for id := range awayDocuments {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"t":"red","n":%d}`, id, id))
	}
	all[0].wait(all[0].json("POST", "/indexes/i/documents", "["+strings.Join(docs, ",")+"]"))
	for _, h := range all {
		for h.json("GET", "/indexes/i", "").status != 200 { // it gets the index in a message
			time.Sleep(time.Millisecond)
		}
		for {
			if f := h.ask()["search"]; len(f.Hits) == awayDocuments && f.failed() == "" {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// TestAHostIsAwayForAMoment stops and restarts the only owner of a shard.
func TestAHostIsAwayForAMoment(t *testing.T) {
	all := newHosts(t, `{"x":{"remotes":["b"]},"y":{"remotes":["c"]}}`)
	a, b, c := all[0], all[1], all[2]
	filled(all)
	a.finds("all well", "")
	b.stop()
	a.finds("b is away", "b")
	c.finds("b is away", "b")
	b.start()
	a.recovers("b is back", b)
	c.recovers("b is back", b)
}

// TestAllOwnersOfAShardRestart stops and restarts both owners of all shards.
func TestAllOwnersOfAShardRestart(t *testing.T) {
	all := newHosts(t, `{"x":{"remotes":["b","c"]},"y":{"remotes":["b","c"]}}`)
	a, b, c := all[0], all[1], all[2]
	filled(all)
	b.stop()
	a.finds("b is away", "")
	c.stop()
	a.finds("both are away", "b c")
	b.start()
	c.start()
	a.recovers("both are back", b, c)
}

// TestAnInvalidSearchIsNoFailureOfRemotes sends searches that fail here at once while remotes are asked: later searches must still ask
// these remotes.
func TestAnInvalidSearchIsNoFailureOfRemotes(t *testing.T) {
	all := newHosts(t, `{"x":{"remotes":["b"]},"y":{"remotes":["c"]}}`)
	b := all[1]
	filled(all)
	for range 20 {
		if r := b.json("POST", "/indexes/i/search", `{"q":"red","sort":["n:asc"]}`); r.status != 400 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		b.finds("after a bad search", "")
	}
	if network := b.get("/network").body; strings.Contains(network, "unavailable") {
		t.Errorf("the network is %s", network)
	}
}

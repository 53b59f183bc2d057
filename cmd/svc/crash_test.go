package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svc/internal/logs/logstest"
)

var rounds = flag.Int("rounds", 3, "how often TestKilledServerKeepsItsPromises kills the server")

// TestKilledServerKeepsItsPromises writes from several clients, kills the server with SIGKILL at random moments, restarts it on the same
// directory, and compares with what was acknowledged. Every acknowledged task must finish, every document must be at least as new as its
// last acknowledged write and have the vector of that write, and every segment must verify. In the end servers that are also killed import
// a dump and a snapshot, which must have the same content.
func TestKilledServerKeepsItsPromises(t *testing.T) {
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d rounds", seed, *rounds)
	random := rand.New(rand.NewPCG(seed, 0))

	binary := filepath.Join(dir, "svc")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	data := filepath.Join(dir, "data")

	clients := make([]*crashClient, 4)
	for i := range clients {
		clients[i] = &crashClient{number: i, random: rand.New(rand.NewPCG(seed, uint64(i+1))), docs: map[int]*promise{}}
	}
	out := []string{"--dump-dir", filepath.Join(dir, "dumps"), "--snapshot-dir", filepath.Join(dir, "snapshots")}
	server := startServer(t, binary, data, out...)
	server.run(t, http.MethodPatch, "/indexes/crash/settings", `{"embedders":{"m":{"source":"userProvided","dimensions":4}}}`)
	server.kill()
	for round := range *rounds {
		server := startServer(t, binary, data, out...)
		for _, c := range clients {
			c.check(t, server.url)
		}
		if t.Failed() {
			t.Fatalf("round %d; server's log:\n%s", round, server.log.String())
		}
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for _, c := range clients {
			writers.Go(func() { c.write(server.url, stop) })
		}
		time.Sleep(time.Duration(random.IntN(400)+5) * time.Millisecond)
		server.kill()
		close(stop)
		writers.Wait()
	}

	server = startServer(t, binary, data, out...)
	for _, c := range clients {
		c.check(t, server.url)
	}
	want := server.documents(t)
	server.run(t, http.MethodPost, "/snapshots", "")
	server.run(t, http.MethodPost, "/dumps", "")
	server.stop(t)
	if out, err := exec.Command(binary, "segment", "verify", data).CombinedOutput(); err != nil {
		t.Errorf("the data directory does not verify: %v\n%s", err, out)
	}

	dumps, err := filepath.Glob(filepath.Join(dir, "dumps", "*.dump"))
	if err != nil || len(dumps) == 0 {
		t.Fatalf("there are no dumps: %v", err)
	}
	// An interrupted import starts over, and a complete one is not repeated.
	for kind, file := range map[string]string{"dump": dumps[len(dumps)-1], "snapshot": filepath.Join(dir, "snapshots", "data.snapshot")} {
		data := filepath.Join(dir, "of-"+kind)
		for range min(*rounds, 20) {
			s := launch(t, binary, data, "--import-"+kind, file, "--ignore-"+kind+"-if-db-exists")
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			s.kill()
		}
		s := startServer(t, binary, data, "--import-"+kind, file, "--ignore-"+kind+"-if-db-exists")
		if got := s.documents(t); got != want {
			t.Errorf("the documents of the %s differ: %d bytes, want %d", kind, len(got), len(want))
		}
		s.stop(t)
		if out, err := exec.Command(binary, "segment", "verify", data).CombinedOutput(); err != nil {
			t.Errorf("the import of the %s does not verify: %v\n%s", kind, err, out)
		}
	}
	// All dumps that a round left are complete.
	for _, i := range random.Perm(len(dumps))[:min(len(dumps), 3)] {
		s := startServer(t, binary, filepath.Join(dir, fmt.Sprint("dump-", i)), "--import-dump", dumps[i])
		s.documents(t)
		s.stop(t)
	}
}

type crashServer struct {
	process *exec.Cmd
	url     string
	log     *logstest.Buffer
}

// kill ends the server as a crash would.
func (s *crashServer) kill() {
	s.process.Process.Signal(syscall.SIGKILL)
	s.process.Wait()
}

func (s *crashServer) stop(t *testing.T) {
	t.Helper()
	s.process.Process.Signal(syscall.SIGTERM)
	if err := s.process.Wait(); err != nil {
		t.Errorf("the server stops with %v:\n%s", err, s.log.String())
	}
}

// run sends a request for a task and waits until the task has succeeded.
func (s *crashServer) run(t *testing.T, method, path, body string) {
	t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var summary struct {
		TaskUID int `json:"taskUid"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&summary); err != nil || resp.StatusCode != http.StatusAccepted {
		t.Fatalf("%s %s: status %d, %v", method, path, resp.StatusCode, err)
	}
	(&crashClient{tasks: []int{summary.TaskUID}}).check(t, s.url)
}

// documents returns all documents with their vectors, and checks that each vector belongs to the version of its document.
func (s *crashServer) documents(t *testing.T) string {
	t.Helper()
	var list struct {
		Results []json.RawMessage `json:"results"`
	}
	if status := get(t, s.url+"/indexes/crash/documents?limit=100000&retrieveVectors=true", &list); status != http.StatusOK {
		t.Fatalf("documents: status %d\n%s", status, s.log.String())
	}
	lines := make([]string, len(list.Results))
	for i, raw := range list.Results {
		var doc crashDocument
		if err := json.Unmarshal(raw, &doc); err != nil || !doc.sound() {
			t.Errorf("%v: document %s does not have the vector of its version", err, raw)
		}
		lines[i] = string(raw)
	}
	slices.Sort(lines) // imported documents may have another order
	return strings.Join(lines, "\n")
}

// crashDocument is the part of a document that the test reads.
type crashDocument struct {
	ID      int `json:"id"`
	Version int `json:"version"`
	Vectors map[string]struct {
		Embeddings [][]float32 `json:"embeddings"`
	} `json:"_vectors"`
}

// vectorOf returns the vector of a version of a document, or nil: some have none.
func vectorOf(id, version int) []float32 {
	if (id+version)%7 == 0 {
		return nil
	}
	return []float32{float32(version), float32(id), 0.1, -float32(version % 13)}
}

func (d *crashDocument) sound() bool {
	want, got := vectorOf(d.ID, d.Version), d.Vectors["m"].Embeddings
	if want == nil {
		return len(got) == 0
	}
	return len(got) == 1 && slices.Equal(got[0], want)
}

func startServer(t *testing.T, binary, data string, more ...string) *crashServer {
	t.Helper()
	s := launch(t, binary, data, more...)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if resp, err := http.Get(s.url + "/health"); err == nil {
			resp.Body.Close()
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not answer after a crash:\n%s", s.log.String())
		}
	}
}

// launch starts a server without waiting for it.
func launch(t *testing.T, binary, data string, more ...string) *crashServer {
	t.Helper()
	address := freeAddress()
	s := &crashServer{url: "http://" + address, log: &logstest.Buffer{}}
	s.process = exec.Command(binary, append([]string{"--db-path", data, "--http-addr", address, "--log-level", "WARN"}, more...)...)
	s.process.Dir = filepath.Dir(data) // imported tasks write dumps and snapshots beside it
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.process.Process.Kill() })
	return s
}

// promise is what a client knows of one document: the newest acknowledged write and the newest sent one. Version 0 means
// deleted or absent.
type promise struct {
	acknowledged, sent int
	deletes            map[int]bool // versions that are deletions
}

// crashClient writes documents with its own ids, and remembers them.
type crashClient struct {
	number  int
	random  *rand.Rand
	version int
	docs    map[int]*promise
	tasks   []int
}

// write sends random writes until the server dies or stop closes.
func (c *crashClient) write(url string, stop chan struct{}) {
	client := &http.Client{Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-stop:
			return
		default:
		}
		c.version++
		method, path := http.MethodPost, "/indexes/crash/documents?primaryKey=id"
		var body any
		var ids []int
		deletion := false
		switch n := c.random.IntN(40); {
		case n < 5:
			for range c.random.IntN(20) + 1 {
				ids = append(ids, c.random.IntN(500)*10+c.number)
			}
			path, deletion, body = "/indexes/crash/documents/delete-batch", true, ids
		case n == 5:
			path, body = "/dumps", nil
		case n == 6:
			path, body = "/snapshots", nil
		case n == 7:
			path, body = "/indexes/crash/compact", nil
		case n < 12:
			path, body = "/indexes/crash/settings", map[string]any{"sortableAttributes": [][]string{{"version"}, {"text"}, {"text", "version"}, {"f1", "id"}}[c.random.IntN(4)]}
			method = http.MethodPatch
		default:
			if c.random.IntN(2) == 0 {
				method = http.MethodPut
			}
			n := c.random.IntN(30) + 1
			if c.random.IntN(10) == 0 {
				n = 500
			}
			var docs []map[string]any
			for range n {
				id := c.random.IntN(500)*10 + c.number
				ids = append(ids, id)
				docs = append(docs, map[string]any{
					"id": id, "version": c.version, "text": fmt.Sprintf("words of version %d by client %d", c.version, c.number),
					"_vectors": map[string]any{"m": vectorOf(id, c.version)},
				})
			}
			body = docs
		}
		for _, id := range ids {
			p := c.docs[id]
			if p == nil {
				p = &promise{deletes: map[int]bool{0: true}}
				c.docs[id] = p
			}
			p.sent = c.version
			p.deletes[c.version] = deletion
		}
		var raw []byte
		if body != nil {
			var err error
			if raw, err = json.Marshal(body); err != nil {
				panic(err)
			}
		}
		req, err := http.NewRequest(method, url+path, bytes.NewReader(raw))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return
		}
		var summary struct {
			TaskUID *int `json:"taskUid"`
		}
		err = json.NewDecoder(resp.Body).Decode(&summary)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusAccepted || summary.TaskUID == nil {
			return
		}
		c.tasks = append(c.tasks, *summary.TaskUID)
		for _, id := range ids {
			c.docs[id].acknowledged = c.version
		}
	}
}

// check waits for every acknowledged task and for those whose acknowledgement was lost, and compares the documents.
func (c *crashClient) check(t *testing.T, url string) {
	t.Helper()
	for _, uid := range c.tasks {
		for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
			var task struct {
				Status string          `json:"status"`
				Error  json.RawMessage `json:"error"`
				Type   string          `json:"type"`
			}
			status := get(t, fmt.Sprintf("%s/tasks/%d", url, uid), &task)
			if status != http.StatusOK {
				t.Errorf("acknowledged task %d is lost: status %d", uid, status)
				break
			}
			if task.Status == "succeeded" {
				break
			}
			// Before the first addition has created the index, a deletion fails as it should.
			if task.Status == "failed" && task.Type == "documentDeletion" && bytes.Contains(task.Error, []byte("index_not_found")) {
				break
			}
			if task.Status == "failed" || task.Status == "canceled" || time.Now().After(deadline) {
				t.Errorf("acknowledged task %d (%s) is %s: %s", uid, task.Type, task.Status, task.Error)
				break
			}
		}
	}
	c.tasks = nil
	// A task may be durable although its acknowledgement did not reach the client.
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		var waiting struct {
			Total int `json:"total"`
		}
		get(t, url+"/tasks?statuses=enqueued,processing&limit=0", &waiting)
		if waiting.Total == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d tasks are not finished", waiting.Total)
			break
		}
	}
	for id, p := range c.docs {
		var doc crashDocument
		status := get(t, fmt.Sprintf("%s/indexes/crash/documents/%d?retrieveVectors=true", url, id), &doc)
		found := status == http.StatusOK
		if found && !doc.sound() {
			t.Errorf("document %d has the vectors %v, want that of version %d", id, doc.Vectors, doc.Version)
		}
		// Any version from the last acknowledged write to the last one sent is right.
		ok := false
		for v := p.acknowledged; v <= p.sent; v++ {
			if deletion, known := p.deletes[v]; known && (deletion && !found || !deletion && found && doc.Version == v) {
				ok = true
				// The version that the crash left is the known one from here on.
				p.acknowledged, p.sent = v, v
				break
			}
		}
		if !ok {
			t.Errorf("document %d: status %d, version %d; acknowledged %d (deletion: %v), sent %d", id, status, doc.Version, p.acknowledged, p.deletes[p.acknowledged], p.sent)
		}
	}
}

func get(t *testing.T, url string, into any) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatalf("%s: %v in %s", url, err, body)
		}
	}
	return resp.StatusCode
}

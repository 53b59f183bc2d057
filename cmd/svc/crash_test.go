package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

var rounds = flag.Int("rounds", 3, "how often TestKilledServerKeepsItsPromises kills the server")

// TestKilledServerKeepsItsPromises writes from several clients, kills the
// server with SIGKILL at a random moment, starts it again on the same
// directory, and compares with what had been acknowledged: every such task
// finishes, every document is at least as new as its last acknowledged write,
// and every segment verifies.
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
	for round := range *rounds {
		server := startServer(t, binary, data)
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
		server.process.Process.Signal(syscall.SIGKILL)
		close(stop)
		server.process.Wait()
		writers.Wait()
	}

	server := startServer(t, binary, data)
	for _, c := range clients {
		c.check(t, server.url)
	}
	server.process.Process.Signal(syscall.SIGTERM)
	if err := server.process.Wait(); err != nil {
		t.Errorf("the server stops with %v:\n%s", err, server.log.String())
	}
	if out, err := exec.Command(binary, "segment", "verify", data).CombinedOutput(); err != nil {
		t.Errorf("the data directory does not verify: %v\n%s", err, out)
	}
}

type crashServer struct {
	process *exec.Cmd
	url     string
	log     *bytes.Buffer
}

func startServer(t *testing.T, binary, data string) *crashServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	s := &crashServer{url: "http://" + address, log: &bytes.Buffer{}}
	s.process = exec.Command(binary, "--db-path", data, "--http-addr", address, "--log-level", "WARN")
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.process.Process.Kill() })
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if resp, err := http.Get(s.url + "/health"); err == nil {
			resp.Body.Close()
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not answer after a crash:\n%s", s.log.String())
		}
	}
}

// promise is what a client knows of one document: the newest write that was
// acknowledged, and the newest that was sent. Version 0 is deletion or absence.
type promise struct {
	acknowledged, sent int
	deletes            map[int]bool // which versions are deletions
}

// crashClient writes documents of its own ids, and remembers.
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
		switch c.random.IntN(8) {
		case 0:
			for range c.random.IntN(20) + 1 {
				ids = append(ids, c.random.IntN(500)*10+c.number)
			}
			path, deletion, body = "/indexes/crash/documents/delete-batch", true, ids
		case 1:
			path, body = "/indexes/crash/settings", map[string]any{"sortableAttributes": []string{"version", fmt.Sprintf("f%d", c.random.IntN(3))}}
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
				docs = append(docs, map[string]any{"id": id, "version": c.version, "text": fmt.Sprintf("words of version %d by client %d", c.version, c.number)})
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
		raw, err := json.Marshal(body)
		if err != nil {
			panic(err)
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

// check waits for every acknowledged task, and for those that the crash kept
// from being acknowledged, and compares the documents.
func (c *crashClient) check(t *testing.T, url string) {
	t.Helper()
	for _, uid := range c.tasks {
		for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(2 * time.Millisecond) {
			var task struct {
				Status string          `json:"status"`
				Error  json.RawMessage `json:"error"`
				Type   string          `json:"type"`
			}
			status := get(t, fmt.Sprintf("%s/tasks/%d", url, uid), &task)
			if status != http.StatusOK {
				t.Errorf("acknowledged task %d is gone: status %d", uid, status)
				break
			}
			if task.Status == "succeeded" {
				break
			}
			// Before the first addition has made the index, a deletion fails, and rightly.
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
	// A task may have become durable without its acknowledgement reaching the client.
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(2 * time.Millisecond) {
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
		var doc struct {
			Version int `json:"version"`
		}
		status := get(t, fmt.Sprintf("%s/indexes/crash/documents/%d", url, id), &doc)
		found := status == http.StatusOK
		// Anything from the last acknowledged write up to the last one sent may stand.
		ok := false
		for v := p.acknowledged; v <= p.sent; v++ {
			if deletion, known := p.deletes[v]; known && (deletion && !found || !deletion && found && doc.Version == v) {
				ok = true
				// What the crash decided is the truth from here on.
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

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
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

// supervised is how long container supervisors wait between SIGTERM and the kill. A longer stop is logged; it fails only above what a
// loaded machine needs.
const (
	supervised = 10 * time.Second
	patience   = 9 * supervised
)

// stopping is a server that is busy when it is stopped.
type stopping struct {
	t       *testing.T
	process *exec.Cmd
	address string
	log     logstest.Buffer
	filled  bool // has documents
}

// TestStopsDuringAnyWork sends SIGTERM during each kind of work, and during several at once.
func TestStopsDuringAnyWork(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(hanging.CloseClientConnections)
	// A remote that can join a network, but does not answer writes.
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]string{"/experimental-features": `{"network":true}`, "/tasks": `{"results":[]}`, "/network/change": `{"phase":"waiting"}`}[r.URL.Path]
		if answer == "" {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}
		io.WriteString(w, answer)
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(silent.CloseClientConnections)
	kinds := map[string]func(s *stopping){
		"searches": func(s *stopping) {
			s.fill(4000)
			query := `{"queries":[` + strings.TrimSuffix(strings.Repeat(`{"indexUid":"films","q":"ka mi to re","limit":1000,"attributesToHighlight":["*"]},`, 500), ",") + `]}`
			s.beside(16, func() { s.try("POST", "/multi-search", "application/json", query) })
		},
		"calls of tools": func(s *stopping) {
			s.call("PATCH", "/experimental-features", "application/json", `{"mcp":true}`)
			s.fill(4000)
			call := func(id int) string {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search","arguments":{"indexUid":"films","q":"ka mi to re","limit":1000}}}`, id)
			}
			if answer := s.call("POST", "/mcp", "application/json", call(0)); !bytes.Contains(answer, []byte("estimatedTotalHits")) {
				s.t.Errorf("a tool answers with %.300s", answer)
			}
			calls := "["
			for id := range 500 {
				calls += call(id+1) + ","
			}
			calls = strings.TrimSuffix(calls, ",") + "]"
			s.beside(16, func() {
				// A client must repeat a request that arrived incompletely before the stop.
				ends := []int{0, http.StatusOK, http.StatusRequestTimeout, http.StatusServiceUnavailable}
				if status, answer := s.try("POST", "/mcp", "application/json", calls); !slices.Contains(ends, status) {
					s.t.Errorf("many calls at once: %d %.300s", status, answer)
				}
			})
		},
		"half-sent bodies": func(s *stopping) {
			s.beside(200, func() { s.half("/indexes/films/search", 900_000, 800_000) })
			s.beside(8, func() { s.half("/indexes/films/documents", 50<<20, 10<<20) })
		},
		"an import": func(s *stopping) {
			for range 4 {
				s.call("POST", "/indexes/films/documents", "application/x-ndjson", documents(0, 60_000))
			}
		},
		"an endless function": func(s *stopping) {
			s.call("PATCH", "/experimental-features", "application/json", `{"editDocumentsByFunction":true}`)
			s.fill(4000)
			s.call("POST", "/indexes/films/documents/edit", "application/json", `{"function":"let n = 0; while n < 2000000 { n += 1; } doc.n = n;"}`)
		},
		"a compaction, a dump and a snapshot": func(s *stopping) {
			for i := range 20 {
				s.call("POST", "/indexes/films/documents", "application/x-ndjson", documents(i*4000, 4000))
			}
			s.settle()
			s.call("POST", "/indexes/films/compact", "", "")
			s.call("POST", "/snapshots", "", "")
			s.call("POST", "/dumps", "", "")
		},
		"a provider that hangs": func(s *stopping) {
			s.call("PATCH", "/indexes/films/settings", "application/json",
				`{"embedders":{"e":{"source":"rest","url":"`+hanging.URL+`","request":{"input":"{{text}}"},"response":{"data":"{{embedding}}"},"dimensions":4}}}`)
			s.call("POST", "/indexes/films/documents", "application/x-ndjson", documents(0, 500))
			s.beside(4, func() {
				s.try("POST", "/indexes/films/search", "application/json", `{"q":"ka","hybrid":{"embedder":"e","semanticRatio":1}}`)
			})
		},
		"a chat": func(s *stopping) {
			s.call("PATCH", "/experimental-features", "application/json", `{"chatCompletions":true}`)
			s.call("PATCH", "/chats/w/settings", "application/json", `{"source":"vLlm","baseUrl":"`+hanging.URL+`","apiKey":"k"}`)
			s.beside(4, func() {
				s.try("POST", "/chats/w/chat/completions", "application/json", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`)
			})
		},
		"streams": func(s *stopping) {
			s.call("PATCH", "/experimental-features", "application/json", `{"logsRoute":true,"tasksStreamingRoute":true}`)
			for _, path := range []string{"/tasks/stream", "/batches/stream"} {
				s.beside(4, func() { s.stream("GET", path, "") })
			}
			s.beside(1, func() { s.stream("POST", "/logs/stream", `{"target":"info"}`) })
		},
		"an outbox for a silent remote": func(s *stopping) {
			s.call("PATCH", "/experimental-features", "application/json", `{"network":true}`)
			s.beside(1, func() {
				network := `{"self":"a","leader":"a","remotes":{"a":{"url":"http://` + s.address + `"},"b":{"url":"` + silent.URL + `"}},"shards":{"x":{"remotes":["a","b"]}}}`
				for range 100 { // refused if a remote takes long to confirm that it can join
					if status, _ := s.try("PATCH", "/network", "application/json", network); status < http.StatusInternalServerError {
						return
					}
				}
			})
			s.until("the outbox has something", "/network/outbox", func(answer []byte) bool { return bytes.Contains(answer, []byte(`"pendingTasks":1`)) })
			s.beside(1, func() { s.try("POST", "/indexes/films/documents", "application/x-ndjson", documents(0, 100)) })
		},
		"a webhook that hangs": func(s *stopping) {
			s.call("POST", "/webhooks", "application/json", `{"url":"`+hanging.URL+`"}`)
			s.call("POST", "/indexes/films/documents", "application/x-ndjson", documents(0, 100))
			s.settle()
		},
	}
	// Several at once. Documents are added first, while processors are free, and the last kinds leave running tasks.
	for _, together := range [][]string{
		{"a webhook that hangs", "a chat", "streams", "half-sent bodies", "an endless function", "calls of tools", "searches"},
		{"a webhook that hangs", "a chat", "streams", "half-sent bodies", "a provider that hangs", "an import", "searches"},
	} {
		var all []func(s *stopping)
		for _, name := range together {
			all = append(all, kinds[name])
		}
		kinds[strings.Join(together, ", ")] = func(s *stopping) {
			s.fill(4000)
			for _, begin := range all {
				begin(s)
			}
		}
	}
	for name, work := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting for requests to end
			s := launchStopping(t)
			work(s)
			time.Sleep(time.Second) // lets the work begin
			began := time.Now()
			if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatalf("before the stop: %v: %s", err, s.log.String())
			}
			ended := make(chan error, 1)
			go func() { ended <- s.process.Wait() }()
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("the server ends with %v: %s", err, s.log.String())
				}
				if took := time.Since(began); took > supervised {
					t.Logf("the stop took %v: on a machine of its own, a supervisor would have killed it", took)
				}
			case <-time.After(patience):
				s.process.Process.Signal(syscall.SIGQUIT) // its stacks show what it waits for
				<-ended
				t.Fatalf("the server has not stopped after %v: %s", patience, s.log.String())
			}
		})
	}
}

func launchStopping(t *testing.T) *stopping {
	t.Helper()
	s := &stopping{t: t, address: freeAddress()}
	dir := t.TempDir()
	s.process = exec.Command(os.Args[0], "--db-path", filepath.Join(dir, "data"), "--dump-dir", filepath.Join(dir, "dumps"), "--snapshot-dir", filepath.Join(dir, "snapshots"),
		"--http-addr", s.address, "--log-level", "WARN", "--experimental-allowed-ip-networks", "127.0.0.0/8", "--no-analytics")
	s.process.Env = append(os.Environ(), asProgram+"=1")
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.process.Process.Kill() })
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if status, _ := s.try("GET", "/health", "", ""); status == http.StatusOK {
			return s
		}
	}
	t.Fatalf("the server does not start: %s", s.log.String())
	return nil
}

// try sends a request, and reads the answer to its end if there is one.
func (s *stopping) try(method, path, kind, body string) (status int, answer []byte) {
	r, err := http.NewRequest(method, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if path == "/mcp" {
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer resp.Body.Close()
	answer, _ = io.ReadAll(resp.Body)
	return resp.StatusCode, answer
}

func (s *stopping) call(method, path, kind, body string) []byte {
	s.t.Helper()
	status, answer := s.try(method, path, kind, body)
	if status/100 != 2 {
		s.t.Errorf("%s %s: %d %.300s", method, path, status, answer)
	}
	return answer
}

// stream reads what the server sends until it stops. A busy server may stop before it has read the request.
func (s *stopping) stream(method, path, body string) {
	ends := []int{0, http.StatusOK, http.StatusServiceUnavailable}
	if status, answer := s.try(method, path, "application/json", body); !slices.Contains(ends, status) {
		s.t.Errorf("%s %s: %d %.300s", method, path, status, answer)
	}
}

// beside runs do n times at once until the test ends.
func (s *stopping) beside(n int, do func()) {
	var group sync.WaitGroup
	for range n {
		group.Go(do)
	}
	s.t.Cleanup(group.Wait)
	s.t.Cleanup(func() { s.process.Process.Kill() })
}

// half announces a body and sends a part of it.
func (s *stopping) half(path string, promised, sent int) {
	nc, err := net.Dial("tcp", s.address)
	if err != nil {
		return
	}
	defer nc.Close()
	fmt.Fprintf(nc, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, promised)
	nc.Write(bytes.Repeat([]byte(" "), sent))
	io.Copy(io.Discard, nc)
}

// fill adds documents, if there are none, and waits for them.
func (s *stopping) fill(n int) {
	s.t.Helper()
	if s.filled {
		return
	}
	s.filled = true
	s.call("POST", "/indexes/films/documents", "application/x-ndjson", documents(0, n))
	s.settle()
}

func (s *stopping) settle() {
	s.t.Helper()
	s.until("tasks end", "/tasks?statuses=enqueued,processing&limit=0", func(answer []byte) bool { return bytes.Contains(answer, []byte(`"total":0`)) })
}

// until sends a request until its answer satisfies a condition.
func (s *stopping) until(what, path string, is func(answer []byte) bool) {
	s.t.Helper()
	for deadline := time.Now().Add(3 * patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		status, answer := s.try("GET", path, "", "")
		if status == 0 {
			s.t.Fatalf("the server is gone: %s\n%s", answer, s.log.String())
		}
		if is(answer) {
			return
		}
	}
	s.t.Fatalf("never: %s:\n%s", what, s.log.String())
}

// documents returns documents with ids from first on.
func documents(first, n int) string {
	var b strings.Builder
	syllables := strings.Fields("ka to mi re na lo su vi pe dan ro")
	for id := range n {
		fmt.Fprintf(&b, `{"id":%d,"title":"`, first+id)
		for w := range 30 {
			x := (first + id) * (w + 7)
			b.WriteString(syllables[x%11] + syllables[x/11%11] + syllables[x/121%11] + " ")
		}
		b.WriteString("\"}\n")
	}
	return b.String()
}

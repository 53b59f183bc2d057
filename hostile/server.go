package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	masterKey = "a-master-key-for-attacks"
	documents = 5000 // in the index that is searched
	words     = 150  // of a document's text
)

// server is a svc on an address and in a directory of its own.
type server struct {
	process   *exec.Cmd
	dir       string
	address   string
	log       bytes.Buffer
	exited    chan struct{}
	over      atomic.Bool // the memory limit was exceeded
	ending    atomic.Bool // SIGTERM was sent
	searchKey string
	dataKey   string // documents.*, search

	templateKey string // settings.get, on films alone
	remote      string // address of its remote

	leader, version string // of the network that it is in; "": it is in none
}

// start launches a server and fills it for attacks.
func start(program []string) (*server, error) {
	s, err := launch(program)
	if err != nil {
		return nil, err
	}
	if err := s.fill(); err != nil {
		s.remove()
		return nil, fmt.Errorf("%w\n%s", err, s.log.String())
	}
	return s, nil
}

// launch starts program with its own arguments and those of an attacked server, and waits until it answers.
func launch(program []string) (*server, error) {
	s := &server{exited: make(chan struct{})}
	var err error
	if s.dir, err = os.MkdirTemp("", "hostile"); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return nil, err
	}
	s.address = l.Addr().String()
	l.Close()
	s.process = exec.Command(program[0], append([]string{"--db-path", filepath.Join(s.dir, "data"), "--http-addr", s.address, "--master-key", masterKey,
		"--dump-dir", filepath.Join(s.dir, "dumps"), "--log-level", "ERROR", "--no-analytics",
		"--experimental-allowed-ip-networks", "127.0.0.0/8"}, program[1:]...)...)
	// What a container with this limit would say by its control group.
	s.process.Env = append(os.Environ(), "GOMEMLIMIT="+strconv.Itoa(memoryLimit))
	s.process.Stderr = &s.log
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	go func() { s.process.Wait(); close(s.exited) }()
	for range 200 {
		if _, err = s.do("GET", "/health", "", nil); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("%w\n%s", err, s.log.String())
	}
	return s, nil
}

// fill makes the index that is searched, and the keys of the attackers.
func (s *server) fill() error {
	settings := `{"filterableAttributes":[{"attributePatterns":["*"],"features":{"facetSearch":true,"filter":{"equality":true,"comparison":true}}}],"sortableAttributes":["year","rating"],"searchableAttributes":["title","text"]}`
	if err := s.task("PATCH", "/indexes/films/settings", masterKey, []byte(settings)); err != nil {
		return err
	}
	if _, err := s.do("PATCH", "/experimental-features", masterKey, []byte(`{"editDocumentsByFunction":true,"renderRoute":true,"network":true,"metrics":true}`)); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for id := range documents {
		text := make([]string, words)
		for i := range text {
			text[i] = word(r)
		}
		fmt.Fprintf(&b, `{"id":%d,"title":"%s %s","text":"%s","year":%d,"rating":%.1f,"genres":["%s","%s"]}`+"\n",
			id, word(r), word(r), strings.Join(text, " "), 1900+r.IntN(120), 10*r.Float64(), word(r)[:1], word(r)[:1])
	}
	if err := s.send("POST", "/indexes/films/documents", masterKey, "application/x-ndjson", b.Bytes()); err != nil {
		return err
	}
	var err error
	if s.searchKey, err = s.key(`["search"]`, "*"); err != nil {
		return err
	}
	if s.dataKey, err = s.key(`["documents.*","search"]`, "*"); err != nil {
		return err
	}
	s.templateKey, err = s.key(`["settings.get"]`, "films")
	return err
}

var syllables = strings.Fields("ka to mi re na lo su vi pe dan ro")

// word makes a word; short ones come often.
func word(r *rand.Rand) string {
	w := syllables[min(r.IntN(len(syllables)), r.IntN(len(syllables)))]
	for r.IntN(3) > 0 {
		w += syllables[r.IntN(len(syllables))]
	}
	return w
}

func (s *server) key(actions, index string) (string, error) {
	answer, err := s.do("POST", "/keys", masterKey, []byte(`{"actions":`+actions+`,"indexes":["`+index+`"],"expiresAt":null}`))
	if err != nil {
		return "", err
	}
	var key struct{ Key string }
	return key.Key, json.Unmarshal(answer, &key)
}

// do sends a request with a JSON body; a status of 400 and more is an error.
func (s *server) do(method, path, key string, body []byte) ([]byte, error) {
	return s.request(http.DefaultClient, method, path, key, "application/json", "", body)
}

func (s *server) request(c *http.Client, method, path, key, kind, encoding string, body []byte) ([]byte, error) {
	return s.requestUntil(context.Background(), c, method, path, key, kind, encoding, body)
}

func (s *server) requestUntil(ctx context.Context, c *http.Client, method, path, key, kind, encoding string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", kind)
	if encoding != "" {
		r.Header.Set("Content-Encoding", encoding)
	}
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, answer)
	}
	io.Copy(io.Discard, resp.Body)
	return answer, err
}

func (s *server) task(method, path, key string, body []byte) error {
	return s.send(method, path, key, "application/json", body)
}

// send sends what makes a task, and waits for its end.
func (s *server) send(method, path, key, kind string, body []byte) error {
	answer, err := s.request(http.DefaultClient, method, path, key, kind, "", body)
	if err != nil {
		return err
	}
	var t struct {
		TaskUID int
		Status  string
		Error   json.RawMessage
	}
	if err := json.Unmarshal(answer, &t); err != nil {
		return err
	}
	for {
		answer, err := s.do("GET", "/tasks/"+strconv.Itoa(t.TaskUID), masterKey, nil)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(answer, &t); err != nil {
			return err
		}
		switch t.Status {
		case "succeeded":
			return nil
		case "failed":
			return fmt.Errorf("the task failed: %s", t.Error)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// resident returns the bytes of the process that are in memory and its own: mapped files can go at any time.
func (s *server) resident() int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "RssAnon:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// calm waits until the memory has settled, and returns how much it is.
func (s *server) calm() int64 {
	last := s.resident()
	for range 5 {
		time.Sleep(200 * time.Millisecond)
		last = min(last, s.resident())
	}
	return last
}

// watch watches the memory of the process, and kills it, like the kernel would, when it takes too much. The returned function ends
// this, and returns the peak.
func (s *server) watch() (peak func() int64) {
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		var top int64
		for {
			select {
			case <-stop:
				most <- top
				return
			case <-time.After(5 * time.Millisecond):
			}
			if top = max(top, s.resident()); top > memoryLimit && s.over.CompareAndSwap(false, true) {
				s.process.Process.Kill()
			}
		}
	}()
	return func() int64 { close(stop); return <-most }
}

// died says why the process ended without being asked to.
func (s *server) died() string {
	select {
	case <-s.exited:
	case <-time.After(100 * time.Millisecond):
		return ""
	}
	switch {
	case s.over.Load():
		return "out of memory"
	case s.ending.Load():
		return ""
	}
	return s.process.ProcessState.String()
}

// terminate sends SIGTERM and returns how long the end takes.
func (s *server) terminate() time.Duration {
	began := time.Now()
	s.ending.Store(true)
	s.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(2 * stopTime):
	}
	return time.Since(began)
}

func (s *server) remove() {
	s.ending.Store(true)
	s.process.Process.Kill()
	<-s.exited
	os.RemoveAll(s.dir)
}

// client searches like people, with a pause after each answer, and records how long answers take.
type client struct {
	ended chan struct{}
	done  sync.WaitGroup

	mu    sync.Mutex
	since time.Time
	took  []sample
	why   error // of the last search that was refused
}

type sample struct {
	at   time.Duration // since the start, of the end of the search
	took time.Duration
}

const (
	honestClients = 4
	pause         = 15 * time.Millisecond
	refused       = 10 * time.Second // what a search without an answer counts as
)

func (s *server) honestClient() *client {
	c := &client{ended: make(chan struct{}), since: time.Now()}
	for i := range honestClients {
		c.done.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(i)))
			browser := &http.Client{Timeout: refused}
			for {
				body := fmt.Sprintf(`{"q":"%s %s","limit":20,"attributesToHighlight":["title"]}`, word(r), word(r)[:2])
				began := time.Now()
				_, err := s.request(browser, "POST", "/indexes/films/search", s.searchKey, "application/json", "", []byte(body))
				took := time.Since(began)
				c.mu.Lock()
				if err != nil {
					took, c.why = refused, err
				}
				c.took = append(c.took, sample{time.Since(c.since), took})
				c.mu.Unlock()
				select {
				case <-c.ended:
					return
				case <-time.After(pause):
				}
			}
		})
	}
	return c
}

func (c *client) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took, c.since = nil, time.Now()
}

func (c *client) stop() { close(c.ended); c.done.Wait() }

func (c *client) p99() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p99(c.took)
}

func p99(all []sample) time.Duration {
	if len(all) == 0 {
		return refused
	}
	took := make([]time.Duration, len(all))
	for i, s := range all {
		took[i] = s.took
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// harm returns the worst 99th percentile of a quarter of a second, and the longest time for which it stayed above the limit. A
// quarter without an answer counts as above the limit, but not for the worst percentile, which the next answer determines.
func (c *client) harm(limit time.Duration) (worst, slow time.Duration) {
	const window = 250 * time.Millisecond
	byWindow := map[int][]sample{}
	last := 0
	for _, s := range c.took {
		at := int(s.at / window)
		byWindow[at] = append(byWindow[at], s)
		last = max(last, at)
	}
	var run time.Duration
	for i := range last {
		if all := byWindow[i]; len(all) > 0 {
			p := p99(all)
			if worst = max(worst, p); p <= limit {
				run = 0
				continue
			}
		}
		run += window
		slow = max(slow, run)
	}
	return worst, slow
}

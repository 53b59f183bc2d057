package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

const (
	// unusedZeros is the number of zeros at both ends of unused space. The bytes between them are flipped in groups of flipTogether.
	unusedZeros  = 64
	flipTogether = 4096

	storesKey   = "a-master-key-of-16-bytes"
	changedKey  = "6062abda-a5aa-4414-ac91-ecd7944c0f8d"
	payloadsDir = "tasks/payloads"
	deletedKey  = "74c9c733-3368-4738-bbe5-1d18a5fecb37"
)

// storeQuestions read everything in the stores of a data directory: the queue, the keys, the catalog, and the small files. key is the uid
// of the key to use; "" is the master key.
var storeQuestions = []struct{ method, path, body, key string }{
	{"GET", "/tasks/4", "", ""},
	{"GET", "/indexes/waits/documents", "", ""},
	{"GET", "/tasks?limit=1000", "", ""},
	{"GET", "/batches?limit=1000", "", ""},
	{"GET", "/keys?limit=100", "", ""},
	{"GET", "/keys/" + changedKey, "", ""},
	{"GET", "/keys/" + deletedKey, "", ""},
	{"GET", "/indexes", "", ""},
	{"GET", "/stats", "", ""},
	{"GET", "/indexes/films/settings", "", ""},
	{"GET", "/indexes/films/documents", "", ""},
	{"POST", "/indexes/films/search", `{"q":"metropolis"}`, changedKey},
	{"POST", "/indexes/films/search", `{"q":"metropolis"}`, deletedKey},
	{"GET", "/experimental-features", "", ""},
	{"GET", "/network", "", ""},
	{"GET", "/webhooks", "", ""},
	{"GET", "/chats", "", ""},
	{"GET", "/chats/kitchen/settings", "", ""},
	{"POST", "/dynamic-search-rules", `{}`, ""},
}

// storeWrites change every store.
var storeWrites = []struct{ method, path, body string }{
	{"PATCH", "/keys/" + changedKey, `{"name":"changed again"}`},
	{"PATCH", "/experimental-features", `{"metrics":true}`},
	{"PATCH", "/network", `{"remotes":{"c":{"url":"http://127.0.0.1:2"}}}`},
	{"PATCH", "/webhooks/", `{"headers":{"x":"y"}}`}, // and the uid of the only one
	{"PATCH", "/chats/kitchen/settings", `{"prompts":{"system":"T"}}`},
	{"PATCH", "/dynamic-search-rules/r", `{"priority":7}`},
	{"POST", "/indexes", `{"uid":"more"}`},
}

// storeDir is a data directory whose stores all have content, with a waiting task and its documents.
type storeDir struct {
	files map[string][]byte
	// began is earlier than anything that happens in a copy of the directory.
	began   time.Time
	options options
	values  map[string]string // of keys by uid
	webhook string            // uid of the webhook
	want    storeAnswers
	// wantWithout is right if the documents of the waiting task are damaged: it fails with an error.
	wantWithout storeAnswers
}

// storeAnswers are the answers after a first start, and after storeWrites and a second start; "" stands for an internal error.
type storeAnswers struct {
	first, second []string
	told          bool // the second server reported that the last change of a file may be missing
}

// serve starts a server on a copy of the directory.
func (d *storeDir) serve(t *testing.T, db string) (*storeServer, error) {
	t.Helper()
	o := d.options
	o.DBPath = db
	in, err := startWith(t, &o)
	if err != nil {
		return nil, err
	}
	return &storeServer{in.url, db, d, in.stop, in.log.String}, nil
}

// storeServer is a server on such a directory, in this process or as a program.
type storeServer struct {
	url  string
	db   string // its data directory
	dir  *storeDir
	stop func() error
	log  func() string
}

// ask sends a request with a key and returns status and body.
func (s *storeServer) ask(method, path, body, key string) (int, string, error) {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// answers sends all questions once no task is left to run.
func (s *storeServer) answers() ([]string, error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		status, body, err := s.ask("GET", "/tasks?statuses=enqueued,processing&limit=0", "", storesKey)
		if err != nil {
			return nil, err
		}
		if status != http.StatusOK || strings.Contains(body, `"total":0,`) {
			break
		}
		if time.Now().After(deadline) {
			break // the remaining tasks wait for something damaged
		}
	}
	var all []string
	for _, q := range storeQuestions {
		key := storesKey
		if q.key != "" {
			key = s.dir.values[q.key]
		}
		status, body, err := s.ask(q.method, q.path, q.body, key)
		if err != nil {
			return nil, err
		}
		if status >= 500 {
			all = append(all, "")
			continue
		}
		all = append(all, fmt.Sprint(status, " ", s.dir.timeless(strings.ReplaceAll(body, s.db, "DIR"))))
	}
	return all, nil
}

// write changes every store, and returns the number of refused changes.
func (s *storeServer) write() (refused int, err error) {
	for _, w := range storeWrites {
		if strings.HasSuffix(w.path, "/") {
			w.path += s.dir.webhook
		}
		status, _, err := s.ask(w.method, w.path, w.body, storesKey)
		if err != nil {
			return 0, err
		}
		if status >= 300 {
			refused++
		}
	}
	return refused, nil
}

// timeless removes from a JSON text what differs between two copies of the directory: recent times, and sizes.
func (d *storeDir) timeless(body string) string {
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		return "no JSON: " + body
	}
	b, err := json.Marshal(d.withoutTimes(v))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (d *storeDir) withoutTimes(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = d.withoutTimes(v[i])
		}
	case map[string]any:
		if s, ok := v["finishedAt"].(string); ok && d.isNew(s) {
			v["startedAt"] = "now" // or earlier, from the file of running batches
			delete(v, "duration")
			delete(v, "stats")
		}
		for _, name := range []string{"databaseSize", "usedDatabaseSize", "processingTimeMs"} {
			delete(v, name)
		}
		for k := range v {
			v[k] = d.withoutTimes(v[k])
		}
	case string:
		if d.isNew(v) {
			return "now"
		}
	}
	return v
}

// isNew reports whether a text is a time after the creation of the directory, or a version 7 UUID of such a time.
func (d *storeDir) isNew(s string) bool {
	at, err := time.Parse(time.RFC3339Nano, s)
	if id, e := uuid.Parse(s); e == nil && id.Version() == 7 {
		sec, nsec := id.Time().UnixTime()
		at, err = time.Unix(sec, nsec).Add(time.Millisecond), nil
	}
	return err == nil && !at.Before(d.began)
}

// newStoreDir makes the directory.
func newStoreDir(t *testing.T) *storeDir {
	t.Helper()
	told := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(told.Close)
	parsed, err := program{getenv: func(string) (string, bool) { return "", false }, out: io.Discard, err: io.Discard}.parse([]string{
		"--http-addr", "127.0.0.1:0", "--master-key", storesKey, "--experimental-allowed-ip-networks", "127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	d := &storeDir{options: *serverOptions(parsed), values: map[string]string{}, began: time.Now().Add(time.Hour)}
	base := filepath.Join(t.TempDir(), "db")
	var s *storeServer
	restart := func() {
		t.Helper()
		if s != nil {
			if err := s.stop(); err != nil {
				t.Fatal(err)
			}
		}
		if s, err = d.serve(t, base); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(method, path, body string) string {
		t.Helper()
		status, answer, err := s.ask(method, path, body, storesKey)
		if err != nil || status >= 300 {
			t.Fatal(method, path, body, status, answer, err)
		}
		return answer
	}
	restart()
	ask("PATCH", "/experimental-features", `{"network":true,"chatCompletions":true,"dynamicSearchRules":true}`)
	for _, uid := range []string{changedKey, deletedKey} {
		var key struct{ Key string }
		if err := json.Unmarshal([]byte(ask("POST", "/keys", fmt.Sprintf(`{"uid":%q,"actions":["search"],"indexes":["films"],"expiresAt":null}`, uid))), &key); err != nil {
			t.Fatal(err)
		}
		d.values[uid] = key.Key
	}
	ask("PATCH", "/network", `{"self":"a","remotes":{"b":{"url":"http://127.0.0.1:1"}}}`)
	var hook struct{ UUID string }
	if err := json.Unmarshal([]byte(ask("POST", "/webhooks", fmt.Sprintf(`{"url":"%s/told"}`, told.URL))), &hook); err != nil {
		t.Fatal(err)
	}
	d.webhook = hook.UUID
	ask("PATCH", "/chats/kitchen/settings", `{"source":"vLlm","baseUrl":"http://127.0.0.1:1/v1","apiKey":"sk-secret","prompts":{"system":"S"}}`)
	ask("PATCH", "/dynamic-search-rules/r", `{"description":"d","priority":3,"active":false,"actions":[{"selector":{"indexUid":"films","id":"1"},"action":{"type":"pin","position":0}}]}`)
	ask("PATCH", "/indexes/films/settings", `{"filterableAttributes":["year"],"synonyms":{"film":["movie"]}}`)
	ask("POST", "/indexes/films/documents", `[{"id":1,"title":"metropolis","year":1927},{"id":2,"title":"nosferatu"}]`)
	ask("POST", "/indexes/waits/documents", `[{"id":1,"title":"was there"}]`)
	ask("DELETE", "/indexes/none", "") // fails
	ask("PATCH", "/keys/"+changedKey, `{"name":"changed"}`)
	if _, err := s.answers(); err != nil {
		t.Fatal(err)
	}
	// A task waits while its index is quarantined, and runs when the index is repaired.
	manifest := filepath.Join(base, ofIndex(1, "MANIFEST"))
	whole, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = nil
	if err := os.WriteFile(manifest, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	restart()
	ask("POST", "/indexes/waits/documents", `[{"id":2,"title":"waits for the mended index"}]`)
	ask("DELETE", "/keys/"+deletedKey, "")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	d.files = readDir(t, base)
	d.files[ofIndex(1, "MANIFEST")] = whole
	d.began = time.Now()
	for payload := range d.files {
		if path.Dir(payload) != payloadsDir {
			continue
		}
		for _, tt := range []struct {
			flip      flipPlace
			want      *storeAnswers
			task, doc string
		}{
			{flipPlace{}, &d.want, `"error":null`, `"title":"waits for the mended index"}],"total":2`},
			{flipPlace{payload, 0, 1}, &d.wantWithout, `"code":"invalid_store_file"`, `"title":"was there"}],"total":1`},
		} {
			var refused int
			if *tt.want, refused, err = d.twice(t, tt.flip, false, d.serve); err != nil || refused > 0 {
				t.Fatal(refused, err)
			}
			for _, answers := range [][]string{tt.want.first, tt.want.second} {
				if slices.Contains(answers, "") || !strings.Contains(answers[0], tt.task) || !strings.Contains(answers[1], tt.doc) {
					t.Fatalf("%q", answers)
				}
			}
		}
		return d
	}
	t.Fatal("no task waits")
	return nil
}

// refusedStart is the error of a refused start.
type refusedStart struct{ error }

// serveStores starts a server on a data directory.
type serveStores func(t *testing.T, db string) (*storeServer, error)

// twice flips bytes in a copy of the directory, before the start or while the server runs, sends all questions, writes, restarts and asks
// again. It returns the number of refused writes.
func (d *storeDir) twice(t *testing.T, p flipPlace, running bool, serve serveStores) (got storeAnswers, refused int, err error) {
	t.Helper()
	db, err := os.MkdirTemp("", "flip")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(db)
	writeFiles(t, db, d.files)
	flip := func() {
		if p.n > 0 {
			flipBits(t, filepath.Join(db, p.name), p.at, d.files[p.name][p.at:][:p.n])
		}
	}
	if !running {
		flip()
	}
	s, err := serve(t, db)
	if err != nil {
		return got, 0, refusedStart{err}
	}
	if running {
		if _, err = s.answers(); err == nil { // so that the waiting task has ended
			flip()
		}
	}
	if err == nil {
		got.first, err = s.answers()
	}
	if err == nil {
		refused, err = s.write()
	}
	if err = errors.Join(err, s.stop()); err != nil {
		return got, refused, fmt.Errorf("%w\n%s", err, s.log())
	}
	if s, err = serve(t, db); err != nil {
		return got, refused, refusedStart{err}
	}
	got.second, err = s.answers()
	err = errors.Join(err, s.stop())
	got.told = strings.Contains(s.log(), "one of the two roots of a file is damaged")
	return got, refused, err
}

// storeCounts counts the outcomes of flipped bytes of one file.
type storeCounts struct{ bytes, starts, refused, failed, right int }

// storeTally counts the outcomes for all files.
type storeTally struct {
	mu sync.Mutex
	of map[string]*storeCounts
}

func (s *storeTally) add(p flipPlace, refused, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range []string{p.name, "all"} {
		c := s.of[name]
		if c == nil {
			c = new(storeCounts)
			s.of[name] = c
		}
		c.bytes += p.n
		c.starts++
		switch {
		case refused:
			c.refused++
		case failed:
			c.failed++
		default:
			c.right++
		}
	}
}

func (s *storeTally) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.of)) {
		c := s.of[name]
		fmt.Fprintf(&b, "\n%s: %d bytes flipped ahead of %d starts: %d were refused, %d had answers that are errors, %d only right ones", name, c.bytes, c.starts, c.refused, c.failed, c.right)
	}
	return b.String()
}

// try flips bytes, and checks the answers of a server.
func (d *storeDir) try(t *testing.T, tally *storeTally, p flipPlace, running bool, serve serveStores) {
	t.Helper()
	got, unwritten, err := d.twice(t, p, running, serve)
	r := refusedStart{}
	refused := errors.As(err, &r)
	if err != nil && !refused {
		t.Errorf("byte %d of %s, running %v: %v", p.at, p.name, running, err)
		return
	}
	want, failed := d.want, unwritten > 0
	if path.Dir(p.name) == payloadsDir && !running {
		want = d.wantWithout
	}
	compare := func(start string, got []string, want ...[]string) {
		for i := range got {
			if got[i] == "" {
				failed = true
			} else if !slices.ContainsFunc(want, func(w []string) bool { return got[i] == w[i] }) {
				q := storeQuestions[i]
				t.Errorf("byte %d of %s, running %v, %s start, %d changes refused: %s %s\n got %s\nwant %s", p.at, p.name, running, start, unwritten, q.method, q.path, got[i], want[0][i])
			}
		}
	}
	compare("first", got.first, want.first)
	switch {
	case running && got.told: // the queue as before its last change
		failed = true
	case unwritten > 0:
		compare("second", got.second, want.second, want.first)
	default:
		compare("second", got.second, want.second)
	}
	tally.add(p, refused, failed)
}

// flipGroups returns the groups of bytes that are flipped at once: single bytes, except inside long runs of zeros.
func flipGroups(name string, b []byte) (groups []flipPlace) {
	for at := 0; at < len(b); {
		run := 0
		for at+run < len(b) && b[at+run] == 0 {
			run++
		}
		inside := run - 2*unusedZeros
		for i := 0; i < max(run, 1); {
			n := 1
			if i >= unusedZeros && i < unusedZeros+inside {
				n = min(flipTogether, unusedZeros+inside-i)
			}
			groups = append(groups, flipPlace{name, at + i, n})
			i += n
		}
		at += max(run, 1)
	}
	return groups
}

// TestFlippedBytesOfStores flips each byte of the files outside the indexes while the server is stopped and while it runs: the task queue
// and its payloads, the keys, the catalog, and the small files. The server may refuse to start, or answer with internal errors. All other
// answers must be right, also after everything was changed and the server restarted: damage must never get a fresh checksum. make flips
// flips every byte, the usual test some of them.
func TestFlippedBytesOfStores(t *testing.T) {
	// Hundreds of servers per second leave much garbage.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	d := newStoreDir(t)
	var places []flipPlace
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		if strings.HasPrefix(name, ofIndex(0, "")) || strings.HasPrefix(name, ofIndex(1, "")) {
			continue
		}
		places = append(places, flipGroups(name, d.files[name])...)
	}
	// A running server without tasks has no payloads.
	kept := slices.DeleteFunc(slices.Clone(places), func(p flipPlace) bool { return path.Dir(p.name) == payloadsDir })
	for _, kind := range []struct {
		name    string
		places  []flipPlace
		running bool
	}{{"stopped", places, false}, {"running", kept, true}} {
		tally := &storeTally{of: map[string]*storeCounts{}}
		t.Run(kind.name, func(t *testing.T) {
			for chunk := range slices.Chunk(chooseFlips(t, kind.places), flipStarts) {
				t.Run("part", func(t *testing.T) {
					t.Parallel()
					for _, p := range chunk {
						d.try(t, tally, p, kind.running, d.serve)
					}
				})
			}
		})
		t.Logf("%s:%s", kind.name, tally)
	}
}

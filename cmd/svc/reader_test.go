package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/group"
	"svc/internal/transformer/transformertest"
)

// pair is a writer and a reader that follows it.
type pair struct {
	t              *testing.T
	port           int
	common         []string // options of both members
	home           [2]string
	writer, reader groupMember
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, port: freePort(t, 1, "127.0.0.1"), home: [2]string{filepath.Join(t.TempDir(), "writer"), filepath.Join(t.TempDir(), "reader")}}
	cert, key := certificate(t)
	p.common = []string{"--master-key", groupKey, "--group-name", "shop", "--group-tls-cert", cert, "--group-tls-key", key, "--group-tls-ca", cert}
	p.startWriter()
	p.startReader()
	return p
}

func (p *pair) startWriter() {
	p.writer = groupMember{start(p.t, p.home[0], append(p.common, "--group-addr", fmt.Sprintf("127.0.0.1:%d", p.port))...)}
}

func (p *pair) startReader() {
	p.reader = groupMember{start(p.t, p.home[1], append(p.common, "--group-role", "reader", "--group-join", fmt.Sprintf("127.0.0.1:%d", p.port))...)}
}

// settle waits until the writer is idle and the reader has its position.
func (p *pair) settle() {
	p.t.Helper()
	p.idle()
	p.reader.until("where the writer is", func(s *group.Status) bool {
		_, h := p.writer.ask("GET", "/health", "")
		return s.Position == h.Get("Svc-Position") && s.Reader.State == group.StateFollows
	})
}

// idle waits until the writer has no tasks left.
func (p *pair) idle() {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		b, _ := p.writer.ask("GET", "/tasks?statuses=enqueued,processing&limit=1", "")
		if strings.Contains(b, `"total":0`) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("tasks do not end: %s\n%s", b, p.writer.log)
		}
	}
}

// reads are the requests that both must answer alike.
var reads = func() (all [][3]string) {
	for _, path := range []string{
		"/indexes", "/aliases", "/tasks", "/batches", "/keys", "/webhooks", "/chats", "/chats/w/settings", "/experimental-features", "/tasks?canceledBy=1",
		"/tasks/0", "/tasks/99999", "/batches/0", "/dynamic-search-rules/r", "/indexes/nope", "/keys/nope", "/aliases/main",
	} {
		all = append(all, [3]string{"GET", path, ""})
	}
	for _, uid := range []string{"a", "c", "main"} {
		for _, path := range []string{"", "/settings", "/documents?limit=1000", "/documents/1", "/search?q=word&facets=kind", "/settings/synonyms"} {
			all = append(all, [3]string{"GET", "/indexes/" + uid + path, ""})
		}
		for _, body := range []string{`{"q":"word 1","showRankingScoreDetails":true,"limit":50}`, `{"filter":"kind = 1","sort":["v:desc"]}`, `{"q":"wrod","attributesToHighlight":["*"]}`} {
			all = append(all, [3]string{"POST", "/indexes/" + uid + "/search", body})
		}
		all = append(all, [3]string{"POST", "/indexes/" + uid + "/documents/fetch", `{"limit":3}`})
	}
	return append(all, [3]string{"POST", "/dynamic-search-rules", `{}`}, [3]string{"POST", "/multi-search", `{"queries":[{"indexUid":"a","q":"word"},{"indexUid":"b","q":"1"}]}`})
}()

var times = regexp.MustCompile(`"(processingTimeMs|requestUid)":[^,}]*`)

// same compares the answers of both members.
func (p *pair) same() {
	p.t.Helper()
	p.settle()
	for _, r := range reads {
		want, at := p.writer.ask(r[0], r[1], r[2])
		got, h := p.reader.ask(r[0], r[1], r[2])
		for range 20 { // the writer may merge in between
			if h.Get("Svc-Position") == at.Get("Svc-Position") {
				break
			}
			p.settle()
			want, at = p.writer.ask(r[0], r[1], r[2])
			got, h = p.reader.ask(r[0], r[1], r[2])
		}
		if want, got = times.ReplaceAllString(want, ""), times.ReplaceAllString(got, ""); got != want {
			p.t.Errorf("%s %s: the reader answers\n%s\nthe writer\n%s", r[0], r[1], got, want)
		}
		if h.Get("Svc-Position") != at.Get("Svc-Position") || h.Get("Svc-Staleness") == "" && !strings.HasPrefix(r[1], "/tasks/") && !strings.HasPrefix(r[1], "/batches/") {
			p.t.Errorf("%s %s: the reader answers at %q, %q behind, the writer at %q", r[0], r[1], h.Get("Svc-Position"), h.Get("Svc-Staleness"), at.Get("Svc-Position"))
		}
	}
}

// write sends a random write to one of the members.
func (p *pair) write(r *rand.Rand, members ...groupMember) {
	p.t.Helper()
	method, path, body := randomWrite(r)
	if b, h := members[r.IntN(len(members))].ask(method, path, body); h.Get("Svc-Position") == "" {
		p.t.Errorf("%s %s: %s", method, path, b)
	}
}

// searcher searches an index of the reader continuously.
type searcher struct {
	client http.Client
	stop   chan struct{}
	done   sync.WaitGroup
	n      int
}

func (p *pair) search(path string) *searcher {
	s := &searcher{stop: make(chan struct{})}
	s.done.Go(func() {
		for {
			select {
			case <-s.stop:
				return
			default:
			}
			req, _ := http.NewRequest("GET", p.reader.url+path, nil)
			req.Header.Set("Authorization", "Bearer "+groupKey)
			res, err := s.client.Do(req)
			if err != nil {
				p.t.Errorf("a search: %v", err)
				return
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != 200 {
				p.t.Errorf("a search: %d %s %v", res.StatusCode, b, err)
				return
			}
			s.n++
			time.Sleep(500 * time.Microsecond)
		}
	})
	return s
}

func (s *searcher) end() int {
	close(s.stop)
	s.done.Wait()
	s.client.CloseIdleConnections()
	return s.n
}

// TestAReaderAnswersAsTheWriter makes random changes at both members, restarts both in between, and compares their answers at the same
// position. No search of the reader may fail, even while its data are replaced.
func TestAReaderAnswersAsTheWriter(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	p := newPair(t)
	for _, uid := range []string{"a", "b"} {
		p.reader.ask("POST", "/indexes/"+uid+"/documents", `[{"id":1,"text":"word","kind":1,"v":1}]`)
	}
	p.writer.ask("PATCH", "/experimental-features", `{"dynamicSearchRules":true,"chatCompletions":true}`)
	p.settle()
	p.reader.ask("PUT", "/aliases/main", `{"indexUid":"a"}`)
	for round := range 3 {
		s := p.search("/indexes/main/search?q=word")
		for range 12 {
			p.write(r, p.writer, p.reader)
		}
		switch round {
		case 0: // makes the reader copy the writer's data again
			if err := p.writer.stop(); err != nil {
				t.Fatal(err)
			}
			if b, _ := p.reader.ask("GET", "/indexes/main/search?q=word", ""); !strings.Contains(b, `"hits"`) {
				t.Errorf("without the writer: %s", b)
			}
			p.startWriter()
		case 1:
			p.same()
			if n := s.end(); n == 0 {
				t.Error("no search ran")
			}
			if err := p.reader.stop(); err != nil {
				t.Fatal(err)
			}
			p.write(r, p.writer)
			p.startReader()
			p.same()
			continue
		}
		p.same()
		if n := s.end(); n == 0 {
			t.Error("no search ran")
		}
		if t.Failed() {
			return
		}
	}
}

// TestAReaderCopiesDamagedFiles truncates a segment of a reader, which must then get it from the writer.
func TestAReaderCopiesDamagedFiles(t *testing.T) {
	p := newPair(t)
	p.writer.ask("POST", "/indexes/a/documents", `[{"id":1,"text":"word"}]`)
	p.settle()
	if err := p.reader.stop(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(p.home[1], "indexes", "*", "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("no segments: %v", err)
	}
	for _, name := range segments {
		if err := os.Truncate(name, 100); err != nil {
			t.Fatal(err)
		}
	}
	p.startReader()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		b, h := p.reader.ask("GET", "/indexes/a/search?q=word", "")
		if strings.Contains(b, `"estimatedTotalHits":1`) && h.Get("Svc-Staleness") != "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the reader answers %s", b)
		}
	}
	if b, _ := p.reader.ask("GET", "/health", ""); b != `{"status":"available"}` {
		t.Errorf("the health of the reader is %s", b)
	}
	if !strings.Contains(p.reader.log.String(), "files of this server are damaged") {
		t.Error("the log does not report the copy")
	}
}

// TestAReaderReportsAMissingModel follows a writer whose index has an embedder with a local model, which the reader lacks at first.
func TestAReaderReportsAMissingModel(t *testing.T) {
	models := [2]string{t.TempDir(), t.TempDir()}
	model := func(i int) string { return filepath.Join(models[i], "org", "tiny", "main") }
	tokenizer := filepath.Join("..", "..", "internal", "transformer", "testdata", "wordpiece.json")
	transformertest.Make(t, model(0), "bert", "F32", tokenizer, 300, 7)
	p := &pair{t: t, port: freePort(t, 1, "127.0.0.1"), home: [2]string{filepath.Join(t.TempDir(), "writer"), filepath.Join(t.TempDir(), "reader")}}
	common := []string{"--master-key", groupKey, "--group-name", "shop"}
	p.common = append(common[:len(common):len(common)], "--models-dir", models[0])
	p.startWriter()
	p.writer.ask("PATCH", "/experimental-features", `{"metrics":true}`)
	p.writer.ask("POST", "/indexes/a/documents", `[{"id":1,"text":"hello"}]`)
	p.writer.ask("PATCH", "/indexes/a/settings", `{"embedders":{"local":{"source":"huggingFace","model":"org/tiny","documentTemplate":"{{doc.text}}"}}}`)
	p.idle()
	p.common = append(common[:len(common):len(common)], "--models-dir", models[1])
	p.startReader()
	p.settle()
	missing := fmt.Sprintf(`"missingModels":[{"indexUid":"a","embedder":"local","directory":%q}]`, model(1))
	search := func() string {
		b, _ := p.reader.ask("POST", "/indexes/a/search", `{"q":"hello","hybrid":{"embedder":"local","semanticRatio":1}}`)
		return b
	}
	if b, _ := p.reader.ask("GET", "/group", ""); !strings.Contains(b, missing) {
		t.Errorf("the group is %s, want %s", b, missing)
	}
	if b, _ := p.writer.ask("GET", "/group", ""); strings.Contains(b, "missingModels") {
		t.Errorf("the writer lacks a model: %s", b)
	}
	if b, _ := p.reader.ask("GET", "/metrics", ""); !strings.Contains(b, "svc_group_missing_models 1\n") {
		t.Errorf("the metrics do not report a missing model")
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(p.reader.log.String(), "lacks models of embedders"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log does not report a missing model: %s", p.reader.log)
		}
	}
	if b := search(); !strings.Contains(b, "vector_embedding_error") {
		t.Errorf("without the model: %s", b)
	}
	var out strings.Builder
	c := groupStatusCommand{remoteOptions: remoteOptions{URL: p.reader.url, Key: groupKey}}
	if err := c.Run(program{getenv: func(string) (string, bool) { return "", false }, out: &out, err: io.Discard}); err != nil || !strings.Contains(out.String(), "the model of embedder local of index a is missing") {
		t.Errorf("%v: %s", err, out.String())
	}
	transformertest.Make(t, model(1), "bert", "F32", tokenizer, 300, 7)
	if b, _ := p.reader.ask("GET", "/group", ""); strings.Contains(b, "missingModels") {
		t.Errorf("after the model was installed: %s", b)
	}
	if b := search(); !strings.Contains(b, `"hits":[{"id":1`) {
		t.Errorf("with the model: %s", b)
	}
}

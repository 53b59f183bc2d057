package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/client"
)

// writeDocuments writes documents to a file compressed with gzip.
func writeDocuments(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for i := range n {
		fmt.Fprintf(z, "{\"id\":%d,\"title\":\"document %d\",\"text\":%q}\n", i, i, strings.Repeat(fmt.Sprint("word", i%97, " "), 20))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "documents.ndjson.gz")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// checkDocuments checks that each document exists once.
func checkDocuments(t *testing.T, in *instance, index string, n int) {
	t.Helper()
	var list struct {
		Total   int
		Results []struct{ ID any }
	}
	if err := json.Unmarshal([]byte(in.call("GET", fmt.Sprintf("/indexes/%s/documents?limit=%d&fields=id", index, n+10), "")), &list); err != nil {
		t.Fatal(err)
	}
	seen := map[any]bool{}
	for _, d := range list.Results {
		seen[d.ID] = true
	}
	if list.Total != n || len(list.Results) != n || len(seen) != n {
		t.Errorf("%s: %d documents in all, %d listed, %d distinct; want %d", index, list.Total, len(list.Results), len(seen), n)
	}
}

// sent returns the number of documents that the server has accepted, by a state file.
func sent(state string) int {
	var at client.Checkpoint
	if b, err := os.ReadFile(state); err == nil {
		_ = json.Unmarshal(b, &at) // an import replaces the file as a whole
	}
	return at.Sent
}

// TestAStateFileIsOfOneImport saves the progress of an import to a file, and loads it for the same import, for one of another file, and for
// one of the same file into another index. Only the first one may resume.
func TestAStateFileIsOfOneImport(t *testing.T) {
	to, err := client.New("http://localhost:7700", "", false)
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	c := &importCommand{State: state}
	of := func(source, index string) *checkpoints {
		at, err := c.checkpoints(program{}, to, source, index)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if err := of("monday.ndjson 100 1", "films").save(client.Checkpoint{Sent: 7}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		source, index string
		want          int
	}{{"monday.ndjson 100 1", "films", 7}, {"tuesday.ndjson 100 2", "films", 0}, {"monday.ndjson 100 1", "books", 0}} {
		if got := of(x.source, x.index).load().Sent; got != x.want {
			t.Errorf("%s into %s resumes after %d documents, want %d", x.source, x.index, got, x.want)
		}
	}
	if err := os.WriteFile(state, []byte(`{"sent":7,"tasks":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := of("monday.ndjson 100 1", "films").load().Sent; got != 7 {
		t.Errorf("with the file of an earlier svc, it resumes after %d documents, want 7", got)
	}
}

// TestAKilledImportContinues kills imports and the server with SIGKILL until an import completes.
func TestAKilledImportContinues(t *testing.T) {
	const documents = 6000
	const killed, batches = 6, 6 // rounds with a killed import, and accepted batches per round: fewer in all than the import has
	t.Setenv(asProgram, "1")
	data, file := filepath.Join(t.TempDir(), "data"), writeDocuments(t, documents)
	server := startServer(t, os.Args[0], data)
	address := strings.TrimPrefix(server.url, "http://")
	// Later batches wait, so that no import ends before it is killed, even if this test notices its start late.
	var left atomic.Int64
	behind, err := url.Parse(server.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {
		left.Add(1) // the client sends it again
		panic(http.ErrAbortHandler)
	}
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/documents") && r.Method != http.MethodGet {
			body, err := io.ReadAll(r.Body)
			if err != nil || left.Add(-1) < 0 {
				<-r.Context().Done()
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(gate.Close)
	t.Cleanup(gate.CloseClientConnections)
	state := filepath.Join(t.TempDir(), "state")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 6))
	wentOn, ended := false, false
	for round := range 40 {
		if left.Store(batches); round >= killed {
			left.Store(documents)
		}
		var said bytes.Buffer
		cmd := exec.Command(os.Args[0], "import", "films", file, "--url", gate.URL, "--batch-size", "20 KB", "--max-tasks", "3", "--state", state)
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ends := make(chan error, 1)
		go func() { ends <- cmd.Wait() }()
		if round == 3 { // the server is killed as well, and restarts while the import waits
			server.process.Process.Kill()
			server.process.Wait()
			server.process = exec.Command(os.Args[0], "--db-path", data, "--http-addr", address, "--log-level", "WARN")
			if err := server.process.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { server.process.Process.Kill() })
		}
		var err error
		for at := sent(state) + rng.IntN(documents/20); ; time.Sleep(time.Millisecond) {
			if round < killed && sent(state) > at {
				cmd.Process.Kill()
				err = <-ends
				break
			}
			if len(ends) > 0 {
				err = <-ends
				break
			}
		}
		wentOn = wentOn || strings.Contains(said.String(), "resuming after")
		if err == nil {
			ended = true
			break
		}
		if round >= killed {
			t.Fatalf("%v: %s", err, said.String())
		}
	}
	if !ended || !wentOn {
		t.Errorf("ended: %v, continued: %v", ended, wentOn)
	}
	in := &instance{t: t, url: server.url}
	in.idle()
	checkDocuments(t, in, "films", documents)
	if _, err := os.Stat(state); err == nil {
		t.Error("the state file is left")
	}
}

// TestCommandsOfAServer operates a running server with commands alone.
func TestCommandsOfAServer(t *testing.T) {
	const key = "a-master-key-of-16-bytes"
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dumps, snapshots := t.TempDir(), t.TempDir()
	in := start(t, filepath.Join(t.TempDir(), "data"), "--master-key", key, "--dump-dir", dumps, "--snapshot-dir", snapshots, "--experimental-allowed-ip-networks", "any")
	other := start(t, filepath.Join(t.TempDir(), "data"))
	env := map[string]string{keyVariable: key}
	run := func(code int, args ...string) string {
		t.Helper()
		got, out := runProgram(env, append(args, "--url", in.url)...)
		if got != code {
			t.Fatalf("%q: exit code %d, %s", args, got, out)
		}
		return out
	}
	csv := filepath.Join(t.TempDir(), "films.csv")
	if err := os.WriteFile(csv, []byte("id,title,year:number\n1,\"Alien, the first\",1979\n2,Arrival,2016\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(0, "import", "films", csv)
	run(0, "import", "numbers", writeDocuments(t, 2500), "--batch-size", "50 KB")
	run(exitFailure, "import", "films", csv+".none")
	run(exitFailure, "import")
	if out := run(exitFailure, "import", "films", csv, "--key", "wrong"); !strings.Contains(out, "invalid_api_key") {
		t.Errorf("a wrong key: %s", out)
	}
	for _, command := range []string{"tasks", "import"} {
		code, out := runProgram(nil, command, "--url", in.url, "--key", "")
		if command == "import" {
			code, out = runProgram(nil, command, "--from", in.url, "--url", other.url)
		}
		if code != exitFailure || !strings.Contains(out, "set --key or "+keyVariable) || strings.Contains(out, "--from-key") != (command == "import") {
			t.Errorf("%s without a key: %d %s", command, code, out)
		}
	}
	if out := run(0, "search", "films", "alien", "first"); !strings.Contains(out, `"Alien, the first"`) || strings.Contains(out, "Arrival") {
		t.Errorf("search: %s", out)
	}
	if out := run(0, "search", "films", "--attributes", "title", "--json", "--limit", "1"); !strings.Contains(out, `"hits": [`) || strings.Contains(out, "1979") {
		t.Errorf("search: %s", out)
	}
	if out := run(0, "search", "numbers", "--all", "--limit", "1"); strings.Count(out, "\n{") < 2490 || !strings.HasSuffix(out, "2500 hits\n") { // beyond maxTotalHits
		t.Errorf("search for everything: %d bytes, %s", len(out), out[max(0, len(out)-200):])
	}
	if out := run(exitFailure, "search", "numbers", "--all", "--offset", "1"); !strings.Contains(out, "leave out --offset") {
		t.Errorf("search for everything: %s", out)
	}
	if out := run(0, "tasks", "--index", "films", "--wait"); !strings.Contains(out, "succeeded") || !strings.Contains(out, "documentAdditionOrUpdate") || strings.Contains(out, "numbers") {
		t.Errorf("tasks: %s", out)
	}
	if out := run(0, "tasks", "0", "--json"); !strings.Contains(out, `"uid": 0`) {
		t.Errorf("task 0: %s", out)
	}
	made := strings.TrimSpace(run(0, "key", "create", "--action", "search", "--index", "films", "--name", "mine"))
	if out := run(0, "key", "list", "--show-keys"); !strings.Contains(out, made) || !strings.Contains(out, "mine") {
		t.Errorf("keys: %s", out)
	}
	run(0, "search", "films", "--key", made)
	run(exitFailure, "tasks", "--key", made)
	run(0, "key", "delete", made)
	run(exitFailure, "search", "films", "--key", made)
	if name := strings.TrimSpace(run(0, "dump")); filepath.Dir(name) != dumps || filepath.Ext(name) != ".dump" {
		t.Errorf("the dump is %s", name)
	} else if _, err := os.Stat(name); err != nil {
		t.Error(err)
	}
	if name := strings.TrimSpace(run(0, "snapshot")); filepath.Dir(name) != snapshots {
		t.Errorf("the snapshot is %s", name)
	} else if _, err := os.Stat(name); err != nil {
		t.Error(err)
	}
	code, out := runProgram(nil, "import", "--from", in.url, "--from-key", key, "--url", other.url)
	if code != 0 {
		t.Fatalf("import from a server: %s", out)
	}
	checkDocuments(t, other, "numbers", 2500)
	checkDocuments(t, other, "films", 2)

	// Missing objects and missing arguments have their own messages.
	for _, tt := range []struct {
		says string
		args []string
	}{
		{"there is no task 99999", []string{"tasks", "99999", "0"}},
		{"there is no task 0 that matches the options", []string{"tasks", "0", "--status", "failed"}},
		{"--cancel needs task uids", []string{"tasks", "--cancel"}},
		{`"broken" is not a status; use enqueued`, []string{"tasks", "--status", "failed,broken"}},
		{`"import" is not a task type; use documentAddition`, []string{"tasks", "--type", "import"}},
		{`"a b" is not a valid index name`, []string{"tasks", "--index", "a b", "--cancel"}},
		{"--limit must be 0 or more, got -1", []string{"tasks", "--limit=-1"}},
		{"--semantic-ratio and --vector need --embedder", []string{"search", "films", "--semantic-ratio", "1"}},
		{"--semantic-ratio must be between 0 and 1, got 2", []string{"search", "films", "--embedder", "e", "--semantic-ratio", "2"}},
		{"has no embedder `none`", []string{"search", "films", "x", "--embedder", "none"}},
		{"`fly` is not an action", []string{"key", "create", "--action", "fly"}},
		{"--expires", []string{"key", "create", "--action", "search", "--expires", "soon"}},
		{"nothing to change: give", []string{"index", "update", "films"}},
		{"nothing to change: give", []string{"settings", "set", "films"}},
		{"no setting is named ranking", []string{"settings", "show", "films", "ranking"}},
		{"index_not_found", []string{"index", "list", "none"}},
		{"no index matches --index", []string{"export", other.url, "--index", "none*"}},
	} {
		if out := run(exitFailure, tt.args...); !strings.Contains(out, tt.says) || strings.Contains(out, "`actions`") || strings.Contains(out, "indexUids") {
			t.Errorf("%q: %s", tt.args, out)
		}
	}
	for name, text := range map[string]string{"empty.json": "", "list.json": "[]", "head.csv": "id,title\n", "blank.ndjson": "\n\n"} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := run(exitFailure, "import", "nothing", file); !strings.Contains(out, name+": there are no documents in it") {
			t.Errorf("%s: %s", name, out)
		}
	}

	run(0, "index", "create", "drafts", "--primary-key", "key")
	if out := run(0, "index", "list", "drafts", "films"); !strings.Contains(out, "drafts") || !strings.Contains(out, "key") || strings.Contains(out, "numbers") {
		t.Errorf("indexes: %s", out)
	}
	run(0, "index", "update", "drafts", "--rename", "notes")
	run(0, "index", "swap", "notes", "films")
	if out := run(0, "search", "notes", "arrival"); !strings.Contains(out, "2016") {
		t.Errorf("after a swap: %s", out)
	}
	run(0, "index", "compact", "notes")
	run(0, "settings", "set", "notes", "filterable-attributes", `["year"]`)
	run(0, "settings", "set", "notes", "distinctAttribute", "title")
	if out := run(0, "settings", "show", "notes", "distinct-attribute", "filterableAttributes"); !strings.Contains(out, `"title"`) || !strings.Contains(out, `"year"`) {
		t.Errorf("settings: %s", out)
	}
	all := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(all, []byte(`{"embedders":{"e":{"source":"userProvided","dimensions":2}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(exitFailure, "settings", "set", "notes", "--file", all) // documents without vectors
	run(0, "settings", "reset", "notes", "distinct-attribute")
	run(0, "settings", "reset", "notes")
	if out := run(0, "settings", "show", "notes"); strings.Contains(out, `"title"`) || strings.Contains(out, `"year"`) {
		t.Errorf("settings after a reset: %s", out)
	}
	run(0, "settings", "set", "vectors", "--file", all)
	vectors := filepath.Join(t.TempDir(), "vectors.json")
	if err := os.WriteFile(vectors, []byte(`[{"id":1,"t":"red","_vectors":{"e":[1,0]}},{"id":2,"t":"blue","_vectors":{"e":[0,1]}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(0, "import", "vectors", vectors)
	if out := run(0, "search", "vectors", "red", "--embedder", "e", "--vector", "0,1", "--semantic-ratio", "0.9", "--attributes", "id"); !strings.HasPrefix(out, `{"id":2}`) || !strings.Contains(out, "2 semantic") {
		t.Errorf("search by meaning: %s", out)
	}
	if out := run(0, "export", other.url, "--index", "vec*,films", "--override-settings"); !strings.Contains(out, "vectors: 2 documents") {
		t.Errorf("export: %s", out)
	}
	other.idle()
	checkDocuments(t, other, "vectors", 2)
	run(0, "index", "delete", "notes", "vectors")
	run(exitFailure, "index", "delete", "notes")
	if out := run(0, "tasks", "--limit", "1"); strings.Contains(out, "PT") || !strings.Contains(out, "s  ") {
		t.Errorf("tasks: %s", out)
	}
	if out := run(0, "tasks", "--index", "none"); out != "no matching tasks\n" {
		t.Errorf("no tasks: %s", out)
	}
	if out := run(0, "tasks", "--cancel", "--index", "none"); !strings.Contains(out, "canceled 0 of 0 matching tasks") {
		t.Errorf("canceled: %s", out)
	}
}

func TestDurationsForPeople(t *testing.T) {
	for text, want := range map[string]string{
		"PT0.000538270S": "538 µs", "PT0.0213S": "21 ms", "PT2.25S": "2.2 s", "PT1M2.5S": "1 min 2 s", "PT1H3M0S": "1 h 3 min", "PT7531.2S": "2 h 5 min",
		"": "", "P1D": "P1D", "soon": "soon",
	} {
		if got := shortDuration(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := shortTime("2026-11-26T16:24:54.525932322Z"); got != time.Date(2026, 11, 26, 16, 24, 54, 0, time.UTC).Local().Format(time.DateTime) {
		t.Errorf("a time is %q", got)
	}
	waits := client.Task{Parked: &client.Parked{Reason: &client.Error{Message: "out of order"}, Since: "2026-11-26T16:24:54Z", Tries: 3}}
	if got := reasonOf(&waits); !strings.Contains(got, "paused since 2026") || !strings.HasSuffix(got, "tried 3 times: out of order") {
		t.Errorf("a waiting task: %q", got)
	}
}

func TestHiddenKeysAreNotImported(t *testing.T) {
	settings := map[string]any{"embedders": map[string]any{"a": map[string]any{"source": "openAi", "apiKey": "sk-XXXX"}, "b": map[string]any{"source": "userProvided"}}}
	if names := leaveOutHiddenKeys(settings); len(names) != 1 || names[0] != "a" || strings.Contains(fmt.Sprint(settings), "sk-") {
		t.Errorf("%q, %v", names, settings)
	}
}

func TestProgressOfAnImport(t *testing.T) {
	half, whole := func(client.Progress) float64 { return 0.5 }, func(client.Progress) float64 { return 1 }
	for _, tt := range []struct {
		share  func(client.Progress) float64
		before int
		now    client.Progress
		want   string
	}{
		{half, 0, client.Progress{Read: 100, Sent: 50, Done: 40, Waiting: 2}, "i: 50 documents sent, 40 searchable, 5/s, 2 tasks waiting, 20%, 40s left"},
		{half, 40, client.Progress{Read: 100, Sent: 50, Done: 40, Waiting: 2}, "i: 50 documents sent, 40 searchable, 1/s, 2 tasks waiting"},
		{half, 40, client.Progress{Read: 100, Sent: 60, Done: 50, Waiting: 2}, "i: 60 documents sent, 50 searchable, 2/s, 2 tasks waiting, 25%, 2m30s left"},
		{whole, 0, client.Progress{Read: 1000, Sent: 1000, Done: 500, Waiting: 5}, "i: 1000 documents sent, 500 searchable, 100/s, 5 tasks waiting, 50%, 10s left"},
		{whole, 0, client.Progress{Read: 1000, Sent: 1000, Done: 999, Waiting: 1}, "i: 1000 documents sent, 999 searchable, 100/s, 1 tasks waiting, 99%, 0s left"},
		{func(client.Progress) float64 { return 0 }, 0, client.Progress{Read: 100, Sent: 50}, "i: 50 documents sent, 0 searchable, 5/s, 0 tasks waiting"},
	} {
		d := newProgress(new(bytes.Buffer), "i", tt.before, tt.share)
		if got := d.line(tt.now, 10*time.Second); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

// TestIndexesOfHostileSources lists the indexes of servers that ignore the offset, or have invalid indexes.
func TestIndexesOfHostileSources(t *testing.T) {
	for answer, want := range map[string]string{
		`{"results":[{"uid":"a"},{"uid":"b"}],"total":4}`:        "lists the index a twice",
		`{"results":[{"uid":"a"},{"uid":"b"}],"total":2}`:        "lists 4 indexes of 2",
		`{"results":[{"uid":"a"}]}`:                              "lists 1 indexes of 0",
		`{"results":[{"uid":"a"}],"offset":0,"total":9}`:         "from 0, but the offset was 1",
		`{"results":[{"uid":"a/../../keys"}],"total":1}`:         "not a valid index name",
		`{"results":[{"uid":"` + "\\u001b" + `[2J"}],"total":1}`: `"\x1b[2J"`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		c, err := client.New(server.URL, "", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := indexNames(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", answer, err, want)
		}
		server.Close()
	}
}

package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// read returns all documents as they are sent.
func read(d *Documents) (list []string, err error) {
	for {
		document, _, err := d.next(context.Background())
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return list, err
		}
		list = append(list, string(document))
	}
}

// TestDocumentsOfEveryForm writes random documents in every format and compression, and reads them back.
func TestDocumentsOfEveryForm(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 20 {
		type document struct {
			ID   int    `json:"id"`
			Text string `json:"text"`
		}
		documents := make([]document, rng.IntN(50))
		var lines, indented, records bytes.Buffer
		table := csv.NewWriter(&records)
		table.Write([]string{"id", "text"})
		var want []string
		for i := range documents {
			text := strings.Repeat([]string{"word ", "line\n", `"quoted" `, "é,日\\ "}[rng.IntN(4)], rng.IntN(5))
			if rng.IntN(40) == 0 {
				text = strings.Repeat("x", bufferBytes+rng.IntN(100))
			}
			documents[i] = document{i, text}
			b, _ := json.Marshal(documents[i])
			want = append(want, string(b))
			fmt.Fprintf(&lines, "%s%s", b, []string{"\n", "\r\n", "\n\n"}[rng.IntN(3)])
			pretty, _ := json.MarshalIndent(documents[i], "", "  ")
			fmt.Fprintf(&indented, "%s\n", pretty)
			table.Write([]string{fmt.Sprint(i), text})
		}
		table.Flush()
		array, _ := json.MarshalIndent(documents, "", "\t")
		for _, form := range []struct {
			name string
			text []byte
		}{{"a.ndjson", lines.Bytes()}, {"a.json", array}, {"b.json", indented.Bytes()}, {"a.csv", records.Bytes()}} {
			text := form.text
			if round%2 == 0 {
				text = append([]byte("\xef\xbb\xbf"), text...)
			}
			name := form.name
			switch rng.IntN(3) {
			case 0:
				var b bytes.Buffer
				z := gzip.NewWriter(&b)
				z.Write(text)
				z.Close()
				name, text = name+".gz", b.Bytes()
			case 1:
				z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<17))
				name, text = name+".zst", z.EncodeAll(text, nil)
			}
			format := FormatOf(name)
			if rng.IntN(2) == 0 {
				format = Detect
			}
			d, err := Open(bytes.NewReader(text), format, "")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := read(d)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if strings.Contains(name, ".csv") {
				rows, err := csv.NewReader(strings.NewReader(string(d.head) + strings.Join(got, ""))).ReadAll()
				if err != nil || len(rows) != len(documents)+1 {
					t.Fatalf("%s: %d records, %v", name, len(rows), err)
				}
				got = nil
				for i, row := range rows[1:] {
					b, _ := json.Marshal(document{i, row[1]})
					got = append(got, string(b))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s (%q): %q, want %q", name, format, got, want)
			}
		}
	}
}

func TestDocumentsThatAreCut(t *testing.T) {
	for name, text := range map[string]string{
		"a.json": `[{"id":1},{"id":2}`, "b.json": `[{"id":1}] x`, "a.csv": "id,text\n1,\"open\n", "c.json": `{"id":1} {"id":`,
	} {
		d, err := Open(strings.NewReader(text), FormatOf(name), "")
		if err != nil {
			t.Fatal(err)
		}
		if list, err := read(d); err == nil {
			t.Errorf("%s: %q and no error", text, list)
		}
	}
	if _, err := Open(strings.NewReader("\x1f\x8b\x00\x00nothing"), Detect, ""); err == nil {
		t.Error("damaged gzip is accepted")
	}
}

// fakeServer accepts documents, one task per request, and fails now and then.
type fakeServer struct {
	*httptest.Server
	mu       sync.Mutex
	random   *rand.Rand
	tasks    []string // the documents of each
	largest  int      // largest body
	refused  map[int]int
	polled   map[string]int
	failing  string // a task with this text fails
	requests int
}

func newFakeServer(t *testing.T, seed uint64) *fakeServer {
	f := &fakeServer{random: rand.New(rand.NewPCG(seed, 3)), largest: 1 << 20, refused: map[int]int{}, polled: map[string]int{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	body, _ := io.ReadAll(r.Body)
	if uid, ok := strings.CutPrefix(r.URL.Path, "/tasks/"); ok {
		var n int
		fmt.Sscan(uid, &n)
		if n >= len(f.tasks) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		f.polled[uid]++
		status, reason := "processing", "null"
		if f.polled[uid] > 2 {
			status = "succeeded"
			if f.failing != "" && strings.Contains(f.tasks[n], f.failing) {
				status, reason = "failed", `{"message": "no id", "code": "missing_document_id"}`
			}
		}
		fmt.Fprintf(w, `{"uid": %s, "indexUid": "i", "status": %q, "enqueuedAt": "at %s", "error": %s}`, uid, status, uid, reason)
		return
	}
	if r.Method == http.MethodGet {
		fmt.Fprint(w, `{}`)
		return
	}
	if len(body) > f.largest {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		fmt.Fprint(w, `{"message": "too large", "code": "payload_too_large"}`)
		return
	}
	if f.random.IntN(4) == 0 {
		status := []int{429, 503, 502, 504}[f.random.IntN(4)]
		f.refused[status]++
		w.WriteHeader(status)
		return
	}
	f.tasks = append(f.tasks, string(body))
	if f.random.IntN(6) == 0 { // the task is accepted, but the answer is lost
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
		f.refused[0]++
		return
	}
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"taskUid": %d, "enqueuedAt": "at %d"}`, len(f.tasks)-1, len(f.tasks)-1)
}

// TestImportAgainstAnUnreliableServer imports through refusals, lost answers and too large bodies, and is killed at random. In the end the
// server must have every document in order, and twice only those whose answer was lost.
func TestImportAgainstAnUnreliableServer(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	unwell := 0
	for range 4 {
		f := newFakeServer(t, rng.Uint64())
		f.largest = 150
		var file strings.Builder
		const documents = 200
		for i := range documents {
			fmt.Fprintf(&file, "{\"id\":%d}\n", i)
		}
		c, err := New(f.URL, "", false)
		if err != nil {
			t.Fatal(err)
		}
		c.first = time.Millisecond
		var at Checkpoint
		for stops := 0; ; stops++ {
			d, err := Open(strings.NewReader(file.String()), NDJSON, "")
			if err != nil {
				t.Fatal(err)
			}
			known, err := c.Known(t.Context(), "i", at)
			if err != nil || !known {
				t.Fatalf("the checkpoint %+v is not recognized: %v", at, err)
			}
			ctx, stop := context.WithCancel(t.Context())
			left := 3 + rng.IntN(10)
			o := Import{Index: "i", BatchBytes: 80 + rng.IntN(160), MaxTasks: 3, Save: func(now Checkpoint) error {
				if left--; left == 0 && stops < 4 {
					stop() // killed before this checkpoint is saved
					return ctx.Err()
				}
				at = now
				return nil
			}}
			last, err := o.Run(ctx, c, d, at)
			stop()
			if err == nil {
				if last.Done != documents || last.Sent != documents {
					t.Errorf("%+v at the end", last)
				}
				break
			}
			if stops >= 4 {
				t.Fatal(err)
			}
		}
		seen := map[int]int{}
		newest := -1
		for _, body := range f.tasks {
			for line := range strings.Lines(body) {
				var d struct{ ID int }
				if err := json.Unmarshal([]byte(line), &d); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if d.ID > newest+1 {
					t.Errorf("document %d comes after %d", d.ID, newest)
				}
				newest = max(newest, d.ID)
				seen[d.ID]++
			}
		}
		if len(seen) != documents {
			t.Errorf("%d documents of %d", len(seen), documents)
		}
		unwell += len(f.refused)
	}
	if unwell < 4 {
		t.Errorf("only %d kinds of refusals", unwell)
	}
}

func TestImportStopsAtAFailedTask(t *testing.T) {
	f := newFakeServer(t, 1)
	f.failing = `"bad"`
	c, err := New(f.URL, "", false)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(strings.NewReader("{\"id\":1}\n{\"bad\":2}\n{\"id\":3}\n"), Detect, "")
	if err != nil {
		t.Fatal(err)
	}
	at := Checkpoint{Sent: 7}
	o := Import{Index: "i", BatchBytes: 1, MaxTasks: 1, Save: func(now Checkpoint) error { at = now; return nil }}
	if _, err := o.Run(t.Context(), c, d, Checkpoint{}); err == nil || !strings.Contains(err.Error(), "documents 2 to 2") || !strings.Contains(err.Error(), "no id") {
		t.Errorf("%v", err)
	}
	if at.Sent != 0 {
		t.Errorf("the next import would begin after document %d", at.Sent)
	}
}

func TestACheckpointOfAnotherServerIsRefused(t *testing.T) {
	f := newFakeServer(t, 2)
	c, err := New(f.URL, "", false)
	if err != nil {
		t.Fatal(err)
	}
	f.tasks = []string{"a", "b"}
	portion := func(uid int64, at string) Portion { return Portion{Enqueued: Enqueued{TaskUID: uid, EnqueuedAt: at}} }
	for _, tt := range []struct {
		at    Checkpoint
		known bool
	}{
		{Checkpoint{}, true},
		{Checkpoint{Sent: 5}, false},
		{Checkpoint{Sent: 5, Tasks: []Portion{portion(1, "at 1")}}, true},
		{Checkpoint{Sent: 5, Tasks: []Portion{portion(1, "another time")}}, false},
		{Checkpoint{Sent: 5, Tasks: []Portion{portion(9, "at 9")}}, false},
	} {
		if known, err := c.Known(t.Context(), "i", tt.at); err != nil || known != tt.known {
			t.Errorf("%+v: %v %v", tt.at, known, err)
		}
	}
	if known, _ := c.Known(t.Context(), "other", Checkpoint{Sent: 5, Tasks: []Portion{portion(1, "at 1")}}); known {
		t.Error("a checkpoint with a task of another index is accepted")
	}
}

// TestNoServerAnswers checks that requests fail soon if no server has ever answered, and are retried if one has.
func TestNoServerAnswers(t *testing.T) {
	f := newFakeServer(t, 4)
	c, err := New(f.URL, "", false)
	if err != nil {
		t.Fatal(err)
	}
	c.first, c.Patience = time.Millisecond, time.Hour
	waits := 0
	c.Waiting = func(error, time.Duration) { waits++ }
	f.Close()
	const patience = 20 * time.Millisecond
	for c.FirstPatience = patience; waits == 0; c.FirstPatience *= 2 { // the first try may take longer than that
		if err := c.Call(t.Context(), http.MethodGet, "/indexes/i", nil, nil); err == nil || !strings.Contains(err.Error(), "no server answers at "+f.URL) || c.FirstPatience > time.Minute {
			t.Fatalf("after %d waits: %v", waits, err)
		}
	}
	c.FirstPatience = patience
	c.reached.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	waits = 0
	c.Waiting = func(error, time.Duration) {
		if waits++; waits == 8 { // longer than the first patience lasts
			stop()
		}
	}
	if err := c.Call(ctx, http.MethodGet, "/indexes/i", nil, nil); waits != 8 || !errors.Is(err, context.Canceled) {
		t.Errorf("after %d waits: %v", waits, err)
	}
}

func TestAnEmptyImport(t *testing.T) {
	f := newFakeServer(t, 5)
	c, err := New(f.URL, "", false)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.json": "[]", "b.json": " ", "c.ndjson": "\n", "d.csv": "id,t\n"} {
		d, err := Open(strings.NewReader(text), FormatOf(name), "")
		if err != nil {
			t.Fatal(err)
		}
		o := Import{Index: "i", BatchBytes: 100}
		if _, err := o.Run(t.Context(), c, d, Checkpoint{}); !errors.Is(err, ErrNoDocuments) || f.requests > 0 {
			t.Errorf("%s: %v, %d requests", name, err, f.requests)
		}
	}
}

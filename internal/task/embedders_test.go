package task

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/embed"
	"svc/internal/index"
	"svc/internal/outbound"
	"svc/internal/vfs"
)

// provider embeds texts. A text with the word dead gets an error. A text with the word hangs is answered only when the provider is
// released or the request is canceled.
type provider struct {
	*httptest.Server
	asked   atomic.Int64
	revived atomic.Bool // no text gets an error any more
	hanging chan struct{}
}

func newProvider(t *testing.T) *provider {
	p := &provider{hanging: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		var body struct{ Text string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		switch {
		case strings.Contains(body.Text, "hangs"):
			select {
			case <-p.hanging:
			case <-r.Context().Done():
			}
		case strings.Contains(body.Text, "dead") && !p.revived.Load():
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprint(w, `{"vector":[1,2]}`)
	}))
	t.Cleanup(p.Close)
	return p
}

// embedding is a queue over indexes that have an embedder.
type embedding struct {
	t *testing.T
	*Queue
	p *provider
}

func newEmbedding(t *testing.T, o Options) *embedding {
	dir := t.TempDir()
	pool := embed.New(embed.Options{Policy: outbound.Any()})
	c, err := index.OpenCatalog(filepath.Join(dir, "indexes"), index.Options{FS: vfs.OS, MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 1, Embedders: pool})
	if err != nil {
		t.Fatal(err)
	}
	o.Dir, o.Catalog, o.MaxBatchTasks, o.MaxBatchBytes, o.noSync, o.Executors = dir, c, -1, -1, true, executors()
	q, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	e := &embedding{t: t, Queue: q, p: newProvider(t)}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func (e *embedding) settings(uid, template string) *Task {
	u := mustUpdate(e.t, fmt.Sprintf(`{"embedders":{"e":{"source":"rest","url":%q,"request":{"text":"{{text}}"},"response":{"vector":"{{embedding}}"},"dimensions":2,"documentTemplate":%q}}}`,
		e.p.URL, template))
	return enqueue(e.t, e.Queue, New{IndexUID: uid, Content: UpdateSettings{Update: u, MayCreate: true}})
}

// add adds a document whose text is embedded.
func (e *embedding) add(uid string) *Task {
	return enqueue(e.t, e.Queue, adding(e.t, e.Queue, uid, AddDocuments{MayCreate: true, PrimaryKey: "id"}, "1"))
}

// parked waits until a task is parked for its embedder.
func (e *embedding) parked(uid uint32, status Status) *Task {
	e.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		task, err := e.Task(uid, nil)
		if err != nil {
			e.t.Fatal(err)
		}
		if task.Status.Finished() {
			e.t.Fatalf("task %d: %s", uid, task.AppendJSON(nil))
		}
		if task.parked != nil && task.Status == status {
			return task
		}
	}
	e.t.Fatalf("task %d is not parked", uid)
	return nil
}

func (e *embedding) ends(task *Task, want Status) *Task {
	e.t.Helper()
	got := wait(e.t, e.Queue, task.UID)
	if got.Status != want {
		e.t.Fatalf("task %s, want %v", got.AppendJSON(nil), want)
	}
	return got
}

// TestAFailingEmbedderHoldsBackItsIndexOnly checks that a failing embedder holds back only its own index, and that this is reported. If a
// task arrives that must run first, the batch starts again later, with its remaining retries.
func TestAFailingEmbedderHoldsBackItsIndexOnly(t *testing.T) {
	e := newEmbedding(t, Options{})
	e.ends(e.settings("a", "dead"), Succeeded)
	began := time.Now().Add(-time.Second)
	first := e.add("a")
	shown := e.parked(first.UID, Processing)
	behind := e.add("a") // the batch has started without this task
	var object struct {
		Parked struct {
			Reason           struct{ Message, Code string }
			Since, NextTryAt time.Time
			Tries            int
		}
	}
	if err := json.Unmarshal(shown.AppendJSON(nil), &object); err != nil {
		t.Fatal(err)
	}
	p := object.Parked
	if p.Reason.Code != "vector_embedding_error" || !strings.Contains(p.Reason.Message, "status 502") || p.Since.Before(began) || !p.Since.Before(p.NextTryAt) || p.Tries == 0 {
		t.Errorf("the batch is shown as %s", shown.AppendJSON(nil))
	}
	if list := e.Parked(); len(list) != 1 || list[0].IndexUID != "a" || !list[0].Since.Equal(p.Since) {
		t.Errorf("parked: %+v", list)
	}
	e.parked(behind.UID, Enqueued)
	batch := e.roster.running[0].batch()
	if r := batch.Stats.Requests; r == nil || r.LastError == "" || r.Failed != r.Total {
		t.Errorf("the batch has the requests %+v", r)
	}

	e.ends(e.add("b"), Succeeded)
	e.ends(enqueue(t, e.Queue, New{Content: CreateDump{}}), Succeeded)
	e.ends(e.add("b"), Succeeded)
	again := e.parked(first.UID, Enqueued)
	if again.parked.retries == 0 || !again.parked.since.Equal(p.Since) {
		t.Errorf("after it made way, the batch is parked as %+v since %v", again.parked, p.Since)
	}
	later := e.parked(first.UID, Processing)
	if later.parked.retries <= again.parked.retries || !later.parked.since.Equal(p.Since) {
		t.Errorf("after a retry, the batch is parked as %+v, before as %+v", later.parked, again.parked)
	}

	now := time.Now()
	cancel := enqueue(t, e.Queue, New{Content: CancelTasks{"?uids=1", []uint32{first.UID}}})
	e.ends(cancel, Succeeded)
	e.ends(first, Canceled)
	if took := time.Since(now); took > 20*time.Second { // the next retry is more than a minute away
		t.Errorf("the cancelation took %v", took)
	}
	e.p.revived.Store(true)
	e.ends(behind, Succeeded)
	if list := e.Parked(); len(list) != 0 {
		t.Errorf("parked at the end: %+v", list)
	}
}

// TestRemovingAnEmbedderDoesNotWaitForIt checks that new settings and the deletion of an index do not wait for the embedder
// that they remove.
func TestRemovingAnEmbedderDoesNotWaitForIt(t *testing.T) {
	e := newEmbedding(t, Options{})
	documents := func() *Task {
		e.ends(e.settings("a", "dead"), Succeeded)
		return e.add("a")
	}
	settings := func() *Task {
		e.ends(e.settings("a", "alive"), Succeeded)
		e.ends(e.add("a"), Succeeded)
		return e.settings("a", "dead")
	}
	for name, c := range map[string]struct {
		waits, does func() *Task
	}{
		"settings":         {settings, func() *Task { return e.settings("a", "alive again") }},
		"no documents":     {documents, func() *Task { return enqueue(t, e.Queue, New{IndexUID: "a", Content: ClearDocuments{}}) }},
		"no index":         {documents, func() *Task { return enqueue(t, e.Queue, New{IndexUID: "a", Content: DeleteIndex{}}) }},
		"no documents yet": {settings, func() *Task { return enqueue(t, e.Queue, New{IndexUID: "a", Content: ClearDocuments{}}) }},
	} {
		t.Run(name, func(t *testing.T) {
			task := c.waits()
			e.parked(task.UID, Processing)
			e.ends(c.does(), Succeeded)
			e.ends(task, Succeeded)
			wait(t, e.Queue, enqueue(t, e.Queue, New{IndexUID: "a", Content: DeleteIndex{}}).UID)
		})
	}
}

// TestAHangingEmbedderHoldsBackItsIndexOnly checks that a slow embedder holds back neither other indexes nor the queue.
func TestAHangingEmbedderHoldsBackItsIndexOnly(t *testing.T) {
	e := newEmbedding(t, Options{})
	e.ends(e.settings("a", "hangs"), Succeeded)
	task := e.add("a")
	e.ends(e.add("b"), Succeeded)
	dump := enqueue(t, e.Queue, New{Content: CreateDump{}})
	e.ends(e.add("b"), Succeeded)
	for _, uid := range []uint32{task.UID, dump.UID} {
		if got, err := e.Task(uid, nil); err != nil || got.Status.Finished() {
			t.Errorf("task %v, %v", got, err)
		}
	}
	close(e.p.hanging)
	e.ends(task, Succeeded)
	e.ends(dump, Succeeded)
}

// TestManyFailingEmbedders checks that the queue goes on however many embedders fail, and that few batches stay in memory.
func TestManyFailingEmbedders(t *testing.T) {
	e := newEmbedding(t, Options{})
	var tasks []*Task
	for i := range maxAway + 3 {
		uid := fmt.Sprint("dead", i)
		e.ends(e.settings(uid, "dead"), Succeeded)
		tasks = append(tasks, e.add(uid))
	}
	for range 3 {
		e.ends(e.add("b"), Succeeded)
		e.roster.mu.RLock()
		if n := len(e.roster.running); n > maxAway+2 {
			t.Errorf("%d batches run", n)
		}
		e.roster.mu.RUnlock()
	}
	e.p.revived.Store(true)
	for _, task := range tasks {
		enqueue(t, e.Queue, New{IndexUID: task.IndexUID, Content: DeleteIndex{}})
	}
	for _, task := range tasks {
		wait(t, e.Queue, task.UID)
	}
}

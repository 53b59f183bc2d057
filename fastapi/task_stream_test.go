package fastapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"svc/internal/task"
)

// newStreaming starts an instance on a port with the feature enabled.
func newStreaming(t *testing.T, o Options) *client {
	t.Helper()
	openInstance(t, &o)
	c := newTCPClient(t, o)
	if o.Keys != nil {
		c.key = masterKey
	}
	c.json("PATCH", "/experimental-features", `{"tasksStreamingRoute": true}`)
	return c
}

// events opens a stream and returns a function that waits for the data of its next event.
func (c *client) events(path string) (next func() (string, error), res *http.Response) {
	c.t.Helper()
	req, err := http.NewRequest("GET", "http://svc"+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	if res, err = c.http.Do(req); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != contentEvents {
		b, _ := io.ReadAll(res.Body)
		c.t.Fatalf("%s: %d %v %s", path, res.StatusCode, res.Header, b)
	}
	lines := bufio.NewReader(res.Body)
	return func() (string, error) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return "", err
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				return strings.TrimSuffix(data, "\n"), nil
			}
		}
	}, res
}

// seen is the part of a task or a batch that tests check.
type seen struct {
	UID        int
	IndexUID   string
	Status     string
	FinishedAt *string
}

// until reads events up to the end of a task or batch, and returns all of them.
func (c *client) until(next func() (string, error), uid int) (all []seen, last string) {
	c.t.Helper()
	for {
		data, err := next()
		if err != nil {
			c.t.Fatalf("the stream ends before task %d: %v, %+v", uid, err, all)
		}
		var s seen
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			c.t.Fatalf("%v: %s", err, data)
		}
		if all = append(all, s); s.UID == uid && s.FinishedAt != nil {
			return all, data
		}
	}
}

// TestTaskStream follows tasks and batches: the states of each must come in order, the last one must be that of the lists, and filters
// must leave out the same.
func TestTaskStream(t *testing.T) {
	c := newStreaming(t, Options{})
	c.json("PATCH", "/experimental-features", `{"tasksStreamingRoute": false}`)
	for _, path := range []string{"/tasks/stream", "/batches/stream"} {
		if r := c.get(path); r.code() != "feature_not_enabled" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := c.json("PATCH", "/experimental-features", `{"tasksStreamingRoute": true}`); !strings.Contains(r.body, `"tasksStreamingRoute":true`) {
		t.Errorf("%s", r.body)
	}
	for query, code := range map[string]string{"uids=x": "invalid_task_uids", "statuses=x": "invalid_task_statuses", "limit=1": "bad_request", "afterEnqueuedAt=x": "invalid_task_after_enqueued_at"} {
		if r := c.get("/tasks/stream?" + query); r.code() != code {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
	if r := c.send("HEAD", "/tasks/stream", nil); r.status != 200 || r.header.Get("Content-Type") != contentEvents {
		t.Errorf("HEAD: %d %v", r.status, r.header)
	}
	c.wait(c.json("POST", "/indexes", `{"uid": "before"}`)) // earlier tasks are not streamed
	tasks, _ := c.events("/tasks/stream")
	batches, _ := c.events("/batches/stream")
	failed, _ := c.events("/tasks/stream?statuses=failed&indexUids=films")
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1}]`))
	c.wait(c.json("POST", "/indexes", `{"uid": "films"}`)) // the index exists, so this fails
	order := map[string]int{"enqueued": 0, "processing": 1, "succeeded": 2, "failed": 2}
	all, last := c.until(tasks, 2)
	at := map[int]int{}
	for _, s := range all {
		before, again := at[s.UID]
		if s.UID == 0 || again && order[s.Status] <= before {
			t.Errorf("states out of order: %+v", all)
		}
		at[s.UID] = order[s.Status]
	}
	if at[1] != 2 {
		t.Errorf("task 1 has no end: %+v", all)
	}
	if r := c.get("/tasks/2"); r.body != last {
		t.Errorf("streamed %s, shown %s", last, r.body)
	}
	if _, last := c.until(batches, 2); c.get("/batches/2").body != last {
		t.Errorf("streamed %s, shown %s", last, c.get("/batches/2").body)
	}
	if all, _ := c.until(failed, 2); len(all) != 1 {
		t.Errorf("the filter passes %+v", all)
	}
	c.json("PATCH", "/experimental-features", `{"tasksStreamingRoute": false}`)
	c.wait(c.json("POST", "/indexes", `{"uid": "films"}`))
	if data, err := tasks(); err == nil {
		t.Errorf("the stream continues without the feature: %s", data)
	}
}

// TestTaskStreamRights checks that a key for some indexes gets only their tasks, and nothing once it is deleted.
func TestTaskStreamRights(t *testing.T) {
	c := newStreaming(t, Options{Keys: openKeys(t, masterKey)})
	for key, want := range map[string]int{c.makeKey(`["search"]`, `["*"]`): 403, c.makeKey(`["tasks.get"]`, `["mine"]`): 200, "": 401} {
		if r := c.as(key).send("HEAD", "/tasks/stream", nil); r.status != want {
			t.Errorf("key %q: %d, want %d", key, r.status, want)
		}
	}
	key := c.makeKey(`["tasks.get"]`, `["mine"]`)
	tasks, _ := c.as(key).events("/tasks/stream")
	batches, _ := c.as(key).events("/batches/stream")
	c.wait(c.json("POST", "/indexes/theirs/documents", `[{"id": 1}]`))
	c.wait(c.send("POST", "/tasks/cancel?uids=99", nil)) // a task without an index
	c.wait(c.json("POST", "/indexes/mine/documents", `[{"id": 1}]`))
	all, _ := c.until(tasks, 2)
	for _, s := range all {
		if s.IndexUID != "mine" {
			t.Errorf("got %+v", s)
		}
	}
	if all, _ := c.until(batches, 2); all[0].UID != 2 {
		t.Errorf("got %+v", all)
	}
	if r := c.send("DELETE", "/keys/"+key, nil); r.status != 204 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	c.wait(c.json("POST", "/indexes/mine/documents", `[{"id": 2}]`))
	if data, err := tasks(); err == nil {
		t.Errorf("a deleted key gets: %s", data)
	}
}

// TestTaskStreamEnds checks that a stream ends with the server and with its client.
func TestTaskStreamEnds(t *testing.T) {
	c := newStreaming(t, Options{})
	_, left := c.events("/tasks/stream")
	tasks, _ := c.events("/tasks/stream")
	batches, _ := c.events("/batches/stream")
	if n := c.server.taskStreams.Load(); n != 3 {
		t.Errorf("%d streams", n)
	}
	left.Body.Close()
	for deadline := time.Now().Add(time.Minute); c.server.taskStreams.Load() != 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a stream without a client continues")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.server.Shutdown(ctx); err != nil {
		t.Errorf("the server does not stop: %v", err)
	}
	for _, next := range []func() (string, error){tasks, batches} {
		if data, err := next(); err != io.EOF {
			t.Errorf("%s %v", data, err)
		}
	}
	if n := c.server.taskStreams.Load(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

// blocked is a client that reads nothing until it is released.
type blocked struct {
	writing, read chan struct{}
	got           bytes.Buffer
}

func (b *blocked) Write(p []byte) (int, error) {
	select {
	case b.writing <- struct{}{}:
	default:
	}
	<-b.read
	return b.got.Write(p)
}

// TestSlowReaderOfTasks checks that a slow reader gets the last state of each task once, and meanwhile holds no search slot and no
// transaction of the queue, whose file must not grow.
func TestSlowReaderOfTasks(t *testing.T) {
	c := newStreaming(t, Options{Searches: 1})
	w := c.server.queue.WatchTasks()
	defer w.Close()
	slow := &blocked{writing: make(chan struct{}, 1), read: make(chan struct{})}
	ctx, end := context.WithCancel(context.Background())
	const n = 50
	done, all := make(chan error, 1), make(chan struct{})
	ended := map[uint32]bool{}
	go func() {
		done <- sendChanges(ctx, c.server, &eventStream{bufio.NewWriter(slow)}, w, func() ([]*task.Task, error) {
			tasks, err := c.server.queue.ChangedTasks(w, task.Filter{})
			before := len(ended)
			for _, task := range tasks {
				if task.UID > 0 && task.Status.Finished() {
					ended[task.UID] = true
				}
			}
			if before < n && len(ended) == n {
				close(all)
			}
			return tasks, err
		})
	}()
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1}]`))
	<-slow.writing
	for range n {
		c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1}]`))
	}
	if _, running, _ := c.server.slots.now(); running != 0 {
		t.Errorf("%d searches run", running)
	}
	if r := c.json("POST", "/indexes/i/search", `{}`); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	close(slow.read)
	<-all
	end() // what was read is still sent
	if err := <-done; err != nil {
		t.Error(err)
	}
	times := map[int]int{}
	for event := range strings.SplitSeq(strings.TrimSuffix(slow.got.String(), "\n\n"), "\n\n") {
		var s seen
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &s); err != nil {
			t.Fatalf("%v: %q", err, event)
		}
		times[s.UID]++
		if s.UID > 0 && s.Status != "succeeded" {
			t.Errorf("an old state of task %d: %+v", s.UID, s)
		}
	}
	for uid := 1; uid <= n; uid++ {
		if times[uid] != 1 {
			t.Errorf("task %d was sent %d times", uid, times[uid])
		}
	}
}

// TestHeartbeats checks that heartbeats are comments, which event readers ignore.
func TestHeartbeats(t *testing.T) {
	var out bytes.Buffer
	e := &eventStream{bufio.NewWriter(&out)}
	if err := e.comment(); err != nil || out.String() != ":\n\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}

// TestThousandTaskStreams opens the largest number of streams: they must use bounded memory, all must get a task, and one more
// must be refused.
func TestThousandTaskStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand connections")
	}
	c := newStreaming(t, Options{})
	addr := c.server.serving.listener.Addr().String()
	inUse := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapInuse + s.StackInuse)
	}
	before := inUse()
	conns := make([]net.Conn, maxTaskStreams)
	for i := range conns {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET /tasks/stream HTTP/1.1\r\nHost: svc\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
	}
	for deadline := time.Now().Add(time.Minute); c.server.taskStreams.Load() < maxTaskStreams; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d streams are open", c.server.taskStreams.Load())
		}
	}
	if r := c.get("/tasks/stream"); r.code() != "too_many_search_requests" {
		t.Errorf("one more: %d %s", r.status, r.body)
	}
	took := inUse() - before
	t.Logf("%d streams take %d KiB", maxTaskStreams, took>>10)
	if limit := int64(100 << 20); took > limit {
		t.Errorf("%d streams take %d bytes, more than %d", maxTaskStreams, took, limit)
	}
	c.wait(c.json("POST", "/indexes", `{"uid": "i"}`))
	for i, conn := range conns {
		lines := bufio.NewScanner(conn)
		for lines.Scan() && !strings.Contains(lines.Text(), `"status":"succeeded"`) {
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
}

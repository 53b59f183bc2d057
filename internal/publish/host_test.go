package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"svc/internal/auth"
	"svc/internal/bucket"
	"svc/internal/group"
	"svc/internal/index"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/segment"
)

func TestMain(m *testing.M) {
	keyRounds = 10
	os.Exit(m.Run())
}

const masterKey = "a master key of the tests"

// host is a data directory that is published.
type host struct {
	t       *testing.T
	dir     string
	store   bucket.Store
	options func(*Options)
	w       *group.Writer
	catalog *index.Catalog
	keys    *auth.Keys
	queue   *task.Queue
	pub     *Publisher
	v       int // value of the next documents
}

func newHost(t *testing.T, store bucket.Store, options func(*Options)) *host {
	t.Helper()
	h := &host{t: t, dir: filepath.ToSlash(t.TempDir()), store: store, options: options}
	if err := os.WriteFile(path.Join(h.dir, "VERSION"), []byte("svc 4 test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	t.Cleanup(h.stop)
	return h
}

func (h *host) start() {
	h.t.Helper()
	must := func(err error) {
		if err != nil {
			h.t.Helper()
			h.t.Fatal(err)
		}
	}
	var err error
	h.w, err = group.OpenWriter(group.WriterOptions{FS: vfs.OS, Dir: h.dir, MasterKey: masterKey, Format: "4", Version: "1", Logger: slog.New(slog.DiscardHandler), LogBytes: 1 << 20})
	must(err)
	files := h.w.FS()
	h.catalog, err = index.OpenCatalog(path.Join(h.dir, "indexes"), index.Options{FS: files, MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 1})
	must(err)
	h.keys, err = auth.Open(auth.Options{File: path.Join(h.dir, "auth.db"), FS: files, MasterKey: masterKey})
	must(err)
	h.queue, err = task.Open(task.Options{Dir: path.Join(h.dir, "tasks"), FS: files, Catalog: h.catalog, MaxBatchTasks: 3, MaxBatchBytes: -1, Concurrent: 2})
	must(err)
	h.publish()
}

func (h *host) publish() {
	o := Options{
		Store: h.store, Feed: h.w.Feed(), Stores: h, MasterKey: masterKey, Keep: time.Hour, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Interval: time.Millisecond, backoff: time.Millisecond,
	}
	if h.options != nil {
		h.options(&o)
	}
	h.pub = Start(o)
}

func (h *host) stop() {
	if h.w == nil {
		return
	}
	for _, close := range []func() error{h.pub.Close, h.queue.Close, h.keys.Close, h.catalog.Close, h.w.Close} {
		if err := close(); err != nil {
			h.t.Error(err)
		}
	}
	h.w = nil
}

func (h *host) CopyQueue(name string, with func([]string) error) error {
	payloads, release, err := h.queue.CopyTo(name, nil, true)
	if err != nil {
		return err
	}
	defer release()
	for i := range payloads {
		payloads[i] = strings.TrimPrefix(payloads[i], h.dir+"/")
	}
	return with(payloads)
}

func (h *host) CopyKeys(name string) error {
	return h.keys.Copy(func(_ int64, write func(io.Writer) error) error {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return write(f)
	})
}

// step makes a random change.
func (h *host) step(r *rand.Rand) {
	h.t.Helper()
	uid := []string{"a", "b"}[r.IntN(2)]
	enqueue := func(c task.Content, p *task.Payload) {
		if _, err := h.queue.Enqueue(context.Background(), task.New{IndexUID: uid, Content: c, Payload: p}); err != nil {
			h.t.Fatal(err)
		}
	}
	switch n := r.IntN(12); {
	case n < 7:
		p, err := h.queue.NewPayload()
		if err != nil {
			h.t.Fatal(err)
		}
		h.v++
		count := 1 + r.IntN(4)
		for range count {
			fmt.Fprintf(p, "{\"id\":\"%d\",\"v\":%d}\n", r.IntN(20), h.v)
		}
		enqueue(task.AddDocuments{MayCreate: true, Documents: count}, p)
	case n < 9:
		enqueue(task.DeleteDocuments{IDs: []string{fmt.Sprint(r.IntN(20))}}, nil)
	case n < 10:
		enqueue(task.DeleteIndex{}, nil)
	case n < 11:
		enqueue(task.CompactIndex{}, nil)
	default:
		enqueue(task.ClearDocuments{}, nil)
	}
}

// put enqueues a document of the index a.
func (h *host) put(id, v int) {
	h.t.Helper()
	p, err := h.queue.NewPayload()
	if err == nil {
		fmt.Fprintf(p, "{\"id\":\"%d\",\"v\":%d}\n", id, v)
		_, err = h.queue.Enqueue(context.Background(), task.New{IndexUID: "a", Content: task.AddDocuments{MayCreate: true, Documents: 1}, Payload: p})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// idle waits until all tasks have ended.
func (h *host) idle() {
	h.t.Helper()
	await(h.t, "the tasks end", func() bool { return unfinished(h.t, h.queue) == 0 })
}

// published waits until a position is published.
func (h *host) published(p group.Position) {
	h.t.Helper()
	await(h.t, "the position is published", func() bool {
		at, err := group.ParsePosition(h.pub.Status().Position)
		return err == nil && at.Compare(p) >= 0
	})
}

// goOn makes n random changes, and waits until they are published.
func (h *host) goOn(r *rand.Rand, n int) {
	h.t.Helper()
	for range n {
		h.step(r)
	}
	h.idle()
	h.published(h.w.Position())
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// documents returns the documents of all indexes: uid → id → v.
func documents(t *testing.T, catalog *index.Catalog) map[string]map[string]int {
	t.Helper()
	all := map[string]map[string]int{}
	for _, uid := range catalog.UIDs() {
		all[uid] = map[string]int{}
		v, err := catalog.Get(uid).View()
		if err == nil {
			err = v.EachDocument(nil, func(_ int, _ segment.Row, doc []byte) error {
				var d struct {
					ID string `json:"id"`
					V  int    `json:"v"`
				}
				err := json.Unmarshal(doc, &d)
				all[uid][d.ID] = d.V
				return err
			})
			v.Release()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// restored restores a target. It returns the documents after all tasks have ended, and the numbers of tasks, keys and unfinished tasks.
func restored(t *testing.T, store bucket.Store, target Target) (map[string]map[string]int, [3]int) {
	t.Helper()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := path.Join(filepath.ToSlash(t.TempDir()), "restored")
	if _, err := a.Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: dir, Target: target, pause: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	catalog, err := index.OpenCatalog(path.Join(dir, "indexes"), index.Options{FS: vfs.OS, MaxIndexingThreads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer catalog.Close()
	open := func(batch int) *task.Queue {
		t.Helper()
		queue, err := task.Open(task.Options{FS: vfs.OS, Dir: path.Join(dir, "tasks"), Catalog: catalog, MaxBatchTasks: batch, MaxBatchBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		return queue
	}
	queue := open(0) // which runs no task
	waiting := unfinished(t, queue)
	if err := queue.Close(); err != nil {
		t.Fatal(err)
	}
	queue = open(3)
	defer queue.Close()
	keys, err := auth.Open(auth.Options{FS: vfs.OS, File: path.Join(dir, "auth.db"), MasterKey: masterKey})
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	all, err := queue.Tasks(task.Filter{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the restored tasks end", func() bool { return unfinished(t, queue) == 0 })
	return documents(t, catalog), [3]int{int(all.Total), len(keys.List()), waiting}
}

// unfinished returns how many tasks have not ended.
func unfinished(t *testing.T, queue *task.Queue) int {
	t.Helper()
	l, err := queue.Tasks(task.Filter{Statuses: []task.Status{task.Enqueued, task.Processing}, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	return int(l.Total)
}

// restoredAlone restores single indexes of a target, and compares them with the whole target.
func restoredAlone(t *testing.T, store bucket.Store, target Target, want map[string]map[string]int) {
	t.Helper()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []string{"a", "b"} {
		dir := path.Join(filepath.ToSlash(t.TempDir()), "restored")
		_, err := a.Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: dir, Target: target, Index: uid, pause: time.Millisecond})
		if want[uid] == nil {
			if err == nil || !strings.Contains(err.Error(), "there is no index "+uid) {
				t.Errorf("a missing index is restored: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		catalog, err := index.OpenCatalog(path.Join(dir, "indexes"), index.Options{FS: vfs.OS, MaxIndexingThreads: 1, Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := documents(t, catalog); !reflect.DeepEqual(got, map[string]map[string]int{uid: want[uid]}) {
			t.Errorf("index %s of %+v is restored as %v, want %v", uid, target, got, want[uid])
		}
		if err := catalog.Close(); err != nil {
			t.Fatal(err)
		}
		top, err := os.ReadDir(dir)
		if err != nil || len(top) != 1 {
			t.Errorf("the directory of index %s has %v, %v", uid, top, err)
		}
		below, err := os.ReadDir(path.Join(dir, "indexes"))
		if err != nil || len(below) != 2 { // CATALOG and the directory of the index
			t.Errorf("the indexes directory of %s has %v, %v", uid, below, err)
		}
	}
}

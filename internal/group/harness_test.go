package group

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/auth"
	"svc/internal/boltfile"
	"svc/internal/commit"
	"svc/internal/index"
	"svc/internal/sealedjson"
	"svc/internal/socket/sockettest"
	"svc/internal/standby"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/segment"
)

const (
	testKey    = "a master key of the tests"
	testFormat = "4"
)

// host is a writer: a data directory with its stores.
type host struct {
	t       *testing.T
	dir     string
	addr    string
	o       WriterOptions
	w       *Writer
	catalog *index.Catalog
	keys    *auth.Keys
	queue   *task.Queue
	batch   int
	v       int // value of the next documents
}

// newHost starts a writer on an empty directory.
func newHost(t *testing.T, change func(*WriterOptions)) *host {
	t.Helper()
	h := &host{t: t, dir: filepath.ToSlash(t.TempDir()), addr: sockettest.Host() + ":0", batch: 3}
	h.o = WriterOptions{FS: unsyncedFS{vfs.OS}, Dir: h.dir, Name: "shop", MasterKey: testKey, Format: testFormat, Version: "1", Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&h.o)
	}
	if h.o.TLS != (Certificates{}) { // certificates name this address
		h.addr = "127.0.0.1:0"
	}
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
	h.w, err = OpenWriter(h.o)
	must(err)
	files := h.w.FS()
	h.catalog, err = index.OpenCatalog(path.Join(h.dir, "indexes"), index.Options{FS: files, MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 1})
	must(err)
	h.keys, err = auth.Open(auth.Options{File: path.Join(h.dir, "auth.db"), FS: files, MasterKey: testKey})
	must(err)
	h.queue, err = task.Open(task.Options{Dir: path.Join(h.dir, "tasks"), FS: files, Catalog: h.catalog, MaxBatchTasks: h.batch, MaxBatchBytes: -1, Concurrent: 2})
	must(err)
	l, err := net.Listen("tcp", h.addr)
	must(err)
	h.addr = l.Addr().String()
	h.w.Serve(l, h)
}

func (h *host) stop() {
	if h.w == nil {
		return
	}
	h.w.Hang()
	for _, close := range []func() error{h.queue.Close, h.keys.Close, h.catalog.Close, h.w.Close} {
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

// idle waits until all tasks have ended.
func (h *host) idle() {
	h.t.Helper()
	unfinished := task.Filter{Statuses: []task.Status{task.Enqueued, task.Processing}, Limit: 1}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l, err := h.queue.Tasks(unfinished)
		if err != nil {
			h.t.Fatal(err)
		}
		if l.Total == 0 {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%d tasks do not end", l.Total)
		}
	}
}

func (h *host) enqueue(uid string, c task.Content, p *task.Payload) {
	h.t.Helper()
	if _, err := h.queue.Enqueue(context.Background(), task.New{IndexUID: uid, Content: c, Payload: p}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) add(uid string, ids ...int) {
	h.t.Helper()
	p, err := h.queue.NewPayload()
	if err != nil {
		h.t.Fatal(err)
	}
	h.v++
	for _, id := range ids {
		fmt.Fprintf(p, "{\"id\":\"%d\",\"v\":%d}\n", id, h.v)
	}
	h.enqueue(uid, task.AddDocuments{MayCreate: true, Documents: len(ids)}, p)
}

// step makes a random change.
func (h *host) step(r *rand.Rand) {
	h.t.Helper()
	uid := []string{"a", "b", "c"}[r.IntN(3)]
	switch n := r.IntN(20); {
	case n < 9:
		ids := make([]int, 1+r.IntN(4))
		for i := range ids {
			ids[i] = r.IntN(20)
		}
		h.add(uid, ids...)
	case n < 11:
		h.enqueue(uid, task.DeleteDocuments{IDs: []string{fmt.Sprint(r.IntN(20))}}, nil)
	case n < 12:
		h.enqueue(uid, task.ClearDocuments{}, nil)
	case n < 13:
		h.enqueue(uid, task.CreateIndex{}, nil)
	case n < 14:
		h.enqueue(uid, task.DeleteIndex{}, nil)
	case n < 15:
		other := map[string]string{"a": "b", "b": "c", "c": "a"}[uid]
		h.enqueue("", task.SwapIndexes{Swaps: []task.Swap{{Indexes: [2]string{uid, other}}}}, nil)
	case n < 16:
		h.enqueue(uid, task.CompactIndex{}, nil)
	case n < 17:
		name := fmt.Sprint("key ", r.Uint64())
		if _, err := h.keys.Create(auth.Key{UID: uuid.New(), Name: &name, Actions: []string{"search"}, Indexes: []string{"*"}}); err != nil {
			h.t.Fatal(err)
		}
	case n < 18:
		if err := sealedjson.Write(h.w.FS(), path.Join(h.dir, "features.json"), 1, fmt.Appendf(nil, `{"n":%d}`, r.Uint32())); err != nil {
			h.t.Fatal(err)
		}
	default:
		h.idle()
	}
}

// documents returns the documents of all indexes: uid → id → v.
func (h *host) documents() map[string]map[string]int {
	h.t.Helper()
	all := map[string]map[string]int{}
	for _, uid := range h.catalog.UIDs() {
		all[uid] = map[string]int{}
		v, err := h.catalog.Get(uid).View()
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
			h.t.Fatal(err)
		}
	}
	return all
}

// follower is a reader that runs until stop.
type follower struct {
	t      *testing.T
	o      ReaderOptions
	r      *Reader
	cancel context.CancelFunc
	done   chan error
	joined int // how often its directory was replaced
}

func newFollower(t *testing.T, h *host, change func(*ReaderOptions)) *follower {
	t.Helper()
	f := &follower{t: t}
	f.o = ReaderOptions{FS: unsyncedFS{vfs.OS}, Dir: filepath.ToSlash(t.TempDir()), Name: "shop", Join: []string{h.addr}, MasterKey: testKey, Format: testFormat, Version: "1", Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&f.o)
	}
	f.start()
	t.Cleanup(func() { f.stop() })
	return f
}

func (f *follower) start() {
	f.t.Helper()
	var err error
	if f.r, err = OpenReader(f.o); err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.done = cancel, make(chan error, 1)
	go func() { f.done <- f.run(ctx) }()
}

// run does what the program of a warm standby does.
func (f *follower) run(ctx context.Context) error {
	if err := f.r.Join(ctx); err != nil {
		return err
	}
	for {
		d := standby.Open(standby.Options{FS: f.o.FS, Dir: f.o.Dir})
		err := f.r.Follow(ctx, d)
		if e := d.Close(); e != nil {
			return e
		}
		if err != ErrReplace {
			return err
		}
		f.joined++
		if err := f.r.Replace(); err != nil {
			return err
		}
	}
}

func (f *follower) stop() {
	if f.r == nil {
		return
	}
	f.cancel()
	if err := <-f.done; err != nil && err != context.Canceled {
		f.t.Error(err)
	}
	if err := f.r.Close(); err != nil {
		f.t.Error(err)
	}
	f.r = nil
}

// reach waits until the follower is at the position of the writer.
func (f *follower) reach(h *host) {
	f.t.Helper()
	h.idle()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // a changed byte may cost a whole connection timeout
	defer cancel()
	for {
		at := h.w.Position()
		if f.r.Wait(ctx, at) != nil {
			select {
			case err := <-f.done:
				f.done <- err
				f.t.Fatalf("the follower has ended: %v", err)
			default:
			}
			f.t.Fatalf("the follower is at %v, the writer at %v: %+v", f.r.Position(), at, f.r.Status().Reader)
		}
		if h.w.Position() == at {
			return
		}
	}
}

// same compares the directories of follower and writer. Nothing may change meanwhile.
func (f *follower) same(h *host) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); h.w.fs.count() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%d files are held for a reader that needs none", h.w.fs.count())
		}
	}
	got, want := contentOf(f.t, f.o.Dir), contentOf(f.t, h.dir)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[name]; !ok {
			f.t.Errorf("%s is missing", name)
		} else if g != want[name] {
			f.t.Errorf("%s has %d bytes that differ from the %d of the writer", name, len(g), len(want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok && !isPayload(name) { // payloads are removed with the next entry
			f.t.Errorf("%s is there, but not at the writer", name)
		}
	}
}

// contentOf returns the files of a data directory by name, and the buckets of bbolt files.
func contentOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	catalog, err := os.ReadFile(path.Join(dir, "indexes/CATALOG"))
	if err != nil {
		t.Fatal(err)
	}
	named, err := index.DirectoriesOf(vfs.OS, path.Join(dir, "indexes"), catalog)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ = filepath.Rel(dir, name)
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && (slices.Contains(stays, name) || path.Dir(name) == "indexes" && !slices.Contains(named, path.Base(name))):
			return filepath.SkipDir
		case d.IsDir() || slices.Contains(stays, name) || strings.HasSuffix(name, vfs.TempSuffix):
		case strings.HasSuffix(name, ".db"):
			for k, v := range buckets(t, path.Join(dir, name)) {
				all[name+" "+k] = v
			}
		case name == "tasks/running":
		default:
			b, err := os.ReadFile(path.Join(dir, name))
			if err != nil {
				return err
			}
			all[name] = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// buckets returns the buckets of a bbolt file. It reads a copy, because the file may be open.
func buckets(t *testing.T, name string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	to := path.Join(t.TempDir(), path.Base(name))
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	format := byte(0)
	for ; format < 10; format++ {
		db, err := boltfile.Open(to, boltfile.Options{Format: format, NoSync: true})
		if err != nil {
			continue
		}
		defer db.Close()
		all := map[string]string{}
		err = db.View(func(tx *boltfile.Tx) error {
			return tx.ForEach(func(bucket []byte, b *boltfile.Bucket) error {
				return b.ForEach(func(k, v []byte) error {
					all[fmt.Sprintf("%s %x", bucket, k)] = string(v)
					return nil
				})
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	t.Fatalf("%s has an unknown format", name)
	return nil
}

var addition = task.AddDocuments{MayCreate: true}

func sameDocuments(a, b map[string]map[string]int) bool { return maps.EqualFunc(a, b, maps.Equal) }

func changeOf(name string) commit.Change { return commit.Change{Kind: commit.Sealed, Name: name} }

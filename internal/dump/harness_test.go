package dump

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/auth"
	"svc/internal/chat"
	"svc/internal/index"
	"svc/internal/outbound"
	"svc/internal/sealedjson"
	"svc/internal/settings"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/internal/webhook"
)

// instance is the part of a server behind the HTTP API.
type instance struct {
	t       *testing.T
	dir     string
	o       Options
	catalog *index.Catalog
	queue   *task.Queue
	keys    *auth.Keys
	hooks   *webhook.Store
	closed  bool
}

// moment is the current time of all instances of these tests.
var moment = time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.UTC)

func limits() index.Options {
	return index.Options{FS: vfs.OS, MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 2, Now: func() time.Time { return moment }}
}

// open opens or creates the instance of a directory. change may be nil or change its options.
func open(t *testing.T, dir string, change func(*Options, *task.Options)) *instance {
	t.Helper()
	in := &instance{t: t, dir: dir}
	place := PlaceIn(dir)
	must(t, os.MkdirAll(dir, 0o777))
	var err error
	in.catalog, err = index.OpenCatalog(place.Indexes, limits())
	must(t, err)
	clock := moment // keys created at the same time have no order
	in.keys, err = auth.Open(auth.Options{File: place.Keys, MasterKey: "a master key of the tests", Now: func() time.Time {
		clock = clock.Add(time.Hour)
		return clock
	}})
	must(t, err)
	in.hooks, err = webhook.Open(vfs.OS, place.Webhooks, nil)
	must(t, err)
	chats, err := chat.Open(vfs.OS, place.Chats)
	must(t, err)
	in.o = Options{
		Chats: chats,
		FS:    vfs.OS, Place: place, Version: "1.42.1", Now: func() time.Time { return moment },
		Catalog: in.catalog, Keys: in.keys, Webhooks: in.hooks,
		Network: func() []byte {
			b, err := sealedjson.Read(vfs.OS, place.Network, NetworkVersion)
			if errors.Is(err, fs.ErrNotExist) {
				return []byte(`{"leader":null,"remotes":{},"self":null}`)
			}
			must(t, err)
			var stored struct{ Network json.RawMessage }
			must(t, json.Unmarshal(b, &stored))
			return stored.Network
		},
		Features: func() []byte {
			b, err := sealedjson.Read(vfs.OS, place.Features, FeaturesVersion)
			if err != nil {
				return []byte(`{"metrics":false}`)
			}
			return b
		},
		Rules:   func() [][]byte { return nil },
		DumpDir: dir + "-out", SnapshotFile: filepath.Join(dir+"-out", "data.snapshot"), SnapshotVersion: []byte("svc test\n"),
		Allowed: outbound.Any(), PayloadLimit: 100 << 20,
	}
	to := task.Options{Dir: place.Tasks, Catalog: in.catalog, Now: func() time.Time { return moment }, MaxBatchTasks: -1, MaxBatchBytes: -1}
	if change != nil {
		change(&in.o, &to)
	}
	to.Executors = New(in.o).Executors()
	in.queue, err = task.Open(to)
	must(t, err)
	t.Cleanup(in.close)
	return in
}

func (in *instance) close() {
	if in.closed {
		return
	}
	in.closed = true
	must(in.t, in.queue.Close())
	must(in.t, in.keys.Close())
	must(in.t, in.catalog.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// enqueue enqueues a task. documents, one per line, are the payload of an addition.
func (in *instance) enqueue(uid string, c task.Content, documents string) *task.Task {
	in.t.Helper()
	n := task.New{IndexUID: uid, Content: c}
	if documents != "" {
		p, err := in.queue.NewPayload()
		must(in.t, err)
		_, err = io.WriteString(p, documents)
		must(in.t, err)
		n.Payload = p
	}
	t, err := in.queue.Enqueue(in.t.Context(), n)
	must(in.t, err)
	return t
}

// wait returns a task once it has finished.
func (in *instance) wait(uid uint32) *task.Task {
	in.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		t, err := in.queue.Task(uid, nil)
		must(in.t, err)
		if t.Status.Finished() {
			return t
		}
	}
	in.t.Fatalf("task %d does not finish", uid)
	return nil
}

// run enqueues a task and waits for it, which must succeed.
func (in *instance) run(uid string, c task.Content, documents string) *task.Task {
	in.t.Helper()
	t := in.wait(in.enqueue(uid, c, documents).UID)
	if t.Status != task.Succeeded {
		in.t.Fatalf("task %d: %s: %v", t.UID, t.Status, t.Error)
	}
	return t
}

func add(documents string) task.AddDocuments {
	return task.AddDocuments{Documents: strings.Count(documents, "\n"), MayCreate: true}
}

func (in *instance) createDump() task.CreateDump {
	keys, err := EncodeKeys(in.keys.List())
	must(in.t, err)
	return task.CreateDump{Keys: keys}
}

// imported imports a dump into a new directory and opens it. Its queue runs no tasks.
func imported(t *testing.T, file string) *instance {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	must(t, importDump(t.Context(), dir, file))
	return open(t, dir, func(_ *Options, o *task.Options) { o.MaxBatchTasks = 0 })
}

func importDump(ctx context.Context, dir, file string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return Import(ctx, ImportOptions{
		FS: vfs.OS, Place: PlaceIn(dir), File: file, Index: limits(), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return moment },
	})
}

func update(t *testing.T, body string) task.UpdateSettings {
	t.Helper()
	u, err := settings.ParseUpdate([]byte(body), settings.Features{ForeignKeys: true, Chat: true, CompositeEmbedders: true, Multimodal: true})
	must(t, err)
	return task.UpdateSettings{Update: u, MayCreate: true}
}

// tarball reads a gzipped tar file. It returns names in order, and contents by name.
func tarball(t *testing.T, file string) (names []string, contents map[string]string) {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	contents = map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names, contents
		}
		must(t, err)
		names = append(names, h.Name)
		b, err := io.ReadAll(r)
		must(t, err)
		contents[h.Name] = string(b)
	}
}

// entry is an entry of an archive that a test writes.
type entry struct {
	name, content string
	kind          byte
	link          string
}

func writeTarball(t *testing.T, entries ...entry) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "made.dump")
	f, err := os.Create(name)
	must(t, err)
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: tar.TypeReg, Size: int64(len(e.content)), Mode: 0o644, Linkname: e.link}
		if e.kind != 0 {
			h.Typeflag = e.kind
		}
		must(t, w.WriteHeader(h))
		_, err := io.WriteString(w, e.content)
		must(t, err)
	}
	must(t, w.Close())
	must(t, z.Close())
	must(t, f.Close())
	return name
}

package standby

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/auth"
	"svc/internal/commit"
	"svc/internal/index"
	"svc/internal/sealedjson"
	"svc/internal/settings"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/segment"
)

// recorder is a log that keeps all changes, and the files that they name.
type recorder struct {
	t    *testing.T
	disk *vfs.MemFS
	dir  string

	mu      sync.Mutex
	changes []recorded
}

type recorded struct {
	commit.Change
	files map[string][]byte
}

func (r *recorder) Do(c commit.Change, apply func() error) error {
	kept := recorded{c, map[string][]byte{}}
	kept.Data, kept.Files, kept.Contents = bytes.Clone(c.Data), slices.Clone(c.Files), nil
	for _, name := range c.Files {
		b, err := vfs.ReadFile(r.disk, path.Join(r.dir, name))
		if err != nil {
			r.t.Errorf("a change (%v) of %s names a file that is not there: %v", c.Kind, c.Name, err)
		}
		kept.files[name] = b
	}
	if err := apply(); err != nil {
		return err
	}
	durable := r.disk.CrashClone(nil)
	for name, b := range kept.files {
		if left, err := vfs.ReadFile(durable, path.Join(r.dir, name)); err != nil || !bytes.Equal(left, b) {
			r.t.Errorf("a change (%v) of %s names %s, of which a crash leaves %d bytes of %d: %v", c.Kind, c.Name, name, len(left), len(b), err)
		}
	}
	if b, err := vfs.ReadFile(r.disk, path.Join(r.dir, c.Name)); err == nil { // otherwise it belongs to package boltfile
		if left, err := vfs.ReadFile(durable, path.Join(r.dir, c.Name)); err != nil || !bytes.Equal(left, b) {
			r.t.Errorf("a change (%v) of %s is applied, but a crash leaves %d bytes of %d: %v", c.Kind, c.Name, len(left), len(b), err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, kept)
	return nil
}

// count returns the number of changes.
func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.changes)
}

func (c *recorded) open(name string) (io.ReadCloser, error) {
	b, ok := c.files[name]
	if !ok {
		return nil, fmt.Errorf("%s was not requested before", name)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// outcomes holds the statuses with which tasks ended, by uid.
type outcomes struct {
	mu sync.Mutex
	of map[uint32]task.Status
}

func (o *outcomes) note(tasks []*task.Task) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range tasks {
		o.of[t.UID] = t.Status
	}
}

// svc is the open stores of a program on a data directory.
type svc struct {
	dir      string
	fs       vfs.FS
	keys     *auth.Keys
	catalog  *index.Catalog
	queue    *task.Queue
	outcomes outcomes
}

// start opens a data directory as the program does.
func start(t *testing.T, dir string, fsys vfs.FS, batch int) *svc {
	t.Helper()
	return open(t, dir, fsys, batch, false)
}

// open opens the stores of a data directory to lead or to follow.
func open(t *testing.T, dir string, fsys vfs.FS, batch int, follow bool) *svc {
	t.Helper()
	s := &svc{dir: dir, fs: fsys, outcomes: outcomes{of: map[uint32]task.Status{}}}
	var err error
	if s.catalog, err = index.OpenCatalog(path.Join(dir, "indexes"), index.Options{FS: fsys, MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 1, Follow: follow}); err != nil {
		t.Fatal(err)
	}
	if s.keys, err = auth.Open(auth.Options{File: path.Join(dir, "auth.db"), FS: fsys, MasterKey: "a master key of the tests", Follow: follow}); err != nil {
		t.Fatal(err)
	}
	s.queue, err = task.Open(task.Options{Dir: path.Join(dir, "tasks"), FS: fsys, Catalog: s.catalog, MaxBatchTasks: batch, MaxBatchBytes: -1, Concurrent: 2, OnBatch: s.outcomes.note, Follow: follow})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *svc) close(t *testing.T) {
	t.Helper()
	for _, close := range []func() error{s.queue.Close, s.keys.Close, s.catalog.Close} {
		if err := close(); err != nil {
			t.Error(err)
		}
	}
}

// idle waits until all tasks have ended.
func (s *svc) idle(t *testing.T) {
	t.Helper()
	unfinished := task.Filter{Statuses: []task.Status{task.Enqueued, task.Processing}, Limit: 1}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l, err := s.queue.Tasks(unfinished)
		if err != nil {
			t.Fatal(err)
		}
		if l.Total == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d tasks do not end", l.Total)
		}
	}
}

// statuses returns the statuses of all tasks, by uid.
func (s *svc) statuses(t *testing.T) map[uint32]task.Status {
	t.Helper()
	l, err := s.queue.Tasks(task.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	all := map[uint32]task.Status{}
	for x, err := range l.Results {
		if err != nil {
			t.Fatal(err)
		}
		all[x.UID] = x.Status
	}
	return all
}

// givenUp returns the tasks that failed because they were running too often when the program ended or lost the lead.
func (s *svc) givenUp(t *testing.T) []uint32 {
	t.Helper()
	l, err := s.queue.Tasks(task.Filter{Statuses: []task.Status{task.Failed}, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var all []uint32
	for x, err := range l.Results {
		if err != nil {
			t.Fatal(err)
		}
		if x.Error.Code == "internal" {
			all = append(all, x.UID)
		}
	}
	return all
}

// documents returns the documents of all indexes: uid → id → v.
func (s *svc) documents(t *testing.T) map[string]map[string]int {
	t.Helper()
	all := map[string]map[string]int{}
	for _, uid := range s.catalog.UIDs() {
		all[uid] = map[string]int{}
		v, err := s.catalog.Get(uid).View()
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

// world is the naive model: documents by index.
type world map[string]map[string]int

// create creates an index if it does not exist.
func (w world) create(uid string) {
	if w[uid] == nil {
		w[uid] = map[string]int{}
	}
}

// naive is the effect of a task on the world.
type naive struct {
	creates string           // the index that it creates if it does not exist
	does    func(world) bool // applies the task, reports success; nil: changes nothing, and may fail
}

// history is a list of requests to a program, and the changes that they led to.
type history struct {
	recorder
	tasks    []naive
	stored   []int           // number of changes when each task was acknowledged
	canceled map[uint32]bool // tasks that may be canceled
	givenUp  map[uint32]bool // tasks that failed because they were running too often when the program ended
	deleted  map[uint32]bool // tasks that may be deleted
	outcomes map[uint32]task.Status
	end      map[string]map[string]int
	left     map[uint32]task.Status // tasks that exist at the end
	features []string               // contents of the sealed file, in order
}

// request is a request of a client: a task or something else.
type request struct {
	task  task.New
	does  naive
	other func() error // nil: a task
	svc   *svc         // the program
	lost  bool         // had no answer
}

// tell sends a request to the program.
func (h *history) tell(s *svc, w *request) {
	h.t.Helper()
	if w.other != nil {
		if err := w.other(); err != nil {
			h.t.Fatal(err)
		}
		return
	}
	stored, err := s.queue.Enqueue(context.Background(), w.task)
	if err != nil {
		h.t.Fatal(err)
	}
	if int(stored.UID) != len(h.tasks) {
		h.t.Fatalf("task %d, want %d", stored.UID, len(h.tasks))
	}
	h.tasks, h.stored = append(h.tasks, w.does), append(h.stored, h.count())
}

// step sends a random request, or waits until all tasks have ended.
func (h *history) step(s *svc, r *rand.Rand) {
	if r.IntN(13) == 0 {
		s.idle(h.t)
		return
	}
	h.tell(s, h.request(s, r))
}

// request returns a random request.
func (h *history) request(s *svc, r *rand.Rand) *request {
	uid := []string{"a", "b", "c"}[r.IntN(3)]
	on := func(c task.Content, does naive) *request {
		return &request{svc: s, task: task.New{IndexUID: uid, Content: c}, does: does}
	}
	must := func(does func(docs map[string]int)) naive { // on an existing index
		return naive{does: func(w world) bool {
			if w[uid] != nil {
				does(w[uid])
			}
			return w[uid] != nil
		}}
	}
	switch n := r.IntN(24); {
	case n < 11:
		return h.addition(s, uid, r)
	case n < 13:
		id := fmt.Sprint(r.IntN(9))
		return on(task.DeleteDocuments{IDs: []string{id}}, must(func(docs map[string]int) { delete(docs, id) }))
	case n < 14:
		return on(task.ClearDocuments{}, must(func(docs map[string]int) { clear(docs) }))
	case n < 15:
		return on(task.CreateIndex{}, naive{uid, func(w world) bool {
			if w[uid] != nil {
				return false
			}
			w.create(uid)
			return true
		}})
	case n < 16:
		return on(task.DeleteIndex{}, naive{does: func(w world) bool {
			_, ok := w[uid]
			delete(w, uid)
			return ok
		}})
	case n < 17:
		other := map[string]string{"a": "b", "b": "c", "c": "a"}[uid]
		return &request{svc: s, task: task.New{Content: task.SwapIndexes{Swaps: []task.Swap{{Indexes: [2]string{uid, other}}}}}, does: naive{does: func(w world) bool {
			if w[uid] == nil || w[other] == nil {
				return false
			}
			w[uid], w[other] = w[other], w[uid]
			return true
		}}}
	case n < 19:
		return on(task.UpdateSettings{Update: settings.ResetOne("stop-words"), MayCreate: true}, naive{uid, func(w world) bool {
			w.create(uid)
			return true
		}})
	case n < 21 && len(h.tasks) > 0:
		tasks := []uint32{uint32(r.IntN(len(h.tasks))), uint32(len(h.tasks) - 1)}
		slices.Sort(tasks)
		tasks = slices.Compact(tasks)
		var c task.Content = task.CancelTasks{Query: "?", Tasks: tasks}
		of := h.canceled
		if r.IntN(2) == 0 {
			c, of = task.DeleteTasks{Query: "?", Tasks: tasks}, h.deleted
		}
		for _, uid := range tasks {
			of[uid] = true
		}
		return &request{svc: s, task: task.New{Content: c}}
	case n < 22:
		return on(task.CompactIndex{}, naive{})
	case n < 23:
		name := fmt.Sprint("key ", h.count())
		return &request{svc: s, other: func() error {
			_, err := s.keys.Create(auth.Key{UID: uuid.New(), Name: &name, Actions: []string{"search"}, Indexes: []string{"*"}})
			return err
		}}
	default:
		content := fmt.Sprintf(`{"number":%d}`, len(h.features))
		h.features = append(h.features, content)
		return &request{svc: s, other: func() error { return sealedjson.Write(s.fs, path.Join(s.dir, "features.json"), 1, []byte(content)) }}
	}
}

// addition returns a request for some documents.
func (h *history) addition(s *svc, uid string, r *rand.Rand) *request {
	p, err := s.queue.NewPayload()
	if err != nil {
		h.t.Fatal(err)
	}
	v, docs := len(h.tasks), map[string]int{}
	for range 1 + r.IntN(4) {
		docs[fmt.Sprint(r.IntN(9))] = v
	}
	for id := range docs {
		fmt.Fprintf(p, "{\"id\":%q,\"v\":%d}\n", id, v)
	}
	return &request{svc: s, task: task.New{IndexUID: uid, Content: task.AddDocuments{MayCreate: true, Documents: len(docs)}, Payload: p}, does: naive{uid, func(w world) bool {
		w.create(uid)
		maps.Copy(w[uid], docs)
		return true
	}}}
}

// newDir returns a directory that exists both in the operating system and in an empty file system in memory.
func newDir(t *testing.T) (string, *vfs.MemFS) {
	t.Helper()
	dir := path.Join(filepath.ToSlash(t.TempDir()), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path.Join(dir, "tasks"), 0o700); err != nil {
		t.Fatal(err)
	}
	mem := vfs.NewMem()
	if err := vfs.MakeDir(mem, dir); err != nil {
		t.Fatal(err)
	}
	return dir, mem
}

// newHistory runs a program on an empty directory, and sends it random requests.
func newHistory(t *testing.T, r *rand.Rand, steps int) *history {
	t.Helper()
	dir, mem := newDir(t)
	h := &history{recorder: recorder{t: t, disk: mem, dir: dir}, canceled: map[uint32]bool{}, deleted: map[uint32]bool{}}
	s := start(t, dir, commit.On(mem, dir, h), 1+r.IntN(4))
	func() {
		defer s.close(t)
		for range steps {
			h.step(s, r)
		}
		s.idle(t)
		h.end, h.left = s.documents(t), s.statuses(t)
	}()
	h.outcomes = s.outcomes.of
	return h
}

// check starts a program on a directory that has a prefix of the changes, waits for its tasks, and compares.
func (h *history) check(t *testing.T, prefix int, dir string, fsys vfs.FS) {
	t.Helper()
	h.checkEnd(t, prefix, start(t, dir, fsys, -1))
}

// checkEnd is check for a running program, which it closes.
func (h *history) checkEnd(t *testing.T, prefix int, s *svc) {
	t.Helper()
	end := sync.OnceFunc(func() { s.close(t) })
	defer end()
	s.idle(t)
	there, last := s.statuses(t), -1
	for uid := range there {
		last = max(last, int(uid))
	}
	for uid, stored := range h.stored {
		if _, ok := there[uint32(uid)]; stored <= prefix && !ok && !h.deleted[uint32(uid)] {
			t.Errorf("%d changes: task %d is lost", prefix, uid)
		}
	}
	got, keys := s.documents(t), len(s.keys.List())
	end() // reports all outcomes
	statuses := make([]task.Status, last+1)
	var creates []int // canceled tasks that may have created their index
	for n := range statuses {
		uid := uint32(n)
		status, ok := there[uid]
		if !ok {
			if status, ok = s.outcomes.of[uid]; !ok { // deleted
				if status, ok = h.outcomes[uid]; !ok || !h.deleted[uid] {
					t.Errorf("%d changes: task %d is missing", prefix, uid)
				}
			}
		}
		if statuses[n] = status; (status == task.Canceled || h.givenUp[uid]) && h.tasks[n].creates != "" {
			creates = append(creates, n)
		}
	}
	wrong := ""
	for choice := range 1 << len(creates) {
		made := map[int]bool{}
		for i, n := range creates {
			made[n] = choice>>i&1 == 1
		}
		if wrong = h.differs(statuses, made, got); wrong == "" {
			break
		}
	}
	if wrong != "" {
		t.Errorf("%d changes: %s", prefix, wrong)
	}
	if prefix == len(h.changes) && (!same(got, h.end) || !maps.Equal(there, h.left)) {
		t.Errorf("all changes: documents %v and tasks %v, want %v and %v", got, there, h.end, h.left)
	}
	changed, content := 0, ""
	for _, c := range h.changes[:prefix] {
		switch c.Kind {
		case commit.Keys:
			changed++
		case commit.Sealed:
			content = h.features[0]
			if n := bytes.Index(c.Data, []byte(`"content":`)); n >= 0 {
				content = strings.TrimSuffix(string(c.Data[n+len(`"content":`):]), "}\n")
			}
		}
	}
	if want := 4 + max(changed-1, 0); keys != want {
		t.Errorf("%d changes: %d keys, want %d", prefix, keys, want)
	}
	if b, _ := sealedjson.Read(s.fs, path.Join(s.dir, "features.json"), 1); string(b) != content {
		t.Errorf("%d changes: sealed content %s, want %s", prefix, b, content)
	}
}

// differs runs the first tasks on the naive model and describes a difference, or returns "". made are the canceled tasks that created
// their index first.
func (h *history) differs(statuses []task.Status, made map[int]bool, documents map[string]map[string]int) string {
	w := world{}
	for n, status := range statuses {
		x, want := &h.tasks[n], task.Succeeded
		switch {
		case status == task.Canceled && h.canceled[uint32(n)], status == task.Failed && h.givenUp[uint32(n)]:
			if made[n] {
				w.create(x.creates)
			}
			continue
		case x.does == nil: // whether it succeeds depends on when it runs
			continue
		case !x.does(w):
			want = task.Failed
		}
		if status != want {
			return fmt.Sprintf("task %d is %v, want %v", n, status, want)
		}
	}
	if !same(documents, w) {
		return fmt.Sprintf("documents %v, want %v", documents, w)
	}
	return ""
}

func same(a, b map[string]map[string]int) bool { return maps.EqualFunc(a, b, maps.Equal) }

// member is a directory that follows the history.
type member struct {
	*Directory
	dir  string
	disk *vfs.MemFS
}

func newMember(t *testing.T) *member {
	t.Helper()
	m := &member{}
	m.dir, m.disk = newDir(t)
	m.reopen(m.disk)
	t.Cleanup(func() { m.Close() })
	return m
}

func (m *member) reopen(fsys vfs.FS) {
	m.Directory = Open(Options{FS: fsys, Dir: m.dir, noSync: true})
}

// copied returns a copy of the directory as a power failure would leave it now.
func (m *member) copied(t *testing.T) (string, *vfs.MemFS) {
	t.Helper()
	dir := path.Join(filepath.ToSlash(t.TempDir()), "data")
	if err := os.CopyFS(dir, os.DirFS(m.dir)); err != nil {
		t.Fatal(err)
	}
	disk := m.disk.CrashClone(nil)
	if err := vfs.MakeDir(disk, path.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	if err := disk.Rename(m.dir, dir); err != nil {
		t.Fatal(err)
	}
	if err := disk.SyncDir(path.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	return dir, disk
}

var histories = flag.Int("histories", 1, "how many histories TestEveryPrefixIsAGoodState makes")

// TestEveryPrefixIsAGoodState applies each prefix of the changes of random histories to an empty directory, starts a program there, waits
// for its tasks, and compares with the naive model.
func TestEveryPrefixIsAGoodState(t *testing.T) {
	for range *histories {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		h := newHistory(t, rand.New(rand.NewPCG(seed, 0)), 12)
		m := newMember(t)
		for n := range len(h.changes) + 1 {
			if n > 0 {
				c := &h.changes[n-1]
				if err := m.Apply(c.Change, c.open); err != nil {
					t.Fatal(err)
				}
			}
			dir, disk := m.copied(t)
			h.check(t, n, dir, disk)
			if t.Failed() {
				for i, c := range h.changes[:n] {
					t.Logf("%d: %v %s %q", i+1, c.Kind, c.Name, c.Files)
				}
				return
			}
		}
		got, want := indexFiles(t, m.disk, m.dir), indexFiles(t, h.disk, h.dir)
		if !maps.Equal(got, want) {
			t.Errorf("the files are %q, want %q, or their content differs",
				slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		m.Close()
	}
}

// indexFiles returns the files of indexes by their names below the data directory.
func indexFiles(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name, b := range tree(t, fsys, path.Join(dir, "indexes")) {
		files[strings.TrimPrefix(name, dir)] = b
	}
	return files
}

// TestACrashWhileAChangeIsApplied interrupts each change of a history at each file operation, loses some unsynced data, and applies the
// change again: the directory must then be exactly right.
func TestACrashWhileAChangeIsApplied(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	h := newHistory(t, r, 12)
	m := newMember(t)
	stops, kinds := 0, map[commit.Kind]bool{}
	for i := range h.changes {
		c := &h.changes[i]
		before := m.disk
		want := before.CrashClone(nil)
		m.reopen(want)
		if err := m.Apply(c.Change, c.open); err != nil {
			t.Fatal(err)
		}
		m.Close()
		if left, live := tree(t, want.CrashClone(nil), m.dir), tree(t, want, m.dir); !maps.Equal(left, live) {
			for name := range live {
				if _, ok := left[name]; !ok || left[name] != live[name] {
					t.Fatalf("change %d (%v %s) is applied, but a power failure loses %s", i, c.Kind, c.Name, name)
				}
			}
		}
		for n := int64(0); ; n++ {
			stopping := before.CrashClone(nil)
			m.reopen(vfs.Hook(stopping, vfs.FailFrom(n, 1<<62, func(o vfs.Op) bool { return o.Kind.Changes() }, errStopped)))
			err := m.Apply(c.Change, c.open)
			m.Close()
			if err == nil {
				break
			}
			if !errors.Is(err, errStopped) {
				t.Fatal(err)
			}
			stops, kinds[c.Kind] = stops+1, true
			m.disk = stopping.CrashClone(r)
			m.reopen(m.disk)
			if err := m.Apply(c.Change, c.open); err != nil {
				t.Fatalf("change %d (%v %s), stopped at operation %d: %v", i, c.Kind, c.Name, n, err)
			}
			m.Close()
			if got := tree(t, m.disk, m.dir); !maps.Equal(got, tree(t, want, m.dir)) {
				t.Fatalf("change %d (%v %s), stopped at operation %d: the files %q, want %q", i, c.Kind, c.Name, n,
					slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(tree(t, want, m.dir))))
			}
		}
		if m.disk == before {
			m.disk = want
		}
	}
	if stops < 50 || !kinds[commit.Manifest] || !kinds[commit.Catalog] || !kinds[commit.Begin] {
		t.Errorf("only %d stops, of the kinds %v", stops, slices.Collect(maps.Keys(kinds)))
	}
	dir, disk := m.copied(t)
	h.check(t, len(h.changes), dir, disk)
}

var errStopped = errors.New("stopped by the test")

// tree returns the files below a directory, except temporary ones.
func tree(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		at := path.Join(dir, name)
		info, err := fsys.Stat(at)
		switch {
		case err != nil:
			t.Fatal(err)
		case info.IsDir():
			maps.Copy(files, tree(t, fsys, at))
		case !strings.HasSuffix(name, vfs.TempSuffix):
			b, err := vfs.ReadFile(fsys, at)
			if err != nil {
				t.Fatal(err)
			}
			files[at] = string(b)
		}
	}
	return files
}

package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/commit"
	"svc/internal/vfs"
)

// mirror is the log of a queue that another queue follows.
type mirror struct {
	t        *testing.T
	dir, own string // the data directories
	q        *Queue // the follower
	kinds    map[commit.Kind]int
	each     func(commit.Change) // called after each change; nil: nothing
}

// newMirror returns options of a queue that the queue of the mirror follows.
func newMirror(t *testing.T) (Options, *mirror) {
	t.Helper()
	o, _ := testOptions(t)
	m := &mirror{t: t, dir: t.TempDir(), own: t.TempDir(), kinds: map[commit.Kind]int{}}
	o.Dir, o.FS = path.Join(m.dir, "tasks"), commit.On(vfs.OS, m.dir, m)
	m.open()
	return o, m
}

func (m *mirror) open() {
	m.t.Helper()
	o, _ := testOptions(m.t)
	o.Dir, o.Follow = path.Join(m.own, "tasks"), true
	m.q = openQueue(m.t, o)
}

// Do implements commit.Log.
func (m *mirror) Do(c commit.Change, apply func() error) error {
	c.Data = bytes.Clone(c.Data)
	var payloads [][]byte
	for _, name := range c.Files {
		b, err := os.ReadFile(path.Join(m.dir, name))
		if err != nil {
			m.t.Error(err)
		}
		payloads = append(payloads, b)
	}
	if err := apply(); err != nil || !m.q.follows.Load() {
		return err
	}
	for i, name := range c.Files {
		if err := os.WriteFile(path.Join(m.own, name), payloads[i], 0o600); err != nil {
			m.t.Error(err)
		}
	}
	m.kinds[c.Kind]++
	for range 2 { // the repeat must change nothing
		if err := m.q.Follow(c); err != nil {
			m.t.Errorf("%v of %s: %v", c.Kind, c.Name, err)
		}
	}
	if m.each != nil {
		m.each(c)
	}
	return nil
}

// shows returns everything that a queue shows, as JSON.
func shows(t *testing.T, q *Queue) string {
	t.Helper()
	var all []any
	tasks, err := q.Tasks(Filter{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for x, err := range tasks.Results {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	batches, err := q.Batches(Filter{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for x, err := range batches.Results {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (m *mirror) payloads(dir string) (names []string) {
	m.t.Helper()
	entries, err := os.ReadDir(path.Join(dir, "tasks", "payloads"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// same compares what both queues show, what a start would read, and their payloads.
func (m *mirror) same(q *Queue) {
	m.t.Helper()
	sameMemory(m.t, m.q)
	if got, want := shows(m.t, m.q), shows(m.t, q); got != want {
		m.t.Errorf("the follower shows\n%s, want\n%s", got, want)
	}
	if got, want := m.payloads(m.own), m.payloads(m.dir); !slices.Equal(got, want) {
		m.t.Errorf("the follower has the payloads %q, want %q", got, want)
	}
	if got, want := m.q.payloadBytes.Load(), q.payloadBytes.Load(); got != want {
		m.t.Errorf("the follower counts %d bytes of payloads, want %d", got, want)
	}
}

// TestFollow follows random tasks of all kinds, and forwarded requests.
func TestFollow(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	o, m := newMirror(t)
	h := newHistoryOf(t, rand.New(rand.NewSource(seed)), o)
	steps := 0
	h.walk(t, func() {
		if steps++; steps%50 == 0 { // restart the follower
			if err := m.q.Close(); err != nil {
				t.Fatal(err)
			}
			m.open()
		}
		if steps%8 == 0 {
			m.same(h.q)
		}
	})
	m.same(h.q)
	if m.kinds[commit.Tasks] < 50 || m.kinds[commit.Begin] < 20 {
		t.Errorf("only these changes: %v", m.kinds)
	}
}

// TestFollowAPayload follows a task with a payload until it ends, and reads the payload.
func TestFollowAPayload(t *testing.T) {
	o, m := newMirror(t)
	q := paused(t, o)
	w := m.q.WatchTasks()
	defer w.Close()
	added := enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1", "2"))
	<-w.Changed()
	f, err := m.q.Documents(added.UID)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	m.same(q)
	drain(t, q)
	m.same(q)
	if len(m.payloads(m.own)) != 0 {
		t.Error("the follower keeps the payload")
	}
	<-w.Changed()
}

// TestFollowWritesNothing checks that a following queue refuses to write.
func TestFollowWritesNothing(t *testing.T) {
	o, m := newMirror(t)
	q := paused(t, o)
	uid := enqueue(t, q, New{IndexUID: "x", Content: CreateIndex{}}).UID
	before := shows(t, m.q)
	_, err := m.q.Enqueue(t.Context(), New{IndexUID: "x", Content: CreateIndex{}})
	for what, err := range map[string]error{
		"a task": err, "a change": m.q.Amend(uid, CreateIndex{PrimaryKey: "x"}), "a delivery": m.q.Delivered(uid, "b", RemoteTask{}, true),
	} {
		if !errors.Is(err, errFollows) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, c := range []commit.Change{
		{Kind: commit.Tasks, Name: "tasks/running"}, {Kind: commit.Begin, Name: "tasks/queue.db"}, {Kind: commit.Keys, Name: "tasks/queue.db"},
		{Kind: commit.Tasks, Name: "tasks/queue.db", Data: []byte("x")},
		{Kind: commit.Tasks, Name: "tasks/queue.db", Data: []byte("\x02\x01\x05later\x01\x00\x01k\x04\x00\x00\x00\x00")},
	} {
		if err := m.q.Follow(c); err == nil {
			t.Errorf("%v of %s is accepted", c.Kind, c.Name)
		}
	}
	if after := shows(t, m.q); after != before {
		t.Errorf("the follower shows %s, want %s", after, before)
	}
	if err := q.Follow(commit.Change{}); err == nil {
		t.Error("a queue that was opened to lead accepts changes")
	}
}

// TestLead makes a follower lead after its writer began a batch. The batch is shown as running, runs again under its uid, and is
// followed by others.
func TestLead(t *testing.T) {
	o, m := newMirror(t)
	crashed := errors.New("crashed")
	o.hook = func(point string) error {
		if point == "journaled" {
			return crashed
		}
		return nil
	}
	q := paused(t, o)
	added := enqueue(t, q, adding(t, q, "x", AddDocuments{MayCreate: true}, "1", "2"))
	checked := false
	m.each = func(c commit.Change) {
		if c.Kind == commit.Begin && !checked {
			checked = true
			l, err := m.q.Tasks(Filter{Statuses: []Status{Processing}, Limit: 10})
			if err != nil || l.Total != 1 {
				t.Errorf("%d tasks run, want 1 (%v)", l.Total, err)
			}
			if b, err := m.q.Batch(0, nil); err != nil || b.Progress == nil || b.Stats.Total != 1 {
				t.Errorf("the running batch is %+v (%v)", b, err)
			}
			noted := *lastEntry(c.Data)
			if !slices.Equal(noted.Tasks, []uint32{added.UID}) {
				t.Errorf("the journal has %v", noted)
			}
			m.each = nil // from here on the writer is gone
			if err := m.q.Lead(); err != nil {
				t.Error(err)
			}
			if err := m.q.Lead(); err != nil {
				t.Error(err)
			}
		}
	}
	_, _, err := q.turn()
	if !errors.Is(err, crashed) || !checked {
		t.Fatalf("the batch gives %v", err)
	}
	ended := wait(t, m.q, added.UID)
	if ended.Status != Succeeded || *ended.BatchUID != 0 {
		t.Errorf("the task is %v in batch %d", ended.Status, *ended.BatchUID)
	}
	next := enqueue(t, m.q, New{IndexUID: "y", Content: CreateIndex{}})
	if x := wait(t, m.q, next.UID); x.Status != Succeeded || *x.BatchUID != 1 {
		t.Errorf("the next task is %v in batch %d", x.Status, *x.BatchUID)
	}
	sameMemory(t, m.q)
	if err := m.q.Follow(commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db"}); err == nil || !strings.Contains(err.Error(), "follows nobody") {
		t.Errorf("a leading queue follows: %v", err)
	}
}

// TestFollowAnEndedBatch checks that a stopped or ended batch is not shown as running.
func TestFollowAnEndedBatch(t *testing.T) {
	o, m := newMirror(t)
	q := paused(t, o)
	first := enqueue(t, q, New{IndexUID: "x", Content: CreateIndex{}}).UID
	run := q.newRunning(0, time.Now(), []*Task{oneTask(t, q, first)}, plan{Mode: single})
	for _, stopped := range []bool{false, true, false} {
		if err := q.journal.write(run.entry(stopped)); err != nil {
			t.Fatal(err)
		}
		m.q.roster.mu.RLock()
		tasks := m.q.roster.running.tasks()
		m.q.roster.mu.RUnlock()
		if want := roaring.New(); !stopped {
			if want.Add(first); !tasks.Equals(want) {
				t.Errorf("tasks %v are shown as running, want %v", tasks, want)
			}
		} else if !tasks.IsEmpty() {
			t.Errorf("tasks %v of a stopped batch are shown as running", tasks)
		}
	}
	q.journal.forget(0)
	drain(t, q)
	m.same(q)
	if n := len(m.q.roster.running); n > 0 {
		t.Errorf("%d ended batches are shown as running", n)
	}
}

func oneTask(t *testing.T, q *Queue, uid uint32) *Task {
	t.Helper()
	task, err := q.Task(uid, nil)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// namingLog accepts a change of tasks only while the names of payloads are being synced.
type namingLog struct{ syncs chan struct{} }

func (l *namingLog) Do(c commit.Change, apply func() error) error {
	if c.Kind == commit.Tasks && len(c.Files) > 0 {
		<-l.syncs
	}
	return apply()
}

// TestPayloadsAreNamedWhileTheLogWrites checks that the log accepts tasks while the names of their payloads are synced, and that no task
// is stored if the sync fails.
func TestPayloadsAreNamedWhileTheLogWrites(t *testing.T) {
	for _, logged := range []bool{true, false} {
		o, _ := testOptions(t)
		log := &namingLog{make(chan struct{}, 1)}
		var broken atomic.Bool
		o.FS = vfs.Hook(vfs.OS, func(op vfs.Op) error {
			if op.Kind != vfs.OpSyncDir || path.Base(op.Name) != "payloads" {
				return nil
			}
			select {
			case log.syncs <- struct{}{}:
			default:
			}
			if broken.Load() {
				return errors.New("the disk is broken")
			}
			return nil
		})
		if logged {
			o.FS = commit.On(o.FS, path.Dir(o.Dir), log)
		}
		q := openQueue(t, o)
		for i, bad := range []bool{false, true, false} {
			select {
			case <-log.syncs: // left by the start, or by the previous task
			default:
			}
			broken.Store(bad)
			n := adding(t, q, "a", AddDocuments{}, strconv.Itoa(i))
			_, err := q.Enqueue(t.Context(), n)
			if bad != (err != nil) || bad && strings.Contains(err.Error(), "cannot write") {
				t.Errorf("logged %v, broken %v: %v", logged, bad, err)
			}
			if bad {
				n.Payload.Discard()
			}
		}
		tasks, err := q.Tasks(Filter{Limit: 10})
		if err != nil || tasks.Total != 2 {
			t.Errorf("logged %v: %d tasks, %v", logged, tasks.Total, err)
		}
	}
}

// contentLog records what changes say about their files.
type contentLog struct {
	t    *testing.T
	dir  string
	seen []int // negative if their content was not at hand
}

func (l *contentLog) Do(c commit.Change, apply func() error) error {
	for i, name := range c.Files {
		b, err := os.ReadFile(path.Join(l.dir, name))
		if err != nil {
			l.t.Error(err)
		}
		size := len(b)
		if got := c.Contents[i]; got == nil {
			size = -size
		} else if !bytes.Equal(got, b) {
			l.t.Errorf("%d bytes of a file of %d differ", len(got), size)
		}
		l.seen = append(l.seen, size)
	}
	return apply()
}

// TestPayloadsInPieces writes payloads in pieces: the file must have all bytes, and a log must get the content of small files.
func TestPayloadsInPieces(t *testing.T) {
	o, _ := testOptions(t)
	log := &contentLog{t: t, dir: o.Dir}
	o.Dir = path.Join(o.Dir, "tasks")
	o.FS = commit.On(vfs.OS, log.dir, log)
	q := openQueue(t, o)
	random := rand.New(rand.NewSource(1))
	const large = 3 * payloadBuffer
	var want []int
	for _, tt := range []struct{ size, piece int }{
		{1, 1}, {1000, 7}, {commit.SmallFile, commit.SmallFile}, {commit.SmallFile + 1, 100}, {payloadBuffer, payloadBuffer}, {payloadBuffer + 1, payloadBuffer + 1},
		{large, 1000}, {large, payloadBuffer + 5}, {large, payloadBuffer}, {commit.SmallFile, 9},
	} {
		content := make([]byte, tt.size)
		random.Read(content)
		p, err := q.NewPayload()
		if err != nil {
			t.Fatal(err)
		}
		name := q.payloadPath(p.name)
		for piece := range slices.Chunk(content, tt.piece) {
			if n, err := p.Write(piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if _, err := q.Enqueue(t.Context(), New{IndexUID: "a", Content: AddDocuments{Documents: 1}, Payload: p}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err == nil && !bytes.Equal(got, content) { // the task may have ended already
			t.Errorf("%d bytes in pieces of %d: the file has %d", tt.size, tt.piece, len(got))
		}
		if want = append(want, tt.size); tt.size > commit.SmallFile {
			want[len(want)-1] = -tt.size
		}
	}
	if !slices.Equal(log.seen, want) {
		t.Errorf("the log got sizes %v, want %v", log.seen, want)
	}
}

// TestAPayloadThatCannotBeWritten checks that each write after a failed one fails, and the end as well.
func TestAPayloadThatCannotBeWritten(t *testing.T) {
	o, _ := testOptions(t)
	var writes atomic.Int32
	o.FS = vfs.Hook(vfs.OS, func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && path.Base(path.Dir(op.Name)) == "payloads" && writes.Add(1) == 1 {
			return errors.New("the disk is full")
		}
		return nil
	})
	q := openQueue(t, o)
	p, err := q.NewPayload()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write(make([]byte, payloadBuffer)); err != nil {
		t.Error(err)
	}
	for range 2 {
		if n, err := p.Write([]byte("more")); n != 0 || err == nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	if err := p.finish(); err == nil || writes.Load() != 1 {
		t.Errorf("%v after %d writes", err, writes.Load())
	}
	p.Discard()
}

package standby

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"svc/internal/commit"
	"svc/internal/sealedjson"
	"svc/internal/task"
	"svc/internal/vfs"
)

// liveMember is a member with open stores.
type liveMember struct {
	*member
	*svc
	features string // as the last read of their file
	fault    func(o vfs.Op) error
}

func (m *liveMember) open(t *testing.T) {
	t.Helper()
	m.fault = nil
	fsys := vfs.Hook(m.disk, func(o vfs.Op) error {
		if m.fault == nil {
			return nil
		}
		return m.fault(o)
	})
	m.svc = open(t, m.member.dir, fsys, -1, true)
	m.attach(t, fsys)
}

// attach makes the open stores follow the changes of the directory.
func (m *liveMember) attach(t *testing.T, fsys vfs.FS) {
	t.Helper()
	m.Directory = Open(Options{FS: fsys, Dir: m.member.dir, noSync: true,
		Stores: map[commit.Kind]Store{commit.Catalog: m.catalog, commit.Manifest: m.catalog, commit.Tasks: m.queue, commit.Begin: m.queue, commit.Keys: m.keys},
		Sealed: map[string]func() error{"features.json": m.reload}})
	if err := m.reload(); err != nil {
		t.Fatal(err)
	}
}

func (m *liveMember) reload() error {
	m.features = featuresOf(m.member.dir, m.disk)
	return nil
}

func featuresOf(dir string, fsys vfs.FS) string {
	b, _ := sealedjson.Read(fsys, path.Join(dir, "features.json"), 1)
	return string(b)
}

// shows returns everything that the stores show, as JSON. features is what the process has read of the features.
func (s *svc) shows(t *testing.T, features string) string {
	t.Helper()
	all := []any{s.documents(t), s.keys.List(), features}
	tasks, err := s.queue.Tasks(task.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for x, err := range tasks.Results {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	batches, err := s.queue.Batches(task.Filter{Limit: 1000})
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

// TestLiveStoresEqualReopenedOnes applies a random history to open stores. After each change they must show the same as stores opened at
// that moment. Some changes are interrupted at a file operation by a kill. At a random point the stores lead and run the remaining tasks.
func TestLiveStoresEqualReopenedOnes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	h := newHistory(t, r, 12)
	m := &liveMember{member: newMember(t)}
	m.open(t)
	end := func() {
		m.svc.close(t)
		m.Directory.Close()
	}
	defer func() { end() }()
	kills := 0
	prefix := len(h.changes) - r.IntN(len(h.changes)/2)
	for i := range h.changes[:prefix] {
		c := &h.changes[i]
		cut, n, at := r.IntN(4) == 0, r.IntN(6), 0
		if kills == 0 && i >= prefix/2 { // interrupt some change: the hook sees no operations of changes of the task queue
			cut, n = true, 0
		}
		if cut {
			m.fault = func(o vfs.Op) error {
				if !o.Kind.Changes() {
					return nil
				}
				if at++; at > n {
					return errStopped
				}
				return nil
			}
			if err := m.Apply(c.Change, c.open); err != nil {
				if !errors.Is(err, errStopped) {
					t.Fatal(err)
				}
				kills++
				disk := m.disk.CrashClone(r)
				end()
				m.disk = disk
				m.open(t)
			}
			m.fault = nil
		}
		if err := m.Apply(c.Change, c.open); err != nil {
			t.Fatal(err)
		}
		if r.IntN(3) > 0 {
			continue
		}
		dir, disk := m.copied(t)
		fresh := open(t, dir, disk, -1, true)
		got, want := m.shows(t, m.features), fresh.shows(t, featuresOf(dir, disk))
		fresh.close(t)
		if got != want {
			t.Fatalf("after change %d of %d (%v %s) the open stores show\n%s\na start shows\n%s", i+1, len(h.changes), c.Kind, c.Name, got, want)
		}
	}
	if kills == 0 {
		t.Error("no change was interrupted")
	}
	m.Directory.Close()
	for _, lead := range []func() error{m.catalog.Lead, m.keys.Lead, m.queue.Lead} {
		if err := lead(); err != nil {
			t.Fatal(err)
		}
	}
	end = func() {}
	h.checkEnd(t, prefix, m.svc)
}

// TestStoresThatFail makes a store, and a reader of a sealed file, fail: the retry must apply the change.
func TestStoresThatFail(t *testing.T) {
	m := newMember(t)
	fail, made := true, 0
	try := func() error {
		if fail {
			return errStopped
		}
		made++
		return nil
	}
	m.Directory = Open(Options{FS: m.disk, Dir: m.dir, Stores: map[commit.Kind]Store{commit.Begin: storeFunc(try)}, Sealed: map[string]func() error{"x.json": try}})
	for _, c := range []commit.Change{{Kind: commit.Begin, Name: "tasks/running", Data: []byte("x")}, {Kind: commit.Sealed, Name: "x.json", Data: []byte("x")}} {
		fail, made = true, 0
		if err := m.Apply(c, nil); !errors.Is(err, errStopped) || !strings.Contains(err.Error(), c.Name) {
			t.Errorf("%v: %v", c.Kind, err)
		}
		fail = false
		if err := m.Apply(c, nil); err != nil || made != 1 {
			t.Errorf("%v: %v, applied %d times", c.Kind, err, made)
		}
	}
	if _, err := m.disk.Stat(path.Join(m.dir, "tasks/running")); err == nil {
		t.Error("the standby wrote the file of a store itself")
	}
}

type storeFunc func() error

func (f storeFunc) Follow(commit.Change) error { return f() }

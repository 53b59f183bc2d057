package network

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/outbound"
	"svc/internal/task"
	"svc/internal/vfs"
)

// peer plays an instance that gets changes from a leader.
type peer struct {
	away    atomic.Bool                        // answers nothing
	refuses atomic.Bool                        // refuses announcements
	keeps   atomic.Bool                        // sends no documents
	asked   atomic.Bool                        // whether it was asked for documents
	state   atomic.Pointer[func() ChangeState] // the state of the change that the leader asks for
	knows   atomic.Pointer[Network]            // the network that it returns
	secret  atomic.Pointer[string]             // the password that it requires; nil: none
	server  *httptest.Server
}

// is sets the state that the peer reports.
func (p *peer) is(state ChangeState) { p.does(func() ChangeState { return state }) }

func (p *peer) does(f func() ChangeState) { p.state.Store(&f) }

func newPeer(t *testing.T) *peer {
	p := &peer{}
	p.is(ChangeState{Phase: finished, Committed: true})
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if want := p.secret.Load(); want != nil {
			if _, given, _ := r.BasicAuth(); given != *want {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
		}
		var answer any
		switch r.URL.Path {
		case "/experimental-features":
			answer = map[string]any{"network": true}
		case "/tasks":
			answer = map[string]any{"results": []any{}}
		case "/network/change":
			var asked struct{ Version uuid.UUID }
			_ = json.NewDecoder(r.Body).Decode(&asked)
			if answer = (ChangeState{}); asked.Version != uuid.Nil {
				answer = (*p.state.Load())()
			}
		case "/network/transfer":
			p.asked.Store(true)
			if p.keeps.Load() {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
		case "/network":
			if r.Method == http.MethodGet {
				_, _ = w.Write(p.knows.Load().shown(func(string) string { return "available" }, nil))
				return
			}
			if p.refuses.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			answer = map[string]any{"taskUid": 7}
		}
		_, _ = w.Write(encode(answer))
	}))
	t.Cleanup(p.server.Close)
	return p
}

// leading is an instance a that leads the peers b and c. They own shard x, and a alone owns y.
type leading struct {
	*Node
	t     *testing.T
	q     *task.Queue
	b, c  *peer
	ahead atomic.Int64 // how far its clock is ahead, in nanoseconds
	fs    sometimes    // the file system of the network
	gate  sync.RWMutex // locked while no change may begin
}

// sometimes is a file system that can fail to create files.
type sometimes struct {
	vfs.FS
	fails atomic.Pointer[func() bool] // nil: never
}

func (s *sometimes) Create(name string) (vfs.File, error) {
	if fails := s.fails.Load(); fails != nil && (*fails)() {
		return nil, errors.New("no more files")
	}
	return s.FS.Create(name)
}

func newLeading(t *testing.T) *leading {
	l := &leading{t: t, b: newPeer(t), c: newPeer(t)}
	l.fs.FS = vfs.NewMem()
	now := func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }
	dir := t.TempDir()
	catalog, err := index.OpenCatalog(filepath.Join(dir, "indexes"), index.Options{FS: vfs.OS, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { catalog.Close() })
	l.Node, err = Open(Options{FS: &l.fs, File: "network.json", Catalog: catalog, Allowed: outbound.Any(), OutboxLimit: 1, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	l.process = uuid.Nil // unknown: b answers at its address
	l.q, err = task.Open(task.Options{FS: vfs.OS, Dir: dir, Catalog: catalog, Now: time.Now, MaxBatchTasks: -1, OnForward: l.Forwarded, OnBatch: l.Ended,
		Executors: map[task.Kind]task.Executor{
			task.NetworkTopologyChange: func(ctx context.Context, q *task.Queue, tasks []*task.Task, p index.Progress) ([]task.Outcome, error) {
				l.gate.RLock()
				defer l.gate.RUnlock()
				return l.Executor(ctx, q, tasks, p)
			}}})
	if err != nil {
		t.Fatal(err)
	}
	l.Start(l.q)
	t.Cleanup(func() { l.Close() })
	t.Cleanup(func() { l.q.Close() })
	l.end(l.change(&Patch{Self: given("a"), Leader: given("a"),
		Remotes: map[string]*RemotePatch{"a": at(l.b.server.URL), "b": at(l.b.server.URL), "c": at(l.c.server.URL)},
		Shards:  map[string]*ShardPatch{"x": owners("b", "c"), "y": owners("a")}}), task.Succeeded)
	return l
}

func (l *leading) change(p *Patch) uint32 {
	l.t.Helper()
	made, err := l.Patch(context.Background(), p)
	if err != nil {
		l.t.Fatal(err)
	}
	return made.UID
}

// until waits for a condition, long enough for a slow machine.
func (l *leading) until(what string, is func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("never: %s", what)
		}
	}
}

// end waits for the end of a change and checks its status.
func (l *leading) end(uid uint32, want task.Status) {
	l.t.Helper()
	l.until("a change ends", func() bool {
		made, err := l.q.Task(uid, nil)
		if err != nil {
			l.t.Fatal(err)
		}
		if made.Status.Finished() && made.Status != want {
			l.t.Fatalf("the change is %s, want %s: %v", made.Status, want, made.Error)
		}
		return made.Status.Finished()
	})
}

// tells returns the remotes that get a write now.
func (l *leading) tells() []string {
	f, stored := l.Forward()
	stored()
	return f.Remotes
}

func (l *leading) lost() []string { return l.snapshot().Lost }

var (
	all   = []string{"b", "c"}
	onlyB = []string{"b"}
	onlyC = []string{"c"}
)

// TestARemoteIsLostDuringAnAnnouncement makes a remote unreachable from before a change is announced until the leader gives up its missing
// writes. The change must go on without it.
func TestARemoteIsLostDuringAnAnnouncement(t *testing.T) {
	l := newLeading(t)
	l.b.is(ChangeState{Phase: moved})
	l.c.refuses.Store(true)
	l.c.is(ChangeState{})
	before := l.Network().ShardNames()
	uid := l.change(&Patch{Shards: map[string]*ShardPatch{"z": owners("b")}})
	l.until("c fails to take the announcement", func() bool { return l.sender.failures(l.line("c")) > 0 })
	l.c.away.Store(true)
	l.ahead.Store(int64(time.Hour))
	if forward, err := l.CheckWrite(); err != nil || !forward {
		t.Errorf("a write is refused: %v", err)
	}
	l.end(uid, task.Failed)
	if now := l.Network().ShardNames(); !slices.Equal(l.lost(), onlyC) || !slices.Equal(now, before) || !slices.Equal(l.tells(), onlyB) || l.q.Lacks("c", uid) {
		t.Errorf("lost %v, shards %v, writes go to %v", l.lost(), now, l.tells())
	}
	// The remote is back. It gets the writes that arrive while it is rebuilt.
	l.b.is(ChangeState{Phase: moving})
	l.c.refuses.Store(false)
	l.c.away.Store(false)
	l.until("c is being rebuilt", l.rebuilds)
	if !slices.Equal(l.tells(), all) {
		t.Errorf("while c is rebuilt, writes go to %v", l.tells())
	}
	for _, p := range []*peer{l.b, l.c} {
		p.is(ChangeState{Phase: finished, Committed: true})
	}
	l.until("c is rebuilt", func() bool { return l.snapshot().Change == nil })
	if len(l.lost()) > 0 || !slices.Equal(l.tells(), all) {
		t.Errorf("after c was rebuilt, lost %v, writes go to %v", l.lost(), l.tells())
	}
}

// TestTheOnlyOwnerOfAShardIsNotLost makes a remote unreachable for too long within a change, before or after which it is the only owner of
// a shard. It must not be lost, because nothing could rebuild it.
func TestTheOnlyOwnerOfAShardIsNotLost(t *testing.T) {
	for name, shapes := range map[string][2][]string{
		"before it": {onlyC, all},
		"after it":  {all, onlyC},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeading(t)
			l.end(l.change(&Patch{Shards: map[string]*ShardPatch{"w": owners(shapes[0]...)}}), task.Succeeded)
			l.b.is(ChangeState{Phase: moved})
			l.c.refuses.Store(true)
			l.c.is(ChangeState{})
			uid := l.change(&Patch{Shards: map[string]*ShardPatch{"w": owners(shapes[1]...)}})
			l.until("c fails to take the announcement", func() bool { return l.sender.failures(l.line("c")) > 0 })
			l.c.away.Store(true)
			l.ahead.Store(int64(time.Hour))
			var refused *apierr.Error
			if _, err := l.CheckWrite(); !errors.As(err, &refused) || refused.Code != "no_space_left_on_device" {
				t.Errorf("a write is refused with %v", err)
			}
			if len(l.lost()) > 0 || !l.q.Lacks("c", uid) {
				t.Errorf("lost = %v", l.lost())
			}
		})
	}
}

// TestLostWithAnUndoneChange gives up a change that was to add a remote. The remote keeps its own documents and is not rebuilt.
func TestLostWithAnUndoneChange(t *testing.T) {
	l := newLeading(t)
	l.b.is(ChangeState{Phase: moved})
	d := newPeer(t)
	d.refuses.Store(true)
	d.is(ChangeState{})
	uid := l.change(&Patch{Remotes: map[string]*RemotePatch{"d": at(d.server.URL)}, Shards: map[string]*ShardPatch{"x": owners("b", "c", "d")}})
	l.until("d fails to take the announcement", func() bool { return l.sender.failures(l.line("d")) > 0 })
	d.away.Store(true)
	l.ahead.Store(int64(time.Hour))
	if _, err := l.CheckWrite(); err != nil {
		t.Fatal(err)
	}
	l.end(uid, task.Failed)
	if len(l.lost()) > 0 || l.Network().Remotes["d"] != nil {
		t.Errorf("lost = %v", l.lost())
	}
}

// rebuilds starts rebuilding lost remotes now, without waiting for the next check, and reports whether c is rebuilt.
func (l *leading) rebuilds() bool {
	l.rebuild()
	return l.snapshot().rebuilds("c")
}

// line returns the queue of deliveries to a remote.
func (l *leading) line(remote string) *line {
	l.sender.mu.Lock()
	defer l.sender.mu.Unlock()
	if l.sender.lines[remote] == nil {
		return &line{}
	}
	return l.sender.lines[remote]
}

// TestARemoteIsRestoredWithinAChange restores a remote from a snapshot that is older than its announcement of a change.
func TestARemoteIsRestoredWithinAChange(t *testing.T) {
	setBack := func(l *leading) {
		l.t.Helper()
		if alone, err := l.lose("c"); alone != nil || err != nil {
			l.t.Fatalf("c is the only owner of a shard: %v, %v", alone, err)
		}
	}
	told := func(l *leading, uid uint32) { l.until("c is told", func() bool { return !l.q.Lacks("c", uid) }) }
	// rebuilding loses c and rebuilds it up to the phase moving.
	rebuilding := func(l *leading) (uid uint32) {
		l.b.is(ChangeState{Phase: moving})
		l.c.is(ChangeState{Phase: moving})
		setBack(l)
		l.until("c is being rebuilt", l.rebuilds)
		uid = l.snapshot().Change.Task
		told(l, uid)
		return uid
	}

	t.Run("while it moves", func(t *testing.T) {
		l := newLeading(t)
		l.b.is(ChangeState{Phase: moving})
		l.c.is(ChangeState{Phase: moved})
		uid := l.change(&Patch{Shards: map[string]*ShardPatch{"z": owners("b")}})
		told(l, uid)
		setBack(l)
		l.end(uid, task.Failed)
		if !slices.Equal(l.lost(), onlyC) && !l.snapshot().rebuilds("c") || len(l.Network().ShardNames()) != 2 {
			t.Errorf("lost %v, shards %v", l.lost(), l.Network().ShardNames())
		}
	})
	t.Run("while the leader moves", func(t *testing.T) {
		l := newLeading(t)
		for _, p := range []*peer{l.b, l.c} {
			p.keeps.Store(true)
			p.is(ChangeState{Phase: moving})
		}
		uid := l.change(&Patch{Shards: map[string]*ShardPatch{"x": owners("a", "b", "c")}})
		told(l, uid)
		l.until("the leader asks for documents", func() bool { return l.b.asked.Load() || l.c.asked.Load() })
		setBack(l)
		l.end(uid, task.Failed)
	})
	t.Run("after the commit", func(t *testing.T) {
		l := newLeading(t)
		var version atomic.Pointer[uuid.UUID]
		committed := func() bool {
			v := version.Load()
			return v != nil && l.state(*v).Committed
		}
		l.b.does(func() ChangeState {
			if !committed() {
				return ChangeState{Phase: moved}
			}
			return ChangeState{Phase: finished, Committed: true}
		})
		var once sync.Once
		l.c.does(func() ChangeState {
			if !committed() {
				return ChangeState{Phase: moved}
			}
			once.Do(func() { setBack(l) })
			return ChangeState{SetBack: true}
		})
		uid := l.change(&Patch{Shards: map[string]*ShardPatch{"z": owners("b")}})
		now := l.Network().Version
		version.Store(&now)
		l.end(uid, task.Succeeded)
		if !slices.Equal(l.lost(), onlyC) || len(l.Network().ShardNames()) != 3 {
			t.Errorf("lost %v, shards %v", l.lost(), l.Network().ShardNames())
		}
	})
	t.Run("while it is rebuilt", func(t *testing.T) {
		l := newLeading(t)
		uid := rebuilding(l)
		setBack(l) // c reports this before the change is delivered to it
		if !l.snapshot().rebuilds("c") {
			t.Fatal("c is no longer rebuilt")
		}
		l.c.is(ChangeState{SetBack: true})
		setBack(l)
		l.end(uid, task.Failed)
		l.until("it is rebuilt again", func() bool { return l.rebuilds() && l.snapshot().Change.Task > uid })
		for _, p := range []*peer{l.b, l.c} {
			p.is(ChangeState{Phase: finished, Committed: true})
		}
		l.until("that ends", func() bool { return l.snapshot().Change == nil })
		if len(l.lost()) > 0 {
			t.Errorf("lost = %v", l.lost())
		}
	})
	t.Run("away again while it is rebuilt", func(t *testing.T) {
		l := newLeading(t)
		uid := rebuilding(l)
		if err := l.forsake("c", apierr.New("remote_timeout", "Late.")); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(l.tells(), onlyB) {
			t.Errorf("writes go to %v", l.tells())
		}
		for _, p := range []*peer{l.b, l.c} {
			p.is(ChangeState{Phase: finished, Committed: true})
		}
		l.end(uid, task.Succeeded)
		l.until("it is rebuilt once more", func() bool { l.rebuild(); return len(l.lost()) == 0 })
	})
}

// TestAChangeWhoseFileCannotBeWritten fails the write of the network file at each step of a change.
func TestAChangeWhoseFileCannotBeWritten(t *testing.T) {
	always := func() bool { return true }
	t.Run("as it is announced", func(t *testing.T) { // later writes belong to the new network all the same
		l := newLeading(t)
		l.b.is(ChangeState{Phase: moving})
		l.c.is(ChangeState{Phase: moving})
		before := l.Network()
		l.gate.Lock()
		begin := sync.OnceFunc(l.gate.Unlock)
		t.Cleanup(begin)
		l.fs.fails.Store(&always)
		d := newPeer(t)
		made, err := l.Patch(t.Context(), &Patch{Remotes: map[string]*RemotePatch{"d": at(d.server.URL)}, Shards: map[string]*ShardPatch{"z": owners("b", "d")}})
		if err != nil {
			t.Fatal(err)
		}
		f, stored := l.Forward()
		stored()
		if now := l.Network(); !slices.Equal(f.Remotes, []string{"b", "c", "d"}) || f.Version != now.Version.String() || now.Version == before.Version {
			t.Errorf("a write goes to %v with version %s, want %s", f.Remotes, f.Version, now.Version)
		}
		l.until("d is told", func() bool { return !l.q.Lacks("d", made.UID) })
		begin()
		l.end(made.UID, task.Failed)
		l.until("it is given up", func() bool { return l.snapshot().Change == nil && l.state(l.Network().Version).Canceled })
	})
	for name, tt := range map[string]struct {
		at        func(c *change) bool // selects the write that fails, once
		committed bool
	}{
		"as it is committed": {func(c *change) bool { return c.Phase == moved && !c.Commit }, false},
		"as searches switch": {func(c *change) bool { return c.Phase == moved && c.Commit }, true},
		"as it ends":         {func(c *change) bool { return c.Phase == switched }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeading(t)
			var failed bool // mu is held
			once := func() bool {
				if c := l.stored.Change; c == nil || failed || !tt.at(c) {
					return false
				}
				failed = true
				return true
			}
			l.fs.fails.Store(&once)
			z := &Patch{Shards: map[string]*ShardPatch{"z": owners("b")}}
			uid := l.change(z)
			version := l.Network().Version
			l.end(uid, task.Failed)
			l.until("it ends", func() bool { return l.snapshot().Change == nil })
			if st := l.state(version); st.Committed != tt.committed || st.Canceled == tt.committed || (l.Network().Shards["z"] != nil) != tt.committed {
				t.Errorf("the change ended with %+v", st)
			}
			l.end(l.change(z), task.Succeeded)
		})
	}
}

// TestRemovingTheLeaderForgetsLostRemotes removes the leader of a network with a lost remote: the list of lost remotes must become empty.
func TestRemovingTheLeaderForgetsLostRemotes(t *testing.T) {
	l := newLeading(t)
	if _, err := l.lose("c"); err != nil || !slices.Equal(l.lost(), onlyC) && !l.snapshot().rebuilds("c") {
		t.Fatalf("lost %v, %v", l.lost(), err)
	}
	if _, err := l.Patch(t.Context(), &Patch{Leader: Text{Given: true}}); err != nil || len(l.lost()) > 0 {
		t.Errorf("without a leader: lost %v, %v", l.lost(), err)
	}
}

// TestTheOnlyCopyIsNotCleared starts a leader whose stored state, as from a snapshot, lists remotes as lost that have the only copy of a
// shard. They must not be rebuilt, and must keep their documents.
func TestTheOnlyCopyIsNotCleared(t *testing.T) {
	for _, lost := range [][]string{all, onlyC} {
		l := newLeading(t)
		if slices.Equal(lost, onlyC) {
			l.end(l.change(&Patch{Shards: map[string]*ShardPatch{"w": owners("c")}}), task.Succeeded)
		}
		l.b.is(ChangeState{Phase: moving})
		l.c.is(ChangeState{Phase: moving})
		if err := l.update(func(s *stored) { s.Lost = lost }); err != nil {
			t.Fatal(err)
		}
		l.until("the network is announced anew", func() bool { l.rebuild(); return l.snapshot().Change != nil })
		if s := l.snapshot(); len(s.Change.Rebuilt) > 0 || len(s.Lost) > 0 || !slices.Equal(l.tells(), all) {
			t.Errorf("lost before %v: rebuilt %v, lost %v, writes go to %v", lost, s.Change.Rebuilt, s.Lost, l.tells())
		}
	}
}

// TestLostRemotesAreRebuiltOneByOne loses two remotes, one of which stays unreachable: the other is rebuilt without it.
func TestLostRemotesAreRebuiltOneByOne(t *testing.T) {
	l := newLeading(t)
	l.end(l.change(&Patch{Shards: map[string]*ShardPatch{"x": owners("a", "b", "c")}}), task.Succeeded)
	l.b.is(ChangeState{Phase: moving})
	l.c.is(ChangeState{})
	l.c.away.Store(true)
	if err := l.update(func(s *stored) { s.Lost = all }); err != nil {
		t.Fatal(err)
	}
	l.until("b is being rebuilt", func() bool { l.rebuild(); return l.snapshot().rebuilds("b") })
	uid := l.snapshot().Change.Task
	if !slices.Equal(l.tells(), onlyB) || l.q.Lacks("c", uid) || l.snapshot().rebuilds("c") {
		t.Errorf("while b is rebuilt, writes go to %v", l.tells())
	}
	l.c.away.Store(false) // too late for this change
	l.b.is(ChangeState{Phase: finished, Committed: true})
	l.end(uid, task.Succeeded)
	l.c.is(ChangeState{Phase: finished, Committed: true})
	l.until("c is rebuilt", func() bool { l.rebuild(); return len(l.lost()) == 0 && l.snapshot().Change == nil })
	if !slices.Equal(l.tells(), all) {
		t.Errorf("after both were rebuilt, writes go to %v", l.tells())
	}
}

// TestTheOnlyOwnersOfAShardWaitForEachOther loses both owners of a shard, one of which is unreachable. The other must wait, because the
// unreachable one may have the last copy.
func TestTheOnlyOwnersOfAShardWaitForEachOther(t *testing.T) {
	l := newLeading(t)
	l.c.away.Store(true)
	if err := l.update(func(s *stored) { s.Lost = all }); err != nil {
		t.Fatal(err)
	}
	if l.rebuild(); l.snapshot().Change != nil || !slices.Equal(l.lost(), all) {
		t.Errorf("without c: change %+v, lost %v", l.snapshot().Change, l.lost())
	}
	l.c.away.Store(false)
	l.until("both go on with what they have", func() bool { l.rebuild(); return len(l.lost()) == 0 })
}

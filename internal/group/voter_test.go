package group

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/commit"
	"svc/internal/index"
	"svc/internal/logstore"
	"svc/internal/socket/sockettest"
	"svc/internal/standby"
	"svc/internal/task"
	"svc/internal/vfs"
)

// elector is a voter whose stores are plain files.
type elector struct {
	t      *testing.T
	o      VoterOptions
	l      net.Listener // for the first start, then nil
	v      *Voter
	leads  atomic.Bool
	broken atomic.Bool // its stores cannot lead
	deaf   atomic.Bool // refuses to hand over the lead
	cancel func()
	done   chan error
}

// testHeartbeat is long, so that no live voter counts as dead on a busy machine.
const testHeartbeat = 1500 * time.Millisecond

// newElectors starts the voters of one group.
func newElectors(t *testing.T, n int) []*elector {
	t.Helper()
	all := idleElectors(t, n)
	for _, e := range all {
		e.start()
		t.Cleanup(e.stop)
	}
	return all
}

// idleElectors returns the voters of one group, not started.
func idleElectors(t *testing.T, n int) []*elector {
	t.Helper()
	all := make([]*elector, n)
	var addrs []string
	for i := range all {
		l, err := net.Listen("tcp", sockettest.Host()+":0")
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, l.Addr().String())
		e := &elector{t: t, l: l}
		e.o = VoterOptions{
			FS: unsyncedFS{vfs.OS}, Dir: filepath.ToSlash(t.TempDir()), Name: "shop", Addr: addrs[i], MasterKey: testKey, Format: testFormat, Version: "1",
			Heartbeat: testHeartbeat, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})).With("voter", i), Init: e.init,
		}
		all[i] = e
	}
	for _, e := range all {
		e.o.Join = addrs
	}
	return all
}

// init makes the directory look like that of a server without data.
func (e *elector) init() error {
	if err := os.WriteFile(path.Join(e.o.Dir, "VERSION"), []byte("svc 4 test\n"), 0o600); err != nil {
		return err
	}
	catalog, err := index.OpenCatalog(path.Join(e.o.Dir, "indexes"), index.Options{FS: e.o.FS, MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 1})
	if err != nil {
		return err
	}
	keys, err := auth.Open(auth.Options{File: path.Join(e.o.Dir, "auth.db"), FS: e.o.FS, MasterKey: testKey})
	if err != nil {
		return errors.Join(err, catalog.Close())
	}
	queue, err := task.Open(task.Options{Dir: path.Join(e.o.Dir, "tasks"), FS: e.o.FS, Catalog: catalog})
	if err != nil {
		return errors.Join(err, keys.Close(), catalog.Close())
	}
	return errors.Join(queue.Close(), keys.Close(), catalog.Close())
}

func (e *elector) start() {
	e.t.Helper()
	var err error
	l := e.l
	if e.l = nil; l == nil {
		within(e.t, e.o.Addr+" is free again", func() bool {
			l, err = net.Listen("tcp", e.o.Addr)
			return err == nil
		})
	}
	if e.v, err = OpenVoter(e.o, l); err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel, e.done = cancel, make(chan error, 1)
	go func() { e.done <- e.run(ctx) }()
}

func (e *elector) stop() {
	if e.v == nil {
		return
	}
	e.cancel()
	if err := errors.Join(<-e.done, e.v.Close()); err != nil && !errors.Is(err, context.Canceled) {
		e.t.Error(err)
	}
	e.v = nil
}

func (e *elector) run(ctx context.Context) error {
	if err := e.v.Enter(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		err := e.stand(ctx)
		if errors.Is(err, ErrReplace) {
			err = e.v.Replace()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *elector) stand(ctx context.Context) error {
	if e.v.Empty() {
		return e.v.Follow(ctx, nil)
	}
	e.v.Serves(e)
	defer e.v.Serves(nil)
	d := standby.Open(standby.Options{FS: e.o.FS, Dir: e.o.Dir})
	err := e.v.Follow(ctx, d)
	if e := d.Close(); e != nil {
		return e
	}
	if !errors.Is(err, ErrLead) {
		return err
	}
	leading, cease := context.WithCancel(context.WithoutCancel(ctx))
	defer cease()
	led := make(chan error, 1)
	go func() { led <- e.v.Lead(leading) }()
	if e.broken.Load() {
		e.v.Depose(errors.New("its stores are broken"))
		return <-led
	}
	e.leads.Store(true)
	defer e.leads.Store(false)
	select {
	case err := <-led:
		return err
	case <-e.v.Resigning():
		if !e.deaf.Load() {
			break
		}
		select {
		case err := <-led:
			return err
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	e.leads.Store(false)
	e.v.Resign()
	cease()
	return <-led
}

func (e *elector) CopyQueue(name string, with func([]string) error) error {
	if err := e.copyFile("tasks/queue.db", name); err != nil {
		return err
	}
	return with(nil)
}

func (e *elector) CopyKeys(name string) error { return e.copyFile("auth.db", name) }

func (e *elector) copyFile(from, to string) error {
	b, err := os.ReadFile(path.Join(e.o.Dir, from))
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// write replaces a sealed file through the voter.
func (e *elector) write(name string, data []byte, files ...string) error {
	return e.v.Do(commit.Change{Kind: commit.Sealed, Name: name, Data: data, Files: files}, func() error {
		_, err := vfs.Replace(e.o.FS, path.Join(e.o.Dir, name), data)
		return err
	})
}

// within waits until a condition holds.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// leaderOf returns the leader, which must not be one of but.
func leaderOf(t *testing.T, all []*elector, but ...*elector) (l *elector) {
	t.Helper()
	within(t, "a voter leads", func() bool {
		i := slices.IndexFunc(all, func(e *elector) bool { return e.v != nil && e.leads.Load() && !slices.Contains(but, e) })
		if i >= 0 {
			l = all[i]
		}
		return i >= 0
	})
	return l
}

// voting waits until the group has n voters.
func voting(t *testing.T, all []*elector, n int) {
	t.Helper()
	within(t, fmt.Sprintf("%d vote", n), func() bool {
		votes := 0
		for _, m := range leaderOf(t, all).v.Status().Members {
			if m.Votes {
				votes++
			}
		}
		return votes == n
	})
}

// agree waits until all voters have a file with the given content.
func agree(t *testing.T, all []*elector, name string, want []byte) {
	t.Helper()
	for _, e := range all {
		if e.v == nil {
			continue
		}
		within(t, fmt.Sprintf("%s has %s", e.o.Addr, name), func() bool {
			got, err := os.ReadFile(path.Join(e.o.Dir, name))
			return err == nil && bytes.Equal(got, want)
		})
	}
}

// accept writes through the leader until the group accepts the change.
func accept(t *testing.T, all []*elector, name string, data []byte) {
	t.Helper()
	within(t, "a write is accepted", func() bool { return leaderOf(t, all).write(name, data) == nil })
}

func codeOf(err error) apierr.Code {
	if err == nil {
		return ""
	}
	return apierr.From(err).Code
}

// next returns the voter after e.
func next(all []*elector, e *elector) *elector { return all[(slices.Index(all, e)+1)%len(all)] }

// TestVoters takes a group of three through its life. Each step looks up the leader, because it may change at any time on a busy machine.
func TestVoters(t *testing.T) {
	all := newElectors(t, 3)
	voting(t, all, 3)

	// Data too large for the log travel as files, like the files that a change names.
	const large = "tasks/payloads/large"
	content := bytes.Repeat([]byte("p"), 200<<10)
	for _, size := range []int{10, maxData, maxData + 1, 3 << 20} {
		data := bytes.Repeat([]byte{byte(size)}, size)
		within(t, "a change with a file is accepted", func() bool {
			l := leaderOf(t, all)
			if _, err := os.Stat(path.Join(l.o.Dir, large)); err != nil {
				if err := os.WriteFile(path.Join(l.o.Dir, large), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			return l.write("data.json", data, large) == nil
		})
		agree(t, all, "data.json", data)
		for _, e := range all {
			f, err := e.v.spool.open(fileKey(int64(len(content)), hash128(content)))
			if err != nil {
				t.Fatalf("%s accepted a change but not its file: %v", e.o.Addr, err)
			}
			if b, err := io.ReadAll(f); err != nil || !bytes.Equal(b, content) {
				t.Errorf("%s has %d bytes of a file: %v", e.o.Addr, len(b), err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}

	// A voter votes as long as it is not told otherwise: its log may be reopened meanwhile.
	for _, e := range all {
		within(t, e.o.Addr+" votes", e.v.Votes)
		v := &Voter{id: e.v.id, votes: true}
		if !v.Votes() {
			t.Error("a voter without an open log does not know that it votes")
		}
	}

	// Every voter knows the latest position.
	accept(t, all, "a.json", []byte("1"))
	acknowledged := leaderOf(t, all).v.Position()
	for _, e := range all {
		within(t, e.o.Addr+" knows the latest position", func() bool {
			at, err := e.v.Latest(t.Context())
			if err == nil && at.Compare(acknowledged) < 0 {
				t.Fatalf("%s: the latest position is %v, and %v was acknowledged", e.o.Addr, at, acknowledged)
			}
			return err == nil
		})
	}

	for _, x := range []struct {
		what string
		do   func(l *elector) error
		want apierr.Code
	}{
		{"a transfer by a follower", func(l *elector) error { return next(all, l).v.Transfer("") }, "no_writer"},
		{"a transfer to an unknown member", func(l *elector) error { return l.v.Transfer("nobody") }, "group_member_not_found"},
		{"a transfer to the leader", func(l *elector) error { return l.v.Transfer(l.o.Addr) }, "transfer_refused"},
		{"the removal of the leader", func(l *elector) error { return l.v.Remove(l.o.Addr) }, "removal_refused"},
		{"the removal of an unknown member", func(l *elector) error { return l.v.Remove("nobody") }, "group_member_not_found"},
	} {
		within(t, x.what+" is answered with "+string(x.want), func() bool { return codeOf(x.do(leaderOf(t, all))) == x.want })
	}

	// The lead goes to the member that the transfer names.
	var to *elector
	within(t, "the named member leads", func() bool {
		l := leaderOf(t, all)
		if l == to {
			return true
		}
		if l.v.Transfer(next(all, l).o.Addr) == nil {
			to = next(all, l)
		}
		return false
	})
	accept(t, all, "a.json", []byte("2"))
	agree(t, all, "a.json", []byte("2"))

	// A voter whose stores cannot lead hands over.
	l := leaderOf(t, all)
	l.broken.Store(true)
	l.v.Depose(errors.New("they are broken"))
	leaderOf(t, all, l)
	l.broken.Store(false)

	// A removed member leaves, and joins again as a new one.
	gone := next(all, leaderOf(t, all))
	was := gone.v.hello().Member
	within(t, "a member is removed", func() bool {
		l := leaderOf(t, all)
		if l == gone {
			_ = l.v.Transfer("") // or a transfer is running already
			return false
		}
		code := codeOf(l.v.Remove(was[:8]))
		return code == "" || code == "group_member_not_found" // an earlier removal succeeded although the lead was lost
	})
	gone.stop()
	accept(t, all, "a.json", []byte("3"))
	rest := slices.DeleteFunc(slices.Clone(all), func(e *elector) bool { return e == gone })
	l = leaderOf(t, rest)
	left := next(rest, l)
	left.stop()
	within(t, "the last other voter is away", func() bool {
		code := codeOf(l.v.Transfer(""))
		return code == "transfer_refused" || code == "no_writer"
	})
	left.start()
	if id, err := Rejoin(gone.o.FS, gone.o.Dir); err != nil || id.Member == was {
		t.Fatalf("%+v, %v", id, err)
	}
	gone.start()
	voting(t, all, 3)
	accept(t, all, "a.json", []byte("4"))
	agree(t, all, "a.json", []byte("4"))

	// Two disks are lost: the third voter keeps all of its data, and others join it.
	for _, e := range all {
		e.stop()
	}
	kept := all[0]
	back(t, kept, 2)
	r, err := Recover(kept.o.FS, kept.o.Dir, kept.o.Addr, false)
	if err != nil || r.Position.Index < r.Applied+2 || r.Elected < 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	const former = "127.0.0.1:1" // the leader corrects it
	if r, err = Recover(kept.o.FS, kept.o.Dir, former, true); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(kept.o.FS, kept.o.Dir, former, true); err != nil { // as if a crash had interrupted the first call
		t.Fatal(err)
	}
	kept.start()
	accept(t, all[:1], "b.json", []byte("5"))
	within(t, "it has its address", func() bool { return kept.v.Status().Members[0].Address == kept.o.Addr })
	if kept.v.Position().Compare(r.Position) <= 0 {
		t.Errorf("the recovered group is at %v, and was at %v", kept.v.Position(), r.Position)
	}
	for _, e := range all[1:] {
		if _, err := Rejoin(e.o.FS, e.o.Dir); err != nil {
			t.Fatal(err)
		}
		e.start()
	}
	voting(t, all, 3)
	agree(t, all, "b.json", []byte("5"))
	agree(t, all, "a.json", []byte("4"))
}

// back resets the position of a stopped voter, as if it had been killed before it applied its last n changes.
func back(t *testing.T, e *elector, n uint64) {
	t.Helper()
	p := positions{fs: e.o.FS, name: path.Join(e.o.Dir, positionFile)}
	at, ok, err := p.read()
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	at.Index -= n
	if err := errors.Join(p.restart(at), p.close(), forgetPositions(e)); err != nil {
		t.Fatal(err)
	}
}

// TestAFailedApplyEndsTheReign checks that a leader whose disk fails writes nothing more. Its stores take the change for failed, but the
// group has it; what they derive from the error, such as a failed task, must not get into the log.
func TestAFailedApplyEndsTheReign(t *testing.T) {
	all := newElectors(t, 1)
	broken := errors.New("the disk fails")
	within(t, "a change is accepted and cannot be applied", func() bool {
		e := leaderOf(t, all)
		rests := func(until time.Time) {
			e.v.mu.Lock()
			defer e.v.mu.Unlock()
			e.v.rested = until
		}
		defer rests(time.Time{})
		err := e.v.Do(commit.Change{Kind: commit.Sealed, Name: "a.json", Data: []byte("1")}, func() error {
			rests(time.Now().Add(time.Hour)) // else it may lead again before the next write
			return broken
		})
		if !errors.Is(err, broken) {
			return false
		}
		if err := e.write("b.json", []byte("a.json has failed")); codeOf(err) != "no_writer" {
			t.Fatalf("the next change is answered with %v", err)
		}
		return true
	})
	accept(t, all, "c.json", []byte("2"))
	agree(t, all, "a.json", []byte("1"))
	if _, err := os.Stat(path.Join(all[0].o.Dir, "b.json")); err == nil {
		t.Error("the group has a change that the stores derived from the error")
	}
}

// forgetPositions has the log of a stopped voter know nothing of its positions: they are bytes between the fixed part of an entry and its
// data, as package consensus describes them.
func forgetPositions(e *elector) error {
	log, err := logstore.Open(logstore.Options{FS: e.o.FS, Dir: path.Join(e.o.Dir, ballotDir, "log")})
	if err != nil {
		return err
	}
	var all [][]byte
	first := log.First()
	err = log.Read(first, func(_ uint64, b []byte) bool {
		_, term := binary.Uvarint(b[2:])
		_, at := binary.Varint(b[2+term:])
		head := 2 + term + at
		size, n := binary.Uvarint(b[head:])
		all = append(all, slices.Concat(b[:head], []byte{0}, b[head+n+int(size):]))
		return true
	})
	return errors.Join(err, log.Reset(first), log.Append(all...), log.Close())
}

// TestDeposedVoterRests checks that a voter whose stores cannot lead waits before it tries again.
func TestDeposedVoterRests(t *testing.T) {
	e := newElectors(t, 1)[0]
	leaderOf(t, []*elector{e})
	at := time.Now()
	e.v.Depose(errors.New("they are broken"))
	e.v.Depose(errors.New("the lead was lost")) // not an error of the stores
	if e.v.rest != minRest {
		t.Errorf("rest = %v", e.v.rest)
	}
	within(t, "it leads again", func() bool { return !e.v.resting() && e.leads.Load() && e.v.leads() })
	if d := time.Since(at); d < minRest {
		t.Errorf("the voter leads again after %v", d)
	}
	e.v.mu.Lock()
	defer e.v.mu.Unlock()
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		if e.v.tire(time.Now()); e.v.rest != want*time.Second {
			t.Errorf("rest = %v, want %v", e.v.rest, want*time.Second)
		}
	}
}

// TestHandOver checks that the lead goes to a voter that can lead, whatever happened before.
func TestHandOver(t *testing.T) {
	all := newElectors(t, 3)
	voting(t, all, 3)

	// A resting voter that is elected hands over.
	rests := next(all, leaderOf(t, all))
	rests.v.mu.Lock()
	rests.v.rested = time.Now().Add(time.Hour)
	rests.v.mu.Unlock()
	within(t, "a voter that rests is elected", func() bool {
		l := leaderOf(t, all)
		return l.v.node.Transfer(rests.v.hello().Member) == nil
	})
	leaderOf(t, all, rests)
	accept(t, all, "a.json", []byte("1"))
	if !rests.v.resting() {
		t.Error("the voter stopped resting")
	}

	// A reign that ends before the lead is handed over leaves nothing behind.
	within(t, "a transfer of a second reign", func() bool {
		l := leaderOf(t, all)
		l.deaf.Store(true)
		defer l.deaf.Store(false)
		l.v.mu.Lock()
		r := l.v.reign
		l.v.mu.Unlock()
		if r == nil || l.v.Transfer("") != nil {
			return false
		}
		r.end(errors.New("it was lost"))
		l.deaf.Store(false)
		within(t, "a second reign", func() bool {
			l = leaderOf(t, all)
			return l.v.leads()
		})
		return l.v.Transfer("") == nil
	})
	accept(t, all, "a.json", []byte("2"))

	// A leader that is stopped during a hand-over waits for its end.
	within(t, "a leader drains", func() bool {
		l := leaderOf(t, all)
		l.deaf.Store(true)
		defer l.deaf.Store(false)
		l.v.mu.Lock()
		r := l.v.reign
		l.v.mu.Unlock()
		if r == nil || l.v.Transfer("") != nil {
			return false
		}
		drained := make(chan bool)
		go func() {
			l.v.Drain(t.Context())
			select {
			case <-r.over:
				drained <- true
			default:
				drained <- false
			}
		}()
		within(t, "it drains", l.v.Draining)
		r.end(errHandedOver)
		if !<-drained {
			t.Error("stop returned before the hand-over ended")
		}
		return true
	})
}

// TestOnlyVotersRecover checks that Recover and Rejoin refuse directories of other members.
func TestOnlyVotersRecover(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	if _, err := Rejoin(vfs.OS, dir); err == nil {
		t.Error("Rejoin accepts a directory without an identity")
	}
	if _, err := Recover(vfs.OS, dir, "a:1", true); err == nil {
		t.Error("Recover accepts a directory without an identity")
	}
	if err := (&Identity{Name: "shop", Member: newID(), Role: RoleReader}).write(vfs.OS, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Rejoin(vfs.OS, dir); err == nil {
		t.Error("Rejoin accepts a reader")
	}
	if _, err := Recover(vfs.OS, dir, "a:1", true); err == nil {
		t.Error("Recover accepts a reader")
	}
}

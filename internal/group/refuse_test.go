package group

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"svc/internal/vfs"
)

// TestRefusedMembers checks that each refused member gets one clear error, and that the writer keeps working.
func TestRefusedMembers(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	h.add("a", 1, 2, 3)
	h.idle()
	other := newHost(t, nil) // another group of the same name
	joined := newFollower(t, other, nil)
	joined.reach(other)
	joined.stop()
	for name, tt := range map[string]struct {
		change func(*ReaderOptions)
		code   string
		want   string
	}{
		"key":      {func(o *ReaderOptions) { o.MasterKey = "another master key" }, refusedKey, "--master-key"},
		"name":     {func(o *ReaderOptions) { o.Name = "shoes" }, refusedGroup, "--group-name"},
		"format":   {func(o *ReaderOptions) { o.Format = "3" }, refusedFormat, "format version 4"},
		"group":    {func(o *ReaderOptions) { o.Dir = joined.o.Dir }, refusedGroup, "another group"},
		"the data": {func(o *ReaderOptions) { o.Dir = h.dir }, refusedData, "empty data directory"},
		"own data": {func(o *ReaderOptions) { write(t, path.Join(o.Dir, "VERSION"), "svc 4 1\n") }, refusedData, "it has VERSION"},
	} {
		o := ReaderOptions{FS: unsyncedFS{vfs.OS}, Dir: filepath.ToSlash(t.TempDir()), Name: "shop", Join: []string{h.addr}, MasterKey: testKey, Format: testFormat, Version: "1", Logger: slog.New(slog.DiscardHandler)}
		tt.change(&o)
		err := func() error {
			r, err := OpenReader(o)
			if err != nil {
				return err
			}
			defer r.Close()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if !r.Empty() {
				_, err := r.client.log(ctx, r.Position(), 0)
				return err
			}
			return r.Join(ctx)
		}()
		refused := new(RefusedError)
		if !errors.As(err, &refused) || refused.Code != tt.code || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want code %s and %q", name, err, tt.code, tt.want)
		}
	}
	f := newFollower(t, h, nil)
	h.add("a", 4)
	f.reach(h)
	f.same(h)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestStrangers connects without a hello, with bytes that are not one, and with a copied proof.
func TestStrangers(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	for _, say := range []string{"", "GET /group/state HTTP/1.1\r\n\r\n", strings.Repeat("x", 70_000)} {
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, say)
		if say == "" {
			_ = c.Close()
			continue
		}
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if b, _ := io.ReadAll(c); strings.Contains(string(b), "200") {
			t.Errorf("a stranger gets %q", b)
		}
		_ = c.Close()
	}
	f := newFollower(t, h, nil)
	f.reach(h)
}

// proxy forwards bytes through change.
type proxy struct {
	net.Listener
	to     string
	change func(b []byte) []byte // of the bytes from the writer; nil ends the connection
	wait   sync.WaitGroup
}

func newProxy(t *testing.T, to string, change func([]byte) []byte) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to, change: change}
	p.wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wait.Go(func() { p.pass(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.wait.Wait()
	})
	return p
}

func (p *proxy) pass(c net.Conn) {
	defer c.Close()
	w, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer w.Close()
	p.wait.Go(func() {
		_, _ = io.Copy(w, c)
		_ = w.Close()
	})
	b := make([]byte, 16<<10)
	for {
		n, err := w.Read(b)
		if n > 0 {
			out := p.change(b[:n])
			if out == nil {
				return
			}
			if _, err := c.Write(out); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// TestAnUnreliableConnection joins and follows over connections that break and corrupt bytes, again and again.
func TestAnUnreliableConnection(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	for i := range 8 {
		h.add("a", i, i+1, i+2)
	}
	h.idle()
	var sent, torn atomic.Int64
	p := newProxy(t, h.addr, func(b []byte) []byte {
		switch n := sent.Add(int64(len(b))); {
		case torn.Load() < 12 && n > 8000*(torn.Load()+1):
			if torn.Add(1)%2 == 0 {
				b[len(b)/2] ^= 4
				return b
			}
			return nil
		}
		return b
	})
	f := newFollower(t, h, func(o *ReaderOptions) { o.Join = []string{p.Addr().String()} })
	for i := range 20 {
		h.add("b", i)
		h.idle()
	}
	f.reach(h)
	f.same(h)
	if torn.Load() < 6 {
		t.Errorf("the connection broke %d times", torn.Load())
	}
}

// TestATransferResumes copies a large payload over connections that break after some bytes, and over a restart of the reader. Bytes that
// have arrived are not sent again.
func TestATransferResumes(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	h.stop()
	h.batch = 0 // no task runs, so the payload stays
	h.start()
	p, err := h.queue.NewPayload()
	if err != nil {
		t.Fatal(err)
	}
	const size = 8 << 20
	if _, err := p.Write([]byte(strings.Repeat("{\"id\":1}\n", size/9))); err != nil {
		t.Fatal(err)
	}
	h.enqueue("a", addition, p)
	var sent, since atomic.Int64
	line := newProxy(t, h.addr, func(b []byte) []byte {
		sent.Add(int64(len(b)))
		if since.Add(int64(len(b))) > 3<<20 {
			since.Store(0)
			return nil
		}
		return b
	})
	f := newFollower(t, h, func(o *ReaderOptions) { o.Join = []string{line.Addr().String()} })
	for deadline := time.Now().Add(time.Minute); sent.Load() < 4<<20; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing is sent")
		}
	}
	f.stop()
	f.start()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f.r.Wait(ctx, h.w.Position()); err != nil {
		t.Fatalf("%v: %+v", err, f.r.Status().Reader)
	}
	f.same(h)
	// Bytes in flight when a connection breaks are sent again.
	if n := sent.Load(); n > size*2 {
		t.Errorf("%d bytes are sent for a file of %d", n, size)
	}
}

// TestAFullDisk fails the writes of a reader: joining reports an error, and following waits for room.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	h.add("a", 1)
	h.idle()
	var full atomic.Bool
	full.Store(true)
	disk := vfs.Hook(unsyncedFS{vfs.OS}, func(o vfs.Op) error {
		if full.Load() && strings.Contains(o.Name, "indexes") && (o.Kind == vfs.OpWrite || o.Kind == vfs.OpCreate) {
			return syscall.ENOSPC
		}
		return nil
	})
	f := newFollower(t, h, func(o *ReaderOptions) { o.FS = disk })
	err := <-f.done
	if f.done <- nil; !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("joining a group with a full disk: %v", err)
	}
	f.stop()
	full.Store(false)
	f.start()
	f.reach(h)
	full.Store(true)
	h.add("a", 2)
	h.idle()
	for deadline := time.Now().Add(time.Minute); f.r.Status().Reader.Problem == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the full disk is not reported")
		}
	}
	if s := f.r.Status().Reader; !strings.Contains(s.Problem, "no space left") || s.State != StateAway {
		t.Errorf("%+v", s)
	}
	full.Store(false)
	f.reach(h)
	f.same(h)
}

// TestPromotion makes a reader the writer: it keeps its data, the old writer is fenced out, and the other readers switch to the new one.
func TestPromotion(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	h.add("a", 1, 2, 3)
	f, g := newFollower(t, h, nil), newFollower(t, h, nil)
	f.reach(h)
	g.reach(h)
	want := h.documents()
	f.stop()
	if _, err := Promote(vfs.OS, h.dir, nil); err == nil || !strings.Contains(err.Error(), "a writer already") {
		t.Errorf("the writer is promoted: %v", err)
	}
	id, err := Promote(vfs.OS, f.o.Dir, []string{h.addr})
	if err != nil || id.Term != 2 || id.Role != RoleWriter {
		t.Fatalf("%+v, %v", id, err)
	}
	if _, err := OpenReader(f.o); err == nil {
		t.Error("the new writer is opened as a reader")
	}
	n := &host{t: t, dir: f.o.Dir, addr: "127.0.0.1:0", batch: 3, o: h.o}
	n.o.Dir = n.dir
	n.start()
	t.Cleanup(n.stop)
	select {
	case <-h.w.Fenced():
	case <-time.After(time.Minute):
		t.Fatal("the old writer does not learn of the new one")
	}
	if got := n.documents(); !sameDocuments(got, want) {
		t.Errorf("the new writer has %v, want %v", got, want)
	}
	if err := h.w.Do(changeOf("a.json"), func() error { t.Error("the old writer writes"); return nil }); err == nil {
		t.Error("the old writer writes")
	}
	if _, err := OpenWriter(h.o); err == nil || !strings.Contains(err.Error(), "has become its writer") {
		t.Errorf("the old writer starts again: %v", err)
	}
	n.add("a", 4)
	n.idle()
	// A reader that has two addresses finds the new writer by itself.
	g.stop()
	g.o.Join = []string{h.addr, n.addr}
	g.start()
	g.reach(n)
	g.same(n)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		id, err := ReadIdentity(vfs.OS, n.dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(id.Former) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the new writer does not learn that the old one has stopped")
		}
	}
}

// TestRefusedVoters checks that each refused voter gets one clear error, and that the group keeps working.
func TestRefusedVoters(t *testing.T) {
	t.Parallel()
	all := newElectors(t, 3)
	voting(t, all, 3)
	accept(t, all, "a.json", []byte("1"))
	other := newElectors(t, 1)[0] // another group of the same name
	leaderOf(t, []*elector{other})
	other.stop()
	join := []string{all[0].o.Addr, all[1].o.Addr, all[2].o.Addr}
	for name, tt := range map[string]struct {
		change func(*VoterOptions)
		code   string
		want   string
	}{
		"key":            {func(o *VoterOptions) { o.MasterKey = "another master key" }, refusedKey, "Start both with the same --master-key"},
		"name":           {func(o *VoterOptions) { o.Name = "shoes" }, refusedGroup, "Check --group-name"},
		"format":         {func(o *VoterOptions) { o.Format = "3" }, refusedFormat, "Run the same svc on both"},
		"own data":       {func(o *VoterOptions) { makeDir(t, path.Join(o.Dir, "indexes")) }, refusedData, "joins a group with an empty data directory"},
		"of a reader":    {func(o *VoterOptions) { identify(t, o.Dir, Identity{Name: "shop", Member: newID(), Role: RoleReader}) }, refusedData, "has the data of a reader"},
		"of another one": {func(o *VoterOptions) { identify(t, o.Dir, Identity{Name: "shoes", Member: newID(), Role: RoleVoter}) }, refusedGroup, `--group-name says "shop"`},
		"lapsed": {func(o *VoterOptions) {
			identify(t, o.Dir, Identity{Name: "shop", Member: newID(), Role: RoleVoter, Lapsed: true})
		}, refusedData, "svc group rejoin --db-path"},
		"clock ahead":  {func(o *VoterOptions) { o.now = func() time.Time { return time.Now().Add(2 * time.Hour) } }, refusedClock, "behind that of this server"},
		"clock behind": {func(o *VoterOptions) { o.now = func() time.Time { return time.Now().Add(-2 * time.Hour) } }, refusedClock, "ahead of that of this server"},
		"two groups":   {func(o *VoterOptions) { other.start(); o.Join = append([]string{other.o.Addr}, join...) }, refusedGroup, "belong to 2 groups"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		o := VoterOptions{FS: unsyncedFS{vfs.OS}, Dir: filepath.ToSlash(t.TempDir()), Name: "shop", Addr: l.Addr().String(), Join: join, MasterKey: testKey, Format: testFormat, Version: "1", Logger: slog.New(slog.DiscardHandler)}
		tt.change(&o)
		if err := refusal(t, o, l); err == nil || err.Code != tt.code || !strings.Contains(err.Message, tt.want) {
			t.Errorf("%s: %v, want code %s and %q", name, err, tt.code, tt.want)
		}
	}
	accept(t, all, "a.json", []byte("2"))
	agree(t, all, "a.json", []byte("2"))
}

// TestGroupsThatAreNotFounded refuses two servers, which would not survive the loss of one, and two servers with data of their own.
func TestGroupsThatAreNotFounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		n, data int
		want    string
	}{
		"two hosts":           {2, 0, "lists 2 servers. A group begins with 1, 3 or 5 voters"},
		"four hosts":          {4, 1, "lists 4 servers"},
		"two hosts with data": {3, 2, "have data of their own, each"},
	} {
		var join []string
		var listeners []net.Listener
		for range tt.n {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			join, listeners = append(join, l.Addr().String()), append(listeners, l)
		}
		ends := make(chan *RefusedError, tt.n)
		for i, l := range listeners {
			o := VoterOptions{FS: unsyncedFS{vfs.OS}, Dir: filepath.ToSlash(t.TempDir()), Name: "shop", Addr: join[i], Join: join, MasterKey: testKey, Format: testFormat, Version: "1", Logger: slog.New(slog.DiscardHandler)}
			if i < tt.data {
				makeDir(t, path.Join(o.Dir, "indexes"))
			}
			go func() { ends <- refusal(t, o, l) }()
		}
		// The first server that ends becomes unreachable for the others, which wait for it.
		if err := <-ends; err == nil || !strings.Contains(err.Message, tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// TestAWrongClockAtTheFounding checks that all founders wait for a wrong clock, and that the others stay.
func TestAWrongClockAtTheFounding(t *testing.T) {
	t.Parallel()
	all := idleElectors(t, 3)
	var late atomic.Int64
	late.Store(int64(2 * time.Hour))
	all[2].o.now = func() time.Time { return time.Now().Add(-time.Duration(late.Load())) }
	waits := make(chan struct{}, 1)
	all[0].o.Logger = slog.New(&watching{slog.DiscardHandler, func(text string) {
		if strings.Contains(text, "Set the clocks of all servers") {
			select {
			case waits <- struct{}{}:
			default:
			}
		}
	}})
	for _, e := range all {
		e.start()
		t.Cleanup(e.stop)
	}
	select {
	case <-waits:
	case <-time.After(time.Minute):
		t.Fatal("no founder says that it waits for the clocks")
	}
	late.Store(0)
	voting(t, all, 3)
}

// watching is a slog.Handler that calls a function with the attributes of each record.
type watching struct {
	slog.Handler
	tell func(string)
}

func (w *watching) Enabled(context.Context, slog.Level) bool { return true }

func (w *watching) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		w.tell(a.Value.String())
		return true
	})
	return nil
}

// TestReadersOfAnOlderVersion checks that a voter refuses a reader that cannot read its log.
func TestReadersOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	e := newElectors(t, 1)[0]
	accept(t, []*elector{e}, "a.json", []byte("1"))
	for level, code := range []string{refusedFormat, "", ""} {
		h := e.v.hello()
		h.Member, h.Role, h.Purpose, h.Level = newID(), RoleReader, forGroup, byte(level)
		if r := e.v.admit(h); r.Refused != code || code != "" && !strings.Contains(r.Because, "Upgrade readers before voters") {
			t.Errorf("level %d: %q, %s", level, r.Refused, r.Because)
		}
	}
}

// refusal returns why a voter with some options is refused.
func refusal(t *testing.T, o VoterOptions, l net.Listener) *RefusedError {
	refused := new(RefusedError)
	v, err := OpenVoter(o, l)
	if err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = v.Enter(ctx)
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if !errors.As(err, &refused) {
		return nil
	}
	return refused
}

func makeDir(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(name, 0o700); err != nil {
		t.Fatal(err)
	}
}

func identify(t *testing.T, dir string, id Identity) {
	t.Helper()
	if err := id.write(vfs.OS, dir); err != nil {
		t.Fatal(err)
	}
}

// TestAVoterWithOlderFiles replaces the directory of a voter by an older copy. The leader notices it, the voter stops, refuses to start
// again, and is a new member after Rejoin.
func TestAVoterWithOlderFiles(t *testing.T) {
	t.Parallel()
	all := newElectors(t, 3)
	voting(t, all, 3)
	n := 0
	write := func() {
		t.Helper()
		n++
		accept(t, all, "a.json", []byte(strconv.Itoa(n)))
		agree(t, all, "a.json", []byte(strconv.Itoa(n)))
	}
	write()
	for tries := 0; ; tries++ {
		l := leaderOf(t, all)
		e, term := next(all, l), l.v.node.Term()
		e.stop()
		older := t.TempDir()
		if err := os.CopyFS(older, os.DirFS(e.o.Dir)); err != nil {
			t.Fatal(err)
		}
		e.start()
		write()
		write()
		e.stop()
		if err := errors.Join(os.RemoveAll(e.o.Dir), os.CopyFS(e.o.Dir, os.DirFS(older))); err != nil {
			t.Fatal(err)
		}
		e.start()
		var err error
		within(t, "the voter ends, or another leader was elected, which cannot notice", func() bool {
			select {
			case err = <-e.done:
				e.done <- nil
				return true
			default:
				return l.v.node.Term() != term
			}
		})
		if err == nil {
			if tries == 5 {
				t.Fatal("the leader keeps changing")
			}
			within(t, "it follows", func() bool { return e.v.Position().Compare(leaderOf(t, all).v.Position()) >= 0 })
			continue
		}
		refused := new(RefusedError)
		if !errors.As(err, &refused) || refused.Code != refusedData || !strings.Contains(err.Error(), "svc group rejoin --db-path") {
			t.Errorf("the voter ends with %v", err)
		}
		e.stop()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := refusal(t, e.o, listener); err == nil || err.Code != refusedData {
			t.Errorf("the voter starts again: %v", err)
		}
		if _, err := Rejoin(e.o.FS, e.o.Dir); err != nil {
			t.Fatal(err)
		}
		e.start()
		voting(t, all, 3)
		write()
		return
	}
}

package group

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/sealedjson"
	"svc/internal/task"
	"svc/internal/vfs"
)

// TestTakeOver has a reader take over while goroutines write to the writer. The new writer must have all successful changes. The old one
// must make no more, and later follows the new one.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	h.add("a", 1, 2, 3)
	f := newFollower(t, h, nil)
	f.reach(h)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var mu sync.Mutex
	made := map[string]string{}
	for i := range 3 {
		writing.Go(func() {
			for n := 0; ; n++ {
				name, text := fmt.Sprintf("f%d.json", i), fmt.Sprintf(`{"n":%d}`, n)
				if err := sealedjson.Write(h.w.FS(), path.Join(h.dir, name), 1, []byte(text)); err != nil {
					if !strings.Contains(err.Error(), "has become its writer") {
						t.Errorf("a change is refused with %v", err)
					}
					return
				}
				mu.Lock()
				made[name] = text
				mu.Unlock()
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f.r.TakeOver(ctx); err != nil {
		t.Fatal(err)
	}
	writing.Wait() // all are refused
	close(stop)
	want := h.w.Position()
	if at := f.r.Position(); at != want {
		t.Errorf("the reader is at %v, and the writer ended at %v", at, want)
	}
	if _, err := f.r.client.yield(ctx, map[string][]string{"step": {stepEnd}, "at": {want.String()}, "term": {"2"}}); err != nil {
		t.Errorf("a repeated request: %v", err)
	}
	select {
	case <-h.w.Fenced():
	case <-time.After(time.Minute):
		t.Fatal("the old writer does not stop")
	}
	f.cancel()
	if err := <-f.done; err != nil {
		t.Fatal(err)
	}
	f.done <- nil
	id, err := f.r.Become([]string{h.addr})
	if err != nil || id.Term < 2 || !id.Promoted {
		t.Fatalf("%+v, %v", id, err)
	}
	f.r.heard(&hello{Term: 99}) // from an older connection
	if id, err := ReadIdentity(vfs.OS, f.o.Dir); err != nil || id.Role != RoleWriter || id.Term > 3 {
		t.Errorf("the new writer gave up its role: %+v, %v", id, err)
	}
	f.stop()
	for name, text := range made {
		if got, err := sealedjson.Read(vfs.OS, path.Join(f.o.Dir, name), 1); err != nil || string(got) != text {
			t.Errorf("%s has %s, want %s: %v", name, got, text, err)
		}
	}
	n := &host{t: t, dir: f.o.Dir, addr: "127.0.0.1:0", batch: 3, o: h.o}
	n.o.Dir = n.dir
	n.start()
	t.Cleanup(n.stop)
	h.stop()
	if _, err := OpenWriter(h.o); err == nil || !strings.Contains(err.Error(), "has become its writer") {
		t.Errorf("the old writer starts again: %v", err)
	}
	n.add("a", 4)
	back := newFollower(t, n, func(o *ReaderOptions) { o.Dir = h.dir })
	back.reach(n)
	back.same(n)
}

// TestTakeOverIsRefused checks that a reader that cannot take over gets one error, and that the writer keeps working.
func TestTakeOverIsRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(o *WriterOptions) { o.standTime = time.Hour })
	h.add("a", 1)
	f := newFollower(t, h, nil)
	f.reach(h)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ask := func(q map[string][]string, want string) {
		t.Helper()
		refused := new(RefusedError)
		if _, err := f.r.client.yield(ctx, q); !errors.As(err, &refused) && !Unreachable(err) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v: %v, want %q", q, err, want)
		}
	}
	ask(map[string][]string{}, "no such step")
	ask(map[string][]string{"step": {stepEnd}, "at": {"x"}}, "is not a position")
	ask(map[string][]string{"step": {stepEnd}, "at": {h.w.Position().String()}, "term": {"2"}}, "has gone on")

	if _, err := h.w.standStill(ctx, "another"); err != nil {
		t.Fatal(err)
	}
	ask(map[string][]string{"step": {stepStand}}, "another reader is taking over")
	h.w.mu.Lock()
	h.w.stand.timer.Reset(100 * time.Millisecond)
	h.w.mu.Unlock()
	h.add("a", 2) // waits until the time is over
	if err := h.w.end("another", h.w.Position(), 2); err == nil || !strings.Contains(err.Error(), "has gone on") {
		t.Errorf("a reader that comes too late: %v", err)
	}
	at, err := h.w.standStill(ctx, "another")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.w.end("another", at, 1); err == nil || !strings.Contains(err.Error(), "term 1 is not after 1") {
		t.Errorf("the same term: %v", err)
	}
	at.Index--
	if err := h.w.end("another", at, 2); err == nil || !strings.Contains(err.Error(), "has gone on") {
		t.Errorf("another position: %v", err)
	}
	h.w.mu.Lock()
	h.w.goOnLocked(h.w.stand)
	h.w.mu.Unlock()

	// A change that hangs.
	slow, end := make(chan struct{}), make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		_ = h.w.Do(changeOf("a.json"), func() error { close(slow); <-end; return errors.New("nothing is made") })
	})
	<-slow
	soon, give := context.WithTimeout(ctx, 50*time.Millisecond)
	defer give()
	if _, err := h.w.standStill(soon, "another"); err == nil || !strings.Contains(err.Error(), "do not end") {
		t.Errorf("a change under way: %v", err)
	}
	close(end)
	changing.Wait()
	h.add("a", 3)
	f.reach(h)
	f.same(h)

	empty := newFollower(t, h, func(o *ReaderOptions) { o.Join = []string{"127.0.0.1:1"} })
	if err := empty.r.TakeOver(ctx); err == nil || !strings.Contains(err.Error(), "no data of the group yet") {
		t.Errorf("a reader without data: %v", err)
	}
	h.w.Hang()
	if err := f.r.TakeOver(ctx); !Unreachable(err) {
		t.Errorf("without the writer: %v", err)
	}
}

// TestAClosedWriterDoesNotStandStill checks that a writer which stands still for a take-over lets changes go on when it closes, so that
// its stores can close.
func TestAClosedWriterDoesNotStandStill(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	if _, err := h.w.standStill(context.Background(), "another"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := h.queue.Enqueue(context.Background(), task.New{IndexUID: "a", Content: task.CreateIndex{}})
		done <- err
	}()
	h.w.Hang()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestIdentitiesAreReadBack(t *testing.T) {
	want := Identity{Group: "g", Name: "shop", Member: "m", Role: RoleWriter, Term: 3, Run: 2, Fenced: true, Successor: "s", Promoted: true, Former: []string{"a:1"}}
	mem := vfs.NewMem()
	if err := mem.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	if err := want.write(mem, "d"); err != nil {
		t.Fatal(err)
	}
	got, err := ReadIdentity(mem, "d")
	if err != nil || fmt.Sprint(*got) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAChangeWithoutLogIsNotLost checks that no reader takes over from a writer that made a change and could not log it: the reader has
// all of the log, and lacks the change.
func TestAChangeWithoutLogIsNotLost(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	f := newFollower(t, h, nil)
	f.reach(h)
	if err := h.w.enter(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- f.r.TakeOver(ctx) }()
	within(t, "the reader waits for the change", func() bool {
		h.w.mu.Lock()
		defer h.w.mu.Unlock()
		return h.w.quiet != nil
	})
	if err := h.w.log.Close(); err != nil { // its disk fails
		t.Fatal(err)
	}
	h.w.append(&Entry{Change: changeOf("a.json")})
	h.w.leave()
	if err := <-answer; err == nil {
		t.Error("the reader takes over without a change that was made")
	}
	if err := h.w.enter(); err != nil {
		t.Errorf("the writer makes no more changes: %v", err)
	} else {
		h.w.leave()
	}
}

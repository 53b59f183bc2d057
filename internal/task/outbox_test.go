package task

import (
	"context"
	"io"
	"math"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/boltfile"
)

// reopen closes a queue, if there is one, and opens it.
func reopen(t *testing.T, q *Queue, o Options) *Queue {
	t.Helper()
	if q != nil {
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
	q, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// forwarded enqueues an addition that is forwarded to two remotes.
func forwarded(t *testing.T, q *Queue, docs string) *Task {
	t.Helper()
	n := adding(t, q, "x", AddDocuments{}, docs)
	n.Forward = &Forward{Version: "v", Method: "POST", Path: "/indexes/x/documents", ContentType: "application/x-ndjson", Remotes: []string{"b", "c"}}
	return enqueue(t, q, n)
}

// TestOutbox delivers to two remotes, through restarts at every point.
func TestOutbox(t *testing.T) {
	o, _ := testOptions(t)
	q := reopen(t, nil, o)
	first, second := forwarded(t, q, "1"), forwarded(t, q, "2")
	q = reopen(t, q, o)
	wait(t, q, second.UID) // the payloads stay for the remotes
	next := func(remote string, want *Task) {
		t.Helper()
		e, err := q.Next(remote)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e == nil && want == nil:
			return
		case e == nil || want == nil || e.UID != want.UID || e.Nonce == "" || e.Path != "/indexes/x/documents":
			t.Fatalf("%s gets %+v next, want %+v", remote, e, want)
		}
		r, err := q.OpenOutgoing(e)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if b, err := io.ReadAll(r); err != nil || len(b) == 0 {
			t.Fatalf("the documents of task %d: %q, %v", e.UID, b, err)
		}
	}
	next("b", first)
	next("c", first)
	there := uint32(7)
	failed := apierr.New("remote_timeout", "Late.")
	for _, step := range []struct {
		uid    uint32
		remote string
		r      RemoteTask
		done   bool
		b, c   *Task
	}{
		{first.UID, "b", RemoteTask{Err: failed}, false, first, first},
		{first.UID, "b", RemoteTask{UID: &there}, true, second, first},
		{first.UID, "b", RemoteTask{UID: &there}, true, second, first}, // recorded before a crash
		{second.UID, "b", RemoteTask{UID: &there}, true, nil, first},
		{first.UID, "c", RemoteTask{Err: failed}, true, nil, second},
		{second.UID, "c", RemoteTask{UID: &there}, true, nil, nil},
	} {
		if err := q.Delivered(step.uid, step.remote, step.r, step.done); err != nil {
			t.Fatal(err)
		}
		q = reopen(t, q, o)
		next("b", step.b)
		next("c", step.c)
	}
	if n := q.OutboxBytes(); n != 0 || len(q.Lags()) != 0 || q.payloadBytes.Load() != 0 {
		t.Errorf("%d bytes of writes and %d of payloads are left, and %v", n, q.payloadBytes.Load(), q.Lags())
	}
	defer q.Close()
	got, err := q.Task(first.UID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if shown, want := string(got.Network), `{"remote_tasks":{"b":{"taskUid":7,"error":null},"c":{"error":{"message":"Late."`; !strings.HasPrefix(shown, want) {
		t.Errorf("the task shows %s, want %s…", shown, want)
	}
}

// TestOrigins sends a forwarded request twice, and a different one that looks like it.
func TestOrigins(t *testing.T) {
	o, _ := testOptions(t)
	q := reopen(t, nil, o)
	ask := func(nonce string) *Task {
		n := adding(t, q, "x", AddDocuments{}, "1")
		n.Origin = &Origin{Remote: "a", TaskUID: 3, Version: "v", Nonce: nonce}
		return enqueue(t, q, n)
	}
	first := ask("n")
	if again := ask("n"); again.UID != first.UID || again.Kind != first.Kind {
		t.Errorf("the same request is task %d, and then %d", first.UID, again.UID)
	}
	q = reopen(t, q, o)
	if again := ask("n"); again.UID != first.UID {
		t.Errorf("after a restart the same request is task %d, want %d", again.UID, first.UID)
	}
	other := ask("m")
	if other.UID != first.UID+1 {
		t.Errorf("another request is task %d, want %d", other.UID, first.UID+1)
	}
	wait(t, q, other.UID)
	deletion, err := q.Enqueue(context.Background(), New{Content: DeleteTasks{Tasks: []uint32{first.UID}}})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, q, deletion.UID)
	if again := ask("n"); again.UID != first.UID {
		t.Errorf("a request whose task is deleted is task %d, want %d", again.UID, first.UID)
	}
	if n := q.payloadBytes.Load(); n != 0 {
		t.Errorf("%d bytes of payloads are left", n)
	}
	_ = q.Close()
}

func TestAbandon(t *testing.T) {
	o, _ := testOptions(t)
	q := reopen(t, nil, o)
	first := forwarded(t, q, "1")
	for range 4 {
		forwarded(t, q, "1")
	}
	if lag := q.Lags()["c"]; lag.Requests != 5 || lag.Oldest.IsZero() || lag.Bytes == 0 {
		t.Errorf("c lacks %+v", lag)
	}
	for _, tt := range []struct {
		last uint32
		left int
	}{{first.UID, 4}, {first.UID, 4}, {first.UID + 2, 2}, {math.MaxUint32, 0}} {
		if err := q.Abandon("c", tt.last, apierr.New("remote_timeout", "Gone.")); err != nil {
			t.Fatal(err)
		}
		q = reopen(t, q, o)
		lags := q.Lags()
		if lags["c"].Requests != tt.left || lags["b"].Requests != 5 {
			t.Errorf("after c was given up as far as task %d: %v", tt.last, lags)
		}
		if since, lacks := q.LacksSince("c"); lacks != (tt.left > 0) || !since.Equal(lags["c"].Oldest) || len(q.Lacking()) != len(lags) {
			t.Errorf("after c was given up as far as task %d it lacks something since %v (%v), and %v do", tt.last, since, lacks, q.Lacking())
		}
		if bytes := lags["b"].Bytes; q.OutboxBytes() != bytes {
			t.Errorf("after c was given up as far as task %d the outbox has %d bytes, want %d", tt.last, q.OutboxBytes(), bytes)
		}
	}
	_ = q.Close()
}

// TestCopyOfAnOutbox copies a queue while a request is delivered, and continues with the copy.
func TestCopyOfAnOutbox(t *testing.T) {
	for _, compact := range []bool{false, true} {
		o, _ := testOptions(t)
		q := reopen(t, nil, o)
		first := forwarded(t, q, "1")
		wait(t, q, first.UID)
		n := adding(t, q, "x", AddDocuments{}, "2")
		n.Origin = &Origin{Remote: "a", TaskUID: 3, Version: "v", Nonce: "n"}
		got := enqueue(t, q, n)
		wait(t, q, got.UID)
		to := t.TempDir()
		name := path.Join(to, path.Base(q.file))
		payloads, release, err := q.CopyTo(name, nil, compact)
		if err != nil {
			t.Fatal(err)
		}
		there := uint32(7)
		for _, remote := range []string{"b", "c"} {
			if err := q.Delivered(first.UID, remote, RemoteTask{UID: &there}, true); err != nil {
				t.Fatal(err)
			}
		}
		if len(payloads) != 1 {
			t.Fatalf("the copy needs %q, want one payload", payloads)
		}
		docs, err := os.ReadFile(payloads[0])
		if err != nil {
			t.Fatalf("a payload that the copy needs was removed: %v", err)
		}
		release()
		if _, err := os.Stat(payloads[0]); err == nil {
			t.Error("a delivered payload stays after the copy")
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(path.Join(to, "payloads"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path.Join(to, "payloads", path.Base(payloads[0])), docs, 0o666); err != nil {
			t.Fatal(err)
		}
		o.Dir = to
		copied := reopen(t, nil, o)
		defer copied.Close()
		e, err := copied.Next("c")
		if err != nil || e == nil || e.UID != first.UID {
			t.Fatalf("the copy has %+v for c, want task %d (%v)", e, first.UID, err)
		}
		r, err := copied.OpenOutgoing(e)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); err != nil || string(b) != string(docs) {
			t.Errorf("the documents are %q, want %q (%v)", b, docs, err)
		}
		r.Close()
		again := adding(t, copied, "x", AddDocuments{}, "2")
		again.Origin = n.Origin
		if task := enqueue(t, copied, again); task.UID != got.UID {
			t.Errorf("a request that came before the copy is task %d, want %d", task.UID, got.UID)
		}
		told, from := copied.Positions()
		if told != (Position{"v", first.UID}) || from != (Position{"v", 3}) {
			t.Errorf("the copy has sent %v and received %v", told, from)
		}
	}
}

// TestPayloadsAreCountedWithTheirTasks looks at a payload when its task and its request become visible. Both must be counted already: the
// one that ends first must not remove the payload.
func TestPayloadsAreCountedWithTheirTasks(t *testing.T) {
	o, _ := testOptions(t)
	q := reopen(t, nil, o)
	defer q.Close()
	n := adding(t, q, "x", AddDocuments{}, "1")
	c := n.Content.(AddDocuments)
	c.File, c.Size = n.Payload.name, 2
	n.Content = c
	n.Forward = &Forward{Version: "v", Remotes: []string{"b"}}
	r := &request{New: n}
	var err error
	if r.content, err = encodeContent(c); err != nil {
		t.Fatal(err)
	}
	if err := n.Payload.finish(); err != nil {
		t.Fatal(err)
	}
	needs := 0
	err = q.update(func(tx *txn) error {
		if err := q.insert(tx, r, tx.roster.nextTask(), 0); err != nil {
			return err
		}
		tx.after = append(tx.after, func(*roster) { needs = q.outbox.files[c.File] })
		return nil
	})
	if err != nil || needs != 2 {
		t.Errorf("when its task becomes visible a payload is needed by %d, want 2 (%v)", needs, err)
	}
}

// TestNextBesideAbandon asks for the next request while the previous one is being abandoned, between the commit and its visibility.
func TestNextBesideAbandon(t *testing.T) {
	o, _ := testOptions(t)
	committed := func() {}
	o.commit = func(tx *boltfile.Tx) error {
		err := tx.Commit()
		committed()
		return err
	}
	q := reopen(t, nil, o)
	defer q.Close()
	first, second := forwarded(t, q, "1"), forwarded(t, q, "2")
	wait(t, q, second.UID)
	next := make(chan *Outgoing)
	committed = sync.OnceFunc(func() {
		go func() {
			e, err := q.Next("b")
			if err != nil {
				t.Error(err)
			}
			next <- e
		}()
		time.Sleep(50 * time.Millisecond) // Next waits until the commit is visible
	})
	if err := q.Abandon("b", first.UID, apierr.New("remote_timeout", "Late.")); err != nil {
		t.Fatal(err)
	}
	if e := <-next; e == nil || e.UID != second.UID {
		t.Errorf("after the abandoned request comes %v, want task %d", e, second.UID)
	}
	if q.Lacks("b", first.UID) || !q.Lacks("b", second.UID) || !q.Lacks("c", first.UID) {
		t.Error("Lacking or Lacks is wrong")
	}
}

package webhook

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/outbound"
	"svc/internal/task"
	"svc/internal/vfs"
)

// target is a server that webhooks point at.
type target struct {
	*httptest.Server
	got chan delivered
}

type delivered struct {
	path, host string
	header     http.Header
	encoding   []string
	body       string
}

func newTarget(t *testing.T) *target {
	t.Helper()
	tg := &target{got: make(chan delivered, 100)}
	tg.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Errorf("not compressed: %v", err)
			return
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
			return
		}
		if r.URL.Path == "/gone" {
			http.Redirect(w, r, "/here", http.StatusFound) // a client that follows comes with GET and no body
			return
		}
		tg.got <- delivered{r.URL.Path, r.Host, r.Header, r.TransferEncoding, string(b)}
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(tg.Close)
	return tg
}

func (tg *target) next(t *testing.T) delivered {
	t.Helper()
	select {
	case d := <-tg.got:
		return d
	case <-time.After(time.Minute):
		t.Fatal("nothing comes")
		return delivered{}
	}
}

// lockedBuffer is a log that several goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newSender returns a sender to the given addresses, and its log.
func newSender(t *testing.T, policy outbound.Policy, changes ...Change) (*Sender, *lockedBuffer) {
	t.Helper()
	store := open(t, vfs.NewMem(), nil)
	for _, c := range changes {
		if _, err := store.Create(c); err != nil {
			t.Fatal(err)
		}
	}
	log := &lockedBuffer{}
	s := NewSender(store, policy, slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(s.Close)
	return s, log
}

// batchOf makes the tasks of a batch.
func batchOf(uid uint32, tasks ...uint32) []*task.Task {
	var list []*task.Task
	for _, n := range tasks {
		list = append(list, &task.Task{UID: n, BatchUID: &uid, IndexUID: "a", Status: task.Succeeded, Content: task.DeleteIndex{}})
	}
	return list
}

func TestDelivery(t *testing.T) {
	tg := newTarget(t)
	s, _ := newSender(t, outbound.Any(), Change{URL: text(tg.URL + "/done?x=1"), Headers: map[string]*string{
		"Authorization": text("Bearer for-the-hook"), "x-extra": text("1"), "X-Extra": text("1"), "Host": text("other.test"),
		"content-length": text("3"), "transfer-encoding": text("identity"),
	}})
	tasks := batchOf(7, 3, 4)
	s.Deliver(tasks)
	d := tg.next(t)
	if want := string(tasks[0].AppendJSON(nil)) + "\n" + string(tasks[1].AppendJSON(nil)) + "\n"; d.body != want {
		t.Errorf("got  %s\nwant %s", d.body, want)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip", "Authorization": "Bearer for-the-hook", "X-Extra": "1,1", "User-Agent": "svc",
	} {
		if got := strings.Join(d.header[name], ","); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if d.path != "/done" || d.host != "other.test" || fmt.Sprint(d.encoding) != "[chunked]" {
		t.Errorf("%s on %s, %v", d.path, d.host, d.encoding)
	}
	if tasks[0].Content == nil {
		t.Error("the queue's task was changed")
	}
}

func TestWhatGoesWrongIsLogged(t *testing.T) {
	tg := newTarget(t)
	for _, tt := range []struct {
		policy outbound.Policy
		url    string
		reason string // in the log; "" when the delivery arrives
	}{
		{outbound.Any(), tg.URL + "/moved", ""},
		{outbound.Any(), tg.URL + "/gone", "302"},
		{outbound.Any(), tg.URL + "/broken", "500"},
		{outbound.Any(), "http://127.0.0.1:1/", "refused"},
		{outbound.Any(), "other:thing", "unsupported protocol"},
		{outbound.Policy{}, tg.URL + "/private", "allowed-ip-networks"},
	} {
		s, log := newSender(t, tt.policy, Change{URL: text(tt.url)})
		s.Deliver(batchOf(1, 1))
		s.Close()
		if tt.reason == "" {
			if d := tg.next(t); d.path != "/here" || log.String() != "" {
				t.Errorf("%s: arrived at %s; %s", tt.url, d.path, log)
			}
		} else if !strings.Contains(log.String(), tt.reason) || strings.Contains(log.String(), tt.url) {
			t.Errorf("%s: %q is not logged, or the URL is: %s", tt.url, tt.reason, log)
		}
	}
	for len(tg.got) > 0 {
		if d := <-tg.got; d.path == "/private" {
			t.Error("a private address was reached")
		}
	}
}

// TestDeadTarget has one target that never answers. The other hears of every
// batch all the same, nothing waits for them, and Close cuts the dead one off.
func TestDeadTarget(t *testing.T) {
	over := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	defer dead.Close()
	defer close(over)
	alive := newTarget(t)
	s, log := newSender(t, outbound.Any(), Change{URL: &dead.URL}, Change{URL: &alive.URL})
	s.closeTime = 0
	const batches = 50
	for i := range uint32(batches) {
		s.Deliver(batchOf(i, i))
	}
	seen := map[string]bool{}
	for range batches {
		seen[alive.next(t).body] = true
	}
	if len(seen) != batches {
		t.Errorf("%d of %d batches", len(seen), batches)
	}
	// What waits for the dead one has a limit, but that a batch is taken whole, part by part.
	s.mu.Lock()
	for id, l := range s.lines {
		if len(l.waiting) > 0 {
			w, err := s.store.Get(id)
			if err != nil {
				t.Error(err)
			}
			before := len(l.waiting)
			s.add(delivery{w, &batch{uid: batches - 1, tasks: maxWaiting}})
			s.add(delivery{w, &batch{uid: batches - 1, tasks: maxWaiting}})
			if got := len(l.waiting) - before; got != 2 || log.String() != "" {
				t.Errorf("%d of 2 further parts of a batch are in the line: %s", got, log)
			}
			s.add(delivery{w, &batch{uid: 99, tasks: maxWaiting}})
			s.add(delivery{w, &batch{uid: 99, tasks: maxWaiting}})
			if got := len(l.waiting) - before; got != 2 {
				t.Errorf("%d deliveries more are in the line", got)
			}
		}
	}
	s.mu.Unlock()
	if !strings.Contains(log.String(), "too slow") {
		t.Errorf("the line has no end: %s", log)
	}
	s.Close()
	s.Deliver(batchOf(100, 100))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) != 0 {
		t.Errorf("%d lines after Close", len(s.lines))
	}
}

// TestCloseDeliversWhatWaits stops right after a batch.
func TestCloseDeliversWhatWaits(t *testing.T) {
	tg := newTarget(t)
	s, _ := newSender(t, outbound.Any(), Change{URL: &tg.URL})
	for i := range uint32(20) {
		s.Deliver(batchOf(i, i))
	}
	s.Close()
	if len(tg.got) != 20 {
		t.Errorf("%d of 20 batches", len(tg.got))
	}
}

package webhook

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/outbound"
	"svc/internal/sealedjson"
	"svc/internal/task"
	"svc/internal/vfs"
)

// target is a server that receives webhooks.
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
			http.Redirect(w, r, "/here", http.StatusFound) // a client that follows it sends GET without a body
			return
		}
		tg.got <- delivered{r.URL.Path, r.Host, r.Header, r.TransferEncoding, string(b)}
		switch r.URL.Path {
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/refused":
			w.WriteHeader(http.StatusBadRequest)
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
		t.Fatal("no delivery arrives")
		return delivered{}
	}
}

// lockedBuffer is a log buffer for several goroutines.
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

// queue is a queue with finished batches.
type queue struct {
	mu      sync.Mutex
	batches map[uint32][]*task.Task
	running *roaring.Bitmap
}

func (q *queue) BatchSets() (ended, running *roaring.Bitmap, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ended, running = roaring.New(), roaring.New()
	for uid := range q.batches {
		ended.Add(uid)
	}
	if q.running != nil {
		running.Or(q.running)
	}
	return ended, running, nil
}

func (q *queue) Tasks(f task.Filter) (*task.Page[*task.Task], error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	tasks := q.batches[f.BatchUIDs[0]]
	return &task.Page[*task.Task]{Total: len(tasks), Results: func(yield func(*task.Task, error) bool) {
		for _, t := range tasks {
			if !yield(t, nil) {
				return
			}
		}
	}}, nil
}

// end finishes a batch with some tasks.
func (q *queue) end(uid uint32, tasks ...uint32) []*task.Task {
	var list []*task.Task
	for _, n := range tasks {
		list = append(list, &task.Task{UID: n, BatchUID: &uid, IndexUID: "a", Status: task.Succeeded})
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.batches == nil {
		q.batches = map[uint32][]*task.Task{}
	}
	q.batches[uid] = list
	return list
}

// harness is a sender with its queue and stores.
type harness struct {
	*Sender
	queue *queue
	log   *lockedBuffer
}

// end finishes a batch of one task.
func (h *harness) end(uid uint32) {
	h.queue.end(uid, uid)
	h.Deliver(uid)
}

// newSender returns a sender that has not started.
func newSender(t *testing.T, fsys vfs.FS, policy outbound.Policy, q *queue) *harness {
	t.Helper()
	log := &lockedBuffer{}
	s := NewSender(Options{FS: fsys, File: "cursors.json", Store: open(t, fsys, nil), Policy: policy, Log: slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(s.Close)
	return &harness{s, q, log}
}

// start returns a sender to the given addresses that has started.
func start(t *testing.T, policy outbound.Policy, changes ...Change) *harness {
	t.Helper()
	h := newSender(t, vfs.NewMem(), policy, &queue{})
	h.begin(t)
	for _, c := range changes {
		if _, err := h.store.Create(c); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *harness) begin(t *testing.T) {
	t.Helper()
	if err := h.Start(h.queue); err != nil {
		t.Fatal(err)
	}
}

func TestDelivery(t *testing.T) {
	tg := newTarget(t)
	h := start(t, outbound.Any(), Change{URL: text(tg.URL + "/done?x=1"), Headers: map[string]*string{
		"Authorization": text("Bearer for-the-hook"), "x-extra": text("1"), "X-Extra": text("1"), "Host": text("other.test"),
		"content-length": text("3"), "transfer-encoding": text("identity"), "svc-delivery": text("mine"),
	}})
	tasks := h.queue.end(7, 3, 4)
	h.Deliver(7)
	d := tg.next(t)
	if want := string(tasks[0].AppendJSON(nil)) + "\n" + string(tasks[1].AppendJSON(nil)) + "\n"; d.body != want {
		t.Errorf("got  %s\nwant %s", d.body, want)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip", "Authorization": "Bearer for-the-hook", "X-Extra": "1,1", "User-Agent": "svc",
		DeliveryHeader: "7/" + h.store.List()[0].UUID.String(),
	} {
		if got := strings.Join(d.header[name], ","); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if d.path != "/done" || d.host != "other.test" || fmt.Sprint(d.encoding) != "[chunked]" {
		t.Errorf("%s on %s, %v", d.path, d.host, d.encoding)
	}
}

func TestFailuresAreLogged(t *testing.T) {
	tg := newTarget(t)
	for _, tt := range []struct {
		policy outbound.Policy
		url    string
		reason string // in the log; "" when the delivery arrives
		again  bool   // whether it is retried
	}{
		{outbound.Any(), tg.URL + "/moved", "", false},
		{outbound.Any(), tg.URL + "/gone", "302", false},
		{outbound.Any(), tg.URL + "/refused", "400", false},
		{outbound.Any(), tg.URL + "/broken", "500", true},
		{outbound.Any(), "http://127.0.0.1:1/", "refused", true},
		{outbound.Any(), "other:thing", "unsupported protocol", true},
		{outbound.Policy{}, tg.URL + "/private", "allowed-ip-networks", true},
	} {
		h := start(t, tt.policy, Change{URL: text(tt.url)})
		h.end(1)
		h.Close()
		log := h.log.String()
		if tt.reason == "" {
			if d := tg.next(t); d.path != "/here" || log != "" {
				t.Errorf("%s: arrived at %s; %s", tt.url, d.path, log)
			}
		} else if !strings.Contains(log, tt.reason) || strings.Contains(log, tt.url) {
			t.Errorf("%s: %q is not logged, or the URL is: %s", tt.url, tt.reason, log)
		}
		for _, l := range h.lines {
			if l.settled.Contains(1) == tt.again {
				t.Errorf("%s: retried: %v, want %v", tt.url, !tt.again, tt.again)
			}
		}
	}
	for len(tg.got) > 0 {
		if d := <-tg.got; d.path == "/private" {
			t.Error("a private address was reached")
		}
	}
}

// TestDeadReceiver has one receiver that never answers. The other must still get every batch, nothing may wait for the dead one, and Close
// must cut it off.
func TestDeadReceiver(t *testing.T) {
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
	h := start(t, outbound.Any(), Change{URL: &dead.URL}, Change{URL: &alive.URL})
	h.closeTime = 0
	const batches = 50
	for i := range uint32(batches) {
		h.end(i)
	}
	seen := map[string]bool{}
	for range batches {
		seen[alive.next(t).body] = true
	}
	if len(seen) != batches {
		t.Errorf("%d of %d batches", len(seen), batches)
	}
	h.Close()
	h.end(100)
	settled := map[string]uint64{}
	for id, l := range h.lines {
		w, err := h.store.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		settled[w.URL] = l.settled.GetCardinality()
	}
	if settled[dead.URL] != 0 || settled[alive.URL] < batches-parallel {
		t.Errorf("logged: %v", settled)
	}
}

// receiver stands for the network: it records the batches of deliveries, and answers with status.
type receiver struct {
	mu     sync.Mutex
	got    []uint32
	ids    map[string]int
	status func(batch uint32, try int) int
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	id := req.Header.Get(DeliveryHeader)
	var batch uint32
	if _, err := fmt.Sscanf(id, "%d/", &batch); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = map[string]int{}
	}
	status := 200
	if r.status != nil {
		status = r.status(batch, r.ids[id])
	}
	if r.ids[id]++; status == 200 {
		r.got = append(r.got, batch)
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Body: http.NoBody, Request: req}, nil
}

// batches returns the delivered batches in order.
func (r *receiver) batches() []uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.got))
}

func upTo(first, end uint32) (all []uint32) {
	for uid := first; uid < end; uid++ {
		all = append(all, uid)
	}
	return all
}

// TestFailedDeliveriesAreRetried has a receiver that fails twice per batch, with more batches than the number of failures that
// are remembered.
func TestFailedDeliveriesAreRetried(t *testing.T) {
	h := start(t, outbound.Any(), Change{URL: text("http://receiver.test/")})
	r := &receiver{status: func(_ uint32, try int) int {
		if try < 2 {
			return []int{503, 429}[try]
		}
		return 200
	}}
	h.client.Transport, h.firstWait = r, time.Microsecond
	const batches = 5 * maxFailed
	for uid := range uint32(batches) {
		h.end(uid)
	}
	for deadline := time.Now().Add(time.Minute); len(r.batches()) < batches && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	h.Close()
	if got := r.batches(); !slices.Equal(got, upTo(0, batches)) {
		t.Errorf("delivered: %d", got)
	}
	for id, n := range r.ids {
		if n != 3 {
			t.Errorf("%s: %d tries", id, n)
		}
	}
}

// TestARestartContinues stops a sender before everything is delivered.
func TestARestartContinues(t *testing.T) {
	mem, q := vfs.NewMem(), &queue{running: roaring.BitmapOf(3)}
	for uid := range uint32(6) {
		if uid != 3 {
			q.end(uid, uid)
		}
	}
	one := newSender(t, mem, outbound.Any(), q)
	one.Deliver(5) // before Start
	one.begin(t)
	r := &receiver{status: func(batch uint32, _ int) int {
		if batch%2 == 1 {
			return 500
		}
		return 200
	}}
	one.client.Transport = r
	if _, err := one.store.Create(Change{URL: text("http://receiver.test/")}); err != nil {
		t.Fatal(err)
	}
	q.running = nil
	for _, uid := range []uint32{6, 3, 7, 8} { // 3 began before the webhook was created
		one.end(uid)
	}
	one.Close()
	if got := r.batches(); !slices.Equal(got, []uint32{6, 8}) {
		t.Fatalf("delivered: %d", got)
	}
	q.end(9, 9)
	q.end(10) // its tasks were deleted
	two := newSender(t, mem, outbound.Any(), q)
	r = &receiver{}
	two.client.Transport = r
	two.begin(t)
	two.end(11)
	two.Close()
	if got := r.batches(); !slices.Equal(got, []uint32{3, 7, 9, 11}) {
		t.Errorf("delivered after the restart: %d", got)
	}
	if b, err := sealedjson.Read(mem, "cursors.json", cursorVersion); err != nil || !strings.Contains(string(b), `[[0,11]]`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestADeletedWebhookGetsNothing deletes a webhook while deliveries to it fail.
func TestADeletedWebhookGetsNothing(t *testing.T) {
	mem, q := vfs.NewMem(), &queue{}
	h := newSender(t, mem, outbound.Any(), q)
	h.begin(t)
	h.client.Transport = &receiver{status: func(uint32, int) int { return 500 }}
	w, err := h.store.Create(Change{URL: text("http://receiver.test/")})
	if err != nil {
		t.Fatal(err)
	}
	h.end(0)
	if err := h.store.Delete(w.UUID); err != nil {
		t.Fatal(err)
	}
	h.end(1)
	h.Close()
	two := newSender(t, mem, outbound.Any(), q)
	two.begin(t)
	two.Close()
	if b, err := sealedjson.Read(mem, "cursors.json", cursorVersion); err != nil || string(b) != `{}` {
		t.Errorf("%s, %v", b, err)
	}
}

// TestDeletedWebhooksLeaveNothing creates and deletes webhooks, and fails to create others, without a restart: no state may stay.
func TestDeletedWebhooksLeaveNothing(t *testing.T) {
	full := false
	mem := vfs.NewMem()
	fsys := vfs.Hook(mem, func(op vfs.Op) error {
		if full && op.Kind == vfs.OpRename && !strings.Contains(op.Name, "cursors") {
			return errors.New("the disk is full")
		}
		return nil
	})
	h := newSender(t, fsys, outbound.Any(), &queue{})
	h.begin(t)
	for i := range 6 {
		full = i%2 == 1
		w, err := h.store.Create(Change{URL: text("http://receiver.test/")})
		if (err != nil) != full {
			t.Fatalf("%d: %v", i, err)
		}
		if !full {
			if err := h.store.Delete(w.UUID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(h.lines) != 1 {
		t.Errorf("%d lines are left", len(h.lines))
	}
	b, err := sealedjson.Read(mem, "cursors.json", cursorVersion)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := parseCursors(b); err != nil || len(c) != 1 {
		t.Errorf("%s, %v", b, err)
	}
}

// TestABatchThatEndsDuringACreation ends a batch between the cursor of a webhook and its creation: the batch must be delivered
// without a restart.
func TestABatchThatEndsDuringACreation(t *testing.T) {
	q := &queue{}
	var h *harness
	var once sync.Once
	fsys := vfs.Hook(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpRename && op.NewName == "webhooks.json" {
			once.Do(func() { h.end(0) })
		}
		return nil
	})
	h = newSender(t, fsys, outbound.Any(), q)
	r := &receiver{}
	h.client.Transport = r
	h.begin(t)
	if _, err := h.store.Create(Change{URL: text("http://receiver.test/")}); err != nil {
		t.Fatal(err)
	}
	h.end(1)
	h.Close()
	if got := r.batches(); !slices.Equal(got, upTo(0, 2)) {
		t.Errorf("delivered: %d", got)
	}
}

// TestABatchThatEndedBeforeACreation creates a webhook after the tasks of a batch have ended but before the batch is queued for delivery.
func TestABatchThatEndedBeforeACreation(t *testing.T) {
	h := newSender(t, vfs.NewMem(), outbound.Any(), &queue{})
	r := &receiver{}
	h.client.Transport = r
	h.begin(t)
	h.queue.end(0, 0)
	if _, err := h.store.Create(Change{URL: text("http://receiver.test/")}); err != nil {
		t.Fatal(err)
	}
	h.Deliver(0)
	h.end(1)
	h.Close()
	if got := r.batches(); !slices.Equal(got, []uint32{1}) {
		t.Errorf("delivered: %d", got)
	}
}

// TestAQueueThatStartsOver starts with a lost queue: the cursors name batches that it does not know.
func TestAQueueThatStartsOver(t *testing.T) {
	for _, stays := range []uint32{0, 1, 3} { // number of batches that the queue still has
		mem := vfs.NewMem()
		one := newSender(t, mem, outbound.Any(), &queue{})
		one.client.Transport = &receiver{}
		one.begin(t)
		if _, err := one.store.Create(Change{URL: text("http://receiver.test/")}); err != nil {
			t.Fatal(err)
		}
		for uid := range uint32(5) {
			one.end(uid)
		}
		one.Close()
		q := &queue{}
		for uid := range stays {
			q.end(uid, uid)
		}
		two := newSender(t, mem, outbound.Any(), q)
		r := &receiver{}
		two.client.Transport = r
		two.begin(t)
		for uid := stays; uid < 6; uid++ {
			two.end(uid)
		}
		two.Close()
		if got := r.batches(); !slices.Equal(got, upTo(stays, 6)) {
			t.Errorf("%d batches stay; delivered: %d", stays, got)
		}
	}
}

// TestDamagedCursors starts with a damaged file of cursors.
func TestDamagedCursors(t *testing.T) {
	mem, q := vfs.NewMem(), &queue{}
	one := newSender(t, mem, outbound.Any(), q)
	one.begin(t)
	if _, err := one.store.Create(Change{URL: text("http://receiver.test/")}); err != nil {
		t.Fatal(err)
	}
	one.Close()
	if err := sealedjson.Write(mem, "cursors.json", cursorVersion, []byte(`{"`+one.store.List()[0].UUID.String()+`":[[2,1]]}`)); err != nil {
		t.Fatal(err)
	}
	q.end(0, 0)
	two := newSender(t, mem, outbound.Any(), q)
	r := &receiver{}
	two.client.Transport = r
	two.begin(t)
	two.end(1)
	two.Close()
	if got := r.batches(); !slices.Equal(got, []uint32{1}) || !strings.Contains(two.log.String(), "cursors.json") {
		t.Errorf("delivered: %d; %s", got, two.log)
	}
}

// TestCrashesLoseNoDelivery crashes before each file operation. Whatever was delivered before, all batches that end after the creation of
// a webhook must be delivered, and no earlier ones.
func TestCrashesLoseNoDelivery(t *testing.T) {
	type state struct {
		fs      vfs.FS
		ended   int
		got     []uint32
		created bool
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	mem, q, r := vfs.NewMem(), &queue{}, &receiver{}
	r.status = func(batch uint32, try int) int {
		if try == 0 && batch%3 == 0 {
			return 500
		}
		return 200
	}
	var mu sync.Mutex
	var states []state
	created := false
	hooked := vfs.Hook(mem, func(vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		got := r.batches() // includes what the file says was delivered
		q.mu.Lock()
		ended := len(q.batches)
		q.mu.Unlock()
		states = append(states, state{mem.CrashClone(rng), ended, got, created}, state{mem.CrashClone(nil), ended, got, created})
		return nil
	})
	h := newSender(t, hooked, outbound.Any(), q)
	h.client.Transport, h.firstWait, h.saveTime = r, time.Millisecond, time.Millisecond
	const older, newer = 3, 15
	for uid := range uint32(older) {
		q.end(uid, uid)
	}
	h.begin(t)
	if _, err := h.store.Create(Change{URL: text("http://receiver.test/")}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	created = true
	mu.Unlock()
	for uid := uint32(older); uid < older+newer; uid++ {
		h.end(uid)
		time.Sleep(time.Millisecond)
	}
	h.Close()
	if len(states) < 20 {
		t.Fatalf("only %d states", len(states))
	}
	for i, st := range states {
		q := &queue{}
		for uid := range uint32(st.ended) {
			q.end(uid, uid)
		}
		h := newSender(t, st.fs, outbound.Any(), q)
		r := &receiver{}
		h.client.Transport = r
		h.begin(t)
		h.Close()
		if !st.created && len(h.store.List()) == 0 {
			continue
		}
		all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(st.got, r.got))))
		if want := upTo(older, uint32(st.ended)); !slices.Equal(all, want) {
			t.Errorf("state %d of %d: delivered %d before and %d after the crash, want %d", i, len(states), st.got, r.got, want)
		}
	}
}

// TestCloseDeliversPendingBatches closes the sender right after a batch.
func TestCloseDeliversPendingBatches(t *testing.T) {
	tg := newTarget(t)
	h := start(t, outbound.Any(), Change{URL: &tg.URL})
	for i := range uint32(20) {
		h.end(i)
	}
	h.Close()
	if len(tg.got) != 20 {
		t.Errorf("%d of 20 batches", len(tg.got))
	}
}

func FuzzReadCursors(f *testing.F) {
	f.Add([]byte(`{"00000000-0000-0000-0000-000000000001":[[0,3],[5,4294967295]]}`))
	f.Add([]byte(`{"00000000-0000-0000-0000-000000000001":[[3,0]]}`))
	f.Add([]byte(`{"00000000-0000-0000-0000-000000000001":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCursors(b)
		if err != nil {
			return
		}
		again, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		d, err := parseCursors(again)
		if err != nil || len(c) != len(d) {
			t.Fatalf("%s: %v", again, err)
		}
		for id, set := range c {
			if !set.Equals(d[id]) {
				t.Errorf("%s: %s", id, again)
			}
		}
	})
}

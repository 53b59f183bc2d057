package webhook

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"svc/internal/outbound"
	"svc/internal/task"
	"svc/internal/vfs"
)

const (
	deliveryTimeout = 30 * time.Second // of a whole request, redirects included

	// closeTime is how long Close lets deliveries go on.
	closeTime = 3 * time.Second

	// saveTime is the least time between two writes of the cursors. After a crash, deliveries of that time are repeated.
	saveTime = time.Second

	maxAnswer = 64 << 10 // bytes read of a response, so that the connection can be reused
)

// DeliveryHeader identifies a delivery: the uid of the batch, a slash and the UUID of the webhook. Retries have the same value.
const DeliveryHeader = "Svc-Delivery"

// Batches is the part of the task queue that a sender reads.
type Batches interface {
	// BatchSets returns the finished and the running batches.
	BatchSets() (ended, running *roaring.Bitmap, err error)
	// Tasks lists the tasks of a batch.
	Tasks(task.Filter) (*task.Page[*task.Task], error)
}

// Options of a Sender.
type Options struct {
	FS     vfs.FS
	File   string // of the cursors
	Store  *Store
	Policy outbound.Policy // for the addresses of webhooks
	Log    *slog.Logger
}

// Sender delivers finished batches to the webhooks of a store.
type Sender struct {
	fs      vfs.FS
	file    string
	store   *Store
	log     *slog.Logger
	client  http.Client
	batches Batches

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	done sync.WaitGroup // of the goroutines that deliver
	kept sync.WaitGroup // of the one that saves

	firstWait, closeTime, saveTime time.Duration

	saving sync.Mutex // held for the file
	mu     sync.Mutex
	closed bool // also before Start
	lines  map[uuid.UUID]*line
	// changed is true while the cursors differ from the file. wake wakes the goroutine that saves them.
	changed bool
	wake    chan struct{}
}

// NewSender returns a sender. Deliveries begin with Start.
func NewSender(o Options) *Sender {
	s := &Sender{
		fs: o.FS, file: o.File, store: o.Store, log: o.Log,
		client:    http.Client{Transport: o.Policy.Transport(), CheckRedirect: outbound.RepeatOnly, Timeout: deliveryTimeout},
		firstWait: firstWait, closeTime: closeTime, saveTime: saveTime, closed: true, lines: map[uuid.UUID]*line{}, wake: make(chan struct{}, 1),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Start delivers finished batches that are still owed, and accepts new ones from then on. Webhooks without a cursor, such as a new
// one of the command line, get only later batches. So do all webhooks if the file of cursors is damaged.
func (s *Sender) Start(batches Batches) error {
	s.batches = batches
	stored, err := s.readCursors()
	if err != nil {
		s.log.Warn("webhooks do not receive batches that ended before this start", "error", err)
	}
	if err := s.resume(stored); err != nil {
		return err
	}
	if err := s.save(); err != nil {
		return err
	}
	s.store.follow(s.begin)
	s.kept.Go(s.keep)
	return nil
}

// resume creates the lines of all webhooks.
func (s *Sender) resume(stored cursors) error {
	s.mu.Lock() // a batch that ends meanwhile waits in Deliver
	defer s.mu.Unlock()
	ended, running, err := s.batches.BatchSets()
	if err != nil {
		return fmt.Errorf("cannot read which batches have ended: %w", err)
	}
	s.closed = false
	hooks := s.store.List()
	var next uint64 // after the highest batch of the queue; a lost batch number may be reused
	if known := roaring.Or(ended, running); !known.IsEmpty() {
		next = uint64(known.Maximum()) + 1
	}
	for _, w := range hooks {
		settled := stored[w.UUID]
		if settled == nil {
			s.lines[w.UUID] = newLine(before(ended, running))
			s.changed = true
			continue
		}
		if !settled.IsEmpty() && uint64(settled.Maximum()) >= next {
			settled.RemoveRange(next, math.MaxUint32+1)
			s.changed = true
		}
		l := newLine(settled)
		l.owed = roaring.AndNot(ended, settled)
		s.lines[w.UUID] = l
		s.work(w.UUID, l, parallel)
	}
	s.changed = s.changed || len(stored) != len(hooks)
	return nil
}

// before returns the cursor of a webhook that is to get only the batches that have not ended.
func before(ended, running *roaring.Bitmap) *roaring.Bitmap {
	settled := roaring.New()
	if !ended.IsEmpty() {
		settled.AddRange(0, uint64(ended.Maximum())+1)
	}
	settled.AndNot(running)
	return settled
}

// begin stores the cursor of a webhook before it is created, and drops those of deleted webhooks. The store calls it under its lock,
// so no other webhook is half created.
func (s *Sender) begin(id uuid.UUID) error {
	s.mu.Lock()
	ended, running, err := s.batches.BatchSets()
	if err == nil {
		maps.DeleteFunc(s.lines, func(id uuid.UUID, _ *line) bool {
			_, err := s.store.Get(id)
			return err != nil
		})
		s.lines[id] = newLine(before(ended, running))
		s.changed = true
	}
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("cannot read which batches have ended: %w", err)
	}
	return s.save()
}

// Deliver queues a finished batch for every webhook. It does not wait. Before Start and after Close it does nothing: the next start
// finds the batch.
func (s *Sender) Deliver(batch uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for id, l := range s.lines {
		if l.settled.Contains(batch) { // the batch ended before the webhook was created
			continue
		}
		l.owed.Add(batch)
		if _, err := s.store.Get(id); err == nil { // the webhook may still be being created: its next batch delivers this one too
			s.work(id, l, 1)
		}
	}
}

// change records that the cursors differ from the file. s.mu is held.
func (s *Sender) change() {
	s.changed = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// keep saves the cursors whenever they have changed.
func (s *Sender) keep() {
	for {
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			return
		}
		if err := s.save(); err != nil {
			s.log.Warn("webhooks may receive batches twice after a crash", "error", err)
			s.mu.Lock()
			s.change()
			s.mu.Unlock()
		}
		select {
		case <-time.After(s.saveTime):
		case <-s.ctx.Done():
			return
		}
	}
}

// work starts up to n goroutines that work off a line. s.mu is held.
func (s *Sender) work(id uuid.UUID, l *line, n int) {
	for range min(n, parallel-l.running) {
		l.running++
		s.done.Go(func() { s.workOff(id, l) })
	}
}

// workOff delivers the batches of a line until none is due.
func (s *Sender) workOff(id uuid.UUID, l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.ctx.Err() == nil {
		w, err := s.store.Get(id)
		if err != nil { // deleted
			if s.lines[id] == l {
				delete(s.lines, id)
				s.change()
			}
			break
		}
		batch, ok := l.take(time.Now())
		if !ok {
			s.waitFor(id, l)
			break
		}
		s.mu.Unlock()
		err = s.deliver(w, batch)
		s.mu.Lock()
		s.conclude(id, l, batch, err)
	}
	l.running--
}

// waitFor arms the timer of a line for the next try of a failed batch. s.mu is held.
func (s *Sender) waitFor(id uuid.UUID, l *line) {
	d, ok := l.wait(time.Now())
	if !ok || s.closed {
		return
	}
	if l.again != nil {
		l.again.Stop()
	}
	l.again = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			s.work(id, l, 1)
		}
	})
}

// errDeleted is why a batch is not delivered: its tasks were deleted.
var errDeleted = errors.New("its tasks were deleted")

// refusal is a response that shows that a retry would not help.
type refusal struct{ status string }

func (r refusal) Error() string { return "it answered " + r.status }

// conclude records how a delivery ended. s.mu is held.
func (s *Sender) conclude(id uuid.UUID, l *line, batch uint32, err error) {
	now := time.Now()
	var refused refusal
	switch {
	case err == nil, errors.As(err, &refused):
		if l.isDown() {
			s.work(id, l, parallel)
		}
		l.settle(batch, true, now)
		s.change()
	case errors.Is(err, errDeleted):
		l.settle(batch, false, now)
		s.change()
	case s.ctx.Err() != nil: // interrupted: the next start delivers it
		return
	default:
		tries, last := l.fail(batch, s.firstWait, now)
		if last {
			s.change()
		} else if tries > 1 {
			return
		}
	}
	if err != nil {
		// Leave out the URL: its path is often the only secret of the receiver.
		if request := (*url.Error)(nil); errors.As(err, &request) {
			err = request.Err
		}
		again := l.failed[batch] != nil
		s.log.Warn("a batch was not delivered to a webhook", "webhook", id, "batch", batch, "again", again, "error", err)
	}
}

// deliver attempts one delivery.
func (s *Sender) deliver(w *Webhook, batch uint32) error {
	tasks, err := s.batches.Tasks(task.Filter{BatchUIDs: []uint32{batch}, Reverse: true, Limit: math.MaxInt})
	if err != nil {
		return err
	}
	if tasks.Total == 0 {
		return errDeleted
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, w.URL, nil)
	if err != nil {
		return err
	}
	// The client closes each body, which ends the goroutine that writes it.
	req.GetBody = func() (io.ReadCloser, error) {
		r, body := io.Pipe()
		s.done.Go(func() { body.CloseWithError(writeTasks(body, tasks.Results)) })
		return r, nil
	}
	req.Body, _ = req.GetBody()
	req.ContentLength = -1 // chunked
	setHeaders(req, w.Headers)
	req.Header[DeliveryHeader] = []string{fmt.Sprintf("%d/%s", batch, w.UUID)}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.CopyN(io.Discard, res.Body, maxAnswer)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	res.Body.Close()
	switch {
	case res.StatusCode < 300:
		return err
	case res.StatusCode >= 500, res.StatusCode == http.StatusRequestTimeout, res.StatusCode == http.StatusTooEarly, res.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("it answered %s", res.Status)
	}
	return refusal{res.Status}
}

// setHeaders sets svc's headers and then the configured ones, which replace those of the same name. Headers that say how the body is
// sent cannot be replaced.
func setHeaders(req *http.Request, configured map[string]string) {
	h := http.Header{}
	for name, v := range configured {
		switch name = http.CanonicalHeaderKey(name); name {
		case "Host":
			req.Host = v
		case "Content-Length", "Transfer-Encoding", "Trailer", "Connection":
		default:
			h[name] = append(h[name], v)
		}
	}
	for name, v := range map[string]string{"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip", "User-Agent": "svc"} {
		if h[name] == nil {
			h[name] = []string{v}
		}
	}
	req.Header = h
}

// writeTasks writes tasks as compressed NDJSON.
func writeTasks(w io.Writer, tasks iter.Seq2[*task.Task, error]) error {
	z := gzip.NewWriter(w)
	var row []byte
	for t, err := range tasks {
		if err != nil {
			return err
		}
		row = append(t.AppendJSON(row[:0]), '\n')
		if _, err := z.Write(row); err != nil {
			return err
		}
	}
	return z.Close()
}

// Close accepts no more batches, waits up to closeTime for deliveries and cancels the rest. The next start delivers what is left.
func (s *Sender) Close() {
	s.mu.Lock()
	s.closed = true
	for _, l := range s.lines {
		if l.again != nil {
			l.again.Stop()
		}
	}
	s.mu.Unlock()
	cut := time.AfterFunc(s.closeTime, func() {
		s.log.Warn("stopping before all batches were delivered to webhooks: the next start delivers them")
		s.stop()
	})
	s.done.Wait()
	cut.Stop()
	s.stop()
	s.kept.Wait()
	if err := s.save(); err != nil {
		s.log.Warn("webhooks may receive batches twice", "error", err)
	}
	s.client.CloseIdleConnections()
}

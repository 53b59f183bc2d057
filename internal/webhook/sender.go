package webhook

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"

	"svc/internal/outbound"
	"svc/internal/task"
)

const (
	deliveryTimeout = 30 * time.Second // of a whole request, redirects included

	// A line holds what waits for one webhook: this many tasks, or a single batch however large it is, of which parts may
	// come one after the other.
	maxWaiting = 100_000
	// parallel is the number of deliveries to one webhook that are under way at once.
	parallel = 4

	// closeTime is how long Close lets what waits be delivered.
	closeTime = 3 * time.Second

	maxAnswer = 64 << 10 // bytes that are read of an answer, so that its connection can serve again
)

// Sender delivers finished batches to the webhooks of a store.
type Sender struct {
	store  *Store
	log    *slog.Logger
	client http.Client

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	done sync.WaitGroup // of the goroutines that deliver

	closeTime time.Duration

	mu     sync.Mutex
	closed bool
	lines  map[uuid.UUID]*line // those with something in them
}

// line is what is to be delivered to one webhook.
type line struct {
	waiting []delivery
	tasks   int    // in waiting
	running int    // goroutines that work it off
	last    uint32 // batch that was put in it last: more of it is taken, however much waits
}

type delivery struct {
	to *Webhook // as it was when the batch ended
	*batch
}

// batch is a finished batch. body compresses its tasks when the first delivery asks.
type batch struct {
	uid   uint32
	tasks int
	body  func() ([]byte, error)
}

// NewSender returns a sender to the webhooks of a store, as far as the policy allows their addresses.
func NewSender(store *Store, policy outbound.Policy, log *slog.Logger) *Sender {
	s := &Sender{
		store: store, log: log, closeTime: closeTime, lines: map[uuid.UUID]*line{},
		client: http.Client{Transport: policy.Transport(), CheckRedirect: outbound.RepeatOnly, Timeout: deliveryTimeout},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Deliver puts the tasks of a finished batch, or of a part of a large one, in uid order, in line for every webhook. It does not
// wait, and it does not keep the contents of the tasks.
func (s *Sender) Deliver(tasks []*task.Task) {
	hooks := s.store.List()
	if len(hooks) == 0 || len(tasks) == 0 {
		return
	}
	kept := make([]task.Task, len(tasks))
	for i, t := range tasks {
		kept[i] = *t
		kept[i].Content = nil // what there was to do; the API does not show it
	}
	b := &batch{tasks: len(tasks), body: sync.OnceValues(func() ([]byte, error) { return compress(kept) })}
	if uid := tasks[0].BatchUID; uid != nil {
		b.uid = *uid
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, w := range hooks {
		s.add(delivery{w, b})
	}
}

// add puts a delivery in its line. s.mu is held.
func (s *Sender) add(d delivery) {
	l := s.lines[d.to.UUID]
	if l == nil {
		l = &line{}
		s.lines[d.to.UUID] = l
	}
	if len(l.waiting) > 0 && l.last != d.uid && l.tasks+d.tasks > maxWaiting {
		s.log.Warn("a webhook is too slow: it will not be told of a batch", "webhook", d.to.UUID, "batch", d.uid, "waiting", l.tasks)
		return
	}
	l.waiting, l.last = append(l.waiting, d), d.uid
	l.tasks += d.tasks
	if l.running < parallel {
		l.running++
		s.done.Go(func() { s.workOff(d.to.UUID, l) })
	}
}

// workOff delivers what is in a line until nothing is.
func (s *Sender) workOff(id uuid.UUID, l *line) {
	for {
		s.mu.Lock()
		if len(l.waiting) == 0 || s.ctx.Err() != nil {
			if l.running--; l.running == 0 {
				delete(s.lines, id)
			}
			s.mu.Unlock()
			return
		}
		d := l.waiting[0]
		l.waiting[0] = delivery{}
		l.waiting = l.waiting[1:]
		l.tasks -= d.tasks
		s.mu.Unlock()
		if err := s.post(d); err != nil {
			// Without the URL: the path to where hooks are received often is their only secret.
			if request := (*url.Error)(nil); errors.As(err, &request) {
				err = request.Err
			}
			s.log.Warn("a webhook was not told of a batch", "webhook", id, "batch", d.uid, "error", err)
		}
	}
}

// post makes one delivery. There is no second try.
func (s *Sender) post(d delivery) error {
	body, err := d.body()
	if err != nil {
		return err
	}
	// The bytes of a reader of unknown type are sent in chunks.
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	reader, _ := open()
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, d.to.URL, reader)
	if err != nil {
		return err
	}
	req.GetBody = open
	setHeaders(req, d.to.Headers)
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.CopyN(io.Discard, res.Body, maxAnswer)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	res.Body.Close()
	if res.StatusCode >= 300 {
		return fmt.Errorf("it answered %s", res.Status)
	}
	return err
}

// setHeaders gives a request svc's headers and then the configured ones, which
// replace those of the same name. How the body is sent is not theirs to say.
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

// compress writes tasks as NDJSON.
func compress(tasks []task.Task) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	var row []byte
	for i := range tasks {
		row = append(tasks[i].AppendJSON(row[:0]), '\n')
		if _, err := z.Write(row); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Close takes no more batches, gives those in line a moment and cuts off what is left.
func (s *Sender) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	cut := time.AfterFunc(s.closeTime, func() {
		s.log.Warn("stopping before all webhooks were told of all batches")
		s.stop()
	})
	s.done.Wait()
	cut.Stop()
	s.stop()
	s.client.CloseIdleConnections()
}

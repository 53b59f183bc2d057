package network

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"svc/internal/apierr"
	"svc/internal/task"
)

// The pauses between attempts to deliver a request.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

const bytesPerSecond = 1 << 20 // at least: a request has so much more time for its body

// behindAfter is for how long a remote may lack a write before searches leave it alone.
const behindAfter = 5 * time.Second

// sender delivers the requests of the queue's outbox to each remote, one after the other in the order of their tasks, until the
// remote has accepted or refused them. It retries requests that a remote cannot accept now.
type sender struct {
	n *Node

	mu      sync.Mutex
	lines   map[string]*line
	changed chan struct{} // closed, and replaced, at each change of a line
}

// line is the delivery queue of one remote.
type line struct {
	wake chan struct{} // one slot

	failing int // attempts of the next request that failed; under sender.mu
}

func (s *sender) init(n *Node) {
	s.n, s.lines, s.changed = n, map[string]*line{}, make(chan struct{})
}

// Forwarded signals new requests. It returns at once.
func (n *Node) Forwarded() { n.sender.wakeUp() }

// wakeUp has every remote that lacks something get it.
func (s *sender) wakeUp() {
	if s.n.queue.Load() == nil || s.n.ctx.Err() != nil {
		return
	}
	lacking := s.n.queue.Load().Lacking()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, remote := range lacking {
		l := s.lines[remote]
		if l == nil {
			l = &line{wake: make(chan struct{}, 1)}
			s.lines[remote] = l
			s.n.done.Go(func() { s.run(remote, l) })
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// run delivers to one remote until the node closes.
func (s *sender) run(remote string, l *line) {
	for {
		select {
		case <-l.wake:
		case <-s.n.ctx.Done():
			return
		}
		for pause := firstRetry; ; {
			more, err := s.next(remote, l)
			if err != nil {
				s.n.o.Logger.Error("cannot deliver writes to a remote", "remote", remote, "error", err)
			}
			if err == nil && !more {
				break
			}
			if more && err == nil && s.failures(l) == 0 {
				pause = firstRetry
				continue
			}
			select {
			case <-time.After(pause):
			case <-s.n.ctx.Done():
				return
			}
			pause = min(2*pause, lastRetry)
		}
	}
}

func (s *sender) failures(l *line) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.failing
}

// note changes the state of a line and wakes goroutines that wait for it.
func (s *sender) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// next makes one attempt to deliver the next request to a remote. more is false when it has them all.
func (s *sender) next(remote string, l *line) (more bool, err error) {
	e, err := s.n.queue.Load().Next(remote)
	if err != nil || e == nil {
		return false, err
	}
	r := s.n.address(remote)
	if r == nil {
		var gone bool
		if gone, err = s.abandonGone(remote); err != nil || !gone {
			return true, err
		}
		s.note(func() { l.failing = 0 })
		return false, nil
	}
	uid, fail, final := s.deliver(remote, r, e)
	if s.n.ctx.Err() != nil {
		return false, nil
	}
	if fail == nil {
		err = s.n.queue.Load().Delivered(e.UID, remote, task.RemoteTask{UID: &uid}, true)
	} else if first := s.failures(l) == 0; first || final {
		level := s.n.o.Logger.Warn
		level("a remote refuses a write", "remote", remote, "task", e.UID, "error", fail, "given up", final)
		err = s.n.queue.Load().Delivered(e.UID, remote, task.RemoteTask{Err: fail}, final)
	}
	if err != nil {
		return true, err
	}
	s.note(func() {
		if fail == nil || final {
			l.failing = 0
		} else {
			l.failing++
		}
	})
	return true, nil
}

// abandonGone gives up all requests for a remote, unless it is in the network. A change is announced to those whom it adds before they
// are in the network that is stored: until it is, ordering is held.
func (s *sender) abandonGone(remote string) (gone bool, err error) {
	s.n.ordering.RLock()
	defer s.n.ordering.RUnlock()
	if s.n.address(remote) != nil {
		return false, nil
	}
	why := apierr.New("remote_could_not_send_request", "The remote `%s` left the network before it received this.", remote)
	return true, s.n.queue.Load().Abandon(remote, math.MaxUint32, why)
}

// abandon drops all requests for a remote and wakes goroutines that wait for them.
func (s *sender) abandon(remote string, why *apierr.Error) error {
	err := s.n.queue.Load().Abandon(remote, math.MaxUint32, why)
	s.note(func() {})
	return err
}

// deliver sends one request. final says that the remote refused it for good: another attempt would fail the same way.
func (s *sender) deliver(remote string, r *Remote, e *task.Outgoing) (uid uint32, fail *apierr.Error, final bool) {
	body := e.Body
	if own, ok := e.Bodies[remote]; ok {
		body = own
	}
	timeout := s.n.o.RequestTimeout + time.Duration((int64(len(body))+e.Size)/bytesPerSecond)*time.Second
	ctx, cancel := context.WithTimeout(s.n.ctx, timeout)
	defer cancel()
	message := announcementMessage
	if e.Method != message.Method || e.Path != message.Path {
		message = &Message{Name: writeMessage.Name, Method: e.Method, Path: e.Path, Most: writeMessage.Most}
	}
	q := &request{Message: message, key: r.WriteAPIKey, contentType: e.ContentType, body: body, headers: map[string]string{
		originRemote: s.n.nameAt(e.Version), originTask: strconv.FormatUint(uint64(e.UID), 10), originVersion: e.Version, originNonce: e.Nonce,
	}}
	if e.File != "" {
		q.stream = func() (io.ReadCloser, error) { return s.n.queue.Load().OpenOutgoing(e) }
	}
	got, _, fail := s.n.do(ctx, remote, r, q)
	if fail != nil {
		return 0, fail, got != nil && refusedForGood(got)
	}
	var summary struct{ TaskUID *uint32 }
	if err := json.Unmarshal(got.body, &summary); err != nil || summary.TaskUID == nil {
		return 0, apierr.New("remote_bad_response", "The remote `%s` answered a write with something other than a task.", remote), false
	}
	return *summary.TaskUID, nil, false
}

// refusedForGood reports whether a refusal is about the request itself, and not about the state of the remote.
func refusedForGood(got *reply) bool {
	switch got.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout, http.StatusPreconditionFailed, http.StatusTooManyRequests:
		return false
	}
	if got.status < 400 || got.status >= 500 {
		return false
	}
	var said struct{ Code string }
	_ = json.Unmarshal(got.body, &said)
	switch said.Code {
	case "", "feature_not_enabled", "unprocessed_network_task", "network_version_mismatch", "not_a_leader":
		return false
	}
	return true
}

// Await waits until remotes have accepted or refused the request of a task, or have failed to accept an earlier one.
func (n *Node) Await(uid uint32, remotes []string) {
	s := &n.sender
	timeout := time.After(n.o.AnswerTimeout)
	for {
		s.mu.Lock()
		waits := false
		for _, remote := range remotes {
			l := s.lines[remote]
			waits = waits || (l == nil || l.failing < 2) && n.queue.Load().Lacks(remote, uid)
		}
		changed := s.changed
		s.mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			return
		case <-n.ctx.Done():
			return
		}
	}
}

// behind reports whether the results of a remote may be incomplete. Searches ask it, so it does not wait for a change of the stored
// state, which may wait for the disk, or for the voters of a group.
func (s *sender) behind(remote string) bool {
	return slices.Contains(s.n.view.Load().lost, remote) || s.late(remote)
}

// late reports whether a remote fails to take writes, and lacks one for long.
func (s *sender) late(remote string) bool {
	s.mu.Lock()
	l := s.lines[remote]
	failing := l != nil && l.failing > 0
	s.mu.Unlock()
	if !failing {
		return false
	}
	since, lacks := s.n.queue.Load().LacksSince(remote)
	return lacks && s.n.o.Now().Sub(since) > behindAfter
}

// Headers that identify the request of the instance from which a write originates.
const (
	originRemote  = "Svc-Proxy-Origin-Remote"
	originTask    = "Svc-Proxy-Origin-TaskUid"
	originVersion = "Svc-Proxy-Origin-Network-Version"
	originNonce   = "Svc-Proxy-Origin-Nonce"
)

// compressed is a stream with its bytes gzipped.
func compressed(open func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	src, err := open()
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err == nil {
			if _, err = io.Copy(z, src); err == nil {
				err = z.Close()
			}
		}
		_ = src.Close()
		w.CloseWithError(err) // ends the request, which fails
	}()
	return r, nil
}

// PathWithout returns a path with its query string, without one of its parameters.
func PathWithout(path, query, parameter string) string {
	var kept []string
	for _, pair := range strings.Split(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); pair != "" && name != parameter {
			kept = append(kept, pair)
		}
	}
	if len(kept) == 0 {
		return path
	}
	return path + "?" + strings.Join(kept, "&")
}

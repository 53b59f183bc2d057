// Package stall ends HTTP requests in which no data moves.
package stall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrStalled is the error of a request that was ended.
var ErrStalled = errors.New("the server stopped responding")

// Transport ends a request of Next if no data of the request or its answer has moved for Limit. Time spent in the caller's reader or
// writer does not count.
type Transport struct {
	Next  http.RoundTripper
	Limit time.Duration
}

// RoundTrip implements http.RoundTripper.
func (s *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	w := &watch{cause: func() error { return context.Cause(ctx) }, cancel: cancel, time: s.Limit}
	w.timer = time.AfterFunc(s.Limit, func() { cancel(fmt.Errorf("%w: no data moved for %v", ErrStalled, s.Limit)) })
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &sending{r.Body, w}
	}
	answer, err := s.Next.RoundTrip(r)
	w.whileSent(func() { w.answered = true; w.timer.Stop() })
	if err != nil {
		err = w.failed(err)
		cancel(nil)
		return nil, err
	}
	answer.Body = &receiving{answer.Body, w}
	return answer, nil
}

// watch is the time of one request.
type watch struct {
	cause  func() error // why the request has ended
	cancel context.CancelCauseFunc
	time   time.Duration

	mu       sync.Mutex
	answered bool // a store may answer early, and read the content of the request afterwards: then timer is of the answer
	timer    *time.Timer
}

// whileSent calls f unless the request has been answered.
func (w *watch) whileSent(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.answered {
		f()
	}
}

// failed returns why a request failed.
func (w *watch) failed(err error) error {
	if cause := w.cause(); err != io.EOF && errors.Is(cause, ErrStalled) {
		return cause
	}
	return err
}

// sending is the content of a request.
type sending struct {
	io.ReadCloser
	w *watch
}

func (s *sending) Read(p []byte) (int, error) {
	s.w.whileSent(func() { s.w.timer.Stop() })
	defer s.w.whileSent(func() { s.w.timer.Reset(s.w.time) })
	return s.ReadCloser.Read(p)
}

// receiving is the content of an answer.
type receiving struct {
	io.ReadCloser
	w *watch
}

func (r *receiving) Read(p []byte) (int, error) {
	r.w.timer.Reset(r.w.time)
	defer r.w.timer.Stop()
	n, err := r.ReadCloser.Read(p)
	if err != nil {
		err = r.w.failed(err)
	}
	return n, err
}

func (r *receiving) Close() error {
	defer r.w.cancel(nil)
	return r.ReadCloser.Close()
}

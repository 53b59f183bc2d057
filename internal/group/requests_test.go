package group

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// requestOf returns a request of a member.
func requestOf(g *guest) *http.Request {
	return httptest.NewRequest(http.MethodGet, pathState, nil).WithContext(context.WithValue(context.Background(), guestKey{}, g))
}

func newGuest(t *testing.T) *guest {
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	return &guest{here, &hello{Member: newID()}}
}

func TestAnswersToMembers(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
	}{
		{nil, http.StatusOK},
		{refused(http.StatusConflict, "not now"), http.StatusConflict},
		{fmt.Errorf("a file: %w", fs.ErrNotExist), http.StatusNotFound},
		{errors.New("disk on fire"), http.StatusInternalServerError},
	} {
		r := requests{log: slog.New(slog.DiscardHandler)}
		rw := httptest.NewRecorder()
		r.answer(rw, requestOf(newGuest(t)), func(*guest) error { return test.err })
		if rw.Code != test.status {
			t.Errorf("%v: status %d, want %d", test.err, rw.Code, test.status)
		}
		rw = httptest.NewRecorder()
		r.answer(rw, requestOf(nil), func(*guest) error { t.Error("the handler is called"); return nil })
		if rw.Code != http.StatusForbidden {
			t.Errorf("a request without a member has status %d", rw.Code)
		}
	}
}

// TestAMemberWaitsForRequests checks that a member which closes waits for requests that use its stores, and begins no new ones.
func TestAMemberWaitsForRequests(t *testing.T) {
	r := requests{log: slog.New(slog.DiscardHandler)}
	started, ends, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
	ended := false
	go r.answer(httptest.NewRecorder(), requestOf(newGuest(t)), func(*guest) error {
		close(started)
		<-ends
		ended = true
		return nil
	})
	<-started
	r.refuse()
	go func() {
		r.finish()
		close(finished)
	}()
	rw := httptest.NewRecorder()
	r.answer(rw, requestOf(newGuest(t)), func(*guest) error { t.Error("a request begins"); return nil })
	if rw.Code != http.StatusServiceUnavailable {
		t.Errorf("a request has status %d", rw.Code)
	}
	select {
	case <-finished:
		t.Error("finish does not wait for the running request")
	default:
	}
	close(ends)
	<-finished
	if !ended {
		t.Error("finish returned before the request ended")
	}
}

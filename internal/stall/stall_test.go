package stall

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stallTime is the limit of the tests.
const stallTime = time.Minute

// lazy is content that waits before each byte.
type lazy struct {
	done <-chan struct{}
	wait time.Duration
	in   io.Reader
}

func (l *lazy) Read(p []byte) (int, error) {
	select {
	case <-time.After(l.wait):
		return l.in.Read(p[:1])
	case <-l.done:
		return 0, context.Canceled
	}
}

func (l *lazy) Close() error { return nil }

// lazyStore waits before it answers, and again before each byte of the answer.
type lazyStore struct{ first, each time.Duration }

func (l lazyStore) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	select {
	case <-time.After(l.first):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: &lazy{r.Context().Done(), l.each, strings.NewReader("answer")}}, nil
}

// early is a store that answers before it has read the content.
type early struct{ reads sync.WaitGroup }

func (e *early) RoundTrip(r *http.Request) (*http.Response, error) {
	e.reads.Go(func() { _, _ = io.Copy(io.Discard, r.Body) })
	return &http.Response{StatusCode: http.StatusOK, Body: &lazy{r.Context().Done(), 0, strings.NewReader("answer")}}, nil
}

// TestContentAfterTheAnswer checks that reads of the content after the answer do not restart the stall timer.
func TestContentAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &early{}
		s := &Transport{store, stallTime}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://store/", &lazy{nil, time.Second, strings.NewReader("content")})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		store.reads.Wait()
		time.Sleep(2 * stallTime) // the caller is slow
		if b, err := io.ReadAll(answer.Body); err != nil || string(b) != "answer" {
			t.Errorf("%q, %v", b, err)
		}
		_ = answer.Body.Close()
	})
}

// TestStalledRequestsEnd checks that a request ends when the store stops responding, but not because its content or the reader of its
// answer is slow.
func TestStalledRequestsEnd(t *testing.T) {
	for name, x := range map[string]struct {
		store         lazyStore
		content, read time.Duration
		stalled       bool
	}{
		"at once":                 {},
		"steadily":                {store: lazyStore{stallTime / 2, stallTime / 2}},
		"no answer":               {store: lazyStore{2 * stallTime, 0}, stalled: true},
		"no end of the answer":    {store: lazyStore{0, 2 * stallTime}, stalled: true},
		"slow content":            {content: 2 * stallTime},
		"a slow reader":           {read: 2 * stallTime},
		"no answer, slow content": {store: lazyStore{2 * stallTime, 0}, content: 2 * stallTime, stalled: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Transport{x.store, stallTime}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://store/", &lazy{nil, x.content, strings.NewReader("content")})
				if err != nil {
					t.Fatal(err)
				}
				got := ""
				answer, err := s.RoundTrip(r)
				if err == nil {
					for p := make([]byte, 1); err == nil; {
						time.Sleep(x.read)
						var n int
						n, err = answer.Body.Read(p)
						got += string(p[:n])
					}
					_ = answer.Body.Close()
				}
				if x.stalled && !errors.Is(err, ErrStalled) || !x.stalled && (err != io.EOF || got != "answer") {
					t.Errorf("%q, %v", got, err)
				}
			})
		})
	}
}

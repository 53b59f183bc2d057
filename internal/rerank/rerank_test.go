package rerank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/outbound"
)

// request is the body of a request.
type request struct {
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	Model     string   `json:"model"`
}

// service sends prepared answers in turn, and records its requests.
type service struct {
	t       *testing.T
	answers []string // "status body"; the last one repeats
	waits   []time.Duration

	mu    sync.Mutex // after a broken connection, the end of the handler is not known
	calls []request
}

// sent returns the recorded requests.
func (s *service) sent() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var got request
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		s.t.Error(err)
	}
	if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer key" || r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s with %v", r.Method, r.Header)
	}
	s.mu.Lock()
	answer := s.answers[min(len(s.calls), len(s.answers)-1)]
	s.calls = append(s.calls, got)
	s.mu.Unlock()
	var status int
	if _, err := fmt.Sscanf(answer, "%d", &status); err != nil {
		s.t.Error(err)
	}
	if status == 0 { // hang up
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			s.t.Error(err)
			return
		}
		c.Close()
		return
	}
	_, body, _ := strings.Cut(answer, " ")
	if status/100 == 3 {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func (s *service) client() *Client {
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	c, err := New(server.URL+"/rerank", "key", outbound.Any())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.random = func() float64 { return 0.5 }
	c.sleep = func(_ context.Context, d time.Duration) error { s.waits = append(s.waits, d); return nil }
	return c
}

func code(err error) apierr.Code {
	if err == nil {
		return ""
	}
	return apierr.From(err).Code
}

func TestOrder(t *testing.T) {
	hits := [][]byte{[]byte(`{"id":1}`), []byte(`{"id":2}`), []byte(`{"id":3}`)}
	for _, tt := range []struct {
		answers []string
		want    []int
		code    apierr.Code
		calls   int
	}{
		{[]string{`200 {"results":[{"index":2,"relevance_score":0.9},{"index":0}]}`}, []int{2, 0}, "", 1},
		{[]string{`200 {"results":[]}`}, []int{}, "", 1},
		{[]string{`500 `, `503 x`, `200 {"results":[{"index":1}]}`}, []int{1}, "", 3},
		{[]string{`0`, `200 {"results":[{"index":1}]}`}, []int{1}, "", 2},
		{[]string{`429 slow down`, `200 {"results":[{"index":1}]}`}, []int{1}, "", 2},
		{[]string{`200 {"results":`, `200 {"results":[{"index":1}]}`}, []int{1}, "", 2},
		{[]string{`200 {"results":[{"index":3}]}`}, nil, "remote_bad_response", 1},
		{[]string{`200 {"results":[{"index":-1}]}`}, nil, "remote_bad_response", 1},
		{[]string{`200 {"results":[{}]}`}, nil, "remote_bad_response", 1},
		{[]string{`200 {"results":[{"index":1},{"index":1}]}`}, nil, "remote_bad_response", 1},
		{[]string{`200 {}`}, nil, "remote_bad_response", 1},
		{[]string{`200 <html>`}, nil, "remote_bad_response", 11},
		{[]string{`400 `}, nil, "remote_bad_request", 1},
		{[]string{`401 key`}, nil, "remote_invalid_api_key", 1},
		{[]string{`403 key`}, nil, "remote_bad_response", 1},
		{[]string{`302 `}, nil, "remote_bad_response", 1},
		{[]string{`429 `}, nil, "too_many_search_requests", 11},
		{[]string{`500 `}, nil, "remote_remote_error", 11},
		{[]string{`0`}, nil, "remote_could_not_send_request", 11},
	} {
		s := &service{t: t, answers: tt.answers}
		got, err := s.client().Order(t.Context(), "likes red", "hat", hits)
		if !slices.Equal(got, tt.want) || (got == nil) != (tt.want == nil) || code(err) != tt.code || len(s.sent()) != tt.calls {
			t.Errorf("%q: %v, %v after %d calls, want %v, %s after %d", tt.answers, got, err, len(s.sent()), tt.want, tt.code, tt.calls)
		}
		if err != nil && (strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "likes red")) {
			t.Errorf("%q: the error %v shows a secret", tt.answers, err)
		}
		for _, r := range s.sent() {
			if r.Query != "User context: likes red\nQuery: hat" || r.Model != "rerank-english-v3.0" || !slices.Equal(r.Documents, []string{`{"id":1}`, `{"id":2}`, `{"id":3}`}) {
				t.Errorf("sent: %+v", r)
			}
		}
	}
	s := &service{t: t, answers: []string{`200 {"results":[]}`}}
	if _, err := s.client().Order(t.Context(), "likes red", "", hits[:1]); err != nil || s.sent()[0].Query != "User context: likes red" {
		t.Errorf("without a query: %q, %v", s.sent()[0].Query, err)
	}
}

func TestWaits(t *testing.T) {
	s := &service{t: t, answers: []string{`500 `}}
	if _, err := s.client().Order(t.Context(), "", "", [][]byte{{}}); code(err) != "remote_remote_error" {
		t.Error(err)
	}
	ms := func(list ...float64) (d []time.Duration) {
		for _, x := range list {
			d = append(d, time.Duration(x*float64(time.Millisecond)))
		}
		return d
	}
	if want := ms(1.5, 15, 150, 1500, 15e3, 90e3, 90e3, 90e3, 90e3, 90e3); !slices.Equal(s.waits, want) {
		t.Errorf("%v, want %v", s.waits, want)
	}
	s = &service{t: t, answers: []string{`429 `, `429 `, `200 {"results":[]}`}}
	if _, err := s.client().Order(t.Context(), "", "", [][]byte{{}}); err != nil || !slices.Equal(s.waits, ms(151.5, 165)) {
		t.Errorf("%v, %v", s.waits, err)
	}
}

// TestDeadline uses a service that hangs, and one that fails until the deadline.
func TestDeadline(t *testing.T) {
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	c, err := New(hanging.URL, "key", outbound.Any())
	if err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if order, err := c.Order(limited, "", "", [][]byte{{}}); order != nil || err != nil {
		t.Errorf("%v, %v", order, err)
	}
	s := &service{t: t, answers: []string{`500 `}}
	c = s.client()
	c.sleep = sleep
	limited, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if order, err := c.Order(limited, "", "", [][]byte{{}}); order != nil || err != nil {
		t.Errorf("%v, %v", order, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := c.Order(gone, "", "", [][]byte{{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "x", "ftp://a.test/", "http://"} {
		if _, err := New(address, "key", outbound.Any()); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
	s := &service{t: t, answers: []string{`200 {}`}}
	server := httptest.NewServer(s)
	defer server.Close()
	c, err := New(server.URL, "key", outbound.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Order(t.Context(), "", "", [][]byte{{}}); code(err) != "remote_could_not_send_request" || len(s.sent()) > 0 {
		t.Errorf("a local address is called: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"results":[{"index":2},{"index":0}]}`), 3)
	f.Add([]byte(`{"results":[{"index":1e3}]}`), 1)
	f.Fuzz(func(t *testing.T, answer []byte, hits int) {
		if hits < 0 || hits > 1000 {
			return
		}
		order, failed := read(answer, hits)
		if failed != nil {
			return
		}
		slices.Sort(order)
		if len(slices.Compact(slices.Clone(order))) != len(order) || len(order) > 0 && (order[0] < 0 || order[len(order)-1] >= hits) {
			t.Fatalf("%s: %v of %d", answer, order, hits)
		}
	})
}

// discard is a service that reads requests and answers without an order.
type discard struct{ calls, bytes int64 }

func (d *discard) RoundTrip(r *http.Request) (*http.Response, error) {
	n, err := io.Copy(io.Discard, r.Body)
	d.calls, d.bytes = d.calls+1, d.bytes+n
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"results":[]}`))}, err
}

// TestRequestsAreCharged compares the memory for requests with what they are charged: they may be twice as long as the hits.
func TestRequestsAreCharged(t *testing.T) {
	for _, text := range []string{`a`, `<`, `\"`, `\\`, "ü", "\xff", "\t"} {
		hits := [][]byte{[]byte(`{}`), []byte(strings.Repeat(text, 1<<20)), []byte(strings.Repeat(text, 1<<20))}
		size := bodyBytes("hat", hits)
		body := appendBody(nil, "hat", hits)
		if n := int64(len(body)); n > size || utf8.ValidString(text) && n < size-1 {
			t.Errorf("%q: a body of %d bytes, charged as %d", text, len(body), size)
		}
		var got request
		if err := json.Unmarshal(body, &got); err != nil || len(got.Documents) != 3 || got.Documents[1] != strings.ToValidUTF8(string(hits[1]), "\uFFFD") || got.Model != model {
			t.Errorf("%q: %v", text, err)
		}
		c := (&service{t: t}).client()
		d := new(discard)
		c.http.Transport = d
		for _, short := range []int64{0, 1} {
			b := budget.New(size+int64(len("User context: \\nQuery: "))-short, nil)
			account := b.Open(1 << 30)
			ctx := context.WithValue(t.Context(), budget.Key, account)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := c.Order(ctx, "", "hat", hits)
			runtime.ReadMemStats(&after)
			if want := []error{nil, budget.ErrFull}[short]; !errors.Is(err, want) || b.Used() != 0 {
				t.Errorf("%q with %d bytes too few: %v, %d bytes stay charged", text, short, err, b.Used())
			}
			if made := int64(after.TotalAlloc - before.TotalAlloc); utf8.ValidString(text) && made > size+1<<20 {
				t.Errorf("%q: %d bytes are allocated for %d charged ones", text, made, size)
			}
		}
		if d.calls != 1 || d.bytes > size+64 {
			t.Errorf("%q: %d calls with %d bytes", text, d.calls, d.bytes)
		}
	}
}

package fastapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"svc/internal/auth"
	"svc/internal/chat"
	"svc/internal/index"
	"svc/internal/logs"
	"svc/internal/network"
	"svc/internal/outbound"
	"svc/internal/rule"
	"svc/internal/vfs"
	"svc/internal/webhook"
)

// openKeys opens a store of keys.
func openKeys(t testing.TB, masterKey string) *auth.Keys {
	t.Helper()
	keys, err := auth.Open(auth.Options{File: filepath.Join(t.TempDir(), "auth.db"), MasterKey: masterKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
	})
	return keys
}

// client sends requests to a server under test in memory.
type client struct {
	t      testing.TB
	server *Server
	http   http.Client
	key    string // sent with each request unless empty

	address string // address of the server; "": none
}

// complete sets unset options to values for tests.
func complete(t testing.TB, o *Options) {
	t.Helper()
	if o.Features == nil {
		f, err := OpenFeatures(vfs.NewMem(), "features.json")
		if err != nil {
			t.Fatal(err)
		}
		o.Features = f
	}
	if o.Catalog == nil {
		catalog, err := index.OpenCatalog("indexes", index.Options{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // after the server has stopped
			if err := catalog.Close(); err != nil {
				t.Error(err)
			}
		})
		o.Catalog = catalog
	}
	if o.Keys == nil {
		o.Keys = openKeys(t, "")
	}
	if o.Webhooks == nil {
		hooks, err := webhook.Open(vfs.NewMem(), "webhooks.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Webhooks = hooks
	}
	if o.Chats == nil {
		chats, err := chat.Open(vfs.NewMem(), "chats.json")
		if err != nil {
			t.Fatal(err)
		}
		o.Chats = chats
	}
	if o.Providers == nil {
		o.Providers = chat.NewProviders(outbound.Any())
		t.Cleanup(func() { o.Providers.Close() })
	}
	if o.Network == nil {
		node, err := network.Open(network.Options{FS: vfs.NewMem(), File: "network.json"})
		if err != nil {
			t.Fatal(err)
		}
		o.Network = node
	}
	if o.Rules == nil {
		rules, err := rule.Open(rule.Options{FS: vfs.NewMem(), File: "rules.json", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		o.Rules = rules
	}
	if o.Log == nil {
		o.Log = logs.New(io.Discard, logs.AtLeast(logs.LevelOff), logs.Human)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.PayloadLimit == 0 {
		o.PayloadLimit = 1 << 20
	}
}

// newClient starts a server. Unset options get values for tests.
func newClient(t testing.TB, o Options) *client {
	t.Helper()
	l := fasthttputil.NewInmemoryListener()
	return connect(t, o, l, l.Dial)
}

// newTCPClient starts a server on a port: in-memory connections do not end a running Read at a deadline.
func newTCPClient(t testing.TB, o Options) *client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, o, l, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	c.address = l.Addr().String()
	return c
}

func connect(t testing.TB, o Options, l net.Listener, dial func() (net.Conn, error)) *client {
	t.Helper()
	complete(t, &o)
	s := New(o)
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	c := &client{t: t, server: s}
	c.http.Transport = &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return dial() },
		DisableCompression: true,
	}
	t.Cleanup(func() {
		c.http.CloseIdleConnections()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		<-done
		checkIdle(t, s.slots)
	})
	return c
}

// checkIdle waits until no slot and no place in the lane is held or waited for, as must be the case when all clients have gone. What is
// held longer than any request runs is leaked.
func checkIdle(t testing.TB, s *slots) {
	t.Helper()
	for end := time.Now().Add(maxSearchTime / 2); ; time.Sleep(time.Millisecond) {
		_, running, waiting := s.now()
		if running == 0 && waiting == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("without clients %d searches run and %d wait: %d of %d slots are free, %d are in the lane", running, waiting, s.free, s.limit, s.lane.running)
			return
		}
	}
}

// heldAtEnd waits until the requests of a server hold no bytes, and returns how many they hold after a minute: a client may have its answer
// before the server is done with the request.
func heldAtEnd(s *Server) int64 {
	for end := time.Now().Add(time.Minute); s.budget.Used() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return s.budget.Used()
}

type reply struct {
	status int
	header http.Header
	body   string
}

// code returns the error code of the reply.
func (r reply) code() string {
	var e struct{ Message, Code, Type, Link string }
	if json.Unmarshal([]byte(r.body), &e) != nil || e.Message == "" || e.Type == "" || e.Link == "" {
		return ""
	}
	return e.Code
}

// send sends a request. headers are pairs of name and value.
func (c *client) send(method, path string, body io.Reader, headers ...string) reply {
	c.t.Helper()
	r, err := c.sendUntil(context.Background(), method, path, body, headers...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	// Checks every answer of every test: a number that is not finite would not be JSON.
	if len(r.body) > 0 && strings.HasPrefix(r.header.Get("Content-Type"), "application/json") && r.header.Get("Content-Encoding") == "" && !json.Valid([]byte(r.body)) {
		c.t.Errorf("%s %s: the answer is not JSON: %.500s", method, path, r.body)
	}
	return r
}

// sendStream is send for an endless response. It returns the bytes that arrive at once.
func (c *client) sendStream(method, path string, body io.Reader, headers ...string) reply {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	r, _ := c.sendUntil(ctx, method, path, body, headers...) // ends by timeout
	return r
}

// sendUntil is send that ends with a context, and returns what has arrived.
func (c *client) sendUntil(ctx context.Context, method, path string, body io.Reader, headers ...string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://svc"+path, body)
	if err != nil {
		return reply{}, err
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(b)}, err
}

func (c *client) json(method, path, body string) reply {
	c.t.Helper()
	return c.send(method, path, strings.NewReader(body), "Content-Type", "application/json")
}

func (c *client) get(path string) reply {
	c.t.Helper()
	return c.send("GET", path, nil)
}

// fullListener fails to accept a few times.
type fullListener struct {
	net.Listener
	refusals int
}

func (l *fullListener) Accept() (net.Conn, error) {
	if l.refusals > 0 {
		l.refusals--
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestConnectionsWaitForRoom(t *testing.T) {
	pipe := fasthttputil.NewInmemoryListener()
	var logged bytes.Buffer
	features, err := OpenFeatures(vfs.NewMem(), "features.json")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Features: features, Keys: openKeys(t, ""), Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	served := make(chan error, 1)
	go func() { served <- s.Serve(&fullListener{pipe, 3}) }()
	h := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return pipe.Dial() }}}
	r, err := h.Get("http://x/health")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	h.CloseIdleConnections()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("the server ended: %v", err)
	}
	if n := strings.Count(logged.String(), "wait for file descriptors"); n != 1 {
		t.Errorf("logged %d times: %s", n, logged.String())
	}
}

func TestAFullDiskIsReportedAndLogged(t *testing.T) {
	var logged bytes.Buffer
	s := New(Options{Keys: openKeys(t, ""), Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	e := s.public(&fasthttp.RequestCtx{}, fmt.Errorf("cannot write the payload: %w", syscall.ENOSPC))
	if e.Code != "no_space_left_on_device" || !strings.Contains(logged.String(), "cannot write the payload") {
		t.Errorf("got %+v, logged %q", e, logged.String())
	}
}

func TestRecover(t *testing.T) {
	var logged bytes.Buffer
	c := newClient(t, Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	c.server.webhooks = nil // makes the handler panic
	r := c.get("/webhooks")
	if r.status != 500 || r.code() != "internal" || strings.Contains(r.body, "panic") {
		t.Errorf("got %d %s", r.status, r.body)
	}
	if !strings.Contains(logged.String(), "panic: ") || !strings.Contains(logged.String(), "webhooks.go") {
		t.Errorf("the log does not show where: %s", logged.String())
	}
	if r := c.get("/health"); r.status != 200 {
		t.Errorf("after a panic: %d", r.status)
	}
}

func TestAccessLog(t *testing.T) {
	var logged bytes.Buffer
	c := newClient(t, Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	c.get("/health?x=1&y")
	line := logged.String()
	if strings.Count(line, "\n") != 1 {
		t.Fatalf("want one line, got %q", line)
	}
	for _, part := range []string{"request.method=GET", "request.route=/health", "request.query_parameters=\"x=XXX...&XXX...\"", "request.status_code=200", "bytes=22"} {
		if !strings.Contains(line, part) {
			t.Errorf("no %s in %s", part, line)
		}
	}
}

func TestHeadersTooLong(t *testing.T) {
	c := newClient(t, Options{})
	r := c.get("/indexes/x/search?filter=" + strings.Repeat("a", headerBytes))
	if r.status != 431 || r.code() != "bad_request" {
		t.Errorf("got %d %s", r.status, r.body)
	}
}

// TestShutdown stops a server with an unused connection, one between two requests, and one with a slow request: only the last one
// is waited for.
func TestShutdown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	features, err := OpenFeatures(vfs.NewMem(), "features.json")
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := index.OpenCatalog("indexes", index.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { catalog.Close() })
	s := New(Options{Features: features, Catalog: catalog, Keys: openKeys(t, ""), Logger: slog.New(slog.DiscardHandler), PayloadLimit: 1 << 20})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	dial := func(send string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, send); err != nil {
			t.Fatal(err)
		}
		return c
	}
	dial("")
	dial("GET /health HT")
	between := dial("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(between), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the first request of a connection: %v %v", resp, err)
	}
	const body = `{"metrics": true}`
	slow := dial("PATCH /experimental-features HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
	for running := false; !running; time.Sleep(time.Millisecond) {
		s.conns.mu.Lock()
		for c := range s.conns.open {
			running = running || c.busy.Load()
		}
		s.conns.mu.Unlock()
	}

	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.Background()) }()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	select {
	case err := <-stopped:
		t.Fatalf("Shutdown did not wait for the running request: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if _, err := fmt.Fprintf(slow, "%x\r\n%s\r\n0\r\n\r\n", len(body), body); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(slow)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 OK")) || !bytes.Contains(answer, []byte(`"metrics":true`)) {
		t.Errorf("the running request was answered %q %v", answer, err)
	}
	select {
	case err := <-stopped:
		if err != nil {
			t.Errorf("shutdown: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("idle connections delay Shutdown")
	}
}

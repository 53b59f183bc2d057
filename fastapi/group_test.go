package fastapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/group"
	"svc/internal/index"
	"svc/internal/logs"
)

// fakeMember is a reader of a group whose position does not change.
type fakeMember struct {
	pos   group.Position
	stale time.Duration
	known bool
	state group.State
}

func (m *fakeMember) Position() group.Position                 { return m.pos }
func (m *fakeMember) Staleness() (d time.Duration, known bool) { return m.stale, m.known }
func (m *fakeMember) Wait(ctx context.Context, p group.Position) error {
	if m.pos.Compare(p) >= 0 {
		return nil
	}
	return errors.New("no more changes")
}

func (m *fakeMember) Status() *group.Status {
	seconds, lag := m.stale.Seconds(), uint64(3)
	return &group.Status{Name: "shop", Role: group.RoleReader, Member: "ab", Position: m.pos.String(), Reader: &group.ReaderStatus{State: m.state, StalenessSeconds: &seconds, Lag: &lag},
		Members: []group.MemberStatus{{Member: "cd", Lag: &lag, LagSeconds: 1.5}}, Log: &group.LogStatus{FilesHeld: 7}}
}

func TestPositionsOfAGroup(t *testing.T) {
	m := &fakeMember{pos: group.Position{Term: 1, Run: 2, Index: 30}, stale: 1500 * time.Millisecond, known: true}
	c := newClient(t, Options{Member: m})
	for _, tt := range []struct {
		header, value string
		known         bool
		status        int
		code          string
	}{
		{"", "", true, 200, ""},
		{"Svc-Min-Position", "1.2.30", true, 200, ""},
		{"Svc-Min-Position", "1.1.99", true, 200, ""},
		{"Svc-Min-Position", "1.2.31", true, 503, "position_not_reached"},
		{"Svc-Min-Position", "2.0.0", true, 503, "position_not_reached"},
		{"Svc-Min-Position", "latest", true, 400, "bad_request"}, // for voters only
		{"Svc-Max-Staleness", "1.5", true, 200, ""},
		{"Svc-Max-Staleness", "1.4", true, 503, "data_too_stale"},
		{"Svc-Max-Staleness", "100", false, 503, "data_too_stale"},
		{"Svc-Max-Staleness", "-1", true, 400, "bad_request"},
		{"Svc-Max-Staleness", "NaN", true, 400, "bad_request"},
		{"Svc-Max-Staleness", "Inf", true, 400, "bad_request"},
	} {
		m.known = tt.known
		var headers []string
		if tt.header != "" {
			headers = []string{tt.header, tt.value}
		}
		r := c.send("GET", "/version", nil, headers...)
		if r.status != tt.status || tt.code != "" && r.code() != tt.code {
			t.Errorf("%s: %s: got %d %s, want %d %s", tt.header, tt.value, r.status, r.body, tt.status, tt.code)
		}
		if got := r.header.Get("Svc-Position"); got != "1.2.30" {
			t.Errorf("%s: %s: position %q", tt.header, tt.value, got)
		}
		want := "1.500"
		if !tt.known {
			want = ""
		}
		if got := r.header.Get("Svc-Staleness"); got != want {
			t.Errorf("%s: %s: staleness %q, want %q", tt.header, tt.value, got, want)
		}
		soon := map[int]string{503: "1"}[tt.status]
		if again := r.header.Get("Retry-After"); again != soon {
			t.Errorf("%s: %s: Retry-After %q", tt.header, tt.value, again)
		}
	}
	if r := c.get("/group"); r.status != 200 || !strings.Contains(r.body, `"name":"shop"`) || !strings.Contains(r.body, `"filesHeld":7`) {
		t.Errorf("the group is %d %s", r.status, r.body)
	}
}

// TestNoGroup checks that without a group, answers have no group headers, and those of requests have no effect.
func TestNoGroup(t *testing.T) {
	c := newClient(t, Options{})
	r := c.send("GET", "/version", nil, "Svc-Min-Position", "x", "Svc-Max-Staleness", "x")
	if r.status != 200 || r.header.Get("Svc-Position")+r.header.Get("Svc-Staleness") != "" {
		t.Errorf("%d %v", r.status, r.header)
	}
	if r := c.get("/group"); r.status != 200 || r.body != `{"role":"alone"}` {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestMetricsOfAGroup(t *testing.T) {
	c, _ := newInstance(t, Options{Member: &fakeMember{pos: group.Position{Term: 1, Run: 2, Index: 30}, stale: time.Second, known: true}})
	c.send("PATCH", "/experimental-features", strings.NewReader(`{"metrics": true}`), "Content-Type", "application/json")
	r := c.get("/metrics")
	for _, want := range []string{"svc_group_log_entries_total 30\n", "svc_group_staleness_seconds 1\n", `svc_group_lag_entries{member="ab"} 3`, `svc_group_lag_entries{member="cd"} 3`, `svc_group_lag_seconds{member="cd"} 1.5`, "svc_group_held_files 7\n", "svc_group_missing_models 0\n", "svc_group_forwarded_requests_total 0\n"} {
		if !strings.Contains(r.body, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestIdempotencyKeys checks that a repeated request with the same key makes one task, and that another key, path or sender makes another.
func TestIdempotencyKeys(t *testing.T) {
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey)})
	master := c.as(masterKey)
	other := master.as(master.makeKey(`["*"]`, `["*"]`))
	send := func(c *client, path, key string) string {
		t.Helper()
		r := c.send("POST", path, strings.NewReader(`[{"id": 1}]`), "Content-Type", "application/json", "Idempotency-Key", key)
		if r.status != 202 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		uid, _, _ := strings.Cut(r.body, ",")
		return uid
	}
	first := send(master, "/indexes/a/documents", "k")
	if again := send(master, "/indexes/a/documents", "k"); again != first {
		t.Errorf("the same request is %s and %s", first, again)
	}
	seen := map[string]bool{first: true}
	for what, uid := range map[string]string{
		"another key": send(master, "/indexes/a/documents", "l"), "another path": send(master, "/indexes/b/documents", "k"), "another sender": send(other, "/indexes/a/documents", "k"),
		"no key": send(master, "/indexes/a/documents", ""),
	} {
		if seen[uid] {
			t.Errorf("%s: task %s, the same as of another request", what, uid)
		}
		seen[uid] = true
	}
	if r := master.send("POST", "/indexes/a/documents", strings.NewReader(`[]`), "Content-Type", "application/json", "Idempotency-Key", strings.Repeat("k", 256)); r.status != 400 || r.code() != "bad_request" {
		t.Errorf("a key that is too long: %d %s", r.status, r.body)
	}
}

// TestIdempotentCreations checks that requests with the same Idempotency-Key create a key or a webhook once, and get the same answer.
func TestIdempotentCreations(t *testing.T) {
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey)})
	master := c.as(masterKey)
	send := func(path, body, key string) string {
		t.Helper()
		r := master.send("POST", path, strings.NewReader(body), "Content-Type", "application/json", "Idempotency-Key", key)
		if r.status != 201 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		return r.body
	}
	const own = `{"actions":["search"],"indexes":["*"],"expiresAt":null,"uid":"6062abda-a5aa-4414-ac91-ecd7944c0f8d"}`
	for _, x := range []struct{ path, body, other string }{
		{"/keys", `{"actions":["search"],"indexes":["*"],"expiresAt":null}`, `{"actions":["search"],"indexes":["a"],"expiresAt":null}`},
		{"/keys", own, `{"actions":["search"],"indexes":["*"],"expiresAt":null}`},
		{"/webhooks", `{"url":"https://hooks.test/"}`, `{"url":"https://hooks.test/b"}`},
	} {
		first := send(x.path, x.body, "k")
		if again := send(x.path, x.body, "k"); again != first {
			t.Errorf("%s: the same request gets %s and %s", x.path, first, again)
		}
		seen := map[string]bool{first: true}
		for what, body := range map[string]string{"another body": send(x.path, x.other, "k2"), "no key": send(x.path, x.other, "")} {
			if seen[body] {
				t.Errorf("%s: %s: same answer as to another request: %s", x.path, what, body)
			}
			seen[body] = true
		}
	}
	var first, again struct{ Key, UID string }
	const made = `{"actions":["search"],"indexes":["*"],"expiresAt":null,"name":"a"}`
	if err := json.Unmarshal([]byte(send("/keys", made, "k")), &first); err != nil {
		t.Fatal(err)
	}
	if r := master.send("DELETE", "/keys/"+first.UID, nil); r.status != 204 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if err := json.Unmarshal([]byte(send("/keys", made, "k")), &again); err != nil || again.UID == first.UID || again.Key == first.Key {
		t.Errorf("a deleted key comes back: %+v, %+v, %v", first, again, err)
	}
	for _, key := range []string{"l", ""} {
		if r := master.send("POST", "/keys", strings.NewReader(own), "Content-Type", "application/json", "Idempotency-Key", key); r.code() != "api_key_already_exists" {
			t.Errorf("another request for an existing key: %d %s", r.status, r.body)
		}
	}
	for _, path := range []string{"/keys", "/webhooks"} {
		if r := master.send("POST", path, strings.NewReader(own), "Content-Type", "application/json", "Idempotency-Key", strings.Repeat("k", 256)); r.code() != "bad_request" {
			t.Errorf("%s: a key that is too long: %d %s", path, r.status, r.body)
		}
	}
}

// TestStandby forwards requests to a writer, which is away for some of them.
func TestStandby(t *testing.T) {
	writer, _ := newInstance(t, Options{Keys: openKeys(t, masterKey), Member: &fakeMember{pos: group.Position{Term: 1, Run: 1, Index: 9}}})
	api := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go writer.server.ServeAlso(api) // until the server's Shutdown
	var away atomic.Int64
	f := NewForwarder(func(context.Context) (net.Conn, error) {
		if away.Add(-1) >= 0 {
			return nil, errors.New("away")
		}
		return api.Dial()
	})
	m := &fakeMember{state: group.StateFollows}
	s := NewStandby(m, f, masterKey, 0, writer.server.logs)
	l := fasthttputil.NewInmemoryListener()
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		f.Close()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-served
	})
	c := &client{t: t, http: http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return l.Dial() }}}}
	t.Cleanup(c.http.CloseIdleConnections)
	if r := c.get("/indexes"); r.status != 401 || r.code() != "missing_authorization_header" {
		t.Errorf("without a key: %d %s", r.status, r.body)
	}
	if r := c.get("/group"); r.status != 403 {
		t.Errorf("the group without a key: %d %s", r.status, r.body)
	}
	c.key = masterKey
	away.Store(2)
	r := c.send("POST", "/indexes/a/documents?primaryKey=id", strings.NewReader(`[{"id": 1}]`), "Content-Type", "application/json")
	if r.status != 202 || r.header.Get("Svc-Position") != "1.1.9" {
		t.Errorf("a write: %d %s at %q", r.status, r.body, r.header.Get("Svc-Position"))
	}
	large := strings.Repeat(`{"id": 1, "text": "abcdefgh"}`+"\n", 30_000)
	if r := c.send("POST", "/indexes/a/documents", struct{ io.Reader }{strings.NewReader(large)}, "Content-Type", "application/x-ndjson"); r.status != 202 {
		t.Errorf("a large write: %d %s", r.status, r.body)
	}
	if r := c.get("/group"); r.status != 200 || !strings.Contains(r.body, `"role":"reader"`) {
		t.Errorf("the group: %d %s", r.status, r.body)
	}
	if r := c.get("/health"); r.status != 200 {
		t.Errorf("health: %d %s", r.status, r.body)
	}
	m.state = group.StateAway
	if r := c.get("/health"); r.status != 503 {
		t.Errorf("health without the writer: %d %s", r.status, r.body)
	}
}

// TestEveryRouteHasAnAnswerer checks that a reader knows for each route which member answers it, and forwards every change.
func TestEveryRouteHasAnAnswerer(t *testing.T) {
	paths := map[string]bool{}
	for _, r := range append(routes(), pprofRoutes()...) {
		paths[r.path] = true
		a := r.answerer()
		if a == 0 {
			t.Errorf("%s %s: no member is assigned to the action %s", r.method, r.path, r.action)
		}
		own := r.action == actionMetricsAll || r.action == actionAnalyticsDelete || r.action == actionGroupUpdate // of the member itself
		if changes := audited[r.action] || slices.Contains(r.op.answers, 202) && r.path != "/mcp"; changes && !own && a != byWriter {
			t.Errorf("%s %s changes something, but the reader answers it", r.method, r.path)
		}
		if r.method == methodGet && a == byWriter && r.action != actionNetworkGet && r.action != actionAll {
			t.Errorf("%s %s is forwarded", r.method, r.path)
		}
	}
	for path := range answerersOfPaths {
		if !paths[path] {
			t.Errorf("there is no route %s", path)
		}
	}
}

// TestReader shows and hides a server during requests that it answers, that it forwards, and that need a later position.
func TestReader(t *testing.T) {
	writer, _ := newInstance(t, Options{Keys: openKeys(t, masterKey), Member: &fakeMember{pos: group.Position{Term: 1, Run: 1, Index: 9}}})
	api := fasthttputil.NewInmemoryListener()
	go writer.server.ServeAlso(api) // until the server's Shutdown
	var away atomic.Bool
	f := NewForwarder(func(context.Context) (net.Conn, error) {
		if away.Load() {
			return nil, errors.New("away")
		}
		return api.Dial()
	})
	m := &fakeMember{state: group.StateFollows, pos: group.Position{Term: 1, Run: 1, Index: 7}, stale: 2 * time.Second, known: true}
	o := Options{Keys: openKeys(t, masterKey)}
	openInstance(t, &o)
	complete(t, &o)
	s := NewStandby(m, f, masterKey, 0, o.Log)
	l := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		f.Close()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-served
	})
	c := &client{t: t, http: http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return l.Dial() }}}, key: masterKey}
	t.Cleanup(c.http.CloseIdleConnections)
	is := func(what string, r reply, status int, position string) {
		t.Helper()
		if r.status != status || r.header.Get("Svc-Position") != position {
			t.Errorf("%s: %d at %q, want %d at %q: %s", what, r.status, r.header.Get("Svc-Position"), status, position, r.body)
		}
	}
	is("before it is shown", c.get("/indexes"), 200, "1.1.9")
	live := s.NewServer(o)
	s.Show(live)
	is("a read", c.get("/indexes"), 200, "1.1.7")
	is("the key is checked", c.as("wrong").get("/indexes"), 403, "1.1.7")
	if r := c.get("/version"); r.header.Get("Svc-Staleness") != "2.000" {
		t.Errorf("staleness %q", r.header.Get("Svc-Staleness"))
	}
	is("too old", c.send("GET", "/indexes", nil, "Svc-Max-Staleness", "1"), 503, "1.1.7")
	is("a position that is there", c.send("GET", "/indexes", nil, "Svc-Min-Position", "1.1.7"), 200, "1.1.7")
	write := func() reply {
		return c.send("POST", "/indexes/a/documents", strings.NewReader(`[{"id": 1}]`), "Content-Type", "application/json", "Expect", "100-continue")
	}
	is("a write", write(), 202, "1.1.9")
	is("a task that only the writer has", c.get("/tasks/0"), 200, "1.1.9")
	is("a task that nobody has", c.get("/tasks/7"), 404, "1.1.9")
	is("the network", c.get("/network"), 400, "1.1.9") // the feature is off there
	if r := c.get("/group"); r.status != 200 || !strings.Contains(r.body, `"answersReads":true`) || live.forwarded.Load() != 4 {
		t.Errorf("%d requests were forwarded: %s", live.forwarded.Load(), r.body)
	}
	away.Store(true)
	f.Close()
	is("a read without the writer", c.get("/indexes"), 200, "1.1.7")
	for what, r := range map[string]reply{
		"a write without the writer":      c.send("POST", "/indexes/a/documents", struct{ io.Reader }{strings.NewReader(`{"id": 1}`)}, "Content-Type", "application/x-ndjson"),
		"a write that was forwarded once": c.send("POST", "/indexes", strings.NewReader(`{}`), "Content-Type", "application/json", string(headerForwarded), "1"),
	} {
		if r.status != 503 || r.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d, retry after %q: %s", what, r.status, r.header.Get("Retry-After"), r.body)
		}
	}

	held := s.use()
	hidden := make(chan struct{})
	ctx, abort := context.WithCancel(context.Background())
	defer abort()
	go func() {
		s.Hide(ctx)
		close(hidden)
	}()
	for s.isLive() {
		time.Sleep(time.Millisecond)
	}
	away.Store(false)
	is("while it is hidden", c.get("/indexes"), 200, "1.1.9")
	select {
	case <-hidden:
		t.Error("the stores were closed during a request")
	default:
	}
	if live.searching.Err() != nil {
		t.Error("searches are aborted at once")
	}
	abort()
	<-live.searching.Done()
	held.end()
	held.end() // ends once only
	<-hidden
	s.Hide(ctx) // again
}

// TestStandbyLeadsMeanwhile sends requests to a member without open stores, which becomes the writer while it waits for the former one.
func TestStandbyLeadsMeanwhile(t *testing.T) {
	o := Options{Keys: openKeys(t, masterKey)}
	openInstance(t, &o)
	complete(t, &o)
	dialled := make(chan struct{}, 1)
	f := NewForwarder(func(context.Context) (net.Conn, error) {
		select {
		case dialled <- struct{}{}:
		default:
		}
		return nil, errors.New("away")
	})
	m := &fakeMember{state: group.StateFollows, pos: group.Position{Term: 1, Run: 1, Index: 7}}
	s := NewStandby(m, f, masterKey, 0, o.Log)
	l := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c := &client{t: t, http: http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return l.Dial() }}}, key: masterKey}
	answers := make(chan reply, 2)
	go func() {
		answers <- c.send("POST", "/indexes/a/search", strings.NewReader(`{"q": "x"}`), "Content-Type", "application/json")
	}()
	<-dialled
	s.Show(s.NewServer(o))
	o.Member = m
	leader := s.Lead(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c.http.CloseIdleConnections()
		s.Hide(ctx)
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-served
	})
	if r := <-answers; r.status != 404 || r.code() != "index_not_found" || r.header.Get("Svc-Position") != "1.1.7" {
		t.Errorf("%d %s at %q", r.status, r.body, r.header.Get("Svc-Position"))
	}
	if used := heldAtEnd(leader); used != 0 {
		t.Errorf("%d bytes are held", used)
	}
}

// serveStandby serves on a port of this host until the test ends.
func serveStandby(t *testing.T, s *Standby) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-served
	})
	return l
}

// TestStandbyReadsWholeBodies checks that a member without open stores takes no part of a body for the next request.
func TestStandbyReadsWholeBodies(t *testing.T) {
	log := logs.New(io.Discard, logs.AtLeast(logs.LevelOff), logs.Human)
	f := NewForwarder(func(context.Context) (net.Conn, error) { return nil, errors.New("away") })
	s := NewStandby(&fakeMember{state: group.StateFollows}, f, masterKey, 0, log)
	l := serveStandby(t, s)
	inner := strings.Repeat("GET /group HTTP/1.1\r\nHost: a\r\n\r\n", 2000)
	chunked := "Transfer-Encoding: chunked\r\n"
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner)
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	for _, tt := range []struct {
		path, headers, body string
		statuses            []int
	}{
		{"/health", length(len(inner)), inner, []int{200, 200}},
		{"/health", chunked, chunks, []int{200, 200}},
		{"/group/promote", length(len(inner)), inner, []int{409, 200}},
		{"/indexes", "Svc-Forwarded: 1\r\n" + length(len(inner)), inner, []int{503, 200}},
		{"/indexes", chunked, chunks, []int{503, 200}},
		{"/indexes", chunked, "ffff\r\n" + inner, []int{503}}, // the end of a chunk is missing
		{"/health", length(5) + chunked, chunks, []int{400}},
		{"/health", "Transfer-Encoding: identity\r\n" + length(len(inner)), inner, []int{400}},
	} {
		first := "POST " + tt.path + " HTTP/1.1\r\nHost: a\r\n" + tt.headers + "\r\n" + tt.body
		if statuses := answersTo(t, l.Addr().String(), first); !slices.Equal(statuses, tt.statuses) {
			t.Errorf("%s %.30q: the answers are %d, want %d", tt.path, tt.headers, statuses, tt.statuses)
		}
	}
}

// TestStandbyWithoutMasterKey checks that a member without open stores shows its state to everybody if there is no master key.
func TestStandbyWithoutMasterKey(t *testing.T) {
	var ctx fasthttp.RequestCtx
	s := &Standby{member: &fakeMember{state: group.StateFollows}}
	if err := s.group(&ctx); err != nil || !strings.Contains(string(ctx.Response.Body()), `"role":"reader"`) {
		t.Errorf("%v, %s", err, ctx.Response.Body())
	}
}

func (s *Standby) isLive() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.live != nil
}

// TestStandbySettles checks that running requests may finish while others are answered. Then bodies that have not arrived are abandoned,
// and running requests are waited for.
func TestStandbySettles(t *testing.T) {
	o := Options{Keys: openKeys(t, masterKey)}
	openInstance(t, &o)
	complete(t, &o)
	s := NewStandby(&fakeMember{pos: group.Position{Term: 1, Run: 1, Index: 7}}, NewRefuser(), masterKey, 0, o.Log)
	s.Settle(t.Context()) // nothing to wait for
	s.Show(s.NewWriter(o))
	first := s.use()
	settled := make(chan struct{})
	go func() {
		s.Settle(t.Context())
		close(settled)
	}()
	var later *use
	for later == nil {
		if h := s.use(); h.live != first.live {
			later = h
		} else {
			h.end()
		}
	}
	select {
	case <-settled:
		t.Error("a request still runs")
	default:
	}
	first.end()
	<-settled
	if h := s.use(); h.live == nil {
		t.Error("requests are no longer answered")
	} else {
		h.end()
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	s.Settle(done) // returns
	hidden := make(chan struct{})
	go func() {
		s.HideSoon(t.Context(), done)
		close(hidden)
	}()
	for s.isLive() {
		time.Sleep(time.Millisecond)
	}
	select {
	case <-hidden:
		t.Error("the stores were closed during a request")
	default:
	}
	if later.live.searching.Err() != nil {
		t.Error("searches are canceled together with the bodies")
	}
	later.end()
	<-hidden
}

// TestReaderAbandonsAnUpload closes the stores of a reader during an endless upload.
func TestReaderAbandonsAnUpload(t *testing.T) {
	l := &live{}
	l.running.Add(1)
	var ctx fasthttp.RequestCtx
	ctx.SetUserValue(useKey{}, &use{live: l})
	letGo(&ctx)
	l.running.Wait()
	letGo(&ctx)
}

// TestStandbyDoesNotWaitForABody checks that a client which never ends its body does not keep the stores of a member open.
func TestStandbyDoesNotWaitForABody(t *testing.T) {
	o := Options{Keys: openKeys(t, masterKey)}
	openInstance(t, &o)
	complete(t, &o)
	s := NewStandby(&fakeMember{pos: group.Position{Term: 1, Run: 1, Index: 7}}, NewRefuser(), masterKey, 0, o.Log)
	l := serveStandby(t, s)
	server := s.NewWriter(o)
	s.Show(server)
	for _, path := range []string{"/indexes/a/documents", "/indexes/a/search"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		// Send enough to extend the deadline of the connection.
		head := "POST " + path + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + masterKey + "\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n["
		if _, err := io.WriteString(conn, head+strings.Repeat(" ", 2*deadlineBytes)); err != nil {
			t.Fatal(err)
		}
		for reading := false; !reading; time.Sleep(time.Millisecond) {
			s.conns.mu.Lock()
			for c := range s.conns.open {
				reading = reading || c.blocked.Load() && c.busy.Load() && c.moved.Load() > 2*deadlineBytes
			}
			s.conns.mu.Unlock()
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if path == "/indexes/a/search" {
			s.Settle(ctx)
			s.HideSoon(t.Context(), ctx) // returns
		} else {
			s.Hide(ctx) // returns
		}
		s.Show(s.NewWriter(o))
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(path, err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), codeNoWriter) {
			t.Errorf("%s: %d %s %v", path, answer.StatusCode, body, err)
		}
	}
}

// askedVoter is a voter that counts requests for the latest position.
type askedVoter struct {
	fakeMember
	asked int
	err   error
	while func() // runs before an answer; nil: nothing
	voter *group.VoterStatus
	stops bool
	late  bool
}

func (v *askedVoter) Status() *group.Status {
	return &group.Status{Role: group.RoleVoter, Voter: v.voter}
}

func (v *askedVoter) Transfer(string) error { return nil }
func (v *askedVoter) Remove(string) error   { return nil }
func (v *askedVoter) Draining() bool        { return v.stops }
func (v *askedVoter) Behind() bool          { return v.late }
func (v *askedVoter) Votes() bool           { return v.voter == nil || v.voter.Votes }

func (v *askedVoter) Latest(context.Context) (group.Position, error) {
	v.asked++
	if v.while != nil {
		v.while()
	}
	return v.pos, v.err
}

// TestChangesUpToAPosition checks that a request which waits for a position sees the keys and aliases of that position.
func TestChangesUpToAPosition(t *testing.T) {
	keys := openKeys(t, masterKey)
	v := &askedVoter{}
	o := Options{Keys: keys, Member: v, Forward: func(*fasthttp.RequestCtx) error { return apierr.New("writer_unreachable", "away") }}
	c, _ := newInstance(t, o)
	catalog := c.server.catalog
	for i, uid := range []string{"a", "b"} {
		if _, err := catalog.Create(uid, "", uint64(1+i)); err != nil {
			t.Fatal(err)
		}
	}
	key, err := keys.Create(auth.Key{UID: uuid.New(), Actions: []string{"*"}, Indexes: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	c = c.as(keys.Value(key))
	move := func(uid string) func() {
		return func() {
			if err := catalog.MoveAliases([]index.AliasMove{{Alias: "main", UID: uid}}); err != nil {
				t.Error(err)
			}
		}
	}
	for _, x := range []struct {
		what   string
		while  func()
		status int
		want   string // part of the answer
	}{
		{"no alias yet", nil, 404, "no index `main`"},
		{"a new alias", move("a"), 200, `"uid":"a"`},
		{"an alias that moves", move("b"), 200, `"uid":"b"`},
		{"an alias that is deleted", move(""), 404, "no index `main`"},
		{"a key that is deleted", func() { _ = keys.Delete(key.UID.String()) }, 403, "invalid_api_key"},
	} {
		v.while = x.while
		if r := c.send("GET", "/indexes/main", nil, "Svc-Min-Position", "latest"); r.status != x.status || !strings.Contains(string(r.body), x.want) {
			t.Errorf("%s: %d %s", x.what, r.status, r.body)
		}
	}
}

// TestHealthOfVoters checks the status for load balancers and updates: a voter that votes and is not stopping is healthy, whether its data
// are open or not.
func TestHealthOfVoters(t *testing.T) {
	for _, x := range []struct {
		what         string
		leader       string
		votes, stops bool
		late         bool
		closed, open int // status while its data are closed or open
	}{
		{"votes", "10.0.0.1:7701", true, false, false, 200, 200},
		{"copies", "10.0.0.1:7701", false, false, false, 503, 503},
		{"stops", "10.0.0.1:7701", true, true, false, 503, 503},
		{"is behind", "10.0.0.1:7701", true, false, true, 503, 503},
		{"alone", "", true, false, false, 503, 200},
	} {
		v := &askedVoter{voter: &group.VoterStatus{Leader: x.leader, Votes: x.votes}, stops: x.stops, late: x.late}
		c := newClient(t, Options{Member: v})
		if r := c.get("/health"); r.status != x.open {
			t.Errorf("%s, open: %d %s", x.what, r.status, r.body)
		}
		var ctx fasthttp.RequestCtx
		(&Standby{member: v, forwarder: &Forwarder{}}).health(&ctx)
		if got := ctx.Response.StatusCode(); got != x.closed {
			t.Errorf("%s, closed: %d", x.what, got)
		}
	}
}

// TestLatestPosition checks that a request asks for the latest position at most once, and not without a key.
func TestLatestPosition(t *testing.T) {
	v := &askedVoter{fakeMember: fakeMember{pos: group.Position{Term: 1, Run: 1, Index: 7}}}
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey), Member: v, Forward: func(*fasthttp.RequestCtx) error { return nil }})
	away := apierr.New("writer_unreachable", "away")
	for _, x := range []struct {
		what, key string
		err       error
		status    int
		asked     int
	}{
		{"without a key", "", nil, 401, 0},
		{"with an invalid key", "wrong", nil, 403, 1},
		{"with a key", masterKey, nil, 200, 1},
		{"without a leader", masterKey, away, 503, 1},
		{"without a leader, with a key that may be new", "wrong", away, 503, 1},
	} {
		v.asked, v.err = 0, x.err
		r := c.as(x.key).send("GET", "/indexes", nil, "Svc-Min-Position", "latest")
		if r.status != x.status || v.asked != x.asked || (r.status == 503) != (r.header.Get("Retry-After") == "1") {
			t.Errorf("%s: %d %s, retry after %q; the leader was asked %d times", x.what, r.status, r.body, r.header.Get("Retry-After"), v.asked)
		}
	}
}

// TestForwardedOnce checks that a transfer of the lead is not sent again if it may have been received.
func TestForwardedOnce(t *testing.T) {
	api := fasthttputil.NewInmemoryListener()
	var away atomic.Int64
	f := NewForwarder(func(context.Context) (net.Conn, error) {
		if away.Add(-1) >= 0 {
			return nil, errors.New("away")
		}
		return api.Dial()
	})
	t.Cleanup(func() { _ = f.Close() })
	var received atomic.Int64
	var answer atomic.Pointer[func(ctx *fasthttp.RequestCtx)]
	writer := fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		received.Add(1)
		(*answer.Load())(ctx)
	}}
	served := make(chan error, 1)
	go func() { served <- writer.Serve(api) }()
	t.Cleanup(func() {
		if err := api.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	broken := func(ctx *fasthttp.RequestCtx) { // closes the connection the first time
		if received.Load() == 1 {
			ctx.HijackSetNoResponse(true)
			ctx.Hijack(func(c net.Conn) { _ = c.Close() })
		}
	}
	other := func(ctx *fasthttp.RequestCtx) { // does not lead the first time
		if received.Load() == 1 {
			ctx.Response.Header.Set(headerNoWriter, "1")
		}
	}
	for _, x := range []struct {
		method, path string
		away         int64
		answer       func(ctx *fasthttp.RequestCtx)
		received     int64
		fails        bool
	}{
		{"POST", "/group/transfer", 0, broken, 1, true},
		{"DELETE", "/group/members/ab", 0, broken, 1, true},
		{"POST", "/indexes", 0, broken, 2, false},
		{"POST", "/group/transfer", 1, other, 2, false},
		{"DELETE", "/group/members/ab", 1, other, 2, false},
	} {
		received.Store(0)
		away.Store(x.away)
		answer.Store(&x.answer)
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetMethod(x.method)
		ctx.Request.SetRequestURI(x.path)
		ctx.Request.Header.SetHost("writer")
		if err := f.Forward(&ctx); (err != nil) != x.fails || received.Load() != x.received {
			t.Errorf("%s %s: %v, received %d times, want %d", x.method, x.path, err, received.Load(), x.received)
		}
		f.client.CloseIdleConnections()
	}
}

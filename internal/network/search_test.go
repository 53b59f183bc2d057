package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/outbound"
	"svc/internal/search"
	"svc/internal/vfs"
)

const emptyAnswer = `{"hits":[],"processingTimeMs":0,"limit":20,"offset":0,"estimatedTotalHits":0}`

// nodeOf returns a node with itself and one remote at a url.
func nodeOf(t *testing.T, o Options, url string, shards map[string]*ShardPatch) *Node {
	t.Helper()
	o.FS, o.File = vfs.NewMem(), "network.json"
	n, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	key := "the-key"
	p := &Patch{Self: given("me"), Shards: shards, Remotes: map[string]*RemotePatch{"me": at("http://me.test"), "far": {URL: given(url), SearchAPIKey: Text{true, &key}}}}
	if err := patch(n, p); err != nil {
		t.Fatal(err)
	}
	return n
}

// nowhere is an address at which nothing listens. The address of a closed server may belong to another server by now.
const nowhere = "http://127.0.0.1:9"

// TestRemoteFailures asks a remote that fails in every possible way.
func TestRemoteFailures(t *testing.T) {
	var status, answered atomic.Int64
	var body atomic.Value
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answered.Add(1)
		if r.Header.Get("Authorization") != "Bearer the-key" || r.Header.Get("Svc-Proxy-Search") != "true" || r.Header.Get("Svc-Proxy-Search-Time") != "7" || r.URL.Path != "/base/multi-search" {
			t.Errorf("%s with %v", r.URL, r.Header)
		}
		_, _ = io.Copy(io.Discard, r.Body) // the server notices only after this that the client has gone
		if status.Load() == 0 {            // never answers
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
			return
		}
		w.Header().Set("Location", "http://elsewhere.test/")
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte(body.Load().(string)))
	}))
	defer remote.Close()
	for _, tt := range []struct {
		what, url string
		allowed   outbound.Policy
		status    int64
		body      string
		code      apierr.Code
		attempts  int64
	}{
		{"fine", remote.URL, outbound.Any(), 200, emptyAnswer, "", 1},
		{"wrong key", remote.URL, outbound.Any(), 403, `{"code":"invalid_api_key","message":"No."}`, "remote_invalid_api_key", 1},
		{"refused", remote.URL, outbound.Any(), 400, `?`, "remote_bad_request", 1},
		{"failed", remote.URL, outbound.Any(), 500, ``, "remote_remote_error", 4},
		{"no JSON", remote.URL, outbound.Any(), 200, `{"hits":`, "remote_bad_response", 1},
		{"no hits", remote.URL, outbound.Any(), 200, `{}`, "remote_bad_response", 1},
		{"redirected", remote.URL, outbound.Any(), 302, ``, "remote_bad_response", 1},
		{"redirected, to be repeated", remote.URL, outbound.Any(), 307, ``, "remote_bad_response", 1},
		{"redirected for good", remote.URL, outbound.Any(), 308, ``, "remote_bad_response", 1},
		{"late", remote.URL, outbound.Any(), 0, ``, "remote_timeout", 1},
		{"gone", nowhere, outbound.Any(), 200, ``, "remote_could_not_send_request", 0},
		{"not allowed", remote.URL, outbound.Policy{}, 200, ``, "remote_could_not_send_request", 0},
	} {
		patience := time.Minute
		if tt.status == 0 {
			patience = 5 * time.Second // enough for the request to arrive on a loaded machine
		}
		n := nodeOf(t, Options{Allowed: tt.allowed, SearchTimeout: patience}, tt.url+"/base/", map[string]*ShardPatch{"a": owners("far")})
		status.Store(tt.status)
		body.Store(tt.body)
		answered.Store(0)
		got := n.Search(context.Background(), []RemoteSearch{{Remote: "far", Federation: []byte(`{}`), Time: time.Unix(7, 0)}}, nil)
		var code apierr.Code
		if got[0].Err != nil {
			code = got[0].Err.Code
		}
		if got[0].Err != nil && strings.Contains(got[0].Err.Message, "127.0.0.1") {
			t.Errorf("%s: the error shows the address of the remote: %v", tt.what, got[0].Err)
		}
		if len(got) != 1 || got[0].Remote != "far" || code != tt.code || answered.Load() != tt.attempts {
			t.Errorf("%s: %q after %d attempts, want %q after %d", tt.what, code, answered.Load(), tt.code, tt.attempts)
		}
		// Only failures of the machine make a remote unavailable.
		if away := n.status("far") == "unavailable"; away != (tt.code != "" && tt.code.Status() == 502) {
			t.Errorf("%s: the remote is unavailable: %v", tt.what, away)
		}
	}
}

// TestCompressedAnswers lets a remote compress its answers and truncate them.
func TestCompressedAnswers(t *testing.T) {
	var sent []byte
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("asked with %v", r.Header)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(sent)
	}))
	defer remote.Close()
	n := nodeOf(t, Options{Allowed: outbound.Any()}, remote.URL, nil)
	for what, tt := range map[string]struct {
		body string
		cut  int
		code apierr.Code
	}{
		"an answer":               {emptyAnswer, 0, ""},
		"one that ends too early": {emptyAnswer, 9, "remote_bad_response"},
		"nothing":                 {"", 1 << 10, "remote_bad_response"},
		"too much":                {strings.Repeat(" ", maxAnswer+1), 0, "remote_bad_response"},
	} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, tt.body)
		_ = z.Close()
		sent = b.Bytes()[:max(b.Len()-tt.cut, 0)]
		var code apierr.Code
		if got := n.Search(context.Background(), []RemoteSearch{{Remote: "far", Federation: []byte(`{}`)}}, nil); got[0].Err != nil {
			code = got[0].Err.Code
		}
		if code != tt.code {
			t.Errorf("%s: %q, want %q", what, code, tt.code)
		}
	}
}

// TestAnswersAreCharged lets a remote send large answers, plain and compressed, to requests with a memory limit above or below them.
func TestAnswersAreCharged(t *testing.T) {
	long := strings.Replace(emptyAnswer, "[]", `[],"x":"`+strings.Repeat("x", 1<<20)+`"`, 1)
	compressed := false
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if !compressed {
			_, _ = io.WriteString(w, long)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, long)
		_ = z.Close()
	}))
	defer remote.Close()
	n := nodeOf(t, Options{Allowed: outbound.Any()}, remote.URL, nil)
	for _, compressed = range []bool{false, true} {
		for _, limit := range []int64{100 << 10, 8 << 20} {
			account := budget.New(limit, nil).Open(limit)
			ctx := context.WithValue(context.Background(), budget.Key, account)
			got := n.Search(ctx, []RemoteSearch{{Remote: "far", Federation: []byte(`{}`)}}, nil)[0]
			switch held := account.Held(); {
			case got.Err != nil:
				t.Errorf("compressed %t, limit %d: %v", compressed, limit, got.Err)
			case limit < 1<<20 && (got.Refused == nil || held > limit):
				t.Errorf("compressed %t: %v with %d of %d bytes held", compressed, got.Refused, held, limit)
			case limit > 1<<20 && (got.Refused != nil || held < 1<<20 || held > 5<<20):
				t.Errorf("compressed %t: %v with %d bytes held", compressed, got.Refused, held)
			}
		}
	}
}

// TestWires counts the connections of searches. They are reused, replaced when the remote has closed them, and closed at the end.
func TestWires(t *testing.T) {
	var opened, open, slow atomic.Int64
	hold := make(chan struct{})
	remote := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if slow.Load() > 0 {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, emptyAnswer)
	}))
	remote.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			opened.Add(1)
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	remote.Start()
	defer remote.Close()
	n := nodeOf(t, Options{Allowed: outbound.Any()}, remote.URL, nil)
	search := func(ctx context.Context) *apierr.Error {
		return n.Search(ctx, []RemoteSearch{{Remote: "far", Federation: []byte(`{}`)}}, nil)[0].Err
	}
	for range 1000 {
		if err := search(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if opened.Load() != 1 {
		t.Errorf("1000 searches, one after the other, opened %d connections", opened.Load())
	}
	remote.CloseClientConnections()
	if err := search(context.Background()); err != nil || opened.Load() != 2 {
		t.Errorf("after the remote closed the connection: %v, %d connections", err, opened.Load())
	}
	slow.Store(1)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for range 2 * idlePerRemote {
		group.Go(func() {
			if err := search(ctx); err == nil {
				t.Error("a canceled search has an answer")
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); open.Load() < 2*idlePerRemote && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	group.Wait()
	slow.Store(0)
	close(hold)
	for range 2 * idlePerRemote {
		group.Go(func() {
			if err := search(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	within := func(most int64) bool {
		for deadline := time.Now().Add(time.Minute); open.Load() > most; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return false
			}
		}
		return true
	}
	if !within(idlePerRemote) {
		t.Errorf("%d connections stay open, want at most %d", open.Load(), idlePerRemote)
	}
	if _ = n.Close(); !within(0) {
		t.Errorf("%d connections stay open after the end", open.Load())
	}
}

// TestOtherEngines uses a remote that speaks the API, but not the requests that only instances of svc send each other.
func TestOtherEngines(t *testing.T) {
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "POST /multi-search": // as recorded
			_, _ = io.WriteString(w, `{"hits":[{"id":7,"title":"seven","_federation":{"indexUid":"films","queriesPosition":0,"weightedRankingScore":1.0,`+
				`"weightedScoreValues":[{"weightedScore":1.0}],"extra_document":{}}}],"processingTimeMs":3,"limit":20,"offset":0,"estimatedTotalHits":1}`)
		case "GET /experimental-features":
			_, _ = io.WriteString(w, `{"network":true}`)
		case "GET /tasks":
			_, _ = io.WriteString(w, `{"results":[],"total":0,"limit":1,"from":null,"next":null}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer remote.Close()
	n := nodeOf(t, Options{Allowed: outbound.Any()}, remote.URL, nil)
	if got := n.Search(context.Background(), []RemoteSearch{{Remote: "far", Federation: []byte(`{}`), Asked: search.Asked{Hits: 1}}}, nil)[0]; got.Err != nil {
		t.Errorf("its answer is refused: %v", got.Err)
	}
	_, err := n.checkRemote(context.Background(), "far", n.Network().Remotes["far"])
	var refused *apierr.Error
	if !errors.As(err, &refused) || refused.Code != "remote_bad_request" || !strings.Contains(refused.Message, "is not svc") {
		t.Errorf("it may take part in a network with a leader: %v", err)
	}
}

func TestAvailability(t *testing.T) {
	now := time.Unix(1000, 0)
	a := availability{now: func() time.Time { return now }, outages: map[string]*outage{}}
	failure := apierr.New("remote_remote_error", "It failed.")
	after := func(d time.Duration, want bool) {
		t.Helper()
		now = now.Add(d)
		if got := a.available("r"); got != want {
			t.Errorf("available: %v, want %v", got, want)
		}
	}
	after(0, true)
	a.fail("r", failure)
	after(29*time.Second, false)
	a.fail("r", failure) // again, before the period is over
	after(59*time.Second, false)
	after(time.Second, true)
	a.fail("r", failure)
	after(30*time.Second, true)
	for range 10 {
		a.fail("r", failure)
	}
	after(maxPeriod-time.Second, false)
	after(time.Second, true)
	if !a.fail("r", failure) || a.fail("r", failure) {
		t.Error("fail must report once that the remote became unavailable")
	}
	if !a.succeed("r") || a.succeed("r") {
		t.Error("succeed must report once that the remote became available")
	}
	after(0, true)
	a.fail("r", failure)
	after(firstPeriod, true)
}

// TestParts splits searches by instance and by shard.
func TestParts(t *testing.T) {
	n := nodeOf(t, Options{}, "http://far.test", nil)
	parts := n.Parts()
	if len(parts) != 2 || parts[0] != (Part{"far", false, ""}) || parts[1] != (Part{"me", true, ""}) {
		t.Errorf("without a leader: %v", parts)
	}
	led := *n.Network()
	led.Leader = led.Self
	led.Shards = map[string]*Shard{"a": {[]string{"far"}}, "b": {[]string{"far", "me"}}}
	parts = n.shardParts(&led)
	if len(parts) != 2 || parts[0] != (Part{"far", false, "a"}) || parts[1] != (Part{"me", true, "b"}) {
		t.Errorf("with a leader: %v", parts)
	}
	led.Shards = map[string]*Shard{"a": {[]string{"far"}}, "b": {[]string{"far", "near"}}}
	n.availability.fail("far", apierr.New("remote_remote_error", "It failed."))
	for range 20 {
		if parts = n.shardParts(&led); len(parts) != 2 || parts[0] != (Part{"far", false, "a"}) || parts[1] != (Part{"near", false, "b"}) {
			t.Errorf("with a remote that failed: %v", parts)
		}
	}
}

// TestEndlessHeaders has a remote send headers until the connection is closed.
func TestEndlessHeaders(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan int)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = l.Close() // another attempt fails at once
		defer c.Close()
		total, _ := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		line := "X-More: " + strings.Repeat("a", 1000) + "\r\n"
		for {
			n, err := io.WriteString(c, line)
			if total += n; err != nil {
				sent <- total
				return
			}
		}
	}()
	n := nodeOf(t, Options{Allowed: outbound.Any()}, "http://"+l.Addr().String(), nil)
	if err := n.Search(context.Background(), []RemoteSearch{{Remote: "far", Federation: []byte(`{}`)}}, nil)[0].Err; err == nil {
		t.Error("an answer with endless headers is accepted")
	}
	// The socket buffers of both ends come on top.
	if total := <-sent; total > headLimit+32<<20 {
		t.Errorf("%d bytes of headers were read", total)
	}
}

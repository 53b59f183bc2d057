package fastapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/budget"
)

// TestConnectionsKeepNoAnswers has many clients read large answers of all kinds and stay connected: idle connections must not hold the
// memory of these answers.
func TestConnectionsKeepNoAnswers(t *testing.T) {
	const clients, perClient = 24, 64 << 10
	c, _ := newInstance(t, Options{PayloadLimit: 4 << 20})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id":1,"text":"`+strings.Repeat("metropolis ", 100_000)+`"}]`))
	large := 0 // bytes of an asset
	var asset string
	for name, file := range dashboardPage().assets {
		if len(file.content) > large {
			large, asset = len(file.content), name
		}
	}
	var all [clients]net.Conn
	var from [clients]*bufio.Reader
	ask := func(path string, least int) {
		t.Helper()
		for i, client := range all {
			go fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
			client.SetReadDeadline(time.Now().Add(time.Minute))
			resp, err := http.ReadResponse(from[i], nil)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if n, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 || n < int64(least) {
				t.Fatalf("%s: %d with %d bytes: %v", path, resp.StatusCode, n, err)
			}
		}
	}
	held := func() int64 {
		for range 3 { // pools are empty after the second
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for i := range all {
		client, server := net.Pipe()
		defer client.Close()
		go c.server.http.ServeConn(&conn{Conn: server, in: c.server.conns}) // an error means that the client has gone
		all[i], from[i] = client, bufio.NewReader(client)
	}
	answers := []struct {
		path  string
		least int
	}{
		{"/indexes/films/search?q=metropolis", 1 << 20},
		{"/indexes/films/documents", 1 << 20},
		{"/indexes/films/documents/1", 1 << 20},
		{"/assets/" + dashboardPage().hash + "/" + asset, large},
		{"/openapi.json", 100_000},
	}
	ask("/health", 0)
	for _, of := range answers { // what the server keeps once, however many clients there are
		c.get(of.path)
	}
	before := held()
	for _, of := range answers {
		ask(of.path, of.least)
		more := held() - before
		for end := time.Now().Add(time.Minute); more > clients*perClient && time.Now().Before(end); more = held() - before {
			time.Sleep(time.Millisecond) // the server may not be done with the last answer
		}
		if more > clients*perClient {
			t.Errorf("after %s, %d idle connections hold %d bytes each", of.path, clients, more/clients)
		}
	}
}

// TestAnswerBuffers builds answers in buffers of about their size, and in much larger ones: the memory held for the client
// must be charged.
func TestAnswerBuffers(t *testing.T) {
	text := func(n int) func([]byte) ([]byte, error) {
		return func(dst []byte) ([]byte, error) { return append(dst, strings.Repeat("x", n)...), nil }
	}
	for _, test := range []struct{ first, n int }{
		{0, 10}, {0, 100_000}, {0, 3_000_000}, {100_000, 10}, {1_000_000, 0}, {1_000_000, 10}, {1_000_000, 4096}, {1_000_000, 4097}, {1_000_000, 131_072}, {1_000_000, 131_073}, {1_000_000, 999_000}, {1_000_000, 262_144}, {1_000_000, 262_145}, {2_000_000, 600_000}, {2_000_000, 1 << 20}, {2_000_000, 1<<20 + 1}, {2_000_000, 1_000_000}, {5_000_000, 4_999_000}, {0, 9_000_000},
	} {
		s := &Server{answerLimit: 1 << 30}
		s.budget = budget.New(1<<30, nil)
		var ctx fasthttp.RequestCtx
		ctx.Init(&fasthttp.Request{}, nil, nil)
		r := s.begin(&ctx)
		if test.first > 0 {
			answerBuffers.Put(&answerBuffer{b: make([]byte, 0, test.first)})
		}
		if err := answerAs(&ctx, contentJSON, text(test.n)); err != nil {
			t.Fatal(err)
		}
		r.settle(&ctx)
		held := r.account.Held()
		if body := ctx.Response.Body(); len(body) != test.n || held < int64(test.n) || held > int64(test.n+test.n/4+spareBytes) {
			t.Errorf("%d bytes made in %d: %d, and %d are held", test.n, test.first, len(body), held)
		}
		r.Close()
		if used := s.budget.Used(); used != 0 || r.buffer != nil {
			t.Errorf("%d bytes made in %d: %d are held at the end", test.n, test.first, used)
		}
	}
}

// TestCopyClasses checks that a copy has room for its answer and little more, and that each class has one size.
func TestCopyClasses(t *testing.T) {
	sizes := map[int]int{}
	for n := 0; n <= 1<<20; n += 511 {
		class, size := copyClass(n)
		if class >= len(copyBuffers) || size < n || size-n > max(leastCopy, min(n, spareBytes)) {
			t.Fatalf("%d bytes are copied to %d of class %d", n, size, class)
		}
		if known, ok := sizes[class]; ok && known != size {
			t.Fatalf("class %d has %d and %d bytes", class, known, size)
		}
		sizes[class] = size
	}
	if class, _ := copyClass(1<<20 + 1); class < len(copyBuffers) {
		t.Errorf("more than a mebibyte is copied to class %d", class)
	}
}

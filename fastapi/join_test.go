package fastapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// TestAnswersArriveComplete requests bodies with lengths close to those at which the writing of answers changes, one by one and pipelined.
func TestAnswersArriveComplete(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	body := func(n int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n] }
	server := fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		n, _ := strconv.Atoi(strings.TrimPrefix(string(ctx.Path()), "/"))
		if ctx.QueryArgs().Has("unchanged") {
			ctx.Response.SetStatusCode(fasthttp.StatusNotModified)
		}
		if ctx.QueryArgs().Has("stream") {
			ctx.Response.SetBodyStream(bytes.NewReader(body(n)), n)
		} else {
			ctx.Response.SetBody(body(n))
		}
		ctx.Conn().(*conn).foretell(ctx)
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener{tcp, new(conns), nil}) }()
	client, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	type asked struct {
		method, path string
		n            int
	}
	var all []asked
	for _, n := range []int{0, 1, 100, 3800, 3900, 3950, 4000, 4095, 4096, 4097, 4200, 8000, 8192, 9000, writeBytes, writeBytes + 1, 3 * writeBytes} {
		all = append(all, asked{"GET", fmt.Sprintf("/%d", n), n}, asked{"HEAD", fmt.Sprintf("/%d", n), n}, asked{"GET", fmt.Sprintf("/%d?stream", n), n},
			asked{"GET", fmt.Sprintf("/%d?unchanged", n), 0})
	}
	answers := bufio.NewReader(client)
	read := func(a asked) {
		t.Helper()
		resp, err := http.ReadResponse(answers, &http.Request{Method: a.method})
		if err != nil {
			t.Fatalf("%s %s: %v", a.method, a.path, err)
		}
		got, err := io.ReadAll(resp.Body)
		if a.method == "HEAD" {
			a.n = 0
		}
		if err != nil || !bytes.Equal(got, body(a.n)) {
			t.Fatalf("%s %s: %d bytes, %v", a.method, a.path, len(got), err)
		}
	}
	for _, a := range all {
		fmt.Fprintf(client, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", a.method, a.path)
		read(a)
	}
	go func() {
		for _, a := range all {
			fmt.Fprintf(client, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", a.method, a.path)
		}
	}()
	for _, a := range all {
		read(a)
	}
	client.Close()
	if err := server.Shutdown(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// countingConn counts the bytes written to it. It has no reader.
type countingConn struct {
	net.Conn
	writes []int // lengths
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.writes = append(c.writes, len(b))
	return len(b), nil
}

func (*countingConn) SetWriteDeadline(time.Time) error { return nil }

// TestHeadWaitsForTheBody checks that a write which more will follow is sent together with the rest, and that nothing else waits.
func TestHeadWaitsForTheBody(t *testing.T) {
	for _, tc := range []struct {
		body   int
		writes []int
		sent   []int // sent after each write
	}{
		{5000, []int{4096, 1100}, []int{0, 2}},
		{4096, []int{4096, 100}, []int{0, 2}},
		{4095, []int{4096, 99}, []int{1, 2}},
		{0, []int{100}, []int{1}},
		{9000, []int{4097, 5000}, []int{1, 2}},
		{9000, []int{4096, 4096, 1000}, []int{0, 2, 3}},
	} {
		to := &countingConn{}
		c := &conn{Conn: to, in: &conns{}, body: tc.body}
		for i, n := range tc.writes {
			if got, err := c.Write(make([]byte, n)); got != n || err != nil {
				t.Errorf("%+v: %d, %v", tc, got, err)
			}
			if len(to.writes) != tc.sent[i] {
				t.Errorf("%+v: %d was sent after write %d", tc, to.writes, i)
			}
		}
	}
}

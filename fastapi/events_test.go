package fastapi

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// newEventClient starts a server whose route GET /health streams what run sends.
func newEventClient(t *testing.T, run func(context.Context, *eventStream)) *client {
	t.Helper()
	c := newTCPClient(t, Options{})
	c.server.http.Handler = func(ctx *fasthttp.RequestCtx) { c.server.streamEvents(ctx, run) }
	return c
}

func (c *client) open(t *testing.T) (*http.Response, *bufio.Reader) {
	t.Helper()
	res, err := c.http.Get("http://svc/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res, bufio.NewReader(res.Body)
}

// TestEventsAreSentAtOnce waits for each event before the next is sent.
func TestEventsAreSentAtOnce(t *testing.T) {
	next := make(chan string)
	c := newEventClient(t, func(_ context.Context, e *eventStream) {
		for data := range next {
			if err := e.send([]byte(data)); err != nil {
				t.Error(err)
			}
		}
		if err := e.retry(1500 * time.Millisecond); err != nil {
			t.Error(err)
		}
	})
	res, body := c.open(t) // the headers arrive before any event
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Content-Encoding": "identity",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, data := range []string{`{"a":1}`, "[DONE]"} {
		next <- data
		line, err := body.ReadString('\n')
		empty, err2 := body.ReadString('\n')
		if err != nil || err2 != nil || line != "data: "+data+"\n" || empty != "\n" {
			t.Fatalf("%q %q %v %v", line, empty, err, err2)
		}
	}
	close(next)
	if rest, err := io.ReadAll(body); err != nil || string(rest) != "retry: 1500\n" {
		t.Errorf("%q %v", rest, err)
	}
}

func TestStreamEndsWhenTheClientLeaves(t *testing.T) {
	ended := make(chan error, 1)
	c := newEventClient(t, func(ctx context.Context, e *eventStream) {
		e.send([]byte("1"))
		<-ctx.Done()
		ended <- context.Cause(ctx)
	})
	res, body := c.open(t)
	if _, err := body.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if err := <-ended; err != errLeft {
		t.Errorf("ended by %v", err)
	}
}

// TestStreamEndsWithTheServer checks that the last event of a stream is still sent.
func TestStreamEndsWithTheServer(t *testing.T) {
	begun := make(chan struct{})
	c := newEventClient(t, func(ctx context.Context, e *eventStream) {
		close(begun)
		<-ctx.Done()
		if err := context.Cause(ctx); err != errStopping {
			t.Errorf("ended by %v", err)
		}
		e.send([]byte("bye"))
	})
	_, body := c.open(t)
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- c.server.Shutdown(context.Background()) }()
	if rest, err := io.ReadAll(body); err != nil || string(rest) != "data: bye\n\n" {
		t.Errorf("%q %v", rest, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStreamSurvivesAPanic(t *testing.T) {
	c := newEventClient(t, func(_ context.Context, e *eventStream) {
		e.send([]byte("1"))
		panic("at the disco")
	})
	_, body := c.open(t)
	if rest, err := io.ReadAll(body); err != nil || !strings.HasPrefix(string(rest), "data: 1\n\n") {
		t.Errorf("%q %v", rest, err)
	}
}

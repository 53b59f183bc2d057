package fastapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

// TestForwardsLongAnswers checks that answers and requests may take longer than forwardWait as long as their pieces keep coming.
func TestForwardsLongAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		f := NewForwarder(func(context.Context) (net.Conn, error) { return near, nil })
		c, err := f.client.Dial("writer")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(forwardWait)) // as fasthttp does before a request
		piece := make([]byte, 1)
		for i := range 5 {
			go func() {
				time.Sleep(forwardWait * 3 / 4)
				far.Write(piece)
			}()
			if _, err := c.Read(piece); err != nil {
				t.Fatalf("piece %d of the answer: %v", i, err)
			}
		}
		for i := range 5 {
			go func() {
				time.Sleep(forwardWait * 3 / 4)
				far.Read(make([]byte, 1))
			}()
			if _, err := c.Write(piece); err != nil {
				t.Fatalf("piece %d of the request: %v", i, err)
			}
		}
		if _, err := c.Read(piece); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a writer that sends nothing: %v", err)
		}
		if _, err := c.Write(piece); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a writer that reads nothing: %v", err)
		}
	})
}

// TestForwardedAnswersKeepTheirHeaders: an answer without a body has no content type, whoever forwards it.
func TestForwardedAnswersKeepTheirHeaders(t *testing.T) {
	writer := fasthttputil.NewInmemoryListener()
	c := connect(t, Options{}, writer, writer.Dial)
	c.json("PATCH", "/experimental-features", `{"chatCompletions": true}`)
	near := fasthttputil.NewInmemoryListener()
	f := NewForwarder(func(context.Context) (net.Conn, error) { return writer.Dial() })
	var member fasthttp.Server
	setUp(&member, func(ctx *fasthttp.RequestCtx) {
		if err := f.Forward(ctx); err != nil {
			t.Error(err)
		}
	}, nil, slog.New(slog.DiscardHandler))
	done := make(chan error)
	go func() { done <- member.Serve(near) }()
	defer func() {
		if err := errors.Join(near.Close(), <-done); err != nil {
			t.Error(err)
		}
	}()
	through := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return near.Dial() }, DisableCompression: true}}
	defer through.CloseIdleConnections()
	for _, r := range []struct{ method, path, body string }{
		{"PATCH", "/chats/w/settings", "{}"}, {"DELETE", "/chats/w", ""}, {"DELETE", "/chats/w", ""}, {"GET", "/health", ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), r.method, "http://x"+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentJSON)
		got, err := through.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if kind := got.Header.Get("Content-Type"); (got.StatusCode == 204) != (kind == "") {
			t.Errorf("%s %s: %d, content type %q", r.method, r.path, got.StatusCode, kind)
		}
	}
}

// TestForwarderKeepsFewBodies checks that bodies beyond the memory for them are passed on as they arrive.
func TestForwarderKeepsFewBodies(t *testing.T) {
	f := NewForwarder(func(context.Context) (net.Conn, error) { return nil, errors.New("away") })
	take := func() (again bool, kept int64) {
		t.Helper()
		var ctx fasthttp.RequestCtx
		ctx.Request.SetBodyStream(strings.NewReader("0123456789"), 10)
		ctx.Request.Header.SetContentLength(10)
		req := fasthttp.AcquireRequest()
		defer fasthttp.ReleaseRequest(req)
		again, kept, err := f.takeBody(&ctx, req)
		if body := string(req.Body()); err != nil || body != "0123456789" {
			t.Errorf("%q, %v", body, err)
		}
		return again, kept
	}
	f.kept.Store(forwardKept - 15)
	if again, kept := take(); !again || kept != 10 || f.kept.Load() != forwardKept-5 {
		t.Errorf("with room: %t, %d, %d in all", again, kept, f.kept.Load())
	}
	if again, kept := take(); again || kept != 0 || f.kept.Load() != forwardKept-5 {
		t.Errorf("without room: %t, %d, %d in all", again, kept, f.kept.Load())
	}
	f.kept.Store(0)
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("http://a/indexes")
	ctx.Request.SetBodyStream(strings.NewReader("01234"), 10)
	ctx.Request.Header.SetContentLength(10)
	if err := f.Forward(&ctx); err == nil || f.kept.Load() != 0 || ctx.UserValue(brokenKey{}) == nil {
		t.Errorf("a short body: %v, %d bytes are kept", err, f.kept.Load())
	}
}

// deadlines is a connection that counts how often its read deadline is set.
type deadlines struct {
	net.Conn
	set int
}

func (d *deadlines) SetReadDeadline(time.Time) error { d.set++; return nil }

// TestForwardedUploadsMayTakeLong checks that a client gets more time for each part of a body that is passed on.
func TestForwardedUploadsMayTakeLong(t *testing.T) {
	d := &deadlines{}
	var ctx fasthttp.RequestCtx
	ctx.Init2(d, nil, true)
	const parts = 4
	n, err := io.Copy(io.Discard, struct{ io.Reader }{&passedBody{src: strings.NewReader(strings.Repeat("x", parts*deadlineBytes)), ctx: &ctx}})
	if err != nil || n != parts*deadlineBytes || d.set != parts {
		t.Errorf("%d bytes with %d deadlines, %v", n, d.set, err)
	}
}

package fastapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/mapped"
)

const contentEvents = "text/event-stream"

// Reasons why a stream of events ends early.
var (
	errLeft     = errors.New("the client has left")
	errStopping = errors.New("the server stops")
)

// eventStream is an answer of server-sent events. An event has been sent when the call returns; the call waits while the client does
// not read. Errors mean that the client has disconnected.
type eventStream struct{ w *bufio.Writer }

// send sends an event. Its data has no line breaks.
func (e *eventStream) send(data []byte) error {
	e.w.WriteString("data: ") // Flush gives the error
	e.w.Write(data)
	e.w.WriteString("\n\n")
	return e.w.Flush()
}

// comment sends a line that clients ignore. It keeps proxies from closing a stream without events.
func (e *eventStream) comment() error {
	e.w.WriteString(":\n\n")
	return e.w.Flush()
}

// retry tells the client how long to wait before it reconnects after an interruption. The line is part of the next event: OpenAI's
// Python client takes a line of its own for an event with empty data, which it fails to parse as JSON.
func (e *eventStream) retry(after time.Duration) error {
	e.w.WriteString("retry: " + strconv.FormatInt(after.Milliseconds(), 10) + "\n")
	return e.w.Flush()
}

// streamEvents answers with the events that run sends, until it returns. The context of run ends when the client disconnects or the
// server stops; its cause is errLeft or errStopping. run is called in another goroutine, after the handler, and must not use ctx.
func (s *Server) streamEvents(ctx *fasthttp.RequestCtx, run func(context.Context, *eventStream)) {
	ctx.SetContentType(contentEvents)
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderCacheControl, "no-cache")
	h.Set("X-Accel-Buffering", "no")         // make proxies pass events on at once
	h.SetContentEncoding("identity")         // and not to compress them
	ctx.SetConnectionClose()                 // further data from the client is read only to detect a disconnect
	ctx.Response.ImmediateHeaderFlush = true // the first event may come late
	conn, log := ctx.Conn(), s.log
	s.streams.Add(1)
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.streams.Done()
		conn.SetReadDeadline(time.Time{}) // an error means that it is already closed, also below
		running, end := context.WithCancelCause(context.Background())
		defer context.AfterFunc(s.searching, func() { end(errStopping) })()
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			end(watch(conn))
		}()
		defer func() {
			if p := recover(); p != nil {
				log.LogAttrs(running, slog.LevelError, "a stream of events failed", slog.Any("error", fmt.Errorf("panic: %v\n%s", p, debug.Stack())))
			}
			end(nil)
			conn.SetReadDeadline(time.Now())
			<-watched
		}()
		mapped.Watch()
		run(running, &eventStream{w})
	})
}

// watch returns once the client has closed the connection (errLeft), or the read deadline passes, which the server sets when it stops
// (errStopping). The connection must have no deadline yet.
func watch(conn net.Conn) error {
	var b [64]byte
	for {
		if _, err := conn.Read(b[:]); errors.Is(err, os.ErrDeadlineExceeded) {
			return errStopping
		} else if err != nil {
			return errLeft
		}
	}
}

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

// Why a stream of events ended before whoever fills it was done.
var (
	errLeft     = errors.New("the client has left")
	errStopping = errors.New("the server stops")
)

// eventStream is an answer of server-sent events. Each is on its way when the call that sends it returns; a call waits while
// the client reads nothing. Errors mean that the client has left.
type eventStream struct{ w *bufio.Writer }

// send sends an event. Its data has no line breaks.
func (e *eventStream) send(data []byte) error {
	e.w.WriteString("data: ") // Flush gives the error
	e.w.Write(data)
	e.w.WriteString("\n\n")
	return e.w.Flush()
}

// comment sends what clients take no notice of: it keeps proxies from closing a stream without events.
func (e *eventStream) comment() error {
	e.w.WriteString(":\n\n")
	return e.w.Flush()
}

// retry tells the client how long to wait before it connects again when the stream breaks. The line belongs to the event that
// comes next: OpenAI's client for Python takes one of its own for an event, and its data, which is empty, for JSON.
func (e *eventStream) retry(after time.Duration) error {
	e.w.WriteString("retry: " + strconv.FormatInt(after.Milliseconds(), 10) + "\n")
	return e.w.Flush()
}

// streamEvents answers with the events that run sends, until it returns. The context that run gets ends when the client
// has left, or when the server stops (context.Cause tells which: errLeft, errStopping). run is called in another goroutine,
// after the handler: ctx is not its any more.
func (s *Server) streamEvents(ctx *fasthttp.RequestCtx, run func(context.Context, *eventStream)) {
	ctx.SetContentType(contentEvents)
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderCacheControl, "no-cache")
	h.Set("X-Accel-Buffering", "no")         // proxies are to pass events on as they come
	h.SetContentEncoding("identity")         // and not to compress them
	ctx.SetConnectionClose()                 // what the client sends now is read only to see it leave
	ctx.Response.ImmediateHeaderFlush = true // the first event may be long in coming
	conn, log := ctx.Conn(), s.log
	s.streams.Add(1)
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.streams.Done()
		conn.SetReadDeadline(time.Time{}) // an error means that it is closed already, here as below
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

// watch returns when the client has closed the connection (errLeft), or somebody has set its read deadline, as the server
// does when it stops (errStopping). There must be no deadline before.
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

package fastapi

import (
	"bufio"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/logs"
)

// logInput is the body of the routes of logs.
type logInput struct {
	target  logs.Filter
	mode    logs.Mode
	profile bool // mode is profile
	memory  bool
}

func newLogInput() logInput {
	filter, _ := logs.ParseFilter("info") // the default for a missing target
	return logInput{target: filter, mode: logs.Colored}
}

func (in *logInput) setTarget(a *arg) error {
	filter, err := logs.ParseFilter(a.text)
	if err != nil {
		return apierr.New(a.code, "`target` cannot be used: %v.", err)
	}
	in.target = filter
	return nil
}

var consoleParams = []param[logInput]{
	{name: "target", code: "bad_request", kind: textual, set: (*logInput).setTarget},
}

var streamParams = append([]param[logInput]{
	{name: "mode", code: "bad_request", kind: textual, shape: oneOf("human", "fmt", "json", "profile"), set: func(in *logInput, a *arg) error {
		switch a.text {
		case "human", "fmt":
			in.mode = logs.Colored
		case "json":
			in.mode = logs.JSON
		case "profile":
			in.mode, in.profile = logs.Profile, true
		default:
			return a.expected("`human`, `json` or `profile`")
		}
		return nil
	}},
	{name: "profileMemory", code: "bad_request", kind: flag, set: func(in *logInput, a *arg) error { in.memory = a.flag; return nil }},
}, consoleParams...)

// filterConsole sets the log level of the console until the next start.
func (s *Server) filterConsole(ctx *fasthttp.RequestCtx) error {
	in := newLogInput()
	if err := readObject(s, ctx, &in, consoleParams); err != nil {
		return err
	}
	if err := s.needLogs(); err != nil {
		return err
	}
	s.logs.SetConsole(in.target)
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

func (s *Server) needLogs() error { return s.features.need("logsRoute", "reading and filtering logs") }

// streamLogs sends log lines from now on until endLogStream, until the client disconnects, or until its key is no longer valid.
func (s *Server) streamLogs(ctx *fasthttp.RequestCtx) error {
	in := newLogInput()
	if err := readObject(s, ctx, &in, streamParams); err != nil {
		return err
	}
	if in.memory && !in.profile {
		return apierr.New("bad_request", "`profileMemory` needs `mode` to be `profile`.")
	}
	if err := s.needLogs(); err != nil {
		return err
	}
	listener, err := s.logs.Listen(in.target, in.mode, in.memory)
	if err != nil {
		return apierr.New("bad_request", "Another client is reading the logs, and only one can at a time. To end its stream, send DELETE /logs/stream.")
	}
	ctx.SetContentType("application/octet-stream")
	ctx.Response.Header.Set("X-Accel-Buffering", "no") // make proxies pass lines on at once
	ctx.SetConnectionClose()                           // further data from the client is read only to detect a disconnect
	ctx.Response.ImmediateHeaderFlush = true           // the first line may come late
	conn, credential := ctx.Conn(), credential(ctx)
	allowed := func() bool { return s.mayReadLogs(credential) }
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer listener.Stop()
		checks := time.NewTicker(heartbeatPause)
		defer checks.Stop()
		left := make(chan struct{})
		conn.SetReadDeadline(time.Time{}) // an error means that it is closed already, here as below
		go func() {
			defer close(left)
			_ = watch(conn) // why it ended makes no difference to lines
		}()
		send(w, listener, left, checks.C, allowed)
		conn.SetReadDeadline(time.Now())
		<-left
	})
	return nil
}

// mayReadLogs reports whether a stream that began with a credential may go on.
func (s *Server) mayReadLogs(credential string) bool {
	if s.needLogs() != nil || s.searching.Err() != nil { // a server that has ended does not see that a key is deleted
		return false
	}
	if !s.keys.Protected() {
		return true
	}
	_, err := s.keys.Authorize(credential, string(actionMetricsGet), "")
	return err == nil
}

// send writes the listener's lines until it is stopped, until the client disconnects, or until a check finds that the client is no
// longer allowed to read them.
func send(w *bufio.Writer, listener *logs.Listener, left <-chan struct{}, checks <-chan time.Time, allowed func() bool) {
	for {
		if w.Flush() != nil {
			return
		}
		select {
		case <-checks:
			if !allowed() {
				return
			}
		case line := <-listener.Lines():
			w.Write(line) // Flush gives its error
			for range len(listener.Lines()) {
				w.Write(<-listener.Lines())
			}
		case <-listener.Done():
			return
		case <-left:
			return
		}
	}
}

// endLogStream ends the stream of logs; there need not be one.
func (s *Server) endLogStream(ctx *fasthttp.RequestCtx) error {
	if err := s.needLogs(); err != nil {
		return err
	}
	s.logs.StopListening()
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

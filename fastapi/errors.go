package fastapi

import (
	"context"
	"errors"
	"log/slog"

	"github.com/bytedance/sonic/encoder"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
)

// fail sends the JSON object of an error: {message, code, type, link}.
func (s *Server) fail(ctx *fasthttp.RequestCtx, err error) {
	e := s.public(ctx, err)
	ctx.SetUserValue(errorKey{}, e)
	status := e.Status()
	if status == fasthttp.StatusServiceUnavailable && len(ctx.Response.Header.Peek(fasthttp.HeaderRetryAfter)) == 0 {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "10")
	}
	if e.Code == codeNoWriter {
		ctx.Response.Header.Set(headerNoWriter, "1")
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType(contentJSON)
	ctx.Response.SetBody(e.AppendJSON(nil))
}

// public turns an error into one for the client. It logs errors that the client did not cause in full; the answer then says only what
// the machine lacks, or refers to the log.
func (s *Server) public(ctx *fasthttp.RequestCtx, err error) *apierr.Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return searchTimeout()
	}
	if e := s.overBudget(ctx, err); e != nil {
		return e
	}
	if errors.Is(err, context.Canceled) {
		return apierr.New("too_many_search_requests", "The server is stopping and cancelled the search. Try again after the restart.")
	}
	e := apierr.From(err)
	if errors.As(err, new(*apierr.Error)) && e.Code != apierr.Internal {
		return e
	}
	s.log.LogAttrs(ctx, slog.LevelError, "request failed",
		slog.Uint64("request", ctx.ID()), slog.String("method", string(ctx.Method())), slog.String("path", s.loggedPath(ctx)), slog.Any("error", err))
	if e.Code != apierr.Internal {
		return e
	}
	return apierr.New(apierr.Internal, "Internal error. The server log has the cause: search for request %d.", ctx.ID())
}

func searchTimeout() *apierr.Error {
	return apierr.New("too_many_search_requests", "The search took longer than %v and was cancelled. Request less, or set `searchCutoffMs`.", maxSearchTime)
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte { return append(b, encoder.Quote(s)...) }

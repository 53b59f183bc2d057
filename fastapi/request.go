package fastapi

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/budget"
	"svc/internal/trace"
)

// request has what lives from the first byte of a request to the last byte of its answer: its memory account, the context of its
// work, and the connection, which knows whether the client is still there. It is a value of the fasthttp request, which closes it
// when the answer is sent or cannot be sent. It is a single allocation.
type request struct {
	server  *Server
	conn    *conn // nil in tests
	account budget.Account
	work    work
	turn    turn          // the first that it takes
	waited  time.Duration // for its turn
	buffer  *answerBuffer // buffer of the answer; nil: none
	bulk    func()        // releases what readJSON took; nil: nothing
	span    trace.Span

	admitted *auth.Caller // the caller whose rate limits count the request; nil: none
	called   time.Time    // when the current call of a tool began; zero: none
}

// arrival returns when a request arrived, or when the call of a tool began: fasthttp leaves the time of its request zero.
func arrival(ctx *fasthttp.RequestCtx) time.Time {
	if at := ctx.Time(); !at.IsZero() {
		return at
	}
	if r := requestOf(ctx); r != nil {
		return r.called
	}
	return time.Time{}
}

// requestKey is the place of a request among its own values.
type requestKey struct{}

// begin notes that a request has come.
func (s *Server) begin(ctx *fasthttp.RequestCtx) *request {
	r := &request{server: s}
	s.budget.OpenAs(&r.account, s.answerLimit)
	if c, ok := ctx.Conn().(*conn); ok {
		r.conn = c
		c.account.Store(&r.account)
	}
	ctx.SetUserValue(requestKey{}, r)
	if s.tracer != nil {
		if path := ctx.Path(); string(path) != "/health" && string(path) != "/metrics" { // polled all the time
			r.span = s.tracer.Serve(string(headerTraceparent.in(&ctx.Request.Header)))
		}
	}
	return r
}

// endSpan says what the request was, now that it is answered.
func (r *request) endSpan(ctx *fasthttp.RequestCtx) {
	if r.span.Recorded() {
		name := knownMethod(ctx.Method())
		if res, ok := ctx.UserValue(resourceKey{}).(*resource); ok {
			name += " " + res.path
			r.span.Set("http.route", res.path)
		}
		r.span.Name(name)
		r.span.Set("http.request.method", knownMethod(ctx.Method()))
		r.span.SetInt("http.response.status_code", ctx.Response.StatusCode())
		if ctx.UserValue("index_uid") != nil {
			r.span.Set("svc.index", pathValue(ctx, "index_uid"))
		}
		if e, ok := ctx.UserValue(errorKey{}).(*apierr.Error); ok {
			r.span.Set("error.type", string(e.Code))
			if e.Status() >= fasthttp.StatusInternalServerError {
				r.span.Fail(string(e.Code))
			}
		}
	}
	r.span.End()
}

// requestOf returns the request of a context.
func requestOf(ctx *fasthttp.RequestCtx) *request {
	r, _ := ctx.UserValue(requestKey{}).(*request)
	return r
}

// Close ends what the request holds.
func (r *request) Close() error {
	r.admitted.End()
	r.endBulk()
	if r.work.started() {
		r.work.over(&canceled)
	}
	if r.conn != nil {
		r.conn.account.CompareAndSwap(&r.account, nil)
	}
	r.account.Close()
	r.freeBuffer()
	return nil
}

func (r *request) endBulk() {
	if r.bulk != nil {
		r.bulk()
	}
}

// bytes returns the account of the request; nil has none.
func (r *request) bytes() *budget.Account {
	if r == nil {
		return nil
	}
	return &r.account
}

// idle returns how long the request waited for its turn.
func (r *request) idle() time.Duration {
	if r == nil {
		return 0
	}
	return r.waited
}

// gone reports whether the client has disconnected.
func (r *request) gone() bool { return r.conn != nil && r.conn.gone() }

// context returns the context of the request's work. It ends on a timeout, when the client is seen to have disconnected, and when the
// server can wait no longer.
func (r *request) context() *work {
	if !r.work.started() {
		return r.contextFrom(time.Now())
	}
	return &r.work
}

// contextFrom is context for a caller that knows the time.
func (r *request) contextFrom(now time.Time) *work {
	if !r.work.started() {
		r.work.begin(r.span.In(r.server.searching), &r.account, now, maxSearchTime)
	}
	return &r.work
}

// turn waits for a search slot. limited ends when the search times out, when the client disconnects, and when the server can wait no
// longer. waited is the time in the queue. The search calls limited.end when it is done. A search for many hits yields to others and
// starts in the lane of long searches.
func (s *Server) turn(ctx *fasthttp.RequestCtx, hits int) (limited *turn, waited time.Duration, err error) {
	r := requestOf(ctx)
	r.endBulk()
	arrived := time.Now()
	large := hits > largeHits
	now := arrived
	if !s.slots.take(large) {
		err = s.slots.wait(large)
		now = time.Now()
		waited = now.Sub(arrived)
		r.waited = waited
		if err != nil {
			return nil, waited, err
		}
	}
	limited = &r.turn
	if limited.slots != nil { // it had one before
		limited = new(turn)
	}
	limited.work, limited.request, limited.slots, limited.holds, limited.since = r.contextFrom(now), r, s.slots, aSlot, now
	limited.charged()
	if large {
		limited.since, limited.spent = time.Time{}, slice
	}
	if (large || waited > slice) && r.gone() {
		r.work.cancel()
	}
	s.searches.Begin()
	return limited, waited, nil
}

// end gives back what the turn of a search holds.
func (t *turn) end() {
	now := time.Now()
	t.slots.giveBackAt(t, now)
	t.request.server.searches.EndAt(now)
}

// turnBeside waits for the turn of a search that a request makes in addition to its own work, like turn. It has an account of its
// own.
func (s *Server) turnBeside(ctx context.Context) (limited *turn, end func(), err error) {
	if err := s.slots.acquire(false); err != nil {
		return nil, nil, err
	}
	account := s.budget.Open(s.answerLimit)
	limited = &turn{work: new(work), slots: s.slots, holds: aSlot, since: time.Now()}
	limited.begin(ctx, account, limited.since, maxSearchTime)
	limited.charged()
	return limited, func() { s.slots.giveBack(limited); limited.cancel(); account.Close() }, nil
}

// largeHits is the number of hits from which on a search counts as large.
const largeHits = 200

// answerTooLarge returns the error of an answer beyond the size limit. The code names what a client can reduce.
func (s *Server) answerTooLarge(ctx *fasthttp.RequestCtx) *apierr.Error {
	code := apierr.Code("bad_request")
	if res, ok := ctx.UserValue(resourceKey{}).(*resource); ok {
		switch last := res.path[strings.LastIndexByte(res.path, '/')+1:]; last {
		case "search", "multi-search":
			code = "invalid_search_limit"
		case "similar":
			code = "invalid_similar_limit"
		case "documents", "fetch":
			code = "invalid_document_limit"
		case "tasks", "batches":
			code = "invalid_task_limit"
		case "keys":
			code = "invalid_api_key_limit"
		case "indexes":
			code = "invalid_index_limit"
		}
	}
	return apierr.New(code, "The answer would be larger than %d bytes. Request less, with a lower `limit` or fewer and shorter fields, "+
		"or start the server with a larger `--http-answer-size-limit`.", s.answerLimit)
}

// overBudget turns the errors of accounts into those of the API.
func (s *Server) overBudget(ctx *fasthttp.RequestCtx, err error) *apierr.Error {
	switch {
	case errors.Is(err, budget.ErrLarge):
		return s.answerTooLarge(ctx)
	case errors.Is(err, budget.ErrFull):
		ctx.SetUserValue(brokenKey{}, true) // do not receive the rest
		return apierr.New("too_many_search_requests", "The requests of all clients use all memory for requests (`--http-memory`). Try again in a few seconds.")
	}
	return nil
}

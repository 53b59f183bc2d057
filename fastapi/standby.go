package fastapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/group"
	"svc/internal/logs"
)

// Standby answers the requests to a reader of a group. While its stores are open, the Server passed to Show answers. Otherwise the
// standby forwards them to the writer, except those about this member of the group.
type Standby struct {
	member    Member
	forwarder *Forwarder
	master    [sha256.Size]byte
	protected bool // there is a master key
	log       *slog.Logger
	logs      *logs.Log
	conns     *conns
	http      fasthttp.Server

	mu    sync.RWMutex
	live  *live         // nil: the stores are not open
	shown chan struct{} // is closed when they are open
}

// live is a server whose stores are open.
type live struct {
	*Server
	running sync.WaitGroup // requests that may use them
	before  *live          // earlier ones whose requests may still use the same stores; nil: none
}

// use keeps the stores open for a request. It belongs to the request's goroutine.
type use struct {
	live *live
	conn *conn // of the request; nil: unknown
}

type useKey struct{}

// letGo records that a request no longer uses the stores of a reader.
func letGo(ctx *fasthttp.RequestCtx) {
	if h, ok := ctx.UserValue(useKey{}).(*use); ok {
		h.end()
	}
}

// by notes which connection the request came on.
func (h *use) by(ctx *fasthttp.RequestCtx) {
	ctx.SetUserValue(useKey{}, h)
	if c, ok := ctx.Conn().(*conn); ok {
		h.conn = c
		h.conn.use(h.live)
	}
}

// end ends a use of the open stores, so that they can be closed. Calling it again does nothing.
func (h *use) end() {
	if h.live != nil {
		if h.conn != nil {
			h.conn.use(nil)
		}
		h.live.running.Done()
		h.live = nil
	}
}

// NewStandby returns a standby whose own routes need the master key. connections limits open connections; 0: no limit. heard is the
// log that requests may listen to.
func NewStandby(m Member, f *Forwarder, masterKey string, connections int, heard *logs.Log) *Standby {
	s := &Standby{member: m, forwarder: f, master: sha256.Sum256([]byte(masterKey)), protected: masterKey != "", log: heard.Logger(), logs: heard, conns: newConns(connections), shown: make(chan struct{})}
	setUp(&s.http, s.serve, s.expect, s.log)
	return s
}

// NewServer returns a server for the reader's open stores, to be passed to Show. o has neither Member nor Forward.
func (s *Standby) NewServer(o Options) *Server {
	o.Member, o.Forward = s.member, s.forward
	server := New(o)
	server.conns = s.conns
	return server
}

// NewWriter returns a server for the stores of a member that leads its group, to be passed to Show: it takes writes. o has no Member.
func (s *Standby) NewWriter(o Options) *Server {
	o.Member = s.member
	server := New(o)
	server.conns = s.conns
	return server
}

// Show makes a server answer requests from now on. If there is one already, both must have the same stores.
func (s *Standby) Show(server *Server) {
	go server.watchdog.watch(server.searching) // until Hide
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		close(s.shown)
	}
	s.live = &live{Server: server, before: s.live}
}

// Lead makes a server with the same stores answer from now on: this member is the writer, as o.Member says. It also answers requests
// that wait for the former writer. The caller shuts it down.
func (s *Standby) Lead(o Options) *Server {
	server := New(o)
	server.conns = s.conns
	s.Show(server)
	close(s.forwarder.ended)
	return server
}

// forwardNow forwards a request to the writer. It returns errLeads if this member has become the writer.
func (s *Standby) forwardNow(ctx *fasthttp.RequestCtx) error {
	// The writer does not learn by which host name the client reached this member.
	if !s.protected && bytes.HasPrefix(ctx.Path(), []byte(pathDownloads)) && byOtherName(ctx) {
		return refuseCopies(ctx, headerHost)
	}
	return s.forwarder.Forward(ctx)
}

// forward forwards a request of an open server to the writer, or has the router answer it if this member has become the writer.
func (s *Standby) forward(ctx *fasthttp.RequestCtx) error {
	if err := s.forwardNow(ctx); err != errLeads {
		return err
	}
	h := s.use()
	defer h.end()
	if h.live == nil {
		return apierr.New("writer_unreachable", "This server stops.")
	}
	h.by(ctx)
	h.live.router.Handler(ctx)
	h.live.stampPosition(ctx)
	return nil
}

// Hide makes requests be forwarded again, and waits for those that use the server's stores. When ctx is done, these are aborted.
func (s *Standby) Hide(ctx context.Context) { s.hide(ctx, ctx) }

// HideSoon is Hide with a separate deadline for request bodies: when bodies is done, it aborts requests whose bodies have not
// arrived.
func (s *Standby) HideSoon(ctx, bodies context.Context) { s.hide(ctx, bodies) }

// Settle waits until all currently running requests have ended, or ctx is done. New requests are answered meanwhile. Call it before
// HideSoon, which then mostly waits for short requests.
func (s *Standby) Settle(ctx context.Context) {
	s.mu.Lock()
	l := s.live
	if l != nil {
		s.live = &live{Server: l.Server, before: l}
	}
	s.mu.Unlock()
	if l == nil {
		return
	}
	ended := make(chan struct{})
	go func() { // it ends with Hide at the latest
		for ; l != nil; l = l.before {
			l.running.Wait()
		}
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

func (s *Standby) hide(ctx, bodies context.Context) {
	s.mu.Lock()
	l := s.live
	s.live = nil
	if l != nil {
		s.shown = make(chan struct{})
	}
	s.mu.Unlock()
	for x := l; x != nil; x = x.before {
		x.finish(ctx, bodies)
	}
	for ; l != nil; l = l.before { // several may belong to one server: see Settle
		l.endSearches() // and what streams events
		l.streams.Wait()
	}
}

// finish waits for the requests that use the server's stores. When ctx is done, it cancels searches. When bodies is done, it no
// longer waits for requests whose bodies have not arrived.
func (l *live) finish(ctx, bodies context.Context) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, l.endSearches)
	abort := context.AfterFunc(bodies, func() { l.conns.endBodies(l, ended) })
	l.running.Wait()
	close(ended)
	stop()
	abort()
}

// use returns a use of the open stores; its live is nil when they are not open.
func (s *Standby) use() *use {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.live != nil {
		s.live.running.Add(1)
	}
	return &use{live: s.live}
}

// reuse waits for closed stores to be opened again and returns a use of them, because no other member can answer the request. The
// live of the use is nil if that takes too long, or while there are no data yet.
func (s *Standby) reuse() *use {
	s.mu.RLock()
	shown := s.shown
	s.mu.RUnlock()
	if s.member.Position().Term > 0 {
		select {
		case <-shown:
		case <-time.After(positionTime):
		}
	}
	return s.use()
}

// Serve answers on l until Shutdown.
func (s *Standby) Serve(l net.Listener) error { return s.http.Serve(listener{l, s.conns, s.log}) }

// Shutdown refuses new connections and waits for running requests until ctx is done.
func (s *Standby) Shutdown(ctx context.Context) error {
	done := make(chan struct{})
	defer close(done)
	go s.conns.hangUp(done)
	s.logs.StopListening() // a request that would not end by itself
	return s.http.ShutdownWithContext(ctx)
}

// expect decides whether a client that waits for 100 Continue may send its body.
func (s *Standby) expect(ctx *fasthttp.RequestCtx) int {
	h := s.use()
	defer h.end()
	if h.live == nil {
		return fasthttp.StatusContinue
	}
	return h.live.expect(ctx)
}

// serve passes the request to the open server if there is one. Otherwise it answers health and state itself, and forwards the rest to
// the writer.
func (s *Standby) serve(ctx *fasthttp.RequestCtx) {
	h := s.use()
	if h.live == nil && s.forwarder.none {
		h = s.reuse()
	}
	if h.live == nil {
		if s.relay(ctx) != errLeads {
			return
		}
		if h = s.use(); h.live == nil {
			s.fail(ctx, apierr.New("writer_unreachable", "This server stops."))
			dropBody(ctx)
			return
		}
	}
	defer h.end()
	h.by(ctx)
	h.live.serve(ctx)
}

// relay answers a request without stores: it forwards it to the writer, or answers about this member. It returns errLeads if this
// member has become the writer meanwhile. Then the request is not answered.
func (s *Standby) relay(ctx *fasthttp.RequestCtx) (err error) {
	if c, ok := ctx.Conn().(*conn); ok {
		c.enter()
		defer c.leave()
	}
	if ambiguous(&ctx.Request.Header) {
		s.fail(ctx, ambiguousLength())
		ctx.SetConnectionClose()
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("request failed", "request", ctx.ID(), "error", fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			ctx.SetUserValue(brokenKey{}, true)
			err = apierr.New(apierr.Internal, "Internal error. The server log has the cause: search for request %d.", ctx.ID())
		}
		if err == errLeads {
			return
		}
		if err != nil {
			s.fail(ctx, err)
		}
		dropBody(ctx)
	}()
	switch string(ctx.Path()) {
	case "/health":
		s.health(ctx)
	case "/group":
		err = s.group(ctx)
	case "/group/promote":
		err = apierr.New("promotion_refused", "This reader copies the data of the writer. Try again when `answersReads` of `GET /group` is true.")
	default:
		if err = checkForwarded(ctx); err == nil {
			err = s.forwardNow(ctx)
		}
	}
	return err
}

// fail answers with an error.
func (s *Standby) fail(ctx *fasthttp.RequestCtx, err error) {
	e := apierr.From(err)
	if e.Code == codeNoWriter {
		ctx.Response.Header.Set(headerNoWriter, "1")
	}
	ctx.SetStatusCode(e.Status())
	ctx.SetContentType(contentJSON)
	ctx.SetBody(e.AppendJSON(nil))
}

// health reports whether requests are answered: they are while the writer can be reached. A voter is healthy only when it votes, so
// that a rolling update waits for it.
func (s *Standby) health(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType(contentJSON)
	st := s.member.Status()
	if unready(s.member) || s.forwarder.none || st.Reader != nil && st.Reader.State == group.StateAway || st.Voter != nil && st.Voter.Leader == "" {
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		ctx.SetBodyString(`{"status":"unavailable"}`)
		return
	}
	ctx.SetBodyString(`{"status":"available"}`)
}

// group shows the state of the member to the master key, or to everybody without one. API keys are unknown while no data are open.
func (s *Standby) group(ctx *fasthttp.RequestCtx) error {
	scheme, key, _ := bytes.Cut(headerAuthorization.in(&ctx.Request.Header), []byte{' '})
	if sum := sha256.Sum256(key); s.protected && (!bytes.Equal(scheme, bearer) || subtle.ConstantTimeCompare(sum[:], s.master[:]) != 1) {
		return apierr.New("invalid_api_key", "While the data of a reader are not open, this route accepts only the master key.")
	}
	b, err := json.Marshal(s.member.Status())
	if err != nil {
		return err
	}
	ctx.SetContentType(contentJSON)
	ctx.SetBody(b)
	return nil
}

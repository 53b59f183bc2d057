package fastapi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"svc/internal/analytics"
	"svc/internal/apierr"
	"svc/internal/audit"
	"svc/internal/auth"
	"svc/internal/budget"
	"svc/internal/chat"
	"svc/internal/index"
	"svc/internal/logs"
	"svc/internal/manual"
	"svc/internal/mapped"
	"svc/internal/network"
	"svc/internal/pace"
	"svc/internal/rerank"
	"svc/internal/rule"
	"svc/internal/scroll"
	"svc/internal/task"
	"svc/internal/trace"
	"svc/internal/webhook"
)

// Options of a server.
type Options struct {
	Catalog      *index.Catalog
	Queue        *task.Queue
	Features     *Features
	Logger       *slog.Logger
	Log          *logs.Log // where Logger writes: /logs changes it
	PayloadLimit int64     // bytes, after decompression
	Keys         *auth.Keys
	Webhooks     *webhook.Store
	Network      *network.Node
	Chats        *chat.Store
	Providers    *chat.Providers
	Rules        *rule.Store
	Newest       bool           // where v1.42 and v1.54 of the API differ, follow v1.54
	Reranker     *rerank.Client // of personalized searches; nil: not available
	Production   bool           // programs get no dashboard on /
	NoDashboard  bool           // no client gets it
	Demo         bool           // there is a page on /demo
	Pprof        bool           // serve /debug/pprof
	Version      Version
	Replication  bool          // honour the headers TaskId and DryRun
	Tracer       *trace.Tracer // of requests; nil: none

	DumpDir      string // directory of dumps, sent in the header Svc-Directory; "": not sent
	SnapshotFile string // file or bucket URL of snapshots, sent in the header Svc-File; "": not sent

	Audit *audit.Log // of changes; nil: none

	Analytics *analytics.Recorder // of searches; nil: they are not counted
	Member    Member              // nil: not in a group
	Publisher Publisher           // nil: the data directory is not published

	// Forward answers a request that only the writer of the group can answer, before its body is read and its key is checked; nil:
	// the server is the writer, or not in a group.
	Forward func(ctx *fasthttp.RequestCtx) error
	// TakeOver turns this reader into the writer of its group, and returns the new member; nil: it cannot become the writer. With
	// force it does so without the consent of a writer that cannot be reached.
	TakeOver func(ctx context.Context, force bool) (Member, error)

	CursorSecret []byte // authenticates cursors; instances with another secret refuse them

	SlowSearch time.Duration // from this duration on a search is logged as slow; 0: none is

	MetricsPrefix string // of the names of svc's own series in /metrics; "": svc_

	// Limits on running searches, waiting searches, and their waiting time.
	Searches        int
	SearchQueue     int
	DropSearchAfter time.Duration

	JSONLimit    int64 // bytes of a body other than documents, decompressed; 0: DefaultJSONLimit
	AnswerLimit  int64 // bytes of an answer; 0: DefaultAnswerLimit
	Memory       int64 // bytes that all requests together may hold for bodies and answers; 0: DefaultMemory
	Connections  int   // at once; 0: any number
	MultiQueries int   // of a multi-search; 0: DefaultMultiQueries
}

// Default limits.
const (
	DefaultJSONLimit    = 1 << 20
	DefaultAnswerLimit  = 100 << 20
	DefaultMemory       = 1 << 30
	DefaultMultiQueries = 1000
)

// Server answers HTTP requests.
type Server struct {
	catalog      *index.Catalog
	queue        *task.Queue
	features     *Features
	log          *slog.Logger
	logs         *logs.Log
	payloadLimit int64
	dumpDir      string
	snapshotFile string
	jsonLimit    int64
	answerLimit  int64
	multiQueries int
	budget       *budget.Budget
	bulk         bulk
	keys         *auth.Keys
	webhooks     *webhook.Store
	network      *network.Node
	searches     *pace.Searches
	chats        *chat.Store
	providers    *chat.Providers
	rules        *rule.Store
	newest       bool // see Options
	reranker     *rerank.Client
	audit        *audit.Log // nil: none
	member       Member     // nil: the server is in no group
	forward      func(ctx *fasthttp.RequestCtx) error
	takeOver     func(ctx context.Context, force bool) (Member, error)
	forwarded    atomic.Int64        // requests
	streams      sync.WaitGroup      // of events
	publisher    Publisher           // nil: the data directory is not published
	analytics    *analytics.Recorder // nil: none
	places       *scroll.Store       // of cursors
	production   bool
	noDashboard  bool
	demoed       bool
	tools        *toolbox
	tracer       *trace.Tracer
	version      Version
	replication  bool
	slots        *slots
	watchdog     watchdog
	metrics      *metrics
	recent       recent
	slow         slowSearches
	router       *router.Router
	openAPI      func() ([]byte, error)
	manual       func() (*manual.Manual, error)
	conns        *conns
	http         fasthttp.Server

	conversations atomic.Int64 // that are held now
	taskStreams   atomic.Int64 // open streams of tasks and batches

	serving struct {
		sync.Mutex
		listener net.Listener // nil: none yet
		stopped  bool
	}

	searching   context.Context // of all searches
	endSearches context.CancelFunc
}

const (
	contentJSON   = "application/json"
	contentNDJSON = "application/x-ndjson"

	// headerBytes limits the request line and headers. Long filters are sent in query strings.
	headerBytes = 32 << 10

	// Limits on the time to send headers, and between two pieces of a body.
	readTimeout = time.Minute

	idleTimeout = 2 * time.Minute

	// maxSearchTime ends a search that is still running.
	maxSearchTime = time.Minute
)

// New makes a server.
func New(o Options) *Server {
	s := &Server{
		catalog: o.Catalog, queue: o.Queue, keys: o.Keys, webhooks: o.Webhooks, network: o.Network, chats: o.Chats, providers: o.Providers, rules: o.Rules, newest: o.Newest, reranker: o.Reranker, audit: o.Audit, features: o.Features, log: o.Logger, logs: o.Log,
		payloadLimit: o.PayloadLimit, dumpDir: o.DumpDir, snapshotFile: o.SnapshotFile, production: o.Production, noDashboard: o.NoDashboard, demoed: o.Demo, version: o.Version, replication: o.Replication,
	}
	s.tracer, s.analytics, s.member, s.forward = o.Tracer, o.Analytics, o.Member, o.Forward
	s.publisher, s.takeOver = o.Publisher, o.TakeOver
	s.places = scroll.NewStore(o.CursorSecret, time.Now)
	s.slow.after, s.slow.log = o.SlowSearch, o.Logger
	s.searches = new(pace.Searches)
	if o.Catalog != nil {
		s.searches = o.Catalog.Searches()
	}
	s.jsonLimit = cmp.Or(o.JSONLimit, DefaultJSONLimit)
	s.multiQueries = cmp.Or(o.MultiQueries, DefaultMultiQueries)
	s.budget = budget.New(cmp.Or(o.Memory, DefaultMemory), s.relieve)
	s.answerLimit = min(cmp.Or(o.AnswerLimit, DefaultAnswerLimit), s.budget.Limit()/2)
	s.bulk = make(bulk, max(runtime.GOMAXPROCS(0)-1, 1))
	s.conns = newConns(o.Connections)
	s.searching, s.endSearches = context.WithCancel(context.Background())
	if o.Searches <= 0 {
		o.Searches = 4 * runtime.GOMAXPROCS(0)
	}
	if o.DropSearchAfter <= 0 {
		o.DropSearchAfter = time.Minute
	}
	s.slots = newSlots(o.Searches, o.SearchQueue, o.DropSearchAfter)
	s.watchdog.slots, s.watchdog.log = s.slots, o.Logger
	s.metrics = newMetrics(s, o.MetricsPrefix)
	s.recent.began, s.recent.read = time.Now(), s.measure
	s.router = s.newRouter(o.Pprof)
	s.tools = newToolbox(o.Version.Program)
	fasthttp.SetBodySizePoolLimit(keptBytes, keptBytes)
	setUp(&s.http, s.serve, s.expect, o.Logger)
	return s
}

// setUp configures how an HTTP server treats connections and requests.
func setUp(h *fasthttp.Server, serve fasthttp.RequestHandler, expect func(*fasthttp.RequestCtx) int, log *slog.Logger) {
	h.Handler = serve
	h.ErrorHandler = refuse
	h.ExpectHandler = expect
	h.Logger = httpLog{log}
	h.ReadBufferSize = headerBytes
	h.ReadTimeout = readTimeout
	h.IdleTimeout = idleTimeout
	h.MaxRequestBodySize = 1 << 30 // bodies are streamed and limited by bodyReader
	h.StreamRequestBody = true
	h.DisablePreParseMultipartForm = true
	h.NoDefaultServerHeader = true
	h.NoDefaultContentType = true
	h.CloseOnShutdown = true
	h.SecureErrorLogMessage = true // no headers in messages
}

// Serve serves l until Shutdown, even if Shutdown was called before.
func (s *Server) Serve(l net.Listener) error {
	s.serving.Lock()
	s.serving.listener = l
	stopped := s.serving.stopped
	s.serving.Unlock()
	if stopped {
		return l.Close()
	}
	go s.watchdog.watch(s.searching) // until Shutdown
	return s.http.Serve(listener{l, s.conns, s.log})
}

// ServeAlso serves another listener in addition to that of Serve, until Shutdown.
func (s *Server) ServeAlso(l net.Listener) error { return s.http.Serve(listener{l, s.conns, s.log}) }

// Shutdown refuses new connections and waits for running requests until ctx is done. Then it cancels the remaining searches, so that
// views of indexes are soon released.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.endSearches()
	done := make(chan struct{})
	defer close(done)
	go s.conns.hangUp(done)
	if s.logs != nil {
		s.logs.StopListening() // its request would not end by itself
	}
	err := s.http.ShutdownWithContext(ctx)
	s.serving.Lock()
	defer s.serving.Unlock()
	s.serving.stopped = true
	if s.serving.listener != nil {
		_ = s.serving.listener.Close() // fasthttp has closed it, unless Serve was about to begin
	}
	return err
}

// serve answers one request.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	if c, ok := ctx.Conn().(*conn); ok {
		c.enter()
		defer c.leave()
	}
	r := s.begin(ctx)
	if ambiguous(&ctx.Request.Header) {
		s.fail(ctx, ambiguousLength())
		ctx.SetConnectionClose()
		return
	}
	if preflight(ctx) {
		s.drain(ctx)
		return
	}
	cleanPath(ctx.URI())
	s.route(ctx)
	s.stampPosition(ctx)
	r.endBulk()
	r.settle(ctx) // what was made from the body is no longer needed
	s.drain(ctx)
	shareAnswer(ctx)
	protect(ctx)
	s.compress(ctx)
	r.settle(ctx)
	s.tally(ctx, arrival(ctx))
	s.logAccess(ctx, arrival(ctx))
	r.endSpan(ctx)
	if c, ok := ctx.Conn().(*conn); ok {
		c.foretell(ctx)
	}
}

// relieve cuts off clients that are too slow for the memory that their requests hold.
func (s *Server) relieve() { s.conns.relieve(s.budget.Used() - s.budget.Limit()/4*3) }

// expect decides whether a client that waits for 100 Continue may send its body. It asks what the route would answer without a body.
// A refusal is sent instead of the permission.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	if ambiguous(&ctx.Request.Header) {
		s.fail(ctx, ambiguousLength())
		return ctx.Response.StatusCode()
	}
	cleanPath(ctx.URI())
	ctx.SetUserValue(askingKey{}, true)
	s.route(ctx)
	ctx.RemoveUserValue(askingKey{})
	if status := ctx.Response.StatusCode(); status != fasthttp.StatusOK {
		shareAnswer(ctx)
		s.tally(ctx, arrival(ctx))
		s.logAccess(ctx, arrival(ctx))
		return status
	}
	return fasthttp.StatusContinue
}

// askingKey is the key of the request value that says that only the right to the request is asked for.
type askingKey struct{}

func (s *Server) route(ctx *fasthttp.RequestCtx) {
	defer s.endAudit(ctx) // after recover, so that the entry has the answer to a panic
	defer s.recover(ctx)
	mapped.Watch()
	s.router.Handler(ctx)
}

// logAccess writes one line a request.
func (s *Server) logAccess(ctx *fasthttp.RequestCtx, began time.Time) {
	if !s.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	size := -1 // not known before a stream is sent
	if !ctx.Response.IsBodyStream() {
		size = len(ctx.Response.Body())
	}
	h := &ctx.Request.Header
	span := []any{
		slog.String("method", string(ctx.Method())), slog.String("host", s.concealed(string(headerHost.in(h)))),
		slog.String("route", s.loggedPath(ctx)), slog.String("query_parameters", s.loggedQuery(ctx)),
		slog.String("user_agent", s.concealed(string(headerUserAgent.in(h)))), slog.Int("status_code", ctx.Response.StatusCode()),
	}
	if e, ok := ctx.UserValue(errorKey{}).(*apierr.Error); ok {
		span = append(span, slog.String("error", s.concealed(e.Message)))
	}
	idle := requestOf(ctx).idle()
	s.log.LogAttrs(ctx, slog.LevelInfo, "close", slog.Group("request", span...),
		slog.Duration("time.busy", time.Since(began)-idle), slog.Duration("time.idle", idle), slog.Int("bytes", size), slog.String("from", ctx.RemoteAddr().String()))
}

// errorKey is the key of the request value with the error of the answer.
type errorKey struct{}

// recover is the last resort: a panic ends its request, not the process.
func (s *Server) recover(ctx *fasthttp.RequestCtx) {
	p := recover()
	if p == nil {
		return
	}
	ctx.Response.Reset()
	if damage := mapped.Damage(p); damage != nil {
		s.fail(ctx, damage)
		return
	}
	s.fail(ctx, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
}

// refuse answers a request that cannot be parsed as HTTP.
func refuse(ctx *fasthttp.RequestCtx, err error) {
	e := apierr.New("bad_request", "The request cannot be read: %v.", err)
	status := e.Code.Status()
	switch err := err.(type) {
	case *fasthttp.ErrSmallBuffer:
		status = fasthttp.StatusRequestHeaderFieldsTooLarge
		e.Message = fmt.Sprintf("The request line and headers are longer than %d bytes. Send long parameters in the body, with POST.", headerBytes)
	case net.Error:
		if err.Timeout() {
			status = fasthttp.StatusRequestTimeout
		}
	}
	ctx.Response.Reset()
	ctx.SetStatusCode(status)
	ctx.SetContentType(contentJSON)
	ctx.Response.SetBody(e.AppendJSON(nil))
}

// httpLog logs messages of fasthttp, all of which concern single connections.
type httpLog struct{ log *slog.Logger }

func (l httpLog) Printf(format string, args ...any) {
	l.log.Debug("connection: " + fmt.Sprintf(format, args...))
}

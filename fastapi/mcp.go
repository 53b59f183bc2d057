package fastapi

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
)

// The Model Context Protocol over streamable HTTP: POST /mcp. The official SDK, which speaks net/http, handles the messages.
//
// There are no sessions and no streams. A tool gives one answer to one call, the server never initiates messages, and sessions would
// be state that strangers can pile up. So each POST is a complete exchange with a JSON answer. This is the stateless form of the
// protocol, which clients of all its versions speak.

// toolbox has what answers POST /mcp.
type toolbox struct {
	list   []tool
	offers []*mcp.Tool // of list
	serve  *mcp.StreamableHTTPHandler
}

// newToolbox builds the tools and the MCP server that offers them. The server has no sessions:
// docs/decisions/0012-mcp-without-sessions.md.
func newToolbox(version string) *toolbox {
	b := &toolbox{list: tools()}
	server := mcp.NewServer(&mcp.Implementation{Name: "svc", Version: version}, &mcp.ServerOptions{
		Instructions: toolInstructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		PageSize:     len(b.list),
	})
	for i := range b.list {
		t := &b.list[i]
		offer := t.offer()
		b.offers = append(b.offers, offer)
		server.AddTool(offer, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return exchangeOf(ctx).call(t, req.Params.Arguments)
		})
	}
	server.AddReceivingMiddleware(b.gate)
	b.serve = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, // checkOrigin does that
	})
	return b
}

// gate passes on the supported methods, and lists to each caller the tools that its key opens. It refuses the other methods by name,
// because a subscription would keep the request waiting.
func (b *toolbox) gate(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "tools/list" {
			x := exchangeOf(ctx)
			shown := &mcp.ListToolsResult{Tools: []*mcp.Tool{}}
			for i := range b.list {
				if x.server.mayUse(x.credential, &b.list[i]) {
					shown.Tools = append(shown.Tools, b.offers[i])
				}
			}
			return shown, nil
		}
		if slices.Contains(offeredMethods, method) || strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		return nil, notOffered(method)
	}
}

// modelContext answers one message, or a batch of them.
func (s *Server) modelContext(ctx *fasthttp.RequestCtx) error {
	if err := s.features.need("mcp", "POST /mcp"); err != nil {
		return err
	}
	if err := s.checkOrigin(ctx); err != nil {
		return err
	}
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	messages := 0 // of a batch
	if body.array() {
		for range body.elements() {
			messages++
		}
		if messages > s.multiQueries {
			return apierr.New("bad_request", "The batch has %d messages, but may have at most %d.", messages, s.multiQueries)
		}
	} else if m, err := readMessage(body); err != nil {
		return err
	} else if answer, unknown := m.unknown(); unknown {
		if answer == nil {
			ctx.SetStatusCode(fasthttp.StatusAccepted)
			return nil
		}
		ctx.SetContentType(contentJSON)
		ctx.SetBody(answer)
		return nil
	}
	r := requestOf(ctx)
	r.endBulk() // tools may want it
	x := &exchange{server: s, outer: ctx, credential: credential(ctx), held: r.account.Held()}
	defer x.end()
	if messages > 0 {
		return x.batch(body)
	}
	if err := x.forward(body); err != nil {
		return err
	}
	return x.answer()
}

// checkOrigin refuses pages of other sites, which a browser would let call a server on its own machine or network, including pages
// whose host name was redirected to it (DNS rebinding). Pages of this machine may call and, if there are keys, pages from the address
// they call: a rebound page has no key.
func (s *Server) checkOrigin(ctx *fasthttp.RequestCtx) error {
	refused := func(header string, value []byte) error {
		e := apierr.New("bad_request", "The header `%s` is %q. Tools are available to programs, and to pages of this server or its machine only.", header, shorten(value))
		e.HTTP = fasthttp.StatusForbidden
		return e
	}
	host := headerHost.in(&ctx.Request.Header)
	if s.rebound(ctx) {
		return refused(fasthttp.HeaderHost, host)
	}
	if !hasHeader(&ctx.Request.Header, headerOrigin) {
		return nil // browsers always send it with a POST
	}
	origin := headerOrigin.in(&ctx.Request.Header)
	u, err := url.Parse(string(origin))
	if err == nil && u.Host != "" && (onLoopback(u.Host) || s.keys.Protected() && strings.EqualFold(u.Host, string(host))) {
		return nil
	}
	return refused(fasthttp.HeaderOrigin, origin)
}

// rebound reports whether a request without a key reached this machine under another machine's name, as from a page after DNS
// rebinding.
func (s *Server) rebound(ctx *fasthttp.RequestCtx) bool {
	return !s.keys.Protected() && byOtherName(ctx)
}

// byOtherName reports whether a request came to a loopback address under the name of another machine.
func byOtherName(ctx *fasthttp.RequestCtx) bool {
	local, ok := ctx.LocalAddr().(*net.TCPAddr)
	return ok && local.IP.IsLoopback() && !onLoopback(string(headerHost.in(&ctx.Request.Header)))
}

// onLoopback reports whether host, with or without a port, is this machine by name or address.
func onLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.IsLoopback()
}

// authorizeTools admits callers that may use at least one tool. Each call checks the tool that it uses.
func (s *Server) authorizeTools(credential string) (err error) {
	for i := range s.tools.list {
		_, e := s.keys.Authorize(credential, string(s.tools.list[i].action), "")
		if e == nil {
			return nil
		}
		if err == nil {
			err = e
		}
	}
	return err
}

// mayUse reports whether a tool is open to a key.
func (s *Server) mayUse(credential string, t *tool) bool {
	if !s.keys.Protected() {
		return true
	}
	_, err := s.keys.Authorize(credential, string(t.action), "")
	return err == nil
}

// exchange is one POST: the request of a client and the answer that the SDK writes. It runs tool calls one after the other, even if
// the SDK starts them at once, and none after it has ended.
type exchange struct {
	server     *Server
	outer      *fasthttp.RequestCtx
	credential string
	held       int64 // of the request's account, before the first call

	header http.Header
	status int
	body   []byte

	mu     sync.Mutex
	texts  int64 // bytes of what tools answered
	called bool  // there was a call before
	over   bool
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// Header, WriteHeader and Write make x an http.ResponseWriter.
func (x *exchange) Header() http.Header { return x.header }

func (x *exchange) WriteHeader(status int) { x.status = status }

func (x *exchange) Write(p []byte) (int, error) {
	// The memory is allocated already. If it exceeds the budget, other requests have to wait.
	_ = requestOf(x.outer).bytes().Hold(int64(len(p)))
	x.body = append(x.body, p...)
	return len(p), nil
}

// forward has the SDK answer a body. It leaves the answer in x.
func (x *exchange) forward(body []byte) error {
	ctx := requestOf(x.outer).context()
	req, err := http.NewRequestWithContext(context.WithValue(ctx, exchangeKey{}, x), http.MethodPost, "/mcp", bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range x.outer.Request.Header.All() {
		req.Header.Add(string(name), string(value))
	}
	x.header, x.status, x.body = http.Header{}, http.StatusOK, nil
	x.server.tools.serve.ServeHTTP(x, req)
	if err := ctx.Err(); err != nil && x.status == http.StatusOK && len(x.body) == 0 { // the SDK did not wait
		return err
	}
	return nil
}

// refusal returns an ordinary error if the SDK refused a body. It does so in plain text if a message is outside the protocol.
func (x *exchange) refusal() *apierr.Error {
	if x.status < fasthttp.StatusBadRequest || strings.HasPrefix(x.header.Get(fasthttp.HeaderContentType), contentJSON) {
		return nil
	}
	e := apierr.New("bad_request", "%s", strings.TrimSpace(string(x.body)))
	e.HTTP = x.status
	return e
}

// answer sends what the SDK wrote.
func (x *exchange) answer() error {
	if e := x.refusal(); e != nil {
		return e
	}
	x.outer.SetStatusCode(x.status)
	x.outer.SetContentType(x.header.Get(fasthttp.HeaderContentType))
	x.outer.Response.SetBodyRaw(x.body)
	return nil
}

// end waits for the tool that runs still and lets none begin.
func (x *exchange) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
}

// call executes a tool call as the API request that it stands for: by the same route, with the same key, and with the memory account
// and the turn of the exchange.
func (x *exchange) call(t *tool, arguments []byte) (result *mcp.CallToolResult, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer func() {
		if p := recover(); p != nil { // here it would end the process
			result = toolResult(x.server.public(x.outer, fmt.Errorf("panic: %v\n%s", p, debug.Stack())).AppendJSON(nil), true)
			err = nil
		}
	}()
	if x.over {
		return nil, context.Canceled
	}
	r := requestOf(x.outer)
	// A client that closes its sending side and waits for the answer looks gone, too. So the first call runs in any case.
	if x.called && r.gone() {
		r.context().cancel()
	}
	x.called = true
	if err := r.context().Err(); err != nil { // timeout, disconnect or shutdown: drop the rest of a batch
		return nil, err
	}
	s, outer := x.server, &x.outer.Request.Header
	r.called = time.Now()
	defer r.freeBuffer() // of the answer, which is copied
	var ctx fasthttp.RequestCtx
	ctx.Init2(x.outer.Conn(), httpLog{s.log}, true)
	ctx.SetUserValue(requestKey{}, r)
	h := &ctx.Request.Header
	h.SetHostBytes(outer.Host())
	h.SetUserAgentBytes(outer.UserAgent())
	if x.credential != "" {
		h.Set(fasthttp.HeaderAuthorization, "Bearer "+x.credential)
	}
	if err := t.request(&ctx.Request, arguments); err != nil {
		return toolResult(s.public(x.outer, err).AppendJSON(nil), true), nil
	}
	s.route(&ctx)
	r.endBulk()
	text := ctx.Response.Body()
	x.texts += int64(len(text))
	r.account.Settle(x.held + x.texts)
	failed := ctx.Response.StatusCode() >= fasthttp.StatusBadRequest
	// It is copied into a message, and that into the answer.
	if err := r.account.Hold(2 * int64(len(text))); err != nil {
		text, failed = s.public(x.outer, err).AppendJSON(nil), true
	}
	s.tally(&ctx, r.called)
	s.logAccess(&ctx, r.called)
	return toolResult(text, failed), nil
}

func toolResult(text []byte, failed bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, IsError: failed}
}

// request makes the request that a call stands for.
func (t *tool) request(req *fasthttp.Request, arguments []byte) error {
	args := value("{}")
	if len(arguments) > 0 {
		args = trim(arguments)
	}
	if !args.object() {
		return apierr.New("bad_request", "The arguments must be a JSON object, but they are %s.", args.kind())
	}
	path, query, body := t.path, fasthttp.AcquireArgs(), []byte{'{'}
	defer fasthttp.ReleaseArgs(query)
	var payload value
	for name, v := range args.members() {
		p := t.find(string(name))
		switch {
		case p == nil:
			known := make([]string, len(t.takes))
			for i := range t.takes {
				known[i] = t.takes[i].name
			}
			return apierr.New("bad_request", "`%s` is unknown. Use one of `%s`.", shorten(name), strings.Join(known, "`, `"))
		case p.place == inPath:
			path = strings.Replace(path, "{"+p.variable+"}", url.PathEscape(argText(v)), 1)
		case p.place == inQueryString:
			query.Add(p.name, argText(v))
		case p.place == wholeBody:
			payload = v
		default:
			if len(body) > 1 {
				body = append(body, ',')
			}
			body = append(append(append(append(body, '"'), name...), '"', ':'), v...)
		}
	}
	if i := strings.IndexByte(path, '{'); i >= 0 || t.whole() && payload == nil {
		missing := slices.IndexFunc(t.takes, func(p property) bool {
			return p.place == wholeBody && payload == nil || p.place == inPath && strings.Contains(path, "{"+p.variable+"}")
		})
		return apierr.New("bad_request", "`%s` is missing.", t.takes[missing].name)
	}
	req.Header.SetMethod(t.method)
	req.SetRequestURI(path)
	req.URI().SetQueryStringBytes(query.QueryString())
	if t.method == methodGet {
		return nil
	}
	body = append(body, '}')
	if t.whole() {
		body = payload
	}
	req.Header.SetContentType(contentJSON)
	req.SetBodyStream(bytes.NewReader(body), len(body))
	return nil
}

// argText returns an argument in the form for a path or a query string: lists with commas.
func argText(v value) string {
	if text, ok := v.text(); ok {
		return text
	}
	if !v.array() {
		return string(v)
	}
	var pieces []string
	for e := range v.elements() {
		pieces = append(pieces, argText(e))
	}
	return strings.Join(pieces, ",")
}

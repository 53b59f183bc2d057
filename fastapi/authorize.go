package fastapi

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/filter"
)

var bearer = []byte("Bearer")

// callerKey is the key of the request value with the caller.
type callerKey struct{}

// caller returns the caller of a request, or nil for full access.
func caller(ctx *fasthttp.RequestCtx) *auth.Caller {
	c, _ := ctx.UserValue(callerKey{}).(*auth.Caller)
	return c
}

// authorize checks the caller's right to a route and to the index in the path. The master key has all rights. Without a master key
// everything except the keys is open, but a header that is not a bearer token is still refused.
func (s *Server) authorize(ctx *fasthttp.RequestCtx, a action) error {
	switch a {
	case public:
		return nil
	case "":
		return auth.Refuse("No API key gives access to this route.")
	}
	header := headerAuthorization.in(&ctx.Request.Header)
	if len(header) == 0 && !hasHeader(&ctx.Request.Header, headerAuthorization) {
		if s.keys.Protected() {
			return missingAuthorization()
		}
		if a == actionChatCompletions { // models cost money: not open to everybody
			return missingAuthorization()
		}
		return openTo(a)
	}
	scheme, credential, _ := bytes.Cut(header, []byte{' '})
	if !bytes.Equal(scheme, bearer) {
		return missingAuthorization()
	}
	if len(credential) == 0 {
		return auth.Refuse("The `Authorization` header has no key. Send `Authorization: Bearer KEY`.")
	}
	if !s.keys.Protected() {
		return openTo(a)
	}
	if a == actionTools {
		return s.authorizeTools(string(credential))
	}
	index := ""
	if ctx.UserValue("index_uid") != nil {
		index = pathValue(ctx, "index_uid")
	}
	aliases := aliasesOf(ctx)
	named := index
	if alias, ok := ctx.UserValue(aliasKey{}).(string); ok {
		named = alias
	}
	var names auth.Names
	if aliases != nil {
		names = aliases.Of
	}
	c, err := s.keys.AuthorizeNamed(string(credential), string(a), index, named, names)
	if err != nil {
		return err
	}
	if c != nil {
		ctx.SetUserValue(callerKey{}, c)
	}
	return nil
}

// admit counts a request against the limits of its key. The answer to a request beyond them says when to retry.
func admit(ctx *fasthttp.RequestCtx, a action) error {
	c := caller(ctx)
	if c == nil {
		return nil
	}
	wait, err := c.Admit(string(a), arrival(ctx))
	if err != nil {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10))
		return err
	}
	if r := requestOf(ctx); r.admitted == nil {
		r.admitted = c
	} else { // a tool calls within a request
		c.End()
	}
	return nil
}

// credential returns the key or token of an authorized request, or "".
func credential(ctx *fasthttp.RequestCtx) string {
	_, credential, _ := bytes.Cut(headerAuthorization.in(&ctx.Request.Header), []byte{' '})
	return string(credential)
}

// openTo returns an error for actions that need a master key on the server.
func openTo(a action) error {
	if strings.HasPrefix(string(a), "keys.") {
		return apierr.New("missing_master_key", "API keys need a master key. Start the server with `--master-key`.")
	}
	return nil
}

func missingAuthorization() error {
	return apierr.New("missing_authorization_header", "The `Authorization` header is missing or has no bearer token. Send `Authorization: Bearer KEY`.")
}

// within refuses an index named in a body if the caller has no right to it.
func within(ctx *fasthttp.RequestCtx, uid string) error {
	if c := caller(ctx); !c.Reaches(uid) {
		return c.Forbidden(uid)
	}
	return nil
}

// mayCreate reports whether tasks of the caller may create the index.
func mayCreate(ctx *fasthttp.RequestCtx, uid string) bool {
	return caller(ctx).May(string(actionIndexesCreate), uid)
}

// rule returns the filter that a tenant token sets for searches in an index, or nil.
func (s *Server) rule(ctx *fasthttp.RequestCtx, uid string) (*filter.Expr, error) {
	return s.ruleFor(caller(ctx), uid)
}

// ruleFor is rule for a caller who makes no request just now.
func (s *Server) ruleFor(c *auth.Caller, uid string) (*filter.Expr, error) {
	rule := c.Filter(uid)
	if rule == nil {
		return nil, nil
	}
	f, err := filter.FromJSON(rule, "invalid_search_filter")
	if err != nil {
		return nil, err
	}
	return f, s.checkFilter(f)
}

// ownOnly refuses `_foreign` in the filter of a task if the caller does not reach all indexes. The settings at the time the task runs
// decide where `_foreign` leads, and by then the caller is no longer known.
func ownOnly(ctx *fasthttp.RequestCtx, f *filter.Expr) error {
	if caller(ctx).Limit() == nil || f.Check(filter.Features{Contains: true, Vectors: true, Shards: true}) == nil {
		return nil
	}
	return auth.Refuse("Changing documents by a filter with `_foreign` needs a key for all indexes.")
}

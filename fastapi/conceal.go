package fastapi

import (
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/settings"
)

// Logged requests contain no credentials. These may be in the path of a key, in unknown parameters such as access_token, and anywhere
// a client has put one by mistake.

// concealed masks credentials in a text, including percent-escaped ones.
func (s *Server) concealed(text string) string {
	if strings.Contains(text, "%") {
		if plain, err := url.PathUnescape(text); err == nil {
			if shown := s.keys.Conceal(plain); shown != plain {
				return shown
			}
		}
	}
	return s.keys.Conceal(text)
}

// loggedPath returns the path of a request without credentials.
func (s *Server) loggedPath(ctx *fasthttp.RequestCtx) string {
	path := string(ctx.URI().PathOriginal())
	if ctx.UserValue("key") != nil {
		// A key is addressed by its uid, which is not secret, or by its value.
		if which := pathValue(ctx, "key"); uuid.Validate(which) != nil {
			path = path[:strings.LastIndexByte(path, '/')+1] + settings.Redact(which)
		}
	}
	return s.concealed(path)
}

// loggedQuery returns the query string of a request without credentials: for unknown parameters, only the names.
func (s *Server) loggedQuery(ctx *fasthttp.RequestCtx) string {
	query := string(ctx.URI().QueryString())
	if query == "" {
		return ""
	}
	known := routeOf(ctx).parameters()
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, _, named := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err != nil || !slices.ContainsFunc(known, func(f field) bool { return f.name == plain }) {
			if pairs[i] = settings.Redact(""); named {
				pairs[i] = name + "=" + settings.Redact("")
			}
		}
	}
	return s.concealed(strings.Join(pairs, "&"))
}

// routeOf returns the route of a request, nil for none.
func routeOf(ctx *fasthttp.RequestCtx) *route {
	res, _ := ctx.UserValue(resourceKey{}).(*resource)
	if res == nil {
		return nil
	}
	return res.route(ctx.Method())
}

// parameters returns those of the query string.
func (r *route) parameters() []field {
	if r == nil {
		return nil
	}
	return r.op.query
}

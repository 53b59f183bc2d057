package fastapi

import (
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/settings"
)

// What is logged of a request has no credentials. They may be in the path of a key, in parameters that no route knows, such as
// access_token, and wherever a client has mistaken the place.

// concealed masks credentials in a text, also where they have percent escapes.
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
		// A key is asked for by its uid, which is no secret, or by its value.
		if which := pathValue(ctx, "key"); uuid.Validate(which) != nil {
			path = path[:strings.LastIndexByte(path, '/')+1] + settings.Redact(which)
		}
	}
	return s.concealed(path)
}

// loggedQuery returns the query string of a request without credentials: of parameters that its route does not know, the names alone.
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

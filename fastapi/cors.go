package fastapi

import "github.com/valyala/fasthttp"

// Browsers of any origin may use any method and header: the key protects the data.

const corsMethods = "GET, POST, PUT, PATCH, DELETE, OPTIONS, HEAD"

// preflight answers a preflight request. It reports whether the request was one.
func preflight(ctx *fasthttp.RequestCtx) bool {
	if !ctx.IsOptions() {
		return false
	}
	h := &ctx.Request.Header
	if len(headerOrigin.in(h)) == 0 || len(headerPreflightMethod.in(h)) == 0 {
		return false
	}
	out := &ctx.Response.Header
	out.Set(fasthttp.HeaderAccessControlAllowOrigin, "*")
	out.Set(fasthttp.HeaderAccessControlAllowMethods, corsMethods)
	if asked := headerPreflightHeaders.in(h); len(asked) > 0 {
		out.SetBytesV(fasthttp.HeaderAccessControlAllowHeaders, asked)
	}
	out.Set(fasthttp.HeaderAccessControlMaxAge, "86400")
	return true
}

// shareAnswer lets scripts of every origin read the answer, and tells caches that answers depend on the origin.
func shareAnswer(ctx *fasthttp.RequestCtx) {
	if len(headerOrigin.in(&ctx.Request.Header)) > 0 {
		ctx.Response.Header.Set(fasthttp.HeaderAccessControlAllowOrigin, "*")
		return
	}
	ctx.Response.Header.Add(fasthttp.HeaderVary, "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
}

package fastapi

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// protect tells browsers what a page may do: only show itself, unless its handler allows more. It forbids framing and content
// sniffing.
func protect(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	if !bytes.HasPrefix(h.ContentType(), []byte("text/html")) {
		return
	}
	if len(h.Peek(fasthttp.HeaderContentSecurityPolicy)) == 0 {
		h.Set(fasthttp.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'unsafe-inline'; "+pageLimits)
	}
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	h.Set(fasthttp.HeaderXFrameOptions, "DENY")
	h.Set(fasthttp.HeaderReferrerPolicy, "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// pageLimits are part of the policy of every page.
const pageLimits = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

package fastapi

import (
	"net/url"

	"github.com/valyala/fasthttp"
)

// cleanPath merges double slashes and removes trailing ones, so that every path has one form. Percent escapes stay: %2F is a byte of
// a segment, not a separator.
func cleanPath(u *fasthttp.URI) {
	p := u.PathOriginal()
	if isClean(p) {
		return
	}
	clean := make([]byte, 0, len(p)+1)
	for i, c := range p {
		if c == '/' && i > 0 && p[i-1] == '/' {
			continue
		}
		clean = append(clean, c)
	}
	if len(clean) == 0 || clean[0] != '/' {
		clean = append([]byte{'/'}, clean...)
	}
	if len(clean) > 1 && clean[len(clean)-1] == '/' {
		clean = clean[:len(clean)-1]
	}
	u.SetPathBytes(clean)
}

// isClean reports whether a path has no empty segment and no trailing slash, so that no cleaning, which allocates, is needed.
func isClean(p []byte) bool {
	if len(p) == 0 || p[0] != '/' {
		return false
	}
	if len(p) == 1 {
		return true
	}
	for i, c := range p[1:] {
		if c == '/' && p[i] == '/' {
			return false
		}
	}
	return p[len(p)-1] != '/'
}

// pathValue returns a variable segment of the path, its escapes resolved.
func pathValue(ctx *fasthttp.RequestCtx, name string) string {
	s, _ := ctx.UserValue(name).(string)
	for i := range len(s) {
		if s[i] == '%' {
			if plain, err := url.PathUnescape(s); err == nil {
				return plain
			}
			break
		}
	}
	return s
}

package fastapi

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
)

var bearer = []byte("Bearer")

// authorize checks the caller's right to a route. The master key opens
// everything; without a master key everything is open, but a header that is
// no bearer token is refused all the same.
func (s *Server) authorize(ctx *fasthttp.RequestCtx, a action) error {
	switch a {
	case public:
		return nil
	case "":
		return apierr.New("invalid_api_key", "No key opens this route.")
	}
	header := ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)
	if len(header) == 0 && !hasHeader(&ctx.Request.Header, fasthttp.HeaderAuthorization) {
		if s.masterKey == nil {
			return nil
		}
		return missingAuthorization()
	}
	scheme, token, _ := bytes.Cut(header, []byte{' '})
	if !bytes.Equal(scheme, bearer) {
		return missingAuthorization()
	}
	if len(token) > 0 {
		if s.masterKey == nil {
			return nil
		}
		sum := sha256.Sum256(token) // equal lengths, for a comparison in constant time
		if subtle.ConstantTimeCompare(sum[:], s.masterKey) == 1 {
			return nil
		}
	}
	return apierr.New("invalid_api_key", "The API key is not valid.")
}

func missingAuthorization() error {
	return apierr.New("missing_authorization_header", "The `Authorization` header is missing or has no bearer token. Send `Authorization: Bearer KEY`.")
}

// hasHeader reports whether a header is there, be it empty: for some, Peek does not tell the two apart.
func hasHeader(h *fasthttp.RequestHeader, name string) bool {
	for line := range bytes.Lines(h.RawHeaders()) {
		key, _, ok := bytes.Cut(line, []byte{':'})
		if ok && bytes.EqualFold(bytes.TrimSpace(key), []byte(name)) {
			return true
		}
	}
	return false
}

package fastapi

import (
	"crypto/sha256"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

// requestID returns an id that is the same for each repetition of a request with the header Idempotency-Key, or a random one without
// that header. What the request creates has this id or stores it, so a repeated request finds what the first one created, even on
// another member of a group.
//
// It is a hash of the header, the request line, the credential and the body: requests that differ in one of them create separate
// things.
func requestID(ctx *fasthttp.RequestCtx, body value) (id uuid.UUID, repeatable bool, err error) {
	key, err := idempotencyKey(ctx)
	if err != nil || key == "" {
		return uuid.New(), false, err
	}
	h := sha256.New()
	_, _ = h.Write(append([]byte(key), 0))
	_, _ = h.Write(body)
	copy(id[:], h.Sum(nil))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8 of RFC 9562: a custom format
	return id, true, nil
}

package fastapi

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// An answer may be ready before its request has arrived in full: the body is too large, or its beginning is wrong. If the rest is
// short, the server drops it, and the connection stays usable. Otherwise it sends the answer at once and then closes the connection,
// but only after it has dropped what the client still sends. If it closed before that, the system would reset the connection, and a
// client that sends everything before it reads would not see the answer (RFC 9112, 9.6).
const (
	// drainBytes and drainTime bound the rest of a body that is dropped before the answer is sent.
	drainBytes = 256 << 10
	drainTime  = time.Second
	// lingerTime is how long the rest is dropped after the answer was sent.
	lingerTime = 10 * time.Second
)

// drain drops the rest of the body after a handler, or has the connection closed after the answer.
func (s *Server) drain(ctx *fasthttp.RequestCtx) {
	if ctx.RequestBodyStream() != nil && ctx.UserValue(brokenKey{}) == nil && s.checkLength(ctx) != nil {
		linger(ctx)
		return
	}
	dropBody(ctx)
}

// dropBody is drain for a body of any length. Without it, fasthttp would take the rest of a body for the next request.
func dropBody(ctx *fasthttp.RequestCtx) {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return
	}
	if ctx.UserValue(brokenKey{}) != nil {
		ctx.Response.SetConnectionClose()
		return
	}
	var one [1]byte
	_, err := stream.Read(one[:])
	if err == io.EOF {
		return
	}
	if err == nil { // after an error read nothing: bytes after a broken chunk could pass for the next request
		err = ctx.Conn().SetReadDeadline(time.Now().Add(drainTime))
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, stream, drainBytes)
	}
	var late net.Error
	switch {
	case err == io.EOF:
	case err == nil || errors.As(err, &late) && late.Timeout():
		linger(ctx)
	default:
		ctx.Response.SetConnectionClose()
	}
}

// linger has the connection closed after the answer, as soon as the client has stopped sending.
func linger(ctx *fasthttp.RequestCtx) {
	ctx.Response.SetConnectionClose()
	if c, ok := ctx.Conn().(*conn); ok {
		c.lingers = true
	}
}

// dropRest tells the client that there will be no more answers, and drops what it still sends, for a limited time.
func (c *conn) dropRest() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() != nil {
		return
	}
	if c.SetReadDeadline(time.Now().Add(lingerTime)) != nil || c.in.stopping.Load() {
		return
	}
	_, _ = io.Copy(io.Discard, struct{ io.Reader }{c}) // an error means that the client has gone, or is too slow
}

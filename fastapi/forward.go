package fastapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
)

const (
	// forwardTime is for how long a request is sent again whose writer is away, if its body is in memory.
	forwardTime  = 5 * time.Second
	forwardPause = 100 * time.Millisecond
	// forwardBody is the largest body that is kept in memory to be sent again.
	forwardBody = 1 << 20
	// forwardWait is how long the writer may take until it answers, and between two pieces of its answer.
	forwardWait = 2 * time.Minute
	// forwardIdle is after which time a connection to the writer is closed that carries nothing: before the writer does.
	forwardIdle = 10 * time.Second
)

// Forwarder forwards requests to the writer of a group, as they come: the writer checks their keys.
type Forwarder struct {
	client fasthttp.HostClient
	host   string // of requests; "": as they come
	none   bool   // there is no writer to pass requests on to
}

// NewForwarder returns a forwarder whose connections dial makes.
func NewForwarder(dial func(ctx context.Context) (net.Conn, error)) *Forwarder {
	return &Forwarder{client: fasthttp.HostClient{
		Addr: "writer", NoDefaultUserAgentHeader: true, DisablePathNormalizing: true, StreamResponseBody: true,
		MaxConns: 1 << 12, MaxIdleConnDuration: forwardIdle, ReadTimeout: forwardWait, WriteTimeout: forwardWait, MaxIdemponentCallAttempts: 1,
		Dial: func(string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), forwardTime)
			defer cancel()
			return dial(ctx)
		},
	}}
}

// NewForwarderTo returns a forwarder to a writer that answers HTTP at a host.
func NewForwarderTo(host string, dial func(ctx context.Context) (net.Conn, error)) *Forwarder {
	f := NewForwarder(dial)
	f.host = host
	return f
}

// NewRefuser returns a forwarder that refuses all requests.
func NewRefuser() *Forwarder { return &Forwarder{none: true} }

// Close closes connections that carry nothing.
func (f *Forwarder) Close() error {
	f.client.CloseIdleConnections()
	return nil
}

// Forward answers a request with what the writer answers. A request that changes something has a key by which the writer knows it again
// (Idempotency-Key), so it may be sent again.
func (f *Forwarder) Forward(ctx *fasthttp.RequestCtx) error {
	if f.none {
		return apierr.New("writer_unreachable", "This server follows a publication and passes nothing on: send the request to the writer, or start this server with --follow-writer.")
	}
	req := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(req)
	ctx.Request.Header.CopyTo(&req.Header)
	req.Header.SetRequestURIBytes(ctx.RequestURI())
	if f.host != "" {
		req.UseHostHeader = true
		req.Header.SetHost(f.host)
	}
	for _, name := range []string{fasthttp.HeaderConnection, fasthttp.HeaderExpect, fasthttp.HeaderTransferEncoding, "Keep-Alive"} {
		req.Header.Del(name)
	}
	if changes := !ctx.IsGet() && !ctx.IsHead(); changes && !hasHeader(&ctx.Request.Header, headerIdempotencyKey) {
		req.Header.Set(string(headerIdempotencyKey), rand.Text())
	}
	again, err := takeBody(ctx, req)
	if err != nil {
		return err
	}
	req.Header.Set(string(headerForwarded), "1")
	end := time.Now().Add(forwardTime)
	for {
		ctx.Response.Reset()
		if err = f.client.Do(req, &ctx.Response); err == nil {
			ctx.Response.Header.Del(fasthttp.HeaderConnection)
			if !leaderless(&ctx.Response) {
				return nil
			}
			err = errors.New("the member that was asked does not lead the group any more")
			f.client.CloseIdleConnections() // they go to that member
		}
		ctx.Response.Reset()
		if !again || time.Now().After(end) {
			ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
			return apierr.New("writer_unreachable", "The writer of the group cannot be reached: %v.", err)
		}
		time.Sleep(forwardPause)
	}
}

// checkForwarded refuses to pass a request on again.
func checkForwarded(ctx *fasthttp.RequestCtx) error {
	if !hasHeader(&ctx.Request.Header, headerForwarded) {
		return nil
	}
	ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
	return apierr.New("no_writer", "This server does not lead its group now. Send the request again.")
}

// leaderless reports whether a member answers that it leads no longer.
func leaderless(r *fasthttp.Response) bool {
	if r.StatusCode() != fasthttp.StatusServiceUnavailable || r.Header.ContentLength() > maxRefusal {
		return false
	}
	return bytes.Contains(r.Body(), []byte(`"code":"no_writer"`))
}

// maxRefusal bounds the body of an answer that is looked at for that.
const maxRefusal = 4 << 10

// takeBody gives a request the body of another one. again reports whether it can be sent more than once.
func takeBody(ctx *fasthttp.RequestCtx, req *fasthttp.Request) (again bool, err error) {
	length := ctx.Request.Header.ContentLength()
	body := ctx.RequestBodyStream()
	if length == 0 || body == nil && len(ctx.Request.Body()) == 0 {
		return true, nil
	}
	if body == nil {
		req.SetBody(ctx.Request.Body())
		return true, nil
	}
	if length > forwardBody || length < 0 {
		// Not as it is: fasthttp would give the stream back to its pool with each of the two requests that have it.
		req.SetBodyStream(struct{ io.Reader }{body}, length)
		return false, nil
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(body, int64(length))); err != nil || b.Len() != length {
		return false, errors.Join(apierr.New("bad_request", "The body ends after %d bytes of %d.", b.Len(), length), err)
	}
	req.SetBody(b.Bytes())
	return true, nil
}

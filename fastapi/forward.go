package fastapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
)

const (
	// forwardTime is for how long a request is retried while its writer is unreachable, if its body is in memory.
	forwardTime  = 5 * time.Second
	forwardPause = 100 * time.Millisecond
	// forwardBody is the size of the largest body that is kept in memory for a retry.
	forwardBody = 1 << 20
	// forwardKept bounds the memory of all bodies that are kept. Further ones are passed on while they arrive, and cannot be retried.
	forwardKept = 64 << 20
	// forwardWait is how long the writer may take to begin its answer, between two pieces of it, and to accept a piece of a request.
	forwardWait = 2 * time.Minute
	// forwardIdle is the time after which an idle connection to the writer is closed: less than the writer's own limit.
	forwardIdle = 10 * time.Second
)

// Forwarder forwards requests to the writer of a group unchanged: the writer checks their keys.
type Forwarder struct {
	client fasthttp.HostClient
	host   string        // of requests; "": as they come
	ended  chan struct{} // closed when this member is the writer
	none   bool          // there is no writer to forward requests to
	kept   atomic.Int64  // bytes of bodies that are kept in memory
}

// unsentError is the error of a request that was not sent.
type unsentError struct{ error }

// once reports whether a request must not be made twice: it is repeated only if it certainly had no effect. Otherwise another leader
// would also hand over, or refuse to remove the member again.
func once(ctx *fasthttp.RequestCtx) bool {
	path := string(ctx.Path())
	return path == "/group/transfer" || strings.HasPrefix(path, "/group/members/")
}

// errLeads is the error of Forward when this member has become the writer: it has to answer itself.
var errLeads = errors.New("this member is the writer")

// NewForwarder returns a forwarder whose connections dial makes.
func NewForwarder(dial func(ctx context.Context) (net.Conn, error)) *Forwarder {
	return &Forwarder{ended: make(chan struct{}), client: fasthttp.HostClient{
		Addr: "writer", NoDefaultUserAgentHeader: true, DisablePathNormalizing: true, StreamResponseBody: true,
		MaxConns: 1 << 12, MaxIdleConnDuration: forwardIdle, ReadTimeout: forwardWait, WriteTimeout: forwardWait, MaxIdemponentCallAttempts: 1,
		Dial: func(string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), forwardTime)
			defer cancel()
			c, err := dial(ctx)
			if err != nil {
				return nil, &unsentError{err}
			}
			return &patientConn{c}, nil
		},
	}}
}

// patientConn gives each read and write forwardWait. fasthttp sets one deadline for a whole request or answer, which would break long
// downloads and uploads.
type patientConn struct{ net.Conn }

func (c *patientConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(forwardWait)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *patientConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(forwardWait)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// NewForwarderTo returns a forwarder to a writer that serves HTTP at a host.
func NewForwarderTo(host string, dial func(ctx context.Context) (net.Conn, error)) *Forwarder {
	f := NewForwarder(dial)
	f.host = host
	return f
}

// NewRefuser returns a forwarder that refuses all requests.
func NewRefuser() *Forwarder { return &Forwarder{none: true, ended: make(chan struct{})} }

// Close closes connections that carry nothing.
func (f *Forwarder) Close() error {
	f.client.CloseIdleConnections()
	return nil
}

// Forward sends a request to the writer and returns the writer's answer. A request that changes something carries an Idempotency-Key,
// by which the writer recognises repetitions. So Forward may retry it, unless its body can be read only once.
func (f *Forwarder) Forward(ctx *fasthttp.RequestCtx) error {
	select {
	case <-f.ended:
		return errLeads
	default:
	}
	if f.none {
		return apierr.New("writer_unreachable", "This server follows a publication and forwards nothing: send the request to the writer, or start this server with --follow-writer.")
	}
	req := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(req)
	if changes := !ctx.IsGet() && !ctx.IsHead(); changes && !hasHeader(&ctx.Request.Header, headerIdempotencyKey) {
		ctx.Request.Header.Set(string(headerIdempotencyKey), rand.Text()) // also for this member, if it becomes the writer meanwhile
	}
	ctx.Request.Header.CopyTo(&req.Header)
	req.Header.SetRequestURIBytes(ctx.RequestURI())
	if f.host != "" {
		req.UseHostHeader = true
		req.Header.SetHost(f.host)
	}
	for _, name := range []string{fasthttp.HeaderConnection, fasthttp.HeaderExpect, fasthttp.HeaderTransferEncoding, "Keep-Alive"} {
		req.Header.Del(name)
	}
	again, kept, err := f.takeBody(ctx, req)
	defer f.kept.Add(-kept)
	if err != nil {
		ctx.SetUserValue(brokenKey{}, true)
		return err
	}
	req.Header.Set(string(headerForwarded), "1")
	end := time.Now().Add(forwardTime)
	for {
		ctx.Response.Reset()
		err = f.client.Do(req, &ctx.Response)
		if unsent := new(unsentError); err != nil && once(ctx) && !errors.As(err, &unsent) {
			again = false
		}
		if err == nil {
			if err = untaken(ctx); err == nil {
				ctx.Response.Header.Del(fasthttp.HeaderConnection)
				ctx.Response.Header.SetNoDefaultContentType(true) // the client has reset it; a 204 has none
				if kept > 0 {
					ctx.Request.ResetBody() // frees it before the answer is sent
				}
				return nil
			}
			f.client.CloseIdleConnections() // they go to that member
		}
		ctx.Response.Reset()
		if !again || time.Now().After(end) {
			ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
			return apierr.New("writer_unreachable", "The writer of the group cannot be reached: %v.", err)
		}
		select {
		case <-f.ended:
			return errLeads
		case <-time.After(forwardPause):
		}
	}
}

// checkForwarded refuses to forward a request again.
func checkForwarded(ctx *fasthttp.RequestCtx) error {
	if !hasHeader(&ctx.Request.Header, headerForwarded) {
		return nil
	}
	ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
	return apierr.New("no_writer", "This server does not lead its group now. Send the request again.")
}

const (
	codeNoWriter = "no_writer"
	// headerNoWriter is in answers of a member that is not, or no longer, the writer. The request changed nothing, or it is unknown
	// whether the group accepted the change. The caller repeats it with its Idempotency-Key.
	headerNoWriter = "Svc-No-Writer"
)

// untaken returns an error if the answer says that the member did not accept the request, so that the next writer may.
func untaken(ctx *fasthttp.RequestCtx) error {
	switch {
	case len(ctx.Response.Header.Peek(headerNoWriter)) > 0:
		return errors.New("it has handed over to another member")
	case ctx.Response.StatusCode() == fasthttp.StatusRequestTimeout: // it is stopping, and has read nothing
		return errors.New("it stops")
	}
	return nil
}

// takeBody moves the body of a request to another one. again reports whether it can be sent more than once. kept bytes of it are in
// memory.
func (f *Forwarder) takeBody(ctx *fasthttp.RequestCtx, req *fasthttp.Request) (again bool, kept int64, err error) {
	length := ctx.Request.Header.ContentLength()
	body := ctx.RequestBodyStream()
	if length == 0 || body == nil && len(ctx.Request.Body()) == 0 {
		return true, 0, nil
	}
	if body == nil {
		req.SetBody(ctx.Request.Body())
		return true, 0, nil
	}
	if length > forwardBody || length < 0 || !f.keep(int64(length)) {
		// Not the stream itself: both requests would return it to fasthttp's pool.
		req.SetBodyStream(&passedBody{src: body, ctx: ctx}, length)
		return false, 0, nil
	}
	b := make([]byte, length)
	if n, err := io.ReadFull(body, b); err != nil {
		return false, int64(length), errors.Join(apierr.New("bad_request", "The body ends after %d bytes of %d.", n, length), err)
	}
	req.SetBodyRaw(b)
	ctx.Request.SetBodyStream(bytes.NewReader(b), length) // for this member, as above
	return true, int64(length), nil
}

// keep reports whether n more bytes of bodies may be kept in memory, and counts them.
func (f *Forwarder) keep(n int64) bool {
	if f.kept.Add(n) <= forwardKept {
		return true
	}
	f.kept.Add(-n)
	return false
}

// passedBody is a body that is passed on while it arrives. Like patientReader, it gives the client more time as long as bytes keep
// arriving.
type passedBody struct {
	src  io.Reader
	ctx  *fasthttp.RequestCtx
	read int // bytes since the deadline was set
}

func (p *passedBody) Read(b []byte) (int, error) {
	if p.read >= deadlineBytes {
		p.read = 0
		if err := p.ctx.Conn().SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
			return 0, err
		}
	}
	n, err := p.src.Read(b)
	p.read += n
	if err != nil && err != io.EOF {
		p.ctx.SetUserValue(brokenKey{}, true)
	}
	return n, err
}

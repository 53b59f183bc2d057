package network

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"svc/internal/outbound"
)

// wires is the transport of searches: HTTP/1.1 over persistent connections. Unlike net/http it works on the goroutine of the request:
// handing a request to other goroutines and back is much of the cost of asking another instance. Request bodies must be in memory,
// and requests must be repeatable.
type wires struct {
	dialer *net.Dialer

	mu     sync.Mutex
	idle   map[string][]*wire // by scheme and host; those used last are last
	sweeps *time.Timer        // closes idle connections; nil: nothing is idle
	closed bool
}

// wire is a connection to a remote.
type wire struct {
	net.Conn
	to    string
	left  io.LimitedReader // of Conn: limits the head of a response; the reader of the body limits the rest
	in    *bufio.Reader
	out   *bufio.Writer
	since time.Time // it is idle
}

const (
	wireBuffer = 16 << 10
	wireIdle   = 90 * time.Second // for how long a connection is kept that is not used
	handshake  = 10 * time.Second
	headLimit  = 256 << 10 // bytes of status line and headers, with what of the body is read ahead
)

func newWires(allowed outbound.Policy) *wires {
	return &wires{dialer: allowed.Dialer(), idle: map[string][]*wire{}}
}

// RoundTrip implements http.RoundTripper.
func (w *wires) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	ctx := req.Context()
	to := req.URL.Scheme + "://" + req.URL.Host
	if c := w.take(to); c != nil {
		res, silent, err := c.ask(ctx, w, req)
		if err == nil || !silent || ctx.Err() != nil {
			return res, err
		}
		// The remote has closed it meanwhile.
		if req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			defer body.Close()
			again := *req
			again.Body, req = body, &again
		}
	}
	c, err := w.dial(ctx, req, to)
	if err != nil {
		return nil, err
	}
	res, _, err := c.ask(ctx, w, req)
	return res, err
}

// dial makes a connection.
func (w *wires) dial(ctx context.Context, req *http.Request, to string) (*wire, error) {
	host, port := req.URL.Hostname(), req.URL.Port()
	if port == "" {
		port = req.URL.Scheme // a service by its name
	}
	conn, err := w.dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	if req.URL.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{ServerName: host, NextProtos: []string{"http/1.1"}})
		ctx, cancel := context.WithTimeout(ctx, handshake)
		defer cancel()
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("no encrypted connection to %s: %w", host, err)
		}
		conn = secure
	}
	c := &wire{Conn: conn, to: to, out: bufio.NewWriterSize(conn, wireBuffer)}
	c.left.R = conn
	c.in = bufio.NewReaderSize(&c.left, wireBuffer)
	return c, nil
}

// ask sends a request. The connection becomes idle again when the body of the response is read and closed. silent says that the
// request failed before a byte of the response arrived.
func (c *wire) ask(ctx context.Context, w *wires, req *http.Request) (res *http.Response, silent bool, err error) {
	c.left.N = headLimit
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // fails what reads and writes
	if err = req.Write(c.out); err == nil {
		err = c.out.Flush()
	}
	if err == nil {
		_, err = c.in.Peek(1)
	}
	silent = err != nil
	for err == nil {
		res, err = http.ReadResponse(c.in, req)
		if err != nil || res.StatusCode >= 200 {
			break
		} // or the answer follows
	}
	if err != nil {
		stop()
		_ = c.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, silent, err
	}
	c.left.N = math.MaxInt64
	res.Body = &wireBody{ReadCloser: res.Body, wires: w, wire: c, stop: stop, keep: !res.Close && res.StatusCode != http.StatusSwitchingProtocols}
	return res, false, nil
}

// wireBody is the body of an answer.
type wireBody struct {
	io.ReadCloser
	wires *wires
	wire  *wire
	stop  func() bool
	keep  bool // the connection may be used again
	ended bool
}

func (b *wireBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

// Close gives the connection back if the whole answer was read, and closes it otherwise.
func (b *wireBody) Close() error {
	if b.wire == nil {
		return nil
	}
	c := b.wire
	b.wire = nil
	if b.stop() && b.keep && b.ended && c.in.Buffered() == 0 {
		b.wires.put(c)
		return nil
	}
	return c.Close()
}

// take returns an idle connection, or nil.
func (w *wires) take(to string) *wire {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.idle[to]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	w.idle[to] = list[:len(list)-1]
	return c
}

// put keeps a connection for the next request.
func (w *wires) put(c *wire) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.idle[c.to]
	if w.closed || len(list) >= idlePerRemote {
		_ = c.Close()
		return
	}
	c.since = time.Now()
	w.idle[c.to] = append(list, c)
	if w.sweeps == nil {
		w.sweeps = time.AfterFunc(wireIdle, w.sweep)
	}
}

// sweep closes what has been idle for long.
func (w *wires) sweep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := 0
	for to, list := range w.idle {
		old := 0
		for old < len(list) && time.Since(list[old].since) >= wireIdle {
			_ = list[old].Close()
			old++
		}
		if list = append([]*wire(nil), list[old:]...); len(list) == 0 {
			delete(w.idle, to)
			continue
		}
		w.idle[to] = list
		left += len(list)
	}
	w.sweeps = nil
	if left > 0 && !w.closed {
		w.sweeps = time.AfterFunc(wireIdle/2, w.sweep)
	}
}

// CloseIdleConnections closes the idle connections, and from now on those that become idle. http.Client calls it.
func (w *wires) CloseIdleConnections() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.sweeps != nil {
		w.sweeps.Stop()
		w.sweeps = nil
	}
	for _, list := range w.idle {
		for _, c := range list {
			_ = c.Close()
		}
	}
	clear(w.idle)
}

package fastapi

import (
	"net"
	"sync"

	"github.com/valyala/fasthttp"

	"svc/internal/socket"
)

// fasthttp first writes the head with as much of the body as fits its buffer, then the rest. If more is known to follow, the first
// part waits for it. So most answers to searches take one system call instead of two.

// joinBytes is the largest first part that waits: the size of fasthttp's buffer.
const joinBytes = 4096

// start is the beginning of an answer that waits for the rest.
type start struct {
	buf  [joinBytes]byte
	n    int
	both [2][]byte
	left net.Buffers
}

var starts = sync.Pool{New: func() any { return new(start) }}

// foretell records the length of the body that will follow a head.
func (c *conn) foretell(ctx *fasthttp.RequestCtx) {
	c.body = 0
	r := &ctx.Response
	if s := r.StatusCode(); s < fasthttp.StatusOK || s == fasthttp.StatusNoContent || s == fasthttp.StatusNotModified { // a head alone
		return
	}
	if !r.IsBodyStream() && !r.SkipBody && !ctx.IsHead() {
		c.body = len(r.Body())
	}
}

// holdBack keeps the first part of an answer if it cannot be all of it: it includes the head and is no longer than the body.
func (c *conn) holdBack(b []byte) bool {
	body := c.body
	c.body = 0
	if c.held != nil || len(b) > body || len(b) > joinBytes {
		return false
	}
	c.held = starts.Get().(*start)
	c.held.n = copy(c.held.buf[:], b)
	return true
}

// send writes bytes, after those that were held back. It returns how many of b were written.
func (c *conn) send(b []byte) (int, error) {
	st := c.held
	if st == nil {
		n, err := c.Conn.Write(b)
		c.moved.Add(int64(n))
		return n, err
	}
	c.held = nil
	n, err := st.writeBefore(b, c.Conn)
	c.moved.Add(n)
	n -= int64(st.n)
	starts.Put(st)
	return max(0, int(n)), err
}

// writeBefore writes the first part and then b. It returns how many bytes of both were written.
func (st *start) writeBefore(b []byte, to net.Conn) (int64, error) {
	if c, ok := to.(*socket.Conn); ok {
		return c.WriteBoth(st.buf[:st.n], b)
	}
	st.both = [2][]byte{st.buf[:st.n], b}
	st.left = st.both[:]
	defer func() { st.both, st.left = [2][]byte{}, nil }()
	return st.left.WriteTo(to)
}

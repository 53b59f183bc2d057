package fastapi

import (
	"bytes"
	"math/bits"
	"sync"

	"github.com/valyala/fasthttp"
)

// answerBuffer is what an answer is made in, and sent from unless it is much larger than the answer. No connection has one of its own:
// those that wait for their next request would keep what their largest answer took.
type answerBuffer struct {
	b    []byte
	size int // from 1: the pool of copies that it belongs to; 0: an answer is made in it
}

var answerBuffers = sync.Pool{New: func() any { return new(answerBuffer) }}

// copyBuffers are for answers that are copied from a buffer that is much larger: pools of 4 KiB, 8 KiB and so on up to spareBytes, and
// from there on of one spareBytes more each.
var copyBuffers [6 + 7]sync.Pool

const leastCopy = 4 << 10

// copyClass returns which of copyBuffers an answer is copied to, and how large its buffers are.
func copyClass(n int) (class, size int) {
	if n <= spareBytes {
		class = bits.Len(uint(max(n, 1)-1) / leastCopy)
		return class, leastCopy << class
	}
	parts := (n + spareBytes - 1) / spareBytes
	return 4 + parts, parts * spareBytes
}

// copyOf returns a buffer with a copy of an answer; nil: it is too long for one that is used again.
func copyOf(b []byte) *answerBuffer {
	class, size := copyClass(len(b))
	if class >= len(copyBuffers) {
		return nil
	}
	buf, _ := copyBuffers[class].Get().(*answerBuffer)
	if buf == nil {
		buf = &answerBuffer{make([]byte, 0, size), 1 + class}
	}
	buf.b = append(buf.b[:0], b...)
	return buf
}

const (
	// pooledBytes is how large a buffer is at most that is used again.
	pooledBytes = 4 << 20
	// spareBytes is by how much such a buffer may be larger than the answer that is sent from it. A client may take its time.
	spareBytes = 128 << 10
	// keptBytes is how large a buffer is at most that fasthttp keeps with a connection, for what is not sent from a buffer of ours.
	keptBytes = 16 << 10
)

func (buf *answerBuffer) release() {
	switch {
	case buf.size > 0:
		copyBuffers[buf.size-1].Put(buf)
	case cap(buf.b) <= pooledBytes:
		answerBuffers.Put(buf)
	}
}

// answerAs sends what write appends to the buffer it is given, which is the answer's own.
func answerAs(ctx *fasthttp.RequestCtx, contentType string, write func(dst []byte) ([]byte, error)) error {
	ctx.SetContentType(contentType)
	buf := answerBuffers.Get().(*answerBuffer)
	b, err := write(buf.b[:0])
	if err != nil {
		buf.release()
		return err
	}
	buf.b = b
	if cap(b)-len(b) > spareBytes && cap(b) <= pooledBytes {
		made := buf
		defer made.release()
		if buf = copyOf(b); buf == nil {
			ctx.Response.SetBodyRaw(bytes.Clone(b))
			return nil
		}
	}
	ctx.Response.SetBodyRaw(buf.b)
	if r := requestOf(ctx); r != nil {
		r.buffer = buf
	}
	return nil
}

// freeBuffer has what the answer was made in used again: it is sent, or sent from elsewhere.
func (r *request) freeBuffer() {
	if r.buffer != nil {
		r.buffer.release()
		r.buffer = nil
	}
}

// settle says that of what the request held only the answer is left, in a buffer that may be larger.
func (r *request) settle(ctx *fasthttp.RequestCtx) {
	if !ctx.Response.IsBodyStream() {
		r.account.Settle(int64(cap(ctx.Response.Body())))
	}
}

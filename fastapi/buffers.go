package fastapi

import (
	"bytes"
	"sync"

	"github.com/valyala/fasthttp"
)

// answerBuffer is what an answer is made in, and sent from unless it is much larger than the answer. No connection has one of its own:
// those that wait for their next request would keep what their largest answer took.
type answerBuffer struct{ b []byte }

var answerBuffers = sync.Pool{New: func() any { return new(answerBuffer) }}

const (
	// pooledBytes is how large a buffer is at most that is used again.
	pooledBytes = 4 << 20
	// spareBytes is by how much such a buffer may be larger than the answer that is sent from it. A client may take its time.
	spareBytes = 128 << 10
	// keptBytes is how large a buffer is at most that fasthttp keeps with a connection, for what is not sent from a buffer of ours.
	keptBytes = 16 << 10
)

func (buf *answerBuffer) release() {
	if cap(buf.b) <= pooledBytes {
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
		ctx.Response.SetBodyRaw(bytes.Clone(b))
		buf.release()
		return nil
	}
	ctx.Response.SetBodyRaw(b)
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

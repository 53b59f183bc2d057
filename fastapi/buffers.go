package fastapi

import (
	"bytes"
	"math/bits"
	"sync"

	"github.com/valyala/fasthttp"
)

// answerBuffer is the buffer in which an answer is built, and from which it is sent unless it is much larger than the answer.
// Connections have no buffers of their own, because idle ones would keep the memory of their largest answer.
type answerBuffer struct {
	b    []byte
	size int // from 1: its pool in copyBuffers; 0: a buffer for building answers
}

var answerBuffers = sync.Pool{New: func() any { return new(answerBuffer) }}

// copyBuffers are for answers copied from a much larger buffer: pools of 4 KiB, 8 KiB and so on up to spareBytes, and from there on
// in steps of spareBytes.
var copyBuffers [6 + 7]sync.Pool

const leastCopy = 4 << 10

// copyClass returns the pool in copyBuffers for an answer, and the size of its buffers.
func copyClass(n int) (class, size int) {
	if n <= spareBytes {
		class = bits.Len(uint(max(n, 1)-1) / leastCopy)
		return class, leastCopy << class
	}
	parts := (n + spareBytes - 1) / spareBytes
	return 4 + parts, parts * spareBytes
}

// copyOf returns a pooled buffer with a copy of an answer, or nil if the answer is too long for one.
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
	// pooledBytes is the size up to which a buffer is reused.
	pooledBytes = 4 << 20
	// spareBytes is by how much a buffer may exceed the answer that is sent from it, because a client may take its time.
	spareBytes = 128 << 10
	// keptBytes is the size up to which fasthttp keeps a buffer with its connection, for answers that do not use a pooled buffer.
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

// answerAs sends what write appends to the buffer of the answer.
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

// freeBuffer releases the buffer of an answer that was sent, or is sent from elsewhere.
func (r *request) freeBuffer() {
	if r.buffer != nil {
		r.buffer.release()
		r.buffer = nil
	}
}

// settle reduces the charge of a request to the buffer of its answer, which may be larger than the answer.
func (r *request) settle(ctx *fasthttp.RequestCtx) {
	if !ctx.Response.IsBodyStream() {
		r.account.Settle(int64(cap(ctx.Response.Body())))
	}
}

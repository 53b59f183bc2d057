package fastapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
)

// bodyReader reads a request's body as it comes in, decompressed, up to the
// payload limit. Its errors are *apierr.Error.
type bodyReader struct {
	src   io.Reader
	left  int64 // bytes until the limit
	limit int64
	err   error // the first one other than io.EOF
}

// ambiguous reports whether a request says twice how long its body is. A proxy in front may have believed the other one,
// and take the rest of the body for the request of somebody else (RFC 9112, 6.1).
func ambiguous(h *fasthttp.RequestHeader) bool {
	const chunked = -1
	return h.ContentLength() == chunked && hasHeader(h, fasthttp.HeaderContentLength)
}

// bodyReader returns the body of a request.
func (s *Server) bodyReader(ctx *fasthttp.RequestCtx) (*bodyReader, error) {
	r := &bodyReader{left: s.payloadLimit, limit: s.payloadLimit}
	stream := ctx.RequestBodyStream()
	if stream == nil {
		r.src = bytes.NewReader(nil)
		return r, nil
	}
	encoding := ctx.Request.Header.ContentEncoding()
	if len(encoding) == 0 {
		// The length is known before the first byte is read: there is no use in receiving what will be refused.
		if int64(ctx.Request.Header.ContentLength()) > r.limit {
			r.err = r.tooLarge()
			return nil, r.err
		}
	}
	var err error
	r.src, err = decompress(&patientReader{src: stream, ctx: ctx}, string(bytes.ToLower(bytes.TrimSpace(encoding))))
	if err != nil {
		return nil, brokenBody(err)
	}
	return r, nil
}

// decompress undoes a content encoding. Encodings that svc does not know are left to the reader of the body.
func decompress(r io.Reader, encoding string) (io.Reader, error) {
	switch encoding {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "br":
		return brotli.NewReader(r), nil
	case "deflate":
		// The name means zlib (RFC 9110, 8.4.1.2), but bare deflate streams are sent too. A zlib
		// header's two bytes are a multiple of 31 and begin with method 8.
		var head [2]byte
		n, err := io.ReadFull(r, head[:])
		if n == 0 && err == io.EOF {
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		r = io.MultiReader(bytes.NewReader(head[:]), r)
		if head[0]&0x0f == 8 && (int(head[0])<<8+int(head[1]))%31 == 0 {
			return zlib.NewReader(r)
		}
		return flate.NewReader(r), nil
	case "zstd":
		// Others that speak this API read such a body as it is. One that does not begin as a frame is what they would get.
		var head [4]byte
		n, err := io.ReadFull(r, head[:])
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, err
		}
		r = io.MultiReader(bytes.NewReader(head[:n]), r)
		if string(head[:n]) != zstdMagic {
			return r, nil
		}
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
	}
	return r, nil
}

const (
	zstdMagic  = "\x28\xb5\x2f\xfd" // RFC 8878, 3.1.1
	zstdWindow = 8 << 20            // bytes: what decoders should take, 3.1.1.1.2
)

func (r *bodyReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.src.Read(p)
	r.left -= int64(n)
	switch {
	case r.left < 0:
		r.err = r.tooLarge()
		return n - 1, r.err
	case err == nil || err == io.EOF:
		return n, err
	}
	r.err = brokenBody(err)
	return n, r.err
}

func (r *bodyReader) tooLarge() error {
	return apierr.New("payload_too_large", "The body is larger than %d bytes. Send it in pieces, or start the server with a larger `--http-payload-size-limit`.", r.limit)
}

func brokenBody(err error) error {
	return apierr.New("bad_request", "The body cannot be read: %v.", err)
}

// patientReader lets a connection take its time as long as bytes keep coming.
type patientReader struct {
	src  io.Reader
	ctx  *fasthttp.RequestCtx
	read int // bytes since the deadline was set
}

// brokenKey is the place, among the values of a request, that says that its body broke off:
// nobody knows where on the connection the next request would begin.
type brokenKey struct{}

// deadlineBytes is how many bytes may come before the read deadline is moved on.
const deadlineBytes = 256 << 10

func (r *patientReader) Read(p []byte) (int, error) {
	if r.read >= deadlineBytes {
		r.read = 0
		if err := r.ctx.Conn().SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
			return 0, err
		}
	}
	n, err := r.src.Read(p)
	r.read += n
	if err != nil && err != io.EOF {
		r.ctx.SetUserValue(brokenKey{}, true)
	}
	return n, err
}

// drainTime is how long the rest of a body is read and dropped once its answer
// is ready. So the connection can go on, and a client that looks for the answer
// only after it has sent everything gets to see it.
const drainTime = 10 * time.Second

// drain reads what a handler left of the body, or has the connection closed.
func drain(ctx *fasthttp.RequestCtx) {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return
	}
	if ctx.UserValue(brokenKey{}) != nil {
		ctx.Response.SetConnectionClose()
		return
	}
	var one [1]byte
	if n, err := stream.Read(one[:]); n == 0 && err == io.EOF {
		return
	}
	err := ctx.Conn().SetReadDeadline(time.Now().Add(drainTime))
	if err == nil {
		_, err = io.Copy(io.Discard, stream)
	}
	if err != nil {
		ctx.Response.SetConnectionClose()
	}
}

// mediaType returns the content type of a request, in lower case and without
// parameters; an error when there is none. accepted completes the error's message.
func mediaType(ctx *fasthttp.RequestCtx, accepted string) (string, error) {
	full := ctx.Request.Header.ContentType()
	if len(full) == 0 && !hasHeader(&ctx.Request.Header, fasthttp.HeaderContentType) {
		return "", apierr.New("missing_content_type", "The `Content-Type` header is missing. Send %s.", accepted)
	}
	kind, _, _ := bytes.Cut(full, []byte{';'})
	return string(bytes.ToLower(bytes.TrimSpace(kind))), nil
}

func wrongType(ctx *fasthttp.RequestCtx, accepted string) error {
	return apierr.New("invalid_content_type", "The `Content-Type` %q is not accepted here. Send %s.", shorten(ctx.Request.Header.ContentType()), accepted)
}

// checkJSON refuses requests whose content type is not JSON.
func checkJSON(ctx *fasthttp.RequestCtx) error {
	const accepted = "`application/json`"
	if string(ctx.Request.Header.ContentType()) == contentJSON {
		return nil
	}
	kind, err := mediaType(ctx, accepted)
	if err == nil && kind != contentJSON {
		err = wrongType(ctx, accepted)
	}
	return err
}

// readJSON reads a JSON body and makes sure that it is JSON. It reads into
// *buf, which may grow; the value aliases it. A nil buf stands for a new one.
func (s *Server) readJSON(ctx *fasthttp.RequestCtx, buf *[]byte) (value, error) {
	if err := checkJSON(ctx); err != nil {
		return nil, err
	}
	r, err := s.bodyReader(ctx)
	if err != nil {
		return nil, err
	}
	if buf == nil {
		buf = new([]byte)
	}
	if n := ctx.Request.Header.ContentLength(); n >= cap(*buf) {
		*buf = make([]byte, 0, min(n, maxHintBytes)+1) // and one to see the end
	}
	body, err := readAll((*buf)[:0], r)
	*buf = body
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, apierr.New("missing_payload", "The body is missing: send JSON.")
	}
	if !json.Valid(body) {
		return nil, apierr.New("malformed_payload", "The body is not valid JSON: %v.", syntaxError(body))
	}
	if !utf8.Valid(body) {
		return nil, apierr.New("malformed_payload", "The body is not valid JSON: it is not UTF-8.")
	}
	if tooDeep(body) {
		return nil, apierr.New("malformed_payload", "The body is nested more than %d levels deep.", maxDepth)
	}
	if w, ok := ctx.UserValue(writeKey{}).(*write); ok && w.forward {
		ctx.SetUserValue(bodyKey{}, trim(body))
	}
	return trim(body), nil
}

// maxHintBytes bounds what is allocated because a client says that it will send it.
const maxHintBytes = 1 << 20

func readAll(dst []byte, r io.Reader) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

// syntaxError says where body, which is not JSON, goes wrong.
func syntaxError(body []byte) error {
	var v json.RawMessage
	err := json.Unmarshal(body, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return apierr.New("malformed_payload", "%v, at byte %d", syntax, syntax.Offset)
	}
	return err
}

// readObject reads a JSON body that is an object of params into dst. Unknown members are refused.
func readObject[T any](s *Server, ctx *fasthttp.RequestCtx, dst *T, params []param[T]) error {
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	return decode(dst, body, params, object{code: "bad_request"})
}

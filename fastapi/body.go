package fastapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/budget"
)

// bodyReader reads a request's body as it arrives, decompressed, up to the payload limit. Its errors are *apierr.Error.
type bodyReader struct {
	src     io.Reader
	left    int64 // bytes until the limit
	limit   int64
	option  string // that sets the limit
	err     error  // the first one other than io.EOF
	sent    *patientReader
	packed  bool
	account *budget.Account

	settings bool  // they are read
	promised int   // bytes already charged but not used yet
	turn     *turn // yields while decoding; nil: the reader has a turn of its own, or needs none
}

// ambiguous reports whether a request states the length of its body twice. A proxy in front may have believed the other length, and
// treat the rest of the body as another client's request (RFC 9112, 6.1).
func ambiguous(h *fasthttp.RequestHeader) bool {
	const chunked = -1
	switch h.ContentLength() {
	case chunked:
		return hasHeader(h, headerContentLength)
	default:
		// "identity" is no longer an encoding, but a proxy may treat it as one and drop the length.
		return hasHeader(h, headerTransferEncoding)
	}
}

func ambiguousLength() error {
	return apierr.New("bad_request", "The length of the body is ambiguous. Send either `Content-Length` or `Transfer-Encoding: chunked`.")
}

// bodyReader returns the body of a request.
func (s *Server) bodyReader(ctx *fasthttp.RequestCtx) (*bodyReader, error) {
	limit, option := s.bodyLimit(ctx)
	r := &bodyReader{left: limit, limit: limit, option: option, account: requestOf(ctx).bytes(), settings: ofSettings(ctx)}
	stream := ctx.RequestBodyStream()
	if stream == nil {
		r.src = bytes.NewReader(nil)
		return r, nil
	}
	if err := s.checkLength(ctx); err != nil {
		return nil, err
	}
	encoding := headerContentEncoding.in(&ctx.Request.Header)
	if bytes.IndexByte(encoding, ',') >= 0 || headerContentEncoding.repeated(&ctx.Request.Header) {
		return nil, apierr.New("unsupported_media_type", "The body has several encodings (`Content-Encoding`). Use one: gzip, deflate, br or zstd.")
	}
	var err error
	r.sent, r.packed = &patientReader{src: stream, ctx: ctx, body: r}, len(encoding) > 0
	r.src, err = decompress(r.sent, string(bytes.ToLower(bytes.TrimSpace(encoding))), r.account)
	switch {
	case errors.Is(err, budget.ErrFull):
		return nil, err
	case err != nil:
		return nil, r.broken(err)
	}
	return r, nil
}

// checkLength refuses a body by its declared length, before its first byte is read.
func (s *Server) checkLength(ctx *fasthttp.RequestCtx) error {
	limit, option := s.bodyLimit(ctx)
	if len(headerContentEncoding.in(&ctx.Request.Header)) == 0 && int64(ctx.Request.Header.ContentLength()) > limit {
		return (&bodyReader{limit: limit, option: option}).tooLarge()
	}
	return nil
}

// settingsFactor is by how much the limit for settings exceeds that of other bodies: they contain lists of synonyms and words.
const settingsFactor = 10

// bodyLimit returns the limit of a request's body in bytes, decompressed, and the option that sets it. Documents, and selections of
// documents to delete, have a limit of their own.
func (s *Server) bodyLimit(ctx *fasthttp.RequestCtx) (limit int64, option string) {
	limit, option = s.jsonLimit, "--http-json-size-limit"
	res, ok := ctx.UserValue(resourceKey{}).(*resource)
	if !ok {
		return limit, option
	}
	switch strings.TrimPrefix(res.path, indexPath) {
	case "documents", "documents/delete", "documents/delete-batch":
		return s.payloadLimit, "--http-payload-size-limit"
	}
	if ofSettings(ctx) {
		limit *= settingsFactor
	}
	if limit > s.payloadLimit {
		return s.payloadLimit, "--http-payload-size-limit"
	}
	return limit, option
}

// indexPath is what the paths of an index's routes begin with.
const indexPath = "/indexes/{index_uid}/"

// ofSettings reports whether a request is about the settings of an index.
func ofSettings(ctx *fasthttp.RequestCtx) bool {
	res, ok := ctx.UserValue(resourceKey{}).(*resource)
	if !ok {
		return false
	}
	path, ofIndex := strings.CutPrefix(res.path, indexPath)
	return ofIndex && (path == "settings" || strings.HasPrefix(path, "settings/"))
}

// decompress decodes a content encoding. It leaves unknown encodings to the reader of the body. The decoder's memory is charged to
// the account.
func decompress(r io.Reader, encoding string, account *budget.Account) (io.Reader, error) {
	switch encoding {
	case "gzip", "x-gzip":
		if err := account.Hold(deflateBytes); err != nil {
			return nil, err
		}
		return gzip.NewReader(r)
	case "br":
		var head [1]byte
		if n, err := io.ReadFull(r, head[:]); n == 0 {
			if err == io.EOF {
				return r, nil
			}
			return nil, err
		}
		if err := account.Hold(brotliWindow(head[0])); err != nil {
			return nil, err
		}
		return brotli.NewReader(io.MultiReader(bytes.NewReader(head[:]), r)), nil
	case "deflate":
		// The name means zlib (RFC 9110, 8.4.1.2), but some clients send bare deflate streams. A zlib header's two bytes are a
		// multiple of 31 and begin with method 8.
		var head [2]byte
		n, err := io.ReadFull(r, head[:])
		if n == 0 && err == io.EOF {
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		if err := account.Hold(deflateBytes); err != nil {
			return nil, err
		}
		r = io.MultiReader(bytes.NewReader(head[:]), r)
		if head[0]&0x0f == 8 && (int(head[0])<<8+int(head[1]))%31 == 0 {
			return zlib.NewReader(r)
		}
		return flate.NewReader(r), nil
	case "zstd":
		// Other servers of this API read such a body as it is. So does svc if it does not begin like a frame.
		var head [zstd.HeaderMaxSize]byte
		n, err := io.ReadFull(r, head[:])
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, err
		}
		r = io.MultiReader(bytes.NewReader(head[:n]), r)
		if !bytes.HasPrefix(head[:n], []byte(zstdMagic)) {
			return r, nil
		}
		var frame zstd.Header
		window := uint64(zstdWindow)
		if frame.Decode(head[:n]) == nil && !frame.Skippable {
			window = min(max(frame.WindowSize, frame.FrameContentSize), window)
		}
		if err := account.Hold(int64(window) + deflateBytes); err != nil {
			return nil, err
		}
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
	}
	return r, nil
}

const (
	zstdMagic  = "\x28\xb5\x2f\xfd" // RFC 8878, 3.1.1
	zstdWindow = 8 << 20            // bytes: the minimum for decoders, 3.1.1.1.2

	deflateBytes = 64 << 10 // of a decoder, about
)

// brotliWindow returns the window size from the first byte of a brotli stream (RFC 7932, 9.1).
func brotliWindow(first byte) int64 {
	bits := 16
	switch n, m := int(first>>1&7), int(first>>4&7); {
	case first&1 == 0:
	case n != 0:
		bits = 17 + n
	case m == 0:
		bits = 17
	case m > 1:
		bits = 8 + m
	}
	return 1<<bits + deflateBytes
}

// A decompressed body may be maxRatio times as large as what was sent, from ratioBytes on. Honest bodies with many repetitions stay
// below.
const (
	maxRatio   = 500
	ratioBytes = 16 << 20
)

// A compressed body may be packedShare times as long as it may be decompressed, and packedBytes more. A longer one consists of parts
// that decompress to nothing, and could go on for ever.
const (
	packedShare = 2
	packedBytes = 64 << 10
)

var errPacked = errors.New("the compressed body is too long")

// Read returns errors for users, and keeps returning the first one. It refuses a small body that decompresses to very much before the
// limit of payloads: such bodies are made to exhaust memory.
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
	if r.turn != nil {
		r.turn.enter()
	}
	switch unpacked := r.limit - r.left; {
	case r.packed && unpacked > ratioBytes && unpacked > maxRatio*r.sent.total:
		r.err = apierr.New("payload_too_large", "The body decompresses to more than %d times its size. Send it in pieces, or uncompressed.", maxRatio)
		return 0, r.err
	case r.left < 0:
		r.err = r.tooLarge()
		return n - 1, r.err
	case err == nil || err == io.EOF:
		return n, err
	}
	r.err = r.broken(err)
	return n, r.err
}

// mostPacked returns how many bytes of a compressed body are received.
func (r *bodyReader) mostPacked() int64 { return packedShare*r.limit + packedBytes }

func (r *bodyReader) tooLarge() error {
	return apierr.New("payload_too_large", "The body is larger than %d bytes. Send it in pieces, or start the server with a larger `%s`.", r.limit, r.option)
}

// promise charges memory for the length that the client announces.
func (r *bodyReader) promise(n int) error {
	if err := r.Hold(n); err != nil {
		return err
	}
	r.promised = n
	return nil
}

// Hold charges the request for n bytes that are read from the body.
func (r *bodyReader) Hold(n int) error {
	if r.err != nil {
		return r.err
	}
	taken := min(n, r.promised)
	r.promised -= taken
	if n -= taken; n == 0 {
		return nil
	}
	if r.account.Held()+int64(n) > r.account.Limit() {
		r.err = apierr.New("payload_too_large", "The body, or one of its documents, needs more memory than requests may use. Send it in pieces, or start the server with a larger `--http-memory`.")
		return r.err
	}
	r.err = r.account.Hold(int64(n))
	return r.err
}

// mostHelpers is the maximum number of goroutines that help with one body. Reading from the network and writing to disk remain
// sequential.
const mostHelpers = 8

// Helpers implements document.Helped. There are no helpers while the server is busy with searches.
func (r *bodyReader) Helpers(bytes int) int {
	if r.turn == nil || r.err != nil || !r.turn.slots.quiet(time.Now()) {
		return 0
	}
	n := min(runtime.GOMAXPROCS(0)-1, mostHelpers)
	if need := int64(n * bytes); need > 0 && (r.account.Held()+need > r.account.Limit()/2 || r.account.Hold(need) != nil) {
		return 0
	}
	return n
}

// pause lets others work.
func (r *bodyReader) pause() {
	if r.turn != nil && r.turn.holds != nothing && r.turn.holds != paused {
		r.turn.Pause()
	}
}

// late reports whether the body is not waited for any more.
func (r *bodyReader) late() bool {
	if r.sent == nil { // it is in memory
		return false
	}
	c, ok := r.sent.ctx.Conn().(*conn)
	return ok && c.late.Load()
}

// broken returns the error of a body that cannot be read to its end.
func (r *bodyReader) broken(err error) error {
	switch {
	case r.late():
		return apierr.New(codeNoWriter, "This server closed its data before the body of the request had arrived. Send the request again.")
	case errors.Is(err, errPacked):
		return apierr.New("payload_too_large", "The compressed body is longer than %d bytes, and decompresses to %d so far. Send it in pieces, or uncompressed.", r.mostPacked(), r.limit-r.left)
	}
	return apierr.New("bad_request", "The body cannot be read: %v.", err)
}

// patientReader gives a connection more time as long as bytes keep arriving.
type patientReader struct {
	src   io.Reader
	ctx   *fasthttp.RequestCtx
	body  *bodyReader
	read  int   // bytes since the deadline was set
	total int64 // bytes
}

// brokenKey is the key of a request value. It says that the body broke off, so the start of the next request on the connection is
// unknown.
type brokenKey struct{}

// deadlineBytes is the number of bytes after which the read deadline is extended.
const deadlineBytes = 256 << 10

// Read extends the deadline after each deadlineBytes. A body that ends before its announced length is an error, not a short body. So
// is a compressed one that is too long.
func (r *patientReader) Read(p []byte) (int, error) {
	if r.read >= deadlineBytes {
		r.read = 0
		if err := r.ctx.Conn().SetReadDeadline(time.Now().Add(readTimeout)); err != nil {
			return 0, err
		}
	}
	r.body.pause()
	n, err := r.src.Read(p)
	r.read += n
	r.total += int64(n)
	if err == io.EOF && r.total < int64(r.ctx.Request.Header.ContentLength()) {
		err = io.ErrUnexpectedEOF // fasthttp treats the end of the connection as the end of the body
	}
	if r.body.packed && r.total > r.body.mostPacked() {
		err = errPacked
	}
	if err != nil && err != io.EOF {
		r.ctx.SetUserValue(brokenKey{}, true)
	}
	return n, err
}

// mediaType returns the content type of a request in lower case, without parameters. accepted completes the message of the error for
// a missing one.
func mediaType(ctx *fasthttp.RequestCtx, accepted string) (string, error) {
	full := headerContentType.in(&ctx.Request.Header)
	if len(full) == 0 && !hasHeader(&ctx.Request.Header, headerContentType) {
		return "", apierr.New("missing_content_type", "The `Content-Type` header is missing. Send %s.", accepted)
	}
	kind, _, _ := bytes.Cut(full, []byte{';'})
	return string(bytes.ToLower(bytes.TrimSpace(kind))), nil
}

func wrongType(ctx *fasthttp.RequestCtx, accepted string) error {
	return apierr.New("invalid_content_type", "The `Content-Type` %q is not accepted here. Send %s.", shorten(headerContentType.in(&ctx.Request.Header)), accepted)
}

// checkJSON refuses requests whose content type is not JSON.
func checkJSON(ctx *fasthttp.RequestCtx) error {
	const accepted = "`application/json`"
	if string(headerContentType.in(&ctx.Request.Header)) == contentJSON {
		return nil
	}
	kind, err := mediaType(ctx, accepted)
	if err == nil && kind != contentJSON {
		err = wrongType(ctx, accepted)
	}
	return err
}

// readJSON reads a JSON body and validates it. It reads into *buf, which may grow; the value aliases it. A nil buf means a new
// buffer.
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
	if n := ctx.Request.Header.ContentLength(); n >= cap(*buf) && n < maxHintBytes {
		*buf = make([]byte, 0, n+1) // and one to see the end
	} else if n > budget.SmallBytes && !r.packed {
		// What will find no room is refused before it is received.
		if err := r.promise(n); err != nil {
			return nil, err
		}
	}
	body, err := readAll((*buf)[:0], r)
	*buf = body
	if err != nil {
		return nil, err
	}
	if len(body) > bulkBytes {
		q := requestOf(ctx)
		if q.bulk, err = s.bulk.take(q.context()); err != nil {
			return nil, err
		}
		if q.gone() {
			return nil, context.Canceled
		}
	}
	if len(body) == 0 {
		return nil, apierr.New("missing_payload", "The body is missing: send JSON.")
	}
	if !valid(body) { // sonic's takes a third of the time, but accepts control characters and broken escapes (TestBodiesAreStrict)
		return nil, apierr.New("malformed_payload", "The body is not valid JSON: %v.", syntaxError(body))
	}
	if !utf8.Valid(body) {
		return nil, apierr.New("malformed_payload", "The body is not valid JSON: it is not UTF-8.")
	}
	if at := loneSurrogate(body); at >= 0 {
		return nil, apierr.New("malformed_payload", "The body is not valid JSON: unpaired surrogate escape at byte %d.", at+1)
	}
	if tooDeep(body) {
		return nil, apierr.New("malformed_payload", "The body is nested more than %d levels deep.", maxDepth)
	}
	if w, ok := ctx.UserValue(writeKey{}).(*write); ok && w.forward {
		ctx.SetUserValue(bodyKey{}, trim(body))
	}
	return trim(body), nil
}

const (
	// maxHintBytes limits the allocation for a length that the client announces.
	maxHintBytes = 16 << 10

	// chunkBytes is the size of the pieces in which longer bodies are received.
	chunkBytes = 32 << 10

	// bulkBytes: only a few larger bodies are decoded at a time.
	bulkBytes = 16 << 10

	// shapeBytes: for larger bodies, the memory for decoding is estimated.
	shapeBytes = 1 << 10
)

// chunks has buffers for receiving bodies. Requests reuse them, because large bodies that arrive while memory is short are mostly
// dropped.
var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// readAll reads a body into dst if it fits in its capacity, else into memory that it allocates once the whole body has arrived.
func readAll(dst []byte, r *bodyReader) ([]byte, error) {
	dst, err := fill(dst, r)
	if err == io.EOF && len(dst) >= shapeBytes {
		var shape budget.Shape
		shape.Add(dst)
		return dst, r.holdDecoded(&shape, 0)
	}
	if err != nil {
		return dst, noEOF(err)
	}
	var full []*[chunkBytes]byte
	defer func() {
		for _, c := range full {
			chunks.Put(c)
		}
	}()
	size := len(dst)
	for err == nil {
		if err := r.Hold(chunkBytes); err != nil {
			return dst, err
		}
		c := chunks.Get().(*[chunkBytes]byte)
		full = append(full, c)
		var part []byte
		part, err = fill(c[:0], r)
		size += len(part)
	}
	if err != io.EOF {
		return dst, err
	}
	var shape budget.Shape
	shape.Add(dst)
	for i, c := range full {
		shape.Add(c[:min(chunkBytes, size-len(dst)-i*chunkBytes)])
	}
	if err := r.holdDecoded(&shape, len(full)*chunkBytes); err != nil {
		return dst, err
	}
	all := append(make([]byte, 0, size), dst...)
	for _, c := range full {
		all = append(all, c[:min(chunkBytes, size-len(all))]...)
	}
	return all, nil
}

// holdDecoded charges the request for decoding a body, less the bytes taken already. It runs before the request waits for a turn to
// decode: a request that holds the turn never waits for memory.
func (r *bodyReader) holdDecoded(shape *budget.Shape, taken int) error {
	bytes := shape.Bytes()
	if r.settings {
		bytes += bytes * 3 / 2 // settings are parsed to be checked, and again to be compared with the current ones
	}
	return r.Hold(max(int(bytes)-taken, 0))
}

// fill reads until dst is full. The error is io.EOF if the body ends first.
func fill(dst []byte, r *bodyReader) ([]byte, error) {
	for len(dst) < cap(dst) {
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
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

// readObject reads a JSON object of params into dst. It refuses unknown members.
func readObject[T any](s *Server, ctx *fasthttp.RequestCtx, dst *T, params []param[T]) error {
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	return decode(dst, body, params, object{code: "bad_request"})
}

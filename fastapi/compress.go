package fastapi

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"
)

// Levels that cost little more than copying, because answers are created once and sent once.
const (
	brotliLevel = fasthttp.CompressBrotliBestSpeed
	gzipLevel   = fasthttp.CompressBestSpeed
)

// peerPlainBytes is the size up to which an answer to another instance is not compressed: sending a few packets is faster than
// compressing and decompressing them.
const peerPlainBytes = 256 << 10

// longAnswerBytes is the size from which on compressing an answer is long work.
const longAnswerBytes = 256 << 10

// compress compresses the answer if the client asks for it. A large answer waits for its turn among long searches, and is sent
// uncompressed if there is not enough memory.
func (s *Server) compress(ctx *fasthttp.RequestCtx) {
	accept := headerAcceptEncoding.in(&ctx.Request.Header)
	if len(accept) == 0 || ctx.Response.IsBodyStream() || len(ctx.Response.Header.ContentEncoding()) > 0 {
		return
	}
	body := ctx.Response.Body()
	encoding := negotiate(accept)
	if len(body) == 0 || encoding == "" || len(body) < peerPlainBytes && len(headerProxySearch.in(&ctx.Request.Header)) > 0 {
		return
	}
	r := requestOf(ctx)
	if len(body) >= longAnswerBytes {
		t := (&turn{work: r.context(), request: r, slots: s.slots}).charged()
		defer s.slots.giveBack(t)
		if t.enter(); t.Err() != nil || t.Account().Hold(int64(len(body))) != nil {
			return
		}
	}
	var small []byte
	switch encoding {
	case "br":
		small = fasthttp.AppendBrotliBytesLevel(nil, body, brotliLevel)
	case "gzip":
		small = fasthttp.AppendGzipBytesLevel(nil, body, gzipLevel)
	case "deflate":
		small = fasthttp.AppendDeflateBytesLevel(nil, body, gzipLevel)
	}
	// A short one does not wait for memory: it is charged when the answer is settled, and other requests wait instead.
	ctx.Response.SetBodyRaw(small)
	r.freeBuffer()
	ctx.Response.Header.SetContentEncoding(encoding)
	ctx.Response.Header.Add(fasthttp.HeaderVary, "accept-encoding")
}

// negotiate chooses the content encoding that the client prefers; without a preference br before gzip before deflate. "" means none,
// and so does `*`.
func negotiate(accept []byte) string {
	known := [...]string{"br", "gzip", "deflate"}
	var quality [len(known)]float64
	plain := -1.0
	for item := range bytes.SplitSeq(accept, []byte{','}) {
		name, weight := qualityOf(item)
		if string(name) == "identity" {
			plain = weight
		}
		for i := range known {
			if bytes.EqualFold(name, []byte(known[i])) {
				quality[i] = weight
			}
		}
	}
	best := 0
	for i := range known {
		if quality[i] > quality[best] {
			best = i
		}
	}
	if quality[best] == 0 || quality[best] < plain {
		return ""
	}
	return known[best]
}

// qualityOf splits "gzip;q=0.5" into the name and the weight. The default weight is 1.
func qualityOf(item []byte) (name []byte, weight float64) {
	name, params, _ := bytes.Cut(item, []byte{';'})
	weight = 1
	if q, ok := bytes.CutPrefix(bytes.TrimSpace(params), []byte("q=")); ok {
		w, err := strconv.ParseFloat(string(q), 64)
		if err != nil {
			w = 0
		}
		weight = w
	}
	return bytes.TrimSpace(name), weight
}

package fastapi

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"
)

// Levels that cost little more than the copy: answers are made once and sent once.
const (
	brotliLevel = fasthttp.CompressBrotliBestSpeed
	gzipLevel   = fasthttp.CompressBestSpeed
)

// peerPlainBytes is from where on an answer to a search of another instance is compressed: a few packets are over the network
// sooner than they are compressed and taken apart again.
const peerPlainBytes = 256 << 10

// longAnswerBytes is from where on to compress an answer is long work.
const longAnswerBytes = 256 << 10

// compress compresses the answer when the client asks for it. A large one waits for its turn among long searches, and is sent as it is
// when there is no memory for it.
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
	// It is not waited for memory for a short one: what there is is counted when the answer is settled, and shows in what others get.
	ctx.Response.SetBodyRaw(small)
	r.freeBuffer()
	ctx.Response.Header.SetContentEncoding(encoding)
	ctx.Response.Header.Add(fasthttp.HeaderVary, "accept-encoding")
}

// negotiate chooses the content encoding that the client likes best; br before gzip before
// deflate where it does not care. "" stands for none; `*` does too.
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

// qualityOf splits "gzip;q=0.5" into the name and the weight, which is 1 when there is none.
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

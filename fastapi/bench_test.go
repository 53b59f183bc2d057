package fastapi

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"svc/internal/search"
	"svc/internal/vfs"
)

// BenchmarkRoute measures the cost of a request besides its handler and the connection.
func BenchmarkRoute(b *testing.B) {
	f, err := OpenFeatures(vfs.NewMem(), "features.json")
	if err != nil {
		b.Fatal(err)
	}
	s := New(Options{Features: f, Keys: openKeys(b, ""), Logger: slog.New(slog.DiscardHandler), PayloadLimit: 1 << 20})
	var ctx fasthttp.RequestCtx
	for _, path := range []string{"/health", "/indexes/not!valid/documents/1"} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx.Request.Reset()
				ctx.Response.Reset()
				ctx.Request.SetRequestURI(path)
				s.serve(&ctx)
			}
		})
	}
}

// BenchmarkLimits measures the part of a search that protects other searches: its account, its turn, and the checks whether to continue.
func BenchmarkLimits(b *testing.B) {
	c, _ := newInstance(b, Options{Searches: 4, SearchQueue: 10})
	var ctx fasthttp.RequestCtx
	b.ReportAllocs()
	for b.Loop() {
		ctx.Request.Reset()
		r := c.server.begin(&ctx)
		limited, _, err := c.server.turn(&ctx, 20)
		if err != nil {
			b.Fatal(err)
		}
		for range 20 { // one per hit
			if limited.Yield() != nil || r.account.Answer(500) != nil {
				b.Fatal("the search may not continue")
			}
		}
		limited.end()
		r.account.Settle(10_000)
		r.Close()
	}
}

// BenchmarkSearch compares a search over HTTP, without the connection, with the search alone: the difference is decoding, slot,
// view and answer.
func BenchmarkSearch(b *testing.B) {
	c, _ := newInstance(b, Options{Searches: 4, SearchQueue: 10})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "title": "Metropolis"}, {"id": 2, "title": "Stalker"}]`))
	body := []byte(`{"q":"metropolis","limit":10,"attributesToRetrieve":["id","title"],"showRankingScore":true}`)
	b.Run("http", func(b *testing.B) {
		var ctx fasthttp.RequestCtx
		b.ReportAllocs()
		for b.Loop() {
			ctx.Request.Reset()
			ctx.Response.Reset()
			ctx.Request.Header.SetMethod("POST")
			ctx.Request.Header.SetContentType(contentJSON)
			ctx.Request.SetRequestURI("/indexes/films/search")
			ctx.Request.SetBodyStream(bytes.NewReader(body), len(body))
			c.server.serve(&ctx)
			if ctx.Response.StatusCode() != 200 {
				b.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
			}
		}
	})
	b.Run("alone", func(b *testing.B) {
		v, err := c.server.catalog.Get("films").View()
		if err != nil {
			b.Fatal(err)
		}
		defer v.Release()
		in := newSearchInput()
		if err := decode(&in, body, searchBodyParams, object{code: "bad_request"}); err != nil {
			b.Fatal(err)
		}
		var answer []byte
		b.ReportAllocs()
		for b.Loop() {
			found, err := search.Search(b.Context(), v, &in.Search)
			if err == nil {
				answer, err = found.AppendJSON(b.Context(), answer[:0])
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReadVector reads the body of a search with a vector of 384 numbers.
func BenchmarkReadVector(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var numbers []string
	var raw []byte
	for range 384 {
		f := float32(r.NormFloat64() / 20)
		numbers = append(numbers, strconv.FormatFloat(float64(f), 'g', -1, 64))
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	for _, form := range []struct{ name, vector string }{
		{"numbers", "[" + strings.Join(numbers, ", ") + "]"},
		{"base64", `"` + base64.StdEncoding.EncodeToString(raw) + `"`},
	} {
		body := []byte(`{"vector": ` + form.vector + `, "hybrid": {"embedder": "e"}}`)
		b.Run(form.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				in := newSearchInput()
				if err := decode(&in, body, searchBodyParams, object{}); err != nil || len(in.Search.Vector) != 384 {
					b.Fatal(len(in.Search.Vector), err)
				}
			}
		})
	}
}

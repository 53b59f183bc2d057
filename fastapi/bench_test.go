package fastapi

import (
	"log/slog"
	"testing"

	"github.com/valyala/fasthttp"

	"svc/internal/vfs"
)

// BenchmarkRoute is what every request costs besides its handler and the connection.
func BenchmarkRoute(b *testing.B) {
	f, err := OpenFeatures(vfs.NewMem(), "features.json")
	if err != nil {
		b.Fatal(err)
	}
	s := New(Options{Features: f, Logger: slog.New(slog.DiscardHandler), PayloadLimit: 1 << 20})
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

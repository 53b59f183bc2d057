package search

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// shopOf makes an index of products, each with some variants. elements declares the variants as elements.
func shopOf(b *testing.B, products int, elements bool) (*index.Index, vfs.FS) {
	b.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("payloads"); err != nil {
		b.Fatal(err)
	}
	catalog, err := index.OpenCatalog("indexes", index.Options{FS: fs, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: time.Now, MaxIndexingThreads: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { catalog.Close() })
	ix, err := catalog.Create("shop", "id", 0)
	if err != nil {
		b.Fatal(err)
	}
	rule := fmt.Sprintf(`{"filterableAttributes":[{"attributePatterns":["variants.*"],"features":{"elements":%v,"filter":{"equality":true,"comparison":true}}}]}`, elements)
	u, err := settings.ParseUpdate([]byte(rule), settings.Features{})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var lines bytes.Buffer
	for id := range products {
		fmt.Fprintf(&lines, `{"id":%d,"variants":[`, id)
		for i := range 1 + r.IntN(5) {
			if i > 0 {
				lines.WriteByte(',')
			}
			fmt.Fprintf(&lines, `{"color":"color %d","size":%d,"price":%d.5,"sku":"sku %d"}`, r.IntN(20), 30+r.IntN(20), r.IntN(500), r.IntN(1<<30))
		}
		lines.WriteString("]}\n")
	}
	if err := vfs.WriteFile(fs, "payloads/1", lines.Bytes()); err != nil {
		b.Fatal(err)
	}
	ops := []index.Op{index.UpdateSettings{Update: u}, index.AddDocuments{Payload: "payloads/1", Documents: products}}
	for i, op := range ops {
		results, err := ix.Apply(context.Background(), uint64(i+1), []index.Op{op}, func(int, index.Step) {})
		if err != nil || results[0].Err != nil {
			b.Fatal(err, results)
		}
	}
	return ix, fs
}

// BenchmarkFilterOnOneObject compares braces with the same conditions on all variants of a product, without cached results.
func BenchmarkFilterOnOneObject(b *testing.B) {
	ix, _ := shopOf(b, 50_000, true)
	v := held(ix.View())
	defer v.Release()
	for _, test := range []struct{ name, flat, braces string }{
		{"equal", `variants.color = "color 3" AND variants.size = 40`, `variants.{color = "color 3" AND size = 40}`},
		{"range", `variants.color = "color 3" AND variants.size > 40`, `variants.{color = "color 3" AND size > 40}`},
		{"ranges", `variants.price < 200 AND variants.size > 40`, `variants.{price < 200 AND size > 40}`},
		{"not", `variants.color = "color 3" AND NOT variants.size > 40`, `variants.{color = "color 3" AND NOT size > 40}`},
	} {
		for kind, text := range map[string]string{"flat": test.flat, "braces": test.braces} {
			b.Run(test.name+"/"+kind, func(b *testing.B) {
				e, err := filter.Parse(text)
				if err != nil {
					b.Fatal(err)
				}
				bound, err := e.Bind(filter.Env{Fields: v.Fields, Code: "invalid_search_filter"})
				if err != nil {
					b.Fatal(err)
				}
				found := uint64(0)
				for b.Loop() {
					found = 0
					for _, s := range v.Segments {
						found += bound.Rows(s).GetCardinality()
					}
				}
				b.ReportMetric(float64(found), "documents")
			})
		}
	}
}

// BenchmarkIndexElements compares the indexing time and disk space of an attribute with and without elements.
func BenchmarkIndexElements(b *testing.B) {
	for _, elements := range []bool{false, true} {
		b.Run(fmt.Sprintf("elements=%v", elements), func(b *testing.B) {
			for b.Loop() {
				ix, _ := shopOf(b, 10_000, elements)
				v := held(ix.View())
				size := int64(0)
				for _, s := range v.Segments {
					size += s.Info().Bytes
				}
				v.Release()
				b.ReportMetric(float64(size), "disk-B")
			}
		})
	}
}

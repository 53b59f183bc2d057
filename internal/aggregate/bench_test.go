package aggregate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// BenchmarkCompute aggregates 500,000 documents, and a twentieth of them as a word might match, without cached states. Prices have 20,000
// values; cents and dates have nearly one per document.
func BenchmarkCompute(b *testing.B) {
	const documents = 500_000
	names := []string{"price", "cents", "at", "brand", "user"}
	r := rand.New(rand.NewPCG(1, 1))
	builder := segment.NewBuilder(segment.BuilderOptions{})
	some := roaring.New()
	for i := range documents {
		builder.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
		builder.Number(0, numeric.OfInt(r.Int64N(20_000)))
		builder.Number(1, numeric.Of(float64(r.IntN(1_000_000_000))/1e6))
		builder.Number(2, numeric.OfInt(1_700_000_000+r.Int64N(50_000_000)))
		for field, s := range []string{fmt.Sprint("b", r.IntN(500)), fmt.Sprint("u", r.IntN(100_000))} {
			builder.String(segment.FieldID(3+field), []byte(s), []byte(s))
		}
		for field := range names {
			builder.Present(segment.FieldID(field))
		}
		builder.EndDoc()
		if i%20 == 0 {
			some.Add(uint32(i))
		}
	}
	file := written(b, builder)
	all := allFilterable(b)
	live, fields := segment.Live{Reader: file}, settings.Resolve(names, all, "id")
	turn := turns.Of(context.Background())
	for _, among := range []struct {
		name string
		rows *roaring.Bitmap
	}{{"all", roaring.Flip(roaring.New(), 0, documents)}, {"word", some}} {
		source := Source{
			Segments: []segment.Live{live},
			Fields:   fields,
			Count:    func(int) int { return int(among.rows.GetCardinality()) },
			Rows:     func(int) *roaring.Bitmap { return among.rows },
			Ordinals: func(_ int, _ segment.FieldID, c *segment.Column, strings bool) Ordinals {
				return CountOrdinals(c, strings, among.rows, documents)
			},
		}
		for _, body := range []string{`{"a":{"stats":"price"}}`, `{"a":{"stats":"cents"}}`, `{"a":{"percentiles":"price"}}`, `{"a":{"percentiles":"cents"}}`,
			`{"a":{"histogram":"price","interval":100}}`, `{"a":{"histogram":"cents","interval":10}}`, `{"a":{"dateHistogram":"at","interval":"month"}}`,
			`{"a":{"terms":"brand"}}`, `{"a":{"terms":"brand","aggregations":{"x":{"stats":"price"},"y":{"stats":"cents"}}}}`,
			`{"a":{"cardinality":"user"}}`, `{"a":{"terms":"user"}}`} {
			request, err := Parse([]byte(body), "aggregations", testCode)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(among.name+" "+body, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					result := request.New()
					if err := result.Compute(turn, &source, testCode); err != nil {
						b.Fatal(err)
					}
					if _, err := result.AppendJSON(turn, nil, testCode); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

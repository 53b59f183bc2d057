package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkFirstCrops crops 20 texts of 1 MB for new queries. Words have the frequencies of natural language, in random order.
func BenchmarkFirstCrops(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	vocabulary := make([]string, 30_000)
	for i := range vocabulary {
		var w strings.Builder
		for range 1 + rng.IntN(3) + int(math.Log2(float64(i+2)))/4 {
			w.WriteString([]string{"ka", "lo", "mi", "nu", "re", "so", "ta", "vi", "be", "da", "st", "ing"}[rng.IntN(12)])
		}
		vocabulary[i] = w.String()
	}
	word := func() string {
		return vocabulary[int(math.Exp(rng.Float64()*math.Log(float64(len(vocabulary)))))-1]
	}
	l := newLibrary(b)
	var docs []string
	for id := range 20 {
		var body strings.Builder
		for body.Len() < 1_000_000 {
			body.WriteString(word())
			body.WriteString([]string{" ", " ", " ", " ", " ", " ", ", ", ". ", "\\n"}[rng.IntN(9)])
		}
		docs = append(docs, fmt.Sprintf(`{"id":%d,"title":"t%d","body":"%s"}`, id, id, body.String()))
	}
	l.put("a", `{"searchableAttributes":["title","body"]}`, docs...)
	v := held(l.c.Get("a").View())
	bytes := int64(0)
	for _, s := range v.Segments {
		bytes += s.Info().Bytes
		sizes := map[string]int64{}
		s.AddSectionBytes(sizes)
		b.Log(sizes)
	}
	b.ReportMetric(float64(bytes)/20, "bytes/doc")
	v.Release()
	for _, bb := range []struct {
		name  string
		query func() string
	}{
		{"frequent", func() string { return vocabulary[rng.IntN(100)] + " " + vocabulary[rng.IntN(100)] }},
		{"three", func() string { return word() + " " + word() + " " + word() }},
		{"phrase", func() string { return `"` + vocabulary[rng.IntN(30)] + " " + vocabulary[rng.IntN(30)] + `"` }},
		{"prefix", func() string { return vocabulary[rng.IntN(30_000)][:1] }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			found := 0
			for i := range b.N {
				r := Request{Query: bb.query(), Limit: 20, AttributesToRetrieve: []string{"id"}, AttributesToCrop: []string{"body"}, CropLength: 10 + i/1000, CropMarker: "…"}
				hits, err := l.search("a", r, nil)
				if err != nil {
					b.Fatal(err)
				}
				found += len(hits)
			}
			b.ReportMetric(float64(found)/float64(b.N), "hits/op")
		})
	}
}

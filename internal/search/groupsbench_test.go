package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkGroups searches 100,000 documents for changing words with 2,500 documents each: plain hits, hits with an exact total, and
// groups by attributes of 5, 500 and 50,000 values. Each of the first 100 searches has a new word.
func BenchmarkGroups(b *testing.B) {
	const documents, words = 100_000, 800
	r := rand.New(rand.NewPCG(1, 1))
	l := newLibrary(b)
	l.put("a", `{"filterableAttributes":["kind","brand","user"],"sortableAttributes":["price"],"searchableAttributes":["t"]}`)
	plain, alike := make([]string, words), make([]string, words)
	for i := range words {
		var letters [9]byte
		for k := range letters {
			letters[k] = byte('a' + r.IntN(26))
		}
		plain[i], alike[i] = string(letters[:]), fmt.Sprintf("w%dx", 100+i) // words with many similar spellings
	}
	var docs []string
	for i := range documents {
		var text []string
		for range 20 {
			text = append(text, plain[r.IntN(words)], alike[r.IntN(words)])
		}
		docs = append(docs, fmt.Sprintf(`{"id":%d,"t":%q,"kind":"k%d","brand":"b%d","user":%d,"price":%d}`, i, strings.Join(text, " "), r.IntN(5), r.IntN(500), r.IntN(50_000), r.IntN(1000)))
	}
	l.put("a", "", docs...)
	v := held(l.c.Get("a").View())
	defer v.Release()
	queries := []struct {
		name string
		of   func(i int) string
	}{
		{"plain", func(i int) string { return plain[i%words] }},
		{"alike", func(i int) string { return alike[i%words] }},
		{"two", func(i int) string { return plain[i%words] + " " + plain[(i*7+1)%words] }},
		{"placeholder", func(int) string { return "" }},
	}
	for _, q := range queries {
		word := 0
		for _, c := range []struct {
			name    string
			counted bool
			by      *GroupBy
		}{
			{"hits", false, nil},
			{"counted", true, nil},
			{"kind", false, &GroupBy{Attribute: "kind", Hits: 3}},
			{"brand", false, &GroupBy{Attribute: "brand", Hits: 3}},
			{"user", false, &GroupBy{Attribute: "user", Hits: 3}},
			{"sorted", false, &GroupBy{Attribute: "brand", Hits: 3, Sort: []string{"price:desc"}}},
		} {
			b.Run(q.name+"/"+c.name, func(b *testing.B) {
				for b.Loop() {
					word++
					request := &Request{Query: q.of(word), Limit: 20, GroupBy: c.by}
					if c.counted {
						request.Facets = []string{}
					}
					found, err := Search(context.Background(), v, request)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := found.AppendJSON(context.Background(), nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkGroups searches 100,000 documents for words that 5,000 of them have, another one each time: hits alone, and groups of them by an
// attribute of 500 values and by one of 50,000.
func BenchmarkGroups(b *testing.B) {
	const documents, words = 100_000, 400
	r := rand.New(rand.NewPCG(1, 1))
	l := newLibrary(b)
	l.put("a", `{"filterableAttributes":["brand","user"],"sortableAttributes":["price"],"searchableAttributes":["t"]}`)
	var docs []string
	for i := range documents {
		var text []string
		for range 20 {
			text = append(text, fmt.Sprintf("w%dx", r.IntN(words)))
		}
		docs = append(docs, fmt.Sprintf(`{"id":%d,"t":%q,"brand":"b%d","user":%d,"price":%d}`, i, strings.Join(text, " "), r.IntN(500), r.IntN(50_000), r.IntN(1000)))
	}
	l.put("a", "", docs...)
	v := held(l.c.Get("a").View())
	defer v.Release()
	word := 0
	for _, c := range []struct {
		name string
		by   *GroupBy
	}{{"hits", nil}, {"brand", &GroupBy{Attribute: "brand", Hits: 3}}, {"user", &GroupBy{Attribute: "user", Hits: 3}}, {"sorted", &GroupBy{Attribute: "brand", Hits: 3, Sort: []string{"price:desc"}}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				word++
				found, err := Search(context.Background(), v, &Request{Query: fmt.Sprintf("w%dx", word%words), Limit: 20, GroupBy: c.by})
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

package rank

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
)

// BenchmarkScore searches 500,000 documents with two score functions, of a date and of a number: a word of 1,250 documents, a word of
// 50,000, and all documents. Nothing is cached. The same searches without functions come first.
func BenchmarkScore(b *testing.B) {
	const documents, now = 500_000, 1_700_000_000
	r := rand.New(rand.NewPCG(1, 1))
	docs := make([]*document, documents)
	for i := range docs {
		sold := 1e5 * r.Float64() * r.Float64() * r.Float64()
		docs[i] = doc(i, "title", fmt.Sprintf("w%dx f%dx", r.IntN(400), r.IntN(10)), "at", float64(now-r.Int64N(1e8)), "sold", float64(int(sold)))
	}
	functions, err := settings.ParseScoreFunctions([]byte(`[{"name":"fresh","function":"decay","attribute":"at","origin":"now","scale":2592000},
		{"name":"popular","function":"log","attribute":"sold","scale":100000}]`), "scoreFunctions", "invalid_search_score_functions")
	if err != nil {
		b.Fatal(err)
	}
	for at, rules := range []string{`["words","typo","proximity","attributeRank","sort","wordPosition","exactness"]`, `["words","typo","score","proximity","attributeRank","sort","wordPosition","exactness"]`, `["score","words","typo"]`} {
		s := parseSettings(b, `{"sortableAttributes":["at","sold"],"searchableAttributes":["title"],"rankingRules":`+rules+`}`)
		ix := build(b, s, [][]*document{docs}, nil)
		ix.Cache = query.NewCache(resultcache.New(0))
		for _, kind := range []string{"w%dx", "f%dx", ""} {
			name := map[string]string{"w%dx": "word", "f%dx": "frequent", "": "all"}[kind]
			if b.Run(name+"/"+[]string{"none", "third", "first"}[at], func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					q := kind
					if q != "" {
						q = fmt.Sprintf(kind, i%10)
					}
					found, err := Search(context.Background(), ix, &Request{Query: q, Limit: 20, MaxTotal: 1000, HitsOnly: true, Brief: true,
						Scoring: &Scoring{Functions: functions, Filters: make([]Filter, 2), Now: now}})
					if err != nil || len(found.Hits) != 20 {
						b.Fatal(len(found.Hits), err)
					}
				}
			}); b.Failed() {
				return
			}
		}
	}
}

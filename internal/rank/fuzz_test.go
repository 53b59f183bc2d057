package rank

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/query"
)

// smallIndex is a fixed index of random documents in three segments.
func smallIndex(t testing.TB, settings string) *Index {
	m := &maker{Rand: rand.New(rand.NewPCG(1, 2))}
	m.vocabulary()
	docs := m.documents(200)
	return build(t, parseSettings(t, settings), [][]*document{docs[:50], docs[50:190], docs[190:]}, nil)
}

// hostile returns queries designed to be slow.
func hostile() []string {
	var words []string
	for i := range 1000 {
		words = append(words, strings.Repeat(string(rune('a'+i%4)), 1+i%9))
	}
	return []string{
		strings.Join(words, " "), strings.Join(words, "-"), "-" + strings.Join(words, " -"),
		strings.Repeat("a", 10000), strings.Repeat("ab", 5000), strings.Repeat("é", 300), strings.Repeat("漢", 3000),
		strings.Repeat(`"`, 5000), strings.Repeat(`" `, 5000), `"` + strings.Join(words, " "),
		strings.Repeat("a\u0301", 3000), strings.Repeat("\u0301", 5000), strings.Repeat("𝔘", 2000),
		strings.Repeat("a, ", 70000), strings.Repeat("aaa ", 10), "\x00\xff\xfe", "a\xc3", strings.Repeat("\U0010ffff", 500),
	}
}

func TestHostileQueriesAreFast(t *testing.T) {
	ix := smallIndex(t, `{"searchableAttributes":["title","body","tags"],"synonyms":{"aaa":["b c","d"]}}`)
	for _, q := range hostile() {
		for _, s := range []query.Strategy{query.Last, query.All, query.Frequency} {
			begin := time.Now()
			mustSearch(t, ix, Request{Query: q, Strategy: s, Scores: true, Details: true})
			if d := time.Since(begin); d > time.Minute { // far more than on a loaded machine
				t.Errorf("%.20q… takes %v", q, d)
			}
		}
	}
}

func FuzzSearch(f *testing.F) {
	plain := smallIndex(f, `{}`)
	rules := smallIndex(f, `{"searchableAttributes":["body","title"],"stopWords":["a","aab"],"proximityPrecision":"byAttribute",
		"rankingRules":["exactness","proximity","words","attribute","typo"],"typoTolerance":{"minWordSizeForTypos":{"oneTypo":1,"twoTypos":2},"disableOnAttributes":["tags"]}}`)
	for _, q := range hostile() {
		f.Add(q[:min(len(q), 200)], uint8(0), uint8(3))
	}
	f.Add(`"abc d" -cd ab`, uint8(7), uint8(20))
	f.Fuzz(func(t *testing.T, q string, flags, limit uint8) {
		for _, ix := range []*Index{plain, rules} {
			r := Request{Universe: universe(ix), Query: q, Strategy: query.Strategy(flags % 3), Limit: int(limit), MaxTotal: 1000, Scores: flags&8 != 0, Details: flags&8 != 0}
			if flags&16 != 0 {
				r.SearchOn = []string{"title"}
			}
			res, err := Search(context.Background(), ix, &r)
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Hits) > r.Limit || len(res.Hits) > res.Total {
				t.Fatalf("%d hits of %d, limit %d", len(res.Hits), res.Total, r.Limit)
			}
			if r.Scores && !slices.IsSortedFunc(res.Hits, func(a, b Hit) int {
				switch {
				case a.Score > b.Score:
					return -1
				case a.Score < b.Score:
					return 1
				}
				return 0
			}) {
				t.Fatalf("scores do not descend: %v", res.Hits)
			}
		}
	})
}

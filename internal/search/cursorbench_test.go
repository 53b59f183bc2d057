package search

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"svc/internal/scroll"
)

// BenchmarkSmallPages reads pages of 20 hits: first and later ones.
func BenchmarkSmallPages(b *testing.B) {
	l := newLibrary(b)
	l.put("a", `{"sortableAttributes": ["price"], "searchableAttributes": ["t"]}`)
	const all = 200_000
	docs := make([]string, all)
	for i := range docs {
		docs[i] = fmt.Sprintf(`{"id": %d, "t": "%s hat", "price": %d}`, i, []string{"red", "blue"}[i%2], i*7919%100_003)
	}
	l.put("a", "", docs...)
	v := held(l.c.Get("a").View())
	defer v.Release()
	places := scroll.NewStore([]byte("x"), time.Now)
	page := func(r Request, cursor string) string {
		r.Limit, r.Cursor = 20, &Cursor{Text: cursor, Places: places}
		found, err := Search(context.Background(), v, &r)
		if err != nil {
			b.Fatal(err)
		}
		body, err := found.AppendJSON(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		var answer struct{ NextCursor string }
		if err := json.Unmarshal(body, &answer); err != nil {
			b.Fatal(err)
		}
		return answer.NextCursor
	}
	for _, r := range []Request{{Sort: []string{"price:asc"}}, {Query: "hat"}, {Query: "red hat"}, {Query: "red hat", Sort: []string{"price:asc"}}} {
		name := fmt.Sprintf("%q sort %v", r.Query, r.Sort)
		b.Run("first "+name, func(b *testing.B) {
			for b.Loop() {
				page(r, "")
			}
		})
		b.Run("behind "+name, func(b *testing.B) {
			next := page(r, "")
			for b.Loop() {
				if next = page(r, next); next == "" {
					next = page(r, "")
				}
			}
		})
	}
}

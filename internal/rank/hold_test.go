package rank

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"

	"svc/internal/budget"
)

// TestHitsAreCharged requests more hits than memory allows: a few are free, others are charged as they are found.
func TestHitsAreCharged(t *testing.T) {
	if h, v := reflect.TypeFor[Hit]().Size(), reflect.TypeFor[ScoreValue]().Size(); h > hitBytes || v > valueBytes {
		t.Errorf("a hit takes %d bytes, a value %d", h, v)
	}
	var docs []*document
	for i := range 3000 {
		docs = append(docs, doc(i, "t", fmt.Sprintf("aaa %c%c", 'a'+i%7, 'b'+i%5), "n", i%11))
	}
	ix := build(t, parseSettings(t, `{"sortableAttributes":["n"]}`), [][]*document{docs[:2000], docs[2000:]}, nil)
	for _, r := range []Request{
		{Query: "aaa"}, {Query: "aaa", Values: true}, {Query: "aaa", Details: true}, {}, {Values: true},
		{Query: "aaa", Values: true, Sort: []SortKey{{Field: "n"}}},
	} {
		r.MaxTotal = len(docs)
		for _, limit := range []int{10, pageHits, 1000, 3000} {
			r.Limit = limit
			search := func(b *budget.Budget) (*Result, int64, error) {
				own := b.Open(1)
				defer own.Close()
				res, err := Search(context.WithValue(t.Context(), budget.Key, own), ix, &r)
				return res, own.Held(), err
			}
			res, held, err := search(budget.New(1<<30, nil))
			if err != nil || len(res.Hits) != limit {
				t.Fatalf("%+v: %d hits, want %d: %v", r, len(res.Hits), limit, err)
			}
			taken := int64(0)
			for _, h := range res.Hits {
				taken += int64(hitBytes + valueBytes*cap(h.Values) + cap(h.Details))
			}
			if !r.Values && limit <= pageHits {
				taken = 0
			}
			if held < taken/10*9 || held > 3*taken {
				t.Errorf("%+v: %d bytes are held for %d", r, held, taken)
			}
			if held == 0 {
				continue
			}
			synctest.Test(t, func(t *testing.T) { // the search waits for memory
				if _, _, err := search(budget.New(held/2, nil)); !errors.Is(err, budget.ErrFull) {
					t.Errorf("%+v: with too little memory: %v", r, err)
				}
			})
			if res, _, err := search(budget.New(1<<30, nil)); err != nil || len(res.Hits) != limit {
				t.Errorf("%+v: with memory again: %v", r, err)
			}
		}
	}
}

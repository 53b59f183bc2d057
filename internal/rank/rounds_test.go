package rank

import (
	"context"
	"slices"
	"testing"

	"svc/internal/query"
	"svc/internal/resultcache"
)

// TestRoundsAreForTheFirstView asks for the same words in views that come one after another: rounds find the documents for the first, and
// those after it have the costs of all documents made, which stay with the segment. All answer alike.
func TestRoundsAreForTheFirstView(t *testing.T) {
	defer func(c, l, r int) { classRows, listRows, roundRows = c, l, r }(classRows, listRows, roundRows)
	classRows, listRows, roundRows = 2, 3, 4
	var docs []*document
	for i := range 200 {
		docs = append(docs, doc(i, "title", []string{"apple pear", "apple tart with pear", "pear apple"}[i%3], "price", float64(i%40)))
	}
	ix := build(t, parseSettings(t, `{}`), [][]*document{docs}, nil)
	memory := resultcache.New(16 << 20)
	shelf := memory.Shelf()
	var before []Hit
	kept := int64(0) // with the segment, by the first view
	for n := range 3 {
		view := *ix
		view.Cache = query.NewCache(memory, shelf)
		got, err := Search(context.Background(), &view, &Request{Query: "apple pear", Distinct: "price", Limit: 10, MaxTotal: 1000})
		if err != nil {
			t.Fatal(err)
		}
		view.Cache.Close()
		switch bytes := memory.Bytes(); {
		case n == 0:
			kept = bytes
		case bytes <= kept:
			t.Errorf("view %d: %d bytes are kept with the segment, %d by the first view", n, bytes, kept)
		}
		if n > 0 && !slices.EqualFunc(got.Hits, before, func(a, b Hit) bool { return a.ID == b.ID }) {
			t.Errorf("view %d: %v, want %v", n, found(got), found(&Result{Hits: before}))
		}
		before = got.Hits
	}
}

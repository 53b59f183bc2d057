package search

import (
	"context"
	"testing"
)

// TestSearchesDoNotModifyLiveRows excludes documents in every way. Searches of a view share its live rows; the library checks
// them at the end.
func TestSearchesDoNotModifyLiveRows(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{"embedders": {"e": {"source": "userProvided", "dimensions": 2}}, "filterableAttributes": ["k"]}`,
		`{"id": 1, "k": 1, "_vectors": {"e": [1, 0]}}`, `{"id": 2, "k": 1, "_vectors": {"e": [0, 1]}}`, `{"id": 3, "k": 2, "_vectors": {"e": [1, 1]}}`)
	l.put("a", "", `{"id": 4, "k": 2, "_vectors": {"e": [1, 2]}}`)
	v := held(l.c.Get("a").View())
	defer v.Release()
	k := "k"
	for range 2 {
		if _, err := Similar(context.Background(), nil, v, &SimilarRequest{ID: "1", Embedder: "e", Limit: 20}); err != nil {
			t.Fatal(err)
		}
		if _, err := Fetch(context.Background(), nil, v, &FetchRequest{IDs: []string{"2", "4"}, Limit: 20}); err != nil {
			t.Fatal(err)
		}
		l.answer("a", Request{Distinct: &k, Limit: 20})
		if got := l.answer("a", Request{Limit: 20}); len(got.Hits) != 4 {
			t.Fatalf("%d of 4 documents are found", len(got.Hits))
		}
	}
}

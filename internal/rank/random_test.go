package rank

import (
	"fmt"
	"slices"
	"testing"

	"svc/segment"
)

// TestShuffledPagesAreOneList reads 3,000 documents page by page, from sets, lists and cached hits: together the pages must be the list in
// its order. Another seed gives another order.
func TestShuffledPagesAreOneList(t *testing.T) {
	const n = 3000
	var docs []*document
	for i := range n {
		docs = append(docs, doc(i, "title", []string{"red", "blue"}[i%2]))
	}
	orders := map[string][]segment.DocID{}
	for _, rule := range []string{"random", "random:1", "random:2"} {
		ix := build(t, parseSettings(t, fmt.Sprintf(`{"rankingRules":["words",%q]}`, rule)), [][]*document{docs[:1000], docs[1000:2990], docs[2990:]}, nil)
		for _, query := range []string{"", "red"} {
			whole := mustSearch(t, ix, Request{Query: query, Limit: n, MaxTotal: n})
			var pages []segment.DocID
			for at, size := 0, 1; at < len(whole.Hits); at, size = at+size, 2*size {
				plan := new(Plan)
				for _, h := range mustSearch(t, ix, Request{Query: query, Offset: at, Limit: size, MaxTotal: n, Plan: plan}).Hits {
					pages = append(pages, h.ID)
				}
				if at == 0 && !slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Path == string(firstShuffled) }) {
					t.Errorf("%s, %q: the first page sorts all documents: %+v", rule, query, plan.Steps)
				}
			}
			var ids []segment.DocID
			for i, h := range whole.Hits {
				if ids = append(ids, h.ID); i < len(pages) && pages[i] != h.ID {
					t.Fatalf("%s, %q: document %d is hit %d, pages have %d there", rule, query, h.ID, i, pages[i])
				}
			}
			if len(pages) != len(ids) {
				t.Errorf("%s, %q: %d hits, %d on pages", rule, query, len(ids), len(pages))
			}
			want := slices.Clone(ids)
			slices.Sort(want)
			if len(want) != n && query == "" || len(slices.Compact(want)) != len(ids) || slices.IsSorted(ids) {
				t.Errorf("%s, %q: %d hits, %d different ones", rule, query, len(ids), len(want))
			}
			for k, other := range orders {
				if slices.Equal(ids, other) {
					t.Errorf("%s, %q: the order equals that of %s", rule, query, k)
				}
			}
			orders[rule+query] = ids
		}
	}
	// A query removes documents, and the others keep their order.
	red := slices.DeleteFunc(slices.Clone(orders["random"]), func(id segment.DocID) bool { return id%2 != 0 })
	if !slices.Equal(red, orders["randomred"]) {
		t.Error("the matches of a query are not in the order of all documents")
	}
}

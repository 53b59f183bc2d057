package rank

import (
	"context"
	"slices"
	"testing"

	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/segment"
)

// TestCachedAttributeClassesSurviveALargerWeight caches the classes of a segment's documents for a word. Then it adds a document with an
// attribute of larger weight than all in use.
func TestCachedAttributeClassesSurviveALargerWeight(t *testing.T) {
	defer func(c, l int) { classRows, listRows = c, l }(classRows, listRows)
	classRows, listRows = 0, 0
	first := []*document{doc(1, "b", "word"), doc(2, "a", "word"), doc(3, "b", "word"), doc(4, "a", "other")}
	set := parseSettings(t, `{"searchableAttributes":["a","b","c"],"rankingRules":["words","attributeRank"]}`)
	ix := build(t, set, [][]*document{first, {doc(0, "c", "word")}}, nil)
	memory := resultcache.New(1 << 20)
	scopes := []*resultcache.Scope{memory.Scope(), memory.Scope()}
	ask := func(fields []string, segments int) (ids []segment.DocID, plan *Plan) {
		t.Helper()
		view := *ix
		view.Segments, view.Fields, view.Cache = ix.Segments[:segments], settings.Resolve(fields, set, "id"), query.NewCache(memory, scopes[:segments]...)
		defer view.Cache.Close()
		plan = new(Plan)
		got, err := Search(context.Background(), &view, &Request{Query: "word", Limit: 9, MaxTotal: 9, Plan: plan})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range got.Hits {
			ids = append(ids, h.ID)
		}
		return ids, plan
	}
	fields := []string{"a", "b", "c"}
	cached := false
	for range 4 {
		ids, plan := ask(fields[:2], 1)
		if !slices.Equal(ids, []segment.DocID{2, 1, 3}) {
			t.Fatalf("before: %v", ids)
		}
		cached = cached || slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Rule == "attributeRank" && s.Path == string(cachedClasses) })
	}
	if !cached {
		t.Error("no classes were cached")
	}
	for range 4 {
		if ids, _ := ask(fields, 2); !slices.Equal(ids, []segment.DocID{2, 1, 3, 0}) {
			t.Errorf("with a document of the largest weight: %v", ids)
		}
	}
}

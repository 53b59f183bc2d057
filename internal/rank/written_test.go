package rank

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"svc/internal/query"
	"svc/internal/settings"
	"svc/segment"
)

// TestWordsAsWrittenTellThePage asks for a word where few documents are counted, for hits alone and for all that there is to say: hits and
// totals are the same, whichever is asked first.
func TestWordsAsWrittenTellThePage(t *testing.T) {
	defer func(c, l, stop, rows int) { classRows, listRows, stopRows, leadRows = c, l, stop, rows }(classRows, listRows, stopRows, leadRows)
	short := 0
	for seed := range uint64(60) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 11))}
		m.vocabulary()
		if classRows, listRows, stopRows, leadRows = 48, 512, 4096, 1<<10; m.chance(50) {
			classRows, listRows, stopRows, leadRows = m.IntN(3), m.IntN(3), 1+m.IntN(10), 1+m.IntN(20)
		}
		docs := m.documents(20 + m.IntN(60))
		parts := make([][]*document, 1+m.IntN(4))
		deleted := map[segment.DocID]bool{}
		for _, d := range docs {
			at := m.IntN(len(parts))
			parts[at] = append(parts[at], d)
			if m.chance(15) {
				deleted[d.id] = true
			}
		}
		body := m.settings()
		ix := build(t, parseSettings(t, body), parts, deleted)
		sorts := slices.ContainsFunc(ix.Settings.RankingRules, func(r settings.RankingRule) bool { return r.Kind == settings.Sort })
		for range 40 {
			r := m.request(sorts)
			r.Scores, r.Details, r.Threshold, r.Distinct = false, false, nil, ""
			if r.Query = m.word(); m.chance(30) {
				r.Query = r.Query[:1+m.IntN(len(r.Query))]
			}
			if m.chance(30) {
				r.Query += " "
			}
			r.MaxTotal = 1 + m.IntN(8)
			r.SearchOn = slices.DeleteFunc(r.SearchOn, func(f string) bool { return !ix.Fields.InfoOf(f).Searchable })
			if len(r.SearchOn) == 0 {
				r.SearchOn = nil
			}
			if m.chance(50) {
				r.Universe = universe(ix)
			}
			var answers [2]string
			var counted [2]int
			first := m.IntN(2)
			for i := range 2 * (1 + m.IntN(2)) {
				k := (first + i) % 2
				ask := *r
				ask.HitsOnly = k == 1
				got, err := Search(context.Background(), ix, &ask)
				if err != nil {
					t.Fatal(err)
				}
				answers[k] = fmt.Sprint(found(got), got.Total)
				counted[k] = rows(got.Candidates).count()
			}
			if answers[1] != answers[0] {
				t.Fatalf("seed %d, settings %s, %+v: %s, want %s", seed, body, r, answers[1], answers[0])
			}
			if counted[1] < counted[0] {
				short++
			}
		}
	}
	if short < 50 {
		t.Errorf("misspelt words were left out of %d searches", short)
	}
}

// TestMisspeltWordsAreSoughtWhereTheyAreSeen tries what hits or totals may depend on.
func TestMisspeltWordsAreSoughtWhereTheyAreSeen(t *testing.T) {
	var docs []*document
	for i := range 12 {
		docs = append(docs, doc(i, "title", []string{"orange", "orangs", "pear"}[i%3], "price", float64(i)))
	}
	score := 0.1
	for _, tt := range []struct {
		what, settings string
		r              Request
		want           int
	}{
		{"as many as are counted", `{}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true}, 4},
		{"more are counted", `{}`, Request{Query: "orange", MaxTotal: 5, HitsOnly: true}, 8},
		{"all is asked", `{}`, Request{Query: "orange", MaxTotal: 4}, 8},
		{"two words", `{}`, Request{Query: "orange pear", MaxTotal: 4, HitsOnly: true}, 8},
		{"one is excluded", `{}`, Request{Query: "orange -pear", MaxTotal: 4, HitsOnly: true}, 8},
		{"scores", `{}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true, Scores: true}, 8},
		{"a threshold", `{}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true, Threshold: &score}, 8},
		{"distinct", `{}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true, Distinct: "price"}, 8},
		{"none may be missing", `{}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true, Strategy: query.All}, 4},
		{"another rule comes before", `{"rankingRules":["words","price:desc","typo"]}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true}, 8},
		{"without the rule", `{"rankingRules":["words","proximity"]}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true}, 8},
	} {
		ix := build(t, parseSettings(t, tt.settings), [][]*document{docs}, nil)
		tt.r.Limit = 20
		got := mustSearch(t, ix, tt.r)
		if n := rows(got.Candidates).count(); n != tt.want || got.Total != min(tt.want, tt.r.MaxTotal) {
			t.Errorf("%s: %d documents, total %d, want %d", tt.what, n, got.Total, tt.want)
		}
	}
}

package rank

import (
	"context"
	"testing"

	"svc/internal/query"
)

func mustSearch(t testing.TB, ix *Index, r Request) *Result {
	t.Helper()
	if r.Limit == 0 {
		r.Limit = 20
	}
	if r.MaxTotal == 0 {
		r.MaxTotal = 1000
	}
	r.Universe = universe(ix)
	res, err := Search(context.Background(), ix, &r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestScoreOfWorkedExample(t *testing.T) {
	ix := build(t, parseSettings(t, `{"searchableAttributes":["title","body"]}`), [][]*document{{
		doc(0, "title", "dark chocolate cake"),
		doc(1, "title", "chocolate and dark cake"),
		doc(2, "title", "cake", "body", "with dark bitter chocolate"),
		doc(3, "title", "dark chocolat tart", "body", "cake"),
		doc(4, "title", "dark cake"),
		doc(5, "title", "black cake", "body", "dark"),
	}}, nil)
	res := mustSearch(t, ix, Request{Query: "dark chocolate cake", Scores: true, Details: true})
	want := []float64{1, 0.961546, 0.956708, 0.902170, 0.330808, 0.25}
	if got := found(res); got != "0 1 2 3 4 5" {
		t.Fatalf("order %s", got)
	}
	for i, h := range res.Hits {
		if d := h.Score - want[i]; d > 1e-6 || d < -1e-6 {
			t.Errorf("document %d: score %f, want %f: %s", h.ID, h.Score, want[i], h.Details)
		}
	}
}

func TestProximityOfTwoWords(t *testing.T) {
	ix := build(t, parseSettings(t, `{"rankingRules":["words","proximity"]}`), [][]*document{{
		doc(0, "t", "aaa bbb"), doc(1, "t", "aaa-bbb"), doc(2, "t", "aaa x bbb"), doc(3, "t", "bbb aaa"),
		doc(4, "t", "aaa x x bbb"), doc(5, "t", "bbb x aaa"), doc(6, "t", "aaa x x x bbb"), doc(7, "t", "aaa", "u", "bbb"),
		doc(8, "t", "aaa", "t", "bbb"), doc(9, "t", "aaa. bbb"),
	}}, nil)
	want := []float64{1, 1, .75, .75, .5, .5, .25, .25, .25, .25}
	for i, h := range mustSearch(t, ix, Request{Query: "aaa bbb", Scores: true, Strategy: query.All}).Hits {
		if h.Score != want[i] || int(h.ID) != i {
			t.Errorf("hit %d: document %d, score %v, want %v", i, h.ID, h.Score, want[i])
		}
	}
}

func TestQueriesFind(t *testing.T) {
	ix := build(t, parseSettings(t, `{"synonyms":{"nyc":["new york city"]},"stopWords":["of"]}`), [][]*document{{
		doc(0, "t", "planets and stars"), doc(1, "t", "plamet"), doc(2, "t", "lanet"), doc(3, "t", "sun flower"),
		doc(4, "t", "sunflower seeds"), doc(5, "t", "new york city"), doc(6, "t", "state of art"), doc(7, "t", "state x art"),
	}, {
		doc(8, "t", "state x y art"), doc(9, "t", "apple red"), doc(10, "t", "apple green"), doc(11, "t", "newyork"),
	}}, nil)
	for _, c := range []struct{ query, want string }{
		{"planet", "0 1"}, {"planet ", "0 1"}, {"sunflower", "4 3"}, {"sun flower", "3 4"}, {"nyc", "5"},
		{`"state of art"`, "7 6"}, {"apple -red", "10"}, {`apple -"apple red"`, "10"}, {"new york", "5 11"},
		{"pla", "0 1"}, {`"planet`, ""}, {"-red state", "6 7 8"},
	} {
		if got := found(mustSearch(t, ix, Request{Query: c.query})); got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
}

package rank

import (
	"context"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
	"svc/internal/settings"
	"svc/internal/turns"
)

// numberScoring scores by one number.
func numberScoring(t *testing.T) *Scoring {
	t.Helper()
	f, err := settings.ParseScoreFunctions([]byte(`{"levels":20,"functions":[{"name":"n","function":"linear","attribute":"n","scale":40}]}`),
		"scoreFunctions", "invalid_search_score_functions")
	if err != nil {
		t.Fatal(err)
	}
	return &Scoring{Functions: f, Filters: make([]Filter, len(f.Functions))}
}

// scoreSearch starts a search that only computes scores.
func scoreSearch(ix *Index, by *Scoring) *search {
	ctx := context.Background()
	return &search{job: job{request: request{ctx: ctx, turn: turns.Of(ctx), r: &Request{Scoring: by}}, findings: findings{ix: ix}}}
}

// TestCachedCostsOfForgedRows requests the costs of rows beyond the segment: in its last run, after it, and far after it.
func TestCachedCostsOfForgedRows(t *testing.T) {
	defer func(bits, rows int) { scoreRunBits, scoreRunRows = bits, rows }(scoreRunBits, scoreRunRows)
	scoreRunBits, scoreRunRows = 4, 4
	const rows, last = 40, 2 // the last run has 8 rows
	var docs []*document
	for i := range rows {
		docs = append(docs, doc(i, "n", i))
	}
	by := numberScoring(t)
	ix := build(t, parseSettings(t, `{"rankingRules":["score"]}`), [][]*document{docs}, nil)
	for range 2 {
		s := scoreSearch(ix, by)
		scorerOf(s).costsOf(s, 0, last, scoreRunRows)
	}
	for name, forged := range map[string][]uint32{
		"none": {}, "in the last run": {rows, rows + 7}, "in the next run": {48}, "far behind": {1 << 20, 1<<32 - 1}, "in several": {rows + 1, 49, 1 << 25},
	} {
		t.Run(name, func(t *testing.T) {
			s := scoreSearch(ix, by)
			p := scorerOf(s)
			of := append([]uint32{1, 2, 33, 39}, forged...)
			sorted, rest := p.sortCached(s, 0, slices.Clone(of))
			if want := []uint32{39, 33}; !slices.Equal(sorted.rows, want) {
				t.Errorf("rows by cost are %v, want %v", sorted.rows, want)
			}
			if want := append([]uint32{1, 2}, forged...); !slices.Equal(rest, want) {
				t.Errorf("%v are left, want %v", rest, want)
			}
			costs := make([]uint32, len(of))
			if !p.cachedCosts(s, 0, of[2:4], costs) {
				t.Error("the costs of rows of the last run are not cached")
			}
			for _, row := range forged {
				if p.cachedCosts(s, 0, []uint32{row}, costs) {
					t.Errorf("row %d has a cached cost", row)
				}
			}
		})
	}
}

// frequentTop returns numbers half of which are the largest, so that no range of them has few rows.
func frequentTop(i int) int { return 40 - i%2*(i%41) }

// TestForgedRowsAmongScoredOnes searches with rows beyond the segment.
func TestForgedRowsAmongScoredOnes(t *testing.T) {
	if invariant.Enabled {
		t.Skip("invariant checks reject rows beyond the segment")
	}
	defer func(list, bits, rows int) { listRows, scoreRunBits, scoreRunRows = list, bits, rows }(listRows, scoreRunBits, scoreRunRows)
	listRows, scoreRunBits, scoreRunRows = 16, 6, 4
	var docs []*document
	for i := range 100 {
		docs = append(docs, doc(i, "n", frequentTop(i)))
	}
	ix := build(t, parseSettings(t, `{"rankingRules":["score"]}`), [][]*document{docs}, nil)
	ran := taken{}
	for range 6 {
		all := roaring.FlipInt(roaring.New(), 0, len(docs))
		all.AddMany([]uint32{101, 120, 128, 1 << 20})
		r := &Request{Limit: 2, MaxTotal: 1000, Scoring: numberScoring(t), Universe: []*roaring.Bitmap{all}}
		got, err := ran.search(ix, r)
		if err != nil {
			t.Fatal(err)
		}
		if want := "0 1"; found(got) != want {
			t.Fatalf("found %s, want %s", found(got), want)
		}
	}
	ran.wants(t, scoreCached)
}

// TestRunsAfterSmallBuckets sorts a small bucket before a large one with rows of the same run. The large one must still get the run's
// costs cached in the second search.
func TestRunsAfterSmallBuckets(t *testing.T) {
	defer func(n int) { listRows = n }(listRows)
	listRows = 64
	var docs []*document
	for i := range 600 {
		docs = append(docs, doc(i, "n", frequentTop(i), "class", min(i/3, 1)))
	}
	ix := build(t, parseSettings(t, `{"rankingRules":["sort","score"],"sortableAttributes":["class"]}`), [][]*document{docs}, nil)
	want := ""
	for i := range 4 {
		r := Request{Limit: 20, Sort: []SortKey{{Field: "class"}}, Scoring: numberScoring(t), Plan: new(Plan)}
		got := found(mustSearch(t, ix, r))
		if i == 0 {
			want = got
		}
		if got != want {
			t.Fatalf("search %d found %s, want %s", i, got, want)
		}
		ran := taken{}
		ran.add(r.Plan)
		if cached := ran[scoreCached] > 0; cached != (i > 0) {
			t.Errorf("search %d used cached costs: %v", i, cached)
		}
	}
}

// TestWhenRunsAreCached requests a run with buckets of several sizes, search by search.
func TestWhenRunsAreCached(t *testing.T) {
	var docs []*document
	for i := range 100 {
		docs = append(docs, doc(i, "n", i%41))
	}
	few, many := scoreRunRows-1, scoreRunRows
	for _, c := range []struct {
		searches [][]int // number of rows of the buckets of each search
		cached   string  // whether the last bucket of each search used cached costs
	}{
		{[][]int{{few}, {few}, {few, few}, {0}}, "----"},
		{[][]int{{many}, {many}, {few}, {0}}, "-+++"},
		{[][]int{{many, many, many}, {0}, {many, few}}, "--+"}, // one search counts only once
		{[][]int{{few, many}, {few, many}, {few}}, "-++"},
		{[][]int{{0, 0, many}, {0, few, many}, {0, few}}, "-++"},
	} {
		ix := build(t, parseSettings(t, `{"rankingRules":["score"]}`), [][]*document{docs}, nil)
		got := ""
		for _, asks := range c.searches {
			s := scoreSearch(ix, numberScoring(t))
			var costs []uint8
			for _, n := range asks {
				costs = scorerOf(s).costsOf(s, 0, 0, n)
			}
			got += map[bool]string{false: "-", true: "+"}[len(costs) == len(docs)]
		}
		if got != c.cached {
			t.Errorf("%v: %s, want %s", c.searches, got, c.cached)
		}
	}
}

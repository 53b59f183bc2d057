package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/rank"
)

// TestNumberedCountsAgree compares the most frequent values found by number with those found by the walk over all values, and both ways to
// find the last of equal counts, if many or few values have one count.
func TestNumberedCountsAgree(t *testing.T) {
	defer func(values int) { fewValues = values }(fewValues)
	fewValues = 0
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["s","n"]}`)
	for round, next := 0, 0; round < 25; round++ {
		var docs []string
		values := 1 + r.IntN(200)
		for range 1 + r.IntN(150) {
			next++
			docs = append(docs, fmt.Sprintf(`{"id":%d,"s":["V%d","w%d"],"n":[%d,%d.5]}`, 1+r.IntN(next), r.IntN(values), r.IntN(values*values), r.IntN(values), -r.IntN(5)))
		}
		l.put("a", "", docs...)
		v := held(l.c.Get("a").View())
		for _, name := range []string{"s", "n"} {
			id, _ := v.Fields.ID(name)
			counts := func() (sources []*facetSource) {
				for i, s := range v.Segments {
					candidates := s.LiveRows()
					if round%2 > 0 {
						candidates = roaring.AndNot(candidates, roaring.BitmapOf(0, 1, 2, 3, 7, 11))
					}
					if c := s.Column(id); c != nil && !candidates.IsEmpty() {
						sources = append(sources, newFacetSource(&candidateCounts{view: v, found: &rank.Result{}}, id, &facetRows{Live: s, column: c, among: candidates, segment: i}, name == "s", round%3 == 0, 0, nil))
					}
				}
				return sources
			}
			limit := 1 + r.IntN(30)
			if round%5 == 0 { // maxValuesPerFacet has no maximum
				limit = math.MaxInt
			}
			got, ok := countedMost(v, id, counts(), limit)
			if want := mostFrequent(counts(), limit); ok && !slices.EqualFunc(got, want, func(a, b facetValue) bool { return a.compare(&b) == 0 && a.count == b.count }) {
				t.Fatalf("round %d, %s, %d values of %d segments:\ngot  %v\nwant %v", round, name, limit, len(v.Segments), got, want)
			}
			if !ok {
				continue
			}
			for count := 1; count < 4; count++ {
				for _, last := range []bool{false, true} {
					walked := newNumberedCounts(v, id, counts(), nil).walkFromEnd(count, limit, last)
					gathered := newNumberedCounts(v, id, counts(), nil)
					gathered.each(count+1, func(*facetSource, int, int) {})
					end := gathered.gatherEnd(count, limit, last)
					if slices.SortFunc(end, compareCounted); last {
						slices.Reverse(end)
					}
					if !slices.EqualFunc(walked, end, func(a, b counted) bool { return compareCounted(a, b) == 0 }) {
						t.Fatalf("round %d, %s: the ends of %d with the count %d, last %t, are\n%v, walked\n%v, gathered", round, name, limit, count, last, walked, end)
					}
				}
			}
		}
		v.Release()
	}
}

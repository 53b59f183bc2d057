package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/rank"
	"svc/internal/settings"
	"svc/internal/turns"
)

// TestLookalikesYield counts and searches facets with many numbers and strings of equal text. The turn yields after each pair, and its
// error stops the work. The documents of a segment are computed once, and only if values are equal.
func TestLookalikesYield(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["n"]}`)
	const pairs = 60
	var mixed, numbers, texts []string
	for i := range pairs {
		mixed = append(mixed, fmt.Sprintf(`{"id":%d,"n":[%d,"%d"]}`, i, i, i))
		numbers = append(numbers, fmt.Sprintf(`{"id":%d,"n":%d}`, pairs+i, i))
		texts = append(texts, fmt.Sprintf(`{"id":%d,"n":"%d"}`, 2*pairs+i, i))
	}
	other := []string{fmt.Sprintf(`{"id":%d,"n":[-1,"x"]}`, 3*pairs)}
	for _, docs := range [][]string{mixed, numbers, texts, other} {
		l.put("a", "", docs...)
	}
	v := held(l.c.Get("a").View())
	defer v.Release()
	id, _ := v.Fields.ID("n")
	var candidates []*roaring.Bitmap
	for _, s := range v.Segments {
		candidates = append(candidates, s.LiveRows())
	}
	query := ""
	for name, count := range map[string]func(ctx context.Context) ([]facetValue, error){
		"distribution": func(ctx context.Context) ([]facetValue, error) {
			facets, err := distribution(ctx, v, []facetField{{id, "n", settings.Count}}, &rank.Result{Candidates: candidates}, nil, false)
			if err != nil {
				return nil, err
			}
			return facets[0].values, nil
		},
		"facet search": func(ctx context.Context) ([]facetValue, error) {
			return findFacetValues(ctx, v, &FacetRequest{FacetName: "n", FacetQuery: &query}, candidates, 1000)
		},
	} {
		turn := &fakeTurn{}
		values, err := count(context.WithValue(t.Context(), turns.Key, turns.Turn(turn)))
		if err != nil || turn.yields < pairs {
			t.Fatalf("%s: %d yields, %v", name, turn.yields, err)
		}
		for i := range values {
			if value := &values[i]; value.isNumber && value.number.Float >= 0 && value.count != 3 {
				t.Errorf("%s: %d documents have %s", name, value.count, value.shown)
			}
		}
		for _, ends := range []int{1, pairs / 2, pairs} { // cached matches of the first call take no yields
			if _, err := count(context.WithValue(t.Context(), turns.Key, turns.Turn(&fakeTurn{ends: ends}))); !errors.Is(err, errOver) {
				t.Errorf("%s: yield %d of %d failed: %v", name, ends, turn.yields, err)
			}
		}
	}
	asked := map[int]int{}
	both := countBoth(v, id, func(seg int) *roaring.Bitmap {
		asked[seg]++
		return candidates[seg]
	})
	for i := range pairs {
		number, text := facetValue{isNumber: true, number: numeric.Of(float64(i))}, facetValue{key: fmt.Append(nil, i)}
		if n := both(&number, &text); n != 1 {
			t.Errorf("%d documents have both a number and a string %d", n, i)
		}
	}
	if times := slices.Collect(maps.Values(asked)); !slices.Equal(times, []int{1}) {
		t.Errorf("of %d segments, documents were computed so often: %v", len(v.Segments), asked)
	}
}

package search

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/index"
	"svc/internal/settings"
	"svc/internal/turns"
)

// facetOrder is the meaning of an order of facet values for all code that lists them.
type facetOrder struct {
	// byValue: values are in their own order, as in columns. So the first of all are among the first of each part: of segments,
	// indexes and instances.
	byValue bool

	// spelt: the spelling decides between values, so all are spelt before they are arranged.
	spelt bool

	// selectors pick the values of one index. They are tried in this order.
	selectors []facetSelector

	// top keeps limit values of a list in the order of values. It may return a part of the list.
	top func(values []facetValue, limit int) []facetValue

	// matches picks the values that a facet search matched, if all are strings.
	matches func(m *matchedValues, ctx context.Context) ([]facetValue, error)

	// arrange orders all values that a facet search matched. q is nil if it has no query.
	arrange func(values []facetValue, q *facetQuery)
}

// facetOrders has a row for each order of the settings.
var facetOrders [settings.FacetOrders]facetOrder

func init() { // the selectors refer to the table
	facetOrders = [settings.FacetOrders]facetOrder{
		settings.Alpha: {
			byValue:   true,
			selectors: []facetSelector{(*facetSelection).lookalikes, (*facetSelection).byText, (*facetSelection).first},
			top:       firstOfValues,
			matches:   (*matchedValues).first,
			arrange:   arrangeByValue,
		},
		settings.Count: {
			spelt:     true,
			selectors: []facetSelector{(*facetSelection).lookalikes, (*facetSelection).repeated, (*facetSelection).numbered, (*facetSelection).mostFrequent},
			top:       topValues,
			matches:   (*matchedValues).mostFrequent,
			arrange:   func(values []facetValue, _ *facetQuery) { slices.SortStableFunc(values, beforeByCount) },
		},
	}
}

func orderOf(o settings.FacetOrder) *facetOrder { return &facetOrders[o] }

func firstOfValues(values []facetValue, limit int) []facetValue {
	return values[:min(limit, len(values))]
}

// arrangeByValue orders values by their texts; those matching a query by their folded forms, and then by their texts.
func arrangeByValue(values []facetValue, q *facetQuery) {
	slices.SortStableFunc(values, func(a, b facetValue) int { return bytes.Compare(a.key, b.key) })
	if q != nil {
		sortByFold(values, q.locales)
	}
}

// matchedValues are the strings of a facet that a facet search matched, by segment.
type matchedValues struct {
	view       *index.View
	field      facetField
	found      []*facetMatches
	candidates []*roaring.Bitmap // of each of found
	query      *facetQuery       // nil: none
	limit      int               // of values
	all        *lowestSpellings
}

// merged returns the first values of each segment, limit of each at most, in the order of values.
func (m *matchedValues) merged(ctx context.Context, limit int) (values []facetValue, err error) {
	for i, of := range m.found {
		if values, err = of.appendFirst(ctx, values, m.candidates[i], limit); err != nil {
			return nil, err
		}
	}
	return new(facetMemory).merge(values), nil
}

// first returns the first values in their order, spelled as documents have them.
func (m *matchedValues) first(ctx context.Context) ([]facetValue, error) {
	values, err := m.merged(ctx, m.limit)
	if err != nil {
		return nil, err
	}
	if m.query != nil { // values found by their folded forms are sorted by these
		sortByFold(values, m.query.locales)
	}
	values = firstOfValues(values, m.limit)
	turn := turns.Of(ctx)
	for i := range values {
		m.all.find(&values[i])
		if err := cmp.Or(turn.Yield(), values[i].spell(m.field)); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (m *matchedValues) mostFrequent(ctx context.Context) ([]facetValue, error) {
	return mostFrequentMatches(ctx, m.view, m.found, m.candidates, m.field, m.limit, m.all)
}

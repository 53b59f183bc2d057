package search

import (
	"bytes"
	"context"
	"slices"

	"svc/internal/settings"
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

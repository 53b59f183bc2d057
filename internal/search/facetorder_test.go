package search

import (
	"reflect"
	"testing"

	"svc/internal/settings"
)

// TestFacetOrdersAreComplete names what the row of an order of facet values lacks.
func TestFacetOrdersAreComplete(t *testing.T) {
	for o := range settings.FacetOrders {
		row := reflect.ValueOf(orderOf(o)).Elem()
		for i := range row.NumField() {
			if f := row.Field(i); f.Kind() != reflect.Bool && f.IsNil() {
				t.Errorf("the row of %q in facetOrders lacks %s", o, row.Type().Field(i).Name)
			}
		}
	}
}

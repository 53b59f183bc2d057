package search

import (
	"reflect"
	"testing"

	"svc/internal/settings"
)

// TestFacetOrdersAreComplete checks that each order of facet values sets every field.
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

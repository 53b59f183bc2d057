package search

import (
	"context"
	"strings"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/numeric"
	"svc/internal/rank"
)

// parseSort reads the sort parameter and checks each entry against the settings. contains says that filters in braces may use
// CONTAINS. code is the error code of the route's parameter.
func parseSort(ctx context.Context, v *index.View, sort []string, contains bool, code apierr.Code) ([]rank.SortKey, error) {
	keys := make([]rank.SortKey, 0, len(sort))
	for _, entry := range sort {
		key, err := parseSortKey(ctx, v, entry, contains, code)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// parseSortKey reads an entry of sort: an attribute, a point, or an attribute of elements with a condition in
// braces.
func parseSortKey(ctx context.Context, v *index.View, entry string, contains bool, code apierr.Code) (rank.SortKey, error) {
	fields := v.Fields
	name, desc := strings.CutSuffix(entry, ":desc")
	if !desc {
		var asc bool
		if name, asc = strings.CutSuffix(entry, ":asc"); !asc {
			return rank.SortKey{}, apierr.New(code, "Cannot sort by %q: write an attribute followed by `:asc` or `:desc`, such as `price:asc`.", entry)
		}
	}
	if strings.Contains(name, ".{") {
		key, err := parseElementSort(ctx, v, name, contains, code)
		key.Desc = desc
		return key, err
	}
	if strings.HasPrefix(name, "_geoPoint(") {
		lat, lng, ok := parsePoint(name)
		if !ok {
			return rank.SortKey{}, apierr.New(code, "Cannot sort by %q: `_geoPoint` takes a latitude from -90 to 90 and a longitude from -180 to 180, such as `_geoPoint(48.85, 2.35):asc`.", entry)
		}
		if !fields.InfoOf("_geo").Sortable {
			return rank.SortKey{}, apierr.New(code, "Cannot sort by distance: add `_geo` to the index's sortable attributes first.")
		}
		return rank.SortKey{Geo: true, Lat: lat, Lng: lng, Desc: desc}, nil
	}
	if strings.HasPrefix(name, "_geo") {
		return rank.SortKey{}, apierr.New(code, "`%s` is reserved and cannot be sorted on. Sort by distance with `_geoPoint(lat, lng):asc`.", name)
	}
	if name == "" || !fields.InfoOf(name).Sortable {
		return rank.SortKey{}, apierr.New(code, "Attribute %q is not sortable. Add it to the index's sortable attributes first.", name)
	}
	return rank.SortKey{Field: name, Desc: desc}, nil
}

// parsePoint reads `_geoPoint(lat, lng)`.
func parsePoint(s string) (lat, lng float64, ok bool) {
	s, ok = strings.CutPrefix(s, "_geoPoint(")
	if !ok {
		return 0, 0, false
	}
	if s, ok = strings.CutSuffix(s, ")"); !ok {
		return 0, 0, false
	}
	a, b, ok := strings.Cut(s, ",")
	if !ok {
		return 0, 0, false
	}
	lat, ok1 := numeric.ParseFloat(strings.TrimSpace(a))
	lng, ok2 := numeric.ParseFloat(strings.TrimSpace(b))
	if !ok1 || !ok2 || !(lat >= -90 && lat <= 90 && lng >= -180 && lng <= 180) {
		return 0, 0, false
	}
	return lat, lng, true
}

package filter

import (
	"slices"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/geo"
	"svc/segment"
)

// TestPlacesAreCheckedByBind binds filters that Parse accepts although the place is impossible.
func TestPlacesAreCheckedByBind(t *testing.T) {
	c := newCorpus(t, `{"filterableAttributes":["a","_geo","_geojson"]}`, nil)
	for src, want := range map[string]string{
		`_geoRadius(91, 2, 3)`:                       "1:12: A latitude",
		`_geoRadius(1, -181, 3)`:                     "1:12: A longitude",
		`_geoBoundingBox([1, 2], [3, 4])`:            "1:1: The top",
		`_geoBoundingBox([1, 2], [-91, 4])`:          "1:26: A latitude",
		`_geoPolygon([1, 2], [3, 4], [5, 181])`:      "1:30: A longitude",
		`NOT (a = 1 AND _geoRadius(-90.1, 2, 3, 4))`: "1:27: A latitude",
	} {
		e, err := Parse(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		_, err = e.Bind(c.env())
		if err == nil || apierr.From(err).Code != "invalid_search_filter" || !strings.HasPrefix(err.Error(), "Filter, "+want) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

// TestShapesAndPoints filters segments with points in rows 0 and 1 and shapes in rows 1, 2 and 3.
func TestShapesAndPoints(t *testing.T) {
	b := segment.NewBuilder(segment.BuilderOptions{})
	type located struct {
		lat, lng float64
		part     *geo.ShapePart
	}
	places := []located{
		{lat: 40, lng: 40},
		{lat: 40, lng: 40, part: &geo.ShapePart{Kind: geo.PointShape, Rings: [][]geo.LngLat{{{Lng: 2, Lat: 3}}}}},
		{part: &geo.ShapePart{Kind: geo.PolygonShape, Rings: [][]geo.LngLat{{{Lng: 0, Lat: 0}, {Lng: 10, Lat: 0}, {Lng: 10, Lat: 10}, {Lng: 0, Lat: 10}}}}},
		{part: &geo.ShapePart{Kind: geo.LineShape, Rings: [][]geo.LngLat{{{Lng: 178, Lat: -20}, {Lng: 182, Lat: -20}}}}},
		{},
	}
	for i, row := range places {
		b.StartDoc(segment.DocID(i), []byte{byte('a' + i)}, []byte(`{}`))
		if row.lat != 0 {
			b.Geo(row.lat, row.lng)
		}
		if row.part != nil {
			b.Shape(row.part)
		}
		b.EndDoc()
	}
	r := written(t, b)
	for _, test := range []struct {
		src                 string
		points, shapes, all []uint32 // matching rows if _geo, _geojson or both are filterable; nil: refused
	}{
		{`_geoRadius(40, 40, 1000)`, []uint32{0, 1}, []uint32{}, []uint32{0, 1}},
		{`_geoRadius(3, 2, 1000)`, []uint32{}, []uint32{1, 2}, []uint32{1, 2}},
		{`_geoRadius(-20, -179, 1000)`, []uint32{}, []uint32{3}, []uint32{3}},
		{`_geoBoundingBox([41, 41], [2, 1])`, []uint32{0, 1}, []uint32{1, 2}, []uint32{0, 1, 2}},
		{`_geoBoundingBox([-10, -179], [-30, 179.5])`, []uint32{}, []uint32{3}, []uint32{3}},
		{`NOT _geoBoundingBox([41, 41], [2, 1])`, []uint32{2, 3, 4}, []uint32{0, 3, 4}, []uint32{3, 4}},
		{`_geoPolygon([2, 1], [4, 1], [4, 3], [2, 3])`, nil, []uint32{1, 2}, []uint32{1, 2}},
		{`_geoPolygon([39, 39], [41, 39], [41, 41])`, nil, []uint32{}, []uint32{}},
		// A circle with 3 corners covers less than one with 125.
		{`_geoRadius(-21, 180, 120000)`, []uint32{}, []uint32{3}, []uint32{3}},
		{`_geoRadius(-19, 180, 120000)`, []uint32{}, []uint32{3}, []uint32{3}},
		{`_geoRadius(-19, 180, 120000, 3)`, []uint32{}, []uint32{}, []uint32{}},
		{`_geoRadius(40, 40, 1000) AND _geoRadius(3, 2, 1000)`, []uint32{}, []uint32{}, []uint32{1}},
	} {
		e, err := Parse(test.src)
		if err != nil {
			t.Fatal(err)
		}
		for filterable, want := range map[string][]uint32{`"_geo"`: test.points, `"_geojson"`: test.shapes, `"_geo","_geojson"`: test.all} {
			env := newCorpus(t, `{"filterableAttributes":[`+filterable+`]}`, nil).env()
			var place Where
			m, err := e.Matcher(env, func([]byte) Where { return place })
			for i, row := range places {
				if err != nil {
					break
				}
				if place = (Where{Point: row.lat != 0, Lat: row.lat, Lng: row.lng}); row.part != nil {
					place.Shape = []geo.ShapePart{*row.part}
				}
				if got, err := m.Matches([]byte(`{}`)); err != nil || got != slices.Contains(want, uint32(i)) {
					t.Errorf("%s with %s: Matches of document %d gives %v, %v", e, filterable, i, got, err)
				}
			}
			if (err == nil) != (want != nil) {
				t.Errorf("%s with %s: the matcher: %v", e, filterable, err)
			}
			bound, err := e.Bind(env)
			if (err == nil) != (want != nil) {
				t.Errorf("%s with %s: %v", e, filterable, err)
			}
			if err != nil {
				continue
			}
			if got := bound.Rows(segment.Live{Reader: r}).ToArray(); !slices.Equal(got, want) {
				t.Errorf("%s with %s: rows %d, want %d", e, filterable, got, want)
			}
		}
	}
}

// TestPatternsDoNotOpenPlaces checks that neither a pattern that covers the geo fields nor a sort setting allows geo functions. Their
// plain names do, whatever an earlier pattern allows.
func TestPatternsDoNotOpenPlaces(t *testing.T) {
	for _, tt := range []struct {
		settings string
		open     bool
	}{
		{`{"filterableAttributes":[{"attributePatterns":["*"]}]}`, false},
		{`{"filterableAttributes":[{"attributePatterns":["*"]}],"sortableAttributes":["_geo","_geojson"]}`, false},
		{`{"filterableAttributes":[{"attributePatterns":["_geo","_geojson"]}],"sortableAttributes":["_geo","_geojson"]}`, false},
		{`{"filterableAttributes":[{"attributePatterns":["_geo*"]}],"sortableAttributes":["_geo","_geojson"]}`, false},
		{`{"filterableAttributes":["_geo.lat","_geojson.type"],"sortableAttributes":["_geo","_geojson"]}`, false},
		{`{"sortableAttributes":["_geo","_geojson"]}`, false},
		{`{"filterableAttributes":["_geo","_geojson"]}`, true},
		{`{"filterableAttributes":[{"attributePatterns":["*"],"features":{"facetSearch":true,"filter":{"equality":false,"comparison":false}}},"_geo","_geojson"]}`, true},
	} {
		c := newCorpus(t, tt.settings, nil)
		for _, src := range []string{`_geoRadius(1, 2, 3)`, `_geoBoundingBox([2, 2], [1, 1])`, `_geoPolygon([1, 2], [3, 4], [5, 6])`, `NOT _geoRadius(1, 2, 3)`} {
			e, err := Parse(src)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = e.Bind(c.env()); (err == nil) != tt.open || err != nil && !strings.Contains(err.Error(), "in filterableAttributes") {
				t.Errorf("%s with %s: %v", src, tt.settings, err)
			}
		}
	}
}

package filter

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/geo"
	"svc/internal/settings"
	"svc/segment"
)

// defaultCorners is the number of corners of the polygon that stands for the circle of _geoRadius when shapes are tested.
const defaultCorners = 125

// geoMatch tests the position of a document: its point in _geo and its shape in _geojson, as far as they are filterable.
type geoMatch struct {
	points func(g *segment.Geo, dst *roaring.Bitmap) // adds the rows whose points lie inside; nil: points are not asked
	inside func(lat, lng float64) bool               // points of one point
	shapes *geo.Region                               // shapes that meet it match; nil: shapes are not asked
}

func (m geoMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	rows := roaring.New()
	if g := s.Geo(); g != nil && m.points != nil {
		m.points(g, rows)
	}
	if g := s.Shapes(); g != nil && m.shapes != nil {
		g.AddRowsMeeting(rows, m.shapes)
	}
	return within(rows, among)
}

func (m geoMatch) size(s source) int {
	n := 0
	if g := s.Geo(); g != nil && m.points != nil {
		n += g.Len()
	}
	if g := s.Shapes(); g != nil && m.shapes != nil {
		n += g.Len()
	}
	return n
}

// bindRadius binds a circle: exactly for points, as a polygon with the given number of corners for shapes.
func (env *Env) bindRadius(r *radius) (bound, error) {
	points, shapes, err := env.geoFields(r.at, "_geoRadius")
	if err == nil {
		err = env.checkPoint(r.center)
	}
	if err != nil {
		return nil, err
	}
	var m geoMatch
	if points {
		m.points = func(g *segment.Geo, dst *roaring.Bitmap) {
			g.AddRowsInCap(dst, r.center.lat, r.center.lng, r.meters)
		}
		m.inside = func(lat, lng float64) bool { return geo.Distance(r.center.lat, r.center.lng, lat, lng) <= r.meters }
	}
	if shapes {
		corners := defaultCorners
		if r.resolution != 0 {
			corners = int(r.resolution)
		}
		m.shapes = geo.CircleRegion(r.center.lat, r.center.lng, r.meters, corners)
	}
	return m, nil
}

// bindBox prepares a box for points, shapes or both, as the settings have them. It may cross the
// antimeridian.
func (env *Env) bindBox(b *box) (bound, error) {
	points, shapes, err := env.geoFields(b.at, "_geoBoundingBox")
	for _, p := range []point{b.topRight, b.bottomLeft} {
		if err == nil {
			err = env.checkPoint(p)
		}
	}
	if err != nil {
		return nil, err
	}
	top, right, bottom, left := b.topRight.lat, b.topRight.lng, b.bottomLeft.lat, b.bottomLeft.lng
	if top < bottom {
		return nil, apierr.New(env.Code, "%s: The top of the box (%v) is below its bottom (%v): write _geoBoundingBox([top, right], [bottom, left]).", b.at, top, bottom)
	}
	var m geoMatch
	if points {
		m.points = func(g *segment.Geo, dst *roaring.Bitmap) { g.AddRowsInBox(dst, top, left, bottom, right) }
		m.inside = func(lat, lng float64) bool { return geo.InBox(lat, lng, top, left, bottom, right) }
	}
	if shapes {
		m.shapes = geo.BoxRegion(top, left, bottom, right)
	}
	return m, nil
}

func (env *Env) bindPolygon(g *polygon) (bound, error) {
	if !env.Fields.InfoOf(settings.GeoJSONField).GeoFilter {
		return nil, apierr.New(env.Code, "%s: `_geoPolygon` needs `_geojson` in filterableAttributes, by its plain name, not by a pattern.", g.at)
	}
	corners := make([]geo.LngLat, len(g.points))
	for i, p := range g.points {
		if err := env.checkPoint(p); err != nil {
			return nil, err
		}
		corners[i] = geo.LngLat{Lng: p.lng, Lat: p.lat}
	}
	return geoMatch{shapes: geo.PolygonRegion(corners)}, nil
}

// geoFields says which of _geo and _geojson a function may ask: at least one.
func (env *Env) geoFields(at position, function string) (points, shapes bool, err error) {
	if env.scope != nil {
		if !env.Fields.InfoOf(env.scope.path + "." + settings.GeoField).Elements {
			return false, false, undeclared(env.Code, at, env.scope.path, env.scope.path+"."+settings.GeoField)
		}
		return true, false, nil
	}
	points, shapes = env.Fields.InfoOf(settings.GeoField).GeoFilter, env.Fields.InfoOf(settings.GeoJSONField).GeoFilter
	if !points && !shapes {
		err = apierr.New(env.Code, "%s: `%s` needs `_geo` or `_geojson` in filterableAttributes, by its plain name, not by a pattern.", at, function)
	}
	return points, shapes, err
}

// checkPoint refuses coordinates outside of the earth.
func (env *Env) checkPoint(p point) error {
	if math.Abs(p.lat) > 90 {
		return apierr.New(env.Code, "%s: A latitude must be between -90 and 90, but it is %v.", p.at, p.lat)
	}
	if math.Abs(p.lng) > 180 {
		return apierr.New(env.Code, "%s: A longitude must be between -180 and 180, but it is %v.", p.at, p.lng)
	}
	return nil
}

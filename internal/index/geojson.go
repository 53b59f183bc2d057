package index

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/geo"
	"svc/internal/jsontext"
	"svc/internal/settings"
)

var geoJSONKey = []byte(`"` + settings.GeoJSONField + `"`)

// shapeOf reads the shape of a document, in parts. reason says what is wrong with a _geojson field that is neither a GeoJSON object
// nor null.
func shapeOf(doc []byte) (parts []geo.ShapePart, reason string) {
	value, ok := geoField(doc, geoJSONKey, settings.GeoJSONField)
	if !ok {
		return nil, ""
	}
	return parseGeoJSON(value)
}

// parseGeoJSON reads a GeoJSON object (RFC 7946): a geometry, a feature or a collection of features. It ignores unknown
// members, altitudes, and empty coordinates of anything but a point. Rings need not be closed.
func parseGeoJSON(value []byte) (parts []geo.ShapePart, reason string) {
	var r shapeReader
	if err := r.object(value, true, true); err != nil {
		return nil, err.Error()
	}
	return r.parts, ""
}

type shapeReader struct{ parts []geo.ShapePart }

// object reads a geometry or, if allowed, a feature or a collection of features.
func (r *shapeReader) object(value []byte, feature, features bool) error {
	var kind string
	members := map[string][]byte{}
	err := document.Fields(value, func(name, v []byte) error {
		switch string(name) {
		case "type":
			if v[0] != '"' {
				return fmt.Errorf("its `type` is %s, which is not a string", excerpt(v))
			}
			kind = string(jsontext.AppendUnquoted(nil, v))
		case "coordinates", "geometries", "geometry", "features":
			members[string(name)] = v
		}
		return nil
	})
	switch {
	case len(value) == 0 || value[0] != '{':
		return fmt.Errorf("%s is not an object", excerpt(value))
	case err != nil:
		return err
	case kind == "":
		return errors.New("it needs a `type`, such as `Point` or `Polygon`")
	}
	member := func(name string) ([]byte, error) {
		v, ok := members[name]
		if !ok {
			return nil, fmt.Errorf("a `%s` needs `%s`", kind, name)
		}
		return v, nil
	}
	switch {
	case kind == "Feature" && feature:
		v, err := member("geometry")
		if err != nil || string(v) == "null" {
			return err
		}
		return r.object(v, false, false)
	case kind == "FeatureCollection" && features:
		v, err := member("features")
		if err != nil {
			return err
		}
		return document.Elements(v, func(v []byte) error { return r.object(v, true, false) })
	case kind == "GeometryCollection":
		v, err := member("geometries")
		if err != nil {
			return err
		}
		return document.Elements(v, func(v []byte) error { return r.object(v, false, false) })
	}
	read, known := geometries[kind]
	if !known {
		return fmt.Errorf("it has the type `%s` where a geometry is expected: Point, LineString, Polygon, MultiPoint, MultiLineString, MultiPolygon or GeometryCollection", kind)
	}
	v, err := member("coordinates")
	if err != nil {
		return err
	}
	return read(r, v)
}

var geometries = map[string]func(*shapeReader, []byte) error{
	"Point":           (*shapeReader).point,
	"LineString":      (*shapeReader).line,
	"Polygon":         (*shapeReader).polygon,
	"MultiPoint":      each((*shapeReader).point),
	"MultiLineString": each((*shapeReader).line),
	"MultiPolygon":    each((*shapeReader).polygon),
}

// each reads the values of an array, each by read.
func each(read func(*shapeReader, []byte) error) func(*shapeReader, []byte) error {
	return func(r *shapeReader, v []byte) error {
		return array(v, func(v []byte) error { return read(r, v) })
	}
}

// array calls f for each element of a JSON array.
func array(v []byte, f func(v []byte) error) error {
	if v[0] != '[' {
		return fmt.Errorf("its coordinates hold %s where an array is expected", excerpt(v))
	}
	return document.Elements(v, f)
}

// add appends a part to the shape. A part without a position in its outer ring is left out.
func (r *shapeReader) add(kind geo.ShapeKind, rings ...[]geo.LngLat) {
	if len(rings) > 0 && len(rings[0]) > 0 {
		r.parts = append(r.parts, geo.ShapePart{Kind: kind, Rings: rings})
	}
}

func (r *shapeReader) point(v []byte) error {
	p, err := position(v)
	if err == nil {
		r.add(geo.PointShape, []geo.LngLat{p})
	}
	return err
}

func (r *shapeReader) line(v []byte) error {
	line, err := positions(v)
	r.add(geo.LineShape, line)
	return err
}

// polygon reads the rings of a polygon. GeoJSON repeats the first position at the end of a ring, and segments
// do not.
func (r *shapeReader) polygon(v []byte) error {
	var rings [][]geo.LngLat
	err := array(v, func(v []byte) error {
		ring, err := positions(v)
		if n := len(ring); n > 1 && ring[0] == ring[n-1] {
			ring = ring[:n-1]
		}
		if len(ring) > 0 {
			rings = append(rings, ring)
		}
		return err
	})
	r.add(geo.PolygonShape, rings...)
	return err
}

func positions(v []byte) (all []geo.LngLat, err error) {
	err = array(v, func(v []byte) error {
		p, err := position(v)
		all = append(all, p)
		return err
	})
	return all, err
}

// position reads [longitude, latitude, …].
func position(v []byte) (p geo.LngLat, err error) {
	n := 0
	err = array(v, func(v []byte) error {
		x, err := strconv.ParseFloat(string(v), 64)
		if c := v[0]; err != nil || math.IsInf(x, 0) || c != '-' && (c < '0' || c > '9') {
			return fmt.Errorf("its coordinates hold %s where a number is expected", excerpt(v))
		}
		switch n {
		case 0:
			p.Lng = x
		case 1:
			p.Lat = x
		}
		n++
		return nil
	})
	if err == nil && n < 2 {
		err = fmt.Errorf("its coordinates hold %s where a longitude and a latitude are expected", excerpt(v))
	}
	return p, err
}

// geoChecks says which of the fields for places are checked, because they are in use.
type geoChecks struct{ points, shapes bool }

func geoChecksOf(f *settings.Fields) geoChecks {
	point, shape := f.InfoOf(settings.GeoField), f.InfoOf(settings.GeoJSONField)
	return geoChecks{points: point.Places, shapes: shape.Places}
}

// check checks the places of the document with an id.
func (g geoChecks) check(id, doc []byte) error {
	if g.points {
		if _, _, reason := geoOf(doc); reason != "" {
			return apierr.New("invalid_document_geo_field",
				"The `_geo` field of the document with the id `%s` is not a point: %s. Send {\"lat\": 48.85, \"lng\": 2.35}, or null.", id, reason)
		}
	}
	if g.shapes {
		if _, reason := shapeOf(doc); reason != "" {
			return apierr.New("invalid_document_geo_field",
				"The `_geojson` field of the document with the id `%s` is not GeoJSON: %s. Send an object such as {\"type\": \"Point\", \"coordinates\": [2.35, 48.85]}, longitude first, or null.", id, reason)
		}
	}
	return nil
}

// geoField returns the raw value of a first-level field, unless it is null. key is its name in quotes.
func geoField(doc, key []byte, name string) (value []byte, ok bool) {
	if !bytes.Contains(doc, key) { // nearly always, and much cheaper than looking at the fields
		return nil, false
	}
	err := document.Fields(doc, func(n, v []byte) error {
		if string(n) == name {
			value = v
			return errFound
		}
		return nil
	})
	return value, err == errFound && string(value) != "null"
}

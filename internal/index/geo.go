package index

import (
	"errors"

	"svc/internal/document"
	"svc/internal/jsontext"
	"svc/internal/numeric"
	"svc/internal/settings"
)

// point is a position on the globe, in degrees.
type point struct{ lat, lng float64 }

var geoKey = []byte(`"` + settings.GeoField + `"`)

var errFound = errors.New("found")

// geoOf returns the point in the _geo field of a document. ok is false if the document has no valid point. If the field is invalid and
// not null, reason describes the error.
func geoOf(doc []byte) (p point, ok bool, reason string) {
	value, ok := geoField(doc, geoKey, settings.GeoField)
	if !ok {
		return p, false, ""
	}
	return parsePoint(value)
}

// parsePoint reads {"lat": …, "lng": …} with numbers or numeric strings and nothing else.
func parsePoint(value []byte) (p point, ok bool, reason string) {
	var lat, lng bool
	err := document.Fields(value, func(name, v []byte) error {
		var to *float64
		switch string(name) {
		case "lat":
			to, lat = &p.lat, true
		case "lng":
			to, lng = &p.lng, true
		default:
			reason = "it has a field `" + string(name) + "`; only `lat` and `lng` belong there"
			return errFound
		}
		var valid bool
		if *to, valid = degrees(v); !valid {
			reason = "its `" + string(name) + "` is " + excerpt(v) + ", which is not a number"
			return errFound
		}
		return nil
	})
	switch {
	case reason != "":
	case err != nil:
		reason = "it is " + excerpt(value) + ", which is not an object"
	case !lat || !lng:
		reason = "it needs both `lat` and `lng`"
	default:
		return p, true, ""
	}
	return point{}, false, reason
}

// degrees reads a JSON number, or a string that holds one.
func degrees(v []byte) (float64, bool) {
	if len(v) > 0 && v[0] == '"' {
		v = jsontext.AppendUnquoted(nil, v)
	} else if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	return numeric.ParseFloat(string(v))
}

func excerpt(v []byte) string {
	if len(v) > 40 {
		return string(v[:40]) + "…"
	}
	return string(v)
}

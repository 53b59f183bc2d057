package rank

import (
	"cmp"
	"math"
	"slices"

	"svc/segment"
)

const (
	earthRadius   = 6371000.0 // metres
	geoMargin     = 1.0       // metres within which documents are equally far
	geoBucketSize = 1000      // documents in a bucket at most
)

type point struct{ lat, lng float64 } // degrees

// Distance is the great-circle distance of two points given in degrees, in metres, exact to the millimetre.
func Distance(lat1, lng1, lat2, lng2 float64) float64 {
	const rad = math.Pi / 180
	sinLat := math.Sin((lat2 - lat1) * rad / 2)
	sinLng := math.Sin((lng2 - lng1) * rad / 2)
	h := sinLat*sinLat + math.Cos(lat1*rad)*math.Cos(lat2*rad)*sinLng*sinLng
	return math.Round(2*earthRadius*math.Asin(math.Sqrt(min(h, 1)))*1000) / 1000
}

// located is an entry of a list with its point.
type located struct {
	index    int
	id       segment.DocID
	point    point
	distance float64
}

// geoCosts numbers the entries by groups of about the same distance. The value of a
// group is that of its first document.
//
// With few documents the order inside a metre is that of their ids, so that
// groups do not depend on fractions; with many it is the true distance.
func (s *search) geoCosts(e []entry, r *rule, costs []uint32) []SortValue {
	var found []located
	for i := range e {
		seg := s.ix.Segments[e[i].segment]
		if g := seg.Geo(); g != nil {
			if lat, lng, ok := g.Point(segment.Row(e[i].row)); ok {
				found = append(found, located{i, seg.DocID(segment.Row(e[i].row)), point{lat, lng},
					Distance(r.point.lat, r.point.lng, lat, lng)})
				continue
			}
		}
		costs[i] = math.MaxUint32
	}
	few := len(found) < geoBucketSize
	slices.SortFunc(found, func(a, b located) int {
		if few {
			return cmp.Or(cmp.Compare(math.Trunc(a.distance), math.Trunc(b.distance)), cmp.Compare(a.id, b.id))
		}
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.id, b.id))
	})
	if r.desc {
		slices.Reverse(found)
	}
	var values []SortValue
	for k := 0; k < len(found); {
		first := &found[k]
		n := 0
		for k+n < len(found) && n < geoBucketSize && math.Abs(found[k+n].distance-first.distance) <= geoMargin {
			costs[found[k+n].index] = uint32(len(values))
			n++
		}
		values = append(values, SortValue{Class: OfPlace, Number: first.distance, Lat: first.point.lat, Lng: first.point.lng})
		k += n
	}
	for i := range costs {
		if costs[i] == math.MaxUint32 {
			costs[i] = uint32(len(values))
		}
	}
	return append(values, SortValue{Class: OfNothing})
}

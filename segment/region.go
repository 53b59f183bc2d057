package segment

import (
	"math"
	"slices"
)

// LngLat is a place in degrees.
type LngLat struct{ Lng, Lat float64 }

// Region is what shapes are tested against: the inside of rings by the even-odd rule, and the rings
// themselves. As in GeoJSON (RFC 7946, 3.1.1), an edge is straight in the plane of longitude and latitude. Longitudes
// may run beyond ±180, so that a region across the antimeridian is in one piece. Immutable.
type Region struct {
	rings [][]LngLat // the last position of each is joined with its first
	box   box
}

// box is a closed rectangle of longitudes and latitudes.
type box struct{ minLng, minLat, maxLng, maxLat float64 }

// emptyBox meets nothing and adds nothing to a union.
var emptyBox = box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}

func (b box) union(o box) box {
	return box{min(b.minLng, o.minLng), min(b.minLat, o.minLat), max(b.maxLng, o.maxLng), max(b.maxLat, o.maxLat)}
}

func (b box) meets(o box) bool {
	return b.minLng <= o.maxLng && o.minLng <= b.maxLng && b.minLat <= o.maxLat && o.minLat <= b.maxLat
}

func boxOf(rings [][]LngLat) box {
	b := emptyBox
	for _, ring := range rings {
		for _, p := range ring {
			b = b.union(box{p.Lng, p.Lat, p.Lng, p.Lat})
		}
	}
	return b
}

func newRegion(rings ...[]LngLat) *Region { return &Region{rings, boxOf(rings)} }

// PolygonRegion is the polygon with these corners, which it keeps.
func PolygonRegion(corners []LngLat) *Region { return newRegion(corners) }

// BoxRegion is a box with its edges; left > right means that it crosses the antimeridian.
func BoxRegion(top, left, bottom, right float64) *Region {
	if left > right {
		right += 360
	}
	return newRegion(rectangle(left, bottom, right, top))
}

func rectangle(left, bottom, right, top float64) []LngLat {
	return []LngLat{{left, bottom}, {right, bottom}, {right, top}, {left, top}}
}

// CircleRegion is the polygon whose corners lie at meters from a place, at equal angles, the first in the north.
func CircleRegion(lat, lng, meters float64, corners int) *Region {
	angle := meters / earthMeters
	if angle >= math.Pi {
		return newRegion(rectangle(-180, -90, 180, 90))
	}
	const degree = math.Pi / 180
	north, south := angle >= (90-lat)*degree, angle >= (90+lat)*degree // whether the poles are inside
	if north && south {
		// All but a circle around the antipode, which has neither pole.
		hole := CircleRegion(-lat, lng+180, math.Pi*earthMeters-meters, corners)
		return newRegion(rectangle(lng, -90, lng+360, 90), hole.rings[0])
	}
	ring := make([]LngLat, corners)
	sinLat, cosLat := math.Sincos(lat * degree)
	sinAngle, cosAngle := math.Sincos(angle)
	for i := range ring {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(corners))
		sinTo := min(max(sinLat*cosAngle+cosLat*sinAngle*cos, -1), 1)
		east := math.Atan2(sin*sinAngle*cosLat, cosAngle-sinLat*sinTo)
		ring[i] = LngLat{lng + east/degree, math.Asin(sinTo) / degree}
	}
	if north || south {
		// In the plane a circle around a pole is a strip between its corners, from west to east, and the pole.
		slices.SortFunc(ring, func(a, b LngLat) int {
			if a.Lng < b.Lng {
				return -1
			} else if a.Lng > b.Lng {
				return 1
			}
			return 0
		})
		pole := 90.0
		if south {
			pole = -90
		}
		first := ring[0]
		ring = append(ring, LngLat{first.Lng + 360, first.Lat}, LngLat{first.Lng + 360, pole}, LngLat{first.Lng, pole})
	}
	return newRegion(ring)
}

// shifted returns the region so many degrees further east.
func (r *Region) shifted(degrees float64) *Region {
	if degrees == 0 {
		return r
	}
	rings := make([][]LngLat, len(r.rings))
	for i, ring := range r.rings {
		rings[i] = slices.Clone(ring)
		for j := range rings[i] {
			rings[i][j].Lng += degrees
		}
	}
	return newRegion(rings...)
}

// meets reports whether a part of a shape and the region have a place in common.
func (r *Region) meets(kind ShapeKind, rings [][]LngLat) bool {
	// Where no edges cross, each ring lies wholly inside or wholly outside: one position tells.
	for _, ring := range rings {
		if len(ring) > 0 && contains(r.rings, ring[0]) {
			return true
		}
	}
	if kind == PointShape {
		return false
	}
	for _, ring := range rings {
		for i := range ring {
			a, b := ring[i], ring[0]
			if i+1 < len(ring) {
				b = ring[i+1]
			} else if kind == LineShape {
				break
			}
			if r.box.meets(boxOfEdge(a, b)) && r.crossed(a, b) {
				return true
			}
		}
	}
	if kind == PolygonShape {
		for _, ring := range r.rings {
			if contains(rings, ring[0]) {
				return true
			}
		}
	}
	return false
}

func boxOfEdge(a, b LngLat) box {
	return box{min(a.Lng, b.Lng), min(a.Lat, b.Lat), max(a.Lng, b.Lng), max(a.Lat, b.Lat)}
}

// crossed reports whether an edge touches one of the region's.
func (r *Region) crossed(a, b LngLat) bool {
	for _, ring := range r.rings {
		last := ring[len(ring)-1]
		for _, p := range ring {
			if edgesMeet(a, b, last, p) {
				return true
			}
			last = p
		}
	}
	return false
}

// contains reports whether a place lies in the rings by the even-odd rule, or on one of them.
func contains(rings [][]LngLat, p LngLat) bool {
	inside := false
	for _, ring := range rings {
		if len(ring) == 0 {
			continue
		}
		a := ring[len(ring)-1]
		for _, b := range ring {
			side := turn(a, b, p)
			if side == 0 && inBox(a, b, p) {
				return true
			}
			// A ray to the east crosses the edge when it ends above p, begins not above it, and p is west of it.
			if (a.Lat > p.Lat) != (b.Lat > p.Lat) && (side > 0) == (b.Lat > a.Lat) {
				inside = !inside
			}
			a = b
		}
	}
	return inside
}

// edgesMeet reports whether two closed edges have a place in common.
func edgesMeet(a, b, c, d LngLat) bool {
	if !boxOfEdge(a, b).meets(boxOfEdge(c, d)) {
		return false
	}
	c1, d1, a1, b1 := turn(a, b, c), turn(a, b, d), turn(c, d, a), turn(c, d, b)
	return (c1 > 0) != (d1 > 0) && c1 != 0 && d1 != 0 && (a1 > 0) != (b1 > 0) && a1 != 0 && b1 != 0 ||
		c1 == 0 && inBox(a, b, c) || d1 == 0 && inBox(a, b, d) ||
		a1 == 0 && inBox(c, d, a) || b1 == 0 && inBox(c, d, b)
}

// turn is positive when the way a → b → c turns left, negative when right, 0 when it is straight.
func turn(a, b, c LngLat) float64 {
	return (b.Lng-a.Lng)*(c.Lat-a.Lat) - (b.Lat-a.Lat)*(c.Lng-a.Lng)
}

// inBox reports whether p lies in the box of an edge: on the edge itself, when it is on its line.
func inBox(a, b, p LngLat) bool {
	return min(a.Lng, b.Lng) <= p.Lng && p.Lng <= max(a.Lng, b.Lng) && min(a.Lat, b.Lat) <= p.Lat && p.Lat <= max(a.Lat, b.Lat)
}

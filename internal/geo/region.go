package geo

import (
	"math"
	"slices"
)

// EarthMeters is the radius of the sphere on which distances are measured.
const EarthMeters = 6371000

// Distance returns the meters between two points given in degrees, by the haversine formula.
func Distance(lat1, lng1, lat2, lng2 float64) float64 {
	const degree = math.Pi / 180
	sinLat := math.Sin((lat2 - lat1) * degree / 2)
	sinLng := math.Sin((lng2 - lng1) * degree / 2)
	h := sinLat*sinLat + math.Cos(lat1*degree)*math.Cos(lat2*degree)*sinLng*sinLng
	return 2 * EarthMeters * math.Asin(math.Sqrt(min(h, 1)))
}

// InBox reports whether a point is in a box, including its edges. If left > right, the box crosses the antimeridian.
func InBox(lat, lng, top, left, bottom, right float64) bool {
	if lat < bottom || lat > top {
		return false
	}
	if left <= right {
		return left <= lng && lng <= right
	}
	return lng >= left || lng <= right
}

// LngLat is a place in degrees.
type LngLat struct{ Lng, Lat float64 }

// Region is the region that shapes are tested against: the inside of rings by the even-odd rule, and the rings themselves. As in
// GeoJSON (RFC 7946, 3.1.1), an edge is straight in the plane of longitude and latitude. Longitudes may go beyond ±180, so that a
// region across the antimeridian is in one piece. It is immutable.
type Region struct {
	rings  [][]LngLat // the last position of each is joined with its first
	bounds Box        // of the rings
}

// Box is a closed rectangle of longitudes and latitudes.
type Box struct{ MinLng, MinLat, MaxLng, MaxLat float64 }

// EmptyBox meets nothing and adds nothing to a union.
var EmptyBox = Box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}

// Union returns the least box around both.
func (b Box) Union(o Box) Box {
	return Box{min(b.MinLng, o.MinLng), min(b.MinLat, o.MinLat), max(b.MaxLng, o.MaxLng), max(b.MaxLat, o.MaxLat)}
}

// Meets reports whether the boxes have a place in common.
func (b Box) Meets(o Box) bool {
	return b.MinLng <= o.MaxLng && o.MinLng <= b.MaxLng && b.MinLat <= o.MaxLat && o.MinLat <= b.MaxLat
}

// Shifted returns the box moved east by degrees.
func (b Box) Shifted(degrees float64) Box {
	return Box{b.MinLng + degrees, b.MinLat, b.MaxLng + degrees, b.MaxLat}
}

// holds reports whether p is in the box. If b is the box of an edge and p is on its line, it reports whether p is on the edge.
func (b Box) holds(p LngLat) bool {
	return b.MinLng <= p.Lng && p.Lng <= b.MaxLng && b.MinLat <= p.Lat && p.Lat <= b.MaxLat
}

// BoxOf returns the least box around all positions of rings.
func BoxOf(rings [][]LngLat) Box {
	b := EmptyBox
	for _, ring := range rings {
		for _, p := range ring {
			b = b.Union(Box{p.Lng, p.Lat, p.Lng, p.Lat})
		}
	}
	return b
}

func newRegion(rings ...[]LngLat) *Region { return &Region{rings, BoxOf(rings)} }

// PolygonRegion is the polygon with these corners, which it keeps.
func PolygonRegion(corners []LngLat) *Region { return newRegion(corners) }

// BoxRegion is a box with its edges. If left > right, it crosses the antimeridian.
func BoxRegion(top, left, bottom, right float64) *Region {
	if left > right {
		right += 360
	}
	return newRegion(rectangle(left, bottom, right, top))
}

func rectangle(left, bottom, right, top float64) []LngLat {
	return []LngLat{{left, bottom}, {right, bottom}, {right, top}, {left, top}}
}

// CircleRegion is the polygon whose corners are at a distance in meters from a place, at equal angles, the first one in the north.
func CircleRegion(lat, lng, meters float64, corners int) *Region {
	angle := meters / EarthMeters
	if angle >= math.Pi {
		return newRegion(rectangle(-180, -90, 180, 90))
	}
	const degree = math.Pi / 180
	north, south := angle >= (90-lat)*degree, angle >= (90+lat)*degree // whether the poles are inside
	if north && south {
		// All but a circle around the antipode, which has neither pole.
		hole := CircleRegion(-lat, lng+180, math.Pi*EarthMeters-meters, corners)
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

// Rings returns the rings, which are the region's.
func (r *Region) Rings() [][]LngLat { return r.rings }

// Bounds returns the box around the region.
func (r *Region) Bounds() Box { return r.bounds }

// Shifted returns the region moved east by degrees.
func (r *Region) Shifted(degrees float64) *Region {
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

// Meets reports whether a part of a shape and the region have a place in common.
func (r *Region) Meets(kind ShapeKind, rings [][]LngLat) bool {
	// If no edges cross, each ring is completely inside or completely outside, so one position decides.
	for _, ring := range rings {
		if len(ring) > 0 && contains(r.rings, ring[0]) {
			return true
		}
	}
	if kind == PointShape {
		return false
	}
	if near := r.edgesIn(BoxOf(rings)); len(near) > 0 {
		for _, ring := range rings {
			for i := range ring {
				e := edge{ring[i], ring[0]}
				if i+1 < len(ring) {
					e.b = ring[i+1]
				} else if kind == LineShape {
					break
				}
				if slices.ContainsFunc(near, e.Meets) {
					return true
				}
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

// edge is a closed line between two places.
type edge struct{ a, b LngLat }

func (e edge) bounds() Box {
	return Box{min(e.a.Lng, e.b.Lng), min(e.a.Lat, e.b.Lat), max(e.a.Lng, e.b.Lng), max(e.a.Lat, e.b.Lat)}
}

// edgesIn returns the edges of the region whose boxes meet b. For small shapes, they are few.
func (r *Region) edgesIn(b Box) []edge {
	var near []edge
	for _, ring := range r.rings {
		last := ring[len(ring)-1]
		for _, p := range ring {
			if e := (edge{last, p}); e.bounds().Meets(b) {
				near = append(near, e)
			}
			last = p
		}
	}
	return near
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
			if !(a.Lat > p.Lat && b.Lat > p.Lat || a.Lat < p.Lat && b.Lat < p.Lat) {
				side := turn(a, b, p)
				if side == 0 && (edge{a, b}).bounds().holds(p) {
					return true
				}
				// A ray to the east crosses the edge when one end is above p, the other not, and p is west of it.
				if (a.Lat > p.Lat) != (b.Lat > p.Lat) && (side > 0) == (b.Lat > a.Lat) {
					inside = !inside
				}
			}
			a = b
		}
	}
	return inside
}

// Meets reports whether two edges have a place in common.
func (e edge) Meets(o edge) bool {
	if !e.bounds().Meets(o.bounds()) {
		return false
	}
	oa, ob, ea, eb := turn(e.a, e.b, o.a), turn(e.a, e.b, o.b), turn(o.a, o.b, e.a), turn(o.a, o.b, e.b)
	return (oa > 0) != (ob > 0) && oa != 0 && ob != 0 && (ea > 0) != (eb > 0) && ea != 0 && eb != 0 ||
		oa == 0 && e.bounds().holds(o.a) || ob == 0 && e.bounds().holds(o.b) ||
		ea == 0 && o.bounds().holds(e.a) || eb == 0 && o.bounds().holds(e.b)
}

// turn is positive when the way a → b → c turns left, negative when right, 0 when it is straight.
func turn(a, b, c LngLat) float64 {
	return (b.Lng-a.Lng)*(c.Lat-a.Lat) - (b.Lat-a.Lat)*(c.Lng-a.Lng)
}

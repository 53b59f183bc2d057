package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/geo"
	"svc/segment"
)

// ringSearch searches rings around the point, the nearest first.
const ringSearch accessPath = "rings around the point"

// A large bucket is sorted by distance in growing circles around the place. Descending order uses circles around the opposite place
// of the earth: the distances to both add up to half the circumference. So only the points of the page, and some more, are measured.

// ringGrowth is the factor by which the radius of a circle with too few documents grows.
const ringGrowth = 2

// halfwayRound is the largest distance on the sphere of Distance, in metres.
var halfwayRound = geo.Distance(0, 0, 0, 180)

// points returns how many points the index has, and the documents of a bucket that have one.
func points(s *findings, b *bucket) (all int, located rows) {
	located = make(rows, len(b.rows))
	for seg, r := range b.rows {
		if g := s.ix.Segments[seg].Geo(); g != nil {
			all += g.Len()
			located[seg] = and(r, g.Rows())
		}
	}
	return all, located
}

// ofRings returns the effort of finding the wanted documents of a bucket by ring search: a ring with enough of them also has points
// of other buckets. ok is false if the bucket has too few documents.
func ofRings(s *search, b *bucket) (effort, bool) {
	if b.n < geoBucketSize {
		return 0, false
	}
	all, located := points(&s.findings, b)
	n := located.count()
	if n < geoBucketSize {
		return 0, false
	}
	// Circles are up to ringGrowth² times as large as needed. Documents without a point are skipped in either case.
	found := float64(all) * float64(wanted(s, b)) / float64(n) * ringGrowth * ringGrowth
	return measureRow * effort(found+float64(b.n-n)), true
}

// ringWalk divides a bucket with many located documents by distance.
type ringWalk struct {
	s       *search
	b       *bucket
	r       *geoSort
	center  point
	left    rows // outside the circle
	n       int  // of left
	nowhere rows // without a point
	waiting []located
	meters  float64 // radius of the circle
	larger  float64 // radius of the next one
}

// newRingWalk prepares circles that are expected to contain as many documents as the page needs. Descending order starts from the
// opposite point of the globe.
func newRingWalk(s *search, b *bucket, r *geoSort) *ringWalk {
	w := &ringWalk{s: s, b: b, r: r, center: r.point}
	if r.desc {
		w.center = point{-r.point.lat, math.Remainder(r.point.lng+180, 360)}
	}
	var all int
	all, w.left = points(&s.findings, b)
	w.nowhere = b.rows.andNot(w.left)
	w.n = w.left.count()
	w.larger = firstRadius(&s.findings, w.left, w.center, max(wanted(s, b)*all/w.n, 1))
	return w
}

// next returns the documents with the next distance. Documents without a point come last.
func (w *ringWalk) next() (*bucket, verdict) {
	for {
		if len(w.waiting) > 0 {
			if w.isInside(w.waiting[0].distance) {
				group := firstGroup(w.waiting)
				in := make(rows, len(w.b.rows))
				for _, l := range w.waiting[:group] {
					if in[l.segment] == nil {
						in[l.segment] = roaring.New()
					}
					in[l.segment].Add(l.row)
				}
				value := w.waiting[0].value()
				w.waiting = w.waiting[group:]
				return w.b.part(in), verdict{value: value}
			}
		}
		switch {
		case w.meters > 0 && w.s.late():
			return w.b, verdict{} // time is over: not split further
		case w.n > 0 || len(w.waiting) > 0:
			w.grow()
		case w.nowhere.isEmpty():
			return nil, verdict{}
		default:
			sub := w.b.part(w.nowhere)
			w.nowhere = nil
			return sub, verdict{value: SortValue{Class: OfNothing}}
		}
	}
}

// isInside reports whether all documents that may be in the same group as one at a distance are within the ring. A margin allows for
// errors of the spherical arithmetic.
func (w *ringWalk) isInside(distance float64) bool {
	if w.r.desc { // from the center
		distance = halfwayRound - distance
	}
	return w.n == 0 || distance+2*geoMargin <= w.meters
}

// grow takes a larger circle.
func (w *ringWalk) grow() {
	w.meters, w.larger = w.larger, w.larger*ringGrowth
	found := w.left
	if w.meters < halfwayRound {
		found = make(rows, len(w.left))
		for seg, r := range w.left {
			if r != nil {
				inside := roaring.New()
				w.s.ix.Segments[seg].Geo().AddRowsInCap(inside, w.center.lat, w.center.lng, w.meters)
				found[seg] = and(inside, r)
			}
		}
	}
	w.left = w.left.andNot(found)
	w.n -= found.count()
	for seg, in := range found {
		if in == nil {
			continue
		}
		for it := in.Iterator(); it.HasNext(); {
			if l, ok := locate(&w.s.findings, seg, it.Next(), w.r); ok {
				w.waiting = append(w.waiting, l)
			}
		}
	}
	sortLocated(w.waiting, false, w.r.desc)
}

// firstRadius returns the radius of a circle that likely has the wanted number of points, estimated from points nearby.
func firstRadius(s *findings, left rows, center point, wanted int) float64 {
	var distances []float64
	var around []uint32
	for seg, r := range left {
		if r == nil {
			continue
		}
		g := s.ix.Segments[seg].Geo()
		around = g.AppendAround(around[:0], center.lat, center.lng, 2*wanted)
		for _, row := range around {
			if lat, lng, ok := g.Point(segment.Row(row)); ok {
				distances = append(distances, geo.Distance(center.lat, center.lng, lat, lng))
			}
		}
	}
	slices.Sort(distances)
	return 2*geoMargin + distances[min(wanted, len(distances)-1)]
}

type point struct{ lat, lng float64 } // degrees

// Distance is the great-circle distance of two points given in degrees, in metres, exact to the millimetre.
func Distance(lat1, lng1, lat2, lng2 float64) float64 {
	return math.Round(geo.Distance(lat1, lng1, lat2, lng2)*1000) / 1000
}

// located is a document with its point.
type located struct {
	entry    int // its index in a list
	segment  int
	row      uint32
	id       segment.DocID
	point    point
	distance float64
}

// locate finds the point of a row, if it has one.
func locate(s *findings, seg int, row uint32, r *geoSort) (located, bool) {
	live := s.ix.Segments[seg]
	if g := live.Geo(); g != nil {
		if lat, lng, ok := g.Point(segment.Row(row)); ok {
			return located{segment: seg, row: row, id: live.DocID(segment.Row(row)), point: point{lat, lng},
				distance: Distance(r.point.lat, r.point.lng, lat, lng)}, true
		}
	}
	return located{}, false
}

func (l *located) value() SortValue {
	return SortValue{Class: OfPlace, Number: l.distance, Lat: l.point.lat, Lng: l.point.lng}
}

// sortLocated sorts documents by distance. If few is set, documents within a metre are in the order of their ids, so that groups do
// not depend on fractions. Otherwise the order is that of the exact distances.
func sortLocated(found []located, few, desc bool) {
	slices.SortFunc(found, func(a, b located) int {
		x, y := a.distance, b.distance
		if few {
			x, y = math.Trunc(x), math.Trunc(y)
		}
		c := cmp.Or(cmp.Compare(x, y), cmp.Compare(a.id, b.id))
		if desc {
			return -c
		}
		return c
	})
}

// firstGroup returns how many of the sorted documents have about the same distance as the first.
func firstGroup(sorted []located) int {
	n := 1
	for n < len(sorted) && n < geoBucketSize && math.Abs(sorted[n].distance-sorted[0].distance) <= geoMargin {
		n++
	}
	return n
}

const (
	geoMargin     = 1.0  // metres within which distances count as equal
	geoBucketSize = 1000 // documents in a bucket at most
)

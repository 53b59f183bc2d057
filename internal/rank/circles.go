package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/geo"
	"svc/segment"
)

// A large bucket is sorted by distance in growing circles around the place, or, from
// the farthest on, around the opposite place of the earth: the distances to both add up to
// halfway round it. So only the points of the page, and some more, are measured.

// circleGrowth is what a circle's radius is multiplied by when it had too few documents.
const circleGrowth = 2

// halfwayRound is the largest distance on the sphere of Distance, in metres.
var halfwayRound = geo.Distance(0, 0, 0, 180)

// points returns how many points the index has, and the documents of a bucket that have one.
func points(s *view, b *bucket) (all int, located rows) {
	located = make(rows, len(b.rows))
	for seg, r := range b.rows {
		if g := s.ix.Segments[seg].Geo(); g != nil {
			all += g.Len()
			located[seg] = and(r, g.Rows())
		}
	}
	return all, located
}

// ofCircles is the effort of finding what is wanted of a bucket in circles: one with enough of its documents also has points of other
// buckets. false: they are too few.
func ofCircles(s *search, b *bucket) (effort, bool) {
	if b.n < geoBucketSize {
		return 0, false
	}
	all, located := points(&s.view, b)
	n := located.count()
	if n < geoBucketSize {
		return 0, false
	}
	// Circles are up to circleGrowth² times as large as needed. What has no point is passed over either way.
	found := float64(all) * float64(wanted(&s.out, b)) / float64(n) * circleGrowth * circleGrowth
	return measureRow * effort(found+float64(b.n-n)), true
}

// walkCircles yields a bucket with many located documents by distance.
func walkCircles(s *search, b *bucket, r *geoSort, yield func(*bucket, part) bool) {
	center := r.point
	if r.desc {
		center = point{-center.lat, math.Remainder(center.lng+180, 360)}
	}
	// fromCenter turns a distance from the place into that from the center.
	fromCenter := func(meters float64) float64 {
		if r.desc {
			return halfwayRound - meters
		}
		return meters
	}
	all, left := points(&s.view, b)
	nowhere := b.rows.andNot(left)
	n := left.count()
	var waiting []located // in order, not yet yielded
	for meters := firstCircle(&s.view, left, center, max(wanted(&s.out, b)*all/n, 1)); n > 0 || len(waiting) > 0; meters *= circleGrowth {
		found := left
		if meters < halfwayRound {
			found = make(rows, len(left))
			for seg, r := range left {
				if r != nil {
					inside := roaring.New()
					s.ix.Segments[seg].Geo().AddRowsInCap(inside, center.lat, center.lng, meters)
					found[seg] = and(inside, r)
				}
			}
		}
		left = left.andNot(found)
		n -= found.count()
		for seg, in := range found {
			if in == nil {
				continue
			}
			for it := in.Iterator(); it.HasNext(); {
				if l, ok := locate(&s.view, seg, it.Next(), r); ok {
					waiting = append(waiting, l)
				}
			}
		}
		sortLocated(waiting, false, r.desc)
		for len(waiting) > 0 {
			group := firstGroup(waiting)
			// Whoever may belong to a group that ends here is inside the circle; a margin more for the
			// arithmetic on the sphere.
			if n > 0 && fromCenter(waiting[0].distance)+2*geoMargin > meters {
				break
			}
			in := make(rows, len(b.rows))
			for _, l := range waiting[:group] {
				if in[l.segment] == nil {
					in[l.segment] = roaring.New()
				}
				in[l.segment].Add(l.row)
			}
			value := waiting[0].value()
			waiting = waiting[group:]
			if !yield(b.part(in), part{value: value}) {
				return
			}
		}
		if s.late() {
			yield(b, part{}) // which adds what is left without ranking it
			return
		}
	}
	if !nowhere.isEmpty() {
		yield(b.part(nowhere), part{value: SortValue{Class: OfNothing}})
	}
}

// firstCircle returns the radius of a circle that likely has the wanted number of points, judged by some points around.
func firstCircle(s *view, left rows, center point, wanted int) float64 {
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
func locate(s *view, seg int, row uint32, r *geoSort) (located, bool) {
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

// sortLocated sorts documents by distance. With few of them the order inside a metre is that of
// their ids, so that groups do not depend on fractions; with many it is the true distance.
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

// firstGroup returns how many of the sorted documents are about as far as the first.
func firstGroup(sorted []located) int {
	n := 1
	for n < len(sorted) && n < geoBucketSize && math.Abs(sorted[n].distance-sorted[0].distance) <= geoMargin {
		n++
	}
	return n
}

const (
	geoMargin     = 1.0  // metres within which documents are equally far
	geoBucketSize = 1000 // documents in a bucket at most
)

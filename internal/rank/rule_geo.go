package rank

import (
	"cmp"
	"math"
	"slices"

	"svc/internal/geo"
	"svc/internal/jsontext"
	"svc/segment"
)

// geoSort orders documents by their distance from a point.
type geoSort struct {
	key   string // under which its details stand
	desc  bool
	point point
}

func (r *geoSort) name() string { return r.key }

func (*geoSort) traits() traits { return traits{says: ByDistance} }

func (r *geoSort) split(s *search, b *bucket, i int) split {
	switch {
	case circles(s, b):
		return split{ringSearch, func(yield func(*bucket, part) bool) { walkCircles(s, b, r, yield) }}
	case b.paths == nil && s.setsFollow(i):
		return split{lookUpValues, func(yield func(*bucket, part) bool) { splitRows(s, b, b.rows, i, yield) }}
	}
	return declined
}

func (r *geoSort) costs(s *search, l *list, _ int, costs []uint32) outcome {
	return outcome{values: geoCosts(&s.view, l.entries, r, costs)}
}

func (r *geoSort) details(d *detailWriter, parts []part) int {
	d.open(r.key)
	v := &parts[0].value
	if v.Class == OfNothing {
		d.null("value")
		d.null("distance")
		return 1
	}
	d.name("value")
	d.dst = append(d.dst, `{"lat":`...)
	d.dst = jsontext.AppendFloat(d.dst, v.Lat)
	d.dst = append(d.dst, `,"lng":`...)
	d.dst = jsontext.AppendFloat(d.dst, v.Lng)
	d.dst = append(d.dst, '}')
	d.number("distance", v.Number)
	return 1
}

func (r *geoSort) value(parts []part) (ScoreValue, int) {
	return ScoreValue{Kind: ByDistance, Sort: parts[0].value, Desc: r.desc}, 1
}

const (
	geoMargin     = 1.0  // metres within which documents are equally far
	geoBucketSize = 1000 // documents in a bucket at most
)

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

// geoCosts numbers the entries by groups of about the same distance. The value of a
// group is that of its first document.
func geoCosts(s *view, e []entry, r *geoSort, costs []uint32) []SortValue {
	var found []located
	for i := range e {
		if l, ok := locate(s, int(e[i].segment), e[i].row, r); ok {
			l.entry = i
			found = append(found, l)
		} else {
			costs[i] = math.MaxUint32
		}
	}
	sortLocated(found, len(found) < geoBucketSize, r.desc)
	var values []SortValue
	for len(found) > 0 {
		n := firstGroup(found)
		for _, l := range found[:n] {
			costs[l.entry] = uint32(len(values))
		}
		values = append(values, found[0].value())
		found = found[n:]
	}
	for i := range costs {
		if costs[i] == math.MaxUint32 {
			costs[i] = uint32(len(values))
		}
	}
	return append(values, SortValue{Class: OfNothing})
}

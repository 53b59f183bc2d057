package rank

import (
	"math"

	"svc/internal/jsontext"
)

// geoSort orders documents by their distance from a point.
type geoSort struct {
	key   string // name of its details
	desc  bool
	point point
}

func (r *geoSort) name() string { return r.key }

func (*geoSort) traits() *traits { return &geoSortTraits }

var geoSortTraits = traits{row: measureRow, says: ByDistance, groups: true}

func (r *geoSort) access(s *search, b *bucket, i int) (p paths) {
	if b.interpretations == nil && s.setsFollow(i) {
		p[0] = access{effort(b.n) * measureRow, openRows}
	}
	if e, ok := ofRings(s, b); ok {
		p[1] = access{e, r.openRings}
	}
	return p
}

func (r *geoSort) openRings(s *search, b *bucket, _ int) split {
	var w *ringWalk
	return split{ringSearch, func() (*bucket, verdict) {
		if w == nil {
			w = newRingWalk(s, b, r)
		}
		return w.next()
	}}
}

func (r *geoSort) costs(s *search, l *list, _ int, costs []uint32) outcome {
	return outcome{values: geoCosts(&s.findings, l.entries, r, costs)}
}

func (r *geoSort) details(d *detailWriter, verdicts []verdict) int {
	d.open(r.key)
	v := &verdicts[0].value
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

func (r *geoSort) value(verdicts []verdict) (ScoreValue, int) {
	return ScoreValue{Kind: ByDistance, Sort: verdicts[0].value, Desc: r.desc}, 1
}

// geoCosts numbers the entries by groups of about the same distance. The value of a group is that of its first document.
func geoCosts(s *findings, e []entry, r *geoSort, costs []uint32) []SortValue {
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

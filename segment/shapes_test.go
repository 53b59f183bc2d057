package segment

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
)

// randomShape makes a shape of a few parts, mostly small, some across the antimeridian, some exact in units. None is
// at a pole, where regions have edges and only chance would tell meetsSlowly whether it is inside.
func randomShape(rng *rand.Rand) []ShapePart {
	parts := make([]ShapePart, 1+rng.IntN(3))
	for i := range parts {
		center := LngLat{rng.Float64()*360 - 180, rng.Float64()*180 - 90}
		size := math.Exp(rng.Float64()*7 - 3)
		round := rng.IntN(2) == 0
		place := func() LngLat {
			p := LngLat{center.Lng + rng.NormFloat64()*size, min(max(center.Lat+rng.NormFloat64()*size/2, -89.99), 89.99)}
			if round {
				p = LngLat{math.Round(p.Lng*1e4) / 1e4, math.Round(p.Lat*1e4) / 1e4}
			}
			return p
		}
		ring := func(n int) (ring []LngLat) {
			for range n {
				ring = append(ring, place())
			}
			return ring
		}
		s := &parts[i]
		switch s.Kind = ShapeKind(1 + rng.IntN(3)); s.Kind {
		case PointShape:
			s.Rings = [][]LngLat{ring(1)}
		case LineShape:
			s.Rings = [][]LngLat{ring(1 + rng.IntN(6))}
		case PolygonShape:
			for range 1 + rng.IntN(2) {
				s.Rings = append(s.Rings, ring(1+rng.IntN(7)))
			}
		}
	}
	return parts
}

func randomRegion(rng *rand.Rand) *Region {
	lat, lng := rng.Float64()*180-90, rng.Float64()*360-180
	switch rng.IntN(3) {
	case 0:
		return CircleRegion(lat, lng, math.Exp(rng.Float64()*17), 3+rng.IntN(100))
	case 1:
		return BoxRegion(lat, lng, rng.Float64()*(lat+90)-90, rng.Float64()*360-180)
	}
	var corners []LngLat
	for range 3 + rng.IntN(5) {
		corners = append(corners, LngLat{lng + rng.NormFloat64()*20, lat + rng.NormFloat64()*20})
	}
	return PolygonRegion(corners)
}

// meetsSlowly is Region.meets over again: it looks for a witness among the ends of all edges and the places where they cross.
func meetsSlowly(r *Region, s *ShapePart) bool {
	var shape [][2]LngLat
	for _, ring := range s.Rings {
		for i := range ring {
			if s.Kind == PolygonShape || i+1 < len(ring) || len(ring) == 1 {
				shape = append(shape, [2]LngLat{ring[i], ring[(i+1)%len(ring)]})
			}
		}
	}
	var region [][2]LngLat
	for _, ring := range r.rings {
		for i := range ring {
			region = append(region, [2]LngLat{ring[i], ring[(i+1)%len(ring)]})
		}
	}
	inside := func(edges [][2]LngLat, p LngLat) bool { // by a ray to the north
		n := 0
		for _, e := range edges {
			a, b := e[0], e[1]
			if (a.Lng > p.Lng) != (b.Lng > p.Lng) && a.Lat+(p.Lng-a.Lng)/(b.Lng-a.Lng)*(b.Lat-a.Lat) > p.Lat {
				n++
			}
		}
		return n%2 == 1
	}
	for _, e := range shape {
		if inside(region, e[0]) {
			return true
		}
		for _, f := range region {
			if s.Kind == PolygonShape && inside(shape, f[0]) {
				return true
			}
			// e[0] + t·u = f[0] + q·v
			u := LngLat{e[1].Lng - e[0].Lng, e[1].Lat - e[0].Lat}
			v := LngLat{f[1].Lng - f[0].Lng, f[1].Lat - f[0].Lat}
			w := LngLat{f[0].Lng - e[0].Lng, f[0].Lat - e[0].Lat}
			if d := u.Lng*v.Lat - u.Lat*v.Lng; d != 0 {
				t, q := (w.Lng*v.Lat-w.Lat*v.Lng)/d, (w.Lng*u.Lat-w.Lat*u.Lng)/d
				if t >= 0 && t <= 1 && q >= 0 && q <= 1 {
					return true
				}
			}
		}
	}
	return false
}

func checkShapes(t *testing.T, r *Reader, docs []*doc, rng *rand.Rand) {
	t.Helper()
	s := r.Shapes()
	want := wantRows(docs, func(d *doc) bool { return d.shape != nil })
	if s == nil {
		if len(want) > 0 {
			t.Fatal("no shapes")
		}
		return
	}
	if got := rowsOf(s.Rows()); !slices.Equal(got, want) || s.Len() != len(want) || !r.RecordsShapes() {
		t.Fatalf("rows with shapes %v, %d of them, want %v", got, s.Len(), want)
	}
	for range 20 {
		region := randomRegion(rng)
		got := roaring.New()
		s.AddRowsMeeting(got, region)
		want := wantRows(docs, func(d *doc) bool {
			return slices.ContainsFunc(d.shape, func(p ShapePart) bool {
				return meetsSlowly(region, &p) || meetsSlowly(region.shifted(360), &p) || meetsSlowly(region.shifted(-360), &p)
			})
		})
		if !slices.Equal(rowsOf(got), want) {
			t.Fatalf("region %v: %v, want %v", region.rings, rowsOf(got), want)
		}
	}
}

func TestShapePartsAreReadAsTheyWereWritten(t *testing.T) {
	rng := testRand(t)
	var d shapeDecoder
	for range 2000 {
		for _, p := range randomShape(rng) {
			code := appendShapePart(nil, &p)
			got, ok := d.decode(code)
			if !ok || got.Kind != p.Kind || fmt.Sprint(got.Rings) != fmt.Sprint(p.Rings) {
				t.Fatalf("%v became %v (%v)", p, got, ok)
			}
			for n := range code {
				if _, ok := d.decode(code[:n]); ok {
					t.Fatalf("%v: %d bytes of %x are a part", p, n, code)
				}
			}
		}
	}
	near := []LngLat{{2.3522, 48.8566}, {2.3523, 48.8567}, {2.3525, 48.8566}}
	if n := len(appendShapePart(nil, &ShapePart{PolygonShape, [][]LngLat{near}})); n > 25 {
		t.Errorf("three near corners take %d bytes", n)
	}
}

func FuzzShapePart(f *testing.F) {
	for _, p := range []ShapePart{
		{PointShape, [][]LngLat{{{1, 2}}}},
		{LineShape, [][]LngLat{{{1.0 / 3, 2}, {3, 4}}}},
		{PolygonShape, [][]LngLat{{{0, 0}, {9, 0}, {9, 9}}, {{1, 1}, {2, 1}, {2, 2}}}},
	} {
		f.Add(appendShapePart(nil, &p))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		var d, again shapeDecoder
		p, ok := d.decode(code)
		if !ok {
			return
		}
		q, ok := again.decode(appendShapePart(nil, p))
		if !ok || q.Kind != p.Kind || fmt.Sprint(q.Rings) != fmt.Sprint(p.Rings) {
			t.Fatalf("%v became %v (%v)", p, q, ok)
		}
		BoxRegion(10, -10, -10, 10).meets(p.Kind, p.Rings)
	})
}

// TestRegionsMeetWhatTheyTouch has the cases that chance does not find.
func TestRegionsMeetWhatTheyTouch(t *testing.T) {
	square := []LngLat{{0, 0}, {10, 0}, {10, 10}, {0, 10}}
	hole := []LngLat{{2, 2}, {8, 2}, {8, 8}, {2, 8}}
	point := func(lng, lat float64) ShapePart { return ShapePart{PointShape, [][]LngLat{{{lng, lat}}}} }
	line := func(p ...LngLat) ShapePart { return ShapePart{LineShape, [][]LngLat{p}} }
	frame := ShapePart{PolygonShape, [][]LngLat{square, hole}}
	box := BoxRegion
	for i, c := range []struct {
		region *Region
		part   ShapePart
		want   bool
	}{
		{box(10, 0, 0, 10), point(10, 10), true}, // a corner
		{box(10, 0, 0, 10), point(5, 10), true},  // an edge
		{box(10, 0, 0, 10), point(5, 10.0001), false},
		{box(5, 5, 5, 5), point(5, 5), true}, // no area
		{box(10, 0, 0, 10), line(LngLat{-5, 5}, LngLat{15, 5}), true},
		{box(10, 0, 0, 10), line(LngLat{-5, 0}, LngLat{15, 0}), true}, // along an edge
		{box(10, 0, 0, 10), line(LngLat{-5, 16}, LngLat{4, 7}), true},
		{box(10, 0, 0, 10), line(LngLat{-5, 14}, LngLat{14, 14}), false},
		{box(10, 0, 0, 10), line(LngLat{10, 12}, LngLat{10, 10}), true}, // ends at a corner
		{box(7, 3, 3, 7), frame, false},                                 // inside the hole
		{box(8, 3, 3, 7), frame, true},                                  // touches the hole
		{box(9.5, 0.5, 0.5, 9.5), frame, true},                          // around the hole
		{box(1, 0.5, 0.5, 1), frame, true},                              // inside the frame
		{box(20, -5, -5, 20), frame, true},                              // around all
		{box(20, 10, 10, 20), frame, true},                              // a common corner
		{box(20, 11, 10, 20), frame, false},
		{box(1, 170, -1, -170), point(-175, 0), true}, // the antimeridian
		{box(1, 170, -1, -170), point(175, 0), true},
		{box(1, 170, -1, -170), point(0, 0), false},
		{box(1, 170, -1, -170), line(LngLat{179, 0}, LngLat{181, 0}), true},
		{box(1, -179.5, -1, -179), line(LngLat{179, 0}, LngLat{181, 0}), true}, // a line that runs across
		{PolygonRegion(square), point(5, 5), true},
		{PolygonRegion(append(slices.Clone(square), square[0])), point(5, 5), true}, // closed
		{CircleRegion(89, 0, 200e3, 125), point(180, 89.5), true},                   // beyond the pole
		{CircleRegion(89, 0, 200e3, 125), point(180, 88), false},
		{CircleRegion(89, 0, 200e3, 125), point(-120, 90), true},
		{CircleRegion(-90, 33, 200e3, 125), point(170, -89), true},
		{CircleRegion(0, 179, 300e3, 125), point(-179, 0), true},
		{CircleRegion(0, 0, 20e6, 125), point(100, 60), true}, // nearly all
		{CircleRegion(0, 0, 20e6, 125), point(180, 0), false},
		{CircleRegion(0, 0, 20e6, 125), point(-179.95, 0.05), false},
		{CircleRegion(0, 0, 21e6, 125), point(180, 0), true}, // all
		{CircleRegion(0, 0, 0, 125), point(0, 0), true},
	} {
		var parts shapeParts
		parts.add(0, &c.part)
		got := false
		for _, degrees := range []float64{-360, 0, 360} {
			r := c.region.shifted(degrees)
			got = got || r.box.meets(parts.all[0].box) && r.meets(c.part.Kind, c.part.Rings)
		}
		if got != c.want {
			t.Errorf("case %d: %v and %v: %v", i, c.region.rings, c.part, got)
		}
	}
}

// TestCirclesAreRound compares the polygon of many corners with the distance it stands for.
func TestCirclesAreRound(t *testing.T) {
	rng := testRand(t)
	for range 3000 {
		lat, lng := rng.Float64()*180-90, rng.Float64()*360-180
		meters := math.Exp(rng.Float64()*7 + 10) // up to 24,000 km
		r := CircleRegion(lat, lng, meters, 1000)
		p := LngLat{rng.Float64()*360 - 180, math.Asin(rng.Float64()*2-1) * 180 / math.Pi}
		distance := Distance(lat, lng, p.Lat, p.Lng)
		// Edges straight in the plane are not so on the globe: most so near a pole.
		if math.Abs(distance/meters-1) < 0.01 || math.Abs(math.Abs(p.Lat)-90) < 3 || math.Abs(math.Abs(lat)-90)*math.Pi/180*earthMeters-meters < 300e3 &&
			math.Abs(math.Abs(lat)-90)*math.Pi/180*earthMeters-meters > -300e3 {
			continue
		}
		got := false
		for _, degrees := range []float64{-360, 0, 360} {
			got = got || contains(r.shifted(degrees).rings, p)
		}
		if got != (distance <= meters) {
			t.Fatalf("%v m around %v, %v: %v at %v m: %v", meters, lat, lng, p, distance, got)
		}
	}
}

func BenchmarkShapesInACircle(b *testing.B) {
	rng := testRand(b)
	const n = 100_000
	fs := vfs.NewMem()
	builder := NewBuilder(BuilderOptions{})
	for i := range n { // quarters of a few hundred metres, all over the globe
		builder.StartDoc(DocID(i), fmt.Append(nil, i), []byte(`{}`))
		center := LngLat{rng.Float64()*360 - 180, rng.Float64()*170 - 85}
		var ring []LngLat
		for j := range 12 {
			sin, cos := math.Sincos(float64(j) / 12 * 2 * math.Pi)
			ring = append(ring, LngLat{math.Round((center.Lng+sin/300)*1e6) / 1e6, math.Round((center.Lat+cos/300)*1e6) / 1e6})
		}
		builder.Shape(&ShapePart{PolygonShape, [][]LngLat{ring}})
		builder.EndDoc()
	}
	if _, err := builder.Write(context.Background(), fs, "a.seg"); err != nil {
		b.Fatal(err)
	}
	r := openSegment(b, fs, "a.seg")
	for _, kilometers := range []float64{10, 100, 1000} {
		b.Run(fmt.Sprint(kilometers, " km"), func(b *testing.B) {
			found := uint64(0)
			for b.Loop() {
				rows := roaring.New()
				r.Shapes().AddRowsMeeting(rows, CircleRegion(48.8, 2.3, kilometers*1000, 125))
				found = rows.GetCardinality()
			}
			b.ReportMetric(float64(found), "rows")
			b.ReportMetric(float64(len(r.section(tagShapes)))/n, "bytes/shape")
		})
	}
}

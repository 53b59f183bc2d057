package geo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func FuzzShapePart(f *testing.F) {
	for _, p := range []ShapePart{
		{PointShape, [][]LngLat{{{1, 2}}}},
		{LineShape, [][]LngLat{{{1.0 / 3, 2}, {3, 4}}}},
		{PolygonShape, [][]LngLat{{{0, 0}, {9, 0}, {9, 9}}, {{1, 1}, {2, 1}, {2, 2}}}},
	} {
		f.Add(AppendPart(nil, &p))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		var d, again Decoder
		p, ok := d.Decode(code)
		if !ok {
			return
		}
		q, ok := again.Decode(AppendPart(nil, p))
		if !ok || q.Kind != p.Kind || fmt.Sprint(q.Rings) != fmt.Sprint(p.Rings) {
			t.Fatalf("%v became %v (%v)", p, q, ok)
		}
		BoxRegion(10, -10, -10, 10).Meets(p.Kind, p.Rings)
	})
}

// TestRegionsMeetWhatTheyTouch checks cases that random tests do not reach.
func TestRegionsMeetWhatTheyTouch(t *testing.T) {
	square := []LngLat{{0, 0}, {10, 0}, {10, 10}, {0, 10}}
	hole := []LngLat{{2, 2}, {8, 2}, {8, 8}, {2, 8}}
	point := func(lng, lat float64) ShapePart {
		return ShapePart{PointShape, [][]LngLat{{{lng, lat}}}}
	}
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
		{box(20, -5, -5, 20), frame, true},                              // around everything
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
		{CircleRegion(0, 0, 20e6, 125), point(100, 60), true}, // nearly the whole globe
		{CircleRegion(0, 0, 20e6, 125), point(180, 0), false},
		{CircleRegion(0, 0, 20e6, 125), point(-179.95, 0.05), false},
		{CircleRegion(0, 0, 21e6, 125), point(180, 0), true}, // the whole globe
		{CircleRegion(0, 0, 0, 125), point(0, 0), true},
	} {
		got := false
		for _, degrees := range []float64{-360, 0, 360} {
			r := c.region.Shifted(degrees)
			got = got || r.Bounds().Meets(BoxOf(c.part.Rings)) && r.Meets(c.part.Kind, c.part.Rings)
		}
		if got != c.want {
			t.Errorf("case %d: %v and %v: %v", i, c.region.rings, c.part, got)
		}
	}
}

// TestCirclesAreRound compares the polygon of a circle with the distance that it stands for.
func TestCirclesAreRound(t *testing.T) {
	rng := testRand(t)
	for range 3000 {
		lat, lng := rng.Float64()*180-90, rng.Float64()*360-180
		meters := math.Exp(rng.Float64()*7 + 10) // up to 24,000 km
		r := CircleRegion(lat, lng, meters, 1000)
		p := LngLat{rng.Float64()*360 - 180, math.Asin(rng.Float64()*2-1) * 180 / math.Pi}
		distance := Distance(lat, lng, p.Lat, p.Lng)
		// Straight edges in the plane are not straight on the globe, least of all near a pole.
		if math.Abs(distance/meters-1) < 0.01 || math.Abs(math.Abs(p.Lat)-90) < 3 || math.Abs(math.Abs(lat)-90)*math.Pi/180*EarthMeters-meters < 300e3 &&
			math.Abs(math.Abs(lat)-90)*math.Pi/180*EarthMeters-meters > -300e3 {
			continue
		}
		got := false
		for _, degrees := range []float64{-360, 0, 360} {
			got = got || contains(r.Shifted(degrees).rings, p)
		}
		if got != (distance <= meters) {
			t.Fatalf("%v m around %v, %v: %v at %v m: %v", meters, lat, lng, p, distance, got)
		}
	}
}

func testRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

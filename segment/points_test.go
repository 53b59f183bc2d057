package segment

import (
	"testing"

	"github.com/golang/geo/r1"
	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
)

// TestCellsCoverBoxes checks that the cells of a box contain all its points, even if one of its parallels crosses the edge of a large cell
// twice and neither contains a corner of the other.
func TestCellsCoverBoxes(t *testing.T) {
	rng := testRand(t)
	for range 500 {
		// The upper edge of a face between longitudes of -45° and 45° goes up from 35.3° of latitude to 45° and down again.
		lat := r1.Interval{Lo: (34 + 12*rng.Float64()) * degree, Hi: (46 + 44*rng.Float64()) * degree}
		lng := s1.IntervalFromEndpoints((-45+45*rng.Float64())*degree, 45*rng.Float64()*degree)
		if rng.IntN(2) == 0 {
			lat.Lo, lat.Hi = -lat.Hi, -lat.Lo
		}
		cells := coverer.Covering(box{s2.Rect{Lat: lat, Lng: lng}})
		for range 200 {
			p := s2.LatLng{Lat: s1.Angle(lat.Lo + rng.Float64()*lat.Length()), Lng: s1.Angle(lng.Lo + rng.Float64()*lng.Length())}
			if !cells.ContainsCellID(s2.CellIDFromLatLng(p)) {
				t.Fatalf("the point %v is in no cell of the box %v, %v", p, lat, lng)
			}
		}
	}
}

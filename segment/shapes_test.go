package segment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/geo"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// randomShape makes a shape of a few parts, mostly small, some across the antimeridian, some exact in units. None touches a pole, where
// meetsSlowly could not tell whether it is inside.
func randomShape(rng *rand.Rand) []geo.ShapePart {
	parts := make([]geo.ShapePart, 1+rng.IntN(3))
	for i := range parts {
		center := geo.LngLat{Lng: rng.Float64()*360 - 180, Lat: rng.Float64()*180 - 90}
		size := math.Exp(rng.Float64()*7 - 3)
		round := rng.IntN(2) == 0
		place := func() geo.LngLat {
			p := geo.LngLat{Lng: center.Lng + rng.NormFloat64()*size, Lat: min(max(center.Lat+rng.NormFloat64()*size/2, -89.99), 89.99)}
			if round {
				p = geo.LngLat{Lng: math.Round(p.Lng*1e4) / 1e4, Lat: math.Round(p.Lat*1e4) / 1e4}
			}
			return p
		}
		ring := func(n int) (ring []geo.LngLat) {
			for range n {
				ring = append(ring, place())
			}
			return ring
		}
		s := &parts[i]
		switch s.Kind = geo.ShapeKind(1 + rng.IntN(3)); s.Kind {
		case geo.PointShape:
			s.Rings = [][]geo.LngLat{ring(1)}
		case geo.LineShape:
			s.Rings = [][]geo.LngLat{ring(1 + rng.IntN(6))}
		case geo.PolygonShape:
			for range 1 + rng.IntN(2) {
				s.Rings = append(s.Rings, ring(1+rng.IntN(7)))
			}
		}
	}
	return parts
}

func randomRegion(rng *rand.Rand) *geo.Region {
	lat, lng := rng.Float64()*180-90, rng.Float64()*360-180
	switch rng.IntN(3) {
	case 0:
		return geo.CircleRegion(lat, lng, math.Exp(rng.Float64()*17), 3+rng.IntN(100))
	case 1:
		return geo.BoxRegion(lat, lng, rng.Float64()*(lat+90)-90, rng.Float64()*360-180)
	}
	var corners []geo.LngLat
	for range 3 + rng.IntN(5) {
		corners = append(corners, geo.LngLat{Lng: lng + rng.NormFloat64()*20, Lat: lat + rng.NormFloat64()*20})
	}
	return geo.PolygonRegion(corners)
}

// meetsSlowly is the reference implementation of Region.Meets. It tests the ends of all edges and their intersections.
func meetsSlowly(r *geo.Region, s *geo.ShapePart) bool {
	var shape [][2]geo.LngLat
	for _, ring := range s.Rings {
		for i := range ring {
			if s.Kind == geo.PolygonShape || i+1 < len(ring) || len(ring) == 1 {
				shape = append(shape, [2]geo.LngLat{ring[i], ring[(i+1)%len(ring)]})
			}
		}
	}
	var region [][2]geo.LngLat
	for _, ring := range r.Rings() {
		for i := range ring {
			region = append(region, [2]geo.LngLat{ring[i], ring[(i+1)%len(ring)]})
		}
	}
	inside := func(edges [][2]geo.LngLat, p geo.LngLat) bool { // by a ray to the north
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
			if s.Kind == geo.PolygonShape && inside(shape, f[0]) {
				return true
			}
			// e[0] + t·u = f[0] + q·v
			u := geo.LngLat{Lng: e[1].Lng - e[0].Lng, Lat: e[1].Lat - e[0].Lat}
			v := geo.LngLat{Lng: f[1].Lng - f[0].Lng, Lat: f[1].Lat - f[0].Lat}
			w := geo.LngLat{Lng: f[0].Lng - e[0].Lng, Lat: f[0].Lat - e[0].Lat}
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
			return slices.ContainsFunc(d.shape, func(p geo.ShapePart) bool {
				return meetsSlowly(region, &p) || meetsSlowly(region.Shifted(360), &p) || meetsSlowly(region.Shifted(-360), &p)
			})
		})
		if !slices.Equal(rowsOf(got), want) {
			t.Fatalf("region %v: %v, want %v", region.Rings(), rowsOf(got), want)
		}
	}
}

func TestShapePartRoundTrip(t *testing.T) {
	rng := testRand(t)
	var d geo.Decoder
	for range 2000 {
		for _, p := range randomShape(rng) {
			code := geo.AppendPart(nil, &p)
			got, ok := d.Decode(code)
			if !ok || got.Kind != p.Kind || !slices.EqualFunc(got.Rings, p.Rings, slices.Equal) {
				t.Fatalf("%v became %v (%v)", p, got, ok)
			}
			for n := range code {
				if _, ok := d.Decode(code[:n]); ok {
					t.Fatalf("%v: %d bytes of %x are accepted as a part", p, n, code)
				}
			}
		}
	}
	near := []geo.LngLat{{Lng: 2.3522, Lat: 48.8566}, {Lng: 2.3523, Lat: 48.8567}, {Lng: 2.3525, Lat: 48.8566}}
	if n := len(geo.AppendPart(nil, &geo.ShapePart{Kind: geo.PolygonShape, Rings: [][]geo.LngLat{near}})); n > 25 {
		t.Errorf("three near corners take %d bytes", n)
	}
}

// TestDamageOfAShape flips a byte in each block of a section of shapes. Searches elsewhere are not affected; searches that read the block
// fail and name it.
func TestDamageOfAShape(t *testing.T) {
	fs := vfs.NewMem()
	quarters(t, fs, "a.seg", 3000, testRand(t))
	data := readFile(t, fs, "a.seg")
	open := func() *Reader {
		t.Helper()
		r, err := openBytes(t, data)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sound := open()
	defer sound.Close()
	s := sound.sections[slices.IndexFunc(sound.sections, func(s section) bool { return s.tag == tagShapes })]
	var stripes []*geo.Region // stripes of the globe
	var want []string
	ask := func(r *Reader, region *geo.Region) string {
		rows := roaring.New()
		r.Shapes().AddRowsMeeting(rows, region)
		return fmt.Sprint(rows)
	}
	for lng := -180.0; lng < 180; lng += 30 {
		for lat := -80.0; lat < 80; lat += 40 {
			stripes = append(stripes, geo.BoxRegion(lat+5, lng+1, lat, lng+6))
			want = append(want, ask(sound, stripes[len(stripes)-1]))
		}
	}
	failed, blocks := 0, (s.offset+s.length-1)>>blockBits-s.offset>>blockBits+1
	for block := range blocks {
		at := s.offset>>blockBits + block
		place := min(max(at<<blockBits+1000, s.offset), s.offset+s.length-1)
		data[place] ^= 4
		r := open()
		for i, region := range stripes {
			var got string
			err := mapped.Guard(func() error { got = ask(r, region); return nil })
			var damage *apierr.Corruption
			switch {
			case errors.As(err, &damage):
				failed++
				if damage.Offset != at<<blockBits || !strings.Contains(damage.Section, tagShapes.String()) {
					t.Errorf("a flipped byte at %d: %v", place, damage)
				}
			case err != nil || got != want[i]:
				t.Errorf("a flipped byte at %d: a wrong answer, or %v", place, err)
			}
		}
		if err := r.Verify(); err == nil {
			t.Errorf("a flipped byte at %d is not found", place)
		}
		r.Close()
		data[place] ^= 4
	}
	if most := int(blocks) * len(stripes); failed == 0 || failed > most/2 {
		t.Errorf("%d of %d searches found the damage", failed, most)
	}
}

// quarters writes a segment of shapes of a few hundred meters, all over the globe.
func quarters(t testing.TB, fs vfs.FS, name string, n int, rng *rand.Rand) {
	t.Helper()
	builder := NewBuilder(BuilderOptions{})
	for i := range n {
		builder.StartDoc(DocID(i), fmt.Append(nil, i), []byte(`{}`))
		center := geo.LngLat{Lng: rng.Float64()*360 - 180, Lat: rng.Float64()*170 - 85}
		var ring []geo.LngLat
		for j := range 12 {
			sin, cos := math.Sincos(float64(j) / 12 * 2 * math.Pi)
			ring = append(ring, geo.LngLat{Lng: math.Round((center.Lng+sin/300)*1e6) / 1e6, Lat: math.Round((center.Lat+cos/300)*1e6) / 1e6})
		}
		builder.Shape(&geo.ShapePart{Kind: geo.PolygonShape, Rings: [][]geo.LngLat{ring}})
		builder.EndDoc()
	}
	if _, err := builder.Write(context.Background(), fs, name); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkFirstShapes searches the shapes of a file that was just opened.
func BenchmarkFirstShapes(b *testing.B) {
	name := filepath.ToSlash(filepath.Join(b.TempDir(), "a.seg"))
	quarters(b, vfs.OS, name, 500_000, testRand(b))
	region := geo.CircleRegion(48.8, 2.3, 100_000, 125)
	for b.Loop() {
		b.StopTimer()
		r, err := Open(vfs.OS, name)
		if err != nil {
			b.Fatal(err)
		}
		rows := roaring.New()
		b.StartTimer()
		r.Shapes().AddRowsMeeting(rows, region)
		b.StopTimer()
		if rows.IsEmpty() {
			b.Error("nothing found")
		}
		r.Close()
		b.StartTimer()
	}
}

func BenchmarkShapesInACircle(b *testing.B) {
	const n = 100_000
	fs := vfs.NewMem()
	quarters(b, fs, "a.seg", n, testRand(b))
	r := openSegment(b, fs, "a.seg")
	for _, kilometers := range []float64{10, 100, 1000} {
		b.Run(fmt.Sprint(kilometers, " km"), func(b *testing.B) {
			found := uint64(0)
			for b.Loop() {
				rows := roaring.New()
				r.Shapes().AddRowsMeeting(rows, geo.CircleRegion(48.8, 2.3, kilometers*1000, 125))
				found = rows.GetCardinality()
			}
			b.ReportMetric(float64(found), "rows")
			b.ReportMetric(float64(len(r.section(tagShapes)))/n, "bytes/shape")
		})
	}
}

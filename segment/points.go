package segment

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/golang/geo/r1"
	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"

	"svc/internal/geo"
)

// geoPoints gathers points by ascending row.
type geoPoints struct {
	rows     []uint32
	lat, lng []float64
}

func (g *geoPoints) add(row uint32, lat, lng float64) {
	if n := len(g.rows); n > 0 && g.rows[n-1] == row || math.IsNaN(lat) || math.IsNaN(lng) {
		return
	}
	g.rows = append(g.rows, row)
	g.lat = append(g.lat, lat)
	g.lng = append(g.lng, lng)
}

// write writes:
//
//	u32 n, u32 0
//	n × f64 latitude, n × f64 longitude, by ascending row
//	n × u64 S2 leaf cell, ascending
//	n × u32 row, ascending
//	n × u32 index of the cell's point in the arrays by row
func (g *geoPoints) write(f *fileWriter, t tag) {
	n := len(g.rows)
	if n == 0 {
		return
	}
	le := binary.LittleEndian
	cells := make([]uint64, n)
	order := make([]uint32, n)
	for i := range g.rows {
		cells[i] = uint64(cellOf(g.lat[i], g.lng[i]))
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int {
		switch {
		case cells[a] < cells[b]:
			return -1
		case cells[a] > cells[b]:
			return 1
		}
		return 0
	})
	b := le.AppendUint64(nil, uint64(n))
	for _, x := range g.lat {
		b = le.AppendUint64(b, math.Float64bits(x))
	}
	for _, x := range g.lng {
		b = le.AppendUint64(b, math.Float64bits(x))
	}
	for _, i := range order {
		b = le.AppendUint64(b, cells[i])
	}
	for _, r := range g.rows {
		b = le.AppendUint32(b, r)
	}
	for _, i := range order {
		b = le.AppendUint32(b, i)
	}
	f.add(t, 0, b)
}

// cellOf returns the leaf cell of a point.
func cellOf(lat, lng float64) s2.CellID {
	return s2.CellIDFromLatLng(s2.LatLngFromDegrees(lat, lng).Normalized())
}

func (g *geoPoints) memoryBytes() int64 { return int64(cap(g.rows)*4 + (cap(g.lat)+cap(g.lng))*8) }

// Geo holds one point a row, in degrees.
type Geo struct {
	n            int
	lats, lngs   []byte
	cells        []byte
	rows, byCell []byte
	all          func() *roaring.Bitmap // the rows, made when first asked for
}

const geoPointBytes = 32

// openGeo cuts the section into its five arrays, by row and by cell, and reports false if its length does not
// fit its count. The bitmap of all rows is made on first use.
func openGeo(section []byte) (*Geo, bool) {
	if len(section) < 8 {
		return nil, false
	}
	n := uint64(binary.LittleEndian.Uint32(section))
	if uint64(len(section)) != 8+geoPointBytes*n {
		return nil, false
	}
	p := section[8:]
	take := func(size uint64) []byte {
		q := p[:size*n]
		p = p[size*n:]
		return q
	}
	g := &Geo{n: int(n), lats: take(8), lngs: take(8), cells: take(8), rows: take(4), byCell: take(4)}
	g.all = sync.OnceValue(func() *roaring.Bitmap {
		rows := make([]uint32, g.n)
		for i := range rows {
			rows[i] = g.row(i)
		}
		b := roaring.New()
		b.AddMany(rows)
		b.RunOptimize()
		return b
	})
	return g, true
}

// Geo returns the points of the segment, or nil when no row has one.
func (r *Reader) Geo() *Geo {
	p := r.section(tagGeo)
	if p == nil {
		return nil
	}
	return r.geo.get(func() *Geo {
		r.blocks.touch(p)
		g, ok := openGeo(p)
		if !ok {
			r.broken(tagGeo, "%d bytes", len(p))
		}
		return g
	})
}

func (g *Geo) row(i int) uint32 { return binary.LittleEndian.Uint32(g.rows[4*i:]) }

func (g *Geo) at(i int) (lat, lng float64) {
	return math.Float64frombits(binary.LittleEndian.Uint64(g.lats[8*i:])), math.Float64frombits(binary.LittleEndian.Uint64(g.lngs[8*i:]))
}

// Len returns the number of rows that have a point.
func (g *Geo) Len() int { return g.n }

// Rows returns the rows that have a point. The bitmap is shared and must not be modified.
func (g *Geo) Rows() *roaring.Bitmap { return g.all() }

// AppendAround appends at most n rows whose points are close to a place on the curve that orders the cells. They are near it, but
// rarely the nearest.
func (g *Geo) AppendAround(dst []uint32, lat, lng float64, n int) []uint32 {
	cell := uint64(cellOf(lat, lng))
	at := sort.Search(g.n, func(i int) bool { return binary.LittleEndian.Uint64(g.cells[8*i:]) >= cell })
	for i := max(at-n/2, 0); i < min(at+(n+1)/2, g.n); i++ {
		if k := int(binary.LittleEndian.Uint32(g.byCell[4*i:])); k < g.n {
			dst = append(dst, g.row(k))
		}
	}
	return dst
}

// Point returns the point of a row.
func (g *Geo) Point(row Row) (lat, lng float64, ok bool) {
	i := sort.Search(g.n, func(i int) bool { return g.row(i) >= uint32(row) })
	if i == g.n || g.row(i) != uint32(row) {
		return 0, 0, false
	}
	lat, lng = g.at(i)
	return lat, lng, true
}

// AddRowsInCap adds the rows within meters of the point.
func (g *Geo) AddRowsInCap(dst *roaring.Bitmap, lat, lng, meters float64) {
	if !(meters >= 0) {
		return
	}
	test := func(a, b float64) bool { return geo.Distance(lat, lng, a, b) <= meters }
	// A millimetre more, so that no point on the edge is lost to the arithmetic of the covering.
	center := s2.PointFromLatLng(s2.LatLngFromDegrees(lat, lng).Normalized())
	angle := s1.Angle(min((meters+1e-3)/geo.EarthMeters, math.Pi))
	g.addCovered(dst, s2.CapFromCenterAngle(center, angle), test)
}

// AddRowsInBox adds the rows in the box, including its edges. If left > right, the box crosses the antimeridian.
func (g *Geo) AddRowsInBox(dst *roaring.Bitmap, top, left, bottom, right float64) {
	if !(bottom <= top) {
		return
	}
	test := func(lat, lng float64) bool { return geo.InBox(lat, lng, top, left, bottom, right) }
	const edge = 1e-9
	rect := s2.Rect{
		Lat: r1.Interval{Lo: max(bottom*degree-edge, -math.Pi/2), Hi: min(top*degree+edge, math.Pi/2)},
		Lng: s1.FullInterval(),
	}
	width := right - left
	if width < 0 {
		width += 360
	}
	if left >= -180 && left <= 180 && right >= -180 && right <= 180 && width < 359 {
		rect.Lng = s1.IntervalFromEndpoints(left*degree, right*degree).Expanded(edge)
	}
	if !rect.IsValid() || rect.IsEmpty() {
		return
	}
	g.addCovered(dst, box{rect}, test)
}

// degree is one in radians.
const degree = math.Pi / 180

// box is a Rect whose IntersectsCell returns true for every cell that it meets. Rect.IntersectsCell misses some, including whole
// faces, because it takes the longitudes of an edge that goes west for its complement.
type box struct{ s2.Rect }

func (b box) IntersectsCell(c s2.Cell) bool { return b.Intersects(c.RectBound()) }

// coverer makes few cells of a region, for it is their edges that cost time.
var coverer = s2.RegionCoverer{MaxLevel: s2.MaxLevel, LevelMod: 1, MaxCells: 16}

// addCovered adds the rows whose points pass the test. It reads only the cells that cover the region.
func (g *Geo) addCovered(dst *roaring.Bitmap, region s2.Region, test func(lat, lng float64) bool) {
	var rows []uint32
	for _, cell := range coverer.Covering(region) {
		from, to := uint64(cell.RangeMin()), uint64(cell.RangeMax())
		i := sort.Search(g.n, func(i int) bool { return binary.LittleEndian.Uint64(g.cells[8*i:]) >= from })
		for ; i < g.n && binary.LittleEndian.Uint64(g.cells[8*i:]) <= to; i++ {
			at := int(binary.LittleEndian.Uint32(g.byCell[4*i:]))
			if at < g.n && test(g.at(at)) {
				rows = append(rows, g.row(at))
			}
		}
	}
	slices.Sort(rows)
	dst.AddMany(rows)
}

func buildPoints(_ context.Context, b *Builder, f *fileWriter) error {
	b.geo.write(f, tagGeo)
	return nil
}

// openPoints leaves as much as possible to the first call of Geo.
func (r *Reader) openPoints() error {
	if p := r.section(tagGeo); p != nil && (len(p) < 8 || (len(p)-8)%geoPointBytes != 0) {
		return r.damaged(tagGeo, "%d bytes", len(p))
	}
	return nil
}

func (m *merger) mergePoints() error {
	m.mergePointsOf(tagGeo, (*Reader).Geo)
	return nil
}

// mergePointsOf writes a section of points; of says where an input has its own.
func (m *merger) mergePointsOf(t tag, of func(*Reader) *Geo) {
	type point struct {
		row      uint32
		lat, lng float64
	}
	var points []point
	for i, l := range m.in {
		g := of(l.Reader)
		if g == nil {
			continue
		}
		for j := range g.n {
			if row := g.row(j); int(row) < len(m.rows[i]) && m.rows[i][row] != noRow {
				lat, lng := g.at(j)
				points = append(points, point{m.rows[i][row], lat, lng})
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int { return int(int64(a.row) - int64(b.row)) })
	var g geoPoints
	for _, p := range points {
		g.add(p.row, p.lat, p.lng)
	}
	g.write(m.f, t)
}

func (r *Reader) verifyPoints() error { return r.verifyPointsOf(tagGeo, r.Geo(), r.rows) }

// verifyPointsOf verifies a section of points of the given number of rows, or of elements: coordinates are numbers, rows ascend, and
// the cells are those of the points, in order and each once.
func (r *Reader) verifyPointsOf(t tag, g *Geo, rows int) error {
	if g == nil {
		return nil
	}
	for i := range g.n {
		lat, lng := g.at(i)
		if row := g.row(i); int(row) >= rows || i > 0 && g.row(i-1) >= row || math.IsNaN(lat) || math.IsNaN(lng) {
			return r.damaged(t, "row %d is at %v, %v", row, lat, lng)
		}
	}
	used := make([]bool, g.n)
	last := uint64(0)
	for i := range g.n {
		cell, at := binary.LittleEndian.Uint64(g.cells[8*i:]), binary.LittleEndian.Uint32(g.byCell[4*i:])
		if int(at) >= g.n || used[at] || cell < last || s2.CellID(cell) != cellOf(g.at(int(at))) {
			return r.damaged(t, "cell %x stands for point %d", cell, at)
		}
		used[at], last = true, cell
	}
	return nil
}

func (i *inspector) points() {
	n := int(i.u32())
	i.field(4, "%d points", n)
	i.field(4, "reserved")
	f64 := func() float64 { return math.Float64frombits(i.u64()) }
	i.t.List(n, inspectItems, func(int) { i.field(8, "latitude %v", f64()) })
	i.at = 8 + 8*n
	i.t.List(n, inspectItems, func(int) { i.field(8, "longitude %v", f64()) })
	i.at = 8 + 16*n
	i.t.List(n, inspectItems, func(int) { i.field(8, "cell %016x", i.u64()) })
	i.at = 8 + 24*n
	i.t.List(n, inspectItems, func(int) { i.field(4, "row %d", i.u32()) })
	i.at = 8 + 28*n
	i.t.List(n, inspectItems, func(int) { i.field(4, "cell of point %d", i.u32()) })
}

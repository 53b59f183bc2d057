package geo

import (
	"encoding/binary"
	"math"
)

// ShapeKind is the kind of a ShapePart. Its values are those in the file.
type ShapeKind uint8

const (
	PointShape   ShapeKind = 1 // one ring of one position
	LineShape    ShapeKind = 2 // one ring, open
	PolygonShape ShapeKind = 3 // the outer ring and its holes, each without its first position at the end
)

// ShapePart is a geometry that is not made of others. A document's shape is any number of them.
type ShapePart struct {
	Kind  ShapeKind
	Rings [][]LngLat // none empty
}

const (
	kindMask = 3
	// deltaFlag: positions are differences of whole 1e-7 degrees, about a centimetre and what most sources are
	// rounded to. Without it they are pairs of f64.
	deltaFlag     = 4
	shapeUnits    = 1e7 // a degree
	maxShapeUnits = 1 << 52
)

// inUnits returns the number of units that x is exactly.
func inUnits(x float64) (int64, bool) {
	n := math.Round(x * shapeUnits)
	return int64(n), math.Abs(n) < maxShapeUnits && n/shapeUnits == x
}

// AppendPart encodes a part: a byte of kind and flags; for a polygon, the number of rings; for each ring, unless it is
// a point, the number of positions; then all positions, longitude first.
func AppendPart(dst []byte, s *ShapePart) []byte {
	head, deltas := byte(s.Kind), true
	for _, ring := range s.Rings {
		for _, p := range ring {
			_, lng := inUnits(p.Lng)
			_, lat := inUnits(p.Lat)
			deltas = deltas && lng && lat
		}
	}
	if deltas {
		head |= deltaFlag
	}
	dst = append(dst, head)
	if s.Kind == PolygonShape {
		dst = binary.AppendUvarint(dst, uint64(len(s.Rings)))
	}
	if s.Kind != PointShape {
		for _, ring := range s.Rings {
			dst = binary.AppendUvarint(dst, uint64(len(ring)))
		}
	}
	var lastLng, lastLat int64
	for _, ring := range s.Rings {
		for _, p := range ring {
			if deltas {
				lng, _ := inUnits(p.Lng)
				lat, _ := inUnits(p.Lat)
				dst = binary.AppendVarint(dst, lng-lastLng)
				dst = binary.AppendVarint(dst, lat-lastLat)
				lastLng, lastLat = lng, lat
			} else {
				dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(p.Lng))
				dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(p.Lat))
			}
		}
	}
	return dst
}

// Decoder decodes parts into memory that it uses again.
type Decoder struct {
	part      ShapePart
	positions []LngLat
	counts    []int
}

// Decode reads the part that fills p. The result is valid until the next call.
func (d *Decoder) Decode(p []byte) (*ShapePart, bool) {
	if len(p) == 0 || p[0]&^(kindMask|deltaFlag) != 0 {
		return nil, false
	}
	d.part.Kind = ShapeKind(p[0] & kindMask)
	deltas := p[0]&deltaFlag != 0
	p = p[1:]
	bad := false
	count := func() int { // of things that take a byte at least
		n, size := binary.Uvarint(p)
		if size <= 0 || n == 0 || n > uint64(len(p)-size) {
			bad = true
			return 0
		}
		p = p[size:]
		return int(n)
	}
	rings := 1
	switch d.part.Kind {
	case PointShape, LineShape:
	case PolygonShape:
		rings = count()
	default:
		return nil, false
	}
	d.counts = d.counts[:0]
	total := 0
	for i := 0; i < rings && !bad; i++ {
		n := 1
		if d.part.Kind != PointShape {
			n = count()
		}
		total += n
		d.counts = append(d.counts, n)
	}
	least := 16
	if deltas {
		least = 2
	}
	if bad || total > len(p)/least {
		return nil, false
	}
	d.positions = d.positions[:0]
	var lng, lat int64
	delta := func(to *int64) {
		n, size := binary.Varint(p)
		if size <= 0 {
			bad = true
			return
		}
		*to += n
		p = p[size:]
		bad = bad || *to >= maxShapeUnits || *to <= -maxShapeUnits
	}
	for range total {
		if deltas {
			delta(&lng)
			delta(&lat)
			if bad {
				return nil, false
			}
			d.positions = append(d.positions, LngLat{float64(lng) / shapeUnits, float64(lat) / shapeUnits})
			continue
		}
		at := LngLat{math.Float64frombits(binary.LittleEndian.Uint64(p)), math.Float64frombits(binary.LittleEndian.Uint64(p[8:]))}
		p = p[16:]
		if !at.Finite() {
			return nil, false
		}
		d.positions = append(d.positions, at)
	}
	if len(p) > 0 {
		return nil, false
	}
	d.part.Rings = d.part.Rings[:0]
	at := 0
	for _, n := range d.counts {
		d.part.Rings = append(d.part.Rings, d.positions[at:at+n])
		at += n
	}
	return &d.part, true
}

func (p LngLat) Finite() bool {
	return !math.IsInf(p.Lng, 0) && !math.IsNaN(p.Lng) && !math.IsInf(p.Lat, 0) && !math.IsNaN(p.Lat)
}

package segment

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/geo"
)

// shapeParts gathers encoded parts of shapes by ascending row.
type shapeParts struct {
	all   []shapePart
	bytes int64 // of the encoded parts
}

type shapePart struct {
	row  uint32
	cell uint64 // of the middle of its box
	box  geo.Box
	code []byte
}

// add adds a part of the shape of a row. Parts that cannot be tested, with an empty ring or a position that
// is not finite, are left out.
func (s *shapeParts) add(row uint32, p *geo.ShapePart) {
	if len(p.Rings) == 0 {
		return
	}
	for _, ring := range p.Rings {
		if len(ring) == 0 || slices.ContainsFunc(ring, func(p geo.LngLat) bool { return !p.Finite() }) {
			return
		}
	}
	s.addCode(row, geo.BoxOf(p.Rings), geo.AppendPart(nil, p))
}

// addCode adds an encoded part, whose bytes it keeps.
func (s *shapeParts) addCode(row uint32, b geo.Box, code []byte) {
	s.all = append(s.all, shapePart{row, middleCell(b), b, code})
	s.bytes += int64(cap(code))
}

// middleCell returns the cell that orders parts: neighbours in this order are mostly neighbours on the globe.
func middleCell(b geo.Box) uint64 {
	return uint64(cellOf(b.MinLat/2+b.MaxLat/2, b.MinLng/2+b.MaxLng/2))
}

func (s *shapeParts) memoryBytes() int64 { return int64(cap(s.all))*80 + s.bytes }

const (
	shapeHeadBytes = 8
	boxBytes       = 32
	shapeFan       = 16 // parts or nodes below a node of the tree
)

// write writes:
//
//	u32 parts, u32 rows that have any
//	boxes of 4 × f64 (least longitude, least latitude, greatest longitude, greatest latitude): that of each
//	    part, ordered by the S2 leaf cell of their middles, then by row; that around each 16 of those; and so on up to one
//	(parts + 1) × u64 offset in the encoded parts
//	parts × u32 row
//	the encoded parts
func (s *shapeParts) write(f *fileWriter) {
	if len(s.all) == 0 {
		return
	}
	slices.SortStableFunc(s.all, func(a, b shapePart) int {
		return cmp.Or(cmp.Compare(a.cell, b.cell), cmp.Compare(a.row, b.row))
	})
	rows := roaring.New()
	level := make([]geo.Box, len(s.all))
	for i, p := range s.all {
		rows.Add(p.row)
		level[i] = p.box
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(len(s.all)))
	b = le.AppendUint32(b, uint32(rows.GetCardinality()))
	for {
		for _, x := range level {
			b = appendBox(b, x)
		}
		if len(level) == 1 {
			break
		}
		level = boxesAround(level)
	}
	at := uint64(0)
	for _, p := range s.all {
		b = le.AppendUint64(b, at)
		at += uint64(len(p.code))
	}
	b = le.AppendUint64(b, at)
	for _, p := range s.all {
		b = le.AppendUint32(b, p.row)
	}
	f.begin(tagShapes, 0)
	f.Write(b)
	for _, p := range s.all {
		f.Write(p.code)
	}
	f.end()
}

func appendBox(dst []byte, b geo.Box) []byte {
	for _, x := range [...]float64{b.MinLng, b.MinLat, b.MaxLng, b.MaxLat} {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

// boxesAround returns the next level of the tree.
func boxesAround(level []geo.Box) []geo.Box {
	var up []geo.Box
	for group := range slices.Chunk(level, shapeFan) {
		b := geo.EmptyBox
		for _, x := range group {
			b = b.Union(x)
		}
		up = append(up, b)
	}
	return up
}

// Shapes holds the parts of the shapes of rows, under a packed R-tree of their boxes. A search verifies the blocks that it
// reads; methods panic with an *apierr.Corruption.
type Shapes struct {
	blocks  *blocks
	n       int
	rows    int
	levels  []shapeLevel
	offsets []byte
	rowOf   []byte
	data    []byte
}

// shapeLevel is a level of the tree; the first are the parts' own boxes.
type shapeLevel struct {
	n     int
	boxes []byte
}

func buildShapes(_ context.Context, b *Builder, f *fileWriter) error {
	b.shapes.write(f)
	return nil
}

// openShapes leaves it all to the first call of Shapes.
func (r *Reader) openShapes() error { return nil }

// readShapes finds the parts of a section. It reads only the header.
func readShapes(b *blocks, section []byte) (*Shapes, bool) {
	if len(section) < shapeHeadBytes {
		return nil, false
	}
	b.touch(section[:shapeHeadBytes])
	s := &Shapes{blocks: b, n: int(binary.LittleEndian.Uint32(section)), rows: int(binary.LittleEndian.Uint32(section[4:]))}
	p := section[shapeHeadBytes:]
	take := func(n int) []byte {
		if n > len(p) {
			return nil
		}
		q := p[:n:n]
		p = p[n:]
		return q
	}
	if s.n == 0 || s.n > len(p)/boxBytes {
		return nil, false
	}
	for n := s.n; ; n = (n + shapeFan - 1) / shapeFan {
		l := shapeLevel{n, take(n * boxBytes)}
		if l.boxes == nil {
			return nil, false
		}
		s.levels = append(s.levels, l)
		if n == 1 {
			break
		}
	}
	s.offsets, s.rowOf = take((s.n+1)*8), take(s.n*4)
	s.data = p
	return s, s.offsets != nil && s.rowOf != nil
}

// Shapes returns the shapes of the segment, or nil when no row has one.
func (r *Reader) Shapes() *Shapes {
	p := r.section(tagShapes)
	if p == nil {
		return nil
	}
	return r.shapes.get(func() *Shapes {
		s, ok := readShapes(&r.blocks, p)
		if !ok {
			r.broken(tagShapes, "%d bytes", len(p))
		}
		return s
	})
}

// RecordsShapes reports whether the writer of the segment was given the shapes of all its rows. Older ones knew none.
func (r *Reader) RecordsShapes() bool { return r.footer.features >= shapeFeature }

// Len returns the number of rows that have a shape.
func (s *Shapes) Len() int { return s.rows }

// Rows returns the rows that have a shape, as a bitmap of the caller's own.
func (s *Shapes) Rows() *roaring.Bitmap {
	s.blocks.touch(s.rowOf)
	b := roaring.New()
	for i := range s.n {
		b.Add(binary.LittleEndian.Uint32(s.rowOf[4*i:]))
	}
	return b
}

func (s *Shapes) row(i int) uint32 {
	p := s.rowOf[4*i : 4*i+4]
	s.blocks.touch(p)
	return binary.LittleEndian.Uint32(p)
}

// code returns the encoded part, nil when it is not inside.
func (s *Shapes) code(i int) []byte {
	p := s.offsets[8*i : 8*i+16]
	s.blocks.touch(p)
	from, to := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
	if from > to || to > uint64(len(s.data)) {
		return nil
	}
	code := s.data[from:to:to]
	s.blocks.touch(code)
	return code
}

// touchBoxes makes sure of the boxes of a level from one to before another.
func (s *Shapes) touchBoxes(level, from, to int) {
	s.blocks.touch(s.levels[level].boxes[boxBytes*from : boxBytes*to])
}

// box returns a box that was touched.
func (l *shapeLevel) box(i int) geo.Box {
	f64 := func(j int) float64 {
		return math.Float64frombits(binary.LittleEndian.Uint64(l.boxes[boxBytes*i+8*j:]))
	}
	return geo.Box{MinLng: f64(0), MinLat: f64(1), MaxLng: f64(2), MaxLat: f64(3)}
}

// AddRowsMeeting adds the rows whose shapes share a place with the region, including its edges.
func (s *Shapes) AddRowsMeeting(dst *roaring.Bitmap, r *geo.Region) {
	top := len(s.levels) - 1
	var d geo.Decoder
	s.touchBoxes(top, 0, 1)
	all := s.levels[top].box(0)
	for _, degrees := range [...]float64{0, -360, 360} {
		if !all.Meets(r.Bounds().Shifted(degrees)) {
			continue
		}
		shifted := r.Shifted(degrees)
		s.search(top, 0, shifted, func(i int) {
			row := s.row(i)
			if dst.Contains(row) {
				return
			}
			if p, ok := d.Decode(s.code(i)); ok && shifted.Meets(p.Kind, p.Rings) {
				dst.Add(row)
			}
		})
	}
}

// search calls found for the parts below a node whose boxes intersect the box of the region. The box of the node has been verified.
func (s *Shapes) search(level, node int, r *geo.Region, found func(part int)) {
	l := &s.levels[level]
	if !l.box(node).Meets(r.Bounds()) {
		return
	}
	if level == 0 {
		found(node)
		return
	}
	from, to := node*shapeFan, min((node+1)*shapeFan, s.levels[level-1].n)
	s.touchBoxes(level-1, from, to)
	for i := from; i < to; i++ {
		s.search(level-1, i, r, found)
	}
}

// mergeShapes copies the code of each part and its box, and builds the tree again: the order of parts depends
// on all of them.
func (m *merger) mergeShapes() error {
	var all shapeParts
	for i, l := range m.in {
		s := l.Shapes()
		if s == nil {
			continue
		}
		s.touchBoxes(0, 0, s.n)
		for j := range s.n {
			if row := s.row(j); int(row) < l.rows && m.rows[i][row] != noRow {
				all.addCode(m.rows[i][row], s.levels[0].box(j), s.code(j))
			}
		}
	}
	all.write(m.f)
	return nil
}

// verifyShapes decodes every part, and computes the boxes and the tree again.
func (r *Reader) verifyShapes() error {
	s := r.Shapes()
	if s == nil {
		return nil
	}
	for i := range s.levels {
		s.touchBoxes(i, 0, s.levels[i].n)
	}
	s.blocks.touch(s.offsets)
	var d geo.Decoder
	rows := roaring.New()
	var lastCell, end uint64
	var lastRow uint32
	level := make([]geo.Box, s.n)
	for i := range s.n {
		row := s.row(i)
		if from := binary.LittleEndian.Uint64(s.offsets[8*i:]); from != end {
			return r.damaged(tagShapes, "part %d begins at %d, the one before ends at %d", i, from, end)
		}
		end = binary.LittleEndian.Uint64(s.offsets[8*i+8:])
		p, ok := d.Decode(s.code(i))
		if !ok || int(row) >= r.rows {
			return r.damaged(tagShapes, "part %d of row %d cannot be read", i, row)
		}
		if level[i] = geo.BoxOf(p.Rings); level[i] != s.levels[0].box(i) {
			return r.damaged(tagShapes, "the box of part %d is another", i)
		}
		cell := middleCell(level[i])
		if i > 0 && (cell < lastCell || cell == lastCell && row < lastRow) {
			return r.damaged(tagShapes, "part %d is not in order", i)
		}
		lastCell, lastRow = cell, row
		rows.Add(row)
	}
	if end != uint64(len(s.data)) || int(rows.GetCardinality()) != s.rows {
		return r.damaged(tagShapes, "the parts of %d rows end at %d; %d rows and %d bytes are counted", rows.GetCardinality(), end, s.rows, len(s.data))
	}
	for i := 1; i < len(s.levels); i++ {
		level = boxesAround(level)
		for j, b := range level {
			if s.levels[i].box(j) != b {
				return r.damaged(tagShapes, "box %d on level %d of the tree is another", j, i)
			}
		}
	}
	return nil
}

func (i *inspector) shapes() {
	i.r.blocks.touch(i.p)
	s := i.r.Shapes()
	i.field(4, "%d parts of shapes", s.n)
	i.field(4, "of %d rows", s.rows)
	for n := range s.levels {
		l := &s.levels[n]
		end := i.at + len(l.boxes)
		i.t.List(l.n, inspectItems, func(j int) {
			b := l.box(j)
			i.field(boxBytes, "level %d: box from %v, %v to %v, %v", n, b.MinLng, b.MinLat, b.MaxLng, b.MaxLat)
		})
		i.at = end
	}
	end := i.at + len(s.offsets)
	i.t.List(s.n+1, inspectItems, func(int) { i.field(8, "offset %d", i.u64()) })
	i.at = end
	i.t.List(s.n, inspectItems, func(int) { i.field(4, "row %d", i.u32()) })
	i.at = end + len(s.rowOf)
	var d geo.Decoder
	kinds := [...]string{"", "point", "line", "polygon"}
	i.t.List(s.n, inspectItems, func(j int) {
		code := s.code(j)
		if p, ok := d.Decode(code); ok {
			i.field(len(code), "%s %v", kinds[p.Kind], p.Rings)
		} else {
			i.field(len(code), "a part that cannot be read")
		}
	})
}

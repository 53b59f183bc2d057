package segment

import (
	"context"
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
	"svc/internal/numeric"
	"svc/segment/rowlist"
)

// An element is an object inside a document that filters can match by itself. The elements of a segment have numbers from 0: by row,
// and within a document in the order in which they begin. So the elements of a row are adjacent, and nested elements follow their
// parent. A value belongs to the innermost element that contains it.

// elementBuilder collects elements. Its columns, sets and points are those of a segment, with elements instead of rows.
type elementBuilder struct {
	rows     []uint32 // by element
	parents  []uint32 // by element: as in the section; nil: none has any
	scopes   fieldTable[rowSet]
	presence fieldTable[rowSet]
	columns  *ColumnSet
	points   elementPoints
	open     []openElement // those that the next value stands in, outermost first
}

type openElement struct {
	element uint32
	arrays  int
}

// elementPoints gathers points that need not ascend by element.
type elementPoints struct {
	elements []uint32
	lat, lng []float64
}

// EnterElement begins an element: an object at the path of scope, with arrays arrays between the document and it. Until its
// LeaveElement, values belong to it. Elements may be nested.
func (b *Builder) EnterElement(scope FieldID, arrays int) {
	e := &b.elements
	n := uint32(len(e.rows))
	e.rows = append(e.rows, b.row)
	if top := len(e.open) - 1; top >= 0 {
		if e.parents == nil {
			e.parents = make([]uint32, n)
		}
		parent := (e.open[top].element + 1) << 1
		if e.open[top].arrays == arrays {
			parent |= directParent
		}
		e.parents = append(e.parents, parent)
	} else if e.parents != nil {
		e.parents = append(e.parents, 0)
	}
	e.scopes.get(scope).add(n)
	e.open = append(e.open, openElement{n, arrays})
}

// LeaveElement ends the innermost element.
func (b *Builder) LeaveElement() { b.elements.open = b.elements.open[:len(b.elements.open)-1] }

// inner returns the innermost open element. ok is false if there is none.
func (e *elementBuilder) inner() (openElement, bool) {
	if len(e.open) == 0 {
		return openElement{}, false
	}
	return e.open[len(e.open)-1], true
}

func (e *elementBuilder) values() *ColumnSet {
	if e.columns == nil {
		e.columns = NewColumnSet(0, nil)
	}
	return e.columns
}

// ElementPresent records that the innermost element has field f. Outside elements it does nothing.
func (b *Builder) ElementPresent(f FieldID) {
	if in, ok := b.elements.inner(); ok {
		b.elements.presence.get(f).add(in.element)
	}
}

// ElementNumber gives a number of f to the row and to the innermost element, ElementString a string, as Number and String do for the row.
func (b *Builder) ElementNumber(f FieldID, x numeric.Value) {
	in, ok := b.elements.inner()
	if !ok {
		b.Number(f, x)
		return
	}
	byRow, c := b.columns.column(f), b.elements.values().column(f)
	if !byRow.followElements(c) {
		byRow.number(b.row, x)
	}
	c.number(in.element, x)
}

func (b *Builder) ElementString(f FieldID, normalized, original []byte) {
	in, ok := b.elements.inner()
	if !ok {
		b.String(f, normalized, original)
		return
	}
	byRow, c := b.columns.column(f), b.elements.values().column(f)
	if !byRow.followElements(c) {
		byRow.string(b.row, normalized, original)
	}
	c.string(in.element, normalized, original)
}

// ElementNull marks the innermost element as having a null at f, if no array is in between; arrays is as in EnterElement. It does not
// mark the row. ElementEmpty does the same for "", [] or {}.
func (b *Builder) ElementNull(f FieldID, arrays int) {
	if in, ok := b.elements.inner(); ok && in.arrays == arrays {
		b.elements.values().Null(Row(in.element), f)
	}
}

func (b *Builder) ElementEmpty(f FieldID, arrays int) {
	if in, ok := b.elements.inner(); ok && in.arrays == arrays {
		b.elements.values().Empty(Row(in.element), f)
	}
}

// ElementPoint sets the point of the innermost element, in degrees, if there is no array between. The first of several points counts.
func (b *Builder) ElementPoint(arrays int, lat, lng float64) {
	if in, ok := b.elements.inner(); ok && in.arrays == arrays {
		p := &b.elements.points
		p.elements, p.lat, p.lng = append(p.elements, in.element), append(p.lat, lat), append(p.lng, lng)
	}
}

// memoryBytes estimates what the builder holds: 64 bytes for each field of a table, and the runs of its rows.
func (e *elementBuilder) memoryBytes() int64 {
	n := int64(cap(e.rows)*4 + cap(e.parents)*4 + cap(e.points.elements)*20)
	for _, t := range []*fieldTable[rowSet]{&e.scopes, &e.presence} {
		n += int64(cap(t.index)*4 + cap(t.all)*64)
		for i := range t.all {
			n += t.all[i].value.memoryBytes()
		}
	}
	if e.columns != nil {
		n += e.columns.memoryBytes()
	}
	return n
}

// buildElements writes the six sections of elements, or none if no document has an element. Columns of elements are columns whose
// rows are elements.
func buildElements(_ context.Context, b *Builder, f *fileWriter) error {
	e := &b.elements
	if len(e.rows) == 0 {
		return nil
	}
	writeElements(f, e.rows, e.parents)
	writePresence(f, tagElementScopes, 0, e.scopes.sorted())
	writePresence(f, tagElementPresence, 0, e.presence.sorted())
	w := newColumnWriter(f, tagElementColumns, len(e.rows), nil)
	for _, field := range e.values().fields() {
		w.encode(field, e.columns.columns[field])
	}
	w.finish(tagElementColumnDir)
	sorted := e.points.sorted()
	sorted.write(f, tagElementPoints)
	return nil
}

// Elements are the elements of a segment. Its results are shared, and valid until the Reader is closed.
type Elements struct {
	r        *Reader
	n        int
	data     []byte // rows and parents: what follows
	first    []byte // row of every rowBlock-th element; nothing if width is 0
	above    []byte // row of each element, less that of its rowBlock
	parents  []byte
	width    int // of numbers in above; 0: they are rows, of 4 bytes
	right    atomic.Bool
	nested   bool
	scopes   presenceReader
	presence presenceReader
	columns  *columnTable
	points   []byte // of the section
	geo      lazy[Geo]
}

// Elements returns the elements of the segment, or nil if there are none.
func (r *Reader) Elements() *Elements {
	if invariant.Enabled {
		r.checkOpen()
	}
	p := r.section(tagElements)
	if p == nil {
		return nil
	}
	return r.elements.get(func() *Elements {
		r.blocks.touch(p[:elementHeaderBytes])
		n, flags := binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:])
		e := &Elements{r: r, n: int(n), data: p[elementHeaderBytes:], nested: flags&1 == 1, points: r.section(tagElementPoints), columns: r.elementColumns}
		if n > maxRows || flags&^0x301 != 0 || !e.openElementRows(e.data, int(flags>>8)) {
			r.broken(tagElements, "%d bytes of %d elements", len(p), n)
		}
		e.scopes, _ = r.presenceIn(tagElementScopes, 0) // openElements has seen both
		e.presence, _ = r.presenceIn(tagElementPresence, 0)
		return e
	})
}

// openElements reads the directory of the columns, and leaves the rest to the first call of Elements.
func (r *Reader) openElements() (err error) {
	p := r.section(tagElements)
	if p == nil {
		return nil
	}
	if len(p) < elementHeaderBytes {
		return r.damaged(tagElements, "%d bytes", len(p))
	}
	for _, t := range []tag{tagElementScopes, tagElementPresence} {
		if _, err := r.presenceIn(t, 0); err != nil {
			return err
		}
	}
	if points := r.section(tagElementPoints); points != nil && (len(points) < 8 || (len(points)-8)%geoPointBytes != 0) {
		return r.damaged(tagElementPoints, "%d bytes", len(points))
	}
	r.elementColumns, err = r.columnsIn(tagElementColumnDir, tagElementColumns)
	return err
}

// forget takes all that was found right for unknown.
func (e *Elements) forget() {
	if e == nil {
		return
	}
	e.right.Store(false)
	e.geo.forget()
	for _, c := range e.columns.of {
		c.forget()
	}
}

// need verifies the blocks of rows and parents.
func (e *Elements) need() {
	if !e.right.Load() {
		e.r.blocks.touch(e.data)
		e.right.Store(true)
	}
}

// Len returns the number of elements.
func (e *Elements) Len() int { return e.n }

// Scope returns the elements that stand at a path; never nil.
func (e *Elements) Scope(f FieldID) *roaring.Bitmap { return e.scopes.bitmap(f) }

// AllIn reports whether all elements are at one path, and so none at another one.
func (e *Elements) AllIn(f FieldID) bool {
	l, ok := e.scopes.find(f)
	return ok && l.Count == e.n && !e.nested
}

// Present returns the elements that have a field, and in which no other element has it; never nil.
func (e *Elements) Present(f FieldID) *roaring.Bitmap { return e.presence.bitmap(f) }

// Column returns the column of a field, whose rows are elements, or nil if there is none.
func (e *Elements) Column(f FieldID) *Column {
	if c := e.columns.of[f]; c != nil {
		return c.open(f, tagElementColumns, e.n)
	}
	return nil
}

// Geo returns the points of elements, which are its rows, or nil if there are none.
func (e *Elements) Geo() *Geo {
	if e.points == nil {
		return nil
	}
	return e.geo.get(func() *Geo {
		e.r.blocks.touch(e.points)
		g, ok := openGeo(e.points)
		if !ok {
			e.r.broken(tagElementPoints, "%d bytes", len(e.points))
		}
		return g
	})
}

// AppendRows appends the ascending rows of some ascending elements, each once; dst is empty.
func (e *Elements) AppendRows(dst, elements []uint32) []uint32 {
	e.need()
	for _, i := range elements {
		if int(i) >= e.n {
			break
		}
		if row := e.row(int(i)); len(dst) == 0 || dst[len(dst)-1] < row {
			dst = append(dst, row)
		}
	}
	return dst
}

// Rows returns the rows of some elements, as a bitmap of the caller's own.
func (e *Elements) Rows(elements *roaring.Bitmap) *roaring.Bitmap {
	if int(elements.GetCardinality()) < e.r.rows/rowlist.BitsPer {
		return rowlist.FromRows(e.AppendRows(nil, elements.ToArray()))
	}
	e.need()
	marked := rowlist.TakeBits((e.r.rows + 63) / 64)
	defer marked.Release()
	words := marked.Words
	var batch [1024]uint32
	for it := elements.ManyIterator(); ; {
		n := it.NextMany(batch[:])
		if n == 0 {
			return rowlist.FromBits(words)
		}
		for _, i := range batch[:n] {
			if int(i) >= e.n {
				return rowlist.FromBits(words)
			}
			if row := e.row(int(i)); int(row/64) < len(words) { // a forged segment may name others
				words[row/64] |= 1 << (row % 64)
			}
		}
	}
}

// MarkRows sets the bits of the rows of marked elements, 64 a word. Rows without a bit are left out.
func (e *Elements) MarkRows(rows, elements []uint64) {
	e.need()
	for w, word := range elements {
		for ; word != 0; word &= word - 1 {
			i := 64*w + bits.TrailingZeros64(word)
			if i >= e.n {
				return
			}
			if row := e.row(i); int(row/64) < len(rows) { // a forged segment may name others
				rows[row/64] |= 1 << (row % 64)
			}
		}
	}
}

// maxListedElements is the number of elements up to which they are listed. Beyond it, they are marked with a bit each. (A variable,
// so that tests can lower it.)
var maxListedElements = 64 << 10

// Of returns the elements of some rows, as a bitmap of the caller's own.
func (e *Elements) Of(rows *roaring.Bitmap) *roaring.Bitmap {
	e.need()
	var listed []uint32
	var marked *rowlist.Bits // nil: all are listed
	from := 0
	for it := rows.Iterator(); it.HasNext() && from < e.n; {
		row := it.Next()
		for from = e.search(from, row); from < e.n && e.row(from) == row; from++ {
			if marked == nil {
				listed = append(listed, uint32(from))
			} else {
				marked.Words[from/64] |= 1 << (from % 64)
			}
		}
		if marked == nil && len(listed) >= maxListedElements {
			marked = rowlist.TakeBits((e.n + 63) / 64)
			defer marked.Release()
			for _, i := range listed {
				marked.Words[i/64] |= 1 << (i % 64)
			}
		}
	}
	if marked == nil {
		return rowlist.FromRows(listed)
	}
	return rowlist.FromBits(marked.Words)
}

// search returns the first element, from from on, whose row is row or higher.
func (e *Elements) search(from int, row uint32) int {
	lo, step := from, 1
	for lo+step < e.n && e.row(lo+step) < row {
		lo, step = lo+step, 2*step
	}
	hi := min(lo+step, e.n)
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); e.row(mid) < row {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Within returns the elements of scope that are, or contain, one of some elements. With direct, there may be no array between the
// two. The bitmap belongs to the caller.
func (e *Elements) Within(elements, scope *roaring.Bitmap, direct bool) *roaring.Bitmap {
	found := roaring.And(elements, scope)
	if !e.nested {
		return found
	}
	rest := roaring.AndNot(elements, found)
	if rest.IsEmpty() {
		return found
	}
	e.need()
	var outer []uint32
	for it := rest.Iterator(); it.HasNext(); {
		for i := it.Next(); int(i) < e.n; {
			parent := e.parentCode(int(i))
			if parent>>1 == 0 || parent>>1 > i || direct && parent&directParent == 0 {
				break
			}
			if i = parent>>1 - 1; scope.Contains(i) {
				if len(outer) == 0 || outer[len(outer)-1] != i {
					outer = append(outer, i)
				}
				break
			}
		}
	}
	found.AddMany(outer)
	return found
}

// Span returns the elements of a row, from one number up to, and without, another.
func (e *Elements) Span(row uint32) (from, to int) {
	e.need()
	for from = e.search(0, row); from+to < e.n && e.row(from+to) == row; {
		to++
	}
	return from, from + to
}

// Inside reports whether an element is, or is inside, one of some elements.
func (e *Elements) Inside(element int, of *roaring.Bitmap) bool {
	for i := uint32(element); !of.Contains(i); {
		parent := e.parentCode(int(i))
		if parent>>1 == 0 || parent>>1 > i { // a forged segment may lead in a circle
			return false
		}
		i = parent>>1 - 1
	}
	return true
}

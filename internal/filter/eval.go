package filter

import (
	"bytes"
	"math"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/resultcache"
	"svc/segment"
	"svc/segment/rowlist"
)

// Rows returns the live rows of a segment that match. The caller owns the bitmap, which may
// use memory of the segment: it is valid as long as the segment is.
func (b *Bound) Rows(s segment.Live) *roaring.Bitmap { return b.live(source{Live: s}) }

// live returns the matching rows that are not deleted. The caller owns them.
func (b *Bound) live(s source) *roaring.Bitmap {
	if b.root == nil {
		return s.LiveRows()
	}
	rows := b.root.rows(s, nil)
	if s.Deleted != nil {
		rows.AndNot(s.Deleted)
	}
	return rows
}

// source is the input of a filter: a segment and its cache scope. Without a scope, results are not cached.
type source struct {
	segment.Live
	scope *resultcache.Scope
	stop  Stop

	// elements is set inside braces: rows are then numbers of elements. nil: outside.
	elements *segment.Elements
}

// Column returns the column of a field, or nil.
func (s source) Column(id segment.FieldID) *segment.Column {
	if s.elements != nil {
		return s.elements.Column(id)
	}
	return s.Live.Column(id)
}

// Present returns the rows that have a field.
func (s source) Present(id segment.FieldID) *roaring.Bitmap {
	if s.elements != nil {
		return s.elements.Present(id)
	}
	return s.Live.Present(id)
}

// Rows returns the number of rows.
func (s source) Rows() int {
	if s.elements != nil {
		return s.elements.Len()
	}
	return s.Live.Rows()
}

// Geo returns the points, or nil.
func (s source) Geo() *segment.Geo {
	if s.elements != nil {
		return s.elements.Geo()
	}
	return s.Live.Geo()
}

// bound is a node of a checked filter.
type bound interface {
	// rows returns the rows of s among some candidates (nil: all rows) that match, deleted or not. The
	// caller owns the result; the candidates are not modified.
	rows(s source, among *roaring.Bitmap) *roaring.Bitmap

	// size estimates how many rows match, so that conditions with few rows are evaluated first.
	size(s source) int
}

// within returns the rows that are candidates, as a new bitmap.
func within(rows, among *roaring.Bitmap) *roaring.Bitmap {
	if among != nil {
		rows.And(among)
	}
	return rows
}

// shared is within for rows that belong to the segment.
func shared(rows, among *roaring.Bitmap) *roaring.Bitmap {
	if among == nil {
		return rows.Clone()
	}
	return rowlist.And(rows, among)
}

// nothing matches no row: the field is declared, but no document has it.
type nothing struct{}

func (nothing) rows(source, *roaring.Bitmap) *roaring.Bitmap { return roaring.New() }
func (nothing) size(source) int                              { return 0 }

// allOf matches the rows that all match. What a part leaves are the candidates of the next.
type allOf []bound

// rows evaluates the part with the fewest estimated rows first, and each further part only on the remaining rows.
func (a allOf) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	parts := make([]struct {
		bound
		size int
	}, len(a))
	for i, b := range a {
		parts[i].bound, parts[i].size = b, b.size(s)
	}
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].size < parts[j].size })
	for _, p := range parts {
		among = p.rows(s, among)
		if among.IsEmpty() {
			break
		}
	}
	return among
}

func (a allOf) size(s source) int {
	n := math.MaxInt
	for _, b := range a {
		n = min(n, b.size(s))
	}
	return n
}

type anyOf []bound

func (a anyOf) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	parts := make([]*roaring.Bitmap, len(a))
	for i, b := range a {
		parts[i] = b.rows(s, among)
	}
	return roaring.FastOr(parts...)
}

func (a anyOf) size(s source) int {
	n := 0
	for _, b := range a {
		n += b.size(s)
	}
	return min(n, s.Rows())
}

type noneOf struct{ bound }

func (m noneOf) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	rows := m.bound.rows(s, among)
	if among == nil {
		rows.Flip(0, uint64(s.Rows()))
		return rows
	}
	return roaring.AndNot(among, rows)
}

func (m noneOf) size(s source) int { return s.Rows() - m.bound.size(s) }

type presentMatch struct{ id segment.FieldID }

func (m presentMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	return shared(s.Present(m.id), among)
}
func (m presentMatch) size(s source) int { return int(s.Present(m.id).GetCardinality()) }

type nullMatch struct{ id segment.FieldID }

func (m nullMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	c := s.Column(m.id)
	if c == nil {
		return roaring.New()
	}
	return shared(c.Null(), among)
}

func (m nullMatch) size(s source) int {
	c := s.Column(m.id)
	if c == nil {
		return 0
	}
	return int(c.Null().GetCardinality())
}

type emptyMatch struct{ id segment.FieldID }

func (m emptyMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	c := s.Column(m.id)
	if c == nil {
		return roaring.New()
	}
	return shared(c.Empty(), among)
}

func (m emptyMatch) size(s source) int {
	c := s.Column(m.id)
	if c == nil {
		return 0
	}
	return int(c.Empty().GetCardinality())
}

// fewEqual is up to how many values are compared with the candidates one by one: the rows of more are brought together first.
const fewEqual = 8

// rows collects the rows of each value. With few values it intersects each with the candidates, otherwise all
// of them at the end.
func (m equalMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	rows := roaring.New()
	c := s.Column(m.id)
	switch {
	case c == nil:
	case among != nil && len(m.floats)+len(m.integers)+len(m.keys) <= fewEqual:
		m.each(c, func(dst *roaring.Bitmap, ord, _ int) { c.AddNumberRowsAmong(dst, ord, among) },
			func(dst *roaring.Bitmap, ord, _ int) { c.AddStringRowsAmong(dst, ord, among) }, rows)
	default:
		m.each(c, c.AddNumberRows, c.AddStringRows, rows)
		rows = within(rows, among)
	}
	return rows
}

// each finds the ordinals of the values in a column and adds their rows.
func (m equalMatch) each(c *segment.Column, number, text func(dst *roaring.Bitmap, lo, hi int), dst *roaring.Bitmap) {
	look := func(x numeric.Value) {
		if ord := c.SearchNumber(x); ord < c.Numbers() && c.Number(ord) == x {
			number(dst, ord, ord+1)
		}
	}
	for _, x := range m.floats {
		look(numeric.Value{Float: x})
	}
	for _, x := range m.integers {
		look(x)
	}
	for _, key := range m.keys {
		if ord := c.SearchString(key); ord < c.Strings() && bytes.Equal(c.String(ord), key) {
			text(dst, ord, ord+1)
		}
	}
}

func (m equalMatch) size(s source) int {
	c := s.Column(m.id)
	if c == nil {
		return 0
	}
	n := 0
	m.each(c, func(_ *roaring.Bitmap, lo, _ int) { n += c.NumberCount(lo) },
		func(_ *roaring.Bitmap, lo, _ int) { n += c.StringCount(lo) }, nil)
	return n
}

// span is a range of ordinals, [lo, hi).
type span struct{ lo, hi int }

func (p span) empty() bool { return p.lo >= p.hi }

// numbers returns the ordinals of the numbers in the range; none if a bound is not a number.
func (m rangeMatch) numbers(c *segment.Column) span {
	if !m.numeric {
		return span{}
	}
	p := span{0, c.Numbers()}
	if m.low != nil {
		p.lo = c.SearchNumber(*m.low)
		if m.after && p.lo < p.hi && c.Number(p.lo) == *m.low {
			p.lo++
		}
	}
	if m.high != nil {
		p.hi = c.SearchNumber(*m.high)
		if !m.before && p.hi < c.Numbers() && c.Number(p.hi) == *m.high {
			p.hi++
		}
	}
	return p
}

// strings returns the ordinals of the texts in the range.
func (m rangeMatch) strings(c *segment.Column) span {
	p := span{firstText(c), c.Strings()}
	if m.from != nil {
		p.lo = max(p.lo, c.SearchString(m.from))
		if m.after && p.lo < p.hi && bytes.Equal(c.String(p.lo), m.from) {
			p.lo++
		}
	}
	if m.to != nil {
		p.hi = c.SearchString(m.to)
		if !m.before && p.hi < c.Strings() && bytes.Equal(c.String(p.hi), m.to) {
			p.hi++
		}
	}
	return p
}

// firstText is the first ordinal of a text that is not empty: the empty text matches nothing.
func firstText(c *segment.Column) int {
	if c.Strings() > 0 && len(c.String(0)) == 0 {
		return 1
	}
	return 0
}

func (m rangeMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	c := s.Column(m.id)
	if c == nil {
		return roaring.New()
	}
	return spanRows(s, m.id, c, m.numbers(c), m.strings(c), among)
}

func (m rangeMatch) size(s source) int {
	c := s.Column(m.id)
	if c == nil {
		return 0
	}
	return spanSize(s, c, m.numbers(c), m.strings(c))
}

// lookedUp: if at most one in this many rows of a segment is a candidate, the values of the candidates are looked up. Otherwise the
// rows of the values are used: they are marked one by one, or come from cached marks.
const lookedUp = 8

// elementsLookedUp is lookedUp for elements. A row may have several, and those that are found are marked anyway, to find their rows.
const elementsLookedUp = 16

// unmarkedLookedUp is lookedUp for elements without cached marks of their numbers. A row may have several elements.
const unmarkedLookedUp = 3

// spanRows returns the candidates with a value in either span. With few
// candidates it looks at their values, else it walks the spans.
func spanRows(s source, id segment.FieldID, c *segment.Column, numbers, texts span, among *roaring.Bitmap) *roaring.Bitmap {
	rows := roaring.New()
	if numbers.empty() && texts.empty() {
		return rows
	}
	values := max(numbers.hi-numbers.lo, 0) + max(texts.hi-texts.lo, 0)
	share := lookedUp
	switch {
	case s.elements == nil:
	case s.sliced() && c.NumberEntries(numbers.lo, numbers.hi) >= slicedFrom:
		share = elementsLookedUp
	default:
		share = unmarkedLookedUp
	}
	if among != nil && among.GetCardinality() < uint64(max(values, s.Rows()/share)) {
		var chunk [1024]uint32
		var with, also []uint32
		for it := among.ManyIterator(); ; {
			some := chunk[:it.NextMany(chunk[:])]
			if len(some) == 0 {
				rows = rowlist.FromRows(with)
				if len(also) > 0 {
					rows.Or(rowlist.FromRows(also))
				}
				return rows
			}
			if !numbers.empty() {
				with = c.RowsWithNumbers(with, some, numbers.lo, numbers.hi)
			}
			if !texts.empty() {
				also = c.RowsWithStrings(also, some, texts.lo, texts.hi)
			}
		}
	}
	if texts.empty() {
		return numberRows(s, id, c, numbers, among)
	}
	if !numbers.empty() {
		rows = numberRows(s, id, c, numbers, nil)
	}
	c.AddStringRows(rows, texts.lo, texts.hi)
	return within(rows, among)
}

// pick returns the candidates with a text that is accepted.
func pick(c *segment.Column, among *roaring.Bitmap, text func(ord int) bool) *roaring.Bitmap {
	rows := roaring.New()
	var ords []uint32
	it := among.Iterator()
	for it.HasNext() {
		row := it.Next()
		ords = c.RowStrings(ords[:0], segment.Row(row))
		if slices.ContainsFunc(ords, func(ord uint32) bool { return text(int(ord)) }) {
			rows.Add(row)
		}
	}
	return rows
}

// spanSize guesses the rows of spans as if each value had as many.
func spanSize(s source, c *segment.Column, numbers, texts span) int {
	all := c.Numbers() + c.Strings()
	values := max(numbers.hi-numbers.lo, 0) + max(texts.hi-texts.lo, 0)
	if all == 0 || values == 0 {
		return 0
	}
	return int(float64(s.Rows()) * float64(values) / float64(all))
}

type prefixMatch struct {
	id     segment.FieldID
	prefix []byte // not empty
}

// texts returns the ordinals of the texts that begin with the prefix.
func (m prefixMatch) texts(c *segment.Column) span {
	p := span{c.SearchString(m.prefix), c.Strings()}
	if after := successor(m.prefix); after != nil {
		p.hi = c.SearchString(after)
	}
	return p
}

// successor returns the smallest key above all keys that begin with prefix, or nil if there is none.
func successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			s := bytes.Clone(prefix[:i+1])
			s[i]++
			return s
		}
	}
	return nil
}

func (m prefixMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	c := s.Column(m.id)
	if c == nil {
		return roaring.New()
	}
	return spanRows(s, m.id, c, span{}, m.texts(c), among)
}

func (m prefixMatch) size(s source) int {
	c := s.Column(m.id)
	if c == nil {
		return 0
	}
	return spanSize(s, c, span{}, m.texts(c))
}

type containsMatch struct {
	id   segment.FieldID
	part []byte
}

// rows reads the texts that may have the part. When there are fewer candidates, it reads their texts instead.
func (m containsMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	rows := roaring.New()
	c := s.Column(m.id)
	if c == nil {
		return rows
	}
	first := firstText(c)
	holds := func(ord int) bool { return ord >= first && bytes.Contains(c.String(ord), m.part) }
	ranges, texts, indexed := m.mayContain(c, first)
	if among != nil && among.GetCardinality() < uint64(texts) {
		return pick(c, among, holds)
	}
	for _, r := range ranges {
		for ord := r.Lo; ord < r.Hi; {
			if indexed { // few of the texts have it
				ord = c.SearchPart(m.part, ord, r.Hi)
			}
			if ord == r.Hi || !holds(ord) {
				ord++
				continue
			}
			run := ord
			for ord++; ord < r.Hi && holds(ord); {
				ord++
			}
			c.AddStringRows(rows, run, ord)
		}
	}
	return within(rows, among)
}

// mayContain returns the ordinals of the texts, from first on, that may have the part, and how many they are. They are all of them unless
// an infix index leaves less than half: it is quicker to read all texts in a row than most of them in ranges.
func (m containsMatch) mayContain(c *segment.Column, first int) (ranges []segment.OrdinalRange, texts int, indexed bool) {
	if ranges, texts, indexed = c.MayContain(m.part); indexed && texts < c.Strings()/2 {
		return ranges, texts, true
	}
	return []segment.OrdinalRange{{Lo: first, Hi: c.Strings()}}, c.Strings(), false
}

// size is that of all rows: texts have to be read one by one, so every other part comes first.
func (m containsMatch) size(s source) int { return s.Rows() }

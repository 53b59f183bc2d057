package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// columnsOf returns the columns of a field by segment; nil where there is none.
func columnsOf(ix *Index, field string) []*segment.Column {
	out := make([]*segment.Column, len(ix.Segments))
	if id, ok := ix.Fields.ID(field); ok {
		for i, seg := range ix.Segments {
			out[i] = seg.Column(id)
		}
	}
	return out
}

// valueOf returns what a row is sorted by: the first of its values in the order of the sort.
func valueOf(c *segment.Column, row uint32, desc bool, ordinals *[]uint32) SortValue {
	if c == nil {
		return SortValue{Class: OfNothing}
	}
	pick := func() int {
		if desc {
			return int((*ordinals)[len(*ordinals)-1])
		}
		return int((*ordinals)[0])
	}
	first := emptyStrings(c)
	if *ordinals = c.RowNumbers((*ordinals)[:0], segment.Row(row)); len(*ordinals) > 0 {
		return SortValue{Class: OfNumber, Number: c.Number(pick())}
	}
	*ordinals = c.RowStrings((*ordinals)[:0], segment.Row(row))
	if first > 0 && len(*ordinals) > 0 && (*ordinals)[0] == 0 {
		*ordinals = (*ordinals)[1:]
	}
	if len(*ordinals) > 0 {
		return SortValue{Class: OfText, Text: c.String(pick())}
	}
	return SortValue{Class: OfNothing}
}

// sortCosts numbers the entries by value and returns the value of each number.
func (s *search) sortCosts(e []entry, r *rule, costs []uint32) []SortValue {
	columns := columnsOf(s.ix, r.field)
	m := &s.sorting
	m.values = slices.Grow(m.values[:0], len(e))[:len(e)]
	m.order = slices.Grow(m.order[:0], len(e))[:len(e)]
	values, order := m.values, m.order
	var ordinals []uint32
	for i := range e {
		values[i] = valueOf(columns[e[i].segment], e[i].row, r.desc, &ordinals)
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return values[i].Compare(&values[j], r.desc) })
	var out []SortValue
	for k, i := range order {
		if k == 0 || values[i].Compare(&out[len(out)-1], r.desc) != 0 {
			out = append(out, values[i])
		}
		costs[i] = uint32(len(out) - 1)
	}
	return out
}

// sorting is the memory of sortCosts.
type sorting struct {
	values []SortValue
	order  []int
}

// walks reports whether it is quicker to walk the values of a column in order until enough
// documents of the bucket are found than to look up the value of each document. Values are taken to be spread evenly.
func (s *search) walks(b *bucket, r *rule) bool {
	if b.n <= listRows {
		return false
	}
	values := 0
	for _, c := range columnsOf(s.ix, r.field) {
		if c != nil {
			values += c.Numbers() + c.Strings()
		}
	}
	return stepTime*values*s.wanted(b)/b.n < b.n
}

// wanted returns how many documents of a bucket the answer may still need.
func (s *search) wanted(b *bucket) int { return min(s.out.skip+s.out.limit-len(s.out.hits), b.n) }

// stepTime is the time of a step to the next value of a column, in look-ups of the value of a document.
const stepTime = 4

// splitKey yields the documents of a bucket by the value of a sort, as bitmaps.
func (s *search) splitKey(b *bucket, i int, yield func(*bucket, part) bool) {
	s.splitRows(b, b.rows, i, yield)
}

// splitRows yields some documents of a bucket by the value of each.
func (s *search) splitRows(b *bucket, in rows, i int, yield func(*bucket, part) bool) {
	n := in.count()
	l := list{entries: make([]entry, 0, n), uniform: true}
	for seg, r := range in {
		if r == nil {
			continue
		}
		for it := r.Iterator(); it.HasNext(); {
			l.entries = append(l.entries, entry{row: it.Next(), segment: uint16(seg)})
		}
	}
	costs := make([]uint32, n)
	o := s.evaluate(&l, i, costs)
	s.order(l.entries, costs)
	for begin := 0; begin < n; {
		r := make(rows, len(b.rows))
		end := begin
		for ; end < n && costs[end] == costs[begin]; end++ {
			e := l.entries[end]
			if r[e.segment] == nil {
				r[e.segment] = roaring.New()
			}
			r[e.segment].Add(e.row)
		}
		if !yield(b.part(r), o.part(i, costs[begin])) {
			return
		}
		begin = end
	}
}

// part returns the part of a bucket that has some of its rows and is alike in all else.
func (b *bucket) part(r rows) *bucket {
	sub := *b
	sub.rows, sub.n, sub.byCost = r, r.count(), nil
	if len(b.paths) > 0 {
		sub.paths = make([]path, 0, len(b.paths))
		for _, p := range b.paths {
			if len(b.paths) == 1 {
				p.rows = r
			} else if p.rows = p.rows.and(r); p.rows.isEmpty() {
				continue
			}
			sub.paths = append(sub.paths, p)
		}
	}
	return &sub
}

// columnCursor stands at the next value of one segment's column.
type columnCursor struct {
	column  *segment.Column
	segment int
	first   int // ordinal of the class to start from
	next    int // ordinal of the class
}

// walkColumn yields a large bucket by value, walking the values in order: a bucket has many
// documents for few values, or only its beginning is needed. When that proves wrong, the rest is looked up.
func (s *search) walkColumn(b *bucket, i int, yield func(*bucket, part) bool) {
	r := &s.rules[i]
	left := b.rows
	n, steps := b.n, 0
	for _, class := range []ValueClass{OfNumber, OfText} {
		var cursors []columnCursor
		for seg, c := range columnsOf(s.ix, r.field) {
			if c == nil || left[seg] == nil {
				continue
			}
			cur := columnCursor{column: c, segment: seg}
			if class == OfText {
				cur.first = emptyStrings(c)
			}
			if size := cur.size(class); size > cur.first {
				cur.next = cur.first
				if r.desc {
					cur.next = size - 1
				}
				cursors = append(cursors, cur)
			}
		}
		for len(cursors) > 0 && n > 0 {
			if steps++; stepTime*steps > b.n && n > listRows {
				s.splitRows(b, left, i, yield)
				return
			}
			best := cursors[0].value(class)
			for i := 1; i < len(cursors); i++ {
				if v := cursors[i].value(class); v.Compare(&best, r.desc) < 0 {
					best = v
				}
			}
			found := make(rows, len(b.rows))
			for i := 0; i < len(cursors); i++ {
				cur := &cursors[i]
				if v := cur.value(class); v.Compare(&best, r.desc) != 0 {
					continue
				}
				hit := roaring.New()
				cur.addRows(hit, class)
				found[cur.segment] = and(hit, left[cur.segment])
				if !cur.advance(class, r.desc) {
					cursors = slices.Delete(cursors, i, i+1)
					i--
				}
			}
			if found.isEmpty() {
				continue
			}
			sub := b.part(found)
			left = left.andNot(found)
			n -= sub.n
			if !yield(sub, part{kind: ruleSort, value: best}) {
				return
			}
		}
	}
	if n > 0 {
		yield(b.part(left), part{kind: ruleSort, value: SortValue{Class: OfNothing}})
	}
}

// emptyStrings returns how many ordinals stand for a string without content, which is no value.
func emptyStrings(c *segment.Column) int {
	if c.Strings() > 0 && len(c.String(0)) == 0 {
		return 1
	}
	return 0
}

func (c *columnCursor) size(class ValueClass) int {
	if class == OfNumber {
		return c.column.Numbers()
	}
	return c.column.Strings()
}

func (c *columnCursor) value(class ValueClass) SortValue {
	if class == OfNumber {
		return SortValue{Class: OfNumber, Number: c.column.Number(c.next)}
	}
	return SortValue{Class: OfText, Text: c.column.String(c.next)}
}

func (c *columnCursor) addRows(dst *roaring.Bitmap, class ValueClass) {
	if class == OfNumber {
		c.column.AddNumberRows(dst, c.next, c.next+1)
	} else {
		c.column.AddStringRows(dst, c.next, c.next+1)
	}
}

func (c *columnCursor) advance(class ValueClass, desc bool) bool {
	if desc {
		c.next--
		return c.next >= c.first
	}
	c.next++
	return c.next < c.size(class)
}

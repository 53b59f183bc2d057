package rank

import (
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/jsontext"
	"svc/segment"
)

// walkValues walks the values of a column in order.
const walkValues accessPath = "values in order"

// fieldSort orders documents by the values of a field.
type fieldSort struct {
	field  string
	key    string // name of its details
	hidden bool   // the value of the field is not shown
	desc   bool
}

func (r *fieldSort) name() string {
	if r.hidden {
		return "<hidden>"
	}
	return r.key
}

func (*fieldSort) traits() *traits { return &fieldSortTraits }

var fieldSortTraits = traits{row: lookUpValue, says: ByField}

func (r *fieldSort) access(s *search, b *bucket, i int) (p paths) {
	if b.interpretations == nil && s.setsFollow(i) {
		p[0] = access{effort(b.n) * lookUpValue, r.openQueue}
	}
	if b.n > listRows {
		if first := effort(b.n)*selectRow + effort(wanted(s, b))*walkValue; p[0].open == nil || first < p[0].effort {
			p[0] = access{first, r.openQueue}
		}
		p[1] = access{ofWalk(s, b, r), r.openWalk}
	}
	return p
}

// openQueue looks up the values of all rows, and sorts them as far as parts are pulled.
func (r *fieldSort) openQueue(s *search, b *bucket, _ int) split {
	var next func() (*bucket, verdict)
	return split{lookUpValues, func() (*bucket, verdict) {
		if next == nil {
			next = r.queue(s, b, b.rows)
		}
		return next()
	}}
}

// queue returns documents of a bucket by value.
func (r *fieldSort) queue(s *search, b *bucket, in rows) (next func() (*bucket, verdict)) {
	q := newValueQueue(&s.scratch, in, columnsOf(s.ix, r.field), r.desc)
	return func() (*bucket, verdict) {
		value, found := q.next(passed(s))
		if found == nil {
			return nil, verdict{}
		}
		return b.part(found), verdict{value: value}
	}
}

func (r *fieldSort) openWalk(s *search, b *bucket, i int) split {
	var w *valueWalk
	return split{walkValues, func() (*bucket, verdict) {
		if w == nil {
			w = &valueWalk{s: s, b: b, i: i, r: r, left: slices.Clone(b.rows), n: b.n}
			w.open(OfNumber)
		}
		return w.next()
	}}
}

func (r *fieldSort) costs(s *search, l *list, _ int, costs []uint32) outcome {
	return outcome{values: sortCosts(&s.scratch, l.entries, columnsOf(s.ix, r.field), r.desc, costs)}
}

// details writes the value, unless the field is not displayed.
func (r *fieldSort) details(d *detailWriter, verdicts []verdict) int {
	if r.hidden {
		d.open("<hidden-rule-" + strconv.FormatUint(d.order, 10) + ">")
		d.string("value", "<hidden>")
		return 1
	}
	d.open(r.key)
	switch v := &verdicts[0].value; v.Class {
	case OfNumber:
		d.name("value")
		d.dst = jsontext.AppendValue(d.dst, v.Numeric())
	case OfText:
		d.string("value", string(v.Text))
	default:
		d.null("value")
	}
	return 1
}

func (r *fieldSort) value(verdicts []verdict) (ScoreValue, int) {
	return ScoreValue{Kind: ByField, Sort: verdicts[0].value, Desc: r.desc}, 1
}

// ofWalk is the effort of finding the first documents of a bucket by walking the values of a field in order.
func ofWalk(s *search, b *bucket, r *fieldSort) effort {
	values := 0
	for _, c := range columnsOf(s.ix, r.field) {
		if c != nil {
			values += c.Numbers() + c.Strings()
		}
	}
	return walkValue * effort(values) * effort(wanted(s, b)) / effort(b.n)
}

// columnCursor is the position of the next value in the column of one segment.
type columnCursor struct {
	column  *segment.Column
	segment int
	first   int      // ordinal of the class to start from
	next    int      // ordinal of the class
	bits    []uint64 // of documents, one per row; nil: ordinals without documents are not skipped
}

// idleSteps is the number of consecutive values without documents of the bucket after which the documents are marked in a bit set, so
// that the cursor can skip such values. If the filter is on the sort field, most values may come before the first document. (A
// variable, so that tests can lower it.)
var idleSteps = 16

// valueWalk divides a large bucket by value, walking the values in order: a bucket has many documents for few values, or only its
// beginning is needed. If that proves wrong, it looks up the value of each remaining row.
type valueWalk struct {
	s       *search
	b       *bucket
	i       int
	r       *fieldSort
	left    rows
	own     []bool // by segment: left is not shared
	n       int    // of left
	steps   int
	idle    int // steps without documents
	class   ValueClass
	cursors []columnCursor
	lookUp  func() (*bucket, verdict) // of the rest
}

// open begins with the values of a class.
func (w *valueWalk) open(class ValueClass) {
	w.class, w.cursors, w.idle = class, w.cursors[:0], 0
	for seg, c := range columnsOf(w.s.ix, w.r.field) {
		if c == nil || w.left[seg] == nil {
			continue
		}
		cur := columnCursor{column: c, segment: seg}
		if class == OfText {
			cur.first = emptyStrings(c)
		}
		if size := cur.size(class); size > cur.first {
			cur.next = cur.first
			if w.r.desc {
				cur.next = size - 1
			}
			w.cursors = append(w.cursors, cur)
		}
	}
}

// next returns the rows with the next value: numbers first, then texts, then rows without a value. It changes to looking up the value
// of each row when walking has cost more than that would.
func (w *valueWalk) next() (*bucket, verdict) {
	for w.lookUp == nil && w.n > 0 {
		if len(w.cursors) == 0 {
			if w.class == OfText {
				w.n = 0
				return w.b.part(w.left), verdict{value: SortValue{Class: OfNothing}}
			}
			w.open(OfText)
			continue
		}
		if w.steps++; walkValue*effort(w.steps) > lookUpValue*effort(w.b.n) && w.n > listRows {
			w.lookUp = w.r.queue(w.s, w.b, w.left)
			break
		}
		value, found := w.step()
		if found.isEmpty() {
			if w.idle++; w.idle == idleSteps {
				w.cursors = passOver(w.cursors, w.left, w.class, w.r.desc)
			}
			continue
		}
		sub := w.b.part(found)
		w.own = w.left.remove(found, w.own)
		w.n -= sub.n
		return sub, verdict{value: value}
	}
	if w.lookUp != nil {
		return w.lookUp()
	}
	return nil, verdict{}
}

// step returns the remaining documents with the next value.
func (w *valueWalk) step() (best SortValue, found rows) {
	best = w.cursors[0].value(w.class)
	for i := 1; i < len(w.cursors); i++ {
		if v := w.cursors[i].value(w.class); v.Compare(&best, w.r.desc) < 0 {
			best = v
		}
	}
	found = make(rows, len(w.b.rows))
	for i := 0; i < len(w.cursors); i++ {
		cur := &w.cursors[i]
		if v := cur.value(w.class); v.Compare(&best, w.r.desc) != 0 {
			continue
		}
		found[cur.segment] = cur.rows(w.left[cur.segment], w.class)
		if !cur.advance(w.class, w.r.desc) {
			w.cursors = slices.Delete(w.cursors, i, i+1)
			i--
		}
	}
	return best, found
}

func (c *columnCursor) size(class ValueClass) int {
	if class == OfNumber {
		return c.column.Numbers()
	}
	return c.column.Strings()
}

func (c *columnCursor) value(class ValueClass) SortValue {
	if class == OfNumber {
		return NumberValue(c.column.Number(c.next))
	}
	return SortValue{Class: OfText, Text: c.column.String(c.next)}
}

// rows returns the documents that have the value, or nil if there are none.
func (c *columnCursor) rows(among *roaring.Bitmap, class ValueClass) *roaring.Bitmap {
	if among == nil {
		return nil
	}
	found := roaring.New()
	if class == OfNumber {
		c.column.AddNumberRowsAmong(found, c.next, among)
	} else {
		c.column.AddStringRowsAmong(found, c.next, among)
	}
	if found.IsEmpty() {
		return nil
	}
	return found
}

func (c *columnCursor) advance(class ValueClass, desc bool) bool {
	if desc {
		c.next--
	} else {
		c.next++
	}
	return c.settle(class, desc)
}

// settle moves to the next value that a marked document has, if documents are marked. It returns false if there is none.
func (c *columnCursor) settle(class ValueClass, desc bool) bool {
	switch {
	case c.bits == nil, c.next < c.first, c.next >= c.size(class):
	case class == OfNumber && desc:
		c.next = c.column.LastMarkedNumber(c.next, c.bits)
	case class == OfNumber:
		c.next = c.column.NextMarkedNumber(c.next, c.bits)
	case desc:
		c.next = c.column.LastMarkedString(c.next, c.bits)
	default:
		c.next = c.column.NextMarkedString(c.next, c.bits)
	}
	return c.first <= c.next && c.next < c.size(class)
}

// passOver makes cursors skip values that no document of left has from here on. It removes cursors that reach no other value.
func passOver(cursors []columnCursor, left rows, class ValueClass, desc bool) []columnCursor {
	kept := cursors[:0]
	for _, c := range cursors {
		if among := left[c.segment]; among != nil {
			if c.bits = among.ToDense(); c.settle(class, desc) {
				kept = append(kept, c)
			}
		}
	}
	return kept
}

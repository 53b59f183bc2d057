package search

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/index"
	"svc/internal/rank"
	"svc/internal/turns"
	"svc/segment"
)

// groupedRows are documents of an index whose groups are counted.
type groupedRows struct {
	view    *index.View
	columns rank.GroupColumns
	all     []*roaring.Bitmap // by segment
	counted []valueCounts     // by segment, what count leaves to meet; nil: meet is not called
}

// valueCounts are how many of the documents in a segment have each value of a column, by ordinal; nil: not counted.
type valueCounts struct {
	numbers, texts []uint32
}

// counted returns what the search found.
func (g *grouper) counted() groupedRows {
	return groupedRows{view: g.k.view, columns: g.columns, all: g.all}
}

// count adds to groups how many of the documents they have.
func (g *groupedRows) count(ctx context.Context, page []*group) error {
	for seg, rows := range g.all {
		if !rows.IsEmpty() {
			if err := g.countIn(ctx, page, seg, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// countIn adds how many documents of a segment the groups of the page have.
func (g *groupedRows) countIn(ctx context.Context, page []*group, seg int, rows *roaring.Bitmap) error {
	t, c := turns.Of(ctx), g.columns[seg]
	found, size := int(rows.GetCardinality()), g.view.Segments[seg].Rows()
	ords := make([]int, len(page))
	entries, strings := 0, false
	for i, one := range page {
		switch ords[i] = one.ordinal(g.columns, seg); {
		case one.key.Kind == rank.NoKey:
			if !g.columns.Filled(seg, size) {
				one.count += int(rowsOf(g.columns, seg, &one.key, rows).GetCardinality())
			}
		case ords[i] < 0:
		case one.key.Kind == rank.NumberKey:
			entries += c.NumberCount(ords[i])
		default:
			entries += c.StringCount(ords[i])
			strings = true
		}
	}
	if c == nil {
		return nil
	}
	all := found == size
	effort := found * countedRow
	if g.counted != nil && singleClass(c) && found < size/metShare {
		effort = 0 // meet reads these rows anyway
	}
	var numbers, texts []uint32 // counts by ordinal; nil: each is counted by itself
	if !all && effort+c.Numbers()+c.Strings() < entries {
		if err := t.Account().Hold(4 * int64(c.Numbers()+c.Strings())); err != nil {
			return err
		}
		numbers, texts = make([]uint32, c.Numbers()), make([]uint32, c.Strings())
		batch := rowBatches.Get().(*[metRows]uint32)
		defer rowBatches.Put(batch)
		for it := rows.ManyIterator(); ; {
			n := it.NextMany(batch[:])
			if n == 0 {
				break
			}
			if err := t.Yield(); err != nil {
				return err
			}
			if c.Numbers() > 0 {
				c.CountNumbers(numbers, batch[:n])
			}
			if c.Strings() > 0 {
				c.CountStrings(texts, batch[:n])
			}
		}
		if g.counted != nil {
			g.counted[seg] = valueCounts{numbers, texts}
		}
	}
	var marked []uint64
	if strings && !all && texts == nil {
		marked = make([]uint64, (size+63)/64)
		rows.WriteDenseTo(marked)
	}
	for i, one := range page {
		switch ord := ords[i]; {
		case ord < 0:
		case one.key.Kind == rank.NumberKey:
			switch {
			case all:
				one.count += c.NumberCount(ord)
			case numbers != nil:
				one.count += int(numbers[ord])
			default:
				one.count += c.CountNumberRows(ord, rows)
			}
		case all:
			one.count += c.StringCount(ord)
		case texts != nil:
			one.count += int(texts[ord])
		default:
			one.count += c.CountMarkedStringRows(ord, rows, marked)
		}
	}
	return nil
}

// rowBatches pools buffers for the rows that are read at once.
var rowBatches = sync.Pool{New: func() any { return new([metRows]uint32) }}

// singleClass reports whether each row has one value of a column at most.
func singleClass(c *segment.Column) bool {
	return c.Strings() == 0 && c.SingleNumbers() || c.Numbers() == 0 && c.SingleStrings()
}

// countsOf returns the counts of a segment's values. ok is false if the counts do not show whether all documents have a value.
func (g *groupedRows) countsOf(seg int) (counted valueCounts, ok bool) {
	if g.counted == nil || g.counted[seg].numbers == nil || !singleClass(g.columns[seg]) {
		return valueCounts{}, false
	}
	return g.counted[seg], true
}

// metShare: counting and meeting share one pass if fewer than one in this many rows are candidates. With more candidates, meet has
// all values soon.
const metShare = 8

// countedRow is how many entries of a value's rows can be counted in the time of reading a row's values.
const countedRow = 2

// metKeys are the distinct keys of documents, of one or several indexes.
type metKeys struct {
	numbers, texts []ordinalsOf
	none           bool // a document has no key
	many           int  // there are at least so many keys, which the lists lack in part; 0: the lists have all
}

// meet returns the keys of the documents, or says that there are as many as most.
func (g *groupedRows) meet(ctx context.Context, most int) (keys metKeys, err error) {
	t := turns.Of(ctx)
	for seg, c := range g.columns {
		rows := g.all[seg]
		if rows.IsEmpty() {
			continue
		}
		if c == nil {
			keys.none = true
			continue
		}
		size := g.view.Segments[seg].Rows()
		filled := g.columns.Filled(seg, size)
		if filled && c.Numbers()+c.Strings() >= most && int(rows.GetCardinality()) == size {
			return metKeys{many: most}, nil
		}
		if err := t.Account().Hold(int64(c.Numbers()+c.Strings())/2 + 1); err != nil { // ordinals that are met, and a list of some
			return keys, err
		}
		met := newMetOrdinals(c)
		if counted, ok := g.countsOf(seg); ok {
			met.addCounted(counted, int(rows.GetCardinality()))
		} else if filled && int(rows.GetCardinality()) == size {
			met.addAll()
		} else if err := met.add(t.Yield, rows, most, filled); err != nil {
			return keys, err
		}
		if met.n >= most {
			return metKeys{many: most}, nil
		}
		keys.none = keys.none || met.none
		keys.numbers = append(keys.numbers, ordinalsOf{c, met.numbers.list()})
		keys.texts = append(keys.texts, ordinalsOf{c, met.texts.list()})
	}
	return keys, nil
}

// total returns the number of keys, up to most. It empties the lists.
func (k *metKeys) total(most int) int {
	if k.many > 0 {
		return min(k.many, most)
	}
	total := different(k.numbers, func(a, b *ordinalsOf) int {
		return a.column.Number(int(a.ords[0])).Compare(b.column.Number(int(b.ords[0])))
	})
	total += different(k.texts, func(a, b *ordinalsOf) int {
		return cmp.Compare(string(a.column.String(int(a.ords[0]))), string(b.column.String(int(b.ords[0]))))
	})
	if k.none {
		total++
	}
	return min(total, most)
}

// metOrdinals are the ordinals of a column that some rows have.
type metOrdinals struct {
	column         *segment.Column
	numbers, texts ordinalBits
	n              int  // ordinals
	none           bool // some row has no value

	ords, places []uint32
	has          [metRows]bool // by row of a batch: it has a value
}

// metRows is how many rows are looked at at once.
const metRows = 1024

// ordinalBits are a set of ordinals.
type ordinalBits []uint64

// list returns the ordinals whose bits are set, ascending.
func (b ordinalBits) list() []uint32 {
	var ords []uint32
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			ords = append(ords, uint32(64*i+bits.TrailingZeros64(word)))
		}
	}
	return ords
}

func newMetOrdinals(c *segment.Column) *metOrdinals {
	return &metOrdinals{column: c, numbers: make(ordinalBits, (c.Numbers()+63)/64), texts: make(ordinalBits, (c.Strings()+63)/64)}
}

// add adds the ordinals of rows. It stops once there are enough of them, or all. filled says that each row has one.
func (m *metOrdinals) add(yield func() error, rows *roaring.Bitmap, enough int, filled bool) error {
	values := m.column.Numbers() + m.column.Strings()
	batch := rowBatches.Get().(*[metRows]uint32)
	defer rowBatches.Put(batch)
	for it := rows.ManyIterator(); m.n < enough && (m.n < values || !filled && !m.none); {
		n := it.NextMany(batch[:])
		if n == 0 {
			return nil
		}
		if err := yield(); err != nil {
			return err
		}
		clear(m.has[:n])
		if m.column.Numbers() > 0 {
			m.ords, m.places = m.column.EachNumber(m.ords[:0], m.places[:0], batch[:n])
			m.note(m.numbers)
		}
		if m.column.Strings() > 0 {
			m.ords, m.places = m.column.EachString(m.ords[:0], m.places[:0], batch[:n])
			m.note(m.texts)
		}
		m.none = m.none || slices.Contains(m.has[:n], false)
	}
	return nil
}

// addAll adds all ordinals.
func (m *metOrdinals) addAll() {
	for ord := range m.column.Numbers() {
		m.numbers[ord/64] |= 1 << (ord % 64)
	}
	for ord := range m.column.Strings() {
		m.texts[ord/64] |= 1 << (ord % 64)
	}
	m.n = m.column.Numbers() + m.column.Strings()
}

// addCounted adds the ordinals of some of the rows, each of which has at most one ordinal.
func (m *metOrdinals) addCounted(counted valueCounts, rows int) {
	valued := 0
	add := func(met ordinalBits, counts []uint32) {
		for ord, n := range counts {
			if n > 0 {
				met[ord/64] |= 1 << (ord % 64)
				m.n++
				valued += int(n)
			}
		}
	}
	add(m.numbers, counted.numbers)
	add(m.texts, counted.texts)
	m.none = valued < rows
}

// note counts ordinals that were not met before, and notes which rows have any.
func (m *metOrdinals) note(met ordinalBits) {
	for i, ord := range m.ords {
		if bit := uint64(1) << (ord % 64); met[ord/64]&bit == 0 {
			met[ord/64] |= bit
			m.n++
		}
		m.has[m.places[i]] = true
	}
}

// ordinalsOf are some ordinals of a column, ascending.
type ordinalsOf struct {
	column *segment.Column
	ords   []uint32
}

// different counts the different values of lists, which it empties. compare compares the first values of two.
func different(lists []ordinalsOf, compare func(a, b *ordinalsOf) int) (n int) {
	empty := func(l ordinalsOf) bool { return len(l.ords) == 0 }
	for {
		if lists = slices.DeleteFunc(lists, empty); len(lists) <= 1 {
			break
		}
		least := 0
		for i := range lists {
			if compare(&lists[i], &lists[least]) < 0 {
				least = i
			}
		}
		for i := range lists {
			if i != least && compare(&lists[i], &lists[least]) == 0 {
				lists[i].ords = lists[i].ords[1:]
			}
		}
		lists[least].ords = lists[least].ords[1:]
		n++
	}
	for _, l := range lists {
		n += len(l.ords)
	}
	return n
}

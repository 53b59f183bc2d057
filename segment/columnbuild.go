package segment

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"
	"slices"

	"svc/internal/numeric"
)

// maxStringBytes is the longest string of a column; longer ones are cut there.
const maxStringBytes = 1<<16 - 1

// columnBuilder collects the values of one field. Rows mostly come in ascending order, but those of elements may not.
type columnBuilder struct {
	inElements  *columnBuilder // has all numbers and strings, by element; nil: they are here
	made        *columnData    // of the column of elements, from when that by row is made until it is written; else nil
	null, empty rowSet
	numbers     []rowNumber
	rests       bool         // a number has one
	strings     []rowOrdinal // ordinal: number in table, until encoded
	table       byteTable    // normalised strings
	originals   []string     // by number in table; "" when as normalised
	originBytes int64
	disordered  bool // rows did not ascend: those of elements
}

type rowNumber struct {
	row   uint32
	rest  int16
	float float64
}

func (n rowNumber) value() numeric.Value { return numeric.Value{Float: n.float, Rest: n.rest} }

type rowOrdinal struct{ row, ord uint32 }

// number adds a value of a row. Not-a-number is left out. Rows may come in any order; only then they are
// sorted later.
func (c *columnBuilder) number(row uint32, x numeric.Value) {
	if math.IsNaN(x.Float) {
		return
	}
	c.rests = c.rests || x.Rest != 0
	if n := len(c.numbers); n > 0 && c.numbers[n-1].row > row {
		c.disordered = true
	}
	c.numbers = append(c.numbers, rowNumber{row, x.Rest, x.Float + 0}) // −0 + 0 is 0
}

// string adds a value of a row: the normalised form, cut to maxStringBytes, is the key of the column,
// original the spelling to show. The column keeps the spelling of the first call for a key. If a later one
// differs, the stored spelling gets variesMark in front.
func (c *columnBuilder) string(row uint32, normalized, original []byte) {
	normalized = normalized[:min(len(normalized), maxStringBytes)]
	n, fresh := c.table.index(normalized, 0)
	if fresh {
		o := ""
		if !bytes.Equal(normalized, original) {
			o = string(original)
		}
		c.originals = append(c.originals, o)
		c.originBytes += int64(len(o))
	} else if !c.spelled(n, normalized, original) {
		o := c.originals[n]
		if o == "" {
			o = string(normalized)
		}
		c.originals[n] = string(variesMark) + o
		c.originBytes += int64(len(o)) + 1
	}
	if n := len(c.strings); n > 0 && c.strings[n-1].row > row {
		c.disordered = true
	}
	c.strings = append(c.strings, rowOrdinal{row, uint32(n)})
}

// spelled reports whether string n is marked as varying, or has had this very spelling so far.
func (c *columnBuilder) spelled(n int, normalized, original []byte) bool {
	switch o := c.originals[n]; {
	case o == "":
		return bytes.Equal(normalized, original)
	case o[0] == variesMark[0]:
		return true
	default:
		return o == string(original)
	}
}

func (c *columnBuilder) memoryBytes() int64 {
	return c.originBytes + c.table.memoryBytes() + int64(cap(c.originals)*16+cap(c.numbers)*16+cap(c.strings)*8+
		(cap(c.null.runs)+cap(c.empty.runs))*8)
}

// columnData is a column before it is written: distinct values ascending, and
// which rows have which, ascending by row, then ordinal, without repetition.
type columnData struct {
	rows        int // of the segment
	null, empty []uint32
	numbers     numberList
	numberPairs []rowOrdinal
	rounded     bool // numbers are rounded: the writer of one of the input columns did so
	strings     func(ord int) []byte
	originals   func(ord int) []byte // empty: as the normalised string
	stringCount int
	stringPairs []rowOrdinal
	planes      bool        // ordinals of rows that have one at most may be written in planes
	worked      func(n int) // called with the number of rows and strings processed since the last call; may be nil
}

// numberList are ascending numbers.
type numberList struct {
	floats []float64
	rests  []int16 // nil: nothing
}

func (l *numberList) len() int { return len(l.floats) }

func (l *numberList) append(v numeric.Value) {
	if v.Rest != 0 && l.rests == nil {
		l.rests = make([]int16, len(l.floats))
	}
	l.floats = append(l.floats, v.Float)
	if l.rests != nil {
		l.rests = append(l.rests, v.Rest)
	}
}

// ordinals numbers the values of what was gathered.
func (c *columnBuilder) ordinals(worked func(n int)) (values numberList, pairs []rowOrdinal) {
	pairs = make([]rowOrdinal, len(c.numbers))
	if c.rests {
		all := make([]numeric.Value, len(c.numbers))
		for i, n := range c.numbers {
			all[i] = n.value()
		}
		slices.SortFunc(all, numeric.Value.Compare)
		worked(len(all))
		all = slices.Compact(all)
		for _, v := range all {
			values.append(v)
		}
		for i, n := range c.numbers {
			ord, _ := slices.BinarySearchFunc(all, n.value(), numeric.Value.Compare)
			pairs[i] = rowOrdinal{n.row, uint32(ord)}
			worked(1)
		}
		return values, pairs
	}
	if floats := c.fewFloats(pairs, worked); floats != nil {
		return numberList{floats: floats}, pairs
	}
	floats := make([]float64, len(c.numbers))
	for i, n := range c.numbers {
		floats[i] = n.float
	}
	slices.Sort(floats)
	worked(len(floats))
	floats = slices.Compact(floats)
	for i, n := range c.numbers {
		ord, _ := slices.BinarySearch(floats, n.float)
		pairs[i] = rowOrdinal{n.row, uint32(ord)}
		worked(1)
	}
	return numberList{floats: floats}, pairs
}

const (
	// minRepeats is how often a number must be repeated on average for fewFloats, which looks each up in a table that fits a cache.
	minRepeats = 8
	maxFew     = 1 << 15
	minFew     = 16

	// maxProbes bounds the work for numbers that were chosen to share slots.
	maxProbes = 32
)

// fewFloats returns the distinct numbers, ascending, and sets pairs to their ordinals. If many are distinct, it returns nil and leaves
// pairs undefined. It is several times as fast as sorting all numbers. They have no rests.
func (c *columnBuilder) fewFloats(pairs []rowOrdinal, worked func(n int)) []float64 {
	limit := min(len(c.numbers)/minRepeats, maxFew)
	if limit < minFew {
		return nil
	}
	width := bits.Len(uint(4*limit - 1))
	slots := make([]uint32, 1<<width) // number in found + 1; 0: none
	found := make([]float64, 0, limit)
	for i, n := range c.numbers {
		at, probes := int(numeric.Value{Float: n.float}.Hash()>>(64-width)), 0
		for slots[at] != 0 && found[slots[at]-1] != n.float {
			if at, probes = (at+1)&(len(slots)-1), probes+1; probes == maxProbes {
				return nil
			}
		}
		if slots[at] == 0 {
			if len(found) == limit {
				return nil
			}
			found = append(found, n.float)
			slots[at] = uint32(len(found))
		}
		pairs[i] = rowOrdinal{n.row, slots[at] - 1}
		worked(1)
	}
	order := make([]uint32, len(found))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(found[a], found[b]) })
	floats, ords := make([]float64, len(found)), make([]uint32, len(found))
	for ord, i := range order {
		floats[ord], ords[i] = found[i], uint32(ord)
	}
	for i := range pairs {
		pairs[i].ord = ords[pairs[i].ord]
	}
	worked(len(pairs))
	return floats
}

// data sorts the collected values. worked is called with numbers of rows and comparisons.
func (c *columnBuilder) data(rows int, worked func(n int)) *columnData {
	if d := c.made; d != nil {
		c.made = nil
		return d
	}
	d := &columnData{rows: rows, null: c.null.appendTo(nil), empty: c.empty.appendTo(nil), stringCount: c.table.len(), worked: worked}
	if len(c.numbers) > 0 {
		d.numbers, d.numberPairs = c.ordinals(worked)
		c.ascend(d.numberPairs)
		d.numberPairs = sortPairs(d.numberPairs)
	}
	if d.stringCount > 0 {
		order := c.sortedStrings(worked)
		ords := make([]uint32, d.stringCount)
		for ord, n := range order {
			ords[n] = uint32(ord)
		}
		d.stringPairs = make([]rowOrdinal, len(c.strings))
		for i, s := range c.strings {
			d.stringPairs[i] = rowOrdinal{s.row, ords[s.ord]}
		}
		c.ascend(d.stringPairs)
		d.stringPairs = sortPairs(d.stringPairs)
		d.strings = func(ord int) []byte { return c.table.key(int(order[ord])) }
		d.originals = func(ord int) []byte { return []byte(c.originals[order[ord]]) }
	}
	return d
}

// sortedStrings returns the numbers of all strings by their bytes. The first bytes of most strings differ, and lie side by side.
func (c *columnBuilder) sortedStrings(worked func(n int)) []uint32 {
	type headed struct {
		head   uint64
		number uint32
	}
	all := make([]headed, c.table.len())
	for n := range all {
		head, _ := wordHead(c.table.key(n))
		all[n] = headed{head, uint32(n)}
	}
	slices.SortFunc(all, func(a, b headed) int {
		worked(1)
		switch {
		case a.head < b.head:
			return -1
		case a.head > b.head:
			return 1
		}
		return bytes.Compare(c.table.key(int(a.number)), c.table.key(int(b.number)))
	})
	order := make([]uint32, len(all))
	for i, h := range all {
		order[i] = h.number
	}
	return order
}

// ascend sorts pairs by row where they do not ascend yet.
func (c *columnBuilder) ascend(pairs []rowOrdinal) {
	if c.disordered {
		slices.SortFunc(pairs, func(a, b rowOrdinal) int { return cmp.Compare(a.row, b.row) })
	}
}

// sortPairs sorts pairs that ascend by row already, and drops repetitions.
func sortPairs(pairs []rowOrdinal) []rowOrdinal {
	for i := 0; i < len(pairs); {
		j := i + 1
		for j < len(pairs) && pairs[j].row == pairs[i].row {
			j++
		}
		switch n := j - i; {
		case n == 2 && pairs[i].ord > pairs[i+1].ord:
			pairs[i], pairs[i+1] = pairs[i+1], pairs[i]
		case n > 2:
			slices.SortFunc(pairs[i:j], func(a, b rowOrdinal) int { return cmp.Compare(a.ord, b.ord) })
		}
		i = j
	}
	return slices.Compact(pairs)
}

// ColumnSet builds columns apart from a Builder, for a settings change that adds
// one to rows that exist. Rows come in ascending order.
type ColumnSet struct {
	rows    int
	columns []*columnBuilder // by field; nil: none
}

// NewColumnSet creates empty columns of the fields, for a segment with rows rows.
func NewColumnSet(rows int, fields []FieldID) *ColumnSet {
	c := &ColumnSet{rows: rows}
	for _, f := range fields {
		c.column(f)
	}
	return c
}

func (c *ColumnSet) column(f FieldID) *columnBuilder {
	if int(f) < len(c.columns) && c.columns[f] != nil {
		return c.columns[f]
	}
	if n := int(f) + 1 - len(c.columns); n > 0 {
		c.columns = append(c.columns, make([]*columnBuilder, n)...)
	}
	c.columns[f] = &columnBuilder{}
	return c.columns[f]
}

// has reports whether there is a column of a field.
func (c *ColumnSet) has(f FieldID) bool { return int(f) < len(c.columns) && c.columns[f] != nil }

// fields returns the fields of all columns, ascending.
func (c *ColumnSet) fields() (fields []FieldID) {
	for f, b := range c.columns {
		if b != nil {
			fields = append(fields, FieldID(f))
		}
	}
	return fields
}

// Number adds a number to the row's values of a field.
func (c *ColumnSet) Number(r Row, f FieldID, x numeric.Value) { c.column(f).number(uint32(r), x) }

// String adds a string in its normalised form, with the spelling to show. Both are copied.
func (c *ColumnSet) String(r Row, f FieldID, normalized, original []byte) {
	c.column(f).string(uint32(r), normalized, original)
}

// Null marks a row that has a null value. Empty marks a row that has "", [] or {}.
func (c *ColumnSet) Null(r Row, f FieldID)  { c.column(f).null.add(uint32(r)) }
func (c *ColumnSet) Empty(r Row, f FieldID) { c.column(f).empty.add(uint32(r)) }

// MemoryBytes returns about what the set holds.
func (c *ColumnSet) MemoryBytes() int64 { return c.memoryBytes() }

// Drop forgets the column of a field.
func (c *ColumnSet) Drop(f FieldID) {
	if c.has(f) {
		c.columns[f] = nil
	}
}

func (c *ColumnSet) memoryBytes() int64 {
	n := int64(cap(c.columns) * 8)
	for _, b := range c.columns {
		if b != nil {
			n += b.memoryBytes()
		}
	}
	return n
}

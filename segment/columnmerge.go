package segment

import (
	"bytes"
	"slices"

	"svc/segment/rowlist"
)

// mergeColumn merges the columns of a field. of returns the column of an input and its flags, or nil if it has none.
func (m *merger) mergeColumn(of func(*Reader) (*Column, uint32)) *columnData {
	d := &columnData{rows: len(m.origins), worked: m.f.worked}
	columns := make([]*Column, len(m.in))
	for i, l := range m.in {
		var flags uint32
		if columns[i], flags = of(l.Reader); columns[i] != nil {
			d.rounded = d.rounded || flags&exactColumn == 0 && columns[i].Large()
		}
	}
	bits := newRowBits(len(m.origins))
	var old []uint32
	rowsOf := func(list func(*Column) rowlist.List) []uint32 {
		for i, c := range columns {
			if c != nil {
				p := list(c)
				old = p.AppendTo(old[:0])
				bits.addMapped(old, m.rows[i])
			}
		}
		set := bits.take()
		return set.appendTo(nil)
	}
	d.null = rowsOf(func(c *Column) rowlist.List { return c.null })
	d.empty = rowsOf(func(c *Column) rowlist.List { return c.empty })

	numbers := newOrdinalMerger(m, columns, (*Column).Numbers, (*Column).EachNumber)
	numbers.merge(func(a *Column, i int, b *Column, j int) int { return a.Number(i).Compare(b.Number(j)) })
	for _, o := range numbers.values {
		d.numbers.append(columns[o.in].Number(int(o.row)))
	}
	d.numberPairs = numbers.pairs

	strings := newOrdinalMerger(m, columns, (*Column).Strings, (*Column).EachString)
	strings.merge(func(a *Column, i int, b *Column, j int) int { return bytes.Compare(a.String(i), b.String(j)) })
	d.stringCount = len(strings.values)
	d.stringPairs = strings.pairs
	d.strings = func(ord int) []byte { o := strings.values[ord]; return columns[o.in].String(int(o.row)) }
	varies := make([]bool, len(strings.values))
	for i, c := range columns {
		for j, ord := range strings.ords[i] {
			if ord != noRow {
				o := strings.values[ord]
				varies[ord] = varies[ord] || c.Varies(j) || !bytes.Equal(c.Original(j), columns[o.in].Original(int(o.row)))
			}
		}
	}
	d.originals = func(ord int) []byte {
		o := strings.values[ord]
		c := columns[o.in]
		if varies[ord] {
			return append(variesMark[:1:1], c.Original(int(o.row))...)
		}
		return c.original(int(o.row))
	}
	return d
}

// ordinalMerger brings the values of columns to common ordinals, leaving out those that no live row has.
type ordinalMerger struct {
	m       *merger
	columns []*Column
	count   func(*Column) int
	each    func(c *Column, ords, places, rows []uint32) (_, _ []uint32)

	ords   [][]uint32 // by input and ordinal there: first the lowest row of the output, at last the ordinal in it
	values []origin   // by ordinal: input and ordinal there; of the input with the lowest row
	pairs  []rowOrdinal
}

func newOrdinalMerger(m *merger, columns []*Column, count func(*Column) int, each func(*Column, []uint32, []uint32, []uint32) (_, _ []uint32)) *ordinalMerger {
	return &ordinalMerger{m: m, columns: columns, count: count, each: each}
}

// merge fills values, ords and pairs, in three steps:
//
//  1. Go through the rows of the output until all ordinals were met. Note for each ordinal of an input the lowest row that has it.
//     Ordinals that no live row has keep noRow, and disappear.
//  2. Merge the ordinals of all inputs, which ascend by value, and number the distinct values. ords changes
//     its meaning here, from lowest row to new ordinal. values records the input whose row is lowest, because
//     its spelling is the one to show.
//  3. Go through the rows again, and write pairs of row and new ordinal, ascending by row.
//
// compare orders value i of column a against value j of column b.
func (o *ordinalMerger) merge(compare func(a *Column, i int, b *Column, j int) int) {
	o.ords = make([][]uint32, len(o.columns))
	total := 0
	for i, c := range o.columns {
		if c != nil {
			o.ords[i] = make([]uint32, o.count(c))
			total += len(o.ords[i])
			for j := range o.ords[i] {
				o.ords[i][j] = noRow
			}
		}
	}
	if total == 0 {
		return
	}
	unmet := total
	o.eachStretch(func(to, in uint32, found, places []uint32) bool {
		ords := o.ords[in]
		for i, ord := range found {
			if ords[ord] == noRow {
				ords[ord] = to + places[i]
				unmet--
			}
		}
		return unmet > 0
	})
	next := make([]int, len(o.columns))
	for {
		o.m.f.worked(1)
		best := -1
		for i, c := range o.columns {
			for next[i] < len(o.ords[i]) && o.ords[i][next[i]] == noRow {
				next[i]++
			}
			if next[i] < len(o.ords[i]) && (best < 0 || compare(c, next[i], o.columns[best], next[best]) < 0) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		ord := uint32(len(o.values))
		value, lowest := origin{uint32(best), uint32(next[best])}, o.ords[best][next[best]]
		bestColumn, bestOrd := o.columns[best], next[best]
		for i := best; i < len(o.columns); i++ {
			if i != best && (next[i] >= len(o.ords[i]) || compare(o.columns[i], next[i], bestColumn, bestOrd) != 0) {
				continue
			}
			if low := o.ords[i][next[i]]; low < lowest {
				value, lowest = origin{uint32(i), uint32(next[i])}, low
			}
			o.ords[i][next[i]] = ord
			next[i]++
		}
		o.values = append(o.values, value)
	}
	o.pairs = make([]rowOrdinal, 0, len(o.m.origins))
	o.eachStretch(func(to, in uint32, found, places []uint32) bool {
		ords := o.ords[in]
		o.pairs = slices.Grow(o.pairs, len(found))
		for i, ord := range found {
			o.pairs = append(o.pairs, rowOrdinal{to + places[i], ords[ord]})
		}
		return true
	})
}

// eachStretch calls f with runs of rows of the output that come from one input, until f returns false. to is the first row of the run.
// found are the ordinals of the rows in the input, and places has for each ordinal the index of its row in the run.
func (o *ordinalMerger) eachStretch(f func(to, in uint32, found, places []uint32) bool) {
	const together = 512
	rows := make([]uint32, 0, together)
	var ords, places []uint32
	for to, origins := 0, o.m.origins; to < len(origins); to += len(rows) {
		in := origins[to].in
		rows = rows[:0]
		for _, from := range origins[to:min(to+together, len(origins))] {
			if from.in != in {
				break
			}
			rows = append(rows, from.row)
		}
		o.m.f.worked(len(rows))
		if c := o.columns[in]; c != nil {
			if ords, places = o.each(c, ords[:0], places[:0], rows); !f(uint32(to), in, ords, places) {
				return
			}
		}
	}
}

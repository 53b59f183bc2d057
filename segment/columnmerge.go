package segment

import (
	"bytes"

	"svc/segment/rowlist"
)

// mergeColumn brings the columns of a field together; of returns that of an input and its flags, nil where it has none.
func (m *merger) mergeColumn(of func(*Reader) (*Column, uint32)) *columnData {
	d := &columnData{rows: len(m.origins), worked: m.f.worked}
	columns := make([]*Column, len(m.in))
	for i, l := range m.in {
		var flags uint32
		if columns[i], flags = of(l.Reader); columns[i] != nil {
			d.rounded = d.rounded || flags&exactColumn == 0 && columns[i].large()
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

	numbers := newOrdinalMerger(m, columns, (*Column).Numbers, (*Column).RowNumbers)
	numbers.merge(func(a *Column, i int, b *Column, j int) int { return a.Number(i).Compare(b.Number(j)) })
	for _, o := range numbers.values {
		d.numbers.append(columns[o.in].Number(int(o.row)))
	}
	d.numberPairs = numbers.pairs

	strings := newOrdinalMerger(m, columns, (*Column).Strings, (*Column).RowStrings)
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
	forward func(*Column, []uint32, Row) []uint32

	ords   [][]uint32 // by input and ordinal there: first the lowest row of the output, at last the ordinal in it
	values []origin   // by ordinal: input and ordinal there; of the input with the lowest row
	pairs  []rowOrdinal
}

func newOrdinalMerger(m *merger, columns []*Column, count func(*Column) int, forward func(*Column, []uint32, Row) []uint32) *ordinalMerger {
	return &ordinalMerger{m: m, columns: columns, count: count, forward: forward}
}

// merge fills values, ords and pairs, in three steps:
//
//  1. Go through the rows of the output. Note for each ordinal of an input the lowest row that has it.
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
	var row []uint32
	for to, from := range o.m.origins {
		o.m.f.worked(1)
		if c := o.columns[from.in]; c != nil {
			row = o.forward(c, row[:0], Row(from.row))
			for _, ord := range row {
				if ords := o.ords[from.in]; int(ord) < len(ords) && ords[ord] == noRow {
					ords[ord] = uint32(to)
				}
			}
		}
	}
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
	for to, from := range o.m.origins {
		o.m.f.worked(1)
		if c := o.columns[from.in]; c != nil {
			row = o.forward(c, row[:0], Row(from.row))
			for _, ord := range row {
				if int(ord) < len(o.ords[from.in]) {
					o.pairs = append(o.pairs, rowOrdinal{uint32(to), o.ords[from.in][ord]})
				}
			}
		}
	}
}

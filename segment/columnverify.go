package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"svc/segment/rowlist"
)

func (c *Column) verify() error {
	for part := range columnParts {
		c.need(part)
	}
	for i := range c.Numbers() {
		x := c.Number(i)
		if math.IsNaN(x) || math.Signbit(x) && x == 0 || i > 0 && c.Number(i-1) >= x {
			return fmt.Errorf("number %d is %v", i, x)
		}
	}
	for i := range c.strings.n {
		s := c.strings.get(i)
		if s == nil || i > 0 && bytes.Compare(c.strings.get(i-1), s) >= 0 || c.originals.n > 0 && c.originals.get(i) == nil {
			return fmt.Errorf("string %d is %q", i, s)
		}
	}
	pairs := func(ordinals func([]uint32, Row) []uint32, n int) ([]rowOrdinal, error) {
		var pairs []rowOrdinal
		var row []uint32
		for i := range c.rows {
			row = ordinals(row[:0], Row(i))
			for j, ord := range row {
				if int(ord) >= n || j > 0 && row[j-1] >= ord {
					return nil, fmt.Errorf("row %d has ordinal %d of %d", i, ord, n)
				}
				pairs = append(pairs, rowOrdinal{uint32(i), ord})
			}
		}
		return pairs, nil
	}
	numbers, err := pairs(c.RowNumbers, c.Numbers())
	if err != nil {
		return err
	}
	strings, err := pairs(c.RowStrings, c.Strings())
	if err != nil {
		return err
	}
	for _, l := range []rowlist.List{c.null, c.empty} {
		rows := l.AppendTo(nil)
		if len(rows) != l.Count || l.Code == rowlist.Roaring && !validRoaring(l.P) {
			return fmt.Errorf("%d rows are null or empty, %d are counted", len(rows), l.Count)
		}
		for i, row := range rows {
			if int(row) >= c.rows || i > 0 && rows[i-1] >= row {
				return fmt.Errorf("row %d of %d is null or empty", row, c.rows)
			}
		}
	}
	if err := c.numberRows.verify(numbers); err != nil {
		return fmt.Errorf("numbers: %w", err)
	}
	if err := c.stringRows.verify(strings); err != nil {
		return fmt.Errorf("strings: %w", err)
	}
	return nil
}

// verify checks that the rows of each ordinal are those of the pairs.
func (v *inverse) verify(pairs []rowOrdinal) error {
	rows := make([][]uint32, v.ords)
	for _, p := range pairs {
		rows[p.ord] = append(rows[p.ord], p.row)
	}
	heavy := 0
	for ord, want := range rows {
		from, to := v.span(ord, ord+1)
		var got []uint32
		for i := from; i < to; i++ {
			got = append(got, readUint(v.light, v.width, i))
		}
		if from == to && 16*heavy < len(v.heavy) {
			l, n := v.heavyRows(heavy)
			heavy++
			if n != ord || !validRoaring(l.P) {
				return fmt.Errorf("bitmap %d is that of ordinal %d, not %d, or damaged", heavy-1, n, ord)
			}
			if got = l.AppendTo(nil); len(got) != l.Count {
				return fmt.Errorf("ordinal %d has %d rows, %d are counted", ord, len(got), l.Count)
			}
		}
		if len(want) == 0 || !slices.Equal(got, want) {
			return fmt.Errorf("ordinal %d has %d rows, %d rows have it", ord, len(got), len(want))
		}
	}
	if 16*heavy != len(v.heavy) || v.ords > 0 && int(binary.LittleEndian.Uint32(v.starts[4*v.ords:]))*v.width != len(v.light) {
		return fmt.Errorf("%d bitmaps are used of %d bytes of them", heavy, len(v.heavy))
	}
	return nil
}

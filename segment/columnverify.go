package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"svc/segment/rowlist"
)

// verify checks what a checksum cannot: that values ascend, that rows are inside the segment, and that both
// directions of the mapping between rows and ordinals say the same.
func (c *Column) verify() error {
	for part := range columnParts {
		c.need(part)
	}
	for i := range c.Numbers() {
		x := c.Number(i)
		if !x.Exact() || i > 0 && c.Number(i-1).Compare(x) >= 0 {
			return fmt.Errorf("number %d is %v", i, x)
		}
	}
	for i := range c.strings.n {
		s := c.strings.get(i)
		if s == nil || i > 0 && bytes.Compare(c.strings.get(i-1), s) >= 0 || c.originals.n > 0 && c.originals.get(i) == nil {
			return fmt.Errorf("string %d is %q", i, s)
		}
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
	if err := c.numberRows.verify(c.rows, c.RowNumbers, c.Numbers()); err != nil {
		return fmt.Errorf("numbers: %w", err)
	}
	if err := c.stringRows.verify(c.rows, c.RowStrings, c.Strings()); err != nil {
		return fmt.Errorf("strings: %w", err)
	}
	return nil
}

// verify checks that both directions of a column agree: the rows of each of n ordinals are those that have the ordinal. It makes one
// pass over the rows and advances along the rows of each ordinal, counting those seen.
func (v *inverse) verify(rows int, ordinals func([]uint32, Row) []uint32, n int) error {
	if v.ords != n {
		return fmt.Errorf("%d ordinals have rows, there are %d", v.ords, n)
	}
	type bitmap struct {
		rows  *rowlist.Cursor // nil: planes have them
		count int
	}
	heavy := map[int]*bitmap{} // by ordinal
	for ord := range n {
		from, to := v.span(ord, ord+1)
		if from != to || 16*len(heavy) >= len(v.heavy) {
			continue
		}
		l, is := v.heavyRows(len(heavy))
		if is == ord && v.inPlanes(l) {
			heavy[ord] = &bitmap{count: l.Count}
			continue
		}
		if is != ord || !validRoaring(l.P) {
			return fmt.Errorf("bitmap %d is that of ordinal %d, not %d, or damaged", len(heavy), is, ord)
		}
		if got := len(l.AppendTo(nil)); got != l.Count {
			return fmt.Errorf("ordinal %d has %d rows, %d are counted", ord, got, l.Count)
		}
		rows := l.Cursor()
		heavy[ord] = &bitmap{&rows, l.Count}
	}
	if 16*len(heavy) != len(v.heavy) || v.ords > 0 && int(binary.LittleEndian.Uint32(v.starts[4*v.ords:]))*v.width != len(v.light) {
		return fmt.Errorf("%d bitmaps are used of %d bytes of them", len(heavy), len(v.heavy))
	}
	seen := make([]uint32, n)
	var all []uint32
	for row := range uint32(rows) {
		all = ordinals(all[:0], Row(row))
		for i, ord := range all {
			if int(ord) >= n || i > 0 && all[i-1] >= ord {
				return fmt.Errorf("row %d has ordinal %d of %d", row, ord, n)
			}
			at, same := int(seen[ord]), false
			seen[ord]++
			if b := heavy[int(ord)]; b != nil && b.rows == nil {
				same = true
			} else if b != nil {
				index, ok := b.rows.Find(row)
				same = ok && index == at
			} else {
				from, to := v.span(int(ord), int(ord)+1)
				same = from+at < to && readUint(v.light, v.width, from+at) == row
			}
			if !same {
				return fmt.Errorf("row %d has ordinal %d, which has another row at %d", row, ord, at)
			}
		}
	}
	for ord, got := range seen {
		from, to := v.span(ord, ord+1)
		want := to - from
		if b := heavy[ord]; b != nil {
			want = b.count
		}
		if got == 0 || int(got) != want {
			return fmt.Errorf("ordinal %d has %d rows, %d rows have it", ord, want, got)
		}
	}
	return nil
}

package segment

import (
	"encoding/binary"

	"svc/internal/binfmt"
)

func (i *inspector) column(c *Column, begin int) {
	for part := range columnParts {
		c.need(part)
	}
	i.field(4, "%d rows", i.u32())
	i.field(4, "%d numbers", i.u32())
	i.field(4, "%d strings", i.u32())
	i.field(4*(columnParts+1), "offsets of the parts")
	names := [...]string{"null", "empty", "numbers", "rows of numbers", "numbers of rows", "strings", "originals", "rows of strings", "strings of rows", "rests of numbers"}
	for part, name := range names {
		from := int(binary.LittleEndian.Uint32(c.data[12+4*part:]))
		to := from + len(c.parts[part])
		if from == to {
			continue
		}
		i.at = begin + from
		i.t.Node(func() {
			i.field(to-from, "%s", name)
			switch part {
			case partNull:
				i.t.Note("rows %d", c.null.AppendTo(nil))
			case partEmpty:
				i.t.Note("rows %d", c.empty.AppendTo(nil))
			case partNumbers:
				i.t.List(c.Numbers(), inspectItems, func(ord int) { i.t.Note("ordinal %d: %s", ord, c.Number(ord).AppendText(nil)) })
			case partRests:
				i.t.List(c.Numbers(), inspectItems, func(ord int) { i.t.Note("ordinal %d: %d", ord, c.Number(ord).Rest) })
			case partStrings:
				i.t.List(c.Strings(), inspectItems, func(ord int) { i.t.Note("ordinal %d: %s", ord, binfmt.Text(c.String(ord), 40)) })
			case partOriginals:
				i.t.List(c.Strings(), inspectItems, func(ord int) { i.t.Note("ordinal %d: %s", ord, binfmt.Text(c.Original(ord), 40)) })
			case partNumberRows:
				i.inverse(&c.numberRows)
			case partStringRows:
				i.inverse(&c.stringRows)
			case partRowNumbers:
				i.forward(&c.rowNumbers, c.rows)
			case partRowStrings:
				i.forward(&c.rowStrings, c.rows)
			}
		}, "%s", name)
	}
}

func (i *inspector) inverse(v *inverse) {
	i.t.Note("rows of %d bytes, %d bitmaps", v.width, len(v.heavy)/16)
	i.t.List(v.ords, inspectItems, func(ord int) {
		from, to := v.span(ord, ord+1)
		rows := make([]uint32, 0, inspectItems)
		for n := from; n < to && len(rows) < inspectItems; n++ {
			rows = append(rows, readUint(v.light, v.width, n))
		}
		i.t.Note("ordinal %d: %d rows %d", ord, v.count(ord), rows)
	})
}

func (i *inspector) forward(f *forward, rows int) {
	kind := [...]string{"none", "one a row", "several a row", "few rows", "planes"}[f.kind]
	unit := "bytes"
	if f.kind == forwardPlanes {
		unit = "bits"
	}
	i.t.Note("%s, ordinals of %d %s, %d rows have any", kind, f.width, unit, f.have)
	var ords []uint32
	i.t.List(rows, inspectItems, func(row int) {
		if ords = f.append(ords[:0], Row(row)); len(ords) > 0 {
			i.t.Note("row %d: %d", row, ords)
		}
	})
}

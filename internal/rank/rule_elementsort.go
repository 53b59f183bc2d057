package rank

import (
	"slices"

	"svc/segment"
)

// elementSort orders documents by the values of chosen objects in them.
type elementSort struct {
	fieldSort // without its walk
	of        Elements
}

func (r *elementSort) access(s *search, b *bucket, i int) (p paths) {
	if b.interpretations == nil && s.setsFollow(i) {
		p[0] = access{effort(b.n) * lookUpValue, openRows}
	}
	return p
}

// costs reads the value of each row, and numbers the values in order.
func (r *elementSort) costs(s *search, l *list, _ int, costs []uint32) outcome {
	m := &s.sorting
	m.values = slices.Grow(m.values[:0], len(l.entries))[:len(l.entries)]
	for i, e := range l.entries {
		if i%clockElements == 0 && s.late() {
			for k := i; k < len(m.values); k++ {
				m.values[k] = SortValue{Class: OfNothing}
			}
			break
		}
		m.values[i] = r.of.Value(int(e.segment), e.row, r.desc)
	}
	return outcome{values: m.number(r.desc, costs)}
}

// clockElements is the number of documents between two checks of the deadline.
const clockElements = 1 << 10

// FirstValue returns the first of the values of a row of a column in the order of a sort. ordinals is scratch memory.
func FirstValue(c *segment.Column, row uint32, desc bool, ordinals *[]uint32) SortValue {
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
		return NumberValue(c.Number(pick()))
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

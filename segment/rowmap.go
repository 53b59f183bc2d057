package segment

// rowMap maps the rows of an input of a merge to rows of the output. Neighbouring rows of an input mostly stay neighbours, because
// documents come to segments in long runs. So a small table, which stays in the caches of the processor, has most rows; the rows of a
// large input take megabytes.
type rowMap struct {
	to     []uint32 // by row: the row of the output, or noRow
	shifts []uint32 // by block of 1 << shiftBits rows: the distance to the rows of the output if all rows have the same; else noRow
}

const shiftBits = 8

// newRowMap returns the map for a list of rows of the output, noRow for deleted ones. It keeps the list.
func newRowMap(to []uint32) rowMap {
	m := rowMap{to: to, shifts: make([]uint32, len(to)>>shiftBits)}
	for b := range m.shifts {
		first := uint32(b) << shiftBits
		shift := to[first] - first
		for i, row := range to[first : first+1<<shiftBits] {
			if row == noRow || row-first-uint32(i) != shift {
				shift = noRow
				break
			}
		}
		m.shifts[b] = shift
	}
	return m
}

// of returns the row of the output, or noRow for a deleted row and for one that the input does not have.
func (m *rowMap) of(row uint32) uint32 {
	if b := int(row >> shiftBits); b < len(m.shifts) && m.shifts[b] != noRow {
		return row + m.shifts[b]
	}
	return m.listed(row)
}

// listed is the part of the method of for rows without a shift.
func (m *rowMap) listed(row uint32) uint32 {
	if int(row) < len(m.to) {
		return m.to[row]
	}
	return noRow
}

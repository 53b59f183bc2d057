package segment

import (
	"encoding/binary"

	"svc/segment/rowlist"
)

// Common appends the rows that two words have in common in a field, and which ones of each word they are.
func (f FieldPosting) Common(dst []rowlist.Place, o FieldPosting) []rowlist.Place {
	return rowlist.AppendCommon(dst, f.rows, o.rows)
}

// AppendFollowed appends those common rows of two words, ascending, in which the second word is after the first, by at most reach.
func AppendFollowed(dst []uint32, common []rowlist.Place, first, second FieldPosting, reach int) []uint32 {
	a, b := first.Positions(), second.Positions()
	for _, at := range common {
		if a.seek(int(at.A)) && b.seek(int(at.B)) && followed(a.p[a.at:], b.p[b.at:], uint32(reach)) {
			dst = append(dst, at.Row)
		}
	}
	return dst
}

// KeepFollowed is AppendFollowed for arbitrary rows, ascending. It returns the matching ones, in place.
func KeepFollowed(rows []uint32, first, second FieldPosting, reach int) []uint32 {
	a, b := first.Positions(), second.Positions()
	kept := rows[:0]
	for _, row := range rows {
		i, ok := a.rows.Find(row)
		if !ok {
			continue
		}
		j, ok := b.rows.Find(row)
		if ok && a.seek(i) && b.seek(j) && followed(a.p[a.at:], b.p[b.at:], uint32(reach)) {
			kept = append(kept, row)
		}
	}
	return kept
}

// followed reports whether one of the positions of the row that q begins with is behind one of the row that p begins with, by at most
// reach.
func followed(p, q []byte, reach uint32) bool {
	const only = endOfRow | endOfNumber // one position below 64
	if len(p) > 0 && len(q) > 0 && p[0]&q[0] >= only {
		return uint32(q[0]-p[0]-1) < reach
	}
	a, b := positionCursor{p: p}, positionCursor{p: q}
	x, more := a.step()
	y, also := b.step()
	for more && also {
		switch {
		case y <= x:
			y, also = b.step()
		case y-x <= reach:
			return true
		default:
			x, more = a.step()
		}
	}
	return false
}

// seek moves to the positions of the i-th row, which must not be before the current row. It returns false if damage hides them.
func (p *PositionReader) seek(i int) bool {
	if b := i / blockRows; b > p.index/blockRows {
		if 4*b > len(p.skips) {
			return false
		}
		p.index, p.at = b*blockRows, min(int(binary.LittleEndian.Uint32(p.skips[4*b-4:])), len(p.p))
	}
	if i > p.index {
		p.at = skipRows(p.p, p.at, i-p.index)
	}
	p.index = i
	return true
}

package segment

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"svc/segment/rowlist"
	"svc/simd"
)

// AppendOccurrences appends, for each position of the word in one of the rows,
//
//	tag | index of the row in rows << 16 | position
//
// in ascending order. The rows ascend. For many rows it is faster than a PositionReader.
func (f FieldPosting) AppendOccurrences(dst []uint64, rows []uint32, tag uint64) []uint64 {
	r := f.Positions()
	if f.rows.Code == rowlist.Delta {
		for i, row := range rows {
			if n, ok := r.rows.Find(row); ok {
				dst = r.appendTagged(dst, n, tag|uint64(i)<<16)
			} else if n == f.rows.Count {
				break
			}
		}
		return dst
	}
	var c rowlist.RoaringCursor
	if !c.Init(f.rows.P) || len(rows) == 0 {
		return dst
	}
	if len(rows) >= denseRows {
		ends := c
		first, _, _ := ends.Rank(rows[0])
		end, _, _ := ends.Rank(rows[len(rows)-1])
		if end-first <= densePer*len(rows) {
			return f.appendDense(dst, &r, &c, first, rows, tag)
		}
	}
	next := uint32(0) // no row before it has the word, as far as is known
	for i, row := range rows {
		if row < next {
			continue
		}
		n, ok, ahead := c.Find(row)
		if ok {
			dst = r.appendTagged(dst, n, tag|uint64(i)<<16)
		}
		next = ahead
	}
	return dst
}

const (
	// With at least denseRows rows, and if the word is in at most densePer times as many rows between the first and the last of them,
	// rows and positions are decoded one after another instead of searched for.
	denseRows = 64
	densePer  = 6
)

var rowBuffers = sync.Pool{New: func() any { return new([]uint32) }}

// appendDense is AppendOccurrences. first is the index of the first row of the word that is not below rows[0].
func (f FieldPosting) appendDense(dst []uint64, r *PositionReader, c *rowlist.RoaringCursor, first int, rows []uint32, tag uint64) []uint64 {
	buf := rowBuffers.Get().(*[]uint32)
	own := c.AppendBetween((*buf)[:0], rows[0], rows[len(rows)-1])
	p := r.p
	if b := first / blockRows; b > 0 {
		if 4*b > len(r.skips) {
			return dst
		}
		r.at = min(int(binary.LittleEndian.Uint32(r.skips[4*b-4:])), len(p))
	}
	at := skipRows(p, r.at, first%blockRows)
	passed := 0 // rows of the word since at
	for i, j := 0, 0; i < len(rows) && j < len(own); {
		switch row := own[j]; {
		case rows[i] < row:
			i++
			continue
		case rows[i] > row:
			j++
			passed++
			continue
		}
		if passed > 0 {
			at, passed = skipRows(p, at, passed), 0
		}
		tagged := tag | uint64(i)<<16
		if at < len(p) && p[at] >= endOfRow|endOfNumber { // one position below 64
			dst = append(dst, tagged|uint64(p[at]&payload))
			at++
			i++
			j++
			continue
		}
		for next, v, shift := uint32(0), uint32(0), 0; at < len(p); {
			b := p[at]
			at++
			v |= uint32(b&payload) << (shift & 31)
			shift += 6
			if b&endOfNumber != 0 {
				next += v
				dst = append(dst, tagged|uint64(uint16(next)))
				next++
				v, shift = 0, 0
			}
			if b&endOfRow != 0 {
				break
			}
		}
		i++
		j++
	}
	*buf = own
	rowBuffers.Put(buf)
	return dst
}

// NoPosition stands for a row without the word. Positions that high are too far away to matter.
const NoPosition = 1<<16 - 1

// FirstPositions appends, for each of some ascending rows, the lowest position of the word, or NoPosition.
func (f FieldPosting) FirstPositions(dst []uint16, rows []uint32) []uint16 {
	if len(rows) == 0 {
		return dst
	}
	begin := len(dst)
	for range rows {
		dst = append(dst, NoPosition)
	}
	first := dst[begin:]
	var c rowlist.RoaringCursor
	if f.rows.Code == rowlist.Delta || !c.Init(f.rows.P) {
		var buf []uint16
		r := f.Positions()
		for i, row := range rows {
			if buf = r.Append(buf[:0], Row(row)); len(buf) > 0 {
				first[i] = buf[0]
			}
		}
		return dst
	}
	r := f.Positions()
	ends := c
	at, _, _ := ends.Rank(rows[0])
	if end, _, _ := ends.Rank(rows[len(rows)-1]); end-at > densePer*len(rows) {
		next := uint32(0) // no row before it has the word, as far as is known
		for i, row := range rows {
			if row < next {
				continue
			}
			n, ok, ahead := c.Find(row)
			if next = ahead; ok && r.seek(n) {
				first[i] = firstPosition(r.p, r.at)
			}
		}
		return dst
	}
	buf := rowBuffers.Get().(*[]uint32)
	own := c.AppendBetween((*buf)[:0], rows[0], rows[len(rows)-1])
	p := r.p
	pos := 0
	if b := at / blockRows; b > 0 && 4*b <= len(r.skips) {
		pos = min(int(binary.LittleEndian.Uint32(r.skips[4*b-4:])), len(p))
	}
	pos = skipRows(p, pos, at%blockRows)
	passed := 0 // rows of the word since pos
	for i, j := 0, 0; i < len(rows) && j < len(own); {
		switch row := own[j]; {
		case rows[i] < row:
			i++
			continue
		case rows[i] > row:
			j++
			passed++
			continue
		}
		if passed > 0 {
			pos, passed = skipRows(p, pos, passed), 0
		}
		first[i] = firstPosition(p, pos)
		i++
		j++
		passed++
	}
	*buf = own
	rowBuffers.Put(buf)
	return dst
}

// firstPosition decodes the first position of the row that begins at p[at]; NoPosition where damage hides it.
func firstPosition(p []byte, at int) uint16 {
	if at < len(p) && p[at]&endOfNumber != 0 {
		return uint16(p[at] & payload)
	}
	for v, shift := uint32(0), 0; at < len(p); at++ {
		v |= uint32(p[at]&payload) << (shift & 31)
		if shift += 6; p[at]&endOfNumber != 0 {
			return uint16(min(v, NoPosition))
		}
	}
	return NoPosition
}

// AppendStarting appends the rows in which the word is the first of the field, ascending. It looks at each byte of the positions.
func (f FieldPosting) AppendStarting(dst []uint32) []uint32 {
	p := f.positions[f.skips:]
	starting := rowBuffers.Get().(*[]uint32)
	*starting = (*starting)[:0]
	row := 0 // how many rows end before at
	for at := 0; at < len(p); at += 32 {
		passed, rows, firsts, ends := simd.Leading(p[at:], endOfNumber, endOfNumber, at == 0 || p[at-1] >= endOfRow)
		at += passed
		row += rows
		for ; firsts != 0; firsts &= firsts - 1 {
			*starting = append(*starting, uint32(row+bits.OnesCount32(ends&(1<<bits.TrailingZeros32(firsts)-1))))
		}
		row += bits.OnesCount32(ends)
	}
	dst = f.rows.AppendAt(dst, *starting)
	rowBuffers.Put(starting)
	return dst
}

// PositionBytes is how much AppendStarting looks at.
func (f FieldPosting) PositionBytes() int { return len(f.positions) - f.skips }

// appendTagged appends tag | position for the positions of the i-th row; rows are asked for in ascending order.
func (p *PositionReader) appendTagged(dst []uint64, i int, tag uint64) []uint64 {
	if !p.seek(i) {
		return dst
	}
	p.index = i + 1
	if p.at < len(p.p) && p.p[p.at] >= endOfRow|endOfNumber { // one position below 64
		p.at++
		return append(dst, tag|uint64(p.p[p.at-1]&payload))
	}
	next, v, shift := uint32(0), uint32(0), 0
	for at := p.at; at < len(p.p); {
		b := p.p[at]
		at++
		v |= uint32(b&payload) << (shift & 31)
		shift += 6
		if b&endOfNumber != 0 {
			next += v
			dst = append(dst, tag|uint64(uint16(next)))
			next++
			v, shift = 0, 0
		}
		if b&endOfRow != 0 {
			p.at = at
			return dst
		}
	}
	p.at = len(p.p)
	return dst
}

package segment

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"

	"svc/segment/rowlist"
)

// Finding the positions of one row among many takes longer than decoding those of several rows one after another. So code that needs
// most rows of a range reads the whole range, into an array by row.

// stretch has the rows of a word within a range, and where their positions begin.
type stretch struct {
	rows   []uint32
	starts []uint32 // in p; of the first rows only where p ends too early
	at     []uint32 // by row from the first one on: as starts, plus 1; 0 where the word is not
	p      []byte
}

var stretches = sync.Pool{New: func() any { return new(stretch) }}

// read reads the rows from first to last.
func (s *stretch) read(f *FieldPosting, first, last uint32) {
	s.starts = s.starts[:0]
	r := f.Positions()
	s.p = r.p
	before := s.readRows(f, first, last)
	at := 0
	if b := before / blockRows; b > 0 {
		if 4*b > len(r.skips) {
			return
		}
		at = min(int(binary.LittleEndian.Uint32(r.skips[4*b-4:])), len(s.p))
	}
	s.starts = appendStarts(s.starts, s.p, skipRows(s.p, at, before%blockRows), len(s.rows))
}

// readRows reads rows, and returns how many are before them.
func (s *stretch) readRows(f *FieldPosting, first, last uint32) (before int) {
	s.rows = s.rows[:0]
	if f.rows.Code == rowlist.Delta {
		s.rows = f.rows.AppendTo(s.rows)
		for before < len(s.rows) && s.rows[before] < first {
			before++
		}
		end := before
		for end < len(s.rows) && s.rows[end] >= first && s.rows[end] <= last {
			end++
		}
		s.rows = s.rows[:copy(s.rows, s.rows[before:end])]
		return before
	}
	var c rowlist.RoaringCursor
	if !c.Init(f.rows.P) {
		return 0
	}
	before, _, _ = c.Rank(first)
	c.Init(f.rows.P)
	s.rows = c.AppendBetween(s.rows, first, last)
	return before
}

// giveBack returns the stretch to the pool, without its reference to mapped memory.
func (s *stretch) giveBack() {
	s.p = nil
	stretches.Put(s)
}

// byRow fills at for n rows from first on.
func (s *stretch) byRow(first uint32, n int) {
	if cap(s.at) < n {
		s.at = make([]uint32, n)
	}
	s.at = s.at[:n]
	clear(s.at)
	for k, start := range s.starts {
		if i := s.rows[k] - first; int(i) < n { // otherwise the rows do not ascend, as in a forged segment
			s.at[i] = start + 1
		}
	}
}

// appendStarts appends where n rows begin, the first of them at p[at]; fewer when p ends before.
func appendStarts(dst []uint32, p []byte, at, n int) []uint32 {
	if n <= 0 || at >= len(p) {
		return dst
	}
	dst = slices.Grow(dst, n+8)
	starts := dst[len(dst) : len(dst)+n+8] // behind n there is room for what the last eight bytes have
	starts[0] = uint32(at)
	k := 1
	for ; k < n && at+8 <= len(p); at += 8 {
		for ends := binary.LittleEndian.Uint64(p[at:]) & everyEnd; ends != 0; ends &= ends - 1 {
			starts[k] = uint32(at + bits.TrailingZeros64(ends)/8 + 1)
			k++
		}
	}
	for ; k < n && at < len(p); at++ {
		if p[at]&endOfRow != 0 {
			starts[k] = uint32(at + 1)
			k++
		}
	}
	k = min(k, n)
	if int(starts[k-1]) == len(p) {
		k--
	}
	return dst[:len(dst)+k]
}

// positionCursor iterates over the positions of one row.
type positionCursor struct {
	p    []byte // from the next number on; nil at the end
	next uint32 // what the next number counts from
}

// step returns the next position; ok is false behind the last one.
func (c *positionCursor) step() (position uint32, ok bool) {
	if len(c.p) == 0 {
		return 0, false
	}
	b := c.p[0]
	v := uint32(b & payload)
	n := 1
	for shift := uint32(6); b&endOfNumber == 0; shift += 6 {
		if b&endOfRow != 0 || n == len(c.p) {
			c.p = nil
			return 0, false
		}
		b = c.p[n]
		n++
		v |= uint32(b&payload) << (shift & 31)
	}
	position = c.next + v
	c.next = position + 1
	if c.p = c.p[n:]; b&endOfRow != 0 {
		c.p = nil
	}
	return position, true
}

// LowerCosts lowers costs[row − first], for each existing row from first on, to the smallest cost[position] over the positions of the
// word in the row. cost has at least 64 elements and does not fall from cost[nearest] on. Positions beyond its end cost as much as
// its last element.
func (f FieldPosting) LowerCosts(costs []uint8, first uint32, cost []uint8, nearest int) {
	if len(costs) == 0 || len(cost) <= payload {
		return
	}
	s := stretches.Get().(*stretch)
	defer s.giveBack()
	s.read(&f, first, first+uint32(len(costs)-1))
	for k, start := range s.starts {
		i := s.rows[k] - first
		if int(i) >= len(costs) { // see byRow
			continue
		}
		least := &costs[i]
		b := s.p[start]
		if b&endOfNumber != 0 && (b&endOfRow != 0 || int(b&payload) >= nearest) {
			*least = min(*least, cost[b&payload])
			continue
		}
		c := positionCursor{p: s.p[start:]}
		for {
			position, ok := c.step()
			if !ok {
				break
			}
			*least = min(*least, cost[min(int(position), len(cost)-1)])
			if int(position) >= nearest {
				break // what comes next costs no less
			}
		}
	}
}

// FarApart is the distance from which LowerDistances no longer distinguishes distances.
const FarApart = 3

// LowerDistances lowers costs[row − first], for each existing row from first on, to the smallest distance of two words in a field, if
// it is less than FarApart. The distance is the number of words between them if f comes before g, and one more if it comes after.
// Words at the same position have no distance. Both must be of one segment and field, and may be the same word.
func (f FieldPosting) LowerDistances(g FieldPosting, costs []uint8, first uint32) {
	if len(costs) == 0 {
		return
	}
	if len(f.positions) > 0 && len(g.positions) > 0 && &f.positions[0] == &g.positions[0] {
		f.lowerOwnDistances(costs, first)
		return
	}
	last := first + uint32(len(costs)-1)
	left, right := stretches.Get().(*stretch), stretches.Get().(*stretch)
	defer left.giveBack()
	defer right.giveBack()
	if left.read(&f, first, last); len(left.starts) == 0 {
		return
	}
	left.byRow(first, len(costs))
	right.read(&g, first, last)
	var a, b positionBits
	for k, start := range right.starts {
		i := right.rows[k] - first
		if int(i) >= len(costs) || left.at[i] == 0 || costs[i] == 0 {
			continue
		}
		at := left.at[i]
		if a.read(left.p[at-1:]) && b.read(right.p[start:]) {
			costs[i] = min(costs[i], a.distance(&b))
		} else {
			costs[i] = min(costs[i], distance(left.p[at-1:], right.p[start:]))
		}
	}
}

// lowerOwnDistances is LowerDistances of a word and itself.
func (f FieldPosting) lowerOwnDistances(costs []uint8, first uint32) {
	s := stretches.Get().(*stretch)
	defer s.giveBack()
	s.read(&f, first, first+uint32(len(costs)-1))
	for k, start := range s.starts {
		i := s.rows[k] - first
		if s.p[start] >= endOfRow|endOfNumber || int(i) >= len(costs) { // one position
			continue
		}
		least := &costs[i]
		c := positionCursor{p: s.p[start:]}
		before, ok := c.step()
		for ok && *least > 0 {
			var at uint32
			if at, ok = c.step(); ok {
				*least = uint8(min(uint32(*least), at-before-1))
				before = at
			}
		}
	}
}

// positionBits has the positions of a row as bits, if all are small enough.
type positionBits struct {
	bits [4]uint64
	n    int // words up to the last position
}

// read reads the positions that begin a code; false where one is too high.
func (s *positionBits) read(p []byte) bool {
	s.bits = [4]uint64{}
	next, v, shift := uint32(0), uint32(0), 0
	word, at := uint64(0), uint32(0)
	for _, b := range p {
		v |= uint32(b&payload) << (shift & 31)
		if shift += 6; b&endOfNumber != 0 {
			next += v
			if next/64 != at {
				if next >= 64*uint32(len(s.bits)) {
					return false
				}
				s.bits[at] = word
				word, at = 0, next/64
			}
			word |= 1 << (next % 64)
			next++
			v, shift = 0, 0
		}
		if b&endOfRow != 0 {
			break
		}
	}
	s.bits[at] = word
	s.n = int(at) + 1
	return true
}

// distance returns the smallest distance from s to r.
func (s *positionBits) distance(r *positionBits) uint8 {
	var zero, one, two uint64
	before, also := uint64(0), uint64(0) // the words before, of s and r
	for i := range min(s.n, r.n) + 1 {
		if i == len(s.bits) {
			break
		}
		a, b := s.bits[i], r.bits[i]
		zero |= (a<<1 | before>>63) & b
		one |= (a<<2|before>>62)&b | (b<<1|also>>63)&a
		two |= (a<<3|before>>61)&b | (b<<2|also>>62)&a
		before, also = a, b
	}
	switch {
	case zero != 0:
		return 0
	case one != 0:
		return 1
	case two != 0:
		return 2
	}
	return FarApart
}

// distance returns the smallest distance of two words whose positions of one row begin at a and b.
func distance(a, b []byte) uint8 {
	least := uint32(FarApart)
	left, right := positionCursor{p: a}, positionCursor{p: b}
	x, okLeft := left.step()
	y, okRight := right.step()
	for okLeft && okRight && least > 0 {
		switch {
		case x < y:
			least = min(least, y-x-1)
			x, okLeft = left.step()
		case x > y:
			least = min(least, x-y)
			y, okRight = right.step()
		default:
			at := x
			if x, okLeft = left.step(); okLeft {
				least = min(least, x-at)
			}
			if y, okRight = right.step(); okRight {
				least = min(least, y-at-1)
			}
		}
	}
	return uint8(least)
}

package segment

import (
	"math/bits"

	"svc/segment/rowlist"
	"svc/simd"
)

// ElementRows maps marked elements to their rows, 64 at a time and without branches. Its time does not depend on the number of marks. It
// covers one part of the elements of a segment, small enough to be cached.
//
// The elements of a row are consecutive. An addition carries each mark to the bit of the last element of its row. A compress step leaves
// one bit for each row that has elements; an expand step inserts the rows that have none. Where simd.HasFolds is false, each of the two
// takes six moves with precomputed masks (H. S. Warren, Hacker's Delight, 7-4 and 7-5).
type ElementRows struct {
	from  int        // first word of the marks of elements in this part
	ends  []uint64   // bits of elements that are the last ones of their rows
	close []bitMoves // by word of ends, unless hasFolds
	row   int        // row of the first of these elements
	have  []uint64   // bits of rows, from the word of row on, that have such an element; nil: all from row on have one
	apart []bitMoves // by word of have, unless hasFolds
	n     int        // rows that have such an element
}

// ElementsOfPart is how many elements a part has. It is a multiple of 64.
const ElementsOfPart = 64 << 10

// bitMoves are the bits of a word that move by 1, 2, 4, 8, 16 and 32 places.
type bitMoves [6]uint64

// movesOf returns how the bits of a mask move to the lowest places, in their order.
func movesOf(mask uint64) (m bitMoves) {
	free := ^mask << 1
	for i := range m {
		odd := free // which bits have an odd number of free places below
		for by := 1; by < 64; by *= 2 {
			odd ^= odd << by
		}
		m[i] = odd & mask
		mask = mask ^ m[i] | m[i]>>(1<<i)
		free &^= odd
	}
	return m
}

func (m *bitMoves) together(x uint64) uint64 {
	for i := range m {
		moved := x & m[i]
		x = x ^ moved | moved>>(1<<i)
	}
	return x
}

func (m *bitMoves) apart(x uint64) uint64 {
	for i := len(m) - 1; i >= 0; i-- {
		x = x&^m[i] | x<<(1<<i)&m[i]
	}
	return x
}

// ElementRows reads the rows of the elements of a part: from ElementsOfPart times its number on. It returns nil if a segment is forged, and
// its elements are in no order.
func (e *Elements) ElementRows(part int) *ElementRows {
	e.need()
	from, to := part*ElementsOfPart, min((part+1)*ElementsOfPart, e.n)
	p := &ElementRows{from: from / 64, ends: make([]uint64, (to-from+63)/64)}
	last := -1
	for i := from; i < to; i++ {
		row := e.row(i)
		if int(row) >= e.r.rows || i > 0 && row < e.row(i-1) {
			return nil
		}
		if i+1 < e.n && row == e.row(i+1) {
			continue
		}
		if last < 0 {
			p.row = int(row)
		}
		last = int(row)
		p.ends[(i-from)/64] |= 1 << ((i - from) % 64)
		p.n++
	}
	p.close = allMoves(p.ends)
	if last < 0 || last-p.row+1 == p.n {
		return p
	}
	first := p.row / 64
	p.have = make([]uint64, last/64-first+1)
	for i := range to - from {
		if p.ends[i/64]>>(i%64)&1 != 0 {
			row := int(e.row(from + i))
			p.have[row/64-first] |= 1 << (row % 64)
		}
	}
	p.apart = allMoves(p.have)
	return p
}

// allMoves returns the moves of masks; nil: none are needed.
func allMoves(masks []uint64) []bitMoves {
	if hasFolds {
		return nil
	}
	moves := make([]bitMoves, len(masks))
	for w, mask := range masks {
		moves[w] = movesOf(mask)
	}
	return moves
}

// Bytes returns its memory in bytes.
func (p *ElementRows) Bytes() int {
	return elementRowsBytes + wordBytes()*(len(p.ends)+len(p.have))
}

// ElementRowsBytes returns up to how much the ElementRows of all parts take.
func (e *Elements) ElementRowsBytes() int {
	parts := (e.n + ElementsOfPart - 1) / ElementsOfPart
	return elementRowsBytes*parts + wordBytes()*((e.n+63)/64+(e.r.rows+63)/64+parts) // neighbours share a word of rows
}

const elementRowsBytes = 128 // of an ElementRows without its words

// wordBytes returns what an ElementRows takes for a word.
func wordBytes() int {
	if hasFolds {
		return 8
	}
	return 8 + 8*len(bitMoves{})
}

// hasFolds is a variable, so that tests can do without the kernels.
var hasFolds = simd.HasFolds()

// MarkRows sets the bits of the rows of marked elements, 64 per word. The slices cover all rows and all elements. No row may be
// marked yet, from the first row of the part on. Elements of a row may be in several parts, so call the parts in order: carry is the
// result for the previous part, and 0 for the first.
func (p *ElementRows) MarkRows(rows, elements []uint64, carry uint64) uint64 {
	elements = elements[p.from:]
	if p.have == nil {
		return p.mark(rows[p.row/64:], p.row%64, elements, carry)
	}
	dense := rowlist.TakeBits(p.n/64 + 2)
	defer dense.Release()
	carry = p.mark(dense.Words, 0, elements, carry)
	rows = rows[p.row/64:]
	if hasFolds {
		simd.SpreadMarks(rows, p.have, dense.Words)
		return carry
	}
	at := 0
	for w, have := range p.have {
		x := dense.Words[at/64]>>(at%64) | dense.Words[at/64+1]<<(64-at%64)
		rows[w] |= p.apart[w].apart(x) & have
		at += bits.OnesCount64(have)
	}
	return carry
}

// mark is MarkRows for rows without those that have no elements. n is the bit of the first row.
func (p *ElementRows) mark(rows []uint64, n int, elements []uint64, carry uint64) uint64 {
	elements = elements[:len(p.ends)]
	if hasFolds {
		return simd.FoldMarks(rows, n, elements, p.ends, carry)
	}
	var waiting uint64 // bits for the next word of rows
	at := 0
	for w, ends := range p.ends {
		x := elements[w]
		var sum uint64
		sum, carry = bits.Add64(x&^ends, ^ends, carry)
		x = p.close[w].together((sum | x) & ends)
		waiting |= x << n
		if n += bits.OnesCount64(ends); n >= 64 {
			rows[at] |= waiting
			at, n = at+1, n-64
			waiting = x >> (bits.OnesCount64(ends) - n)
		}
	}
	if waiting != 0 {
		rows[at] |= waiting
	}
	return carry
}

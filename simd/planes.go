package simd

import "encoding/binary"

const (
	PlaneRows  = 256           // of a block of planes
	PlaneBytes = PlaneRows / 8 // of a plane of a block
	MaxPlanes  = 16            // of a block
)

// PlaneMarks have a bit for each row of a block.
type PlaneMarks [PlaneRows / 64]uint64

// MarkPlanes sets the bits of the rows with a number in [lo, hi), 64 rows per word, in the blocks that have marks for all rows. A
// block has 4 words with the lowest bits of the numbers of 256 rows, then 4 with the next bits, and so on. Rows whose bits are all
// set have no number, so hi is below 1<<planes. It panics if there are fewer blocks than marks for them, or more planes than
// MaxPlanes.
func MarkPlanes(marks []uint64, blocks []byte, planes, lo, hi int) {
	n := len(marks) / len(PlaneMarks{})
	if n == 0 || planes <= 0 || lo >= hi {
		return
	}
	if planes > MaxPlanes {
		panic("simd: more planes than there is room for")
	}
	current.planes(marks[:n*len(PlaneMarks{})], blocks[:n*planes*PlaneBytes], planes, lo, hi)
}

// FindInPlanes is MarkPlanes for one block.
func FindInPlanes(block []byte, lo, hi int) PlaneMarks {
	found := lessInPlanes(block, hi)
	if lo > 0 {
		less := lessInPlanes(block, lo)
		for j, w := range less {
			found[j] &^= w
		}
	}
	return found
}

// lessInPlanes returns the rows of a block with a number below a bound. It starts with the lowest bit: a row is less if its bit is
// not set and that of the bound is, or if the bits are equal and the row was less by the lower bits.
func lessInPlanes(block []byte, bound int) PlaneMarks {
	var a, b, c, d uint64
	for ; len(block) >= PlaneBytes; block = block[PlaneBytes:] {
		x := (*[PlaneBytes]byte)(block)
		xa, xb := binary.LittleEndian.Uint64(x[0:]), binary.LittleEndian.Uint64(x[8:])
		xc, xd := binary.LittleEndian.Uint64(x[16:]), binary.LittleEndian.Uint64(x[24:])
		if bound&1 != 0 {
			a, b, c, d = a|^xa, b|^xb, c|^xc, d|^xd
		} else {
			a, b, c, d = a&^xa, b&^xb, c&^xc, d&^xd
		}
		bound >>= 1
	}
	return PlaneMarks{a, b, c, d}
}

func planesPortable(marks []uint64, blocks []byte, planes, lo, hi int) {
	if hi == lo+1 {
		equalInPlanes(marks, blocks, planes, lo)
		return
	}
	for size := planes * PlaneBytes; len(marks) > 0; marks, blocks = marks[len(PlaneMarks{}):], blocks[size:] {
		for j, w := range FindInPlanes(blocks[:size], lo, hi) {
			marks[j] |= w
		}
	}
}

// equalInPlanes is planesPortable for one number. The loops are in one function, because calls would take as long as the work.
func equalInPlanes(marks []uint64, blocks []byte, planes, number int) {
	for size := planes * PlaneBytes; len(marks) >= len(PlaneMarks{}) && len(blocks) >= size; {
		block := blocks[:size]
		a, b, c, d, flips := ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), number
		for len(block) >= PlaneBytes {
			flip := uint64(flips&1) - 1 // ^0 where the bit is not set
			x := (*[PlaneBytes]byte)(block)
			a &= binary.LittleEndian.Uint64(x[0:]) ^ flip
			b &= binary.LittleEndian.Uint64(x[8:]) ^ flip
			c &= binary.LittleEndian.Uint64(x[16:]) ^ flip
			d &= binary.LittleEndian.Uint64(x[24:]) ^ flip
			flips >>= 1
			block = block[PlaneBytes:]
		}
		to := (*PlaneMarks)(marks)
		to[0], to[1], to[2], to[3] = to[0]|a, to[1]|b, to[2]|c, to[3]|d
		marks, blocks = marks[len(to):], blocks[size:]
	}
}

package ann

import (
	"unsafe"

	"svc/simd"
)

// Codes are contiguous rows of codes, in memory that the caller owns and does not change while they are used.
type Codes struct {
	Bytes  []int8
	Stride int // bytes a row: a multiple of simd.CodeAlign, or of 8 when Bits

	// Bits: a row is a string of bits, and two rows are the more similar the
	// fewer of them differ. Otherwise a byte is a component.
	Bits bool

	// Touch, if it is set, is called ahead of reading some rows: it makes sure that they can be read.
	Touch func(rows []uint32)
}

// Rows returns how many rows there are.
func (c Codes) Rows() int { return len(c.Bytes) / c.Stride }

// sound reports whether the kernels can read the rows.
func (c Codes) sound() bool {
	if c.Bits {
		return c.Stride > 0 && c.Stride%8 == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(c.Bytes)))%8 == 0
	}
	return c.Stride > 0 && c.Stride%simd.CodeAlign == 0
}

func (c Codes) row(i uint32) []int8 {
	return c.Bytes[int(i)*c.Stride : (int(i)+1)*c.Stride]
}

// gather computes the scores of rows with the query's code. Higher is better.
func (c Codes) gather(out []int32, q []int8, rows []uint32) {
	if c.Touch != nil {
		c.Touch(rows)
	}
	if !c.Bits {
		simd.DotInt8Gather(out, q, c.Bytes, rows)
		return
	}
	simd.HammingGather(out, words(q), words(c.Bytes), rows)
	for i := range out {
		out[i] = -out[i]
	}
}

// pair scores two codes against each other.
func (c Codes) pair(a, b []int8) int32 {
	if c.Bits {
		return -int32(simd.Hamming(words(a), words(b)))
	}
	return simd.DotInt8(a, b)
}

// words reads codes of bits, 64 at a time; they lie at multiples of 8.
func words(b []int8) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

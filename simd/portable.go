package simd

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The portable kernels keep four sums, as the compiler does not reorder
// floating-point additions and one chain would wait for each.

func dotPortable(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

func l2Portable(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		d0, d1, d2, d3 := a[0]-b[0], a[1]-b[1], a[2]-b[2], a[3]-b[3]
		s0 += d0 * d0
		s1 += d1 * d1
		s2 += d2 * d2
		s3 += d3 * d3
		a, b = a[4:], b[4:]
	}
	for i := range a {
		d := a[i] - b[i]
		s0 += d * d
	}
	return (s0 + s1) + (s2 + s3)
}

func gatherFloatsPortable(dots, squares, q, rows []float32, ids []uint32) {
	n := len(q)
	for j := range dots {
		row := rows[int(ids[j])*n:][:n]
		dots[j], squares[j] = dotPortable(q, row), dotPortable(row, row)
	}
}

func dotInt8Portable(a, b []int8) int32 {
	var s int32
	for i := range a {
		s += int32(a[i]) * int32(b[i])
	}
	return s
}

func hammingPortable(a, b []uint64) int64 {
	var n int
	for i := range a {
		n += bits.OnesCount64(a[i] ^ b[i])
	}
	return int64(n)
}

func gatherPortable(out []int32, q, rows []int8, ids []uint32) {
	n := len(q)
	for j := range out {
		at := int(ids[j]) * n
		out[j] = dotInt8Portable(q, rows[at:at+n])
	}
}

func gatherBitsPortable(out []int32, q, rows []uint64, ids []uint32) {
	n := len(q)
	for j := range out {
		at := int(ids[j]) * n
		out[j] = int32(hammingPortable(q, rows[at:at+n]))
	}
}

func quantizePortable(dst []int8, v []float32, scale float32) {
	// A float32 of this size has no fraction, so that adding it rounds to an
	// integer, halves to even, which is the difference of the representations.
	const round = 3 << 22
	for i, x := range v {
		x = float32(x * scale)
		switch {
		case x >= 127:
			x = 127
		case x <= -127:
			x = -127
		case x != x:
			x = 0
		}
		dst[i] = int8(math.Float32bits(x+round) - math.Float32bits(round))
	}
}

func largestPortable(v []float32) float32 {
	var largest float32
	for _, x := range v {
		if x = math.Float32frombits(math.Float32bits(x) &^ (1 << 31)); x > largest {
			largest = x
		}
	}
	return largest
}

// onesBeyond is up to how many numbers a kernel writes behind the last one.
const onesBeyond = 7

func onesPortable(dst *OnesRoom, words []uint64, _ int) int {
	n := 0
	for i, w := range words {
		for ; w != 0; w &= w - 1 {
			binary.LittleEndian.PutUint16(dst[2*n:], uint16(64*i+bits.TrailingZeros64(w)))
			n++
		}
	}
	return n
}

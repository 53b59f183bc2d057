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

// onesBeyond is the maximum number of numbers that a kernel writes beyond the last one.
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

// skipMarkedPortable counts the highest bits of eight bytes at a time.
func skipMarkedPortable(p []byte, n int) int {
	const (
		marks = 0x8080808080808080
		every = marks >> 7 // 1 in each byte
	)
	le := binary.LittleEndian
	at := 0
	for n > 32 && at+32 <= len(p) {
		// The mark of each byte as a number of its own: four of them do not overflow it.
		q := p[at : at+32 : at+32]
		sum := le.Uint64(q)>>7&every + le.Uint64(q[8:])>>7&every + le.Uint64(q[16:])>>7&every + le.Uint64(q[24:])>>7&every
		n -= int(sum * every >> 56)
		at += 32
	}
	for n > 0 && at+8 <= len(p) {
		// Byte i of upTo: the marks of bytes 0…i.
		upTo := le.Uint64(p[at:]) >> 7 & every * every
		c := int(upTo >> 56)
		if c < n {
			n -= c
			at += 8
			continue
		}
		// The n-th mark is in the first byte with n or more. Both are at most 8, so that no byte borrows from the next.
		enough := (upTo | marks) - uint64(n)*every
		return at + bits.TrailingZeros64(enough&marks)/8 + 1
	}
	for ; n > 0 && at < len(p); at++ {
		if p[at] >= 0x80 {
			n--
		}
	}
	return at
}

// leadingPortable checks eight bytes at a time for the range, with sums that reach the highest bit of each byte.
func leadingPortable(p []byte, low, beyond byte, begins bool) (passed, groups int, firsts, ends uint32) {
	const (
		marks = 0x8080808080808080
		every = marks >> 7 // 1 in each byte
	)
	below := every * uint64(0x80-low)          // sets the highest bit of bytes ≥ low
	above := every * uint64(0x7f-(low+beyond)) // sets it for bytes above the range
	in := func(x uint64) uint64 {
		x &^= marks
		return (x + below) &^ (x + above) >> 7 & every
	}
	le := binary.LittleEndian
	carry := uint64(0) // 1 where a group begins with the next byte
	if begins {
		carry = 1
	}
	for ; passed+32 <= len(p); passed += 32 {
		q := p[passed : passed+32 : passed+32]
		x0, x1, x2, x3 := le.Uint64(q), le.Uint64(q[8:]), le.Uint64(q[16:]), le.Uint64(q[24:])
		e0, e1, e2, e3 := x0>>7&every, x1>>7&every, x2>>7&every, x3>>7&every
		f0, f1 := in(x0)&(e0<<8|carry), in(x1)&(e1<<8|e0>>56)
		f2, f3 := in(x2)&(e2<<8|e1>>56), in(x3)&(e3<<8|e2>>56)
		if f0|f1|f2|f3 != 0 {
			return passed, groups, lowBits(f0) | lowBits(f1)<<8 | lowBits(f2)<<16 | lowBits(f3)<<24,
				lowBits(e0) | lowBits(e1)<<8 | lowBits(e2)<<16 | lowBits(e3)<<24
		}
		groups += int((e0 + e1 + e2 + e3) * every >> 56)
		carry = e3 >> 56
	}
	for i, b := range p[passed:] {
		if carry != 0 && b&0x7f-low <= beyond {
			firsts |= 1 << i
		}
		carry = uint64(b >> 7)
		ends |= uint32(carry) << i
	}
	if firsts != 0 {
		return passed, groups, firsts, ends
	}
	return len(p), groups + bits.OnesCount32(ends), 0, 0
}

// lowBits returns the lowest bit of each byte, the first one's first; they have no others.
func lowBits(x uint64) uint32 { return uint32(x * 0x0102040810204080 >> 56) }

package simd

import "encoding/binary"

// CommonMost is how many numbers a list may have for Common and CommonPlaces.
const CommonMost = 1 << 12

// CommonRoom has room for what the kernels write: beyond the last number, and of lists that do not ascend.
type CommonRoom [2 * (5*CommonMost + 64)]byte

// HasCommonKernel reports whether Common and CommonPlaces take less time here than looking for each number.
func HasCommonKernel() bool { return tier == AVX512 }

// Common writes the numbers that both lists have, ascending, and returns how many there are. Numbers are little-endian and have 16
// bits. Each list must be strictly ascending; otherwise the result is undefined, and may be longer than a list. Common is fastest if
// a is the shorter list. It panics if a list is longer than CommonMost.
func Common(dst *CommonRoom, a, b []byte) int { return current.common(dst, upToMost(a), upToMost(b)) }

// CommonPlaces writes the indexes in b of the numbers that Common writes.
func CommonPlaces(dst *CommonRoom, a, b []byte) int {
	return current.commonPlaces(dst, upToMost(a), upToMost(b))
}

func upToMost(p []byte) []byte {
	if len(p) > 2*CommonMost {
		panic("simd: more numbers than there is room for")
	}
	return p[:len(p)&^1]
}

func commonPortable(dst *CommonRoom, a, b []byte) int {
	return merge(dst, a, b, func(x uint16, _ int) uint16 { return x })
}

func commonPlacesPortable(dst *CommonRoom, a, b []byte) int {
	return merge(dst, a, b, func(_ uint16, j int) uint16 { return uint16(j / 2) })
}

// merge calls f with each common number and its offset in b, and writes the results.
func merge(dst *CommonRoom, a, b []byte, f func(x uint16, j int) uint16) (n int) {
	le := binary.LittleEndian
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x, y := le.Uint16(a[i:]), le.Uint16(b[j:])
		if x == y {
			le.PutUint16(dst[2*n:], f(x, j))
			n++
		}
		if x <= y {
			i += 2
		}
		if y <= x {
			j += 2
		}
	}
	return n
}

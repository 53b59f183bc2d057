package jsontext

import (
	"encoding/binary"
	"math/bits"
)

// DigitValues returns eight bytes of text with each digit replaced by its value, and the high bits of the bytes that are no digits. The
// first byte is the lowest.
func DigitValues(text uint64) (values, others uint64) {
	values = text ^ lowBits*'0'
	return values, (values&^highBits + lowBits*(0x80-10) | values) & highBits
}

// DigitsEnd returns the index after the digits from b[i] on.
func DigitsEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if _, others := DigitValues(binary.LittleEndian.Uint64(b[i:])); others != 0 {
			return i + bits.TrailingZeros64(others)/8
		}
	}
	for i < len(b) && b[i]-'0' < 10 {
		i++
	}
	return i
}

// ReadDigits appends the digits from b[i] on to a decimal number, and returns it with the index after them. It overflows silently.
func ReadDigits(n uint64, b []byte, i int) (uint64, int) {
	for ; i+8 <= len(b); i += 8 {
		values, others := DigitValues(binary.LittleEndian.Uint64(b[i:]))
		if others != 0 {
			digits := bits.TrailingZeros64(others) / 8
			return AppendDigits(n, values, digits), i + digits
		}
		n = AppendDigits(n, values, 8)
	}
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		n = n*10 + uint64(b[i]-'0')
	}
	return n, i
}

// AppendDigits appends the first of up to eight digits, which DigitValues returned, to a decimal number. It overflows silently.
func AppendDigits(n, values uint64, digits int) uint64 {
	return n*powersOfTen[digits] + decimal(values<<(64-8*digits))
}

var powersOfTen = [9]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// decimal returns the number with these eight digits, the first in the lowest byte. It joins digits to pairs, and pairs to fours.
func decimal(values uint64) uint64 {
	const pairs = 0x000000ff000000ff
	values = values*10 + values>>8
	return (values&pairs*(100+1_000_000<<32) + values>>16&pairs*(1+10_000<<32)) >> 32
}

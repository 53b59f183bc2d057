package search

import (
	"math"
	"strconv"
)

// appendFloat appends x with a decimal point or an exponent, so that readers
// with typed numbers see a floating-point one.
func appendFloat(dst []byte, x float64) []byte { return appendFloatOf(dst, x, 64) }

// appendFloatOf is appendFloat for a number that has so many bits.
func appendFloatOf(dst []byte, x float64, bits int) []byte {
	format := byte('f')
	if a := math.Abs(x); a != 0 && (a < 1e-5 || a >= 1e16) {
		format = 'e'
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, x, format, -1, bits)
	for _, c := range dst[at:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

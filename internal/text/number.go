package text

import (
	"bytes"
	"math"
	"strconv"
)

// AppendNumber appends the text that a JSON number has as a word and in formatted documents: an integer of
// 64 bits as it stands, another number in the shortest form that gives the same float64, with a
// fraction from 1e-5 up to 1e16 (1000.0), with an exponent outside (1e16, 1.5e-7).
func AppendNumber(dst, literal []byte) []byte {
	if !bytes.ContainsAny(literal, ".eE") && string(literal) != "-0" {
		if _, err := strconv.ParseInt(string(literal), 10, 64); err == nil {
			return append(dst, literal...)
		}
		if _, err := strconv.ParseUint(string(literal), 10, 64); err == nil {
			return append(dst, literal...)
		}
	}
	f, err := strconv.ParseFloat(string(literal), 64)
	if err != nil {
		return append(dst, literal...) // out of range: nothing shorter says the same
	}
	if abs := math.Abs(f); abs == 0 || 1e-5 <= abs && abs < 1e16 {
		start := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
		if !bytes.Contains(dst[start:], []byte(".")) {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	var buf [32]byte
	mantissa, exponent, _ := bytes.Cut(strconv.AppendFloat(buf[:0], f, 'e', -1, 64), []byte("e"))
	dst = append(append(dst, mantissa...), 'e')
	if exponent[0] == '-' {
		dst = append(dst, '-')
	}
	return append(dst, bytes.TrimLeft(exponent, "+-0")...)
}

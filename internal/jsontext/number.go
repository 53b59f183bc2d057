package jsontext

import (
	"bytes"
	"math"
	"strconv"

	"svc/internal/numeric"
)

// AppendNumber appends the text of a JSON number as it is indexed and formatted.
func AppendNumber(dst, text []byte) []byte {
	dst, _ = ReadNumber(dst, text)
	return dst
}

// ReadNumber appends the text of a JSON number as it is indexed: an integer of 64 bits in its digits, any other number in
// its shortest decimal form, with an exponent below 1e-5 and from 1e16. It returns the value, too.
func ReadNumber(dst, text []byte) (shown []byte, value numeric.Value) {
	if IsInteger(text) {
		if len(text) < 16 {
			return append(dst, text...), numeric.Value{Float: float64(smallInteger(text))}
		}
		if text[0] == '-' {
			if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
				return append(dst, text...), numeric.OfInt(n)
			}
		} else if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
			return append(dst, text...), numeric.OfUint(n)
		}
	}
	f, _ := strconv.ParseFloat(string(text), 64)
	f = min(max(f, -math.MaxFloat64), math.MaxFloat64)
	return AppendFloat(dst, f), numeric.Of(f)
}

// IsInteger reports whether a JSON number is written as an integer. "-0" is not one.
func IsInteger(text []byte) bool {
	for _, c := range text {
		if c == '.' || c|0x20 == 'e' {
			return false
		}
	}
	return string(text) != "-0"
}

// smallInteger reads an integer of at most 18 digits.
func smallInteger(text []byte) (n int64) {
	digits := text
	if text[0] == '-' {
		digits = text[1:]
	}
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	if text[0] == '-' {
		return -n
	}
	return n
}

// AppendValue appends v as AppendFloat does, but integers from 2⁵³ on by their digits, which tell neighbours apart.
func AppendValue(dst []byte, v numeric.Value) []byte {
	if text, ok := v.AppendInteger(dst); ok {
		return text
	}
	return AppendFloat(dst, v.Float)
}

// AppendFloat appends f in the shortest decimal form that tells it from all others of its type, and that always shows that it
// is not an integer: 1.0, 1e16, 1.5e-7. JSON has no text for other than finite numbers: an infinity becomes the largest number of its
// type, NaN becomes null.
func AppendFloat[T float32 | float64](dst []byte, f T) []byte {
	bits, largest := 64, math.MaxFloat64
	if _, single := any(f).(float32); single {
		bits, largest = 32, math.MaxFloat32
	}
	if f != f {
		return append(dst, "null"...)
	}
	f = T(min(max(float64(f), -largest), largest))
	start := len(dst)
	if abs := max(f, -f); abs == 0 || abs >= 1e-5 && abs < 1e16 {
		dst = strconv.AppendFloat(dst, float64(f), 'f', -1, bits)
		if bytes.IndexByte(dst[start:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	dst = strconv.AppendFloat(dst, float64(f), 'e', -1, bits)
	// strconv writes a sign and two digits at least: e+16, e-07.
	e := start + bytes.IndexByte(dst[start:], 'e') + 1
	digits := e + 1
	if dst[e] == '-' {
		e++
	}
	for dst[digits] == '0' {
		digits++
	}
	return append(dst[:e], dst[digits:]...)
}

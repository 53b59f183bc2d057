// Package numeric owns the numbers of documents: the integers of 64 bits, signed and unsigned, and float64, in one exact order.
package numeric

import (
	"math"
	"strconv"
	"strings"
)

// Value is a number: Float is the float64 nearest to it, ties to even, and Rest is the difference. Only integers from 2⁵³ on have a
// Rest; adjacent float64 are then 2 to 2,048 apart, so it is between −1,024 and 1,024.
//
// Rounding keeps the order, so values compare by Float, then by Rest. A number has one Value, so == tests equality, and a Value may
// be the key of a map. There is no −0 and no NaN.
type Value struct {
	Float float64
	Rest  int16
}

// exactFloats is the first integer behind which float64 have no room for all.
const exactFloats = 1 << 53

// Of returns the value of a float64 that is not NaN.
func Of(f float64) Value { return Value{Float: f + 0} } // −0 + 0 is 0

// OfInt returns the value of an integer.
func OfInt(n int64) Value {
	if n >= 0 {
		return OfUint(uint64(n))
	}
	f := float64(n)
	return Value{f, int16(n - int64(f))}
}

// OfUint returns the value of an integer.
func OfUint(n uint64) Value {
	f := float64(n)
	if f == 1<<64 { // no uint64, and 0 modulo 2⁶⁴
		return Value{f, int16(n)}
	}
	return Value{f, int16(n - uint64(f))}
}

// Compare is negative when v is below o, 0 when they are equal, and positive when v is above o.
func (v Value) Compare(o Value) int {
	switch {
	case v.Float < o.Float:
		return -1
	case v.Float > o.Float:
		return 1
	}
	return int(v.Rest) - int(o.Rest)
}

// Hash returns 64 bits that tell values apart.
func (v Value) Hash() uint64 {
	h := (math.Float64bits(v.Float) ^ uint64(v.Rest)<<1) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// Exact reports whether v is a value that a number has: its Rest is 0, or Float is what the integer Float + Rest is rounded to.
func (v Value) Exact() bool {
	if math.IsNaN(v.Float) || v.Float == 0 && math.Signbit(v.Float) {
		return false
	}
	if v.Rest == 0 {
		return true
	}
	if n, ok := v.Uint(); ok {
		return OfUint(n) == v
	}
	n, ok := v.Int()
	return ok && OfInt(n) == v
}

// Uint returns a positive 64-bit integer from 2⁵³ on, and whether v is one.
func (v Value) Uint() (uint64, bool) {
	switch {
	case v.Float == 1<<64 && v.Rest < 0:
		return uint64(v.Rest), true // modulo 2⁶⁴
	case v.Float >= exactFloats && v.Float < 1<<64:
		return uint64(v.Float) + uint64(v.Rest), true
	}
	return 0, false
}

// Int is Uint for a negative integer down to −2⁶³.
func (v Value) Int() (int64, bool) {
	if v.Float <= -exactFloats && v.Float >= -1<<63 {
		return int64(v.Float) + int64(v.Rest), true
	}
	return 0, false
}

// AppendInteger appends the digits of a 64-bit integer whose absolute value is 2⁵³ or more, and reports whether v is one. The
// shortest text of such a float64 may be that of another integer.
func (v Value) AppendInteger(dst []byte) ([]byte, bool) {
	if n, ok := v.Uint(); ok {
		return strconv.AppendUint(dst, n, 10), true
	}
	if n, ok := v.Int(); ok {
		return strconv.AppendInt(dst, n, 10), true
	}
	return dst, false
}

// AppendText appends v as facets and hints show it: without exponent, and an integer without fraction.
func (v Value) AppendText(dst []byte) []byte {
	if n := int64(v.Float); float64(n) == v.Float && -1e15 < v.Float && v.Float < 1e15 {
		return strconv.AppendInt(dst, n, 10)
	}
	if text, ok := v.AppendInteger(dst); ok {
		return text
	}
	return strconv.AppendFloat(dst, v.Float, 'f', -1, 64)
}

// Parse reads a decimal number as in documents, and as in filters: also with a plus sign, leading zeros, or no digit on one side of
// the point. It refuses inf, nan, blanks, underscores, digits in other bases, and values beyond float64.
func Parse(s string) (Value, bool) {
	integer := true
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', c == '-', c == '+':
		case c == '.', c == 'e', c == 'E':
			integer = false
		default:
			return Value{}, false
		}
	}
	if integer && len(s) > exactDigits {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return OfInt(n), true
		}
		digits := s
		if s[0] == '+' {
			digits = s[1:]
		}
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
			return OfUint(n), true
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return Value{}, false
	}
	return Of(f), true
}

// ParseBound parses the bound of a comparison, like Parse. A bound outside the range of float64 becomes infinite: all numbers are smaller,
// or all are larger.
func ParseBound(s string) (Value, bool) {
	v, ok := Parse(s)
	if ok || strings.Trim(s, "0123456789+-.eE") != "" {
		return v, ok
	}
	f, _ := strconv.ParseFloat(s, 64)
	return Value{Float: f}, math.IsInf(f, 0)
}

// ParseFloat is Parse for callers that need a float64.
func ParseFloat(s string) (float64, bool) {
	v, ok := Parse(s)
	return v.Float, ok
}

// exactDigits is how many digits an integer may have that float64 always have room for.
const exactDigits = 15

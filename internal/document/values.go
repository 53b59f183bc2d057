package document

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"strconv"

	"svc/internal/jsontext"
)

// valueSet is a set of compact JSON values. Values are equal if they mean the same: strings regardless of escapes, numbers by value,
// objects regardless of the order of members.
type valueSet struct {
	known   map[string]bool
	scratch []byte
}

func newValueSet(values [][]byte) *valueSet {
	s := &valueSet{known: make(map[string]bool, len(values))}
	for _, v := range values {
		s.add(v)
	}
	return s
}

// add reports whether the value is new.
func (s *valueSet) add(v []byte) bool {
	if s.has(v) {
		return false
	}
	s.known[string(s.scratch)] = true
	return true
}

func (s *valueSet) has(v []byte) bool {
	s.scratch = appendCanonical(s.scratch[:0], v)
	return s.known[string(s.scratch)]
}

// appendCanonical appends one text for all values that are equal.
func appendCanonical(dst, v []byte) []byte {
	switch c := v[0]; {
	case c == '"':
		if bytes.IndexByte(v, '\\') < 0 {
			return append(dst, v...)
		}
		return jsontext.AppendQuoted(dst, jsontext.AppendUnquoted(nil, v))
	case c == '-' || isDigit(c):
		return appendCanonicalNumber(dst, v)
	case c == '[':
		dst = append(dst, '[')
		_ = Elements(v, func(e []byte) error { // documents and operations were checked
			dst = append(appendCanonical(dst, e), ',')
			return nil
		})
		return append(dst, ']')
	case c == '{':
		var members [][]byte
		_ = Fields(v, func(name, value []byte) error {
			m := append(jsontext.AppendQuoted(nil, name), ':')
			members = append(members, appendCanonical(m, value))
			return nil
		})
		slices.SortFunc(members, bytes.Compare)
		dst = append(dst, '{')
		for _, m := range members {
			dst = append(append(dst, m...), ',')
		}
		return append(dst, '}')
	}
	return append(dst, v...)
}

// appendCanonicalNumber appends one text for all numbers that read the same, as jsontext.ReadNumber reads them.
func appendCanonicalNumber(dst, v []byte) []byte {
	if IsInteger64(v) {
		return append(dst, v...)
	}
	f, _ := strconv.ParseFloat(string(v), 64) // AppendFloat maps values out of range to the largest number, as an index does
	if f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	if f == math.Trunc(f) && f >= 0 && f < 1<<64 {
		return strconv.AppendUint(dst, uint64(f), 10)
	}
	return jsontext.AppendFloat(dst, f)
}

// appendSum appends the sum of two JSON numbers. 64-bit integers are added exactly, all other numbers as float64. ok is false if the
// sum of integers does not fit into 64 bits, or if the sum of other numbers is infinite.
func appendSum(dst, a, b []byte) (sum []byte, ok bool) {
	if IsInteger64(a) && IsInteger64(b) {
		if x, err := strconv.ParseInt(string(a), 10, 64); err == nil {
			if y, err := strconv.ParseInt(string(b), 10, 64); err == nil {
				if s := x + y; (s > x) == (y > 0) {
					return strconv.AppendInt(dst, s, 10), true
				}
			}
		}
		var x, y big.Int
		x.SetString(string(a), 10)
		y.SetString(string(b), 10)
		s := x.Add(&x, &y)
		return s.Append(dst, 10), s.IsInt64() || s.IsUint64()
	}
	x, err := strconv.ParseFloat(string(a), 64)
	if err != nil {
		return nil, false
	}
	y, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsInf(x+y, 0) {
		return nil, false
	}
	return jsontext.AppendFloat(dst, x+y), true
}

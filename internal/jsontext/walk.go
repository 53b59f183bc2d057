package jsontext

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// ErrNotCompact is the error for text that is not a compact JSON object or array.
var ErrNotCompact = errors.New("damaged JSON text: it is not a compact object or array")

// EachMember calls f for each member of a compact JSON object with the key in its quotes and the raw value, which is not empty. Errors are
// ErrNotCompact and those of f. What is inside of values is not looked at beyond where they end.
func EachMember(object []byte, f func(key, value []byte) error) error {
	if len(object) < 2 || object[0] != '{' {
		return ErrNotCompact
	}
	for i := 1; object[i] != '}'; {
		if object[i] == ',' && i > 1 {
			i++
		}
		keyEnd := StringEnd(object, i)
		if keyEnd < 0 || keyEnd >= len(object) || object[keyEnd] != ':' {
			return ErrNotCompact
		}
		end := ValueEnd(object, keyEnd+1)
		if end < 0 || end >= len(object) || object[end] != ',' && object[end] != '}' {
			return ErrNotCompact
		}
		if err := f(object[i:keyEnd], object[keyEnd+1:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// EachElement calls f for each element of a compact JSON array, as EachMember does.
func EachElement(array []byte, f func(element []byte) error) error {
	if len(array) < 2 || array[0] != '[' {
		return ErrNotCompact
	}
	for i := 1; array[i] != ']'; {
		if array[i] == ',' && i > 1 {
			i++
		}
		end := ValueEnd(array, i)
		if end < 0 || end >= len(array) || array[end] != ',' && array[end] != ']' {
			return ErrNotCompact
		}
		if err := f(array[i:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// AppendElements appends a compact JSON array with each element as f appends it. (Its loop is that of EachElement: a closure for each
// element took 7% more instructions.)
func AppendElements(dst, array []byte, f func(dst, element []byte) ([]byte, error)) (_ []byte, err error) {
	dst = append(dst, '[')
	if len(array) < 2 || array[0] != '[' {
		return append(dst, ']'), ErrNotCompact
	}
	for i := 1; array[i] != ']'; {
		if array[i] == ',' && i > 1 {
			i++
			dst = append(dst, ',')
		}
		end := ValueEnd(array, i)
		if end < 0 || end >= len(array) || array[end] != ',' && array[end] != ']' {
			return append(dst, ']'), ErrNotCompact
		}
		if dst, err = f(dst, array[i:end]); err != nil {
			break
		}
		i = end
	}
	return append(dst, ']'), err
}

// ValueEnd returns the index after the compact value at b[i], or −1.
func ValueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return StringEnd(b, i)
	case '{', '[':
		depth := 1
		for i++; i < len(b); i++ {
			switch b[i] {
			case '"':
				end := StringEnd(b, i)
				if end < 0 {
					return -1
				}
				i = end - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return -1
	}
	return ScalarEnd(b, i)
}

// ScalarEnd returns the index after the number or literal that starts at b[i], or −1 when there is none.
func ScalarEnd(b []byte, i int) int {
	start := i
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] != '"' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// longString is the length in bytes from which the end of a string is found by searching for a quote: the loop of StringEnd takes longer
// per byte.
const longString = 64

// StringEnd returns the index after the string at b[i], or −1.
func StringEnd(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	end, _ := TextEnd(b, i+1)
	return end
}

// TextEnd returns the index after the closing quote of the string whose opening quote is before b[i], or −1, and whether there is an
// escape in it.
func TextEnd(b []byte, i int) (end int, escaped bool) {
	for from := i; ; {
		if i-from >= longString {
			return longTextEnd(b, i, escaped)
		}
		var n int
		if i+8 <= len(b) {
			m := quoteOrSlash(binary.LittleEndian.Uint64(b[i:]))
			if m == 0 {
				i += 8
				continue
			}
			n = bits.TrailingZeros64(m) >> 3
		}
		if i += n; i >= len(b) {
			return -1, false
		}
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
		}
		i++
	}
}

// longTextEnd is TextEnd from within a string, behind whole characters and escapes.
func longTextEnd(b []byte, i int, escaped bool) (end int, _ bool) {
	for from := i; ; {
		if i >= len(b) {
			return -1, false
		}
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1, false
		}
		quote := i + n
		slashes := 0
		for quote-1-slashes >= from && b[quote-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return quote + 1, escaped || bytes.IndexByte(b[from:quote], '\\') >= 0
		}
		i = quote + 1
	}
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// quoteOrSlash marks, in the high bit of each byte of x, quotes and backslashes. Only the lowest mark is exact.
func quoteOrSlash(x uint64) uint64 {
	quote := x ^ lowBits*'"'
	slash := x ^ lowBits*'\\'
	return ((quote - lowBits) &^ quote & highBits) | ((slash - lowBits) &^ slash & highBits)
}

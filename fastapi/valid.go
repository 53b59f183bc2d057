package fastapi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"svc/internal/jsontext"
)

const (
	// leastValid is the length from which on valid looks for long lists and strings, and leastCut how long these are. Bodies with
	// a vector have one.
	leastValid = 1 << 10
	leastCut   = 128

	// mostRest bounds the rest of a body that valid copies.
	mostRest = 1 << 10
)

// valid is json.Valid. It checks long lists of numbers, and long strings without escapes, in a third of the time. Without their
// contents, the rest of the body is valid if the whole body is.
func valid(body []byte) bool {
	if len(body) < leastValid {
		return json.Valid(body)
	}
	var room [mostRest]byte
	rest, from := room[:0], 0
	for i := 0; i < len(body); {
		end := -1
		switch body[i] {
		case '"':
			n, plain := plainString(body[i+1:])
			if n < 0 {
				return false // it does not end
			}
			if i += 1 + n; !plain || n < leastCut {
				i++
				continue
			}
			i, end = i-n-1, i
		case '[':
			end = numbersEnd(body, i+1)
		}
		if i++; end-i < leastCut {
			continue
		}
		if len(rest)+i-from > mostRest {
			return json.Valid(body)
		}
		rest = append(rest, body[from:i]...)
		i, from = end+1, end
	}
	if from == 0 || len(rest)+len(body)-from > mostRest {
		return json.Valid(body)
	}
	return json.Valid(append(rest, body[from:]...))
}

const (
	everyByte = 0x0101010101010101
	highBits  = everyByte << 7
)

// plainString returns how many bytes of a string precede its closing quote, or −1 if there is none. plain is true if the string has
// neither escapes nor control characters.
func plainString(b []byte) (n int, plain bool) {
	n = bytes.IndexByte(b, '"')
	if n < 0 || bytes.IndexByte(b[:n], '\\') < 0 {
		return n, n >= 0 && !hasControl(b[:n])
	}
	for n = 0; n < len(b); n++ {
		switch b[n] {
		case '"':
			return n, false
		case '\\':
			n++
		}
	}
	return -1, false
}

// hasControl reports whether a byte is below the space.
func hasControl(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		x := binary.LittleEndian.Uint64(b)
		if (x-everyByte*' ')&^x&highBits != 0 {
			return true
		}
	}
	for _, c := range b {
		if c < ' ' {
			return true
		}
	}
	return false
}

// numbersEnd returns the index of the bracket that ends a list of numbers, from the first of them on, with at most a space behind each
// comma; −1 if this is no such list.
func numbersEnd(b []byte, i int) int {
	for {
		if i == len(b) {
			return -1
		}
		sign := 0
		if b[i] == '-' { // half of the numbers: no jump
			sign = 1
		}
		i += sign
		first := i
		for i < len(b) && b[i]-'0' < 10 { // few digits stand before a point
			i++
		}
		if i == first || b[first] == '0' && i > first+1 {
			return -1
		}
		if i < len(b) && b[i] == '.' {
			first = i + 1
			if i = jsontext.DigitsEnd(b, first); i == first {
				return -1
			}
		}
		if i < len(b) && b[i]|0x20 == 'e' {
			if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
				i++
			}
			first = i
			if i = jsontext.DigitsEnd(b, first); i == first {
				return -1
			}
		}
		switch {
		case i < len(b) && b[i] == ']':
			return i
		case i == len(b) || b[i] != ',':
			return -1
		}
		if i++; i < len(b) && b[i] == ' ' {
			i++
		}
	}
}

package budget

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Shape estimates the memory that is needed to parse JSON, from the text as it arrives. Short text may need much memory: each two
// bytes of `[1,1,1` are a number and its slot in a list, each five of `{"a":{"a":` a table of members. The estimate counts all
// allocations, including garbage.
type Shape struct {
	bytes  int64
	place  uint8 // where the next byte is
	escape bool  // after a backslash
}

// Where a byte is.
const (
	outside = iota
	inside  // a string
	behind  // after a digit
)

// Memory per item in bytes, with encoding/json and the parsers of parameters and filters. Two tests measure these figures.
const (
	byteOf    = 6   // a byte of text, with the copies that splitting it makes
	valueOf   = 130 // an element of a list or a member of an object: the slot, copied as the list grows, and the value
	tableOf   = 240 // an object: its table of members
	nameOf    = 115 // the name of a member, and its slot in the table
	stringOf  = 20
	digitOf   = 2
	numberOf  = 110 // a number in a list, other than the first
	operandOf = 150 // a value or a condition of a filter, which is written in a string
)

// weights has what a byte adds, by where it is. Vectors are long lists of long numbers whose text is not kept.
var weights = func() (w [3][256]int32) {
	for c := range 256 {
		w[outside][c], w[inside][c] = byteOf, byteOf
	}
	w[outside][','] += valueOf
	w[outside]['['] += valueOf
	w[outside]['{'] += valueOf + tableOf
	w[outside][':'] += nameOf
	w[outside]['"'] += stringOf
	w[behind] = w[outside]
	for _, c := range []byte("0123456789.") {
		w[behind][c] = digitOf
	}
	w[behind][','] = numberOf
	for _, c := range operands {
		w[inside][c[0]] += operandOf
	}
	return w
}()

// behindByte returns where the next byte is after a byte outside strings.
var behindByte = func() (places [256]uint8) {
	for _, c := range []byte("0123456789.") {
		places[c] = behind
	}
	places['"'] = inside
	return places
}()

// Add reads more text. The estimate of text that is not JSON has no meaning.
func (s *Shape) Add(text []byte) {
	for len(text) > 0 {
		if s.place == inside {
			text = text[s.addInside(text):]
			continue
		}
		text = text[s.addNumbers(text):]
		n, place, read := s.bytes, s.place, 0
		for _, c := range text {
			n += int64(weights[place][c])
			read++
			if place = behindByte[c]; place == inside || c == '[' || c == ',' {
				break // behind these, numbers may follow
			}
		}
		s.bytes, s.place = n, place
		text = text[read:]
	}
}

const (
	everyByte = 0x0101010101010101
	highBits  = everyByte << 7
)

// addNumbers reads eight bytes at a time while they are digits, points, commas, or other bytes below them that weigh byteOf
// everywhere, such as signs and white space. It returns how many bytes it read.
func (s *Shape) addNumbers(text []byte) (read int) {
	n, digit := s.bytes, uint64(0) // 0x80: the byte before the next one is a digit
	if s.place == behind {
		digit = 0x80
	}
	// equals marks the bytes of x that equal c. All bytes of x are below 0x80.
	equals := func(x uint64, c byte) uint64 { return ^(x ^ everyByte*uint64(c) + everyByte*0x7f) & highBits }
	for ; read+8 <= len(text); read += 8 {
		x := binary.LittleEndian.Uint64(text[read:])
		if (x|(x+everyByte*(0x80-('9'+1))))&highBits|equals(x, '"') != 0 {
			break // a byte above the digits, or a string
		}
		digits := (x+everyByte*(0x80-'0'))&highBits | equals(x, '.')
		commas, after := equals(x, ','), digits<<8|digit
		digit = digits >> 56
		n += 8*byteOf - (byteOf-digitOf)*int64(bits.OnesCount64(digits&after)) + valueOf*int64(bits.OnesCount64(commas)) -
			(byteOf+valueOf-numberOf)*int64(bits.OnesCount64(commas&after))
	}
	if read > 0 {
		s.bytes, s.place = n, outside
		if digit != 0 {
			s.place = behind
		}
	}
	return read
}

// plainPiece is how many bytes of a string are read at once if they contain neither a quote nor an escape.
const plainPiece = 128

// addInside reads a piece of a string, or up to its end. It returns how many bytes it read.
func (s *Shape) addInside(text []byte) int {
	text = text[:min(len(text), plainPiece)]
	if len(text) == plainPiece && !s.escape && bytes.IndexByte(text, '"') < 0 && bytes.IndexByte(text, '\\') < 0 {
		s.bytes += byteOf * plainPiece
		for _, c := range operands {
			s.bytes += operandOf * int64(bytes.Count(text, c))
		}
		return plainPiece
	}
	n, escape := s.bytes, s.escape
	for i, c := range text {
		n += int64(weights[inside][c])
		switch {
		case escape:
			escape = false
		case c == '\\':
			escape = true
		case c == '"':
			s.bytes, s.place, s.escape = n, outside, false
			return i + 1
		}
	}
	s.bytes, s.escape = n, escape
	return len(text)
}

// operands are the bytes in strings from which a filter makes values.
var operands = [][]byte{{','}, {'='}, {'<'}, {'>'}}

// Bytes returns the estimate, the text itself included.
func (s *Shape) Bytes() int64 { return s.bytes }

// ShapeOf returns the estimate of a text.
func ShapeOf(text []byte) int64 {
	var s Shape
	s.Add(text)
	return s.Bytes()
}

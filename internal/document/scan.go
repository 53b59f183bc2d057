package document

import (
	"encoding/binary"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"svc/internal/jsontext"
)

// Padding is how many zero bytes follow the text that a scanner reads. A zero
// byte is valid nowhere in JSON, so the scanner needs no test for the end of
// the text but where it fails; and strings are read in words of eight bytes.
const Padding = 8

// A scanner validates one document and compacts it, in one pass. Finding the
// end of a document means reading every byte anyway, which leaves nothing for
// a second pass by a JSON library to add.
type scanner struct {
	data []byte // the text, then Padding
	end  int    // len of the text
	out  []byte // the document without white space is appended here
	from int    // start of the input not yet copied to out
	keys []uint64
	// loose is set by callers that do not need twice: keys are not hashed.
	loose bool
	// twice reports that an object seems to have a key twice: two hashes are
	// equal, or a key is escaped.
	twice bool
	fail  string // the error, for users
	at    int    // where

	// most limits the bytes of out (0: no limit). Further bytes go to to, or only set over.
	most int
	over bool
	to   io.Writer
	err  error // of to
}

// document scans an object at data[i] and returns its end, or −1.
func (s *scanner) document(i int) int {
	s.twice = false
	s.fail = ""
	s.keys = s.keys[:0]
	s.from = i
	i = s.object(i, 1)
	if i >= 0 {
		s.keep(i)
	}
	return i
}

// keep copies the text from s.from to i.
func (s *scanner) keep(i int) {
	text := s.data[s.from:i]
	if s.most > 0 && len(text) > s.most-len(s.out) {
		s.keepApart(text)
		return
	}
	s.out = append(s.out, text...)
}

// keepApart is keep for what out does not get.
func (s *scanner) keepApart(text []byte) {
	if s.to == nil {
		s.over = true
		return
	}
	for _, b := range [...][]byte{s.out, text} {
		for len(b) > 0 && s.err == nil { // in pieces: a page of a mapping may not be readable
			n := min(len(b), windowSize)
			_, s.err = s.to.Write(b[:n])
			b = b[n:]
		}
	}
	s.out = s.out[:0]
}

// Fault says what keeps a JSON object from being a document; "" when nothing does. It may be read over by 8 bytes:
// doc has to be the caller's own.
func Fault(doc []byte) string {
	s := scanner{data: append(doc, make([]byte, Padding)...), end: len(doc)}
	if s.document(0) < 0 {
		return s.fail
	}
	return ""
}

// Compacted reports whether data[from:to] is a JSON object of up to MaxHitDepth levels without insignificant white space. Padding
// zero bytes end data.
func Compacted(data []byte, from, to int) bool {
	if from < 0 || to <= from || data[from] != '{' {
		return false
	}
	s := scanner{data: data, end: len(data) - Padding, from: from, loose: true}
	return s.object(from, hitDepth) == to && s.from == from
}

func (s *scanner) failAt(i int, what string) int {
	s.at, s.fail = i, what
	return -1
}

// space leaves out the white space at i, if any.
func (s *scanner) space(i int) int {
	c := s.data[i]
	if c > ' ' || !isSpace(c) {
		return i
	}
	s.keep(i)
	for i++; isSpace(s.data[i]); i++ {
	}
	s.from = i
	return i
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r'
}

// object scans an object at data[i] and returns its end, or −1 after recording the error.
func (s *scanner) object(i, depth int) int {
	if depth > MaxDepth {
		return s.failAt(i, "it is nested more than "+strconv.Itoa(MaxDepth)+" levels deep")
	}
	first := len(s.keys)
	i = s.space(i + 1)
	if s.data[i] == '}' {
		return i + 1
	}
	for {
		if s.data[i] != '"' {
			return s.failAt(i, "expected a field name in double quotes")
		}
		end, escaped := s.str(i + 1)
		if end < 0 {
			return -1
		}
		if !s.loose {
			s.keys = append(s.keys, xxhash.Sum64(s.data[i+1:end-1]))
			s.twice = s.twice || escaped
		}
		i = end
		if s.data[i] <= ' ' {
			i = s.space(i)
		}
		if s.data[i] != ':' {
			return s.failAt(i, "expected a colon after a field name")
		}
		if i = s.value(i+1, depth); i < 0 {
			return -1
		}
		switch s.data[i] {
		case ',':
			i = s.space(i + 1)
		case '}':
			s.twice = s.twice || repeated(s.keys[first:])
			s.keys = s.keys[:first]
			return i + 1
		default:
			return s.failAt(i, "expected a comma or the end of an object")
		}
	}
}

// array scans an array as object scans an object.
func (s *scanner) array(i, depth int) int {
	if depth > MaxDepth {
		return s.failAt(i, "it is nested more than "+strconv.Itoa(MaxDepth)+" levels deep")
	}
	if i = s.space(i + 1); s.data[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth); i < 0 {
			return -1
		}
		switch s.data[i] {
		case ',':
			i++
		case ']':
			return i + 1
		default:
			return s.failAt(i, "expected a comma or the end of an array")
		}
	}
}

// value scans a value and the white space on both sides of it.
func (s *scanner) value(i, depth int) int {
	c := s.data[i]
	if c <= ' ' {
		i = s.space(i)
		c = s.data[i]
	}
	switch {
	case c == '"':
		i, _ = s.str(i + 1)
	case c == '{':
		i = s.object(i, depth+1)
	case c == '[':
		i = s.array(i, depth+1)
	case c == '-' || isDigit(c):
		i = s.number(i)
	case c == 't':
		i = s.literal(i, "true")
	case c == 'f':
		i = s.literal(i, "false")
	case c == 'n':
		i = s.literal(i, "null")
	default:
		return s.failAt(i, "expected a value")
	}
	if i >= 0 && s.data[i] <= ' ' {
		i = s.space(i)
	}
	return i
}

func (s *scanner) literal(i int, word string) int {
	for j := range len(word) {
		if s.data[i+j] != word[j] {
			return s.failAt(i+j, "expected a value")
		}
	}
	return i + len(word)
}

func isDigit(c byte) bool { return c-'0' < 10 }

// number scans a number. Only long ones, and those with an exponent, can exceed a float64, so only these are
// parsed.
func (s *scanner) number(i int) int {
	start, exponent := i, false
	if s.data[i] == '-' {
		i++
	}
	switch c := s.data[i]; {
	case c == '0':
		i++
	case isDigit(c):
		for i++; isDigit(s.data[i]); i++ {
		}
	default:
		return s.failAt(i, "expected a digit")
	}
	if s.data[i] == '.' {
		if i++; !isDigit(s.data[i]) {
			return s.failAt(i, "expected a digit")
		}
		i = jsontext.DigitsEnd(s.data, i+1)
	}
	if s.data[i]|0x20 == 'e' {
		exponent = true
		if i++; s.data[i] == '+' || s.data[i] == '-' {
			i++
		}
		if !isDigit(s.data[i]) {
			return s.failAt(i, "expected a digit")
		}
		for i++; isDigit(s.data[i]); i++ {
		}
	}
	if exponent || i-start > 300 {
		if _, err := strconv.ParseFloat(string(s.data[start:i]), 64); err != nil && i < s.end {
			return s.failAt(start, "the number is too large")
		}
	}
	return i
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special marks, in the high bit of each byte of x, the bytes that end a run
// of plain text in a JSON string: quote, backslash and control characters.
// Only the lowest mark is exact.
func special(x uint64) uint64 {
	quote := x ^ lowBits*'"'
	slash := x ^ lowBits*'\\'
	return ((quote - lowBits) &^ quote & highBits) | ((slash - lowBits) &^ slash & highBits) | ((x - lowBits*0x20) &^ x & highBits)
}

// str scans a string whose opening quote is before i. It returns the index after the closing quote, or −1, and whether the string has
// an escape.
func (s *scanner) str(i int) (end int, escaped bool) {
	data, start := s.data, i
	var seen uint64 // all bytes, or-ed
	for {
		x := binary.LittleEndian.Uint64(data[i:])
		m := special(x)
		if m == 0 {
			seen |= x
			i += 8
			continue
		}
		n := bits.TrailingZeros64(m) &^ 7
		seen |= x & (1<<n - 1)
		i += n >> 3
		switch data[i] {
		case '"':
			if seen&highBits != 0 && !utf8.Valid(data[start:i]) {
				return s.failAt(start+validPrefix(data[start:i]), "the text is not valid UTF-8"), false
			}
			return i + 1, escaped
		case '\\':
			escaped = true
			if i = s.escape(i); i < 0 {
				return -1, false
			}
		default:
			if i < s.end {
				return s.failAt(i, "a control character in a string must be escaped"), false
			}
			return s.failAt(i, "unterminated string"), false
		}
	}
}

// escape scans an escape sequence at the backslash data[i].
func (s *scanner) escape(i int) int {
	switch s.data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		r, ok := jsontext.Hex4(s.data[i+2:])
		switch {
		case !ok:
			return s.failAt(i, "expected four hexadecimal digits")
		case r < 0xD800 || r > 0xDFFF:
			return i + 6
		}
		// A surrogate must be the first of a pair: alone it is no character.
		if r < 0xDC00 && s.data[i+6] == '\\' && s.data[i+7] == 'u' {
			if low, ok := jsontext.Hex4(s.data[i+8:]); ok && low >= 0xDC00 && low <= 0xDFFF {
				return i + 12
			}
		}
		return s.failAt(i, "unpaired surrogate escape")
	}
	return s.failAt(i+1, "unknown escape sequence")
}

// validPrefix returns how many bytes of b are valid UTF-8.
func validPrefix(b []byte) int {
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}

// repeated reports whether two of the hashes are equal. It reorders them.
func repeated(h []uint64) bool {
	if len(h) < 2 {
		return false
	}
	if len(h) <= 64 {
		// A small Bloom filter answers for most objects.
		var seen [8]uint64
		hit := false
		for _, x := range h {
			word, bit := x>>6&7, uint64(1)<<(x&63)
			hit = hit || seen[word]&bit != 0
			seen[word] |= bit
		}
		if !hit {
			return false
		}
	}
	slices.Sort(h)
	for i := 1; i < len(h); i++ {
		if h[i] == h[i-1] {
			return true
		}
	}
	return false
}

package document

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendQuoted appends text as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendQuoted[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	at := len(dst)
	dst = append(dst, text...)
	more, ascii := longer(dst[at:])
	if !ascii && !utf8.Valid(dst[at:]) {
		dst = append(dst[:at], strings.ToValidUTF8(string(text), "\uFFFD")...)
		more, _ = longer(dst[at:])
	}
	if more > 0 {
		dst = escape(dst, more)
	}
	return append(dst, '"')
}

// longer returns how many bytes longer a text is as JSON, and whether it is ASCII. It looks at eight bytes at once.
func longer(text []byte) (more int, ascii bool) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	all := uint64(0)
	for len(text) >= 8 {
		x := binary.LittleEndian.Uint64(text)
		all |= x
		// A byte below what is taken from it borrows from its top bit, and perhaps from the next byte, which is then looked at, too.
		if ((x-ones*' ')|((x^ones*'"')-ones)|((x^ones*'\\')-ones))&^x&tops != 0 {
			more += escapeBytes(text[:8])
		}
		text = text[8:]
	}
	for _, c := range text {
		all |= uint64(c)
	}
	return more + escapeBytes(text), all&tops == 0
}

// escapes are what follows the backslash of a byte's escape: u where that has four digits; 0 for bytes that stand for themselves.
var escapes = func() (e [256]byte) {
	for c := range ' ' {
		e[c] = 'u'
	}
	e['"'], e['\\'], e['\n'], e['\r'], e['\t'] = '"', '\\', 'n', 'r', 't'
	return e
}()

// escapeBytes counts the bytes that escapes of a text take beside what they stand for.
func escapeBytes(text []byte) (n int) {
	for _, c := range text {
		switch escapes[c] {
		case 0:
		case 'u':
			n += len(`\u0000`) - 1
		default:
			n++
		}
	}
	return n
}

// escape writes escapes into what dst ends with, which makes it longer by so many bytes. It begins at the end: where nothing is
// longer any more, nothing is moved.
func escape(dst []byte, more int) []byte {
	const hex = "0123456789abcdef"
	from := len(dst)
	dst = append(dst, make([]byte, more)...)
	for to := len(dst); to > from; {
		end := from
		for escapes[dst[from-1]] == 0 {
			from--
		}
		to -= end - from
		copy(dst[to:], dst[from:end])
		from--
		switch c := dst[from]; escapes[c] {
		case 'u':
			to -= len(`\u0000`)
			copy(dst[to:], `\u00`)
			dst[to+4], dst[to+5] = hex[c>>4], hex[c&15]
		default:
			to -= 2
			dst[to], dst[to+1] = '\\', escapes[c]
		}
	}
	return dst
}

// AppendUnquoted appends the text of a JSON string given with its quotes. Half a
// surrogate pair becomes U+FFFD.
func AppendUnquoted(dst, quoted []byte) []byte {
	if len(quoted) < 2 {
		return dst
	}
	return appendUnescaped(dst, quoted[1:len(quoted)-1])
}

// appendUnescaped appends the text of the inside of a JSON string.
func appendUnescaped(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 || i+1 >= len(s) {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		c := s[i+1]
		s = s[i+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, ok := hex4(s)
			if !ok {
				dst = append(dst, "\uFFFD"...)
				continue
			}
			s = s[4:]
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
					if low, ok := hex4(s[2:]); ok {
						pair = utf16.DecodeRune(r, low)
					}
				}
				if r = pair; r != utf8.RuneError {
					s = s[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
}

// unescapeTo writes the text of the inside of a JSON string in pieces.
func unescapeTo(w io.Writer, s []byte) error {
	var text []byte
	for len(s) > 0 {
		cut := 0 // neither in an escape nor between two that are a pair
		for cut < min(len(s), windowSize) {
			i := bytes.IndexByte(s[cut:min(len(s), windowSize)], '\\')
			if i < 0 {
				cut = min(len(s), windowSize)
				break
			}
			cut += i + len(`\n`)
			if cut > len(s) {
				cut = len(s)
			} else if s[cut-1] == 'u' {
				if r, ok := hex4(s[cut:]); ok {
					cut += 4
					if next := s[cut:]; utf16.IsSurrogate(r) && bytes.HasPrefix(next, []byte(`\u`)) {
						if low, ok := hex4(next[len(`\u`):]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
							cut += len(`\u0000`)
						}
					}
				}
			}
		}
		text = appendUnescaped(text[:0], s[:cut])
		if _, err := w.Write(text); err != nil {
			return err
		}
		s = s[cut:]
	}
	return nil
}

// stringEnd returns the index after the closing quote of the string whose
// opening quote stands before i, or −1, and whether there is an escape in it.
func stringEnd(b []byte, i int) (end int, escaped bool) {
	for {
		var n int
		if i+8 <= len(b) {
			m := special(binary.LittleEndian.Uint64(b[i:]))
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

// AppendNumber appends the text of a JSON number as it is indexed and formatted.
func AppendNumber(dst, number []byte) []byte {
	dst, _ = appendNumber(dst, number)
	return dst
}

// appendNumber appends the text of a JSON number as it is indexed: an integer of 64 bits in its digits, any other number in
// its shortest decimal form, with an exponent below 1e-5 and from 1e16.
func appendNumber(dst, number []byte) (text []byte, value float64) {
	if isInteger(number) {
		if len(number) < 16 {
			return append(dst, number...), float64(smallInteger(number))
		}
		if number[0] == '-' {
			if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
				return append(dst, number...), float64(n)
			}
		} else if n, err := strconv.ParseUint(string(number), 10, 64); err == nil {
			return append(dst, number...), float64(n)
		}
	}
	value, _ = strconv.ParseFloat(string(number), 64)
	value = min(max(value, -math.MaxFloat64), math.MaxFloat64)
	return AppendFloat(dst, value), value
}

// isInteger reports whether a JSON number is written as an integer. "-0" is not one.
func isInteger(number []byte) bool {
	for _, c := range number {
		if c == '.' || c|0x20 == 'e' {
			return false
		}
	}
	return string(number) != "-0"
}

// smallInteger reads an integer of at most 18 digits.
func smallInteger(number []byte) (n int64) {
	digits := number
	if number[0] == '-' {
		digits = number[1:]
	}
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	if number[0] == '-' {
		return -n
	}
	return n
}

// AppendFloat appends f in the shortest decimal form that tells it from all others of its type, and that always shows that it
// is not an integer: 1.0, 1e16, 1.5e-7.
func AppendFloat[T float32 | float64](dst []byte, f T) []byte {
	bits := 64
	if _, single := any(f).(float32); single {
		bits = 32
	}
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

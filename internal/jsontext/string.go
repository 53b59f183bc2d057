package jsontext

import (
	"bytes"
	"encoding/binary"
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

// AppendStrings appends texts as a JSON array of strings.
func AppendStrings(dst []byte, texts []string) []byte {
	dst = append(dst, '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendQuoted(dst, text)
	}
	return append(dst, ']')
}

// longer returns how many bytes longer a text is as JSON, and whether it is ASCII. It looks at eight bytes at once.
func longer(text []byte) (more int, ascii bool) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	all := uint64(0)
	for len(text) >= 8 {
		x := binary.LittleEndian.Uint64(text)
		all |= x
		// A subtraction that underflows a byte sets its top bit, and may borrow from the next byte. That byte is then examined as well.
		if ((x-ones*' ')|((x^ones*'"')-ones)|((x^ones*'\\')-ones))&^x&tops != 0 {
			more += EscapeBytes(text[:8])
		}
		text = text[8:]
	}
	for _, c := range text {
		all |= uint64(c)
	}
	return more + EscapeBytes(text), all&tops == 0
}

// escapes has, for each byte, the letter after the backslash of its escape: u for an escape of four digits, 0 for no escape.
var escapes = func() (e [256]byte) {
	for c := range ' ' {
		e[c] = 'u'
	}
	e['"'], e['\\'], e['\n'], e['\r'], e['\t'] = '"', '\\', 'n', 'r', 't'
	return e
}()

// EscapeBytes returns by how many bytes escapes make a text longer.
func EscapeBytes(text []byte) (n int) {
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

// escape replaces bytes at the end of dst by their escapes. more is the number of bytes that this adds. It works from the end, and stops
// where no further byte moves.
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
	return AppendUnescaped(dst, quoted[1:len(quoted)-1])
}

// AppendUnescaped appends the text of the inside of a JSON string.
func AppendUnescaped(dst, s []byte) []byte {
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
			r, ok := Hex4(s)
			if !ok {
				dst = append(dst, "\uFFFD"...)
				continue
			}
			s = s[4:]
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
					if low, ok := Hex4(s[2:]); ok {
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

// Hex4 reads four hexadecimal digits.
func Hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case (c|0x20)-'a' < 6:
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

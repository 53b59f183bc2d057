package fastapi

import (
	"bytes"
	"iter"
	"strconv"

	"svc/internal/document"
	"svc/internal/jsontext"
)

// value is one JSON value in a body of valid JSON, without surrounding white space. It aliases the body.
type value []byte

// kind names what v is, for messages.
func (v value) kind() string {
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (v value) null() bool   { return v[0] == 'n' }
func (v value) object() bool { return v[0] == '{' }
func (v value) array() bool  { return v[0] == '[' }

// text returns the text of a string.
func (v value) text() (string, bool) {
	if v[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(v, '\\') >= 0 {
		return string(jsontext.AppendUnquoted(nil, v)), true
	}
	return string(v[1 : len(v)-1]), true
}

// trim returns the value in b, which is valid JSON.
func trim(b []byte) value {
	start := space(b, 0)
	end := len(b)
	for end > start && isSpace(b[end-1]) {
		end--
	}
	return b[start:end]
}

// members iterates over an object: every raw member name, without its quotes, and its value.
func (v value) members() iter.Seq2[[]byte, value] {
	return func(yield func([]byte, value) bool) {
		for i := space(v, 1); v[i] != '}'; {
			end := skip(v, i)
			name := v[i+1 : end-1]
			i = space(v, space(v, end)+1) // past the colon
			end = skip(v, i)
			if !yield(name, v[i:end]) {
				return
			}
			if i = space(v, end); v[i] == ',' {
				i = space(v, i+1)
			}
		}
	}
}

// elements walks an array.
func (v value) elements() iter.Seq[value] {
	return func(yield func(value) bool) {
		for i := space(v, 1); v[i] != ']'; {
			end := skip(v, i)
			if !yield(v[i:end]) {
				return
			}
			if i = space(v, end); v[i] == ',' {
				i = space(v, i+1)
			}
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// space returns the index of the first byte at or after i that is not white space.
func space(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// id returns the document id in a string or a number, and whether it is valid.
func (v value) id() (string, bool) {
	if text, ok := v.text(); ok {
		return text, document.ValidID([]byte(text))
	}
	return string(v), v.kind() == "a number" && document.IsInteger64(v)
}

// maxDepth is the nesting limit of a body: documents of maximum depth may be nested in a few more levels, as with MCP.
const maxDepth = document.MaxDepth + 8

// loneSurrogate returns the index in b, which is JSON, of an escaped half of a surrogate pair without the other half, or −1.
func loneSurrogate(b []byte) int {
	unit := func(i int) (u uint64) { // the escape at i; 0: none
		if i+6 <= len(b) && b[i] == '\\' && b[i+1] == 'u' {
			u, _ = strconv.ParseUint(string(b[i+2:i+6]), 16, 16)
		}
		return u
	}
	for i := 0; i < len(b); i++ {
		next := bytes.IndexByte(b[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		switch u := unit(i) >> 10; {
		case u == 0xD800>>10 && unit(i+6)>>10 == 0xDC00>>10:
			i += 11
		case u == 0xD800>>10 || u == 0xDC00>>10:
			return i
		default:
			i++ // the escaped character
		}
	}
	return -1
}

// tooDeep reports whether b, which is JSON, is nested deeper than maxDepth.
func tooDeep(b []byte) bool {
	if len(b) <= maxDepth || bytes.Count(b, []byte{'['})+bytes.Count(b, []byte{'{'}) <= maxDepth {
		return false
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// skip returns the index after the value that starts at i.
func skip(b []byte, i int) int {
	if end := flatEnd(b, i); end > 0 {
		return end
	}
	depth := 0
	for {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			i++
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++ // only inside an object or array
		default: // a number, true, false or null
			for i < len(b) && !delimits(b[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

// flatEnd returns the index after the list of numbers that starts at i, or 0 for other values. Vectors are long lists.
func flatEnd(b []byte, i int) int {
	if b[i] != '[' || b[i+1] != '-' && b[i+1]-'0' >= 10 {
		return 0
	}
	n := bytes.IndexByte(b[i:], ']')
	if list := b[i+1 : i+n]; bytes.IndexByte(list, '"') >= 0 || bytes.IndexByte(list, '[') >= 0 || bytes.IndexByte(list, '{') >= 0 {
		return 0
	}
	return i + n + 1
}

func delimits(c byte) bool { return c == ',' || c == '}' || c == ']' || isSpace(c) }

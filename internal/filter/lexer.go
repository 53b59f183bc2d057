package filter

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// position is a place in a filter: line and column, from 1, in characters.
type position struct{ line, column uint32 }

// String begins the message of an error.
func (p position) String() string { return fmt.Sprintf("Filter, %d:%d", p.line, p.column) }

// kind of a token: a symbol stands for itself.
type kind uint8

const (
	end     kind = iota
	word         // bare
	quoted       // in quotes
	symbol       // one of ( ) [ ] { } , = != > >= < <=
	invalid      // something else, or a quote that is not closed
)

// token is a word, a quoted text, a symbol, or the end.
type token struct {
	kind   kind
	text   string // what stands for: without quotes and escapes
	at     position
	offset int // of its first byte
	end    int // offset behind it
}

// lexer cuts a filter into tokens. The parser looks one token ahead.
type lexer struct {
	src  string
	pos  int      // offset behind the current token
	at   position // of counted
	done int      // offset up to which at has counted
}

func newLexer(src string) *lexer { return &lexer{src: src, at: position{1, 1}} }

// place returns the position of an offset. Call it with ascending offsets, so that counting is linear.
func (l *lexer) place(offset int) position {
	for _, r := range l.src[l.done:offset] {
		if r == '\n' {
			l.at.line++
			l.at.column = 1
		} else {
			l.at.column++
		}
	}
	l.done = offset
	return l.at
}

// next reads a token. Invalid text, such as an open quote, is a token of the kind invalid: the parser
// makes the error.
func (l *lexer) next() token {
	for l.pos < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		if !unicode.IsSpace(r) {
			break
		}
		l.pos += n
	}
	start := l.pos
	t := token{at: l.place(start), offset: start}
	if start == len(l.src) {
		t.end = start
		return t
	}
	switch c := l.src[start]; c {
	case '(', ')', '[', ']', '{', '}', ',', '=':
		t.kind, l.pos = symbol, start+1
	case '!', '>', '<':
		l.pos = start + 1
		if l.pos < len(l.src) && l.src[l.pos] == '=' {
			l.pos++
		}
		t.kind = symbol
		if l.src[start:l.pos] == "!" {
			t.kind = invalid
		}
	case '\'', '"':
		t.kind = invalid
		if text, n := unquote(l.src[start:]); n > 0 {
			t.kind, t.text, l.pos = quoted, text, start+n
			t.end = l.pos
			return t
		}
		l.pos = len(l.src)
	default:
		for l.pos < len(l.src) {
			r, n := utf8.DecodeRuneInString(l.src[l.pos:])
			if !isWordRune(r) || r == utf8.RuneError && n == 1 {
				break
			}
			l.pos += n
		}
		t.kind = word
		if l.pos == start {
			_, n := utf8.DecodeRuneInString(l.src[start:])
			t.kind, l.pos = invalid, start+n
		}
	}
	t.text, t.end = l.src[start:l.pos], l.pos
	return t
}

// isWordRune reports whether a word without quotes may contain r.
func isWordRune(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.'
	case r == utf8.RuneError:
		return false
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// unquote reads a quoted string at the start of s, and returns its text and its size in bytes, or 0 if it is not closed. A backslash
// before n, r or t makes the usual control character, and a backslash before a quote or backslash escapes it. Before anything else, a
// backslash is a backslash.
func unquote(s string) (string, int) {
	quote := s[0]
	if i := strings.IndexByte(s[1:], quote); i >= 0 && strings.IndexByte(s[1:1+i], '\\') < 0 {
		return s[1 : 1+i], i + 2
	}
	var b []byte
	for i := 1; i < len(s); i++ {
		c := s[i]
		if c == quote {
			return string(b), i + 1
		}
		if c == '\\' && i+1 < len(s) {
			switch e := s[i+1]; e {
			case '\\', '\'', '"':
				c = e
				i++
			case 'n':
				c = '\n'
				i++
			case 'r':
				c = '\r'
				i++
			case 't':
				c = '\t'
				i++
			}
		}
		b = append(b, c)
	}
	return "", 0
}

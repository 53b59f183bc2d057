package script

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError is why a script does not compile.
type SyntaxError struct {
	Line, Column int // from 1; the column counts bytes
	Message      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokName
	tokKeyword
	tokInt      // text holds decimal digits
	tokFloat    // text is what strconv.ParseFloat reads
	tokString   // text is the unescaped string
	tokTemplate // a backtick: what follows is read by lexer.templateText
	tokOperator
)

type token struct {
	kind         tokenKind
	text         string
	line, column int
}

func (t token) is(text string) bool {
	return (t.kind == tokOperator || t.kind == tokKeyword) && t.text == text
}

func (t token) String() string {
	switch t.kind {
	case tokEnd:
		return "the end of the script"
	case tokString, tokTemplate:
		return "a string"
	}
	return strconv.Quote(t.text)
}

var keywords = map[string]bool{
	"true": true, "false": true, "let": true, "const": true, "if": true, "else": true, "switch": true,
	"do": true, "while": true, "until": true, "loop": true, "for": true, "in": true, "continue": true,
	"break": true, "return": true, "throw": true, "try": true, "catch": true, "fn": true, "private": true,
	"this": true, "import": true, "export": true, "eval": true,
}

// operators are all of them, longest first.
var operators = []string{
	"<<=", ">>=", "**=", "..=", "??=", "...",
	"=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "?[", "..", "::", "**", "<<", ">>",
	"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "#{",
	"+", "-", "*", "/", "%", "<", ">", "=", "!", "&", "|", "^", ".", ",", ";", ":", "(", ")", "[", "]", "{", "}",
}

// operatorsOf are those that begin with a byte.
var operatorsOf = func() (list [128][]string) {
	for _, op := range operators {
		list[op[0]] = append(list[op[0]], op)
	}
	return list
}()

// A lexer reads the tokens of a script one by one, as the parser asks for them: there can be as many as the script has bytes.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart int
	depth     int // strings in backticks around the current interpolated block
	open      int // braces within it
}

func (l *lexer) errorAt(pos int, format string, args ...any) *SyntaxError {
	line := 1 + strings.Count(l.src[:pos], "\n")
	column := pos - strings.LastIndexByte(l.src[:pos], '\n')
	return &SyntaxError{line, column, fmt.Sprintf(format, args...)}
}

// next reads a token. At the brace that closes an interpolated block it is tokEnd.
func (l *lexer) next() (token, error) {
	t, err := l.token()
	if err != nil {
		return token{}, err
	}
	switch {
	case t.kind == tokEnd && l.depth > 0:
		return t, l.errorAt(l.pos, "unterminated string in backticks")
	case t.is("{"), t.is("#{"):
		l.open++
	case t.is("}"):
		if l.open--; l.open < 0 && l.depth > 0 {
			t.kind = tokEnd
		}
	}
	return t, nil
}

// token returns the next token. The zero token ends the source.
func (l *lexer) token() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	t := token{line: l.line, column: l.pos - l.lineStart + 1}
	if l.pos == len(l.src) {
		return t, nil
	}
	start := l.pos
	switch c := l.src[start]; {
	case isLetter(c):
		for l.pos < len(l.src) && (isLetter(l.src[l.pos]) || isDigit(l.src[l.pos])) {
			l.pos++
		}
		t.kind, t.text = tokName, l.src[start:l.pos]
		if keywords[t.text] {
			t.kind = tokKeyword
		}
		return t, nil
	case isDigit(c):
		return l.number(t)
	case c == '"' || c == '\'':
		return l.quoted(t, c)
	case c == '#' && rawString.MatchString(l.src[start:]):
		return l.raw(t)
	case c == '`':
		t.kind = tokTemplate
		return t, l.beginTemplate()
	case c < utf8.RuneSelf:
		for _, op := range operatorsOf[c] {
			if strings.HasPrefix(l.src[start:], op) {
				l.pos += len(op)
				t.kind, t.text = tokOperator, op
				return t, nil
			}
		}
	}
	r, _ := utf8.DecodeRuneInString(l.src[start:])
	return t, l.errorAt(start, "unexpected character %q", r)
}

// skip skips white space and comments, which may be nested.
func (l *lexer) skip() error {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case rest[0] == '\n':
			l.pos++
			l.line++
			l.lineStart = l.pos
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			l.pos++
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			l.pos += end
		case strings.HasPrefix(rest, "/*"):
			start := l.pos
			l.pos += 2
			for open := 1; open > 0; {
				rest := l.src[l.pos:]
				switch {
				case rest == "":
					return l.errorAt(start, "unterminated comment")
				case strings.HasPrefix(rest, "/*"):
					open++
					l.pos += 2
				case strings.HasPrefix(rest, "*/"):
					open--
					l.pos += 2
				default:
					l.advance(1)
				}
			}
		default:
			return nil
		}
	}
	return nil
}

// advance steps over n bytes that may hold line breaks.
func (l *lexer) advance(n int) {
	for range n {
		if l.src[l.pos] == '\n' {
			l.line++
			l.lineStart = l.pos + 1
		}
		l.pos++
	}
}

func isLetter(c byte) bool { return (c|0x20)-'a' < 26 || c == '_' }
func isDigit(c byte) bool  { return c-'0' < 10 }

// number reads an integer, in hexadecimal, octal or binary form, too, or a float. 1..2 is a range, and
// 1.abs() a call.
func (l *lexer) number(t token) (token, error) {
	start := l.pos
	digits := func() {
		for l.pos < len(l.src) && (isDigit(l.src[l.pos]) || l.src[l.pos] == '_') {
			l.pos++
		}
	}
	peek := func(i int) byte {
		if l.pos+i < len(l.src) {
			return l.src[l.pos+i]
		}
		return 0
	}
	if c := peek(1) | 0x20; l.src[start] == '0' && (c == 'x' || c == 'o' || c == 'b') {
		l.pos += 2
		for isLetter(peek(0)) || isDigit(peek(0)) {
			l.pos++
		}
		text := l.src[start:l.pos]
		n, err := strconv.ParseUint(text, 0, 64) // like the decimal form, but all 64 bits may be set
		if err != nil {
			return t, l.errorAt(start, "%q is not a number", text)
		}
		t.kind, t.text = tokInt, strconv.FormatInt(int64(n), 10)
		return t, nil
	}
	t.kind = tokInt
	digits()
	if peek(0) == '.' && peek(1) != '.' && !isLetter(peek(1)) {
		t.kind = tokFloat
		l.pos++
		digits()
	}
	if peek(0)|0x20 == 'e' && (isDigit(peek(1)) || (peek(1) == '-' || peek(1) == '+') && isDigit(peek(2))) {
		t.kind = tokFloat
		l.pos += 2
		digits()
	}
	text := strings.ReplaceAll(l.src[start:l.pos], "_", "")
	if t.kind == tokFloat {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return t, l.errorAt(start, "the number %s is too large", text)
		}
		t.text = strconv.FormatFloat(f, 'g', -1, 64)
		return t, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > 1<<63 {
		return t, l.errorAt(start, "the integer %s does not fit 64 bits", text)
	}
	t.text = strconv.FormatUint(n, 10)
	return t, nil
}

// quoted reads a string in double quotes, or a character in single ones; both are strings here.
// A backslash at the end of a line continues the string on the next, after its white space.
func (l *lexer) quoted(t token, quote byte) (token, error) {
	start := l.pos
	var b strings.Builder
	for l.pos++; ; {
		plain := l.pos
		for l.pos < len(l.src) && l.src[l.pos] != quote && l.src[l.pos] != '\\' && l.src[l.pos] != '\n' {
			l.pos++
		}
		b.WriteString(l.src[plain:l.pos])
		if l.pos == len(l.src) || l.src[l.pos] == '\n' {
			return t, l.errorAt(start, "unterminated string")
		}
		c := l.src[l.pos]
		if c == quote {
			if l.pos++; l.pos < len(l.src) && l.src[l.pos] == quote && quote == '"' {
				b.WriteByte('"') // two stand for one
				l.pos++
				continue
			}
			break
		}
		if strings.HasPrefix(l.src[l.pos:], "\\\n") || strings.HasPrefix(l.src[l.pos:], "\\\r\n") {
			l.advance(strings.IndexByte(l.src[l.pos:], '\n') + 1)
			for l.pos < len(l.src) && (l.src[l.pos] == ' ' || l.src[l.pos] == '\t') {
				l.pos++
			}
			continue
		}
		r, n, ok := unescape(l.src[l.pos:])
		if !ok {
			return t, l.errorAt(l.pos, "unknown escape sequence")
		}
		b.WriteRune(r)
		l.pos += n
	}
	t.kind, t.text = tokString, b.String()
	if quote == '\'' && utf8.RuneCountInString(t.text) != 1 {
		return t, l.errorAt(start, "single quotes hold exactly one character; use double quotes for a string")
	}
	return t, nil
}

// rawString is the start of a raw string.
var rawString = regexp.MustCompile(`^#+"`)

// raw reads a raw string: it has no escape sequences, may span lines, and ends at a quote with as many # after it as before it.
func (l *lexer) raw(t token) (token, error) {
	start := l.pos
	marks := strings.IndexByte(l.src[start:], '"')
	text, _, ok := strings.Cut(l.src[start+marks+1:], `"`+strings.Repeat("#", marks))
	if !ok {
		return t, l.errorAt(start, "unterminated string")
	}
	l.advance(2*(marks+1) + len(text))
	t.kind, t.text = tokString, text
	return t, nil
}

// unescape reads the escape sequence at the start of s.
func unescape(s string) (r rune, size int, ok bool) {
	if len(s) < 2 {
		return 0, 0, false
	}
	digits := 0
	switch s[1] {
	case 't':
		return '\t', 2, true
	case 'n':
		return '\n', 2, true
	case 'r':
		return '\r', 2, true
	case '\\', '"', '\'', '`':
		return rune(s[1]), 2, true
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if digits == 0 || len(s) < 2+digits {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(s[2:2+digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return 0, 0, false
	}
	return rune(n), 2 + digits, true
}

// beginTemplate reads the beginning of a string in backticks. It may span lines; a line break right
// after the first backtick is left out.
func (l *lexer) beginTemplate() error {
	if l.depth == maxDepth {
		return l.errorAt(l.pos, "strings in backticks are nested too deeply")
	}
	l.pos++
	if rest := l.src[l.pos:]; strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n") {
		l.advance(strings.IndexByte(rest, '\n') + 1)
	}
	return nil
}

// templateText reads the text of a string in backticks up to its end or, if more is true, up to an interpolated block. It is
// not ok when the string has no end.
func (l *lexer) templateText() (text string, more, ok bool) {
	var b strings.Builder
	for {
		rest := l.src[l.pos:]
		switch {
		case rest == "":
			return "", false, false
		case strings.HasPrefix(rest, "``"):
			b.WriteByte('`')
			l.pos += 2
		case rest[0] == '`':
			l.pos++
			return b.String(), false, true
		case strings.HasPrefix(rest, "${"):
			l.pos += 2
			return b.String(), true, true
		default:
			b.WriteByte(rest[0])
			l.advance(1)
		}
	}
}

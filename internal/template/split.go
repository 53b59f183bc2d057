package template

import (
	"regexp"
	"strings"
)

type pieceKind uint8

const (
	pieceText   pieceKind = iota
	pieceOutput           // {{ … }}
	pieceTag              // {% … %}
	pieceBroken           // an output or a tag without its end
)

// piece is a stretch of a template.
type piece struct {
	kind pieceKind
	text string // for outputs and tags the inside, trimmed
	line int
}

var (
	endRaw     = regexp.MustCompile(`\{%-?\s*endraw\s*-?%\}`)
	comment    = regexp.MustCompile(`\{%-?\s*(comment|endcomment)\b[^%]*?-?%\}`)
	rawTag     = regexp.MustCompile(`^raw$`)
	commentTag = regexp.MustCompile(`^comment\b`)
)

// split splits a template into pieces. It omits comments. The text between raw and endraw is not parsed.
func split(m *meter, source string) []piece {
	s := splitter{meter: m, rest: source, line: 1}
	s.doubles, s.singles = len(source)-strings.LastIndexByte(source, '"'), len(source)-strings.LastIndexByte(source, '\'')
	for s.rest != "" && m.make(pieceBytes) == nil {
		s.next()
	}
	return s.pieces
}

type splitter struct {
	*meter
	rest   string
	line   int
	trim   bool // the last tag ended with -%} or -}}: blanks after it go
	pieces []piece

	doubles, singles int // where the last quotes stand, counted from the end
}

// take moves n bytes on and returns them.
func (s *splitter) take(n int) string {
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	s.line += strings.Count(taken, "\n")
	return taken
}

// next takes the next piece from the source: text up to an opening, an output, a tag, or all of a raw or a
// comment.
func (s *splitter) next() {
	start := opening(s.rest)
	if start != 0 {
		if start < 0 {
			start = len(s.rest)
		}
		before := s.trimLeft()
		s.addText(s.take(start), before, strings.HasPrefix(s.rest[min(2, len(s.rest)):], "-"))
		return
	}
	line := s.line
	n := s.closing()
	if n < 0 {
		s.pieces = append(s.pieces, piece{pieceBroken, s.rest[:2], line})
		s.rest = ""
		return
	}
	kind := pieceOutput
	if s.rest[1] == '%' {
		kind = pieceTag
	}
	inside := s.take(n)
	inside = strings.TrimPrefix(inside[2:len(inside)-2], "-")
	inside, s.trim = strings.CutSuffix(inside, "-")
	inside = strings.TrimSpace(inside)
	switch {
	case kind == pieceTag && rawTag.MatchString(inside):
		end := endRaw.FindStringIndex(s.rest)
		if end == nil {
			s.pieces = append(s.pieces, piece{pieceBroken, "raw", line})
			s.rest = ""
			return
		}
		before := s.trimLeft()
		tag := s.rest[end[0]:end[1]]
		s.addText(s.take(end[0]), before, tag[2] == '-')
		s.take(len(tag))
		s.trim = tag[len(tag)-3] == '-'
	case kind == pieceTag && commentTag.MatchString(inside):
		s.comment(line)
	default:
		s.pieces = append(s.pieces, piece{kind, inside, line})
	}
}

func (s *splitter) trimLeft() bool {
	trim := s.trim
	s.trim = false
	return trim
}

// addText adds a text, without the white space that the adjacent tags trim.
func (s *splitter) addText(text string, left, right bool) {
	const blanks = " \t\r\n\f\v"
	if left {
		text = strings.TrimLeft(text, blanks)
	}
	if right {
		text = strings.TrimRight(text, blanks)
	}
	if text != "" {
		s.pieces = append(s.pieces, piece{pieceText, text, s.line})
	}
}

// comment skips to the end of a comment, which may contain comments.
func (s *splitter) comment(line int) {
	for depth := 1; depth > 0 && s.make(pieceBytes) == nil; {
		at := comment.FindStringSubmatchIndex(s.rest)
		if at == nil {
			s.pieces = append(s.pieces, piece{pieceBroken, "comment", line})
			s.rest = ""
			return
		}
		depth++
		if s.rest[at[2]:at[3]] == "endcomment" {
			depth -= 2
		}
		s.trim = s.rest[at[1]-3] == '-'
		s.take(at[1])
	}
}

// opening returns where the next output or tag opens, or −1.
func opening(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '{')
		if i < 0 || from+i+1 >= len(s) {
			return -1
		}
		if c := s[from+i+1]; c == '{' || c == '%' {
			return from + i
		}
		from += i + 1
	}
}

// closing returns the length of the output or tag at the start of the rest, or −1. A quoted text does not end it. The last quote of
// its kind is an apostrophe.
func (s *splitter) closing() int {
	end := "}}"
	if s.rest[1] == '%' {
		end = "%}"
	}
	for i := 2; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"' && i < len(s.rest)-s.doubles, c == '\'' && i < len(s.rest)-s.singles:
			i += 1 + strings.IndexByte(s.rest[i+1:], c)
		case strings.HasPrefix(s.rest[i:], end):
			return i + 2
		}
	}
	return -1
}

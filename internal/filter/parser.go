package filter

import (
	"fmt"
	"slices"
	"strings"

	"svc/internal/numeric"
)

const (
	maxDepth = 200      // of parentheses, NOT and _foreign
	maxBytes = 32 << 20 // of one filter, all its strings together

	// maxConditions is how many conditions a filter may have. The values of IN do not count.
	maxConditions = 10000

	// maxPath is the maximum length in bytes of a path before braces. Each condition inside has a copy.
	maxPath = 2048
)

// A SyntaxError says what is wrong with a filter, and where.
type SyntaxError struct {
	Line, Column int // from 1, in characters
	Message      string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

// Parse parses one filter expression. A blank one gives nil. The error is a *SyntaxError.
func Parse(src string) (*Expr, error) {
	n, err := parse(src, 0)
	if n == nil || err != nil {
		return nil, err
	}
	err = walk(n, func(n node) error {
		if c, ok := n.(*condition); ok {
			return c.checkShard()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Expr{root: n}, nil
}

// parse parses an expression that is nested depth levels deep. A blank one gives nil.
func parse(src string, depth int) (node, error) {
	if len(src) > maxBytes {
		return nil, fail(position{1, 1}, "The filter has %d bytes, but may have at most %d. Split it into several requests.", len(src), maxBytes)
	}
	p := &parser{lex: newLexer(src), depth: depth}
	p.advance()
	if p.tok.kind == end {
		return nil, nil
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != end {
		return nil, p.unexpected("the end of the filter, AND or OR")
	}
	return n, nil
}

func fail(at position, format string, args ...any) error {
	return &SyntaxError{int(at.line), int(at.column), fmt.Sprintf(format, args...)}
}

// parser is a recursive descent: depth bounds its stack.
type parser struct {
	lex     *lexer
	tok     token
	depth   int
	foreign bool   // inside _foreign
	prefix  string // of attributes, inside braces: the path outside them and a dot
	found   int    // conditions and functions
}

func (p *parser) advance() { p.tok = p.lex.next() }

// touching reports whether the next byte follows the current token without a blank, and is c.
func (p *parser) touching(c byte) bool {
	return p.tok.end < len(p.lex.src) && p.lex.src[p.tok.end] == c
}

func (p *parser) isWord(text string) bool   { return p.tok.kind == word && p.tok.text == text }
func (p *parser) isSymbol(text string) bool { return p.tok.kind == symbol && p.tok.text == text }

// unexpected returns the error of the current token where want was expected.
func (p *parser) unexpected(want string) error {
	switch t := p.tok; {
	case t.kind == end:
		return fail(t.at, "Expected %s, but the filter ends.", want)
	case t.kind == invalid && (t.text[0] == '\'' || t.text[0] == '"'):
		return fail(t.at, "This quote is not closed. Add %c, or write \\%c for a quote inside the text.", t.text[0], t.text[0])
	case t.kind == word && isReserved(t.text):
		return fail(t.at, "Expected %[2]s, found the reserved word `%[1]s`. Quote it if it is a name or a value.", t.text, want)
	default:
		return fail(t.at, "Expected %[2]s, found `%[1]s`. Quote names and values with spaces or special characters.", shorten(p.lex.src[t.offset:t.end]), want)
	}
}

func shorten(s string) string {
	const limit = 40
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

func (p *parser) symbol(text string) error {
	if !p.isSymbol(text) {
		return p.unexpected("`" + text + "`")
	}
	p.advance()
	return nil
}

// deeper enters a level of nesting.
func (p *parser) deeper() error {
	if p.depth++; p.depth > maxDepth {
		return fail(p.tok.at, "The filter is nested more than %d deep: simplify it.", maxDepth)
	}
	return nil
}

func (p *parser) or() (node, error) { return p.junction(true, "OR", p.and) }

func (p *parser) and() (node, error) { return p.junction(false, "AND", p.not) }

// junction parses parts that a keyword joins.
func (p *parser) junction(or bool, keyword string, part func() (node, error)) (node, error) {
	n, err := part()
	if err != nil || !p.isWord(keyword) {
		return n, err
	}
	kids := []node{n}
	for p.isWord(keyword) {
		p.advance()
		if n, err = part(); err != nil {
			return nil, err
		}
		kids = append(kids, n)
	}
	return join(or, kids), nil
}

// not parses any number of NOTs; an even number cancels out.
func (p *parser) not() (node, error) {
	depth := p.depth
	defer func() { p.depth = depth }()
	odd := false
	for p.isWord("NOT") {
		if err := p.deeper(); err != nil {
			return nil, err
		}
		odd = !odd
		p.advance()
	}
	n, err := p.primary()
	if err == nil && odd {
		n = negate(n)
	}
	return n, err
}

// primary parses parentheses, a function or a condition. Conditions are counted up to maxConditions.
func (p *parser) primary() (node, error) {
	if p.isSymbol("(") {
		if err := p.deeper(); err != nil {
			return nil, err
		}
		p.advance()
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		return n, p.symbol(")")
	}
	if p.found++; p.found > maxConditions {
		return nil, fail(p.tok.at, "The filter has more than %d conditions: use IN, or send several requests.", maxConditions)
	}
	if p.tok.kind == word {
		switch p.tok.text {
		case "_geoRadius":
			return p.geoRadius()
		case "_geoBoundingBox":
			return p.geoBoundingBox()
		case "_geoPolygon":
			return p.geoPolygon()
		case "_foreign":
			return p.foreignKey()
		}
	}
	return p.condition()
}

// name reads an attribute.
func (p *parser) name() (string, error) {
	if p.tok.kind != quoted && (p.tok.kind != word || isReserved(p.tok.text)) {
		return "", p.unexpected("an attribute")
	}
	return p.tok.text, nil
}

func (p *parser) value() (string, error) {
	if p.tok.kind != quoted && (p.tok.kind != word || isReserved(p.tok.text)) {
		return "", p.unexpected("a value")
	}
	text := p.tok.text
	p.advance()
	return text, nil
}

// condition parses an attribute with its condition, or with braces.
func (p *parser) condition() (node, error) {
	attr, err := p.name()
	if err != nil {
		return nil, err
	}
	at := p.tok.at
	if path, ok := p.braced(); ok {
		return p.elements(at, path)
	}
	switch {
	case slices.Contains(geoNames, attr):
		return nil, fail(at, "`%s` cannot be filtered on: use _geoRadius(lat, lng, metres) or _geoBoundingBox([top, right], [bottom, left]).", attr)
	case attr == "_vectors" || strings.HasPrefix(attr, "_vectors."):
		if p.prefix != "" {
			return nil, fail(at, "`_vectors` belongs to documents: write it outside the braces.")
		}
		return p.vectorsExist()
	}
	p.advance()
	c := &condition{attr: p.prefix + attr, at: at}
	return p.operation(c)
}

// braced reports whether the current token, a name, is the path of objects that braces follow, and moves to the opening brace then.
func (p *parser) braced() (path string, ok bool) {
	path = p.tok.text
	if p.tok.kind == word {
		if path, ok = strings.CutSuffix(path, "."); !ok || !p.touching('{') {
			return "", false
		}
	} else {
		if rest := p.lex.src[p.tok.end:]; !strings.HasPrefix(rest, ".{") {
			return "", false
		}
		p.advance()
	}
	p.advance()
	return path, true
}

// elements reads an expression in braces. The current token is the opening brace.
func (p *parser) elements(at position, path string) (node, error) {
	if path == "" {
		return nil, fail(at, "`.{` needs an attribute before it, as in variants.{color = red}.")
	}
	if n := len(p.prefix) + len(path); n > maxPath {
		return nil, fail(at, "The path before the braces has %d bytes: the limit is %d.", n, maxPath)
	}
	n := &elements{at: at, path: p.prefix + path}
	depth, prefix := p.depth, p.prefix
	defer func() { p.depth, p.prefix = depth, prefix }()
	if err := p.deeper(); err != nil {
		return nil, err
	}
	p.prefix = n.path + "."
	p.advance()
	var err error
	if n.kid, err = p.or(); err != nil {
		return nil, err
	}
	return n, p.symbol("}")
}

var comparisons = map[string]op{"=": equal, "!=": notEqual, ">": greater, ">=": greaterOrEqual, "<": less, "<=": lessOrEqual}

// operation reads what follows the attribute of c.
func (p *parser) operation(c *condition) (node, error) {
	if p.tok.kind == symbol {
		o, ok := comparisons[p.tok.text]
		if !ok {
			return nil, p.unexpected("an operator")
		}
		p.advance()
		return c, p.finish(c, o, 1)
	}
	if p.tok.kind == word {
		switch p.tok.text {
		case "NOT":
			p.advance()
			if p.tok.kind == word {
				switch p.tok.text {
				case "IN", "EXISTS", "CONTAINS", "STARTS":
					n, err := p.operation(c)
					if err != nil {
						return nil, err
					}
					return negate(n), nil
				}
			}
			return nil, p.unexpected("IN, EXISTS, CONTAINS or STARTS WITH")
		case "IN":
			p.advance()
			return c, p.list(c)
		case "EXISTS":
			p.advance()
			return c, p.finish(c, exists, 0)
		case "IS":
			return p.is(c)
		case "CONTAINS":
			p.advance()
			return c, p.finish(c, contains, 1)
		case "STARTS":
			blank := p.touching(' ')
			start := p.tok.end
			p.advance()
			if !blank || !p.isWord("WITH") || p.tok.offset != start+1 {
				return nil, p.unexpected("`WITH`, after `STARTS` and one blank,")
			}
			p.advance()
			return c, p.finish(c, startsWith, 1)
		}
	}
	if p.tok.kind != quoted && (p.tok.kind != word || isReserved(p.tok.text)) {
		return nil, p.unexpected("an operator")
	}
	from, err := p.value()
	if err != nil {
		return nil, err
	}
	if !p.isWord("TO") {
		return nil, p.unexpected("an operator between attribute and value, or TO after the lower bound,")
	}
	p.advance()
	c.values = []string{from}
	return c, p.finish(c, between, 1)
}

// finish sets the operator and reads the given number of values.
func (p *parser) finish(c *condition, o op, values int) error {
	c.op = o
	for range values {
		v, err := p.value()
		if err != nil {
			return err
		}
		c.values = append(c.values, v)
	}
	return nil
}

func (p *parser) is(c *condition) (node, error) {
	p.advance()
	negated := p.isWord("NOT")
	if negated {
		p.advance()
	}
	switch {
	case p.isWord("NULL"):
		c.op = isNull
	case p.isWord("EMPTY"):
		c.op = isEmpty
	default:
		return nil, p.unexpected("NULL or EMPTY")
	}
	p.advance()
	if negated {
		return negate(c), nil
	}
	return c, nil
}

func (p *parser) list(c *condition) error {
	c.op = in
	if err := p.symbol("["); err != nil {
		return err
	}
	for !p.isSymbol("]") {
		v, err := p.value()
		if err != nil {
			return err
		}
		c.values = append(c.values, v)
		if p.isSymbol("]") {
			break
		}
		if !p.isSymbol(",") {
			return p.unexpected("`,` or `]`")
		}
		p.advance()
	}
	return p.symbol("]")
}

// open reads the name of a function and its parenthesis, which must touch.
func (p *parser) open() error {
	if !p.touching('(') {
		return fail(p.tok.at, "`%s` must be followed at once by its arguments in parentheses.", p.tok.text)
	}
	p.advance()
	p.advance()
	return nil
}

func (p *parser) number() (float64, error) {
	if p.tok.kind == word {
		if x, ok := numeric.ParseFloat(p.tok.text); ok {
			p.advance()
			return x, nil
		}
	}
	return 0, p.unexpected("a number")
}

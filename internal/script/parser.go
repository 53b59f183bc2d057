package script

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

type parser struct {
	lexer     lexer
	ahead     [2]token // that were read and not taken yet
	read      int      // how many those are
	fault     error    // why parsing stopped: all further tokens are tokEnd
	forget    bool     // the tree is not needed: keep only the last statement
	depth     int
	loops     int // around the current statement, within its function
	functions []*function
	inner     bool // inside a function, a closure or a block
}

// parse reads a script: its statements, and its functions apart.
func parse(source string) (*block, []*function, error) {
	p := parser{lexer: lexer{src: source, line: 1}}
	body, err := p.script()
	return body, p.functions, err
}

// check reads a script as parse does, and keeps nothing of it.
func check(source string) error {
	p := parser{lexer: lexer{src: source, line: 1}, forget: true}
	_, err := p.script()
	return err
}

func (p *parser) script() (*block, error) {
	source := p.lexer.src
	if len(source) > maxSource {
		return nil, &SyntaxError{1, 1, fmt.Sprintf("the script has %d bytes, more than %d", len(source), maxSource)}
	}
	if !utf8.ValidString(source) {
		return nil, &SyntaxError{1, 1, "the script is not valid UTF-8"}
	}
	body, err := p.statements(tokEnd, "")
	if p.fault != nil {
		err = p.fault
	}
	return body, err
}

// peek returns the next token.
func (p *parser) peek() token {
	if p.read == 0 {
		p.fill()
	}
	return p.ahead[0]
}

// second returns the token after the next one. It is only called if the next token does not begin a string in backticks.
func (p *parser) second() token {
	for p.read < 2 {
		p.fill()
	}
	return p.ahead[1]
}

// fill reads a token. Errors of the lexer take precedence over those of the parser, which are only consequences.
func (p *parser) fill() {
	t := token{line: p.lexer.line, column: 1}
	if p.fault == nil {
		if t, p.fault = p.lexer.next(); p.fault != nil {
			t = token{}
		}
	}
	p.ahead[p.read] = t
	p.read++
}

// skip takes the next token.
func (p *parser) skip() {
	p.ahead[0] = p.ahead[1]
	p.read--
}

// next takes and returns the next token; the end stays.
func (p *parser) next() token {
	t := p.peek()
	if t.kind != tokEnd {
		p.skip()
	}
	return t
}

func (p *parser) errorAt(t token, format string, args ...any) error {
	return &SyntaxError{t.line, t.column, fmt.Sprintf(format, args...)}
}

// accept takes the next token if it is an operator or keyword with this text.
func (p *parser) accept(text string) bool {
	if p.peek().is(text) {
		p.skip()
		return true
	}
	return false
}

func (p *parser) expect(text, where string) error {
	if t := p.peek(); !p.accept(text) {
		return p.errorAt(t, "expected %q %s, found %v", text, where, t)
	}
	return nil
}

func (p *parser) name(what string) (string, error) {
	t := p.next()
	if t.kind != tokName {
		return "", p.errorAt(t, "expected %s, found %v", what, t)
	}
	return t.text, nil
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return p.errorAt(p.peek(), "the script is nested more than %d levels deep", maxDepth)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// statements reads up to the end of the tokens, or up to and with the closing operator.
func (p *parser) statements(end tokenKind, closing string) (*block, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	b := new(block)
	for {
		if closing != "" && p.accept(closing) || closing == "" && p.peek().kind == end {
			return b, nil
		}
		if p.accept(";") {
			b.value = false
			continue
		}
		if t := p.peek(); b.value && !selfContained(b.list[len(b.list)-1].node) {
			return nil, p.errorAt(t, "expected a semicolon between statements, found %v", t)
		}
		n, err := p.statement()
		if err != nil {
			return nil, err
		}
		if n.node == nil { // a function
			b.value = false
			continue
		}
		if p.forget {
			b.list = b.list[:0]
		}
		b.list = append(b.list, n)
		b.value = true
	}
}

// selfContained reports whether a statement needs no semicolon before the next.
func selfContained(n node) bool {
	switch n := n.(type) {
	case *block, *ifNode, *switchNode, *forNode, *tryNode:
		return true
	case *loop:
		return !n.after
	}
	return false
}

func (p *parser) statement() (statement, error) {
	line := p.peek().line
	n, err := p.statementNode()
	return statement{n, line}, err
}

// statementNode returns nil for a function.
func (p *parser) statementNode() (node, error) {
	t := p.peek()
	if t.kind == tokKeyword {
		switch t.text {
		case "let", "const":
			return p.let()
		case "for":
			return p.forLoop()
		case "while", "until", "do", "loop":
			return p.loop()
		case "try":
			return p.try()
		case "if", "switch":
			return p.primary() // complete, whatever follows
		case "private", "fn":
			return nil, p.function()
		case "import", "export", "eval":
			return nil, p.errorAt(t, "%s is not available here", t.text)
		case "break", "continue":
			p.skip()
			if p.loops == 0 {
				return nil, p.errorAt(t, "%s stands outside of a loop", t.text)
			}
			j := &jump{kind: t.text}
			var err error
			if t.text == "break" && !p.atEnd() {
				j.value, err = p.expression()
			}
			return j, err
		case "return", "throw":
			p.skip()
			j := &jump{kind: t.text}
			var err error
			if !p.atEnd() {
				j.value, err = p.expression()
			}
			return j, err
		}
	}
	if t.is("{") {
		return p.block()
	}
	n, err := p.expression()
	if err != nil {
		return nil, err
	}
	op := p.peek()
	if op.kind != tokOperator || !strings.HasSuffix(op.text, "=") || precedence[op.text] > 0 || op.is("..=") {
		return n, nil
	}
	p.skip()
	switch n.(type) {
	case *variable, *property, *index, *this:
	default:
		return nil, p.errorAt(op, "only a variable, a property or an element can be assigned to")
	}
	value, err := p.expression()
	if err != nil {
		return nil, err
	}
	return &assign{op: strings.TrimSuffix(op.text, "="), target: n, value: value}, nil
}

func (p *parser) atEnd() bool {
	t := p.peek()
	return t.kind == tokEnd || t.is(";") || t.is("}") || t.is(",") || t.is(")") || t.is("]")
}

func (p *parser) let() (node, error) {
	t := p.next()
	n := &let{constant: t.text == "const"}
	var err error
	if n.name, err = p.name("the name of a variable"); err != nil {
		return nil, err
	}
	if p.accept("=") {
		n.value, err = p.expression()
	}
	return n, err
}

func (p *parser) block() (*block, error) {
	if err := p.expect("{", "before a block"); err != nil {
		return nil, err
	}
	inner := p.inner
	p.inner = true
	defer func() { p.inner = inner }()
	return p.statements(tokOperator, "}")
}

func (p *parser) loopBody() (*block, error) {
	p.loops++
	defer func() { p.loops-- }()
	return p.block()
}

// forLoop reads a loop over a value, with a variable for the item and perhaps one that counts.
func (p *parser) forLoop() (node, error) {
	n := &forNode{line: p.next().line}
	var err error
	if p.accept("(") {
		if n.item, err = p.name("the name of a variable"); err != nil {
			return nil, err
		}
		if err = p.expect(",", "between the variables of a loop"); err != nil {
			return nil, err
		}
		if n.counter, err = p.name("the name of a variable"); err != nil {
			return nil, err
		}
		err = p.expect(")", "after the variables of a loop")
	} else {
		n.item, err = p.name("the name of a variable")
	}
	if err != nil {
		return nil, err
	}
	if err = p.expect("in", "in a for loop"); err != nil {
		return nil, err
	}
	if n.in, err = p.expression(); err != nil {
		return nil, err
	}
	n.body, err = p.loopBody()
	return n, err
}

// loop reads loop, while, until or do.
func (p *parser) loop() (node, error) {
	t := p.next()
	n := &loop{line: t.line, until: t.text == "until", after: t.text == "do"}
	var err error
	if t.text == "while" || t.text == "until" {
		if n.cond, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if n.body, err = p.loopBody(); err != nil || !n.after {
		return n, err
	}
	switch t := p.next(); {
	case t.is("until"):
		n.until = true
	case !t.is("while"):
		return nil, p.errorAt(t, "expected while or until after the body of do, found %v", t)
	}
	n.cond, err = p.expression()
	return n, err
}

func (p *parser) try() (node, error) {
	n := new(tryNode)
	p.skip()
	var err error
	if n.body, err = p.block(); err != nil {
		return nil, err
	}
	if err = p.expect("catch", "after a try block"); err != nil {
		return nil, err
	}
	if p.accept("(") {
		if n.name, err = p.name("the name of a variable"); err != nil {
			return nil, err
		}
		if err = p.expect(")", "after the variable of catch"); err != nil {
			return nil, err
		}
	}
	n.catch, err = p.block()
	return n, err
}

// function reads a function with a name. Its body does not see the variables of the script.
func (p *parser) function() error {
	p.accept("private")
	t := p.peek()
	if err := p.expect("fn", "after private"); err != nil {
		return err
	}
	if p.inner {
		return p.errorAt(t, "a function can only be defined at the top of the script")
	}
	f := &function{line: t.line}
	var err error
	if f.name, err = p.name("the name of a function"); err != nil {
		return err
	}
	if err = p.expect("(", "after the name of a function"); err != nil {
		return err
	}
	if f.params, err = p.params(")"); err != nil {
		return err
	}
	for _, other := range p.functions {
		if other.name == f.name && len(other.params) == len(f.params) {
			return p.errorAt(t, "the function %s with %d parameters is defined twice", f.name, len(f.params))
		}
	}
	loops := p.loops
	p.loops = 0
	f.body, err = p.block()
	p.loops = loops
	p.functions = append(p.functions, f)
	return err
}

// params reads names up to and with the closing operator.
func (p *parser) params(closing string) (names []string, err error) {
	for !p.accept(closing) {
		if len(names) > 0 {
			if err := p.expect(",", "between parameters"); err != nil {
				return nil, err
			}
		}
		t := p.peek()
		name, err := p.name("the name of a parameter")
		if err != nil {
			return nil, err
		}
		for _, other := range names {
			if other == name {
				return nil, p.errorAt(t, "the parameter %s is named twice", name)
			}
		}
		if len(names) == maxParams {
			return nil, p.errorAt(t, "a function has more than %d parameters", maxParams)
		}
		names = append(names, name)
	}
	return names, nil
}

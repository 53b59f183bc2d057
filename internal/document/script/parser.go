package script

import (
	"fmt"
	"strings"
)

type parser struct {
	tokens    []token
	pos       int
	depth     int
	loops     int // around the statement at hand, within its function
	functions []*function
	inner     bool // inside a function, a closure or a block
}

// parse reads a script: its statements, and its functions apart.
func parse(source string) (*block, []*function, error) {
	l := lexer{src: source, line: 1}
	tokens, err := l.tokens(0)
	if err != nil {
		return nil, nil, err
	}
	p := parser{tokens: tokens}
	body, err := p.statements(tokEnd, "")
	if err != nil {
		return nil, nil, err
	}
	return body, p.functions, nil
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokEnd {
		p.pos++
	}
	return t
}

func (p *parser) errorAt(t token, format string, args ...any) error {
	return &SyntaxError{t.line, t.column, fmt.Sprintf(format, args...)}
}

// accept takes the next token if it is an operator or keyword with this text.
func (p *parser) accept(text string) bool {
	if p.peek().is(text) {
		p.pos++
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
			p.pos++
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
			p.pos++
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
	p.pos++
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
	p.pos++
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
		names = append(names, name)
	}
	return names, nil
}

// precedence of the operators with two operands; all but ** group to the left.
var precedence = map[string]int{
	"||": 1, "|": 1, "^": 1, "&&": 2, "&": 2, "==": 3, "!=": 3, "in": 4, "<": 5, "<=": 5, ">": 5, ">=": 5,
	"??": 6, "..": 7, "..=": 7, "+": 8, "-": 8, "*": 9, "/": 9, "%": 9, "**": 10, "<<": 11, ">>": 11,
}

func (p *parser) expression() (node, error) { return p.binary(1) }

func (p *parser) binary(least int) (node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	left, err := p.unary()
	if err != nil {
		return nil, err
	}
	// Each round wraps left once more: the tree gets deeper as by nesting.
	for rounds := 0; ; rounds++ {
		t := p.peek()
		op, negated := t.text, false
		if t.is("!") && p.tokens[p.pos+1].is("in") {
			op, negated = "in", true
		}
		level := precedence[op]
		if t.kind != tokOperator && t.kind != tokKeyword || level < least {
			return left, nil
		}
		if rounds == 16*maxDepth {
			return nil, p.errorAt(t, "an expression has too many operators")
		}
		p.pos++
		if negated {
			p.pos++
		}
		next := level + 1
		if op == "**" {
			next = level
		}
		right, err := p.binary(next)
		if err != nil {
			return nil, err
		}
		left = &binary{op, left, right}
		if negated {
			left = &unary{"!", left}
		}
	}
}

func (p *parser) unary() (node, error) {
	t := p.peek()
	if t.kind != tokOperator || t.text != "-" && t.text != "+" && t.text != "!" {
		return p.postfix()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.pos++
	if n := p.peek(); n.kind == tokInt && t.text == "-" && !p.tokens[p.pos+1].is(".") {
		p.pos++
		return &intLit{"-" + n.text}, nil
	}
	operand, err := p.unary()
	return &unary{t.text, operand}, err
}

func (p *parser) postfix() (node, error) {
	n, err := p.primary()
	if err != nil {
		return nil, err
	}
	for links := 0; ; links++ {
		t := p.peek()
		if t.kind != tokOperator || t.text != "." && t.text != "?." && t.text != "[" && t.text != "?[" {
			return n, nil
		}
		if links == 16*maxDepth {
			return nil, p.errorAt(t, "a chain has too many links")
		}
		p.pos++
		optional := t.text[0] == '?'
		if t.text == "[" || t.text == "?[" {
			of := n
			i, err := p.expression()
			if err != nil {
				return nil, err
			}
			if err := p.expect("]", "after an index"); err != nil {
				return nil, err
			}
			n = &index{of, i, optional}
			continue
		}
		name := p.next()
		if name.kind != tokName && name.kind != tokKeyword {
			return nil, p.errorAt(name, "expected the name of a property, found %v", name)
		}
		if !p.accept("(") {
			n = &property{n, name.text, optional}
			continue
		}
		args, err := p.list(")")
		if err != nil {
			return nil, err
		}
		n = &method{n, name.text, args, optional}
	}
}

// list reads expressions up to and with the closing operator.
func (p *parser) list(closing string) (items []node, err error) {
	for !p.accept(closing) {
		if len(items) > 0 {
			if err := p.expect(",", "between the items of a list"); err != nil {
				return nil, err
			}
			if p.accept(closing) { // a comma may follow the last
				break
			}
		}
		item, err := p.expression()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (p *parser) primary() (node, error) {
	t := p.next()
	switch t.kind {
	case tokInt:
		if t.text == "9223372036854775808" {
			return nil, p.errorAt(t, "the integer %s does not fit 64 bits", t.text)
		}
		return &intLit{t.text}, nil
	case tokFloat:
		return &floatLit{t.text}, nil
	case tokString:
		return &strLit{t.text}, nil
	case tokTemplate:
		return p.template(t)
	case tokName:
		if !p.accept("(") {
			return &variable{t.text}, nil
		}
		args, err := p.list(")")
		return &call{t.text, args}, err
	}
	switch {
	case t.is("true"), t.is("false"):
		return &boolLit{t.text == "true"}, nil
	case t.is("this"):
		return &this{}, nil
	case t.is("("):
		if p.accept(")") {
			return &unitLit{}, nil
		}
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		return n, p.expect(")", "after an expression")
	case t.is("["):
		items, err := p.list("]")
		return &arrayLit{items}, err
	case t.is("#{"):
		return p.mapLit()
	case t.is("{"):
		p.pos--
		return p.block()
	case t.is("|"), t.is("||"):
		return p.closure(t)
	case t.is("if"):
		return p.ifNode()
	case t.is("switch"):
		return p.switchNode()
	case t.is("loop"), t.is("while"), t.is("until"), t.is("do"):
		p.pos--
		return p.loop()
	case t.is("for"):
		p.pos--
		return p.forLoop()
	}
	return nil, p.errorAt(t, "expected an expression, found %v", t)
}

func (p *parser) template(t token) (node, error) {
	n := new(template)
	for _, part := range t.parts {
		if part.tokens == nil {
			if part.text != "" {
				n.parts = append(n.parts, &strLit{part.text})
			}
			continue
		}
		outer, pos, inner := p.tokens, p.pos, p.inner
		p.tokens, p.pos, p.inner = part.tokens, 0, true
		b, err := p.statements(tokEnd, "")
		if err != nil {
			return nil, err
		}
		p.tokens, p.pos, p.inner = outer, pos, inner
		n.parts = append(n.parts, b)
	}
	return n, nil
}

func (p *parser) mapLit() (node, error) {
	n := new(mapLit)
	for !p.accept("}") {
		if len(n.keys) > 0 {
			if err := p.expect(",", "between the fields of a map"); err != nil {
				return nil, err
			}
			if p.accept("}") {
				break
			}
		}
		key := p.next()
		if key.kind != tokName && key.kind != tokString && key.kind != tokKeyword {
			return nil, p.errorAt(key, "expected the name of a field, found %v", key)
		}
		if err := p.expect(":", "after the name of a field"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		n.keys = append(n.keys, key.text)
		n.values = append(n.values, value)
	}
	return n, nil
}

func (p *parser) closure(t token) (node, error) {
	n := new(closure)
	var err error
	if t.text == "|" {
		if n.params, err = p.params("|"); err != nil {
			return nil, err
		}
	}
	loops, inner := p.loops, p.inner
	p.loops, p.inner = 0, true
	n.body, err = p.statement()
	if err == nil && n.body.node == nil {
		err = p.errorAt(t, "a function can only be defined at the top of the script")
	}
	p.loops, p.inner = loops, inner
	return n, err
}

func (p *parser) ifNode() (node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	n := new(ifNode)
	var err error
	if n.cond, err = p.expression(); err != nil {
		return nil, err
	}
	if n.then, err = p.block(); err != nil || !p.accept("else") {
		return n, err
	}
	if p.accept("if") {
		n.els, err = p.ifNode()
	} else {
		n.els, err = p.block()
	}
	return n, err
}

func (p *parser) switchNode() (node, error) {
	n := new(switchNode)
	var err error
	if n.subject, err = p.expression(); err != nil {
		return nil, err
	}
	if err := p.expect("{", "before the cases of switch"); err != nil {
		return nil, err
	}
	for !p.accept("}") {
		c, err := p.switchCase()
		if err != nil {
			return nil, err
		}
		n.cases = append(n.cases, c)
		if !p.accept(",") && !selfContained(c.body.node) && !p.peek().is("}") {
			return nil, p.errorAt(p.peek(), "expected a comma between the cases of switch, found %v", p.peek())
		}
	}
	return n, nil
}

func (p *parser) switchCase() (c switchCase, err error) {
	t := p.peek()
	if t.kind == tokName && t.text == "_" {
		p.pos++
	} else {
		for {
			// Alternatives are separated by the operator |, so they bind closer.
			value, err := p.binary(precedence["|"] + 1)
			if err != nil {
				return c, err
			}
			if !constant(value) {
				return c, p.errorAt(t, "a case of switch must be a literal or a range of integers")
			}
			c.values = append(c.values, value)
			if !p.accept("|") {
				break
			}
		}
	}
	if p.accept("if") {
		if c.guard, err = p.expression(); err != nil {
			return c, err
		}
	}
	if err = p.expect("=>", "after a case of switch"); err != nil {
		return c, err
	}
	c.body, err = p.statement()
	if err == nil && c.body.node == nil {
		err = p.errorAt(t, "a function can only be defined at the top of the script")
	}
	return c, err
}

// constant reports whether a node is a literal, or a range of two.
func constant(n node) bool {
	switch n := n.(type) {
	case *unitLit, *boolLit, *intLit, *floatLit, *strLit:
		return true
	case *binary:
		return (n.op == ".." || n.op == "..=") && constant(n.left) && constant(n.right)
	case *unary:
		return n.op == "-" && constant(n.operand)
	case *arrayLit:
		for _, item := range n.items {
			if !constant(item) {
				return false
			}
		}
		return true
	}
	return false
}

package script

// precedence of the operators with two operands; all but ** group to the left.
var precedence = map[string]int{
	"||": 1, "|": 1, "^": 1, "&&": 2, "&": 2, "==": 3, "!=": 3, "in": 4, "<": 5, "<=": 5, ">": 5, ">=": 5,
	"??": 6, "..": 7, "..=": 7, "+": 8, "-": 8, "*": 9, "/": 9, "%": 9, "**": 10, "<<": 11, ">>": 11,
}

func (p *parser) expression() (node, error) { return p.binary(1) }

// binary reads operators that bind at least as closely as a level. Only ** binds to the right.
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
		if t.is("!") && p.second().is("in") {
			op, negated = "in", true
		}
		level := precedence[op]
		if t.kind != tokOperator && t.kind != tokKeyword || level < least {
			return left, nil
		}
		if rounds == maxOperators {
			return nil, p.errorAt(t, "an expression has too many operators")
		}
		p.skip()
		if negated {
			p.skip()
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

// unary reads a sign or a negation and its operand. A minus is part of the integer after it, so that the smallest integer can be
// written.
func (p *parser) unary() (node, error) {
	t := p.peek()
	if t.kind != tokOperator || t.text != "-" && t.text != "+" && t.text != "!" {
		return p.postfix()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.skip()
	if n := p.peek(); n.kind == tokInt && t.text == "-" && !p.second().is(".") {
		p.skip()
		return &intLit{"-" + n.text}, nil
	}
	operand, err := p.unary()
	return &unary{t.text, operand}, err
}

// postfix reads a value and the links behind it: properties, methods and indexes.
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
		if links == maxLinks {
			return nil, p.errorAt(t, "a chain has too many links")
		}
		p.skip()
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

// primary reads a value without links: a literal, a variable, a call, a block, or a control structure, which
// is a value here.
func (p *parser) primary() (node, error) {
	t := p.peek()
	switch {
	case t.is("{"):
		return p.block()
	case t.is("loop"), t.is("while"), t.is("until"), t.is("do"):
		return p.loop()
	case t.is("for"):
		return p.forLoop()
	}
	p.next()
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
	case t.is("|"), t.is("||"):
		return p.closure(t)
	case t.is("if"):
		return p.ifNode()
	case t.is("switch"):
		return p.switchNode()
	}
	return nil, p.errorAt(t, "expected an expression, found %v", t)
}

// template reads what follows a backtick.
func (p *parser) template(start token) (node, error) {
	n := new(template)
	for {
		text, more, ok := p.lexer.templateText()
		if !ok {
			return nil, p.errorAt(start, "unterminated string in backticks")
		}
		if text != "" {
			n.parts = append(n.parts, &strLit{text})
		}
		if !more {
			return n, nil
		}
		open, inner := p.lexer.open, p.inner
		p.lexer.depth, p.lexer.open, p.inner = p.lexer.depth+1, 0, true
		b, err := p.statements(tokEnd, "")
		if err != nil {
			return nil, err
		}
		p.skip() // the brace at the end
		p.lexer.depth, p.lexer.open, p.inner = p.lexer.depth-1, open, inner
		n.parts = append(n.parts, b)
	}
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

// closure reads a function without a name. No loop outside of it can be left from inside.
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

// switchNode reads a switch. A comma separates its cases, unless a case ends with a block.
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

// switchCase reads the literals or ranges of a case, its guard and its body. _ matches any value.
func (p *parser) switchCase() (c switchCase, err error) {
	t := p.peek()
	if t.kind == tokName && t.text == "_" {
		p.skip()
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

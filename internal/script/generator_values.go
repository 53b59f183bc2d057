package script

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

func quote(s string) string {
	b, _ := json.Marshal(s) // escapes the line separators that JavaScript does not want
	return string(b)
}

// place reports whether a node names a value that lives on.
func isPlace(n node) bool {
	switch n.(type) {
	case *variable, *property, *index, *this:
		return true
	}
	return false
}

// copied is expr for a value that is stored or passed on: assigning copies.
func (g *generator) copied(n node) string {
	js := g.expr(n)
	if isPlace(n) {
		return "copy(" + js + ")"
	}
	return js
}

// operands returns the expressions of several nodes that are evaluated in this order.
func (g *generator) operands(copied bool, nodes ...node) []string {
	list := make([]string, len(nodes))
	held := 0 // how many of list are variables by now
	for i, n := range nodes {
		if g.full {
			break
		}
		code := g.capture(func() {
			if copied {
				list[i] = g.copied(n)
			} else {
				list[i] = g.expr(n)
			}
		})
		if code != "" {
			for ; held < i; held++ {
				list[held] = g.temp(list[held])
			}
			g.out.WriteString(code)
		}
	}
	return list
}

// expr returns the JavaScript expression of a node, after writing the statements that it needs.
func (g *generator) expr(n node) string {
	if g.full {
		return "undefined"
	}
	switch n := n.(type) {
	case *unitLit:
		return "undefined"
	case *boolLit:
		return strconv.FormatBool(n.value)
	case *intLit:
		return "(" + n.digits + "n)"
	case *floatLit:
		return "(" + n.text + ")"
	case *strLit:
		return quote(n.value)
	case *template:
		return "text([" + strings.Join(g.operands(false, n.parts...), ", ") + "])"
	case *variable:
		if b, ok := g.lookup(n.name); ok {
			return b.js
		}
		if f, ok := g.functionNamed(n.name, -1); ok {
			return f
		}
		return "unknown(" + quote("variable "+n.name) + ")"
	case *this:
		if g.top {
			return "unknown('variable this')"
		}
		g.self.used = true
		return "self"
	case *arrayLit:
		return "array([" + strings.Join(g.operands(true, n.items...), ", ") + "])"
	case *mapLit:
		values := g.operands(true, n.values...)
		for i, v := range values {
			values[i] = quote(n.keys[i]) + ", " + v
		}
		return "map([" + strings.Join(values, ", ") + "])"
	case *closure:
		body, rebinds := g.closureBody(n.params, n.body.line, n.body.node)
		if rebinds {
			return "rebinding(function " + body + ")"
		}
		return "(function " + body + ")"
	case *unary:
		return map[string]string{"-": "neg", "+": "pos", "!": "not"}[n.op] + "(" + g.expr(n.operand) + ")"
	case *binary:
		return g.binary(n)
	case *call:
		return g.call(n)
	case *property, *index, *method:
		return g.chain(n)
	}
	result := g.temp("undefined")
	g.into(n, result)
	return result
}

// binary returns an expression for an operator. && || ?? evaluate their right side only if they need it, and
// so do its statements.
func (g *generator) binary(n *binary) string {
	switch n.op {
	case "&&", "||":
		left := "bool(" + g.expr(n.left) + ")"
		var right string
		code := g.capture(func() { right = "bool(" + g.expr(n.right) + ")" })
		if code == "" {
			return "(" + left + " " + n.op + " " + right + ")"
		}
		left = g.temp(left)
		negation := ""
		if n.op == "||" {
			negation = "!"
		}
		g.emit("if (%s%s) {\n%s%s = %s;\n}", negation, left, code, left, right)
		return left
	case "??":
		left := g.temp(g.expr(n.left))
		g.emit("if (%s === undefined) {", left)
		g.emit("%s = %s;\n}", left, g.expr(n.right))
		return left
	}
	sides := g.operands(false, n.left, n.right)
	switch n.op {
	case "in":
		return fmt.Sprintf("contains(%s, %s)", sides[1], sides[0])
	case "..", "..=":
		return fmt.Sprintf("range(%s, %s, %t)", sides[0], sides[1], n.op == "..=")
	}
	return fmt.Sprintf("%s(%s, %s)", operations[n.op], sides[0], sides[1])
}

// call returns a call of a function of the script, of a variable that holds a function, or of one of the runtime.
func (g *generator) call(n *call) string {
	if f, ok := g.functionNamed(n.name, len(n.args)); ok {
		return f + "(" + strings.Join(g.operands(true, n.args...), ", ") + ")"
	}
	if b, ok := g.lookup(n.name); ok {
		return "invoke(" + b.js + ", [" + strings.Join(g.operands(true, n.args...), ", ") + "])"
	}
	if len(n.args) == 1 {
		if name, ok := n.args[0].(*strLit); ok {
			switch n.name {
			case "Fn":
				if f, ok := g.functionNamed(name.value, -1); ok {
					return f
				}
				return "unknown(" + quote("function "+name.value) + ")"
			case "is_def_var":
				_, ok := g.lookup(name.value)
				return strconv.FormatBool(ok)
			}
		}
	}
	if n.name == "is_def_fn" && len(n.args) == 2 {
		name, named := n.args[0].(*strLit)
		params, counted := n.args[1].(*intLit)
		if named && counted {
			count, err := strconv.Atoi(params.digits)
			_, ok := g.functionNamed(name.value, count)
			return strconv.FormatBool(ok && err == nil && count >= 0)
		}
	}
	if len(n.args) > 0 && changers[n.name] {
		return g.expr(&method{of: n.args[0], name: n.name, args: n.args[1:]})
	}
	return "fn(" + quote(n.name) + ", [" + strings.Join(g.operands(true, n.args...), ", ") + "])"
}

// chain writes a chain of links with optional ones among them as nested ifs.
func (g *generator) chain(n node) string {
	if !hasOptional(n) {
		return g.link(n, nil)
	}
	result := g.temp("undefined")
	open := 0
	g.emit("%s = %s;", result, g.link(n, &open))
	g.emit("%s", strings.Repeat("}", open))
	return result
}

// hasOptional reports whether a chain has an optional link, so that the whole chain may be ().
func hasOptional(n node) bool {
	for {
		optional := false
		switch link := n.(type) {
		case *property:
			optional, n = link.optional, link.of
		case *index:
			optional, n = link.optional, link.of
		case *method:
			optional, n = link.optional, link.of
		default:
			return false
		}
		if optional {
			return true
		}
	}
}

// link writes the outermost link of a chain. open counts the ifs that optional links opened.
func (g *generator) link(n node, open *int) string {
	of := func(inner node, optional bool) string {
		js := g.link(inner, open)
		if optional {
			js = g.temp(js)
			g.emit("if (%s !== undefined) {", js)
			*open++
		}
		return js
	}
	switch n := n.(type) {
	case *property:
		return fmt.Sprintf("get(%s, %s)", of(n.of, n.optional), quote(n.name))
	case *index:
		js := of(n.of, n.optional)
		var at string
		code := g.capture(func() { at = g.expr(n.at) })
		if code != "" {
			js = g.temp(js)
			g.out.WriteString(code)
		}
		return fmt.Sprintf("getAt(%s, %s)", js, at)
	case *method:
		return g.method(n, of)
	}
	return g.expr(n)
}

// method returns a call of a method. A function of the script with that name takes precedence over the methods of the runtime.
func (g *generator) method(n *method, of func(node, bool) string) string {
	if changers[n.name] {
		if name, ok := g.constantRoot(n.of); ok {
			return "constant(" + quote(name) + ")"
		}
	}
	if n.name == "call" || n.name == "curry" {
		of := g.temp(g.expr(n.of))
		args := strings.Join(g.operands(true, n.args...), ", ")
		return fmt.Sprintf("%s(%s, [%s])", map[string]string{"call": "invoke", "curry": "curry"}[n.name], of, args)
	}
	if f, ok := g.functionNamed(n.name, len(n.args)); ok {
		if isPlace(n.of) && !n.optional && !hasOptional(n.of) {
			return g.scriptMethod(n, f)
		}
		js := of(n.of, n.optional)
		args := []string{js}
		code := g.capture(func() { args = append(args, g.operands(true, n.args...)...) })
		if code != "" {
			args[0] = g.temp(js)
			g.out.WriteString(code)
		}
		return fmt.Sprintf("%s.call(%s)", f, strings.Join(args, ", "))
	}
	if !stringChangers[n.name] || !isPlace(n.of) || n.optional || hasOptional(n.of) {
		js := of(n.of, n.optional)
		var args []string
		code := g.capture(func() { args = g.operands(true, n.args...) })
		if code != "" {
			js = g.temp(js)
			g.out.WriteString(code)
		}
		return fmt.Sprintf("call(%s, %s, [%s])", js, quote(n.name), strings.Join(args, ", "))
	}
	r := g.ref(n.of)
	value := g.temp(r.read)
	result := g.temp(fmt.Sprintf("call(%s, %s, [%s])", value, quote(n.name), strings.Join(g.operands(true, n.args...), ", ")))
	g.emit("if (typeof %s === 'string') {\n%s = changed(%s);\n%s;\n}", value, value, value, r.write(value))
	return result
}

// scriptMethod writes a call of a script function as a method of a place. A function that assigns to this changes the place.
func (g *generator) scriptMethod(n *method, f string) string {
	write := func(r ref) string { return r.write("rebound()") }
	var r ref
	if name, ok := g.constantRoot(n.of); ok {
		r = ref{read: g.expr(n.of)}
		write = func(ref) string { return "constant(" + quote(name) + ")" }
	} else {
		r = g.ref(n.of)
	}
	value := g.temp(r.read)
	args := append([]string{value}, g.operands(true, n.args...)...)
	result := g.temp(fmt.Sprintf("%s.call(%s)", f, strings.Join(args, ", ")))
	g.emit("if (%s.rebinds && rebound() !== %s) {\n%s;\n}", f, value, write(r))
	return result
}

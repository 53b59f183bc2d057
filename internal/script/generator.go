package script

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// operationsJS is the JavaScript of the operations: an expression, a function that makes the
// runtime object from its host.
//
//go:embed runtime.js
var operationsJS string

// maxTranslation is the maximum size in bytes of the JavaScript of a script, which takes a second to compile. A script of maxSource
// bytes is far below it, unless it nests constructs that have to be split.
const maxTranslation = 1 << 20

// translate compiles a script to JavaScript: an expression, a function that gets the runtime
// object and returns the function (doc, context) → doc. An error is a *SyntaxError.
func translate(source string) (string, error) {
	body, functions, err := parse(source)
	if err != nil {
		return "", err
	}
	g := &generator{functions: functions}
	var b strings.Builder
	fmt.Fprintf(&b, "(function (runtime) { \"use strict\";\nconst {%s} = runtime;\n", strings.Join(runtimeNames, ", "))
	for _, f := range functions {
		body, rebinds := g.functionBody(f.params, f.line, f.body)
		fmt.Fprintf(&b, "function %s%s\n", functionName(f), body)
		if rebinds {
			fmt.Fprintf(&b, "rebinding(%s);\n", functionName(f))
		}
	}
	g.top = true
	g.scopes = []map[string]binding{{}}
	doc := g.declare("doc", false)
	context := g.declare("context", true)
	code := g.capture(func() { g.block(body, "") })
	if g.full {
		return "", &SyntaxError{1, 1, "the script is too long, or nests its expressions too much"}
	}
	fmt.Fprintf(&b, "return function (%s, %s) {\ntop: {\n%s}\nreturn %s;\n};\n})", doc, context, code, doc)
	return b.String(), nil
}

// runtimeNames are the members of the runtime object that generated code names.
var runtimeNames = slices.Concat([]string{
	"t", "bool", "copy", "text", "array", "map", "range", "get", "put", "getAt", "putAt", "call", "changed",
	"rebinding", "rebound", "invoke", "curry", "fn", "unknown", "constant", "raise", "caught", "iterate", "END", "matches", "contains", "addTo", "neg", "pos", "not",
}, slices.Sorted(maps.Values(operations)))

// operations are the runtime's names of the operators.
var operations = map[string]string{
	"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem", "**": "pow", "<<": "shl", ">>": "shr", "&": "and", "|": "or", "^": "xor",
	"==": "same", "!=": "differ", "<": "less", "<=": "lessEqual", ">": "more", ">=": "moreEqual",
}

// stringChangers are the methods that change a string. A JavaScript string is immutable, so the new one is written back to its place.
var stringChangers = set("append", "clear", "crop", "make_lower", "make_upper", "pad", "pop", "push", "remove", "replace", "set", "trim", "truncate")

// changers are all methods that change what they are called on: not for constants.
var changers = set("append", "chop", "clear", "crop", "dedup", "drain", "fill_with", "insert", "make_lower", "make_upper", "mixin", "pad", "pop",
	"push", "remove", "replace", "retain", "reverse", "set", "shift", "sort", "sort_desc", "splice", "trim", "truncate")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

type binding struct {
	js       string
	constant bool
}

// A generator writes JavaScript statements. Some expressions of the language are only statements in JavaScript (if, switch, loops,
// blocks). It writes these before the current statement and uses a variable for the value.
type generator struct {
	out       strings.Builder
	scopes    []map[string]binding // of the current function, innermost last
	functions []*function
	loops     []loopLabels
	names     int
	written   int  // bytes, including statements written only to be moved
	full      bool // it would be too long: nothing more is written
	top       bool // outside of functions and closures
	self      self // of the current function or closure
}

// self is what a function does with this.
type self struct{ used, assigned bool }

type loopLabels struct {
	end, again string // labels that break and continue leave
	value      string // variable for the value of break, or ""
}

func (g *generator) emit(format string, args ...any) {
	if g.full {
		return
	}
	n, _ := fmt.Fprintf(&g.out, format, args...)
	g.out.WriteByte('\n')
	g.written += n + 1
	g.full = g.written > maxTranslation
}

// capture returns what f emits.
func (g *generator) capture(f func()) string {
	outer := g.out
	g.out = strings.Builder{}
	f()
	text := g.out.String()
	g.out = outer
	return text
}

func (g *generator) fresh(prefix string) string {
	g.names++
	return prefix + "$" + strconv.Itoa(g.names)
}

// temp holds the value of a JavaScript expression.
func (g *generator) temp(js string) string {
	name := g.fresh("")
	g.emit("let %s = %s;", name, js)
	return name
}

func (g *generator) declare(name string, constant bool) string {
	js := g.fresh(name)
	g.scopes[len(g.scopes)-1][name] = binding{js, constant}
	return js
}

func (g *generator) lookup(name string) (binding, bool) {
	for i := len(g.scopes) - 1; i >= 0; i-- {
		if b, ok := g.scopes[i][name]; ok {
			return b, true
		}
	}
	return binding{}, false
}

func (g *generator) scoped(f func()) {
	g.scopes = append(g.scopes, map[string]binding{})
	f()
	g.scopes = g.scopes[:len(g.scopes)-1]
}

func functionName(f *function) string { return fmt.Sprintf("%s$f%d", f.name, len(f.params)) }

// functionNamed finds a function; args is −1 for any number of parameters.
func (g *generator) functionNamed(name string, args int) (string, bool) {
	for _, f := range g.functions {
		if f.name == name && (args < 0 || args == len(f.params)) {
			return functionName(f), true
		}
	}
	return "", false
}

// functionBody makes the parameters and body of a function, without a view of the variables around it.
func (g *generator) functionBody(params []string, line int, body node) (code string, rebinds bool) {
	scopes := g.scopes
	g.scopes = nil
	defer func() { g.scopes = scopes }()
	return g.closureBody(params, line, body)
}

// closureBody writes parameters and body of a function. No jump leads from it into the loops around it. A function rebinds if it
// may assign to this: callers then write what it was given back to its place, as they do for strings.
func (g *generator) closureBody(params []string, line int, body node) (code string, rebinds bool) {
	loops, top, outer := g.loops, g.top, g.self
	g.loops, g.top, g.self = nil, false, self{}
	var names []string
	code = g.capture(func() {
		g.scoped(func() {
			for _, p := range params {
				names = append(names, g.declare(p, false))
			}
			g.emit("t(%d);", line)
			result := g.temp("undefined")
			g.into(body, result)
			g.emit("return %s;", result)
		})
	})
	own := g.self
	g.loops, g.top, g.self = loops, top, outer
	if own.assigned {
		code = "try {\n" + code + "} finally { rebound(self); }\n"
	}
	if own.used {
		code = "let self = this;\n" + code
	}
	return fmt.Sprintf("(%s) {\n%s}", strings.Join(names, ", "), code), own.assigned
}

// block writes the statements of a block; dst is the variable for its value, or "".
func (g *generator) block(b *block, dst string) {
	g.scoped(func() {
		for i, s := range b.list {
			g.emit("t(%d);", s.line)
			if i == len(b.list)-1 && b.value {
				g.into(s.node, dst)
			} else {
				g.into(s.node, "")
			}
		}
	})
}

// into writes a node as a statement, and assigns its value to the variable dst unless that is "".
func (g *generator) into(n node, dst string) {
	if g.full {
		return
	}
	switch n := n.(type) {
	case *block:
		g.emit("{")
		g.block(n, dst)
		g.emit("}")
	case *ifNode:
		g.emit("if (bool(%s)) {", g.expr(n.cond))
		g.block(n.then, dst)
		if n.els != nil {
			g.emit("} else {")
			g.into(n.els, dst)
		}
		g.emit("}")
	case *switchNode:
		g.switchNode(n, dst)
	case *loop:
		g.loop(n, dst)
	case *forNode:
		g.forNode(n, dst)
	case *let:
		value := "undefined"
		if n.value != nil {
			value = g.copied(n.value)
		}
		g.emit("let %s = %s;", g.declare(n.name, n.constant), value)
	case *assign:
		g.assign(n)
	case *jump:
		g.jump(n)
	case *tryNode:
		g.emit("try {")
		g.block(n.body, dst)
		e := g.fresh("e")
		g.emit("} catch (%s) {", e)
		g.scoped(func() {
			value := g.temp("caught(" + e + ")")
			if n.name != "" {
				g.emit("let %s = %s;", g.declare(n.name, false), value)
			}
			g.block(n.catch, dst)
		})
		g.emit("}")
	default:
		js := g.expr(n)
		if dst != "" {
			js = dst + " = " + js
		}
		g.emit("%s;", js)
	}
}

// jump writes break, continue, return or throw. At the top of the script, a return ends the block that is
// labelled top.
func (g *generator) jump(n *jump) {
	value := "undefined"
	if n.value != nil {
		value = g.copied(n.value)
	}
	switch n.kind {
	case "throw":
		g.emit("raise(%s);", value)
	case "return":
		if !g.top {
			g.emit("return %s;", value)
			return
		}
		g.emit("%s;", value)
		g.emit("break top;")
	default:
		l := g.loops[len(g.loops)-1]
		if n.kind == "continue" {
			g.emit("break %s;", l.again)
			return
		}
		if l.value != "" {
			g.emit("%s = %s;", l.value, value)
		} else {
			g.emit("%s;", value)
		}
		g.emit("break %s;", l.end)
	}
}

// loopBody writes the body of a loop, so that break and continue find their labels.
func (g *generator) loopBody(b *block, l loopLabels) {
	g.loops = append(g.loops, l)
	g.emit("%s: {", l.again)
	g.block(b, "")
	g.emit("}")
	g.loops = g.loops[:len(g.loops)-1]
}

// loop writes loop, while or do as an endless loop with a label to leave it. The variable dst takes the value
// of a break.
func (g *generator) loop(n *loop, dst string) {
	l := loopLabels{g.fresh("end"), g.fresh("again"), dst}
	test := func() {
		if n.cond == nil {
			return
		}
		negation := "!"
		if n.until {
			negation = ""
		}
		g.emit("if (%sbool(%s)) break;", negation, g.expr(n.cond))
	}
	g.emit("%s: for (;;) {\nt(%d);", l.end, n.line)
	if !n.after {
		test()
	}
	g.loopBody(n.body, l)
	if n.after {
		test()
	}
	g.emit("}")
}

// forNode writes a loop over the iterator that the runtime makes of a value: a function that returns the next item, or END.
func (g *generator) forNode(n *forNode, dst string) {
	l := loopLabels{g.fresh("end"), g.fresh("again"), dst}
	next := g.temp("iterate(" + g.expr(n.in) + ")")
	count := g.temp("-1n")
	g.emit("%s: for (;;) {\nt(%d);", l.end, n.line)
	g.scoped(func() {
		item := g.declare(n.item, false)
		g.emit("let %s = %s();\nif (%s === END) break;\n%s++;", item, next, item, count)
		if n.counter != "" {
			g.emit("let %s = %s;", g.declare(n.counter, false), count)
		}
		g.loopBody(n.body, l)
	})
	g.emit("}")
}

// switchNode writes the cases as conditions one after the other, in a block that the case that holds leaves.
func (g *generator) switchNode(n *switchNode, dst string) {
	subject := g.temp(g.expr(n.subject))
	end := g.fresh("end")
	g.emit("%s: {", end)
	for _, c := range n.cases {
		tests := []string{"true"}
		if c.values != nil {
			tests = tests[:0]
			for _, v := range c.values {
				tests = append(tests, fmt.Sprintf("matches(%s, %s)", g.expr(v), subject))
			}
		}
		g.emit("if (%s) {", strings.Join(tests, " || "))
		if c.guard != nil {
			g.emit("if (bool(%s)) {", g.expr(c.guard))
		}
		g.scoped(func() {
			g.emit("t(%d);", c.body.line)
			g.into(c.body.node, dst)
		})
		g.emit("break %s;\n}", end)
		if c.guard != nil {
			g.emit("}")
		}
	}
	g.emit("}")
}

// A ref is a place that can be read and written, its parts evaluated once.
type ref struct {
	read  string
	write func(value string) string
}

// ref returns how to read and write a place. The expressions in its path are evaluated once. Strings are immutable: a changed string
// is written back to its place.
func (g *generator) ref(n node) ref {
	switch n := n.(type) {
	case *variable:
		js := g.expr(n)
		if _, ok := g.lookup(n.name); !ok {
			return ref{js, func(string) string { return "unknown(" + quote("variable "+n.name) + ")" }}
		}
		return ref{js, func(value string) string { return js + " = " + value }}
	case *this:
		js := g.expr(n)
		if g.top {
			return ref{js, func(string) string { return js }}
		}
		g.self.assigned = true
		return ref{js, func(value string) string { return js + " = " + value }}
	case *property:
		of, name := g.temp(g.expr(n.of)), quote(n.name)
		return ref{fmt.Sprintf("get(%s, %s)", of, name), func(value string) string {
			return fmt.Sprintf("put(%s, %s, %s)", of, name, value)
		}}
	case *index:
		parent := g.ref(n.of)
		of := g.temp(parent.read)
		at := g.temp(g.expr(n.at))
		return ref{fmt.Sprintf("getAt(%s, %s)", of, at), func(value string) string {
			put := fmt.Sprintf("putAt(%s, %s, %s)", of, at, value)
			return fmt.Sprintf("if (typeof %s === 'string') { %s } else { %s }", of, parent.write(put), put)
		}}
	}
	js := g.temp(g.expr(n))
	return ref{js, func(value string) string { return value }}
}

// root returns the variable at the start of a chain of properties and elements, or nil.
func root(n node) *variable {
	for {
		switch link := n.(type) {
		case *variable:
			return link
		case *property:
			n = link.of
		case *index:
			n = link.of
		default:
			return nil
		}
	}
}

// constantRoot reports whether a chain starts at a constant.
func (g *generator) constantRoot(n node) (name string, ok bool) {
	v := root(n)
	if v == nil {
		return "", false
	}
	b, _ := g.lookup(v.name)
	return v.name, b.constant
}

// assign writes an assignment. The value is evaluated before the place.
func (g *generator) assign(n *assign) {
	if name, ok := g.constantRoot(n.target); ok {
		g.emit("constant(%s);", quote(name))
		return
	}
	if n.op == "??" {
		r := g.ref(n.target)
		g.emit("if (%s === undefined) {", r.read)
		g.emit("%s;\n}", r.write(g.copied(n.value)))
		return
	}
	value := g.copied(n.value)
	if _, simple := n.target.(*variable); !simple {
		value = g.temp(value)
	}
	r := g.ref(n.target)
	switch n.op {
	case "":
	case "+":
		value = fmt.Sprintf("addTo(%s, %s)", r.read, value)
	default:
		value = fmt.Sprintf("%s(%s, %s)", operations[n.op], r.read, value)
	}
	g.emit("%s;", r.write(value))
}

package template

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

var errNesting = fmt.Errorf("it is nested too deeply: %d levels are allowed", maxNesting)

// parser turns pieces into nodes.
type parser struct {
	*meter
	pieces []piece
	at     int
	depth  int
	fields bool // a variable is called fields
}

// tagNames returns the names of tags that start something, except comment and raw.
func tagNames() []string { return slices.Sorted(maps.Keys(tags)) }

// tag is a tag that ends a block or a part of it.
type tag struct {
	name string
	args phrase
}

func (p *parser) template() ([]node, error) {
	body, _, err := p.block()
	if err != nil {
		line := 1
		if p.at > 0 {
			line = p.pieces[p.at-1].line
		}
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	return body, nil
}

// block reads nodes until one of the tags in ends, or without ends until the template does.
func (p *parser) block(ends ...string) ([]node, tag, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, tag{}, errNesting
	}
	defer func() { p.depth-- }()
	var nodes []node
	for p.at < len(p.pieces) {
		if p.make(nodeBytes) != nil {
			return nil, tag{}, p.err
		}
		piece := p.pieces[p.at]
		p.at++
		switch piece.kind {
		case pieceText:
			nodes = append(nodes, textNode(piece.text))
			continue
		case pieceBroken:
			return nil, tag{}, fmt.Errorf("`%s` is not closed", piece.text)
		}
		in := p.phrase(piece.text)
		if piece.kind == pieceOutput {
			v, err := in.pipeline()
			if err == nil {
				err = in.end()
			}
			if err != nil {
				return nil, tag{}, err
			}
			nodes = append(nodes, output{piece.line, v})
			continue
		}
		name, err := in.name()
		if err != nil {
			return nil, tag{}, err
		}
		for _, end := range ends {
			if name == end {
				return nodes, tag{name, in}, nil
			}
		}
		read, ok := tags[name]
		if !ok {
			return nil, tag{}, fmt.Errorf("the tag `%s` is unknown or misplaced; the tags are %s", name, strings.Join(tagNames(), ", "))
		}
		n, err := read(p, &in, piece.line)
		if err != nil {
			return nil, tag{}, err
		}
		nodes = append(nodes, n)
	}
	if len(ends) > 0 {
		return nil, tag{}, fmt.Errorf("the tag `%s` is missing at the end", ends[len(ends)-1])
	}
	return nodes, tag{}, nil
}

type tagReader func(p *parser, in *phrase, line int) (node, error)

// tags are all tags except raw and comment, which are removed before.
var tags map[string]tagReader

func init() { // the readers refer to tags
	tags = map[string]tagReader{
		"assign": readAssign, "capture": readCapture, "case": readCase, "cycle": readCycle,
		"for": readFor, "tablerow": readTableRow, "if": readIf, "unless": readUnless, "ifchanged": readIfChanged,
		"increment": readCounter(1), "decrement": readCounter(-1),
		"break": readJump(errBreak), "continue": readJump(errContinue),
		"include": readPartial("include"), "render": readPartial("render"),
	}
}

type assign struct {
	line  int
	name  string
	value expression
}

func readAssign(_ *parser, in *phrase, line int) (node, error) {
	name, err := in.name()
	if err != nil {
		return nil, err
	}
	if !in.sign("=") {
		return nil, errors.New("missing `=` in assign")
	}
	v, err := in.pipeline()
	if err == nil {
		err = in.end()
	}
	return assign{line, name, v}, err
}

func (n assign) render(r *renderer) error {
	r.line = n.line
	v, err := n.value.eval(r)
	r.assigned.set(n.name, r.settled(v))
	return err
}

// settled returns v as it is at this moment.
func (r *renderer) settled(v value) value {
	if v.kind != kindObject || !v.object.live {
		return v
	}
	o := r.makeObject(len(v.object.members))
	if r.err != nil {
		return value{}
	}
	for _, m := range v.object.members {
		o.members = append(o.members, member{m.name, r.settled(m.value)})
	}
	return value{kind: kindObject, object: o}
}

type capture struct {
	name string
	body []node
}

func readCapture(p *parser, in *phrase, _ int) (node, error) {
	name, err := in.name()
	if err == nil {
		err = in.end()
	}
	if err != nil {
		return nil, err
	}
	body, _, err := p.block("endcapture")
	return capture{name, body}, err
}

func (n capture) render(r *renderer) error {
	s, err := r.capture(n.body)
	r.assigned.set(n.name, text(s))
	return err
}

// choice is if, unless and case: the first branch whose condition holds.
type choice struct {
	branches  []branch
	otherwise []node
}

type branch struct {
	line int
	when condition
	body []node
}

// render renders the first branch whose condition holds.
func (n choice) render(r *renderer) error {
	for _, b := range n.branches {
		r.line = b.line
		if err := r.work(1); err != nil {
			return err
		}
		holds, err := b.when.holds(r)
		if err != nil {
			return err
		}
		if holds {
			return r.block(b.body)
		}
	}
	return r.block(n.otherwise)
}

type not struct{ condition }

func (n not) holds(r *renderer) (bool, error) {
	holds, err := n.condition.holds(r)
	return !holds, err
}

func readIf(p *parser, in *phrase, line int) (node, error) {
	when, err := in.only()
	if err != nil {
		return nil, err
	}
	return p.branches(when, line, "elsif", "else", "endif")
}

func readUnless(p *parser, in *phrase, line int) (node, error) {
	when, err := in.only()
	if err != nil {
		return nil, err
	}
	return p.branches(not{when}, line, "elsif", "else", "endunless")
}

func (p *phrase) only() (condition, error) {
	c, err := p.condition()
	if err == nil {
		err = p.end()
	}
	return c, err
}

// branches reads the branches of if or unless, up to the last of ends.
func (p *parser) branches(when condition, line int, ends ...string) (node, error) {
	var n choice
	for {
		body, end, err := p.block(ends...)
		if err != nil {
			return nil, err
		}
		n.branches = append(n.branches, branch{line, when, body})
		line = p.pieces[p.at-1].line
		switch end.name {
		case "elsif":
			if when, err = end.args.only(); err != nil {
				return nil, err
			}
			continue
		case "else":
			if err := end.args.end(); err != nil {
				return nil, err
			}
			n.otherwise, end, err = p.block(ends[len(ends)-1])
			if err != nil {
				return nil, err
			}
		}
		return n, end.args.end()
	}
}

// among holds if the value of a case is one of the values of a when.
type among struct {
	value   expression
	choices []expression
}

// holds reports whether the value equals one of the choices.
func (c among) holds(r *renderer) (bool, error) {
	v, err := c.value.eval(r)
	if err != nil {
		return false, err
	}
	for _, choice := range c.choices {
		w, err := choice.eval(r)
		if err != nil {
			return false, err
		}
		if err := r.work(1 + weight(v, w)); err != nil {
			return false, err
		}
		if r.equal(v, w) {
			return true, nil
		}
	}
	return false, r.err
}

// readCase reads case as a choice among branches. Only white space is allowed before the first when.
func readCase(p *parser, in *phrase, _ int) (node, error) {
	v, err := in.value()
	if err == nil {
		err = in.end()
	}
	if err != nil {
		return nil, err
	}
	before, end, err := p.block("when", "else", "endcase")
	if err != nil {
		return nil, err
	}
	for _, n := range before {
		if t, ok := n.(textNode); !ok || !isBlankText(string(t)) {
			return nil, errors.New("only white space is allowed between case and when")
		}
	}
	var n choice
	for end.name == "when" {
		line := p.pieces[p.at-1].line
		var choices []expression
		for {
			w, err := end.args.value()
			if err != nil {
				return nil, err
			}
			choices = append(choices, w)
			if !end.args.sign(",") && !end.args.word("or") {
				break
			}
		}
		if err := end.args.end(); err != nil {
			return nil, err
		}
		b := branch{line: line, when: among{v, choices}}
		if b.body, end, err = p.block("when", "else", "endcase"); err != nil {
			return nil, err
		}
		n.branches = append(n.branches, b)
	}
	if end.name == "else" {
		if err := end.args.end(); err != nil {
			return nil, err
		}
		if n.otherwise, end, err = p.block("endcase"); err != nil {
			return nil, err
		}
	}
	return n, end.args.end()
}

type cycle struct {
	line   int
	group  string
	values []expression
}

// readCycle reads cycle. Cycles of one group share a position. The group of a cycle without a name is its text.
func readCycle(_ *parser, in *phrase, line int) (node, error) {
	n := cycle{line: line}
	var words []byte
	for in := *in; in.peek().kind != tokenEnd && in.err == nil; {
		words = append(append(words, in.next().text...), ' ')
	}
	n.group = string(words)
	for {
		v, err := in.value()
		if err != nil {
			return nil, err
		}
		if len(n.values) == 0 && in.sign(":") {
			switch v := v.(type) {
			case literal:
				n.group = (&meter{left: workLimit}).text(v.value)
			case path:
				n.group = v.String()
			}
			continue
		}
		n.values = append(n.values, v)
		if !in.sign(",") {
			return n, in.end()
		}
	}
}

func (n cycle) render(r *renderer) error {
	r.line = n.line
	if r.cycles == nil {
		r.cycles = map[string]int{}
	}
	i := r.cycles[n.group]
	r.cycles[n.group] = i + 1
	v, err := n.values[i%len(n.values)].eval(r)
	if err != nil {
		return err
	}
	return r.print(v)
}

type ifChanged struct{ body []node }

func readIfChanged(p *parser, in *phrase, _ int) (node, error) {
	if err := in.end(); err != nil {
		return nil, err
	}
	body, _, err := p.block("endifchanged")
	return &ifChanged{body}, err
}

// render writes the block if its text differs from the previous round.
func (n *ifChanged) render(r *renderer) error {
	s, err := r.capture(n.body)
	if err != nil {
		return err
	}
	if last, ok := r.changed[n]; ok && last == s {
		return nil
	}
	if r.changed == nil {
		r.changed = map[*ifChanged]string{}
	}
	r.changed[n] = s
	return r.write(s)
}

type counter struct {
	name string
	step int64
}

func readCounter(step int64) tagReader {
	return func(_ *parser, in *phrase, _ int) (node, error) {
		name, err := in.name()
		if err == nil {
			err = in.end()
		}
		return counter{name, step}, err
	}
}

// render prints the counter and then adds one, or takes one off and then prints.
func (n counter) render(r *renderer) error {
	v, _ := r.counters.get(r.meter, n.name)
	next := integer(v.int + n.step)
	r.counters.set(n.name, next)
	if n.step < 0 {
		return r.print(next)
	}
	return r.print(integer(v.int))
}

type jump struct{ how error }

func readJump(how error) tagReader {
	return func(_ *parser, in *phrase, _ int) (node, error) { return jump{how}, in.end() }
}

func (n jump) render(*renderer) error { return n.how }

// partial is a tag that names another template, which does not exist.
type partial struct {
	line int
	tag  string
}

func readPartial(name string) tagReader {
	return func(_ *parser, in *phrase, line int) (node, error) {
		_, err := in.value()
		return partial{line, name}, err
	}
}

func (n partial) render(r *renderer) error {
	r.line = n.line
	return r.fail("the tag `%s` is not supported: there are no other templates", n.tag)
}

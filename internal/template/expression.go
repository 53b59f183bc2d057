package template

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// token is a word or sign of an expression.
type token struct {
	kind tokenKind
	text string // of texts without their quotes
}

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenText
	tokenInt
	tokenFloat
	tokenSign
	tokenBroken // err of the phrase says why
)

var signs = []string{"..", "==", "!=", "<>", "<=", ">=", "<", ">", "|", ":", ",", ".", "[", "]", "(", ")", "="}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// scan returns the first token of the inside of an output or tag, and the rest.
func scan(s string) (t token, rest string, err error) {
	s = strings.TrimLeft(s, " \t\n\r")
	if s == "" {
		return token{}, "", nil
	}
	i, c := 0, s[0]
	switch {
	case letter(c):
		for i < len(s) && (letter(s[i]) || digit(s[i]) || s[i] == '-') {
			i++
		}
		return token{tokenName, s[:i]}, s[i:], nil
	case digit(c) || c == '-' && len(s) > 1 && digit(s[1]):
		i++
		kind := tokenInt
		for i < len(s) && digit(s[i]) {
			i++
		}
		if i+1 < len(s) && s[i] == '.' && digit(s[i+1]) {
			kind = tokenFloat
			for i++; i < len(s) && digit(s[i]); {
				i++
			}
		}
		return token{kind, s[:i]}, s[i:], nil
	case c == '"' || c == '\'':
		n := strings.IndexByte(s[1:], c)
		if n < 0 {
			return token{}, "", fmt.Errorf("the text that opens with %s is not closed", excerpt(s))
		}
		return token{tokenText, s[1 : 1+n]}, s[n+2:], nil
	}
	for _, sign := range signs {
		if strings.HasPrefix(s, sign) {
			return token{tokenSign, sign}, s[len(sign):], nil
		}
	}
	return token{}, "", fmt.Errorf("unexpected %s", excerpt(s))
}

// excerpt quotes the start of s for an error.
func excerpt(s string) string {
	const limit = 30
	if len(s) > limit {
		s = cut(s, limit) + "…"
	}
	return "`" + s + "`"
}

// phrase is the inside of an output or tag, being read.
type phrase struct {
	first token  // that is not read yet
	rest  string // behind it
	err   error  // why there is nothing behind it
	p     *parser
}

// phrase starts parsing the inside of an output or tag.
func (p *parser) phrase(inside string) phrase {
	in := phrase{rest: inside, p: p}
	in.next()
	return in
}

func (p *phrase) peek() token { return p.first }

// next takes a token.
func (p *phrase) next() token {
	t := p.first
	p.first = token{}
	if p.err == nil {
		if p.p.make(tokenBytes) != nil {
			p.err = p.p.err
		} else if p.first, p.rest, p.err = scan(p.rest); p.err != nil {
			p.first = token{kind: tokenBroken}
		}
	}
	return t
}

// sign takes a sign if it is the next token.
func (p *phrase) sign(s string) bool {
	if t := p.peek(); t.kind == tokenSign && t.text == s {
		p.next()
		return true
	}
	return false
}

// word takes a name if it is the next token.
func (p *phrase) word(s string) bool {
	if t := p.peek(); t.kind == tokenName && t.text == s {
		p.next()
		return true
	}
	return false
}

func (p *phrase) name() (string, error) {
	switch t := p.next(); t.kind {
	case tokenName:
		return t.text, nil
	case tokenEnd:
		return "", cmp.Or(p.err, fmt.Errorf("a name is missing"))
	case tokenBroken:
		return "", p.err
	default:
		return "", fmt.Errorf("expected a name, found %s", excerpt(t.text))
	}
}

func (p *phrase) end() error {
	switch t := p.peek(); t.kind {
	case tokenEnd:
		return p.err
	case tokenBroken:
		return p.err
	default:
		return fmt.Errorf("unexpected %s", excerpt(t.text))
	}
}

// expression is what has a value.
type expression interface {
	// eval returns a value that is known.
	eval(r *renderer) (value, error)
}

type literal struct{ value value }

func (l literal) eval(*renderer) (value, error) { return l.value, nil }

// path is a variable and where to look in it.
type path struct {
	name string
	keys []expression
}

// maxNesting is the maximum nesting depth of expressions and blocks.
const maxNesting = 100

// value reads a literal, or the path of a variable.
func (p *phrase) value() (expression, error) {
	t := p.next()
	switch t.kind {
	case tokenText:
		return literal{text(t.text)}, nil
	case tokenInt:
		i, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is too long", excerpt(t.text))
		}
		return literal{integer(i)}, nil
	case tokenFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is too large", excerpt(t.text))
		}
		return literal{float(f)}, nil
	case tokenName:
		switch t.text {
		case "nil", "null":
			return literal{}, nil
		case "true", "false":
			return literal{boolean(t.text == "true")}, nil
		case "empty":
			return literal{value{kind: kindEmpty}}, nil
		case "blank":
			return literal{value{kind: kindBlank}}, nil
		}
		return p.path(t.text)
	case tokenEnd:
		return nil, cmp.Or(p.err, fmt.Errorf("a value is missing"))
	case tokenBroken:
		return nil, p.err
	}
	return nil, fmt.Errorf("expected a value, found %s", excerpt(t.text))
}

// path reads the keys behind the name of a variable. A template that names fields reads that variable.
func (p *phrase) path(name string) (expression, error) {
	v := path{name: name}
	if name == "fields" {
		p.p.fields = true
	}
	for {
		switch {
		case p.sign("."):
			key, err := p.name()
			if err != nil {
				return nil, err
			}
			v.keys = append(v.keys, literal{text(key)})
		case p.sign("["):
			if p.p.depth++; p.p.depth > maxNesting {
				return nil, errNesting
			}
			key, err := p.value()
			if err != nil {
				return nil, err
			}
			p.p.depth--
			if !p.sign("]") {
				return nil, fmt.Errorf("missing `]` after %s", excerpt(v.String()+"["))
			}
			v.keys = append(v.keys, key)
		default:
			return v, nil
		}
	}
}

// String returns the path in the syntax of templates. It comes from a template and is no longer than that.
func (v path) String() string {
	b := []byte(v.name)
	for _, key := range v.keys {
		switch key := key.(type) {
		case literal:
			if name := key.value.text; key.value.kind == kindText && plainName(name) {
				b = append(append(b, '.'), name...)
				continue
			}
			b = append(append(append(b, '['), (&meter{left: workLimit}).brief(key.value)...), ']')
		case path:
			b = append(append(append(b, '['), key.String()...), ']')
		}
	}
	return string(b)
}

func plainName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !letter(c) && (i == 0 || !digit(c) && c != '-') {
			return false
		}
	}
	return s != ""
}

func (v path) eval(r *renderer) (value, error) {
	found, gap, err := v.find(r)
	if gap != nil {
		err = r.missing(v, gap)
	}
	return found, err
}

// gap is the place where a path does not continue.
type gap struct {
	key value
	in  *object // nil: what the key is missing in is no object
	all bool    // there is no variable of the name
}

// find returns the value, or the missing part of the path.
func (v path) find(r *renderer) (value, *gap, error) {
	at, ok := r.lookup(v.name)
	if !ok {
		return value{}, &gap{all: true}, r.err
	}
	for _, k := range v.keys {
		if err := r.work(1); err != nil {
			return value{}, nil, err
		}
		key, err := k.eval(r)
		if err != nil {
			return value{}, nil, err
		}
		inner, ok := r.at(at, key)
		switch {
		case r.err != nil:
			return value{}, nil, r.err
		case !ok:
			return value{}, &gap{key: key, in: at.object}, nil
		}
		at = inner
	}
	return at, nil, r.err
}

// missing is the error of a path that leads nowhere.
func (r *renderer) missing(v path, g *gap) error {
	if r.err != nil {
		return r.err
	}
	const most = 200
	written := "`" + cut(v.String(), most) + "`"
	switch {
	case g.all:
		return r.fail("there is no variable %s: there are %s", excerpt(v.name), list(r.variables()))
	case g.in != nil:
		return r.fail("%s is missing: there is no `%s`, only %s", written, r.brief(g.key), list(g.in.names()))
	}
	return r.fail("%s is missing: there is no `%s`", written, r.brief(g.key))
}

// list names names, not too many.
func list(names []string) string {
	const most = 20
	if len(names) == 0 {
		return "none"
	}
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = excerpt(name)
	}
	return strings.Join(quoted, ", ") + more
}

// pipeline is a value that runs through filters.
type pipeline struct {
	base  expression
	calls []call
}

type call struct {
	name   string
	filter filter
	args   []expression
}

// pipeline reads a value and its filters. Filters that do not exist, and wrong numbers of arguments, are
// errors of the template.
func (p *phrase) pipeline() (expression, error) {
	base, err := p.value()
	if err != nil {
		return nil, err
	}
	var calls []call
	for p.sign("|") {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		f, ok := filters[name]
		if !ok {
			return nil, fmt.Errorf("there is no filter `%s`; the filters are %s", name, strings.Join(filterNames(), ", "))
		}
		c := call{name: name, filter: f}
		if p.sign(":") {
			for {
				arg, err := p.value()
				if err != nil {
					return nil, err
				}
				if p.sign(":") {
					return nil, fmt.Errorf("the filter `%s` has no named arguments", name)
				}
				c.args = append(c.args, arg)
				if !p.sign(",") {
					break
				}
			}
		}
		if len(c.args) < f.least || len(c.args) > f.most {
			return nil, fmt.Errorf("the filter `%s` takes %s, not %d", name, f.arity(), len(c.args))
		}
		calls = append(calls, c)
	}
	if calls == nil {
		return base, nil
	}
	return pipeline{base, calls}, nil
}

// eval runs the filters in turn. Before each it charges steps for the size of its input.
func (p pipeline) eval(r *renderer) (value, error) {
	v, err := p.base.eval(r)
	if err != nil {
		return value{}, err
	}
	for _, c := range p.calls {
		args := r.makeList(len(c.args))
		for _, a := range c.args {
			arg, err := a.eval(r)
			if err != nil {
				return value{}, err
			}
			args = append(args, arg)
		}
		if err := r.work(1 + weight(v) + weight(args...)); err != nil {
			return value{}, err
		}
		v, err = c.filter.run(r, v, args)
		switch {
		case r.err != nil:
			return value{}, r.err
		case err != nil:
			return value{}, r.fail("the filter `%s` %v", c.name, err)
		}
	}
	return v, nil
}

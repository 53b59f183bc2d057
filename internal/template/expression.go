package template

import (
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
)

var signs = []string{"..", "==", "!=", "<>", "<=", ">=", "<", ">", "|", ":", ",", ".", "[", "]", "(", ")", "="}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// scan cuts the inside of an output or tag into tokens.
func scan(s string) ([]token, error) {
	var tokens []token
	for i := 0; i < len(s); {
		c := s[i]
		start := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case letter(c):
			for i < len(s) && (letter(s[i]) || digit(s[i]) || s[i] == '-') {
				i++
			}
			tokens = append(tokens, token{tokenName, s[start:i]})
			continue
		case digit(c) || c == '-' && i+1 < len(s) && digit(s[i+1]):
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
			tokens = append(tokens, token{kind, s[start:i]})
			continue
		case c == '"' || c == '\'':
			n := strings.IndexByte(s[i+1:], c)
			if n < 0 {
				return nil, fmt.Errorf("the text that opens with %s is not closed", excerpt(s[i:]))
			}
			tokens = append(tokens, token{tokenText, s[i+1 : i+1+n]})
			i += n + 2
			continue
		}
		found := false
		for _, sign := range signs {
			if strings.HasPrefix(s[i:], sign) {
				tokens = append(tokens, token{tokenSign, sign})
				i += len(sign)
				found = true
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("%s is not understood", excerpt(s[i:]))
		}
	}
	return tokens, nil
}

// excerpt quotes the start of s for an error.
func excerpt(s string) string {
	const limit = 30
	if len(s) > limit {
		s = cut(s, limit) + "…"
	}
	return "`" + s + "`"
}

// phrase is a list of tokens being read.
type phrase struct {
	tokens []token
	p      *parser
}

func (p *phrase) peek() token {
	if len(p.tokens) == 0 {
		return token{}
	}
	return p.tokens[0]
}

func (p *phrase) next() token {
	t := p.peek()
	if len(p.tokens) > 0 {
		p.tokens = p.tokens[1:]
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
	if t := p.next(); t.kind == tokenName {
		return t.text, nil
	} else if t.kind != tokenEnd {
		return "", fmt.Errorf("there is %s where a name should be", excerpt(t.text))
	}
	return "", fmt.Errorf("a name is missing")
}

func (p *phrase) end() error {
	if t := p.peek(); t.kind != tokenEnd {
		return fmt.Errorf("there is %s too much", excerpt(t.text))
	}
	return nil
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
	text string // as it is written
}

// maxNesting bounds how deep expressions and blocks stand in each other.
const maxNesting = 100

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
		return nil, fmt.Errorf("a value is missing")
	}
	return nil, fmt.Errorf("there is %s where a value should be", excerpt(t.text))
}

func (p *phrase) path(name string) (expression, error) {
	v := path{name: name, text: name}
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
			v.text += "." + key
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
				return nil, fmt.Errorf("a ] is missing after %s", excerpt(v.text+"["))
			}
			v.keys = append(v.keys, key)
			switch key := key.(type) {
			case literal:
				v.text += "[" + key.value.String() + "]"
			case path:
				v.text += "[" + key.text + "]"
			}
		default:
			return v, nil
		}
	}
}

func (v path) eval(r *renderer) (value, error) {
	found, err := v.find(r)
	if err != nil && err != errWork {
		err = r.fail("%v", err)
	}
	return found, err
}

// find returns the value, or says what is missing.
func (v path) find(r *renderer) (value, error) {
	at, ok := r.lookup(v.name)
	if !ok {
		return value{}, fmt.Errorf("there is no variable `%s`: there are %s", v.name, list(r.variables()))
	}
	for _, k := range v.keys {
		if err := r.work(1); err != nil {
			return value{}, err
		}
		key, err := k.eval(r)
		if err != nil {
			return value{}, err
		}
		inner, ok := at.at(key)
		if !ok {
			reason := fmt.Sprintf("`%s` is not there: `%s` is missing", v.text, key)
			if at.kind == kindObject {
				reason += ", and what is there are " + list(at.object.names())
			}
			return value{}, fmt.Errorf("%s", reason)
		}
		at = inner
	}
	return at, nil
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
			return nil, fmt.Errorf("there is no filter `%s`: there are %s", name, strings.Join(filterNames(), ", "))
		}
		c := call{name: name, filter: f}
		if p.sign(":") {
			for {
				arg, err := p.value()
				if err != nil {
					return nil, err
				}
				if p.sign(":") {
					return nil, fmt.Errorf("the filter `%s` takes no arguments with names", name)
				}
				c.args = append(c.args, arg)
				if !p.sign(",") {
					break
				}
			}
		}
		if len(c.args) < f.least || len(c.args) > f.most {
			return nil, fmt.Errorf("the filter `%s` takes %s, and not %d", name, f.arity(), len(c.args))
		}
		calls = append(calls, c)
	}
	if calls == nil {
		return base, nil
	}
	return pipeline{base, calls}, nil
}

func (p pipeline) eval(r *renderer) (value, error) {
	v, err := p.base.eval(r)
	if err != nil {
		return value{}, err
	}
	for _, c := range p.calls {
		args := make([]value, len(c.args))
		for i, a := range c.args {
			if args[i], err = a.eval(r); err != nil {
				return value{}, err
			}
		}
		if err := r.work(1 + cost(v)); err != nil {
			return value{}, err
		}
		if v, err = c.filter.run(r, v, args); err != nil {
			if err == errWork {
				return value{}, err
			}
			return value{}, r.fail("the filter `%s` %v", c.name, err)
		}
		if err := r.work(cost(v)); err != nil {
			return value{}, err
		}
	}
	return v, nil
}

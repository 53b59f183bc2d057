package template

import (
	"cmp"
	"strings"
)

// condition is what an if asks.
type condition interface {
	holds(r *renderer) (bool, error)
}

type (
	bare       struct{ value expression }
	comparison struct {
		sign        string
		left, right expression
	}
	connection struct {
		and   bool // all of the parts must hold, and not only one
		parts []condition
	}
)

func (p *phrase) condition() (condition, error) {
	return p.chain("or", func() (condition, error) { return p.chain("and", p.atom) })
}

// chain reads parts that are joined by one word, "and" or "or". "or" binds less than "and".
func (p *phrase) chain(word string, part func() (condition, error)) (condition, error) {
	first, err := part()
	if err != nil || p.peek() != (token{tokenName, word}) {
		return first, err
	}
	c := connection{and: word == "and", parts: []condition{first}}
	for p.word(word) {
		next, err := part()
		if err != nil {
			return nil, err
		}
		c.parts = append(c.parts, next)
	}
	return c, nil
}

// atom reads a comparison, or a bare value. A bare variable may be missing.
func (p *phrase) atom() (condition, error) {
	left, err := p.value()
	if err != nil {
		return nil, err
	}
	sign := ""
	switch t := p.peek(); {
	case t.kind == tokenName && t.text == "contains":
		sign = t.text
	case t.kind == tokenSign && strings.Contains(" == != <> < > <= >= ", " "+t.text+" "):
		sign = t.text
	default:
		return bare{left}, nil
	}
	p.next()
	right, err := p.value()
	if err != nil {
		return nil, err
	}
	return comparison{sign, left, right}, nil
}

// holds is the only place where a variable may be missing. Then it is false.
func (b bare) holds(r *renderer) (bool, error) {
	v, ok := b.value.(path)
	if !ok {
		x, err := b.value.eval(r)
		return x.truthy(), err
	}
	x, gap, err := v.find(r)
	return gap == nil && x.truthy(), err
}

// holds compares two values. Values without an order are neither less nor greater.
func (c comparison) holds(r *renderer) (bool, error) {
	left, err := c.left.eval(r)
	if err != nil {
		return false, err
	}
	right, err := c.right.eval(r)
	if err != nil {
		return false, err
	}
	if err := r.work(1 + weight(left, right)); err != nil {
		return false, err
	}
	holds := false
	switch c.sign {
	case "==":
		holds = r.equal(left, right)
	case "!=", "<>":
		holds = !r.equal(left, right)
	case "contains":
		holds, err = r.contains(left, right)
	default:
		order, ok := r.compare(left, right)
		switch c.sign {
		case "<":
			holds = ok && order < 0
		case ">":
			holds = ok && order > 0
		case "<=":
			holds = ok && order <= 0
		case ">=":
			holds = ok && order >= 0
		}
	}
	return holds, cmp.Or(r.err, err)
}

// contains looks for a member of an object, an element of an array, or a part of a text.
func (r *renderer) contains(v, part value) (bool, error) {
	switch {
	case v.kind == kindObject:
		_, ok := v.object.get(r.meter, r.text(part))
		return ok, nil
	case v.kind == kindArray:
		for i := range v.list {
			if item := v.item(r.meter, i); item.scalar() && (item.kind == kindBool) == (part.kind == kindBool) && r.equal(item, part) {
				return true, nil
			}
			if r.err != nil {
				return false, nil
			}
		}
		return false, nil
	case v.scalar():
		return strings.Contains(r.text(v), r.text(part)), nil
	}
	return false, r.fail("contains needs a text, an array or an object on its left")
}

func (c connection) holds(r *renderer) (bool, error) {
	for _, part := range c.parts {
		if holds, err := part.holds(r); err != nil || holds != c.and {
			return holds, err
		}
	}
	return c.and, nil
}

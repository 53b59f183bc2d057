package template

import "strings"

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
		and         bool
		left, right condition
	}
)

func (p *phrase) condition() (condition, error) {
	return p.chain("or", func() (condition, error) { return p.chain("and", p.atom) })
}

func (p *phrase) chain(word string, part func() (condition, error)) (condition, error) {
	left, err := part()
	for err == nil && p.word(word) {
		var right condition
		right, err = part()
		left = connection{word == "and", left, right}
	}
	return left, err
}

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

// holds is the one place where a variable may be missing: then it is false.
func (b bare) holds(r *renderer) (bool, error) {
	v, ok := b.value.(path)
	if !ok {
		x, err := b.value.eval(r)
		return x.truthy(), err
	}
	x, err := v.find(r)
	if err == errWork {
		return false, err
	}
	return err == nil && x.truthy(), nil
}

func (c comparison) holds(r *renderer) (bool, error) {
	left, err := c.left.eval(r)
	if err != nil {
		return false, err
	}
	right, err := c.right.eval(r)
	if err != nil {
		return false, err
	}
	if err := r.work(1 + cost(left) + cost(right)); err != nil {
		return false, err
	}
	switch c.sign {
	case "==":
		return equal(left, right), nil
	case "!=", "<>":
		return !equal(left, right), nil
	case "contains":
		return contains(r, left, right)
	}
	order, ok := compare(left, right)
	switch c.sign {
	case "<":
		return ok && order < 0, nil
	case ">":
		return ok && order > 0, nil
	case "<=":
		return ok && order <= 0, nil
	}
	return ok && order >= 0, nil
}

func contains(r *renderer, v, part value) (bool, error) {
	switch {
	case v.kind == kindObject:
		_, ok := v.object.get(part.String())
		return ok, nil
	case v.kind == kindArray:
		for i := range v.list {
			if item := v.item(i); item.scalar() && (item.kind == kindBool) == (part.kind == kindBool) && equal(item, part) {
				return true, nil
			}
		}
		return false, nil
	case v.scalar():
		return strings.Contains(v.String(), part.String()), nil
	}
	return false, r.fail("contains needs a text, an array or an object on its left")
}

func (c connection) holds(r *renderer) (bool, error) {
	left, err := c.left.holds(r)
	if err != nil || left != c.and {
		return left, err
	}
	return c.right.holds(r)
}

package filter

import (
	"slices"

	"svc/internal/numeric"
	"svc/internal/text"
)

// Bounds limit how much of a filter Ways examines. What is beyond a bound is ignored: a way then has fewer tests, or there are fewer
// ways.
type Bounds struct {
	Ways  int // alternatives of the whole filter
	Or    int // parts of an OR, and values of an IN
	And   int // parts of an AND
	Depth int // of nested AND, OR and NOT
}

// Way is one way to satisfy a filter: tests that all have to pass. Tests that Ways does not support (CONTAINS, geometry, vectors,
// foreign documents) are omitted.
type Way []*Test

// Test is a condition on one attribute.
type Test struct {
	Attribute string
	op        op
	contrary  bool     // the condition is negated
	keys      []string // of equal, notEqual and in: as Value.Key
	span      valueSpan
}

// Value is a value of an attribute, as a rule names it.
type Value struct {
	Pair
	Key    string         // equal for values that are equal to a filter
	Number *numeric.Value // nil: the value does not read as a number
	Text   string         // as filters compare texts
}

// NewValue prepares a value to be tested.
func NewValue(p Pair) Value {
	v := Value{Pair: p, Key: p.Key()}
	if x, ok := numeric.Parse(p.Value); ok {
		v.Number = &x
	} else {
		v.Text = string(text.FacetKey(nil, []byte(p.Value)))
	}
	return v
}

// valueSpan is what a range allows: numbers, if all its bounds are numbers, and texts.
type valueSpan struct {
	numeric       bool
	low, high     *numeric.Value // nil: unbounded
	from, to      string         // of texts, if hasFrom and hasTo
	hasFrom       bool
	hasTo         bool
	after, before bool // the bound is exclusive
}

func newValueSpan(c *condition) valueSpan {
	m := newRangeMatch(0, c)
	return valueSpan{
		numeric: m.numeric, low: m.low, high: m.high, from: string(m.from), to: string(m.to), hasFrom: m.from != nil, hasTo: m.to != nil,
		after: m.after, before: m.before,
	}
}

// Passes reports whether a value of the test's attribute satisfies the test.
func (t *Test) Passes(v *Value) bool {
	passes := true // of exists
	switch t.op {
	case equal, in:
		passes = slices.Contains(t.keys, v.Key)
	case notEqual:
		passes = !slices.Contains(t.keys, v.Key)
	case greater, greaterOrEqual, less, lessOrEqual, between:
		passes = t.span.has(v)
	}
	return passes != t.contrary
}

func (s *valueSpan) has(v *Value) bool {
	if v.Number != nil {
		return s.numeric && !s.belowNumber(*v.Number) && !s.aboveNumber(*v.Number)
	}
	return v.Text != "" && !s.belowText(v.Text) && !s.aboveText(v.Text)
}

// belowNumber reports whether x is below the numbers of the span, aboveNumber whether it is above them.
func (s *valueSpan) belowNumber(x numeric.Value) bool {
	return s.low != nil && (x.Compare(*s.low) < 0 || s.after && x == *s.low)
}

func (s *valueSpan) aboveNumber(x numeric.Value) bool {
	return s.high != nil && (x.Compare(*s.high) > 0 || s.before && x == *s.high)
}

func (s *valueSpan) belowText(x string) bool {
	return s.hasFrom && (x < s.from || s.after && x == s.from)
}

func (s *valueSpan) aboveText(x string) bool {
	return s.hasTo && (x > s.to || s.before && x == s.to)
}

// Keys returns the keys of all values that pass, or nil if other values pass, too.
func (t *Test) Keys() []string {
	if (t.op == equal || t.op == in) && !t.contrary || t.op == notEqual && t.contrary {
		return t.keys
	}
	return nil
}

// Spans reports whether the matching values form one range. Then Numbers and Texts find them in sorted lists.
func (t *Test) Spans() bool {
	switch t.op {
	case greater, greaterOrEqual, less, lessOrEqual, between:
		return !t.contrary
	}
	return false
}

// Numbers returns which of n ascending numbers pass a test that Spans: those from lo on, before hi.
func (t *Test) Numbers(n int, at func(i int) numeric.Value) (lo, hi int) {
	if !t.span.numeric {
		return 0, 0
	}
	lo = search(n, func(i int) bool { return !t.span.belowNumber(at(i)) })
	return lo, max(lo, search(n, func(i int) bool { return t.span.aboveNumber(at(i)) }))
}

// Texts returns which of n ascending texts, none empty, pass a test that Spans.
func (t *Test) Texts(n int, at func(i int) string) (lo, hi int) {
	lo = search(n, func(i int) bool { return !t.span.belowText(at(i)) })
	return lo, max(lo, search(n, func(i int) bool { return t.span.aboveText(at(i)) }))
}

// search returns the first of n places where f holds, which it does from there on.
func search(n int, f func(i int) bool) int {
	lo, hi := 0, n
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if f(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// Ways returns the ways to satisfy the filter, within bounds: OR splits them, AND joins them, NOT is pushed down to the tests. IN
// stays a single test, of which a way satisfies one value. A nil filter has none.
func (e *Expr) Ways(b Bounds) []Way {
	if e == nil {
		return nil
	}
	w := waysWalk{bounds: b}
	return w.of(e.root, false, 0)
}

type waysWalk struct{ bounds Bounds }

// of returns the ways to satisfy a node, or its negation if contrary is set. A way without tests means that nothing is known:
// everything satisfies it. No ways at all mean that nothing satisfies the node.
func (w *waysWalk) of(n node, contrary bool, depth int) []Way {
	if depth > w.bounds.Depth {
		return []Way{nil}
	}
	switch n := n.(type) {
	case *not:
		return w.of(n.kid, !contrary, depth+1)
	case *junction:
		if n.or != contrary {
			return w.any(n.kids, contrary, depth)
		}
		return w.all(n.kids, contrary, depth)
	case *elements:
		if contrary { // that no object passes says nothing of one attribute
			return []Way{nil}
		}
		return w.of(n.kid, false, depth+1)
	case *condition:
		if n.op == in && len(n.values) == 0 && !contrary {
			return nil // nothing satisfies it
		}
		return []Way{w.test(n, contrary)}
	}
	return []Way{nil}
}

// any returns the ways of some alternatives, one after the other.
func (w *waysWalk) any(kids []node, contrary bool, depth int) (sum []Way) {
	for _, k := range kids[:min(len(kids), w.bounds.Or)] {
		sum = append(sum, w.of(k, contrary, depth+1)...)
		if len(sum) >= w.bounds.Ways {
			return sum[:w.bounds.Ways]
		}
	}
	return sum
}

// all returns the combinations of the ways of parts that all have to be satisfied.
func (w *waysWalk) all(kids []node, contrary bool, depth int) []Way {
	sum := []Way{nil}
	for _, k := range kids[:min(len(kids), w.bounds.And)] {
		each := w.of(k, contrary, depth+1)
		both := make([]Way, 0, min(len(sum)*len(each), w.bounds.Ways))
	pairs:
		for _, a := range sum {
			for _, b := range each {
				if len(both) >= w.bounds.Ways {
					break pairs
				}
				both = append(both, slices.Concat(a, b))
			}
		}
		sum = both
	}
	return sum
}

// test returns the way of one condition. It has no test if search rules do not support the condition.
func (w *waysWalk) test(c *condition, contrary bool) Way {
	t := &Test{Attribute: c.attr, op: c.op, contrary: contrary}
	switch c.op {
	case equal, notEqual, in:
		values := c.values
		if len(values) > w.bounds.Or {
			if contrary { // each of them is excluded, and not only the first ones
				return nil
			}
			values = values[:w.bounds.Or]
		}
		t.keys = make([]string, len(values))
		for i, v := range values {
			t.keys[i] = Pair{c.attr, v}.Key()
		}
	case greater, greaterOrEqual, less, lessOrEqual, between:
		t.span = newValueSpan(c)
	case exists:
	default:
		return nil
	}
	return Way{t}
}
